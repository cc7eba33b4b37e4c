// Writes canonical events as a chat completions stream: role chunk, deltas, finish, usage, [DONE].
// Refuses a clean end after a failure: an error object is the last thing the client sees.
import type { Usage } from "../../shared/usage.ts";
import { citationFor } from "../citations.ts";
import type { AnswerContext, StreamEncoder } from "../dialect.ts";
import type { BlockKind, CanonicalEvent, FinishEvent, NoteEvent } from "../events.ts";
import { asObject, dataUrl } from "../json.ts";
import { packSignature } from "../signatures.ts";
import { errorObject } from "./failure.ts";
import { encodeUsage } from "./usage.ts";
import { finishToWire } from "./wire.ts";

interface OpenBlock {
  kind: BlockKind;
  choice: number;
  /** Some arguments were sent. */
  filled: boolean;
  /** Position among the calls of its answer. */
  toolIndex: number;
  custom: boolean;
  callId: string | undefined;
}

export function encodeStream(context: AnswerContext): StreamEncoder {
  const toolCounts = new Map<number, number>();
  let head: Record<string, unknown> = {};
  /** The frame up to its fields, written once: the head is the same in every chunk. */
  let lead = "data: {";
  let block: OpenBlock = {
    kind: "text",
    choice: 0,
    toolIndex: 0,
    filled: false,
    custom: false,
    callId: undefined,
  };
  let usage: Usage | null = null;
  const greeted = new Set<number>();

  const frame = (fields: object): string => `${lead}${JSON.stringify(fields).slice(1)}\n\n`;
  const chunk = (choice: number, delta: object, finish: string | null = null, more: object = {}): string =>
    greet(choice) +
    frame({ choices: [{ index: choice, delta, logprobs: null, finish_reason: finish, ...more }] });
  /** The role chunk that every answer begins with. */
  const greet = (choice: number): string => {
    if (greeted.has(choice)) return "";
    greeted.add(choice);
    const delta = { role: "assistant", content: "" };
    return frame({ choices: [{ index: choice, delta, logprobs: null, finish_reason: null }] });
  };

  const open = (event: Extract<CanonicalEvent, { type: "open" }>): string => {
    const choice = event.choice ?? 0;
    const count = toolCounts.get(choice) ?? 0;
    block = {
      kind: event.kind,
      choice,
      toolIndex: count,
      filled: false,
      custom: event.custom === true,
      callId: event.callId,
    };
    if (event.kind !== "tool-call") return greet(choice);
    toolCounts.set(choice, count + 1);
    const { callId: id, name } = event;
    const call = block.custom
      ? { index: count, id, type: "custom", custom: { name, input: "" } }
      : { index: count, id, type: "function", function: { name, arguments: "" } };
    return chunk(choice, { tool_calls: [call] });
  };

  const text = (delta: string): string => {
    const field =
      block.kind === "thinking" ? "reasoning_content" : block.kind === "refusal" ? "refusal" : "content";
    return (
      greet(block.choice) +
      `${lead}"choices":[{"index":${block.choice},"delta":{"${field}":${JSON.stringify(delta)}},` +
      `"logprobs":null,"finish_reason":null}]}\n\n`
    );
  };

  const json = (delta: string): string => {
    if (block.kind !== "tool-call") return "";
    block.filled = true;
    const index = block.toolIndex;
    const call = block.custom
      ? { index, custom: { input: delta } }
      : { index, function: { arguments: delta } };
    return chunk(block.choice, { tool_calls: [call] });
  };

  const note = (event: NoteEvent): string => {
    const { choice } = block;
    switch (event.note) {
      case "signature": {
        const value = String(event.value);
        if (block.kind === "tool-call") {
          const signed = packSignature({ dialect: event.dialect, value }, "openai-chat");
          // Clients that check chunks against a schema want the function's object in every delta of a call.
          const piece = block.custom ? { custom: { input: "" } } : { function: { arguments: "" } };
          const proof = { extra_content: { google: { thought_signature: signed } } };
          const call = { index: block.toolIndex, ...piece, ...proof };
          return chunk(choice, { tool_calls: [call] });
        }
        if (block.kind !== "thinking") return "";
        const signature = packSignature({ dialect: event.dialect, value }, "openai-chat");
        return chunk(choice, { reasoning_details: [{ type: "reasoning.text", signature, index: 0 }] });
      }
      case "redacted": {
        const data = packSignature({ dialect: event.dialect, value: String(event.value) }, "openai-chat");
        return chunk(choice, { reasoning_details: [{ type: "reasoning.encrypted", data, index: 0 }] });
      }
      case "citation": {
        const value = citationFor("openai-chat", event);
        return value === undefined ? "" : chunk(choice, { annotations: [value] });
      }
      case "logprobs": {
        if (event.dialect === "openai-chat") return chunk(choice, {}, null, { logprobs: event.value });
        if (event.dialect !== "openai-responses") return "";
        return chunk(choice, {}, null, { logprobs: { content: event.value, refusal: null } });
      }
      case "transcript":
        return chunk(choice, { audio: { id: block.callId, transcript: event.value } });
    }
  };

  const finish = (event: FinishEvent): string => {
    let wire = chunk(0, {}, finishToWire(event.reason));
    for (const other of event.others ?? []) wire += chunk(other.choice, {}, finishToWire(other.reason));
    if (context.includeUsage !== false && usage) wire += frame({ choices: [], usage: encodeUsage(usage) });
    return `${wire}data: [DONE]\n\n`;
  };

  return {
    push(event) {
      switch (event.type) {
        case "start":
          head = {
            id: event.id ?? context.newId("chatcmpl-"),
            object: "chat.completion.chunk",
            created: event.createdAt ?? context.nowSeconds,
            model: context.model ?? event.model ?? "",
            ...asObject(event.extra),
          };
          lead = `data: ${JSON.stringify(head).slice(0, -1)},`;
          return greet(0);
        case "open":
          return open(event);
        case "text":
          return text(event.delta);
        case "json":
          return json(event.delta);
        case "bytes": {
          if (block.kind === "audio")
            return chunk(block.choice, { audio: { id: block.callId, data: event.data } });
          const url = dataUrl(event.mime ?? "image/png", event.data);
          return chunk(block.choice, { images: [{ type: "image_url", image_url: { url } }] });
        }
        case "note":
          return note(event);
        case "usage":
          usage = event.usage;
          return "";
        case "finish":
          return finish(event);
        case "fail": {
          const { failure } = event;
          const message = context.failureText?.(failure) ?? failure.text ?? failure.code;
          return `data: ${JSON.stringify({ error: errorObject(failure, message) })}\n\n`;
        }
        case "ping":
          return ": PING\n\n";
        case "close":
          // Clients parse the arguments, and nothing is no JSON.
          return block.kind === "tool-call" && !block.custom && !block.filled ? json("{}") : "";
        case "opaque":
          return "";
      }
    },
  };
}
