// The answers of OpenAI-shaped providers, operation by operation, and of the two other native dialects.
// Refuses unknown paths with 404.
import type { RecordedRequest, Script } from "../support/fake-upstream.ts";
import { bearer, data, events, json, KEY, named, TEXT, TOOL, USAGE, VECTOR } from "./fixture.ts";
import type { Fixture, Scene } from "./fixture.ts";

const usage = {
  prompt_tokens: USAGE.prompt,
  completion_tokens: USAGE.completion,
  total_tokens: USAGE.prompt + USAGE.completion,
};
const head = { id: "chatcmpl-1", created: 1_750_000_000, model: "m" };

export const openaiError = ({ status }: Scene): Script =>
  json(
    { error: { message: `provider says ${status}`, type: "some_error", param: null, code: "some_code" } },
    status,
  );

function chatAnswer(request: RecordedRequest, scene: Scene): Script {
  const isTool = scene.kind === "tool";
  const calls = [
    {
      index: 0,
      id: "call_1",
      type: "function",
      function: { name: TOOL.name, arguments: JSON.stringify(TOOL.input) },
    },
  ];
  const reason = isTool ? "tool_calls" : "stop";
  if (request.json()["stream"] !== true) {
    const message = isTool
      ? { role: "assistant", content: null, tool_calls: calls.map(({ index: _index, ...call }) => call) }
      : { role: "assistant", content: TEXT };
    return json({
      ...head,
      object: "chat.completion",
      choices: [{ index: 0, message, finish_reason: reason }],
      usage,
    });
  }
  const chunk = (delta: object, finish: string | null = null) =>
    data({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] });
  const pieces = isTool
    ? [chunk({ tool_calls: calls })]
    : ["Hello", " there!"].map((content) => chunk({ content }));
  return events([
    chunk({ role: "assistant", content: "" }),
    ...pieces,
    chunk({}, reason),
    data({ ...head, object: "chat.completion.chunk", choices: [], usage }),
    data("[DONE]"),
  ]);
}

/** A function call in the Responses API: its arguments in one piece. */
function responsesCall(request: RecordedRequest): Script {
  const input = JSON.stringify(TOOL.input);
  const item = { id: "fc_1", type: "function_call", call_id: "call_1", name: TOOL.name, status: "completed" };
  const response = {
    id: "resp_1",
    object: "response",
    created_at: 1_750_000_000,
    status: "completed",
    model: "m",
    output: [{ ...item, arguments: input }],
    usage: { input_tokens: USAGE.prompt, output_tokens: USAGE.completion, total_tokens: 12 },
  };
  if (request.json()["stream"] !== true) return json(response);
  const at = { item_id: "fc_1", output_index: 0 };
  const list: [type: string, fields: object][] = [
    ["response.created", { response: { ...response, status: "in_progress", output: [] } }],
    ["response.output_item.added", { output_index: 0, item: { ...item, arguments: "" } }],
    ["response.function_call_arguments.delta", { ...at, delta: input }],
    ["response.function_call_arguments.done", { ...at, arguments: input }],
    ["response.output_item.done", { output_index: 0, item: { ...item, arguments: input } }],
    ["response.completed", { response }],
  ];
  return events(
    list.map(([type, fields], sequence_number) => named(type, { type, sequence_number, ...fields })),
  );
}

function responsesAnswer(request: RecordedRequest): Script {
  const item = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: TEXT, annotations: [] }],
  };
  const response = {
    id: "resp_1",
    object: "response",
    created_at: 1_750_000_000,
    status: "completed",
    model: "m",
    output: [item],
    usage: { input_tokens: USAGE.prompt, output_tokens: USAGE.completion, total_tokens: 12 },
  };
  if (request.json()["stream"] !== true) return json(response);
  return events([
    named("response.created", {
      type: "response.created",
      sequence_number: 0,
      response: { ...response, status: "in_progress", output: [] },
    }),
    named("response.output_item.added", {
      type: "response.output_item.added",
      sequence_number: 1,
      output_index: 0,
      item: { ...item, content: [] },
    }),
    named("response.content_part.added", {
      type: "response.content_part.added",
      sequence_number: 2,
      item_id: "msg_1",
      output_index: 0,
      content_index: 0,
      part: { type: "output_text", text: "", annotations: [] },
    }),
    named("response.output_text.delta", {
      type: "response.output_text.delta",
      sequence_number: 3,
      item_id: "msg_1",
      output_index: 0,
      content_index: 0,
      delta: TEXT,
    }),
    named("response.output_text.done", {
      type: "response.output_text.done",
      sequence_number: 4,
      item_id: "msg_1",
      output_index: 0,
      content_index: 0,
      text: TEXT,
    }),
    named("response.output_item.done", {
      type: "response.output_item.done",
      sequence_number: 5,
      output_index: 0,
      item,
    }),
    named("response.completed", { type: "response.completed", sequence_number: 6, response }),
  ]);
}

export function messagesAnswer(isStream: boolean, scene: Scene): Script {
  const isTool = scene.kind === "tool";
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: isTool
      ? [{ type: "tool_use", id: "toolu_1", name: TOOL.name, input: TOOL.input }]
      : [{ type: "text", text: TEXT }],
    stop_reason: isTool ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: { input_tokens: USAGE.prompt, output_tokens: USAGE.completion },
  };
  if (!isStream) return json(message);
  return events(messageEvents(message).map((event) => named(event.type, event)));
}

export function messageEvents(message: {
  content: readonly object[];
  stop_reason: string;
}): { type: string; [field: string]: unknown }[] {
  const block = message.content[0] as { type: string; id?: string; name?: string; input?: unknown };
  const isTool = block.type === "tool_use";
  const start = isTool
    ? { type: "tool_use", id: block.id, name: block.name, input: {} }
    : { type: "text", text: "" };
  const delta = isTool
    ? { type: "input_json_delta", partial_json: JSON.stringify(block.input) }
    : { type: "text_delta", text: TEXT };
  return [
    {
      type: "message_start",
      message: {
        ...message,
        content: [],
        stop_reason: null,
        usage: { input_tokens: USAGE.prompt, output_tokens: 1 },
      },
    },
    { type: "content_block_start", index: 0, content_block: start },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: message.stop_reason, stop_sequence: null },
      usage: { output_tokens: USAGE.completion },
    },
    { type: "message_stop" },
  ];
}

export function geminiAnswer(isStream: boolean, scene: Scene): Script {
  const part =
    scene.kind === "tool" ? { functionCall: { name: TOOL.name, args: TOOL.input } } : { text: TEXT };
  const candidate = (piece: object, end: object) => [
    { content: { role: "model", parts: [piece] }, ...end, index: 0 },
  ];
  const ending = { finishReason: "STOP" };
  const figures = {
    usageMetadata: {
      promptTokenCount: USAGE.prompt,
      candidatesTokenCount: USAGE.completion,
      totalTokenCount: USAGE.prompt + USAGE.completion,
    },
    modelVersion: "m",
  };
  if (!isStream) return json({ candidates: candidate(part, ending), ...figures });
  const [first, second] =
    scene.kind === "tool" ? [part, { text: "" }] : [{ text: "Hello" }, { text: " there!" }];
  return events([
    data({ candidates: candidate(first, {}), modelVersion: "m" }),
    data({ candidates: candidate(second, ending), ...figures }),
  ]);
}

const embeddingsAnswer = (request: RecordedRequest): Script => {
  const { input } = request.json();
  const list = Array.isArray(input) ? input : [input];
  return json({
    object: "list",
    model: "m",
    data: list.map((_, index) => ({ object: "embedding", index, embedding: VECTOR })),
    usage: { prompt_tokens: USAGE.prompt, total_tokens: USAGE.prompt },
  });
};

export const rerankAnswer = (): Script =>
  json({
    results: [{ index: 0, relevance_score: 0.9 }],
    usage: { total_tokens: 9 },
    meta: { billed_units: { input_tokens: 9 }, tokens: { input_tokens: 9 } },
  });

/** What an OpenAI-shaped provider answers, by the end of the path. */
export function openaiAnswer(request: RecordedRequest, scene: Scene): Script {
  if (scene.kind === "error") return openaiError(scene);
  const path = request.url.split("?")[0] ?? "";
  const ends = (...tails: string[]) => tails.some((tail) => path.endsWith(tail));
  if (ends("/images/generations", "/images/edits"))
    return json({ created: 1, data: [{ url: "http://pictures.example/1.png" }] });
  if (ends("/audio/speech"))
    return { status: 200, headers: { "content-type": "audio/mpeg" }, steps: ["sound"] };
  if (ends("/audio/transcriptions", "/audio/translations")) return json({ text: TEXT });
  if (ends("/moderations")) return json({ id: "modr-1", model: "m", results: [{ flagged: false }] });
  if (ends("/rerank")) return rerankAnswer();
  if (ends("/embeddings")) return embeddingsAnswer(request);
  if (ends("/responses")) return scene.kind === "tool" ? responsesCall(request) : responsesAnswer(request);
  if (ends("/messages")) return messagesAnswer(request.json()["stream"] === true, scene);
  if (path.includes(":generateContent") || path.includes(":streamGenerateContent"))
    return geminiAnswer(path.includes(":stream"), scene);
  if (ends("/chat/completions", "/chatcompletion_v2")) return chatAnswer(request, scene);
  if (ends("/completions")) {
    const spoken = { id: "cmpl-1", object: "text_completion", created: 1, model: "m" };
    const choices = [{ index: 0, text: TEXT, finish_reason: "stop" }];
    if (request.json()["stream"] !== true) return json({ ...spoken, choices, usage });
    return events([
      ...["Hello", " there!"].map((text) =>
        data({ ...spoken, choices: [{ index: 0, text, finish_reason: null }] }),
      ),
      data({ ...spoken, choices: [{ index: 0, text: "", finish_reason: "stop" }] }),
      data({ ...spoken, choices: [], usage }),
      data("[DONE]"),
    ]);
  }
  return json({ error: { message: `no such path: ${path}`, type: "invalid_request_error" } }, 404);
}

/** A provider of OpenAI's form, but for what `more` says. */
export function openai(more: Partial<Fixture> = {}): Fixture {
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
