// A provider in the four dialects that does what the call's own prompt says, and writes down what it gave and billed.
// Refuses to know the gateway: a call is known by the plan in its prompt, whatever dialect and path it came by.
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { DialectName } from "../../src/protocol/canonical.ts";

/** One word: one token in every vocabulary, and by the rule of four characters; clients count it in what arrived. */
export const WORD = " tip";
const MODEL = "mock";

/** What one call asks its upstream to do. */
export interface CallPlan {
  /** Names the call in the upstream's books. */
  id: string;
  /** The answer carries the call's name as x-request-id: the gateway's row then tells which call it is of, whoever was answered. */
  isNamed?: boolean;
  /** Words of the answer; a limit that the request carries is obeyed, as providers do. */
  words?: number;
  /** Input tokens that it reports. */
  input?: number;
  /** When usage is told: at the end, in every event (running, as some providers do), or never. */
  usage?: "end" | "each" | "none";
  /** Milliseconds before the first byte, and between events. */
  firstMs?: number;
  paceMs?: number;
  /** Words in one event. */
  per?: number;
  /** The socket breaks after so many words. */
  cut?: number;
  /** Answers with this status and an error. */
  status?: number;
  /** Answers 200 with an empty list, which is no answer of any dialect. */
  list?: boolean;
  /** Bytes of an answer that is one huge text. */
  bytes?: number;
  /** Goes on past any limit: what a provider bills above it. */
  deaf?: boolean;
}

/** The prompt that carries a plan: no quotes, so that it stands the same in every JSON. */
export function promptOf(plan: CallPlan): string {
  const words = Object.entries(plan).map(([name, value]) => `${name}=${String(value)}`);
  return `@plan ${words.join(" ")}@`;
}

function planIn(body: string): CallPlan {
  const words = /@plan ([^@"\\]*)@/.exec(body)?.[1] ?? "id=unplanned";
  const read = new Map(words.split(" ").map((word) => word.split("=", 2) as [string, string]));
  const number = (name: string, fallback: number) => Number(read.get(name) ?? fallback);
  return {
    id: read.get("id") ?? "unplanned",
    words: number("words", 5),
    input: number("input", 10),
    usage: (read.get("usage") ?? "end") as "end" | "each" | "none",
    firstMs: number("firstMs", 0),
    paceMs: number("paceMs", 0),
    per: number("per", 10),
    cut: number("cut", Number.POSITIVE_INFINITY),
    status: number("status", 200),
    bytes: number("bytes", 0),
    list: read.get("list") === "true",
    isNamed: read.get("isNamed") === "true",
    deaf: read.get("deaf") === "true",
  };
}

/** What the upstream knows of one request. */
interface Billed {
  id: string;
  path: string;
  body: string;
  headers: IncomingMessage["headers"];
  isStream: boolean;
  /** The limit of the answer that the request carried. */
  limit: number | undefined;
  /** Words that it has handed to the socket. */
  given: number;
  /** The final usage that it sent; a provider bills this even when nobody reads it. */
  reported: { input: number; output: number } | undefined;
  /** When it sent that, by this process's steady clock; Infinity: it has not. */
  reportedAtMs: number;
  /** The answer went out to its end. */
  isWhole: boolean;
  /** The gateway hung up. */
  isLeft: boolean;
  /** Its answer has ended, whatever it was. */
  isClosed: boolean;
}

export interface MockUpstream {
  url: string;
  /** Every request in order of arrival. */
  calls: Billed[];
  of(id: string): Billed[];
  stop(): void;
}

type Json = Record<string, unknown>;

const event = (value: Json, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(value)}\n\n`;

interface Format {
  begin(input: number): string;
  text(text: string, at: { input: number; output: number } | undefined): string;
  end(reason: "stop" | "length", usage: { input: number; output: number } | undefined): string;
  whole(text: string, reason: "stop" | "length", usage: { input: number; output: number } | undefined): Json;
}

const chatUsage = ({ input, output }: { input: number; output: number }): Json => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});
const responsesUsage = ({ input, output }: { input: number; output: number }): Json => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: input + output,
});
const geminiUsage = ({ input, output }: { input: number; output: number }): Json => ({
  promptTokenCount: input,
  candidatesTokenCount: output,
  totalTokenCount: input + output,
});

const chatChunk = (delta: Json, finish: string | null, extra: Json = {}): string =>
  event({
    id: "chatcmpl-mock",
    object: "chat.completion.chunk",
    created: 1_750_000_000,
    model: MODEL,
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...extra,
  });

const response = (status: string, extra: Json = {}): Json => ({
  id: "resp_mock",
  object: "response",
  created_at: 1_750_000_000,
  status,
  error: null,
  incomplete_details: null,
  model: MODEL,
  output: [],
  usage: null,
  ...extra,
});

const message = (text: string, status: string): Json => ({
  id: "msg_mock",
  type: "message",
  role: "assistant",
  status,
  content: [{ type: "output_text", text, annotations: [] }],
});

const FORMATS: Readonly<Record<DialectName, Format>> = {
  "openai-chat": {
    begin: () => chatChunk({ role: "assistant", content: "" }, null),
    text: (content, at) => chatChunk({ content }, null, at ? { usage: chatUsage(at) } : {}),
    end: (reason, usage) =>
      chatChunk({}, reason) +
      (usage
        ? event({
            id: "chatcmpl-mock",
            object: "chat.completion.chunk",
            choices: [],
            usage: chatUsage(usage),
          })
        : "") +
      "data: [DONE]\n\n",
    whole: (content, reason, usage) => ({
      id: "chatcmpl-mock",
      object: "chat.completion",
      created: 1_750_000_000,
      model: MODEL,
      choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: reason }],
      ...(usage ? { usage: chatUsage(usage) } : {}),
    }),
  },
  "openai-responses": {
    begin: () =>
      event({ type: "response.created", response: response("in_progress") }, "response.created") +
      event(
        { type: "response.output_item.added", output_index: 0, item: message("", "in_progress") },
        "response.output_item.added",
      ),
    text: (delta) =>
      event(
        { type: "response.output_text.delta", item_id: "msg_mock", output_index: 0, content_index: 0, delta },
        "response.output_text.delta",
      ),
    end: (reason, usage) => {
      const name = reason === "stop" ? "response.completed" : "response.incomplete";
      const told = {
        ...(usage ? { usage: responsesUsage(usage) } : {}),
        ...(reason === "length" ? { incomplete_details: { reason: "max_output_tokens" } } : {}),
      };
      return event(
        { type: name, response: response(reason === "stop" ? "completed" : "incomplete", told) },
        name,
      );
    },
    whole: (text, reason, usage) =>
      response(reason === "stop" ? "completed" : "incomplete", {
        output: [message(text, "completed")],
        ...(usage ? { usage: responsesUsage(usage) } : {}),
      }),
  },
  anthropic: {
    begin: (input) =>
      event(
        {
          type: "message_start",
          message: {
            id: "msg_mock",
            type: "message",
            role: "assistant",
            model: MODEL,
            content: [],
            stop_reason: null,
            usage: { input_tokens: input, output_tokens: 1 },
          },
        },
        "message_start",
      ) +
      event(
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        "content_block_start",
      ),
    text: (text) =>
      event(
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
        "content_block_delta",
      ),
    end: (reason, usage) =>
      event({ type: "content_block_stop", index: 0 }, "content_block_stop") +
      event(
        {
          type: "message_delta",
          delta: { stop_reason: reason === "stop" ? "end_turn" : "max_tokens", stop_sequence: null },
          ...(usage ? { usage: { output_tokens: usage.output } } : {}),
        },
        "message_delta",
      ) +
      event({ type: "message_stop" }, "message_stop"),
    whole: (text, reason, usage) => ({
      id: "msg_mock",
      type: "message",
      role: "assistant",
      model: MODEL,
      content: [{ type: "text", text }],
      stop_reason: reason === "stop" ? "end_turn" : "max_tokens",
      stop_sequence: null,
      ...(usage ? { usage: { input_tokens: usage.input, output_tokens: usage.output } } : {}),
    }),
  },
  gemini: {
    begin: () => "",
    text: (text, at) =>
      event({
        candidates: [{ content: { parts: [{ text }], role: "model" }, index: 0 }],
        ...(at ? { usageMetadata: geminiUsage(at) } : {}),
      }),
    end: (reason, usage) =>
      event({
        candidates: [
          {
            content: { parts: [{ text: "" }], role: "model" },
            finishReason: reason === "stop" ? "STOP" : "MAX_TOKENS",
            index: 0,
          },
        ],
        ...(usage ? { usageMetadata: geminiUsage(usage) } : {}),
      }),
    whole: (text, reason, usage) => ({
      candidates: [
        {
          content: { parts: [{ text }], role: "model" },
          finishReason: reason === "stop" ? "STOP" : "MAX_TOKENS",
          index: 0,
        },
      ],
      ...(usage ? { usageMetadata: geminiUsage(usage) } : {}),
    }),
  },
};

function dialectOf(path: string): DialectName {
  if (path.includes("enerateContent")) return "gemini";
  if (path.endsWith("/messages")) return "anthropic";
  return path.endsWith("/responses") ? "openai-responses" : "openai-chat";
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Writes; false when the other side is gone. Waits while the socket is full. */
async function write(answer: ServerResponse, text: string): Promise<boolean> {
  if (answer.closed || answer.destroyed) return false;
  if (!answer.write(text)) {
    await Promise.race([
      new Promise<void>((resolve) => answer.once("drain", () => resolve())),
      new Promise<void>((resolve) => answer.once("close", () => resolve())),
    ]);
  }
  return !answer.closed && !answer.destroyed;
}

async function play(plan: Required<CallPlan>, format: Format, call: Billed, answer: ServerResponse) {
  if (plan.firstMs > 0) await pause(plan.firstMs);
  if (answer.closed) return;
  if (plan.status !== 200) {
    answer.writeHead(plan.status, { "content-type": "application/json" });
    answer.end(JSON.stringify({ error: { message: `mock says ${plan.status}`, type: "mock_error" } }));
    return;
  }
  if (plan.list) {
    answer.writeHead(200, { "content-type": "application/json" });
    answer.end("[]");
    return;
  }
  const words = plan.deaf ? plan.words : Math.min(plan.words, call.limit ?? plan.words);
  const reason = words < plan.words ? "length" : "stop";
  const usage = plan.usage === "none" ? undefined : { input: plan.input, output: words };
  const name = plan.isNamed ? { "x-request-id": plan.id } : {};
  if (!call.isStream) {
    answer.writeHead(200, { "content-type": "application/json", ...name });
    if (plan.bytes > 0) {
      const text = JSON.stringify(format.whole("@@", reason, usage));
      const [before = "", after = ""] = text.split("@@");
      await write(answer, before);
      const part = "x".repeat(65_536);
      for (let left = plan.bytes; left > 0; left -= part.length) if (!(await write(answer, part))) return;
      answer.end(after);
    } else answer.end(JSON.stringify(format.whole(WORD.repeat(words), reason, usage)));
    call.given = words;
    call.reported = usage;
    call.reportedAtMs = performance.now();
    call.isWhole = true;
    return;
  }
  answer.writeHead(200, { "content-type": "text/event-stream", ...name });
  answer.flushHeaders();
  if (!(await write(answer, format.begin(plan.input)))) return;
  while (call.given < words) {
    const next = Math.min(plan.per, words - call.given, plan.cut - call.given);
    const running = plan.usage === "each" ? { input: plan.input, output: call.given + next } : undefined;
    if (!(await write(answer, format.text(WORD.repeat(next), running)))) return;
    call.given += next;
    if (call.given >= plan.cut) {
      // What stands in the socket is read first: a reset throws it away.
      await pause(300);
      answer.destroy();
      return;
    }
    await (plan.paceMs > 0 ? pause(plan.paceMs) : new Promise((resolve) => setImmediate(resolve)));
  }
  if (!(await write(answer, format.end(reason, usage)))) return;
  call.reported = usage;
  call.reportedAtMs = performance.now();
  call.isWhole = true;
  answer.end();
}

function limitIn(body: Json): number | undefined {
  const config = body["generationConfig"] as Json | undefined;
  const found = [
    body["max_tokens"],
    body["max_completion_tokens"],
    body["max_output_tokens"],
    config?.["maxOutputTokens"],
  ].find((value) => typeof value === "number");
  return found as number | undefined;
}

/** Starts the provider on a free port of loopback. */
export async function startMockUpstream(): Promise<MockUpstream> {
  const calls: Billed[] = [];
  const server = createServer((request, answer) => {
    const parts: Buffer[] = [];
    request.on("error", () => {});
    answer.on("error", () => {});
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts).toString();
      const path = (request.url ?? "").split("?")[0] ?? "";
      let json: Json = {};
      try {
        json = JSON.parse(body) as Json;
      } catch {
        // A form, or nothing: its plan is the default.
      }
      const plan = planIn(body) as Required<CallPlan>;
      const call: Billed = {
        id: plan.id,
        path,
        body,
        headers: request.headers,
        isStream: path.includes(":streamGenerateContent") || json["stream"] === true,
        limit: limitIn(json),
        given: 0,
        reported: undefined,
        reportedAtMs: Number.POSITIVE_INFINITY,
        isWhole: false,
        isLeft: false,
        isClosed: false,
      };
      calls.push(call);
      answer.once("close", () => {
        call.isClosed = true;
        call.isLeft = !call.isWhole;
      });
      play(plan, FORMATS[dialectOf(path)], call, answer).catch(() => answer.destroy());
    });
  });
  server.keepAliveTimeout = 0;
  server.headersTimeout = 0;
  server.requestTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    of: (id) => calls.filter((call) => call.id === id),
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
