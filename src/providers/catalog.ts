// The catalogue of providers: one row per channel type. Where is provider X? Here.
// Refuses code: a row is data; what needs a protocol of its own names an adapter.
import { BEDROCK_BETAS, VERTEX_BETAS } from "./betas.ts";
import type { ProviderRow } from "./define.ts";
import {
  adapted,
  AZURE_URL,
  geminiRoute,
  MJ_SECRET,
  NATIVE_URL,
  ONE_PICTURE,
  openai,
  OPENAI,
  OPENAI_MODELS,
  OPENAI_OPERATIONS,
  openaiRow,
  REASONING_QUIRKS,
  RESPONSES_ONLY,
  routes,
  row,
} from "./row-kit.ts";

const ROWS: readonly ProviderRow[] = [
  openaiRow(1, "openai", {
    sendsOrganization: true,
    gatewayDrops: "/v1",
    asksForStreamUsage: true,
    quirks: REASONING_QUIRKS,
    balance: "openai-billing",
    operations: { ...OPENAI, chat: openai(NATIVE_URL, { models: RESPONSES_ONLY }) },
  }),
  row(2, { owner: "midjourney", auth: MJ_SECRET, tasks: "midjourney" }),
  row(3, {
    owner: "openai",
    auth: { kind: "header", name: "api-key" },
    version: "azure",
    gatewayDrops: "/openai/deployments",
    asksForStreamUsage: true,
    quirks: REASONING_QUIRKS,
    operations: {
      ...routes(OPENAI_OPERATIONS, AZURE_URL),
      chat: openai(AZURE_URL, { models: RESPONSES_ONLY }),
      // Azure serves responses outside of the deployments: the body names the model.
      responses: {
        dialect: "openai-responses",
        url: "{base}/openai/v1/responses?api-version=preview",
        variants: [
          {
            baseSuffix: ".cognitiveservices.azure.com",
            url: "{base}/openai/responses?api-version={version}",
          },
        ],
      },
      realtime: openai("{base}/openai/realtime?deployment={model}&api-version={version}"),
    },
  }),
  row(4, {
    owner: "ollama",
    asksForStreamUsage: true,
    inlinesImages: true,
    modelsListing: OPENAI_MODELS,
    quirks: [{ patch: "as-list", field: "stop" }],
    operations: {
      ...routes(["chat", "completions"]),
      // The native address; the OpenAI-shaped one came with later releases of the server.
      embeddings: adapted("ollama", "{base}/api/embed"),
    },
  }),
  row(5, { owner: "midjourney", auth: MJ_SECRET, tasks: "midjourney" }),
  openaiRow(6, "openai-max"),
  openaiRow(7, "ohmygpt"),
  openaiRow(8, "custom", {
    hasFullUrl: true,
    balance: "openai-billing",
    operations: routes(OPENAI_OPERATIONS, "{base}"),
  }),
  openaiRow(9, "ails"),
  openaiRow(10, "aiproxy", { balance: "aiproxy" }),
  row(11, { owner: "google palm", auth: { kind: "header", name: "x-goog-api-key" } }),
  openaiRow(12, "api2gpt", { balance: "api2gpt" }),
  openaiRow(13, "aigc2d", { balance: "aigc2d" }),
  row(14, {
    owner: "claude",
    auth: { kind: "header", name: "x-api-key" },
    asksForStreamUsage: true,
    operations: {
      messages: {
        dialect: "anthropic",
        url: "{base}/v1/messages{query}",
        countUrl: "{base}/v1/messages/count_tokens{query}",
      },
    },
    modelsListing: { url: "{base}/v1/models?limit=1000", isPaged: true },
  }),
  row(15, {
    owner: "baidu",
    auth: { kind: "adapter", name: "baidu" },
    operations: {
      chat: adapted("baidu", "{base}/rpc/2.0/ai_custom/v1/wenxinworkshop/chat/{model}"),
      embeddings: adapted("baidu", "{base}/rpc/2.0/ai_custom/v1/wenxinworkshop/embeddings/{model}"),
    },
  }),
  row(16, {
    owner: "zhipu",
    auth: { kind: "adapter", name: "zhipu-v3" },
    operations: {
      chat: adapted("zhipu-v3", "{base}/api/paas/v3/model-api/{model}/invoke", {
        streamUrl: "{base}/api/paas/v3/model-api/{model}/sse-invoke",
      }),
    },
  }),
  row(17, {
    owner: "ali",
    headers: [
      { name: "x-dashscope-sse", value: "enable", when: "stream" },
      { name: "x-dashscope-plugin", value: "{other}" },
    ],
    quirks: [
      { patch: "bound", field: "top_p", min: 0.001, max: 0.999 },
      // Open Qwen3 models refuse a plain answer while thinking is on, which is their default.
      { patch: "set", field: "enable_thinking", value: false, when: "not-streaming", on: ["chat"] },
    ],
    modelsListing: { url: "{base}/compatible-mode/v1/models" },
    operations: {
      chat: adapted("ali", "{base}/compatible-mode/v1/chat/completions"),
      completions: adapted("ali", "{base}/compatible-mode/v1/completions"),
      rerank: adapted("ali", "{base}/api/v1/services/rerank/text-rerank/text-rerank"),
      embeddings: adapted("ali", "{base}/api/v1/services/embeddings/text-embedding/text-embedding"),
      "image-generations": adapted("ali", "{base}/api/v1/services/aigc/text2image/image-synthesis"),
    },
  }),
  row(18, {
    owner: "xunfei",
    auth: { kind: "adapter", name: "xunfei" },
    operations: { chat: adapted("xunfei", "wss://spark-api.xf-yun.com/{other}/chat") },
  }),
  openaiRow(19, "ai360"),
  openaiRow(20, "openrouter", {
    balance: "openrouter",
    modelsListing: { ...OPENAI_MODELS, isPublic: true },
    headers: [
      { name: "http-referer", value: "{site}" },
      { name: "x-title", value: "Weir" },
    ],
  }),
  row(21, {
    owner: "aiproxy",
    operations: { chat: adapted("aiproxy-library", "{base}/api/library/ask") },
  }),
  openaiRow(22, "fastgpt"),
  row(23, {
    owner: "tencent",
    auth: { kind: "adapter", name: "tencent" },
    operations: { chat: adapted("tencent", "{base}/") },
  }),
  row(24, {
    owner: "google gemini",
    auth: { kind: "header", name: "x-goog-api-key" },
    version: "gemini",
    asksForStreamUsage: true,
    modelsListing: { url: "{base}/v1beta/openai/models", strip: "models/" },
    operations: {
      gemini: { ...geminiRoute("{version}"), countUrl: "{base}/{version}/models/{model}:countTokens" },
      embeddings: adapted("gemini", "{base}/{version}/models/{model}:embedContent", {
        alsoSpeaks: "gemini",
        models: { prefixes: ["text-embedding", "embedding", "gemini-embedding"] },
      }),
      "image-generations": adapted("gemini", "{base}/{version}/models/{model}:predict", {
        models: { prefixes: ["imagen"] },
      }),
    },
  }),
  openaiRow(25, "moonshot", { balance: "moonshot" }),
  row(26, {
    owner: "zhipu_4v",
    quirks: [
      { patch: "bound", field: "top_p", max: 0.99 },
      { patch: "as-list", field: "stop" },
      { patch: "move-output-limit", to: "max_tokens" },
      { patch: "bare-base64-images", on: ["chat"] },
      { patch: "rename", from: "user", to: "user_id", on: ["chat", "image-generations"] },
      ONE_PICTURE,
      { patch: "omit", fields: ["n"], on: ["image-generations"] },
    ],
    // The provider takes the key itself as a bearer today; the signed token of version 3 is not needed.
    modelsListing: { url: "{base}/api/paas/v4/models" },
    operations: {
      chat: openai("{base}/api/paas/v4/chat/completions"),
      embeddings: openai("{base}/api/paas/v4/embeddings"),
      "image-generations": adapted("zhipu-pictures", "{base}/api/paas/v4/images/generations"),
    },
  }),
  row(27, {
    owner: "perplexity",
    quirks: [
      { patch: "bound", field: "top_p", max: 0.99 },
      { patch: "move-output-limit", to: "max_tokens" },
    ],
    operations: { chat: openai("{base}/chat/completions") },
  }),
  openaiRow(31, "lingyiwanwu"),
  row(33, {
    owner: "aws",
    auth: { kind: "adapter", name: "bedrock" },
    asksForStreamUsage: true,
    inlinesImages: true,
    betas: BEDROCK_BETAS,
    // The address is made from the region inside the key. Claude speaks its own dialect, all others Converse.
    operations: {
      messages: { dialect: "anthropic", url: "{base}", adapter: "bedrock", models: { contains: "claude" } },
      chat: adapted("bedrock", "{base}", { models: { except: /claude/ } }),
    },
  }),
  row(34, {
    owner: "cohere",
    quirks: [
      { patch: "bound", field: "top_n", min: 1, on: ["rerank"] },
      { patch: "set", field: "return_documents", value: true, on: ["rerank"] },
    ],
    operations: {
      chat: adapted("cohere", "{base}/v1/chat"),
      embeddings: adapted("cohere", "{base}/v2/embed"),
      rerank: openai("{base}/v1/rerank"),
    },
  }),
  row(35, {
    owner: "minimax",
    operations: {
      chat: adapted("minimax", "{base}/v1/text/chatcompletion_v2"),
      embeddings: adapted("minimax", "{base}/v1/embeddings"),
      speech: adapted("minimax", "{base}/v1/t2a_v2"),
      "image-generations": adapted("minimax", "{base}/v1/image_generation"),
    },
  }),
  row(36, { owner: "suno", tasks: "suno" }),
  row(37, { owner: "dify", operations: { chat: adapted("dify", "{base}/v1/chat-messages") } }),
  row(38, {
    owner: "jina",
    operations: { rerank: openai("{base}/v1/rerank"), embeddings: openai("{base}/v1/embeddings") },
  }),
  row(39, {
    owner: "cloudflare",
    asksForStreamUsage: true,
    operations: {
      chat: openai("{base}/client/v4/accounts/{other}/ai/v1/chat/completions"),
      embeddings: openai("{base}/client/v4/accounts/{other}/ai/v1/embeddings"),
      completions: adapted("cloudflare", "{base}/client/v4/accounts/{other}/ai/run/{model}"),
      transcriptions: adapted("cloudflare", "{base}/client/v4/accounts/{other}/ai/run/{model}"),
      translations: adapted("cloudflare", "{base}/client/v4/accounts/{other}/ai/run/{model}"),
    },
  }),
  row(40, {
    owner: "siliconflow",
    balance: "siliconflow",
    modelsListing: OPENAI_MODELS,
    operations: {
      chat: openai("{base}/v1/chat/completions"),
      completions: openai("{base}/v1/completions"),
      embeddings: openai("{base}/v1/embeddings"),
      rerank: openai("{base}/v1/rerank"),
      speech: openai("{base}/v1/audio/speech"),
      transcriptions: openai("{base}/v1/audio/transcriptions"),
      "image-generations": adapted("siliconflow", "{base}/v1/images/generations"),
    },
  }),
  row(41, {
    owner: "vertex-ai",
    auth: { kind: "adapter", name: "vertex" },
    inlinesImages: true,
    betas: VERTEX_BETAS,
    // Addresses are made from region and project, which stand in the special field and in the key.
    operations: {
      messages: { dialect: "anthropic", url: "{base}", adapter: "vertex", models: { prefixes: ["claude"] } },
      gemini: { dialect: "gemini", url: "{base}", adapter: "vertex", models: { prefixes: ["gemini"] } },
      chat: adapted("vertex", "{base}", { models: { contains: "llama" } }),
      embeddings: adapted("vertex", "{base}", {
        alsoSpeaks: "gemini",
        models: {
          prefixes: ["text-embedding", "text-multilingual-embedding", "embedding", "gemini-embedding"],
        },
      }),
      "image-generations": adapted("vertex", "{base}", { models: { prefixes: ["imagen"] } }),
    },
  }),
  row(42, {
    owner: "mistral",
    modelsListing: OPENAI_MODELS,
    quirks: [
      { patch: "image-url-as-text", on: ["chat"] },
      { patch: "move-output-limit", to: "max_tokens" },
      { patch: "rename", from: "seed", to: "random_seed" },
      // The provider answers 422 to fields it does not know.
      {
        patch: "omit",
        fields: ["user", "logit_bias", "logprobs", "top_logprobs", "service_tier", "store"],
      },
      { patch: "rename", from: "dimensions", to: "output_dimension", on: ["embeddings"] },
      { patch: "omit", fields: ["user", "encoding_format"], on: ["embeddings"] },
    ],
    operations: {
      chat: openai("{base}{path}"),
      completions: openai("{base}{path}"),
      embeddings: openai("{base}/v1/embeddings"),
    },
  }),
  row(43, {
    owner: "deepseek",
    asksForStreamUsage: true,
    balance: "deepseek",
    modelsListing: OPENAI_MODELS,
    operations: {
      chat: openai("{base}/v1/chat/completions"),
      completions: openai("{base}/beta/completions", { once: "/beta" }),
    },
  }),
  row(44, {
    owner: "mokaai",
    operations: { embeddings: openai("{base}/embeddings", { models: { prefixes: ["m3e"] } }) },
  }),
  row(45, {
    owner: "volcengine",
    asksForStreamUsage: true,
    modelsListing: { url: "{base}/api/v3/models" },
    quirks: [
      ONE_PICTURE,
      {
        patch: "omit",
        // A series of pictures in one call would be several at the price of one.
        fields: ["n", "sequential_image_generation", "sequential_image_generation_options"],
        on: ["image-generations"],
      },
    ],
    operations: {
      chat: openai("{base}/api/v3/chat/completions", {
        variants: [{ modelPrefix: "bot", url: "{base}/api/v3/bots/chat/completions" }],
      }),
      embeddings: openai("{base}/api/v3/embeddings"),
      "image-generations": openai("{base}/api/v3/images/generations"),
    },
  }),
  row(46, {
    owner: "baidu-v2",
    asksForStreamUsage: true,
    quirks: [{ patch: "search-suffix", on: ["chat"], models: /-search$/ }],
    modelsListing: { url: "{base}/v2/models" },
    operations: { chat: openai("{base}/v2/chat/completions") },
  }),
  openaiRow(47, "xinference"),
  row(48, {
    owner: "xai",
    asksForStreamUsage: true,
    countsReasoningInTotal: true,
    modelsListing: OPENAI_MODELS,
    quirks: [
      { patch: "effort-suffix", models: /^grok-3-mini/, on: ["chat"] },
      { patch: "move-output-limit", to: "max_completion_tokens", models: /^grok-3-mini/, on: ["chat"] },
      {
        patch: "omit",
        on: ["image-generations"],
        fields: ["size", "quality", "style", "user", "background", "moderation", "output_format"],
      },
    ],
    operations: {
      chat: openai("{base}{path}"),
      completions: openai("{base}{path}"),
      "image-generations": openai("{base}{path}"),
    },
  }),
  row(49, { owner: "coze", operations: { chat: adapted("coze", "{base}/v3/chat") } }),
  row(50, { owner: "kling", auth: { kind: "adapter", name: "kling" }, tasks: "video" }),
  row(51, { owner: "jimeng", auth: { kind: "adapter", name: "jimeng" }, tasks: "video" }),
  row(52, {
    owner: "vidu",
    auth: { kind: "header", name: "authorization", prefix: "Token " },
    tasks: "video",
  }),
  row(53, {
    owner: "submodel",
    operations: routes(["chat", "completions"]),
    modelsListing: OPENAI_MODELS,
  }),
  row(54, { owner: "doubao-video", tasks: "video" }),
  row(55, { owner: "sora", tasks: "video" }),
  row(56, {
    owner: "replicate",
    headers: [{ name: "prefer", value: "wait" }],
    operations: {
      "image-generations": adapted("replicate", "{base}/v1/models/{model}/predictions"),
      "image-edits": adapted("replicate", "{base}/v1/models/{model}/predictions"),
    },
  }),
  row(57, { owner: "codex", auth: { kind: "adapter", name: "codex" } }),
  row(58, { owner: "custom" }),
  row(59, {
    owner: "sub2api",
    modelsListing: OPENAI_MODELS,
    operations: { ...routes(["chat", "responses", "messages"]), gemini: geminiRoute("v1beta") },
  }),
  row(60, {
    owner: "new-api",
    auth: { kind: "by-dialect" },
    modelsListing: OPENAI_MODELS,
    operations: {
      ...routes([
        "chat",
        "completions",
        "embeddings",
        "image-generations",
        "image-edits",
        "speech",
        "rerank",
        "responses",
        "messages",
      ]),
      gemini: geminiRoute("v1beta"),
    },
  }),
];

const BY_ID = new Map(ROWS.map((each) => [each.id, each]));

export function providerOf(type: number): ProviderRow | undefined {
  return BY_ID.get(type);
}

/** Every row in the order of the types. */
export function listProviders(): readonly ProviderRow[] {
  return ROWS;
}
