// One scripted reply in each dialect's own words, whole and as the frames of a stream.
import type { DialectName } from "../../src/protocol/canonical.ts";
import type { OfferedTool, Turn } from "./turns.ts";
import type { Reply } from "./upstream.ts";
import { PROOF, USAGE } from "./upstream.ts";

interface Words {
  whole: unknown;
  frames: string[];
}

interface Said {
  model: string;
  thinking: string | undefined;
  text: string | undefined;
  call: { id: string; tool: OfferedTool; args: Record<string, unknown>; input: string } | undefined;
}

type Json = Record<string, unknown>;

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const named = (value: Json): string => `event: ${String(value["type"])}\n${data(value)}`;

/** Two pieces, so that nobody gets away with reading the first frame alone. */
function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((piece) => piece !== "");
}

function chat({ model, thinking, text, call }: Said): Words {
  const calls = call && [
    {
      id: call.id,
      type: "function",
      function: { name: call.tool.name, arguments: JSON.stringify(call.args) },
    },
  ];
  const usage = {
    prompt_tokens: USAGE.input,
    completion_tokens: USAGE.output,
    total_tokens: USAGE.input + USAGE.output,
  };
  const finish = call ? "tool_calls" : "stop";
  const head = { id: "chatcmpl-1", created: 1_750_000_000, model };
  const chunk = (delta: Json, finish_reason: string | null = null) =>
    data({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] });
  const message = {
    role: "assistant",
    content: text ?? null,
    ...(thinking ? { reasoning_content: thinking } : {}),
    ...(calls ? { tool_calls: calls } : {}),
  };
  return {
    whole: {
      ...head,
      object: "chat.completion",
      choices: [{ index: 0, message, finish_reason: finish }],
      usage,
    },
    frames: [
      chunk({ role: "assistant", content: "" }),
      ...(thinking ? halves(thinking).map((piece) => chunk({ reasoning_content: piece })) : []),
      ...halves(text ?? "").map((content) => chunk({ content })),
      ...(calls ?? []).flatMap((each) => [
        chunk({ tool_calls: [{ ...each, index: 0, function: { ...each.function, arguments: "" } }] }),
        ...halves(each.function.arguments).map((piece) =>
          chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] }),
        ),
      ]),
      chunk({}, finish),
      data({ ...head, object: "chat.completion.chunk", choices: [], usage }),
      "data: [DONE]\n\n",
    ],
  };
}

function anthropic({ model, thinking, text, call }: Said): Words {
  const blocks: { block: Json; start: Json; deltas: Json[] }[] = [];
  if (thinking)
    blocks.push({
      block: { type: "thinking", thinking, signature: PROOF },
      start: { type: "thinking", thinking: "", signature: "" },
      deltas: [
        ...halves(thinking).map((piece) => ({ type: "thinking_delta", thinking: piece })),
        { type: "signature_delta", signature: PROOF },
      ],
    });
  if (text)
    blocks.push({
      block: { type: "text", text },
      start: { type: "text", text: "" },
      deltas: halves(text).map((piece) => ({ type: "text_delta", text: piece })),
    });
  if (call) {
    const block = { type: "tool_use", id: call.id, name: call.tool.name, input: call.args };
    const deltas = halves(JSON.stringify(call.args)).map((partial_json) => ({
      type: "input_json_delta",
      partial_json,
    }));
    blocks.push({ block, start: { ...block, input: {} }, deltas });
  }
  const stop_reason = call ? "tool_use" : "end_turn";
  const usage = { input_tokens: USAGE.input, output_tokens: USAGE.output };
  const message = { id: "msg_1", type: "message", role: "assistant", model, stop_sequence: null };
  return {
    whole: { ...message, content: blocks.map(({ block }) => block), stop_reason, usage },
    frames: [
      named({
        type: "message_start",
        message: { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
      }),
      ...blocks.flatMap(({ start, deltas }, index) => [
        named({ type: "content_block_start", index, content_block: start }),
        ...deltas.map((delta) => named({ type: "content_block_delta", index, delta })),
        named({ type: "content_block_stop", index }),
      ]),
      named({
        type: "message_delta",
        delta: { stop_reason, stop_sequence: null },
        usage: { output_tokens: USAGE.output },
      }),
      named({ type: "message_stop" }),
    ],
  };
}

function gemini({ model, thinking, text, call }: Said): Words {
  const pieces: Json[] = [
    ...(thinking ? [{ text: thinking, thought: true }] : []),
    ...halves(text ?? "").map((piece) => ({ text: piece })),
    ...(call
      ? [
          {
            functionCall: { name: call.tool.name, args: call.args },
            ...(thinking ? { thoughtSignature: PROOF } : {}),
          },
        ]
      : []),
  ];
  const usageMetadata = {
    promptTokenCount: USAGE.input,
    candidatesTokenCount: USAGE.output,
    totalTokenCount: USAGE.input + USAGE.output,
  };
  const told = (parts: Json[], more: Json = {}) => ({
    candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
    usageMetadata,
    modelVersion: model,
    responseId: "gemini-1",
  });
  const crlf = (value: unknown) => `data: ${JSON.stringify(value)}\r\n\r\n`;
  return {
    whole: told(pieces, { finishReason: "STOP" }),
    frames: [
      ...pieces.map((part) => crlf(told([part]))),
      crlf(told([{ text: "" }], { finishReason: "STOP" })),
    ],
  };
}

/** Items of the output, each with the frames between its added and its done. */
function responsesItems({ thinking, text, call }: Said): { item: Json; empty: Json; deltas: Json[] }[] {
  const items: { item: Json; empty: Json; deltas: Json[] }[] = [];
  if (thinking) {
    const part = { type: "summary_text", text: thinking };
    const item = { id: "rs_1", type: "reasoning", summary: [part], encrypted_content: PROOF };
    const at = { item_id: "rs_1", summary_index: 0 };
    items.push({
      item,
      empty: { id: "rs_1", type: "reasoning", summary: [] },
      deltas: [
        { type: "response.reasoning_summary_part.added", ...at, part: { ...part, text: "" } },
        { type: "response.reasoning_summary_text.delta", ...at, delta: thinking },
        { type: "response.reasoning_summary_text.done", ...at, text: thinking },
        { type: "response.reasoning_summary_part.done", ...at, part },
      ],
    });
  }
  if (text) {
    const part = { type: "output_text", text, annotations: [], logprobs: [] };
    const empty = { id: "msg_1", type: "message", role: "assistant", status: "in_progress", content: [] };
    const at = { item_id: "msg_1", content_index: 0 };
    items.push({
      item: { ...empty, status: "completed", content: [part] },
      empty,
      deltas: [
        { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
        ...halves(text).map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
        { type: "response.output_text.done", ...at, text, logprobs: [] },
        { type: "response.content_part.done", ...at, part },
      ],
    });
  }
  if (call) {
    const { isFree, name, namespace } = call.tool;
    const said = isFree ? call.input : JSON.stringify(call.args);
    const member = isFree ? "input" : "arguments";
    const event = isFree ? "response.custom_tool_call_input" : "response.function_call_arguments";
    const item = {
      id: isFree ? "ctc_1" : "fc_1",
      type: isFree ? "custom_tool_call" : "function_call",
      call_id: call.id,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      status: "completed",
      [member]: said,
    };
    items.push({
      item,
      empty: { ...item, status: "in_progress", [member]: "" },
      deltas: [
        ...halves(said).map((delta) => ({ type: `${event}.delta`, item_id: item.id, delta })),
        { type: `${event}.done`, item_id: item.id, [member]: said },
      ],
    });
  }
  return items;
}

function responses(said: Said): Words {
  const items = responsesItems(said);
  const usage = {
    input_tokens: USAGE.input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: USAGE.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: USAGE.input + USAGE.output,
  };
  const head = {
    id: "resp_1",
    object: "response",
    created_at: 1_750_000_000,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model: said.model,
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    truncation: "disabled",
    metadata: {},
  };
  const open = { ...head, status: "in_progress", output: [], usage: null };
  const whole = { ...head, status: "completed", output: items.map(({ item }) => item), usage };
  const events: Json[] = [
    { type: "response.created", response: open },
    { type: "response.in_progress", response: open },
    ...items.flatMap(({ item, empty, deltas }, output_index) => [
      { type: "response.output_item.added", output_index, item: empty },
      ...deltas.map((delta) => ({ ...delta, output_index })),
      { type: "response.output_item.done", output_index, item },
    ]),
    { type: "response.completed", response: whole },
  ];
  return { whole, frames: events.map((event, sequence_number) => named({ ...event, sequence_number })) };
}

const SPEAKERS: Readonly<Record<DialectName, (said: Said) => Words>> = {
  "openai-chat": chat,
  "openai-responses": responses,
  anthropic,
  gemini,
};

/** The reply in the dialect's words; a call takes the first offered tool that matches. */
export function speak(dialect: DialectName, turn: Turn, reply: Reply): Words {
  const { call } = reply;
  const tool = call && turn.tools.find(({ name }) => call.tool.test(name));
  return SPEAKERS[dialect]({
    model: turn.model,
    thinking: reply.thinking,
    text: reply.text,
    call: call &&
      tool && {
        id: `call_${turn.results + 1}`,
        tool,
        args: call.args ?? { input: call.input ?? "" },
        input: call.input ?? JSON.stringify(call.args),
      },
  });
}
