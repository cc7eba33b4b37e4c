// Providers in China that speak a form of their own: Baidu, Zhipu, Tencent, iFlytek, MiniMax, DashScope, SiliconFlow.
// Refuses what their documentation refuses: unsigned requests, foreign paths.
import { createHash, createHmac } from "node:crypto";
import { data, events, json, pathOf, queryOf, TEXT, TOOL, USAGE, VECTOR } from "./fixture.ts";
import type { Fixture, Scene } from "./fixture.ts";
import { openai, openaiAnswer, openaiError } from "./openai-forms.ts";

export const baidu: Fixture = {
  key: "the-id|the-secret",
  models: { chat: "ERNIE-4.0-8K", embeddings: "Embedding-V1" },
  isAuthorised: (request) =>
    pathOf(request).endsWith("/token")
      ? queryOf(request).get("client_id") === "the-id" &&
        queryOf(request).get("client_secret") === "the-secret"
      : queryOf(request).get("access_token") === "token-1",
  hasTools: true,
  reportsUsage: true,
  errorsWith200: true,
  answer(request, scene) {
    const path = pathOf(request);
    if (path === "/oauth/2.0/token") return json({ access_token: "token-1", expires_in: 2_592_000 });
    if (scene.kind === "error") {
      const code = scene.status === 401 ? 110 : scene.status === 429 ? 18 : 336_000;
      return json({ error_code: code, error_msg: `provider says ${scene.status}` });
    }
    const usage = { prompt_tokens: USAGE.prompt, completion_tokens: USAGE.completion, total_tokens: 12 };
    if (path.endsWith("/embeddings/embedding-v1"))
      return json({ id: "as-1", object: "embedding_list", data: [{ embedding: VECTOR, index: 0 }], usage });
    if (!path.endsWith("/chat/completions_pro")) return json({ error_code: 3, error_msg: "no such path" });
    const head = { id: "as-1", object: "chat.completion", created: 1, is_truncated: false, usage };
    if (scene.kind === "tool") {
      const call = { name: TOOL.name, arguments: JSON.stringify(TOOL.input) };
      if (!Array.isArray(request.json()["functions"]))
        return json({ error_code: 336_003, error_msg: "no functions" });
      const answer = { ...head, result: "", finish_reason: "function_call", function_call: call };
      if (request.json()["stream"] !== true) return json(answer);
      return events([data({ ...answer, sentence_id: 0, is_end: true })]);
    }
    if (request.json()["stream"] !== true) return json({ ...head, result: TEXT });
    return events([
      data({ ...head, sentence_id: 0, is_end: false, result: "Hello" }),
      data({ ...head, sentence_id: 1, is_end: true, result: " there!" }),
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

export const zhipuV3: Fixture = {
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

export const tencent: Fixture = {
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
  hasTools: true,
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
    if (scene.kind === "tool") {
      const Function = { Name: TOOL.name, Arguments: JSON.stringify(TOOL.input) };
      const ToolCalls = [{ Id: "call_1", Type: "function", Index: 0, Function }];
      const spoken = { Role: "assistant", Content: "", ToolCalls };
      if (!Array.isArray(request.json()["Tools"]))
        return json({ Response: { Error: { Code: "InvalidParameter", Message: "no tools" } } });
      if (request.json()["Stream"] === true)
        return events([
          data({ Id: "1", Choices: [{ Delta: spoken, FinishReason: "tool_calls" }], Usage }),
          data("[DONE]"),
        ]);
      return json({
        Response: { Id: "1", Choices: [{ Message: spoken, FinishReason: "tool_calls" }], Usage },
      });
    }
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

/** Spark's socket: refuses unsigned handshakes, and all of them where the scene says 401. */
function sparkSocket(scene: () => Scene): ReturnType<NonNullable<Fixture["socket"]>> {
  const seen: string[] = [];
  let left = Promise.withResolvers<void>();
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
      const isRefused = scene().kind === "error" && scene().status === 401;
      if (!isGood || isRefused)
        return Response.json({ message: "HMAC signature does not match" }, { status: 401 });
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
          const code = status === 429 ? 11_202 : 10_012;
          const refused = { ...header, code, message: `provider says ${status}`, status: 2 };
          socket.send(JSON.stringify({ header: refused }));
          return;
        }
        const tokens = {
          prompt_tokens: USAGE.prompt,
          completion_tokens: USAGE.completion,
          total_tokens: USAGE.prompt + USAGE.completion,
        };
        const frame = (content: string, last: boolean) =>
          JSON.stringify({
            header: { ...header, status: last ? 2 : 1 },
            payload: {
              choices: { status: last ? 2 : 1, text: [{ content, role: "assistant", index: 0 }] },
              ...(last ? { usage: { text: tokens } } : {}),
            },
          });
        socket.send(frame("Hello", false));
        if (kind === "cut") socket.close();
        else if (kind !== "hang") socket.send(frame(" there!", true));
      },
      close: () => left.resolve(),
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    stop: () => void server.stop(true),
    seen,
    left() {
      left = Promise.withResolvers();
      return left.promise;
    },
  };
}

export const xunfei: Fixture = openai({
  key: "app-id|api-secret|api-key",
  models: { chat: "SparkDesk-v3.5" },
  isAuthorised: () => true,
  hasTools: false,
  socket: sparkSocket,
});

/** MiniMax: refusals under status 200, a last chunk that repeats the message, no [DONE]. */
export const minimax = openai({
  errorsWith200: true,
  answer(request, scene) {
    const good = { status_code: 0, status_msg: "" };
    if (scene.kind === "error") {
      const code = scene.status === 401 ? 1004 : scene.status === 429 ? 1002 : 1013;
      return json({ base_resp: { status_code: code, status_msg: `provider says ${scene.status}` } });
    }
    switch (pathOf(request)) {
      case "/v1/embeddings":
        return json({ vectors: [VECTOR], total_tokens: USAGE.prompt, base_resp: good });
      case "/v1/t2a_v2":
        return json({ data: { audio: Buffer.from("sound").toString("hex"), status: 2 }, base_resp: good });
      case "/v1/image_generation":
        return json({ id: "i", data: { image_urls: ["http://pictures.example/1.jpeg"] }, base_resp: good });
      case "/v1/text/chatcompletion_v2": {
        const script = openaiAnswer({ ...request, url: "/v1/chat/completions" }, scene);
        if (request.json()["stream"] !== true) return script;
        const whole = openaiAnswer(
          { ...request, url: "/v1/chat/completions", json: () => ({ ...request.json(), stream: false }) },
          scene,
        );
        const last = { ...(JSON.parse(whole.steps[0] as string) as object), base_resp: good };
        // Neither the usage frame nor the end that OpenAI's own streams have.
        return events([...script.steps.slice(0, -2).map(String), data(last)]);
      }
      default:
        return { status: 404, steps: ["404 page not found"] };
    }
  },
});

export const ali = openai({
  models: {
    any: "qwen-max",
    embeddings: "text-embedding-v3",
    "image-generations": "wanx-v1",
    rerank: "gte-rerank-v2",
  },
  answer(request, scene) {
    if (scene.kind === "error") return openaiError(scene);
    const path = pathOf(request);
    if (path.endsWith("/rerank/text-rerank/text-rerank"))
      return json({
        output: { results: [{ index: 0, relevance_score: 0.9 }] },
        usage: { total_tokens: USAGE.prompt },
      });
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

export const siliconflow = openai({
  answer: (request, scene) =>
    pathOf(request).endsWith("/images/generations") && scene.kind !== "error"
      ? json({ images: [{ url: "http://pictures.example/1.png" }], timings: { inference: 0.5 }, seed: 1 })
      : openaiAnswer(request, scene),
});
