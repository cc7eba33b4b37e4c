// The other providers with a form of their own: Cohere, Dify, Coze, AI Proxy, Gemini, Ollama, Cloudflare, Replicate.
// Refuses foreign paths and bodies that their documentation does not know.
import type { Script } from "../support/fake-upstream.ts";
import { data, events, header, json, KEY, named, pathOf, TEXT, TOOL, USAGE, VECTOR } from "./fixture.ts";
import type { Fixture } from "./fixture.ts";
import { geminiAnswer, openai, openaiAnswer, openaiError, rerankAnswer } from "./openai-forms.ts";

function cohereLines(isStream: boolean): Script {
  const billed = { input_tokens: USAGE.prompt, output_tokens: USAGE.completion };
  const whole = {
    generation_id: "c1",
    text: TEXT,
    finish_reason: "COMPLETE",
    meta: { billed_units: billed },
  };
  if (!isStream) return json(whole);
  const line = (value: object): string => `${JSON.stringify(value)}\n`;
  return {
    status: 200,
    headers: { "content-type": "application/stream+json" },
    steps: [
      line({ is_finished: false, event_type: "stream-start", generation_id: "c1" }),
      line({ is_finished: false, event_type: "text-generation", text: "Hello" }),
      line({ is_finished: false, event_type: "text-generation", text: " there!" }),
      line({ is_finished: true, event_type: "stream-end", finish_reason: "COMPLETE", response: whole }),
    ],
  };
}

export const cohere: Fixture = openai({
  models: { chat: "command-a", embeddings: "embed-v4.0", any: "rerank-v3.5" },
  answer(request, scene) {
    if (scene.kind === "error") return json({ message: `provider says ${scene.status}` }, scene.status);
    const path = pathOf(request);
    if (path === "/v1/rerank") return rerankAnswer();
    if (path === "/v2/embed")
      return json({
        embeddings: { float: [VECTOR] },
        meta: { billed_units: { input_tokens: USAGE.prompt } },
      });
    const isStream = request.json()["stream"] === true;
    // Tools are version 2's; plain talk goes through version 1, in lines of JSON.
    if (path === "/v1/chat" && scene.kind === "text") return cohereLines(isStream);
    if (path !== "/v2/chat") return json({ message: "no such path" }, 404);
    const usage = { billed_units: { input_tokens: USAGE.prompt, output_tokens: USAGE.completion } };
    const call = {
      id: "call_1",
      type: "function",
      function: { name: TOOL.name, arguments: JSON.stringify(TOOL.input) },
    };
    const isTool = scene.kind === "tool";
    const reason = isTool ? "TOOL_CALL" : "COMPLETE";
    if (!isStream) {
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

export const dify: Fixture = openai({
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

export const coze: Fixture = openai({
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

export const aiproxyLibrary: Fixture = openai({
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

export const geminiType: Fixture = {
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
    if (path.endsWith(":embedContent")) return json({ embedding: { values: VECTOR } });
    if (path.endsWith(":batchEmbedContents")) return json({ embeddings: [{ values: VECTOR }] });
    if (path.endsWith(":predict"))
      return json({ predictions: [{ mimeType: "image/png", bytesBase64Encoded: "pictures" }] });
    return geminiAnswer(path.includes(":streamGenerateContent"), scene);
  },
};

export const ollama = openai({
  models: { any: "llama3", embeddings: "nomic-embed-text" },
  answer: (request, scene) =>
    pathOf(request) === "/api/embed" && scene.kind !== "error"
      ? json({ model: "m", embeddings: [VECTOR], prompt_eval_count: USAGE.prompt })
      : openaiAnswer(request, scene),
});

export const cloudflare = openai({
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
    if (!isSound && request.json()["stream"] === true)
      return events([
        data({ response: "Hello" }),
        data({ response: " there!" }),
        data({
          response: "",
          usage: { prompt_tokens: USAGE.prompt, completion_tokens: USAGE.completion, total_tokens: 12 },
        }),
        data("[DONE]"),
      ]);
    return json({
      success: true,
      result: isSound
        ? { text: TEXT }
        : { response: TEXT, usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } },
    });
  },
});

export const replicate = openai({
  models: { any: "black-forest-labs/flux-1.1-pro" },
  answer(request, scene) {
    if (scene.kind === "error") return json({ detail: `provider says ${scene.status}` }, scene.status);
    const isKnown = pathOf(request) === "/v1/models/black-forest-labs/flux-1.1-pro/predictions";
    if (!isKnown || request.headers["prefer"] !== "wait") return json({ detail: "not found" }, 404);
    return json({ id: "p", status: "succeeded", output: "http://pictures.example/1.webp" }, 201);
  },
});
