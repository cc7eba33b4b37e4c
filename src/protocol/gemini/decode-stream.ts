// Reads Gemini streams (and, as one chunk, whole answers) into canonical events, and meters those passed through.
// Refuses to call a stream whole without a finishReason; a blocked prompt is a refusal.
import { Failure } from "../../shared/failures.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import { brokenStream, defined } from "../assemble.ts";
import type { JsonObject } from "../canonical.ts";
import { newMeterState } from "../dialect.ts";
import type { AnswerContext, MeterOptions, StreamMeter, WireDecoder, WireFrame } from "../dialect.ts";
import type { BlockPayload, CanonicalEvent } from "../events.ts";
import { asList, asObject, asString, parseJson } from "../json.ts";
import { createSequencer } from "../sequencer.ts";
import type { BlockSpec } from "../sequencer.ts";
import { proofNote } from "../signatures.ts";
import { decodeFailure } from "./failure.ts";
import { decodeUsage, reportsUsage } from "./usage.ts";
import { camel, finishFromWire, MADE_ID } from "./wire.ts";

const DIALECT = "gemini";

export function decodeStream(context: Pick<AnswerContext, "newId">): WireDecoder {
  const blocks = createSequencer();
  const finishes = new Map<number, string>();
  const calls = new Set<number>();
  const grounded = new Set<number>();
  const citations = new Set<string>();
  let made = 0;
  let started = false;
  let over = false;
  let usage: JsonObject | undefined;

  /** Text and thinking have one spec for each choice. */
  const specs = new Map<string, BlockSpec>();
  const specOf = (kind: "text" | "thinking", choice: number): BlockSpec => {
    const key = choice === 0 ? kind : `${kind}:${choice}`;
    let spec = specs.get(key);
    if (!spec) specs.set(key, (spec = { key, kind, choice }));
    return spec;
  };

  const readPart = (out: CanonicalEvent[], choice: number, raw: JsonObject): void => {
    const part = camel(raw);
    const signed = asString(part["thoughtSignature"]);
    const proof: BlockPayload[] = signed ? [proofNote(signed, DIALECT)] : [];
    const write = (spec: BlockSpec, payloads: BlockPayload[]): void => {
      for (const payload of payloads) blocks.write(out, spec, payload);
    };
    const text = asString(part["text"]);
    const call = asObject(part["functionCall"]);
    const inline = asObject(part["inlineData"]);
    if (text !== undefined) {
      const kind = part["thought"] === true ? "thinking" : "text";
      const spec = specOf(kind, choice);
      if (text !== "") blocks.write(out, spec, { type: "text", delta: text });
      write(spec, proof);
      // What follows a proof is another block of thinking.
      if (kind === "thinking" && signed) blocks.complete(out, spec.key);
    } else if (call) {
      calls.add(choice);
      const key = `call:${made++}`;
      const callId = asString(call["id"]) || context.newId(MADE_ID);
      const spec: BlockSpec = { key, kind: "tool-call", choice, callId, name: asString(call["name"]) ?? "" };
      const args = JSON.stringify(call["args"] ?? {});
      // The proof goes first: other dialects have to place it before the call.
      write(spec, [...proof, { type: "json", delta: args }]);
      blocks.complete(out, key);
    } else if (inline) {
      const blob = camel(inline);
      const mime = asString(blob["mimeType"]) ?? "";
      const key = `media:${made++}`;
      const kind = mime.startsWith("audio/") ? "audio" : "image";
      const bytes: BlockPayload = { type: "bytes", data: asString(blob["data"]) ?? "", ...defined({ mime }) };
      // Speech comes in many small pieces of one sound.
      const spec: BlockSpec = { key: kind === "audio" ? `audio:${choice}` : key, kind, choice };
      write(spec, [bytes, ...proof]);
      if (kind === "image") blocks.complete(out, key);
    } else if (Object.keys(part).length > 0) {
      const key = `hosted:${made++}`;
      const name = Object.keys(part)[0] ?? "part";
      write({ key, kind: "hosted-tool", choice, name }, [{ type: "opaque", dialect: DIALECT, value: raw }]);
      blocks.complete(out, key);
    }
  };

  const readSources = (out: CanonicalEvent[], choice: number, grounding: JsonObject | undefined): void => {
    for (const value of asList(grounding?.["groundingChunks"])) {
      const name = `${choice} ${JSON.stringify(value)}`;
      if (citations.has(name)) continue;
      citations.add(name);
      const note: BlockPayload = { type: "note", note: "citation", dialect: DIALECT, value };
      blocks.write(out, specOf("text", choice), note);
    }
  };

  const readCandidate = (out: CanonicalEvent[], candidate: JsonObject, position: number): void => {
    const choice = boundedCount(candidate["index"] ?? position);
    const parts = asList(asObject(candidate["content"])?.["parts"]);
    const grounding = asObject(candidate["groundingMetadata"]);
    if (grounding) {
      // Sources belong to the text, which other parts may follow.
      const lastText = parts.findLastIndex((value) => {
        const part = asObject(value);
        return part?.["text"] !== undefined && part["thought"] !== true;
      });
      parts.forEach((value, at) => {
        const part = asObject(value);
        if (part) readPart(out, choice, part);
        if (at === lastText) readSources(out, choice, grounding);
      });
      if (lastText === -1) readSources(out, choice, grounding);
      // Counted once for each grounded answer, as grounding was first priced (2025-07).
      if (asList(grounding["webSearchQueries"]).length > 0) grounded.add(choice);
    } else {
      for (const value of parts) {
        const part = asObject(value);
        if (part) readPart(out, choice, part);
      }
    }
    const reason = asString(candidate["finishReason"]);
    if (reason) finishes.set(choice, reason);
  };

  const read = (wire: JsonObject): CanonicalEvent[] => {
    const out: CanonicalEvent[] = [];
    if (over) return out;
    if (wire["error"]) {
      over = true;
      out.push({ type: "fail", failure: decodeFailure(errorStatus(wire), wire) });
      return out;
    }
    const candidates = asList(wire["candidates"]);
    const blocked = candidates.length === 0 ? promptRefusal(wire) : undefined;
    if (blocked) {
      over = true;
      out.push({ type: "fail", failure: blocked });
      return out;
    }
    if (!started) {
      started = true;
      const model = asString(wire["modelVersion"]);
      out.push({ type: "start", ...defined({ id: asString(wire["responseId"]), model }) });
    }
    candidates.forEach((value, position) => {
      const candidate = asObject(value);
      if (candidate) readCandidate(out, candidate, position);
    });
    // Every chunk repeats the numbers: only the last ones are read.
    const counts = asObject(wire["usageMetadata"]);
    if (counts && reportsUsage(counts)) usage = counts;
    return out;
  };

  return {
    read,
    usageSoFar() {
      const told = decodeUsage(usage);
      if (told) told.calls.webSearch = grounded.size;
      return told;
    },
    push(frame: WireFrame) {
      const parsed = over ? undefined : parseJson(frame.data);
      const wire = asObject(Array.isArray(parsed) ? parsed[0] : parsed);
      return wire ? read(wire) : [];
    },
    end() {
      if (over) return [];
      over = true;
      if (finishes.size === 0) return [{ type: "fail", failure: brokenStream("no finishReason") }];
      const out: CanonicalEvent[] = [];
      if (!started) out.push({ type: "start" });
      blocks.closeAll(out);
      const final = decodeUsage(usage) ?? emptyUsage();
      final.calls.webSearch = grounded.size;
      out.push({ type: "usage", usage: final });
      const list = [...finishes].map(([choice, raw]) => ({
        choice,
        reason: finishFromWire(raw, calls.has(choice)),
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
    },
  };
}

function errorStatus(wire: JsonObject): number {
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
      if (wire["error"]) {
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
