// One question to /pg/chat/completions and the answer as it grows, streaming or not. Fetched when the page is alive.
// Whatever goes wrong becomes a message with status "error"; stopping leaves it "incomplete".
import { ApiFailure, failureMessage, fetchChecked, isAbort, REQUEST_ID_HEADER } from "../../lib/api.ts";
import { t } from "../../lib/i18n.ts";
import { eventBatches } from "../../lib/sse.ts";
import type { Conversation, Message, Settings } from "./conversation.ts";
import { contextOf, isPicture } from "./conversation.ts";
import { keepRawEvent } from "./raw-events.ts";
import type { ChatBody } from "./request.ts";
import { quoteHeader } from "./quotes.ts";
import { bodyOf } from "./request.ts";

export { findLogged } from "./log-row.ts";

interface WireError {
  message?: unknown;
  code?: unknown;
}

interface WirePart {
  content?: unknown;
  refusal?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  images?: unknown;
}

interface WireAnswer {
  choices?: {
    delta?: WirePart;
    message?: WirePart;
    finish_reason?: unknown;
  }[];
  usage?: { prompt_tokens?: unknown; completion_tokens?: unknown } | null;
  error?: WireError | string | null;
}

type Reply = Pick<
  Message,
  | "content"
  | "images"
  | "thinking"
  | "status"
  | "firstTokenMs"
  | "totalMs"
  | "promptTokens"
  | "completionTokens"
  | "error"
  | "errorCode"
  | "requestId"
>;

const END_MARK = "[DONE]";
const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Addresses of the pictures of an answer, as chat completions tell them. */
function picturesOf({ images }: WirePart): string[] {
  if (!Array.isArray(images)) return [];
  return images.flatMap((each: { image_url?: { url?: unknown } } | null) => text(each?.image_url?.url) || []);
}

/** Of another server: as Markdown has it, drawn as a link. */
const markdownOf = (url: string): string =>
  /^https?:\/\/[^\s()<>]+$/.test(url) ? `\n\n![](${url})\n\n` : "";

class Growing {
  readonly reply: Reply = { content: "", status: "loading" };
  #isFinished = false;

  constructor(private readonly sinceStartMs: () => number) {}

  /** One event's data. Once complete or failed, a message is not changed again. */
  take(data: string): void {
    if (this.isSettled) return;
    if (data.trim() === END_MARK) {
      this.settle("complete");
      return;
    }
    let answer: WireAnswer;
    try {
      answer = JSON.parse(data) as WireAnswer;
    } catch {
      this.fail(data, "bad_answer");
      return;
    }
    this.takeAnswer(answer);
  }

  takeAnswer(answer: WireAnswer): void {
    if (answer?.error) {
      const { error } = answer;
      const message = typeof error === "string" ? error : text(error.message) || JSON.stringify(error);
      this.fail(message, typeof error === "string" ? "" : text(error.code));
      return;
    }
    const choice = answer?.choices?.[0];
    const part = choice?.delta ?? choice?.message;
    const thinking = text(part?.reasoning_content) || text(part?.reasoning);
    const urls = part ? picturesOf(part) : [];
    const pictures = urls.filter(isPicture);
    const elsewhere = urls.filter((url) => !isPicture(url)).map(markdownOf);
    // A refusal is what the model says in place of an answer.
    const content = [text(part?.content), text(part?.refusal), ...elsewhere].join("");
    if (pictures.length > 0) this.reply.images = [...(this.reply.images ?? []), ...pictures];
    if (thinking !== "") this.reply.thinking = (this.reply.thinking ?? "") + thinking;
    if (content !== "") this.reply.content += content;
    if (content !== "" || thinking !== "" || pictures.length > 0) {
      this.reply.firstTokenMs ??= this.sinceStartMs();
      if (this.reply.status === "loading") this.reply.status = "incomplete";
    }
    if (typeof choice?.finish_reason === "string" && choice.finish_reason !== "") this.#isFinished = true;
    const { prompt_tokens: prompt, completion_tokens: completion } = answer?.usage ?? {};
    if (typeof prompt === "number") this.reply.promptTokens = prompt;
    if (typeof completion === "number") this.reply.completionTokens = completion;
  }

  get isSettled(): boolean {
    return this.reply.status === "complete" || this.reply.status === "error";
  }

  /** The body is over: without end mark and finish reason the connection broke. */
  end(): void {
    if (this.isSettled) return;
    if (this.#isFinished) this.settle("complete");
    else this.fail(t("playground.cut"), "broken_stream");
  }

  fail(message: string, code: string): void {
    this.reply.error = message;
    if (code !== "") this.reply.errorCode = code;
    this.settle("error");
  }

  settle(status: "complete" | "error" | "incomplete"): void {
    this.reply.status = status;
    this.reply.totalMs = this.sinceStartMs();
  }
}

interface Listener {
  /** A new copy after each network read and at the end. */
  onReply: (reply: Reply) => void;
  /** Each event as it came, or the whole body of an answer that is not streamed; with milliseconds since the start. */
  onRaw: (data: string, ms: number) => void;
}

/** Never rejects. */
async function requestAnswer(
  body: ChatBody,
  signal: AbortSignal,
  { onReply, onRaw }: Listener,
): Promise<Reply> {
  const startMs = performance.now();
  const growing = new Growing(() => Math.round(performance.now() - startMs));
  const raw = (data: string) => onRaw(data, Math.round(performance.now() - startMs));
  const named = (id: string | null | undefined) => {
    if (id) growing.reply.requestId = id;
  };
  try {
    const response = await fetchChecked("/pg/chat/completions", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...quoteHeader(body.model, body.group ?? "", Date.now()),
      },
      body: JSON.stringify(body),
      signal,
    });
    named(response.headers.get(REQUEST_ID_HEADER));
    if (response.body && (response.headers.get("content-type") ?? "").includes("text/event-stream")) {
      for await (const batch of eventBatches(response.body)) {
        for (const data of batch) {
          raw(data);
          growing.take(data);
        }
        // Read on to the end of the body: giving up after the end mark would look like a client that left.
        onReply({ ...growing.reply });
      }
      growing.end();
    } else {
      const whole = await response.text();
      raw(whole);
      growing.takeAnswer(JSON.parse(whole) as WireAnswer);
      // An answer that is not streamed has no first token of its own.
      delete growing.reply.firstTokenMs;
      if (!growing.isSettled) growing.settle("complete");
    }
  } catch (error) {
    if (isAbort(error) || signal.aborted) {
      growing.settle("incomplete");
    } else if (error instanceof ApiFailure) {
      named(error.requestId);
      growing.fail(error.message, error.code);
    } else if (growing.reply.content !== "" || growing.reply.images)
      growing.fail(t("playground.cut"), "broken_stream");
    else {
      console.error(error);
      growing.fail(failureMessage(error), "");
    }
  }
  const reply = { ...growing.reply };
  onReply(reply);
  return reply;
}

/** While nobody looks no frame comes: then it is drawn a few times a second, for what is saved when the page is left. */
const HIDDEN_MS = 250;

/** Hands on the last of what came since the last frame. */
function perFrame(draw: (reply: Reply) => void): {
  take: (reply: Reply) => void;
  finish: (reply: Reply) => void;
} {
  let waiting: Reply | undefined;
  let isOver = false;
  const flush = () => {
    if (waiting && !isOver) draw(waiting);
    waiting = undefined;
  };
  return {
    take(reply) {
      const isDue = waiting !== undefined;
      waiting = reply;
      if (isDue) return;
      if (document.hidden) setTimeout(flush, HIDDEN_MS);
      else requestAnimationFrame(flush);
    },
    finish(reply) {
      isOver = true;
      draw(reply);
    },
  };
}

export interface AnswerRun {
  /** The conversation up to the question, itself included. */
  conversation: Conversation;
  reply: Message;
  settings: Settings;
  signal: AbortSignal;
  draw: (patch: Partial<Message>) => void;
}

/** Asks, draws what comes as often as the screen does, keeps the events. Never rejects. */
export async function runAnswer({ conversation, reply, settings, signal, draw }: AnswerRun): Promise<Reply> {
  const frames = perFrame(draw);
  const done = await requestAnswer(bodyOf(settings, contextOf(conversation, reply.side)), signal, {
    onReply: frames.take,
    onRaw: (data, ms) => keepRawEvent(reply.id, { data, ms }),
  });
  frames.finish(done);
  return done;
}

export type RunAnswer = typeof runAnswer;
