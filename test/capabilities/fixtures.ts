// One fixture for each channel type that is served: rows of OpenAI's shape share a form, the others speak their own.
// Refuses nothing; the suite refuses a type without an entry.
import { createHash, createHmac, createVerify, generateKeyPairSync } from "node:crypto";
import { encodeAwsEvent } from "../../src/providers/aws-event-stream.ts";
import type { RecordedRequest, Script } from "../support/fake-upstream.ts";
import { bearer, data, events, json, named, TEXT, TOOL, USAGE, VECTOR } from "./fixture.ts";
import type { Fixture, Scene } from "./fixture.ts";
import {
  geminiAnswer,
  messageEvents,
  messagesAnswer,
  openaiAnswer,
  openaiError,
  rerankAnswer,
} from "./openai-forms.ts";

const KEY = "sk-capability";
const pathOf = (request: RecordedRequest): string => request.url.split("?")[0] ?? "";
const queryOf = (request: RecordedRequest): URLSearchParams =>
  new URLSearchParams(request.url.split("?")[1] ?? "");

function openai(more: Partial<Fixture> = {}): Fixture {
  return {
    key: KEY,
    models: { any: "some-model", responses: "gpt-5-codex" },
    isAuthorised: bearer(KEY),
    hasTools: true,
    reportsUsage: true,
    answer: openaiAnswer,
    ...more,
  };
}

const header = (name: string) => (request: RecordedRequest) => request.headers[name] === KEY;

// --- providers with a protocol of their own --------------------------------------------------------------------------

const baidu: Fixture = {
  key: "the-id|the-secret",
  models: { chat: "ERNIE-4.0-8K", embeddings: "Embedding-V1" },
  isAuthorised: (request) =>
    pathOf(request).endsWith("/token")
      ? queryOf(request).get("client_id") === "the-id" &&
        queryOf(request).get("client_secret") === "the-secret"
      : queryOf(request).get("access_token") === "token-1",
  hasTools: false,
  reportsUsage: true,
  errorsWith200: true,
  answer(request, scene) {
    const path = pathOf(request);
    if (path === "/oauth/2.0/token") return json({ access_token: "token-1", expires_in: 2_592_000 });
    if (scene.kind === "error") {
      const code = scene.status === 401 ? 110 : scene.status === 429 ? 18 : 336_100 - 100_000;
      return json({ error_code: code, error_msg: `provider says ${scene.status}` });
    }
    const usage = { prompt_tokens: USAGE.prompt, completion_tokens: USAGE.completion, total_tokens: 12 };
    if (path.endsWith("/embeddings/embedding-v1"))
      return json({ id: "as-1", object: "embedding_list", data: [{ embedding: VECTOR, index: 0 }], usage });
    if (!path.endsWith("/chat/completions_pro")) return json({ error_code: 3, error_msg: "no such path" });
    const whole = { id: "as-1", object: "chat.completion", created: 1, is_truncated: false, usage };
    if (request.json()["stream"] !== true) return json({ ...whole, result: TEXT });
    return events([
      data({ ...whole, sentence_id: 0, is_end: false, result: "Hello" }),
      data({ ...whole, sentence_id: 1, is_end: true, result: " there!" }),
    ]);
  },
};

function isZhipuToken(token: string): boolean {
  const [head = "", claims = "", signature] = token.split(".");
  const payload = JSON.parse(Buffer.from(claims, "base64url").toString()) as {
    api_key: string;
    exp: number;
    timestamp: number;
  };
  const kind = JSON.parse(Buffer.from(head, "base64url").toString()) as { alg: string; sign_type: string };
  const expected = createHmac("sha256", "zhipu-secret").update(`${head}.${claims}`).digest("base64url");
  return (
    signature === expected &&
    payload.api_key === "zhipu-id" &&
    payload.exp > payload.timestamp &&
    kind.sign_type === "SIGN"
  );
}

const zhipuV3: Fixture = {
  key: "zhipu-id.zhipu-secret",
  models: { chat: "chatglm_turbo" },
  isAuthorised: (request) => isZhipuToken(request.headers["authorization"] ?? ""),
  hasTools: false,
  reportsUsage: true,
  errorsWith200: true,
  answer(request, scene) {
    if (scene.kind === "error") {
      const code = scene.status === 401 ? 1002 : scene.status === 429 ? 1302 : 500;
      return json({ success: false, code, msg: `provider says ${scene.status}` });
    }
    const usage = { prompt_tokens: USAGE.prompt, completion_tokens: USAGE.completion, total_tokens: 12 };
    if (pathOf(request).endsWith("/chatglm_turbo/sse-invoke"))
      return events(
        [
          "event:add\nid:1\ndata:Hello\n\n",
          "event:add\nid:1\ndata: there!\n\n",
          `event:finish\nid:1\ndata:\nmeta:${JSON.stringify({ request_id: "r", task_status: "SUCCESS", usage })}\n\n`,
        ].map((text) => text.replace("data: there!", "data:  there!")),
      );
    const choices = [{ role: "assistant", content: JSON.stringify(` ${TEXT}`) }];
    return json({ success: true, code: 200, msg: "ok", data: { task_id: "t", choices, usage } });
  },
};

const tencent: Fixture = {
  key: "app|secret-id|secret-key",
  models: { chat: "hunyuan-lite" },
  isAuthorised(request) {
    const timestamp = Number(request.headers["x-tc-timestamp"]);
    const day = new Date(timestamp * 1000).toISOString().slice(0, 10);
    const hash = (text: string | Buffer) => createHash("sha256").update(text).digest("hex");
    const sign = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
    const canonical = `POST\n/\n\ncontent-type:application/json\nhost:${String(request.headers.host)}\nx-tc-action:chatcompletions\n\ncontent-type;host;x-tc-action\n${hash(request.body)}`;
    const text = `TC3-HMAC-SHA256\n${timestamp}\n${day}/hunyuan/tc3_request\n${hash(canonical)}`;
    const key = sign(sign(sign("TC3secret-key", day), "hunyuan"), "tc3_request");
    const signature = createHmac("sha256", key).update(text).digest("hex");
    return request.headers["authorization"]?.endsWith(`Signature=${signature}`) === true;
  },
  hasTools: false,
  reportsUsage: true,
  errorsWith200: true,
  answer(request, scene) {
    if (scene.kind === "error") {
      const code =
        scene.status === 401
          ? "AuthFailure.SecretIdNotFound"
          : scene.status === 429
            ? "RequestLimitExceeded"
            : "InternalError";
      return json({
        Response: { Error: { Code: code, Message: `provider says ${scene.status}` }, RequestId: "r" },
      });
    }
    const Usage = { PromptTokens: USAGE.prompt, CompletionTokens: USAGE.completion, TotalTokens: 12 };
    if (request.json()["Stream"] !== true)
      return json({
        Response: {
          Id: "1",
          Choices: [{ Message: { Role: "assistant", Content: TEXT }, FinishReason: "stop" }],
          Usage,
        },
      });
    const chunk = (content: string, reason = "") =>
      data({
        Id: "1",
        Choices: [{ Delta: { Role: "assistant", Content: content }, FinishReason: reason }],
        Usage,
      });
    return events([chunk("Hello"), chunk(" there!"), chunk("", "stop"), data("[DONE]")]);
  },
};

const cohere: Fixture = openai({
  models: { chat: "command-a", any: "rerank-v3.5" },
  answer(request, scene) {
    if (scene.kind === "error") return json({ message: `provider says ${scene.status}` }, scene.status);
    const path = pathOf(request);
    if (path === "/v1/rerank") return rerankAnswer();
    if (path !== "/v2/chat") return json({ message: "no such path" }, 404);
    const usage = { billed_units: { input_tokens: USAGE.prompt, output_tokens: USAGE.completion } };
    const call = {
      id: "call_1",
      type: "function",
      function: { name: TOOL.name, arguments: JSON.stringify(TOOL.input) },
    };
    const isTool = scene.kind === "tool";
    const reason = isTool ? "TOOL_CALL" : "COMPLETE";
    if (request.json()["stream"] !== true) {
      const message = isTool
        ? { role: "assistant", tool_calls: [call] }
        : { role: "assistant", content: [{ type: "text", text: TEXT }] };
      return json({ id: "c1", finish_reason: reason, message, usage });
    }
    const text = (value: string) =>
      named("content-delta", {
        type: "content-delta",
        index: 0,
        delta: { message: { content: { text: value } } },
      });
    const pieces = isTool
      ? [
          named("tool-call-start", {
            type: "tool-call-start",
            index: 0,
            delta: { message: { tool_calls: { ...call, function: { name: TOOL.name, arguments: "" } } } },
          }),
          named("tool-call-delta", {
            type: "tool-call-delta",
            index: 0,
            delta: { message: { tool_calls: { function: { arguments: call.function.arguments } } } },
          }),
          named("tool-call-end", { type: "tool-call-end", index: 0 }),
        ]
      : [text("Hello"), text(" there!")];
    return events([
      named("message-start", { type: "message-start", id: "c1", delta: { message: { role: "assistant" } } }),
      ...pieces,
      named("message-end", { type: "message-end", delta: { finish_reason: reason, usage } }),
    ]);
  },
});

const dify: Fixture = openai({
  models: { chat: "dify" },
  hasTools: false,
  answer(request, scene) {
    if (scene.kind === "error")
      return json(
        { code: "some_code", message: `provider says ${scene.status}`, status: scene.status },
        scene.status,
      );
    if (pathOf(request) !== "/v1/chat-messages") return json({ message: "no such path" }, 404);
    const body = request.json();
    if (body["query"] !== "USER: \nhi\n") return json({ code: "query", message: "unexpected query" }, 400);
    const metadata = {
      usage: { prompt_tokens: USAGE.prompt, completion_tokens: USAGE.completion, total_tokens: 12 },
    };
    if (body["response_mode"] === "blocking")
      return json({ event: "message", message_id: "m", answer: TEXT, metadata });
    return events([
      data({ event: "workflow_started", data: {} }),
      data({ event: "message", answer: "Hello" }),
      data({ event: "agent_message", answer: " there!" }),
      data({ event: "message_end", metadata }),
    ]);
  },
});

const coze: Fixture = openai({
  other: "bot-7",
  models: { chat: "moonshot-v1-8k" },
  hasTools: false,
  answer(request, scene) {
    if (scene.kind === "error") {
      const code = scene.status === 401 ? 4100 : scene.status === 429 ? 4013 : 5000;
      return json({ code, msg: `provider says ${scene.status}` });
    }
    const usage = { token_count: 12, output_count: USAGE.completion, input_count: USAGE.prompt };
    const chat = { id: "chat-1", conversation_id: "conv-1", status: "completed", usage };
    const path = pathOf(request);
    if (path === "/v3/chat/message/list")
      return json({
        code: 0,
        data: [
          { type: "verbose", content: "{}" },
          { type: "answer", content: TEXT },
        ],
      });
    if (path !== "/v3/chat" || request.json()["bot_id"] !== "bot-7")
      return json({ code: 4000, msg: "bad request" });
    // Done at once: the suite does not wait for the provider's pace.
    if (request.json()["stream"] !== true) return json({ code: 0, msg: "", data: chat });
    return events([
      named("conversation.chat.created", { ...chat, status: "created" }),
      named("conversation.message.delta", { type: "answer", content: "Hello" }),
      named("conversation.message.delta", { type: "answer", content: " there!" }),
      named("conversation.chat.completed", chat),
      named("done", "[DONE]"),
    ]);
  },
  errorsWith200: true,
});

const aiproxyLibrary: Fixture = openai({
  other: "library-1",
  models: { chat: "library" },
  hasTools: false,
  reportsUsage: false,
  answer(request, scene) {
    if (scene.kind === "error") return openaiError(scene);
    const body = request.json();
    if (body["libraryId"] !== "library-1" || body["query"] !== "hi")
      return json({ success: false, errCode: 1, message: "bad" });
    if (body["stream"] !== true) return json({ success: true, answer: TEXT, documents: [] });
    return events([
      data({ content: "Hello", finish: false }),
      data({ content: " there!", finish: true, documents: [] }),
    ]);
  },
});

function sparkSocket(scene: () => Scene): { url: string; stop: () => void; seen: string[] } {
  const seen: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request, self) {
      const url = new URL(request.url);
      const date = url.searchParams.get("date") ?? "";
      const base = `host: ${url.searchParams.get("host")}\ndate: ${date}\nGET ${url.pathname} HTTP/1.1`;
      const signature = createHmac("sha256", "api-secret").update(base).digest("base64");
      const authorization = Buffer.from(url.searchParams.get("authorization") ?? "", "base64").toString();
      const isGood =
        authorization.includes(`signature="${signature}"`) && authorization.includes('api_key="api-key"');
      seen.push(`${url.pathname} ${isGood ? "signed" : "unsigned"}`);
      if (!isGood) return new Response("unauthorised", { status: 401 });
      return self.upgrade(request) ? undefined : new Response("no socket", { status: 400 });
    },
    websocket: {
      message(socket, message) {
        const body = JSON.parse(String(message)) as {
          header: { app_id: string };
          parameter: { chat: { domain: string } };
        };
        seen.push(`${body.header.app_id} ${body.parameter.chat.domain}`);
        const { kind, status } = scene();
        const header = { code: 0, message: "Success", sid: "sid-1", status: 1 };
        if (kind === "error") {
          const code = status === 429 ? 11_202 : 10_163;
          socket.send(
            JSON.stringify({ header: { ...header, code, message: `provider says ${status}`, status: 2 } }),
          );
          return;
        }
        const frame = (content: string, last: boolean) =>
          JSON.stringify({
            header: { ...header, status: last ? 2 : 1 },
            payload: {
              choices: { status: last ? 2 : 1, text: [{ content, role: "assistant", index: 0 }] },
              ...(last
                ? {
                    usage: {
                      text: {
                        prompt_tokens: USAGE.prompt,
                        completion_tokens: USAGE.completion,
                        total_tokens: 12,
                      },
                    },
                  }
                : {}),
            },
          });
        socket.send(frame("Hello", false));
        socket.send(frame(" there!", true));
      },
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true), seen };
}

const xunfei: Fixture = openai({
  key: "app-id|api-secret|api-key",
  models: { chat: "SparkDesk-v3.5" },
  isAuthorised: () => true,
  hasTools: false,
  socket: sparkSocket,
});

// --- clouds ------------------------------------------------------------------------------------------------------------

const AWS_KEY = "AKIDEXAMPLE|aws-secret|us-east-1";

/** The signature recomputed from what arrived, by the steps of AWS's documentation. */
function isAwsSigned(request: RecordedRequest): boolean {
  const header = request.headers["authorization"] ?? "";
  const [, scope = "", names = "", signature = ""] =
    /Credential=AKIDEXAMPLE\/(\S+), SignedHeaders=(\S+), Signature=(\w+)/.exec(header) ?? [];
  const hash = (text: string | Buffer) => createHash("sha256").update(text).digest("hex");
  const sign = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const path = pathOf(request).split("/").map(encodeURIComponent).join("/");
  const headers = names.split(";").map((name) => `${name}:${String(request.headers[name])}\n`);
  const canonical = `POST\n${path}\n\n${headers.join("")}\n${names}\n${hash(request.body)}`;
  const text = `AWS4-HMAC-SHA256\n${String(request.headers["x-amz-date"])}\n${scope}\n${hash(canonical)}`;
  const [day = "", region = "", service = ""] = scope.split("/");
  const key = sign(sign(sign(sign("AWS4aws-secret", day), region), service), "aws4_request");
  return createHmac("sha256", key).update(text).digest("hex") === signature;
}

function awsStream(list: readonly [type: string, payload: unknown][]): Script {
  const frames = list.map(([type, payload]) =>
    encodeAwsEvent(
      { ":event-type": type, ":content-type": "application/json", ":message-type": "event" },
      new TextEncoder().encode(JSON.stringify(payload)),
    ),
  );
  // Cut where no frame ends.
  const all = Buffer.concat(frames);
  const middle = Math.floor(all.length / 2) + 3;
  return {
    status: 200,
    headers: { "content-type": "application/vnd.amazon.eventstream" },
    steps: [all.subarray(0, middle), all.subarray(middle)],
  };
}

const bedrock: Fixture = {
  key: AWS_KEY,
  models: { messages: "claude-sonnet-4-20250514", chat: "amazon.nova-pro-v1:0" },
  isAuthorised: isAwsSigned,
  hasTools: true,
  reportsUsage: true,
  answer(request, scene) {
    if (scene.kind === "error") return json({ message: `provider says ${scene.status}` }, scene.status);
    const path = decodeURIComponent(pathOf(request));
    const isTool = scene.kind === "tool";
    if (path.startsWith("/model/us.anthropic.claude-sonnet-4-20250514-v1:0/")) {
      if (request.json()["anthropic_version"] !== "bedrock-2023-05-31" || "model" in request.json())
        return json({ message: "bad body" }, 400);
      if (path.endsWith("/invoke")) return messagesAnswer(false, scene);
      const content = isTool
        ? [{ type: "tool_use", id: "toolu_1", name: TOOL.name, input: TOOL.input }]
        : [{ type: "text", text: TEXT }];
      const list = messageEvents({ content, stop_reason: isTool ? "tool_use" : "end_turn" });
      return awsStream(
        list.map((event) => ["chunk", { bytes: Buffer.from(JSON.stringify(event)).toString("base64") }]),
      );
    }
    if (!path.startsWith("/model/amazon.nova-pro-v1:0/"))
      return json({ message: `no such model: ${path}` }, 404);
    const usage = { inputTokens: USAGE.prompt, outputTokens: USAGE.completion, totalTokens: 12 };
    const stopReason = isTool ? "tool_use" : "end_turn";
    if (path.endsWith("/converse")) {
      const block = isTool
        ? { toolUse: { toolUseId: "t1", name: TOOL.name, input: TOOL.input } }
        : { text: TEXT };
      return json({ output: { message: { role: "assistant", content: [block] } }, stopReason, usage });
    }
    const blocks: [string, unknown][] = isTool
      ? [
          [
            "contentBlockStart",
            { contentBlockIndex: 0, start: { toolUse: { toolUseId: "t1", name: TOOL.name } } },
          ],
          [
            "contentBlockDelta",
            { contentBlockIndex: 0, delta: { toolUse: { input: JSON.stringify(TOOL.input) } } },
          ],
        ]
      : [
          ["contentBlockDelta", { contentBlockIndex: 0, delta: { text: "Hello" } }],
          ["contentBlockDelta", { contentBlockIndex: 0, delta: { text: " there!" } }],
        ];
    return awsStream([
      ["messageStart", { role: "assistant" }],
      ...blocks,
      ["contentBlockStop", { contentBlockIndex: 0 }],
      ["messageStop", { stopReason }],
      ["metadata", { usage }],
    ]);
  },
};

const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
const account = (url: string): string =>
  JSON.stringify({
    type: "service_account",
    project_id: "the-project",
    client_email: "robot@the-project.example",
    private_key: pair.privateKey.export({ type: "pkcs8", format: "pem" }),
    token_uri: `${url}/token`,
  });

function isGoogleAssertion(request: RecordedRequest): boolean {
  const assertion = new URLSearchParams(request.body.toString()).get("assertion") ?? "";
  const [head = "", claims = "", signature = ""] = assertion.split(".");
  const payload = JSON.parse(Buffer.from(claims, "base64url").toString()) as { iss: string };
  const isSigned = createVerify("RSA-SHA256")
    .update(`${head}.${claims}`)
    .verify(pair.publicKey, signature, "base64url");
  return isSigned && payload.iss === "robot@the-project.example";
}

/** `{url}` in the key is the fake's address. */
const vertex: Fixture = {
  key: account("{url}"),
  other: JSON.stringify({ default: "europe-west1", "gemini-2.5-flash": "us-central1" }),
  models: { messages: "claude-sonnet-4-20250514", gemini: "gemini-2.5-flash", chat: "meta/llama-4" },
  isAuthorised: (request) =>
    pathOf(request) === "/token"
      ? isGoogleAssertion(request)
      : request.headers["authorization"] === "Bearer google-token",
  hasTools: true,
  reportsUsage: true,
  answer(request, scene) {
    const path = pathOf(request);
    if (path === "/token") return json({ access_token: "google-token", expires_in: 3600 });
    if (scene.kind === "error")
      return json(
        [{ error: { code: scene.status, message: `provider says ${scene.status}`, status: "X" } }],
        scene.status,
      );
    const claude =
      "/v1/projects/the-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4@20250514";
    const gemini = "/v1/projects/the-project/locations/us-central1/publishers/google/models/gemini-2.5-flash";
    if (path === `${claude}:rawPredict`) return messagesAnswer(false, scene);
    if (path === `${claude}:streamRawPredict`) return messagesAnswer(true, scene);
    if (path.startsWith(`${gemini}:`)) return geminiAnswer(path.endsWith(":streamGenerateContent"), scene);
    if (path === "/v1beta1/projects/the-project/locations/europe-west1/endpoints/openapi/chat/completions")
      return openaiAnswer(request, scene);
    return json({ error: { code: 404, message: `no such path: ${path}`, status: "NOT_FOUND" } }, 404);
  },
};

const geminiType: Fixture = {
  key: KEY,
  models: {
    gemini: "gemini-2.5-flash",
    embeddings: "text-embedding-004",
    "image-generations": "imagen-3.0-generate-002",
  },
  isAuthorised: header("x-goog-api-key"),
  hasTools: true,
  reportsUsage: true,
  answer(request, scene) {
    if (scene.kind === "error")
      return json(
        { error: { code: scene.status, message: `provider says ${scene.status}`, status: "X" } },
        scene.status,
      );
    const path = pathOf(request);
    if (path.endsWith(":batchEmbedContents")) return json({ embeddings: [{ values: VECTOR }] });
    if (path.endsWith(":predict"))
      return json({ predictions: [{ mimeType: "image/png", bytesBase64Encoded: "aGk=" }] });
    return geminiAnswer(path.includes(":streamGenerateContent"), scene);
  },
};

const ollama = openai({
  models: { any: "llama3", embeddings: "nomic-embed-text" },
  answer: (request, scene) =>
    pathOf(request) === "/api/embed" && scene.kind !== "error"
      ? json({ model: "m", embeddings: [VECTOR], prompt_eval_count: USAGE.prompt })
      : openaiAnswer(request, scene),
});

const ali = openai({
  models: { any: "qwen-max", embeddings: "text-embedding-v3", "image-generations": "wanx-v1" },
  answer(request, scene) {
    if (scene.kind === "error") return openaiError(scene);
    const path = pathOf(request);
    if (path.endsWith("/text-embedding"))
      return json({
        output: { embeddings: [{ text_index: 0, embedding: VECTOR }] },
        usage: { total_tokens: USAGE.prompt },
      });
    if (path.endsWith("/image-synthesis"))
      return json({
        output: {
          task_id: "task-1",
          task_status: "SUCCEEDED",
          results: [{ url: "http://pictures.example/1.png" }],
        },
      });
    return openaiAnswer(request, scene);
  },
});

const cloudflare = openai({
  other: "account-1",
  models: { any: "@cf/meta/llama-3-8b-instruct" },
  answer(request, scene) {
    if (scene.kind === "error")
      return json(
        { success: false, errors: [{ code: 10_000, message: `provider says ${scene.status}` }] },
        scene.status,
      );
    const path = pathOf(request);
    if (!path.startsWith("/client/v4/accounts/account-1/ai/"))
      return json({ success: false, errors: [{ code: 1, message: "path" }] }, 404);
    if (!path.includes("/ai/run/")) return openaiAnswer(request, scene);
    const isSound = request.headers["content-type"] === "application/octet-stream";
    return json({
      success: true,
      result: isSound
        ? { text: TEXT }
        : { response: TEXT, usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } },
    });
  },
});

const PLAIN_OPENAI = [
  1, 6, 7, 9, 10, 12, 13, 17, 19, 20, 22, 25, 26, 27, 31, 35, 38, 40, 42, 43, 45, 46, 47, 48, 53,
];

export const FIXTURES: ReadonlyMap<number, Fixture> = new Map<number, Fixture>([
  ...PLAIN_OPENAI.map((type): [number, Fixture] => [type, openai()]),
  [3, openai({ isAuthorised: header("api-key") })],
  [4, ollama],
  [8, openai({ baseUrl: (url, operation) => url + FULL_PATHS[operation] })],
  [14, { ...openai({ models: { any: "claude-sonnet-4-5" } }), isAuthorised: header("x-api-key") }],
  [15, baidu],
  [16, zhipuV3],
  [17, ali],
  [18, xunfei],
  [21, aiproxyLibrary],
  [23, tencent],
  [24, geminiType],
  [33, bedrock],
  [34, cohere],
  [37, dify],
  [39, cloudflare],
  [41, vertex],
  [44, openai({ models: { any: "m3e-base" } })],
  [49, coze],
  [59, openai()],
  [60, openai()],
]);

/** A channel of type 8 names the whole address of one operation. */
const FULL_PATHS: Readonly<Record<string, string>> = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  embeddings: "/v1/embeddings",
  moderations: "/v1/moderations",
  "image-generations": "/v1/images/generations",
  "image-edits": "/v1/images/edits",
  speech: "/v1/audio/speech",
  transcriptions: "/v1/audio/transcriptions",
  translations: "/v1/audio/translations",
  rerank: "/v1/rerank",
  responses: "/v1/responses",
  realtime: "/v1/realtime",
};
