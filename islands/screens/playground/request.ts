// One question to /pg/chat/completions: the body, and the answer as it grows, streaming or not.
// Whatever goes wrong becomes a message with status "error"; stopping leaves it "incomplete".
import { ApiFailure, failureMessage, fetchChecked, isAbort, REQUEST_ID_HEADER } from "../../lib/api.ts";
import { t } from "../../lib/i18n.ts";
import { eventBatches } from "../../lib/sse.ts";
import type { Conversation, Message, Settings } from "./conversation.ts";
import { contextOf } from "./conversation.ts";

type ContentPart = { type: "text"; text: string } | { type: "image_url"; image_url: { url: string } };

type Said = Pick<Message, "role" | "content" | "images">;

export interface ChatBody {
  model: string;
  messages: { role: string; content: string | ContentPart[] }[];
  stream: boolean;
  stream_options?: { include_usage: true };
  temperature: number;
  max_tokens?: number;
  group?: string;
  top_p?: number;
  frequency_penalty?: number;
  presence_penalty?: number;
  seed?: number;
  reasoning_effort?: string;
}

/** Fields that are sent only when something is typed in them. */
const NUMBERS = ["top_p", "frequency_penalty", "presence_penalty", "seed"] as const;

function further(settings: Settings): Partial<ChatBody> {
  const sent: Partial<ChatBody> = {};
  for (const name of NUMBERS) {
    const typed = settings[name].trim();
    if (typed !== "" && Number.isFinite(Number(typed))) sent[name] = Number(typed);
  }
  if (settings.reasoning_effort !== "") sent.reasoning_effort = settings.reasoning_effort;
  return sent;
}

/** A question with pictures has parts; one without stays plain text, which every upstream reads. */
function contentOf({ content, images }: Said): string | ContentPart[] {
  if (images === undefined || images.length === 0) return content;
  return [
    ...(content.trim() === "" ? [] : [{ type: "text" as const, text: content }]),
    ...images.map((url) => ({ type: "image_url" as const, image_url: { url } })),
  ];
}

/** The system prompt is left out when empty, max_tokens when 0: both mean "the model's own". */
export function bodyOf(settings: Settings, context: readonly Said[]): ChatBody {
  const { model, group, system, temperature, max_tokens: maxTokens, isStream } = settings;
  return {
    model,
    ...(group === "" ? {} : { group }),
    messages: [
      ...(system.trim() === "" ? [] : [{ role: "system", content: system }]),
      ...context.map((said) => ({ role: said.role, content: contentOf(said) })),
    ],
    stream: isStream,
    ...(isStream ? { stream_options: { include_usage: true } as const } : {}),
    temperature,
    ...(maxTokens > 0 ? { max_tokens: maxTokens } : {}),
    ...further(settings),
  };
}

/** In place of a picture's megabytes. */
const PICTURE = "data:image/png;base64,...";

/**
 * The call to show as code: with what is being written as the question, else the one that was answered last. Pictures
 * are only named.
 */
export function bodyToShow(settings: Settings, conversation: Conversation, draft: string): ChatBody {
  const context: Said[] = contextOf(conversation).map(({ role, content, images }) => ({
    role,
    content,
    ...(images ? { images: images.map(() => PICTURE) } : {}),
  }));
  if (draft.trim() !== "") context.push({ role: "user", content: draft.trim() });
  while (context.at(-1)?.role === "assistant") context.pop();
  if (context.length === 0) context.push({ role: "user", content: t("playground.greetingUser") });
  return bodyOf(settings, context);
}

interface WireError {
  message?: unknown;
  code?: unknown;
}

interface WireAnswer {
  choices?: {
    delta?: { content?: unknown; reasoning_content?: unknown; reasoning?: unknown };
    message?: { content?: unknown; reasoning_content?: unknown };
    finish_reason?: unknown;
  }[];
  usage?: { prompt_tokens?: unknown; completion_tokens?: unknown } | null;
  error?: WireError | string | null;
}

export type Reply = Pick<
  Message,
  | "content"
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
    const thinking =
      text(part?.reasoning_content) || text((part as { reasoning?: unknown } | undefined)?.reasoning);
    const content = text(part?.content);
    if (thinking !== "") this.reply.thinking = (this.reply.thinking ?? "") + thinking;
    if (content !== "") this.reply.content += content;
    if (content !== "" || thinking !== "") {
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

export interface Listener {
  /** A new copy after each network read and at the end. */
  onReply: (reply: Reply) => void;
  /** Each event as it came, or the whole body of an answer that is not streamed; with milliseconds since the start. */
  onRaw?: (data: string, ms: number) => void;
}

/** Never rejects. */
export async function requestAnswer(
  body: ChatBody,
  signal: AbortSignal,
  { onReply, onRaw }: Listener,
): Promise<Reply> {
  const startMs = performance.now();
  const growing = new Growing(() => Math.round(performance.now() - startMs));
  const raw = (data: string) => onRaw?.(data, Math.round(performance.now() - startMs));
  const named = (id: string | null | undefined) => {
    if (id) growing.reply.requestId = id;
  };
  try {
    const response = await fetchChecked("/pg/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json" },
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
    } else if (growing.reply.content !== "") growing.fail(t("playground.cut"), "broken_stream");
    else {
      console.error(error);
      growing.fail(failureMessage(error), "");
    }
  }
  const reply = { ...growing.reply };
  onReply(reply);
  return reply;
}
