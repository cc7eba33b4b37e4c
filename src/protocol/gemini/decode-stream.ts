// Reads Gemini streams (and, as one chunk, complete answers) into canonical events, and meters those passed through.
// Refuses to call a stream complete without a finishReason; a blocked prompt is a refusal.
import { Failure } from "../../shared/failures.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { brokenStream, defined } from "../assemble.ts";
import type { JsonObject } from "../canonical.ts";
import { hasError } from "../classify.ts";
import { newMeterState } from "../dialect.ts";
import type { AnswerContext, MeterOptions, StreamMeter, WireDecoder, WireFrame } from "../dialect.ts";
import type { BlockPayload, CanonicalEvent } from "../events.ts";
import { asList, asObject, asString, parseJson } from "../json.ts";
import { createSequencer } from "../sequencer.ts";
import type { BlockSequencer, BlockSpec } from "../sequencer.ts";
import { proofNote } from "../signatures.ts";
import { decodeFailure } from "./failure.ts";
import { decodeUsage, reportsUsage } from "./usage.ts";
import { camel, finishFromWire, MADE_ID } from "./wire.ts";

const DIALECT = "gemini";

/** What has been read so far; everything below reads and moves it. */
interface Reading {
  readonly newId: AnswerContext["newId"];
  readonly blocks: BlockSequencer;
  /** Text and thinking have one spec for each choice. */
  readonly specs: Map<string, BlockSpec>;
  /** By choice. */
  readonly finishes: Map<number, string>;
  /** Choices with a tool call, and those with a grounded answer. */
  readonly calls: Set<number>;
  readonly grounded: Set<number>;
  readonly citations: Set<string>;
  /** Blocks of their own that were made: calls, media, hosted parts. */
  made: number;
  started: boolean;
  over: boolean;
  usage: JsonObject | undefined;
}

export function decodeStream({ newId }: Pick<AnswerContext, "newId">): WireDecoder {
  const from: Reading = {
    newId,
    blocks: createSequencer(),
    specs: new Map(),
    finishes: new Map(),
    calls: new Set(),
    grounded: new Set(),
    citations: new Set(),
    made: 0,
    started: false,
    over: false,
    usage: undefined,
  };
  return {
    read: (wire) => read(from, wire),
    usageSoFar: () => usageOf(from),
    push(frame: WireFrame) {
      const parsed = from.over ? undefined : parseJson(frame.data);
      const wire = asObject(Array.isArray(parsed) ? parsed[0] : parsed);
      return wire ? read(from, wire) : [];
    },
    end: () => readEnd(from),
  };
}

function usageOf({ usage, grounded }: Reading): Usage | null {
  const reported = decodeUsage(usage);
  if (reported) reported.calls.webSearch = grounded.size;
  return reported;
}

function read(from: Reading, wire: JsonObject): CanonicalEvent[] {
  const out: CanonicalEvent[] = [];
  if (from.over) return out;
  const candidates = asList(wire["candidates"]);
  const failure = failureIn(wire, candidates);
  if (failure) {
    from.over = true;
    out.push({ type: "fail", failure });
    return out;
  }
  if (!from.started) {
    from.started = true;
    const model = asString(wire["modelVersion"]);
    out.push({ type: "start", ...defined({ id: asString(wire["responseId"]), model }) });
  }
  candidates.forEach((value, position) => {
    const candidate = asObject(value);
    if (candidate) readCandidate(from, out, candidate, position);
  });
  // Every chunk repeats the numbers: only the last ones are read.
  const counts = asObject(wire["usageMetadata"]);
  if (counts && reportsUsage(counts)) from.usage = counts;
  return out;
}

function failureIn(wire: JsonObject, candidates: readonly unknown[]): Failure | undefined {
  if (hasError(wire, "candidates")) return decodeFailure(errorStatus(wire), wire);
  return candidates.length === 0 ? promptRefusal(wire) : undefined;
}

function readCandidate(from: Reading, out: CanonicalEvent[], candidate: JsonObject, position: number): void {
  const choice = boundedCount(candidate["index"] ?? position);
  const parts = asList(asObject(candidate["content"])?.["parts"]);
  const grounding = asObject(candidate["groundingMetadata"]);
  // Sources belong to the text, which other parts may follow.
  const lastText = grounding ? parts.findLastIndex(isText) : -1;
  for (let at = 0; at < parts.length; at++) {
    const part = asObject(parts[at]);
    if (part) readPart(from, out, choice, part);
    if (grounding && at === lastText) readSources(from, out, choice, grounding);
  }
  if (grounding) {
    if (lastText === -1) readSources(from, out, choice, grounding);
    // Counted once for each grounded answer, as grounding was first priced (2025-07).
    if (asList(grounding["webSearchQueries"]).length > 0) from.grounded.add(choice);
  }
  const reason = asString(candidate["finishReason"]);
  if (reason) from.finishes.set(choice, reason);
}

function isText(value: unknown): boolean {
  const part = asObject(value);
  return part?.["text"] !== undefined && part["thought"] !== true;
}

function specOf(from: Reading, kind: "text" | "thinking", choice: number): BlockSpec {
  const key = choice === 0 ? kind : `${kind}:${choice}`;
  let spec = from.specs.get(key);
  if (!spec) from.specs.set(key, (spec = { key, kind, choice }));
  return spec;
}

function readPart(from: Reading, out: CanonicalEvent[], choice: number, raw: JsonObject): void {
  const part = camel(raw);
  const signed = asString(part["thoughtSignature"]);
  const proof = signed ? proofNote(signed, DIALECT) : undefined;
  const text = asString(part["text"]);
  const call = asObject(part["functionCall"]);
  const inline = asObject(part["inlineData"]);
  if (text !== undefined) {
    const kind = part["thought"] === true ? "thinking" : "text";
    const spec = specOf(from, kind, choice);
    if (text !== "") from.blocks.write(out, spec, { type: "text", delta: text });
    if (proof) from.blocks.write(out, spec, proof);
    // What follows a proof is another block of thinking.
    if (kind === "thinking" && proof) from.blocks.complete(out, spec.key);
  } else if (call) readCall(from, out, choice, call, proof);
  else if (inline) readMedia(from, out, choice, inline, proof);
  else if (Object.keys(part).length > 0) {
    const key = `hosted:${from.made++}`;
    const name = Object.keys(part)[0] ?? "part";
    const spec: BlockSpec = { key, kind: "hosted-tool", choice, name };
    from.blocks.write(out, spec, { type: "opaque", dialect: DIALECT, value: raw });
    from.blocks.complete(out, key);
  }
}

function readCall(
  from: Reading,
  out: CanonicalEvent[],
  choice: number,
  call: JsonObject,
  proof: BlockPayload | undefined,
): void {
  from.calls.add(choice);
  const key = `call:${from.made++}`;
  const callId = asString(call["id"]) || from.newId(MADE_ID);
  const spec: BlockSpec = { key, kind: "tool-call", choice, callId, name: asString(call["name"]) ?? "" };
  // The proof goes first: other dialects have to place it before the call.
  if (proof) from.blocks.write(out, spec, proof);
  from.blocks.write(out, spec, { type: "json", delta: JSON.stringify(call["args"] ?? {}) });
  from.blocks.complete(out, key);
}

function readMedia(
  from: Reading,
  out: CanonicalEvent[],
  choice: number,
  inline: JsonObject,
  proof: BlockPayload | undefined,
): void {
  const blob = camel(inline);
  const mime = asString(blob["mimeType"]) ?? "";
  const kind = mime.startsWith("audio/") ? "audio" : "image";
  const key = `media:${from.made++}`;
  // Speech comes in many small pieces of one sound.
  const spec: BlockSpec = { key: kind === "audio" ? `audio:${choice}` : key, kind, choice };
  const data = asString(blob["data"]) ?? "";
  from.blocks.write(out, spec, { type: "bytes", data, ...defined({ mime }) });
  if (proof) from.blocks.write(out, spec, proof);
  if (kind === "image") from.blocks.complete(out, key);
}

function readSources(from: Reading, out: CanonicalEvent[], choice: number, grounding: JsonObject): void {
  for (const value of asList(grounding["groundingChunks"])) {
    const name = `${choice} ${JSON.stringify(value)}`;
    if (from.citations.has(name)) continue;
    from.citations.add(name);
    const note: BlockPayload = { type: "note", note: "citation", dialect: DIALECT, value };
    from.blocks.write(out, specOf(from, "text", choice), note);
  }
}

function readEnd(from: Reading): CanonicalEvent[] {
  if (from.over) return [];
  from.over = true;
  if (from.finishes.size === 0) return [{ type: "fail", failure: brokenStream("no finishReason") }];
  const out: CanonicalEvent[] = [];
  if (!from.started) out.push({ type: "start" });
  from.blocks.closeAll(out);
  const usage = decodeUsage(from.usage) ?? emptyUsage();
  usage.calls.webSearch = from.grounded.size;
  out.push({ type: "usage", usage });
  const list = [...from.finishes].map(([choice, raw]) => ({
    choice,
    reason: finishFromWire(raw, from.calls.has(choice)),
    raw,
  }));
  const first = list.find((item) => item.choice === 0) ?? list[0];
  const others = list.filter((item) => item !== first);
  out.push({
    type: "finish",
    reason: first?.reason ?? "other",
    raw: first?.raw ?? null,
    ...(others.length > 0 ? { others } : {}),
  });
  return out;
}

/** The status that an error in a 200 answer stands for: its own code. */
export function errorStatus(wire: JsonObject): number {
  const code = asObject(wire["error"])?.["code"];
  return typeof code === "number" && code >= 400 && code < 600 ? code : 500;
}

/** The failure for a prompt that was blocked before any answer; undefined when it was not. */
export function promptRefusal(wire: JsonObject): Failure | undefined {
  const reason = asString(asObject(wire["promptFeedback"])?.["blockReason"]);
  if (!reason || reason === "BLOCKED_REASON_UNSPECIFIED") return undefined;
  return new Failure("upstream-refusal", "upstream_refusal", {
    wireCode: reason,
    internal: `blockReason ${reason}`,
  });
}

/** Reads a Gemini stream whose bytes go to the client untouched. */
export function meterStream(options: MeterOptions = {}): StreamMeter {
  const state = newMeterState();
  const saw = (text: unknown): void => {
    if (typeof text !== "string" || text === "") return;
    state.sawText = true;
    state.textChars += text.length;
    options.onText?.(text);
  };
  return {
    state,
    push(frame) {
      const parsed = parseJson(frame.data);
      const wire = asObject(Array.isArray(parsed) ? parsed[0] : parsed);
      if (!wire) return;
      if (hasError(wire, "candidates")) {
        state.failure ??= decodeFailure(errorStatus(wire), wire);
        return;
      }
      const candidates = asList(wire["candidates"]);
      for (const value of candidates) {
        const candidate = asObject(value);
        for (const item of asList(asObject(candidate?.["content"])?.["parts"])) {
          const part = asObject(item);
          saw(part?.["text"]);
          const call = asObject(part?.["functionCall"]);
          if (call) saw(JSON.stringify([call["name"], call["args"]]));
          if (part?.["inlineData"]) state.sawText = true;
        }
        const queries = asObject(candidate?.["groundingMetadata"])?.["webSearchQueries"];
        if (asList(queries).length > 0) state.webSearchCalls = 1;
        if (asString(candidate?.["finishReason"])) state.ended = true;
      }
      if (candidates.length === 0 && promptRefusal(wire)) {
        state.ended = true;
        state.failure ??= promptRefusal(wire) ?? null;
      }
      const usage = decodeUsage(wire["usageMetadata"]);
      if (usage) {
        state.usage = usage;
        state.usageFinal = state.ended;
      }
      if (state.usage) state.usage.calls.webSearch = state.webSearchCalls;
    },
  };
}
