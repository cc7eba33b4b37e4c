// Reads chat completion streams into canonical events: interleaved and index-sharing tool calls, reasoning in its
// three spellings, audio, refusals, errors in mid-stream. Refuses to call a stream whole that has no terminal event.
import { Failure } from "../../shared/failures.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { brokenStream, defined } from "../assemble.ts";
import { readErrorBody, upstreamFailure } from "../classify.ts";
import type { AnswerContext, WireDecoder, WireFrame } from "../dialect.ts";
import type { BlockPayload, CanonicalEvent, FinishReason } from "../events.ts";
import { asList, asObject, asString, asText, parseDataUrl, parseJson, rest } from "../json.ts";
import { createSequencer } from "../sequencer.ts";
import type { BlockSpec } from "../sequencer.ts";
import { proofNote } from "../signatures.ts";
import { decodeUsage } from "./usage.ts";
import { ANSWER_FIELDS, finishFromWire } from "./wire.ts";
import type { WireChoice, WireChunk, WireDelta, WireToolDelta } from "./wire.ts";

interface ToolState {
  key: string;
  id: string;
  name: string;
  custom: boolean;
  /** Deltas that came before the name did. */
  early: BlockPayload[];
  born: boolean;
}

/**
 * A decoder for one chat completions stream (`data:` chunks ending in [DONE]). A stream with a finish_reason but
 * without [DONE] is whole; without either, `end()` fails it. [DONE] with nothing before it is no answer.
 */
export function decodeStream(context: Pick<AnswerContext, "newId">): WireDecoder {
  const blocks = createSequencer();
  const tools = new Map<string, ToolState>();
  const finishes = new Map<number, { reason: FinishReason; raw: string | null }>();
  let toolCount = 0;
  let started = false;
  let over = false;
  let usage: Usage | null = null;

  const toolFor = (choice: number, delta: WireToolDelta, position: number): ToolState => {
    const slot = `${choice}:${delta.index ?? position}`;
    const known = tools.get(slot);
    const name = delta.function?.name ?? delta.custom?.name ?? "";
    // Some upstreams give every parallel call the same index: a new id with a name is a new call.
    if (known && !(delta.id && name && known.id !== delta.id)) return known;
    const state: ToolState = {
      key: `tool:${choice}:${toolCount++}`,
      id: delta.id || context.newId("call_"),
      name: "",
      custom: delta.type === "custom" || delta.custom != null,
      early: [],
      born: false,
    };
    tools.set(slot, state);
    return state;
  };

  const readTool = (out: CanonicalEvent[], choice: number, delta: WireToolDelta, position: number): void => {
    const state = toolFor(choice, delta, position);
    state.name ||= delta.function?.name ?? delta.custom?.name ?? "";
    const payloads: BlockPayload[] = [];
    const args = delta.function?.arguments ?? delta.custom?.input;
    const text = args === undefined || args === null ? "" : asText(args);
    if (text !== "") payloads.push({ type: "json", delta: text });
    const signed = delta.extra_content?.google?.thought_signature;
    if (typeof signed === "string" && signed) payloads.unshift(proofNote(signed, "openai-chat"));
    if (!state.name) {
      state.early.push(...payloads);
      return;
    }
    writeTool(out, choice, state, payloads);
  };
  const writeTool = (out: CanonicalEvent[], choice: number, state: ToolState, more: BlockPayload[]): void => {
    const { key, id, name, custom } = state;
    const spec: BlockSpec = { key, kind: "tool-call", callId: id, name, custom, choice };
    if (!state.born) blocks.write(out, spec);
    state.born = true;
    for (const payload of state.early) blocks.write(out, spec, payload);
    state.early = [];
    for (const payload of more) blocks.write(out, spec, payload);
  };

  /** Text-like blocks have one spec for each choice. */
  const specs = new Map<string, BlockSpec>();
  const specOf = (kind: BlockSpec["kind"], choice: number): BlockSpec => {
    const key = choice === 0 ? kind : `${kind}:${choice}`;
    let spec = specs.get(key);
    if (!spec) specs.set(key, (spec = { key, kind, choice }));
    return spec;
  };

  const readDelta = (out: CanonicalEvent[], choice: number, delta: WireDelta): void => {
    const write = (kind: BlockSpec["kind"], payload: BlockPayload): void =>
      blocks.write(out, specOf(kind, choice), payload);
    if (delta.reasoning_details || delta.reasoning_content || delta.reasoning)
      readThinking(out, choice, delta, write);
    if (typeof delta.content !== "string") readParts(delta.content, write);
    else if (delta.content !== "") write("text", { type: "text", delta: delta.content });
    if (delta.annotations) {
      for (const citation of asList(delta.annotations)) {
        write("text", { type: "note", note: "citation", dialect: "openai-chat", value: citation });
      }
    }
    if (delta.refusal) write("refusal", { type: "text", delta: delta.refusal });
    if (delta.audio || delta.images) readMedia(out, choice, delta);
    if (delta.tool_calls) {
      asList(delta.tool_calls).forEach((tool, position) => {
        if (asObject(tool)) readTool(out, choice, tool as WireToolDelta, position);
      });
    }
    if (delta.function_call) readTool(out, choice, { index: -1, function: delta.function_call }, 0);
  };

  const readThinking = (
    out: CanonicalEvent[],
    choice: number,
    delta: WireDelta,
    write: (kind: BlockSpec["kind"], payload: BlockPayload) => void,
  ): void => {
    const details = asList(delta.reasoning_details).map(asObject);
    // Where both spellings come together they say the same; the details know where a block ends.
    const detailed = details.some((item) => item?.["text"] || item?.["summary"]);
    const thinking = detailed ? undefined : (delta.reasoning_content ?? asString(delta.reasoning));
    if (thinking) write("thinking", { type: "text", delta: thinking });
    for (const item of details) {
      const text = asString(item?.["text"]) ?? asString(item?.["summary"]);
      if (text) write("thinking", { type: "text", delta: text });
      const signature = asString(item?.["signature"]);
      const data = asString(item?.["data"]);
      if (!signature && !data) continue;
      // What follows a proof is another block of thinking.
      if (signature) write("thinking", proofNote(signature, "openai-chat"));
      blocks.complete(out, specOf("thinking", choice).key);
      if (!data) continue;
      write("thinking", { ...proofNote(data, "openai-chat"), note: "redacted" });
      blocks.complete(out, specOf("thinking", choice).key);
    }
  };

  const readMedia = (out: CanonicalEvent[], choice: number, delta: WireDelta): void => {
    if (delta.audio) {
      const { id, data, transcript } = delta.audio;
      const spec: BlockSpec = { key: `audio:${choice}`, kind: "audio", choice, ...defined({ callId: id }) };
      if (data) blocks.write(out, spec, { type: "bytes", data });
      if (transcript) {
        blocks.write(out, spec, {
          type: "note",
          note: "transcript",
          dialect: "openai-chat",
          value: transcript,
        });
      }
    }
    asList(delta.images).forEach((image, index) => {
      const url = asString(asObject(asObject(image)?.["image_url"])?.["url"]);
      const media = url === undefined ? undefined : parseDataUrl(url);
      if (!media) return;
      const key = `image:${choice}:${blocks.count()}:${index}`;
      blocks.write(out, { key, kind: "image", choice }, { type: "bytes", ...media });
      blocks.complete(out, key);
    });
  };

  const readChoice = (out: CanonicalEvent[], wire: WireChoice): void => {
    const choice = boundedCount(wire.index);
    const delta = asObject(wire.delta) ?? asObject(wire.message);
    if (delta) readDelta(out, choice, delta as WireDelta);
    if (asObject(wire.logprobs)) {
      // Belongs to the text of this very chunk; without text (role-only chunks) there is nothing to annotate.
      const kind = delta?.["refusal"] ? "refusal" : "text";
      if (delta?.[kind === "text" ? "content" : "refusal"]) {
        const value = wire.logprobs;
        const note: BlockPayload = { type: "note", note: "logprobs", dialect: "openai-chat", value };
        blocks.write(out, specOf(kind, choice), note);
      }
    }
    if (wire.finish_reason) {
      finishes.set(choice, { reason: finishFromWire(wire.finish_reason), raw: wire.finish_reason });
    }
  };

  const finish = (out: CanonicalEvent[]): void => {
    if (over) return;
    over = true;
    for (const [slot, state] of tools) {
      if (!state.born && state.early.length > 0) writeTool(out, Number(slot.split(":")[0]), state, []);
    }
    blocks.closeAll(out);
    out.push({ type: "usage", usage: usage ?? emptyUsage() });
    const first = finishes.get(0) ?? { reason: "other" as const, raw: null };
    const others = [...finishes]
      .filter(([choice]) => choice !== 0)
      .map(([choice, { reason, raw }]) => ({ choice, reason, raw }));
    out.push({ type: "finish", ...first, ...(others.length > 0 ? { others } : {}) });
  };

  const read = (wire: Record<string, unknown>, event = ""): CanonicalEvent[] => {
    const out: CanonicalEvent[] = [];
    if (over) return out;
    const chunk: WireChunk = wire;
    if (chunk.error || event === "error") {
      over = true;
      out.push({ type: "fail", failure: upstreamFailure({ status: 200, ...readErrorBody(chunk) }) });
      return out;
    }
    if (!started) {
      started = true;
      const { id, model, created } = chunk;
      const extra = rest(wire, ANSWER_FIELDS);
      out.push({ type: "start", ...defined({ id, model, createdAt: created, extra }) });
    }
    for (const choice of asList(chunk.choices)) if (asObject(choice)) readChoice(out, choice as WireChoice);
    if (chunk.usage) usage = decodeUsage(chunk.usage) ?? usage;
    return out;
  };

  return {
    read,
    usageSoFar: () => usage,
    push(frame: WireFrame) {
      const { data } = frame;
      // No chunk is as short as the closing word with white space around it.
      if (data === "[DONE]" || (data.length < 16 && data.trim() === "[DONE]")) {
        const out: CanonicalEvent[] = [];
        if (started || over) finish(out);
        else {
          over = true;
          const failure = new Failure("upstream-down", "upstream_bad_answer", { retryable: true });
          out.push({ type: "fail", failure });
        }
        return out;
      }
      const wire = over ? undefined : asObject(parseJson(data));
      return wire ? read(wire, frame.event) : [];
    },
    end() {
      const out: CanonicalEvent[] = [];
      if (over) return out;
      if (finishes.size > 0) finish(out);
      else {
        over = true;
        out.push({ type: "fail", failure: brokenStream("no finish_reason and no [DONE]") });
      }
      return out;
    },
  };
}

/** Content may also be (Mistral's reasoning models) a list of text and thinking parts. */
function readParts(
  content: unknown,
  write: (kind: "text" | "thinking", payload: BlockPayload) => void,
): void {
  for (const part of asList(content)) {
    const item = asObject(part);
    const text = asString(item?.["text"]);
    if (text) write("text", { type: "text", delta: text });
    for (const inner of asList(item?.["thinking"])) {
      const thought = asString(asObject(inner)?.["text"]);
      if (thought) write("thinking", { type: "text", delta: thought });
    }
  }
}
