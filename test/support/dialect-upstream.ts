// Upstreams of the four dialects from recorded wire fixtures: whole, streamed, refusing, cut and broken.
// Refuses to know the gateway: the bytes are the providers' own.
import { readFileSync } from "node:fs";
import type { DialectName } from "../../src/protocol/canonical.ts";
import type { RecordedRequest, Script } from "./fake-upstream.ts";

/** Channel type, and a model that this type serves in no other dialect. */
export const UPSTREAMS: Readonly<Record<DialectName, { type: number; model: string }>> = {
  "openai-chat": { type: 43, model: "deepseek-chat" },
  "openai-responses": { type: 1, model: "gpt-5-codex" },
  anthropic: { type: 14, model: "claude-sonnet-4-5" },
  gemini: { type: 24, model: "gemini-2.5-flash" },
};

const STREAMS: Readonly<Record<DialectName, string>> = {
  "openai-chat": "tools-interleaved",
  "openai-responses": "full",
  anthropic: "thinking-tools",
  gemini: "thoughts-tools",
};

function wire(dialect: DialectName, file: string): string {
  return readFileSync(new URL(`../fixtures/wire/${dialect}/${file}`, import.meta.url), "utf8");
}

export const streamText = (dialect: DialectName): string => wire(dialect, `${STREAMS[dialect]}.sse`);
export const answerText = (dialect: DialectName): string => wire(dialect, "answer.json");

const STREAM_HEADERS = { "content-type": "text/event-stream" };

/** Each event leaves as a write of its own. */
function events(text: string): string[] {
  return text.split(/(?<=\r?\n\r?\n)/);
}

/** What the provider answers to this request: a stream when it asked for one. */
export function answerOf(dialect: DialectName): (request: RecordedRequest) => Script {
  return (request) => {
    const isStream =
      dialect === "gemini"
        ? request.url.includes(":streamGenerateContent")
        : request.json()["stream"] === true;
    if (!isStream)
      return { status: 200, headers: { "content-type": "application/json" }, steps: [answerText(dialect)] };
    return { status: 200, headers: STREAM_HEADERS, steps: events(streamText(dialect)) };
  };
}

/** The first half of the same stream: its body ends, its terminal event never came. */
export function halfOf(dialect: DialectName): Script {
  const all = events(streamText(dialect));
  return { status: 200, headers: STREAM_HEADERS, steps: all.slice(0, Math.ceil(all.length / 2)) };
}

/** A refusal in the provider's own envelope. */
export function refusalOf(dialect: DialectName, status: number): Script {
  const text = `upstream says ${status}`;
  const body =
    dialect === "anthropic"
      ? { type: "error", error: { type: "invalid_request_error", message: text } }
      : dialect === "gemini"
        ? { error: { code: status, message: text, status: "INVALID_ARGUMENT" } }
        : { error: { message: text, type: "invalid_request_error", param: null, code: "bad" } };
  return { status, headers: { "content-type": "application/json" }, steps: [JSON.stringify(body)] };
}
