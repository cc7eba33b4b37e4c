// What the console needs to draw the channel editor: one entry per channel type, shipped to the browser as it is.
// It knows no protocol: addresses, headers and model presets are the server's (src/providers).
import type { Language } from "./enums.ts";

export type Localized = Readonly<Record<Language, string>>;

/** Group of the type list: OpenAI-shaped upstreams, upstreams with a protocol of their own, asynchronous tasks. */
export type ProviderGroup = "openai" | "own" | "tasks";

/**
 * active: offered. legacy: served, listed last. retired: the provider is gone, calls are refused.
 * later: known by name only (channels of other installations), not served yet.
 */
export type ProviderStatus = "active" | "legacy" | "retired" | "later";

/** A field of the channel row that means something special for this type. */
export interface ProviderField {
  name: "base_url" | "key" | "other" | "openai_organization";
  label: Localized;
  hint?: Localized;
  required?: boolean;
  /** Stored when the person leaves the field empty. */
  defaultValue?: string;
  /** Drawn as a text area; a JSON key is one key however many lines it has. */
  multiline?: boolean;
}

export interface ProviderForm {
  id: number;
  label: Localized;
  group: ProviderGroup;
  status: ProviderStatus;
  /** Stands in for an empty base URL; "" where the person has to give one, or where the address is derived. */
  baseUrl: string;
  /** Key format; DEFAULT_KEY_HINT when absent. */
  keyHint?: Localized;
  fields?: readonly ProviderField[];
}

function both(zh: string, en: string): Localized {
  return { zh, en };
}

export const DEFAULT_KEY_HINT = both("请填写该提供商的 API 密钥", "API key of this provider");

const ACCOUNT_TIP = "can be read in the provider's console";

function baseField(zh: string, en: string, hint?: Localized): ProviderField {
  return { name: "base_url", label: both(zh, en), required: true, ...(hint ? { hint } : {}) };
}

interface Extras {
  status?: ProviderStatus;
  keyHint?: Localized;
  fields?: readonly ProviderField[];
}

function form(
  id: number,
  group: ProviderGroup,
  zh: string,
  en: string,
  baseUrl: string,
  extras: Extras = {},
): ProviderForm {
  const { status = "active", ...rest } = extras;
  return { id, label: both(zh, en), group, status, baseUrl, ...rest };
}

const LEGACY: Extras = { status: "legacy" };
const LATER: Extras = { status: "later" };
const DEPLOYMENT = baseField("服务地址", "Server address");

/** In the order of their ids; 28, 29, 30 and 32 are gaps that stay free. */
export const PROVIDER_FORMS: readonly ProviderForm[] = [
  form(1, "openai", "OpenAI", "OpenAI", "https://api.openai.com", {
    fields: [
      {
        name: "openai_organization",
        label: both("组织", "Organization"),
        hint: both("可选，填写组织 ID，如 org-xxx", "Optional organization id, such as org-xxx"),
      },
    ],
  }),
  form(2, "tasks", "Midjourney Proxy", "Midjourney Proxy", "https://oa.api2d.net", {
    keyHint: both(
      "代理的 mj-api-secret；代理未设密钥时可随意填写",
      "The proxy's mj-api-secret; any text if it has none",
    ),
  }),
  form(3, "openai", "Azure OpenAI", "Azure OpenAI", "", {
    keyHint: both("资源的密钥", "Key of the resource"),
    fields: [
      baseField(
        "资源地址",
        "Resource endpoint",
        both("例如 https://名称.openai.azure.com", "Such as https://name.openai.azure.com"),
      ),
      {
        name: "other",
        label: both("默认 API 版本", "Default API version"),
        hint: both(
          "可选，如 2025-04-01-preview；客户端可用 api-version 参数覆盖",
          "Optional, such as 2025-04-01-preview; clients may override it with the api-version parameter",
        ),
      },
    ],
  }),
  form(4, "openai", "Ollama", "Ollama", "http://localhost:11434", {
    keyHint: both("本地服务可随意填写", "Any text for a local server"),
  }),
  form(5, "tasks", "Midjourney Proxy Plus", "Midjourney Proxy Plus", "https://api.openai-sb.com", {
    keyHint: both("代理的密钥", "The proxy's secret"),
  }),
  form(6, "openai", "OpenAI Max", "OpenAI Max", "https://api.openaimax.com", LEGACY),
  form(7, "openai", "OhMyGPT", "OhMyGPT", "https://api.ohmygpt.com", LEGACY),
  form(8, "openai", "自定义渠道", "Custom", "", {
    fields: [
      baseField(
        "完整的请求地址",
        "Complete request URL",
        both(
          "按原样请求，不再拼接路径；{model} 会替换为模型名称",
          "Called exactly as written, no path is appended; {model} is replaced by the model's name",
        ),
      ),
    ],
  }),
  form(9, "openai", "AILS", "AILS", "https://api.caipacity.com", LEGACY),
  form(10, "openai", "AI Proxy", "AI Proxy", "https://api.aiproxy.io", LEGACY),
  form(11, "own", "Google PaLM2", "Google PaLM 2", "", { status: "retired" }),
  form(12, "openai", "API2GPT", "API2GPT", "https://api.api2gpt.com", LEGACY),
  form(13, "openai", "AIGC2D", "AIGC2D", "https://api.aigc2d.com", LEGACY),
  form(14, "own", "Anthropic Claude", "Anthropic Claude", "https://api.anthropic.com"),
  form(15, "own", "百度文心千帆", "Baidu ERNIE (Qianfan v1)", "https://aip.baidubce.com", {
    keyHint: both("格式：APIKey|SecretKey", "Format: APIKey|SecretKey"),
  }),
  form(16, "own", "智谱 ChatGLM", "Zhipu ChatGLM (v3)", "https://open.bigmodel.cn", {
    status: "legacy",
    keyHint: both("格式：id.secret", "Format: id.secret"),
  }),
  form(17, "own", "阿里通义千问", "Alibaba Qwen (DashScope)", "https://dashscope.aliyuncs.com", {
    fields: [
      {
        name: "other",
        label: both("插件参数", "Plugin"),
        hint: both(
          "可选，DashScope 插件，即 X-DashScope-Plugin 请求头的值",
          "Optional DashScope plugin: value of the X-DashScope-Plugin header",
        ),
      },
    ],
  }),
  form(18, "own", "讯飞星火认知", "iFlytek Spark", "", {
    keyHint: both(
      "格式：APPID|APISecret|APIKey，或 HTTP 服务的 APIPassword",
      "Format: APPID|APISecret|APIKey, or the APIPassword of the HTTP service",
    ),
    fields: [
      {
        name: "other",
        label: both("模型版本", "Model version"),
        hint: both("接口地址中的版本号，例如 v2.1", "Version in the provider's address, such as v2.1"),
        defaultValue: "v2.1",
      },
    ],
  }),
  form(19, "openai", "360 智脑", "360 Zhinao", "https://api.360.cn"),
  form(20, "openai", "OpenRouter", "OpenRouter", "https://openrouter.ai/api"),
  form(21, "own", "知识库：AI Proxy", "AI Proxy knowledge base", "https://api.aiproxy.io", {
    status: "legacy",
    fields: [
      {
        name: "other",
        label: both("知识库 ID", "Knowledge base ID"),
        hint: both("要查询的知识库，例如 123456", "The knowledge base to ask, such as 123456"),
        required: true,
      },
    ],
  }),
  form(22, "openai", "知识库：FastGPT", "FastGPT knowledge base", "https://fastgpt.run/api/openapi", {
    keyHint: both("格式：APIKey-AppId", "Format: APIKey-AppId"),
    fields: [
      {
        name: "base_url",
        label: both("私有部署地址", "Private deployment address"),
        hint: both(
          "可选，例如 https://fastgpt.example.com/api/openapi",
          "Optional, such as https://fastgpt.example.com/api/openapi",
        ),
      },
    ],
  }),
  form(23, "own", "腾讯混元", "Tencent Hunyuan", "https://hunyuan.tencentcloudapi.com", {
    keyHint: both("格式：AppId|SecretId|SecretKey", "Format: AppId|SecretId|SecretKey"),
  }),
  form(24, "own", "Google Gemini", "Google Gemini", "https://generativelanguage.googleapis.com", {
    keyHint: both("Google AI Studio 的密钥", "Key from Google AI Studio"),
  }),
  form(25, "openai", "Moonshot", "Moonshot (Kimi)", "https://api.moonshot.cn"),
  form(26, "openai", "智谱 GLM-4V", "Zhipu GLM-4 / 4V (v4)", "https://open.bigmodel.cn", {
    keyHint: both("格式：id.secret", "Format: id.secret"),
  }),
  form(27, "openai", "Perplexity", "Perplexity", "https://api.perplexity.ai"),
  form(31, "openai", "零一万物", "01.AI Yi", "https://api.lingyiwanwu.com"),
  form(33, "own", "AWS Claude", "AWS Bedrock Claude", "", {
    keyHint: both("格式：AccessKey|SecretKey|Region", "Format: AccessKey|SecretKey|Region"),
  }),
  form(34, "own", "Cohere", "Cohere", "https://api.cohere.ai"),
  form(35, "openai", "MiniMax", "MiniMax", "https://api.minimax.chat"),
  form(36, "tasks", "Suno API", "Suno API", "", {
    fields: [
      baseField("服务地址", "Server address", both("填写到 /suno 之前的部分", "Up to, not including, /suno")),
    ],
  }),
  form(37, "own", "Dify", "Dify", "https://api.dify.ai", {
    keyHint: both("应用的密钥，每个渠道对应一个应用", "Key of the app; one app per channel"),
  }),
  form(38, "openai", "Jina", "Jina", "https://api.jina.ai"),
  form(39, "openai", "Cloudflare", "Cloudflare Workers AI", "https://api.cloudflare.com", {
    keyHint: both("API 令牌", "API token"),
    fields: [
      {
        name: "other",
        label: both("账户 ID", "Account ID"),
        hint: both("Cloudflare 账户 ID，可在其控制台查看", `Id of the Cloudflare account; ${ACCOUNT_TIP}`),
        required: true,
      },
    ],
  }),
  form(40, "openai", "SiliconCloud", "SiliconFlow", "https://api.siliconflow.cn"),
  form(41, "own", "Vertex AI", "Google Vertex AI", "", {
    keyHint: both("服务账号的完整 JSON 凭证", "The service account's complete JSON credentials"),
    fields: [
      { name: "key", label: both("服务账号 JSON", "Service account JSON"), multiline: true, required: true },
      {
        name: "other",
        label: both("部署地区", "Region"),
        hint: both(
          '单个地区，如 us-central1；或按模型指定：{"default":"us-central1","claude-3-5-sonnet-20240620":"europe-west1"}',
          'One region, such as us-central1, or one per model: {"default":"us-central1","claude-3-5-sonnet-20240620":"europe-west1"}',
        ),
        required: true,
        multiline: true,
      },
    ],
  }),
  form(42, "openai", "Mistral AI", "Mistral AI", "https://api.mistral.ai"),
  form(43, "openai", "DeepSeek", "DeepSeek", "https://api.deepseek.com"),
  form(44, "openai", "嵌入模型：MokaAI M3E", "MokaAI M3E embeddings", "https://api.moka.ai"),
  form(
    45,
    "openai",
    "字节火山方舟、豆包、DeepSeek通用",
    "Volcengine Ark (Doubao)",
    "https://ark.cn-beijing.volces.com",
  ),
  form(46, "openai", "百度文心千帆V2", "Baidu Qianfan v2", "https://qianfan.baidubce.com"),
  form(47, "openai", "Xinference", "Xinference", "", { fields: [DEPLOYMENT] }),
  form(48, "openai", "xAI", "xAI Grok", "https://api.x.ai"),
  form(49, "own", "Coze", "Coze", "https://api.coze.cn", {
    keyHint: both("个人访问令牌", "Personal access token"),
    fields: [
      {
        name: "other",
        label: both("智能体 ID", "Agent ID"),
        hint: both("智能体（Bot）的 ID，可在其控制台查看", `Id of the agent (bot); ${ACCOUNT_TIP}`),
        required: true,
      },
    ],
  }),
  form(50, "tasks", "可灵", "Kling", "https://api.klingai.com", {
    status: "later",
    keyHint: both("格式：AccessKey|SecretKey", "Format: AccessKey|SecretKey"),
  }),
  form(51, "tasks", "即梦", "Jimeng", "https://visual.volcengineapi.com", {
    status: "later",
    keyHint: both("格式：AccessKey|SecretKey", "Format: AccessKey|SecretKey"),
  }),
  form(52, "tasks", "Vidu", "Vidu", "https://api.vidu.cn", LATER),
  form(53, "openai", "Submodel", "Submodel", "https://llm.submodel.ai"),
  form(54, "tasks", "豆包视频", "Doubao Video (Seedance)", "https://ark.cn-beijing.volces.com", LATER),
  form(55, "tasks", "Sora", "OpenAI Sora", "https://api.openai.com", LATER),
  form(56, "own", "Replicate", "Replicate", "https://api.replicate.com", {
    keyHint: both("API 令牌，以 r8_ 开头", "API token; begins with r8_"),
  }),
  form(57, "own", "Codex", "ChatGPT subscription (Codex)", "https://chatgpt.com", LATER),
  form(58, "own", "高级自定义", "Advanced Custom", "", LATER),
  form(59, "openai", "Sub2API", "Sub2API", "", { fields: [DEPLOYMENT] }),
  form(60, "openai", "New API", "New API", "", { fields: [DEPLOYMENT] }),
];

const BY_ID = new Map(PROVIDER_FORMS.map((each) => [each.id, each]));

export function providerForm(type: number): ProviderForm | undefined {
  return BY_ID.get(type);
}

/** Label of a type in lists and logs; foreign numbers show as themselves. */
export function providerLabel(type: number, language: Language): string {
  return BY_ID.get(type)?.label[language] ?? `#${type}`;
}

export function keyHint(type: number): Localized {
  return BY_ID.get(type)?.keyHint ?? DEFAULT_KEY_HINT;
}

/** Types a new channel may be given, in list order: groups, and inside them legacy ones last. */
export function offeredProviders(): ProviderForm[] {
  const groups: readonly ProviderGroup[] = ["openai", "own", "tasks"];
  const offered = PROVIDER_FORMS.filter((each) => each.status === "active" || each.status === "legacy");
  return groups.flatMap((group) => {
    const members = offered.filter((each) => each.group === group);
    return [
      ...members.filter((each) => each.status === "active"),
      ...members.filter((each) => each.status === "legacy"),
    ];
  });
}

/** Whether a line break in the key field separates keys (else the whole text is one key). */
export function splitsKeysByLine(type: number): boolean {
  return BY_ID.get(type)?.fields?.some((field) => field.name === "key" && field.multiline === true) !== true;
}
