// Whole answers: `explode` plays one as canonical events, `collect` gathers events into one.
// Refuses half answers: collect throws the failure of a stream that failed or never ended.
import { Failure } from "../shared/failures.ts";
import type { Usage } from "../shared/usage.ts";
import type { DialectName, JsonObject, Signature } from "./canonical.ts";
import { joinBase64 } from "./json.ts";
import type { BlockKind, CanonicalEvent, FinishReason, FinishEvent, NoteKind } from "./events.ts";

interface AnswerNote {
  note: NoteKind;
  dialect: DialectName;
  value: unknown;
}

export interface AnswerBlock {
  kind: BlockKind;
  callId?: string;
  name?: string;
  custom?: boolean;
  /** As in the open event. */
  namespace?: string;
  form?: string;
  /** Answer number when n > 1; absent means the first. */
  choice?: number;
  /** Text of text-like blocks; JSON text of calls. */
  text: string;
  /** Base64 of images and audio. */
  data?: string;
  mime?: string;
  notes: AnswerNote[];
  /** Wire forms of a hosted tool's items. */
  opaque: { dialect: DialectName; value: unknown }[];
}

/** A whole answer in canonical form; `usage.raw` is absent when the upstream reported none. */
export interface Answer {
  id?: string;
  model?: string;
  createdAt?: number;
  extra?: JsonObject;
  blocks: AnswerBlock[];
  usage: Usage;
  reason: FinishReason;
  rawReason: string | null;
  stopSequence?: string;
  others?: FinishEvent["others"];
  /** Values outside of any block that only their own dialect understands. */
  opaque: { dialect: DialectName; value: unknown }[];
}

/**
 * An answer of nothing but text, which most answers are: read without the machinery of streams. What it gives equals
 * what the decoder of the stream would (test/protocol/text-answers.test.ts holds them together).
 */
export function textAnswer(
  head: Pick<Answer, "id" | "model" | "createdAt" | "extra">,
  texts: readonly string[],
  end: Pick<Answer, "usage" | "reason" | "rawReason" | "stopSequence">,
): Answer {
  return { ...head, blocks: texts.map((text) => newBlock("text", { text })), ...end, opaque: [] };
}

/** Whether a field says nothing: absent, null, or an empty list. */
export function isBlank(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

/** A block with nothing in it yet. */
export function newBlock(kind: BlockKind, more: Partial<AnswerBlock> = {}): AnswerBlock {
  return { kind, text: "", notes: [], opaque: [], ...more };
}

/** Numbers of the answers that were given (n > 1), in order; the first is always there. */
export function choicesOf({ blocks, others }: Answer): number[] {
  if (!others && blocks.every((block) => !block.choice)) return [0];
  const numbers = new Set([0, ...blocks.map((block) => block.choice ?? 0)]);
  for (const other of others ?? []) numbers.add(other.choice);
  return [...numbers].sort((a, b) => a - b);
}

/** Plays a whole answer as the events its stream would have had. */
export function explode(answer: Answer): CanonicalEvent[] {
  const out: CanonicalEvent[] = [
    {
      type: "start",
      ...defined({ id: answer.id, model: answer.model, createdAt: answer.createdAt, extra: answer.extra }),
    },
  ];
  for (const { dialect, value } of answer.opaque) out.push({ type: "opaque", dialect, value });
  answer.blocks.forEach((block, at) => {
    const { kind, callId, name, custom, namespace, form, choice } = block;
    out.push({ type: "open", at, kind, ...defined({ callId, name, custom, namespace, form, choice }) });
    for (const { dialect, value } of block.opaque) out.push({ type: "opaque", at, dialect, value });
    // The proof of a call goes first: some dialects have to place it before the call.
    const notes = block.notes.map((note) => ({ type: "note" as const, at, ...note }));
    if (kind === "tool-call") out.push(...notes);
    if (block.text !== "") {
      if (kind === "tool-call" || kind === "hosted-tool") out.push({ type: "json", at, delta: block.text });
      else if (kind !== "image" && kind !== "audio") out.push({ type: "text", at, delta: block.text });
    }
    if (block.data !== undefined) {
      out.push({ type: "bytes", at, data: block.data, ...defined({ mime: block.mime }) });
    }
    if (kind !== "tool-call") out.push(...notes);
    out.push({ type: "close", at });
  });
  out.push({ type: "usage", usage: answer.usage });
  out.push({
    type: "finish",
    reason: answer.reason,
    raw: answer.rawReason,
    ...defined({ stopSequence: answer.stopSequence, others: answer.others }),
  });
  return out;
}

/** Gathers the events of a finished stream. Throws the stream's failure, or broken-stream when it never ended. */
export function collect(events: Iterable<CanonicalEvent>): Answer {
  const blocks: AnswerBlock[] = [];
  const texts: string[][] = [];
  const opaque: Answer["opaque"] = [];
  let head: Partial<Answer> = {};
  let usage: Usage | null = null;
  let finish: FinishEvent | null = null;
  const blockAt = (at: number): AnswerBlock => {
    const block = blocks[at];
    if (!block)
      throw new Failure("internal", "internal_error", { internal: `event for unknown block ${at}` });
    return block;
  };
  for (const event of events) {
    switch (event.type) {
      case "start": {
        const { type: _type, usage: _usage, ...rest } = event;
        head = rest;
        break;
      }
      case "open": {
        const { kind, callId, name, custom, namespace, form, choice } = event;
        blocks[event.at] = newBlock(kind, defined({ callId, name, custom, namespace, form, choice }));
        texts[event.at] = [];
        break;
      }
      case "text":
      case "json":
        texts[event.at]?.push(event.delta);
        break;
      case "bytes": {
        const block = blockAt(event.at);
        block.data = block.data === undefined ? event.data : joinBase64([block.data, event.data]);
        if (event.mime !== undefined) block.mime = event.mime;
        break;
      }
      case "note":
        blockAt(event.at).notes.push({ note: event.note, dialect: event.dialect, value: event.value });
        break;
      case "opaque": {
        const { dialect, value } = event;
        (event.at === undefined ? opaque : blockAt(event.at).opaque).push({ dialect, value });
        break;
      }
      case "usage":
        usage = event.usage;
        break;
      case "finish":
        finish = event;
        break;
      case "fail":
        throw event.failure;
      case "close":
      case "ping":
        break;
    }
  }
  if (!finish || !usage) throw brokenStream();
  blocks.forEach((block, at) => (block.text = texts[at]?.join("") ?? ""));
  return {
    ...head,
    blocks,
    usage,
    reason: finish.reason,
    rawReason: finish.raw,
    ...defined({ stopSequence: finish.stopSequence, others: finish.others }),
    opaque,
  };
}

/** The failure of a stream whose upstream stopped without its terminal event. */
export function brokenStream(internal?: string): Failure {
  return new Failure("broken-stream", "broken_stream", internal === undefined ? {} : { internal });
}

/** The signature note of a block, if it has one; parts of a split signature are joined. */
export function signatureOf(
  block: AnswerBlock,
  kind: "signature" | "redacted" = "signature",
): Signature | null {
  const found = block.notes.filter((note) => note.note === kind && typeof note.value === "string");
  const last = found.at(-1);
  return last ? { dialect: last.dialect, value: found.map((note) => note.value).join("") } : null;
}

/** The object without its undefined fields, so that absent stays absent on the wire. */
export function defined<T extends object>(fields: T): Partial<T> {
  const out: Partial<T> = {};
  for (const key in fields) if (fields[key] !== undefined) out[key] = fields[key];
  return out;
}
