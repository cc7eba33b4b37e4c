// Reads chat completion streams into canonical events: interleaved and index-sharing tool calls, reasoning in its
// three spellings, audio, refusals, errors in mid-stream. Refuses to call a stream complete that has no terminal event.
import { Failure } from "../../shared/failures.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { brokenStream, defined } from "../assemble.ts";
import { hasError, readErrorBody, upstreamFailure } from "../classify.ts";
import type { AnswerContext, WireDecoder, WireFrame } from "../dialect.ts";
import type { BlockPayload, CanonicalEvent, FinishReason } from "../events.ts";
import { asList, asObject, asString, asText, parseDataUrl, parseJson, rest } from "../json.ts";
import { createSequencer, jsonProgress } from "../sequencer.ts";
import type { BlockSequencer, BlockSpec, JsonProgress } from "../sequencer.ts";
import { proofNote } from "../signatures.ts";
import { decodeUsage } from "./usage.ts";
import { ANSWER_FIELDS, finishFromWire } from "./wire.ts";
import type { WireChoice, WireChunk, WireDelta, WireToolDelta } from "./wire.ts";

interface ToolState {
  key: string;
  id: string;
  name: string;
  custom: boolean;
  /** Deltas that are not written yet: they came before the name did. */
  early: BlockPayload[];
  /** How far its arguments are; undefined: its id tells it from others. */
  json: JsonProgress | undefined;
  born: boolean;
}

/** What has been read so far; everything below reads and moves it. */
interface Reading {
  readonly newId: AnswerContext["newId"];
  readonly blocks: BlockSequencer;
  /** Text-like blocks have one spec for each choice. */
  readonly specs: Map<string, BlockSpec>;
  readonly tools: Map<string, ToolState>;
  readonly finishes: Map<number, { reason: FinishReason; raw: string | null }>;
  toolCount: number;
  started: boolean;
  over: boolean;
  usage: Usage | null;
}

/**
 * A decoder for one chat completions stream (`data:` chunks ending in [DONE]). A stream with a finish_reason but
 * without [DONE] is complete; without either, `end()` fails it. [DONE] with nothing before it is no answer.
 */
export function decodeStream({ newId }: Pick<AnswerContext, "newId">): WireDecoder {
  const from: Reading = {
    newId,
    blocks: createSequencer({ isUnsaid: true }),
    specs: new Map(),
    tools: new Map(),
    finishes: new Map(),
    toolCount: 0,
    started: false,
    over: false,
    usage: null,
  };
  return {
    read: (wire, event) => read(from, wire, event),
    usageSoFar: () => from.usage,
    push(frame: WireFrame) {
      const { data } = frame;
      // No chunk is as short as the closing word with white space around it.
      if (data === "[DONE]" || (data.length < 16 && data.trim() === "[DONE]")) return readDone(from);
      const wire = from.over ? undefined : asObject(parseJson(data));
      return wire ? read(from, wire, frame.event) : [];
    },
    end() {
      if (from.over) return [];
      if (from.finishes.size > 0) return finish(from);
      from.over = true;
      return [{ type: "fail", failure: brokenStream("no finish_reason and no [DONE]") }];
    },
  };
}

function read(from: Reading, wire: Record<string, unknown>, event = ""): CanonicalEvent[] {
  const out: CanonicalEvent[] = [];
  if (from.over) return out;
  const chunk: WireChunk = wire;
  if (hasError(wire, "choices") || event === "error") {
    from.over = true;
    out.push({ type: "fail", failure: upstreamFailure({ status: 200, ...readErrorBody(chunk) }) });
    return out;
  }
  if (!from.started) {
    from.started = true;
    const { id, model, created } = chunk;
    const extra = rest(wire, ANSWER_FIELDS);
    out.push({ type: "start", ...defined({ id, model, createdAt: created, extra }) });
  }
  for (const choice of asList(chunk.choices))
    if (asObject(choice)) readChoice(from, out, choice as WireChoice);
  if (chunk.usage) from.usage = decodeUsage(chunk.usage) ?? from.usage;
  return out;
}

function readDone(from: Reading): CanonicalEvent[] {
  if (from.started || from.over) return finish(from);
  from.over = true;
  const failure = new Failure("upstream-down", "upstream_bad_answer", { retryable: true });
  return [{ type: "fail", failure }];
}

function finish(from: Reading): CanonicalEvent[] {
  const out: CanonicalEvent[] = [];
  if (from.over) return out;
  from.over = true;
  for (const [slot, state] of from.tools) {
    if (!state.born && state.early.length > 0) writeTool(from, out, Number(slot.split(":")[0]), state);
  }
  from.blocks.closeAll(out);
  out.push({ type: "usage", usage: from.usage ?? emptyUsage() });
  addUnsaidFinishes(from);
  for (const choice of calledChoices(from)) {
    // A call that was forced by name ends with "stop" at OpenAI; what it asks of the client is the same.
    const said = from.finishes.get(choice);
    if (said?.reason === "stop") said.reason = "tool-calls";
  }
  const first = from.finishes.get(0) ?? { reason: "stop" as const, raw: null };
  const others = [...from.finishes]
    .filter(([choice]) => choice !== 0)
    .map(([choice, { reason, raw }]) => ({ choice, reason, raw }));
  out.push({ type: "finish", ...first, ...(others.length > 0 ? { others } : {}) });
  return out;
}

/** Choices with a call; what has neither name nor arguments is none, and some upstreams write such beside plain text. */
function calledChoices({ tools }: Reading): number[] {
  return [...tools].filter(([, { born }]) => born).map(([slot]) => Number(slot.split(":")[0]));
}

/** [DONE] says that the answer is complete: a choice that came without a reason ended as such answers do. */
function addUnsaidFinishes(from: Reading): void {
  const { finishes, specs } = from;
  for (const choice of calledChoices(from))
    if (!finishes.has(choice)) finishes.set(choice, { reason: "tool-calls", raw: null });
  for (const { choice = 0 } of specs.values())
    if (!finishes.has(choice)) finishes.set(choice, { reason: "stop", raw: null });
}

function readChoice(from: Reading, out: CanonicalEvent[], wire: WireChoice): void {
  const choice = boundedCount(wire.index);
  const delta = asObject(wire.delta) ?? asObject(wire.message);
  if (delta) readDelta(from, out, choice, delta as WireDelta);
  if (asObject(wire.logprobs)) {
    // Belongs to the text of this very chunk; without text (role-only chunks) there is nothing to annotate.
    const kind = delta?.["refusal"] ? "refusal" : "text";
    if (delta?.[kind === "text" ? "content" : "refusal"]) {
      const value = wire.logprobs;
      const note: BlockPayload = { type: "note", note: "logprobs", dialect: "openai-chat", value };
      from.blocks.write(out, specOf(from, kind, choice), note);
    }
  }
  if (wire.finish_reason) {
    from.finishes.set(choice, { reason: finishFromWire(wire.finish_reason), raw: wire.finish_reason });
  }
}

function specOf(from: Reading, kind: BlockSpec["kind"], choice: number): BlockSpec {
  const key = choice === 0 ? kind : `${kind}:${choice}`;
  let spec = from.specs.get(key);
  if (!spec) from.specs.set(key, (spec = { key, kind, choice }));
  return spec;
}

function readDelta(from: Reading, out: CanonicalEvent[], choice: number, delta: WireDelta): void {
  const { blocks } = from;
  if (delta.reasoning_details || delta.reasoning_content || delta.reasoning)
    readThinking(from, out, choice, delta);
  if (typeof delta.content !== "string") readParts(from, out, choice, delta.content);
  else if (delta.content !== "")
    blocks.write(out, specOf(from, "text", choice), { type: "text", delta: delta.content });
  if (delta.annotations) {
    for (const value of asList(delta.annotations)) {
      const note: BlockPayload = { type: "note", note: "citation", dialect: "openai-chat", value };
      blocks.write(out, specOf(from, "text", choice), note);
    }
  }
  if (delta.refusal)
    blocks.write(out, specOf(from, "refusal", choice), { type: "text", delta: delta.refusal });
  if (delta.audio) readAudio(from, out, choice, delta.audio);
  if (delta.images) readImages(from, out, choice, delta.images);
  if (delta.tool_calls) {
    asList(delta.tool_calls).forEach((tool, position) => {
      if (asObject(tool)) readTool(from, out, choice, tool as WireToolDelta, position);
    });
  }
  if (delta.function_call) readTool(from, out, choice, { index: -1, function: delta.function_call }, 0);
}

function readThinking(from: Reading, out: CanonicalEvent[], choice: number, delta: WireDelta): void {
  const { blocks } = from;
  const spec = specOf(from, "thinking", choice);
  const details = asList(delta.reasoning_details).map(asObject);
  // Where both spellings come together they say the same; the details know where a block ends.
  const detailed = details.some((item) => item?.["text"] || item?.["summary"]);
  const thinking = detailed ? undefined : (delta.reasoning_content ?? asString(delta.reasoning));
  if (thinking) blocks.write(out, spec, { type: "text", delta: thinking });
  for (const item of details) {
    const text = asString(item?.["text"]) ?? asString(item?.["summary"]);
    if (text) blocks.write(out, spec, { type: "text", delta: text });
    const signature = asString(item?.["signature"]);
    const data = asString(item?.["data"]);
    if (!signature && !data) continue;
    // What follows a proof is another block of thinking.
    if (signature) blocks.write(out, spec, proofNote(signature, "openai-chat"));
    blocks.complete(out, spec.key);
    if (!data) continue;
    blocks.write(out, spec, { ...proofNote(data, "openai-chat"), note: "redacted" });
    blocks.complete(out, spec.key);
  }
}

/** Content may also be (Mistral's reasoning models) a list of text and thinking parts. */
function readParts(from: Reading, out: CanonicalEvent[], choice: number, content: unknown): void {
  for (const part of asList(content)) {
    const item = asObject(part);
    const text = asString(item?.["text"]);
    if (text) from.blocks.write(out, specOf(from, "text", choice), { type: "text", delta: text });
    for (const inner of asList(item?.["thinking"])) {
      const thought = asString(asObject(inner)?.["text"]);
      if (thought) from.blocks.write(out, specOf(from, "thinking", choice), { type: "text", delta: thought });
    }
  }
}

function readAudio(
  from: Reading,
  out: CanonicalEvent[],
  choice: number,
  { id, data, transcript }: NonNullable<WireDelta["audio"]>,
): void {
  const spec: BlockSpec = { key: `audio:${choice}`, kind: "audio", choice, ...defined({ callId: id }) };
  if (data) from.blocks.write(out, spec, { type: "bytes", data });
  if (transcript) {
    const note: BlockPayload = {
      type: "note",
      note: "transcript",
      dialect: "openai-chat",
      value: transcript,
    };
    from.blocks.write(out, spec, note);
  }
}

function readImages(from: Reading, out: CanonicalEvent[], choice: number, images: unknown): void {
  asList(images).forEach((image, index) => {
    const url = asString(asObject(asObject(image)?.["image_url"])?.["url"]);
    const media = url === undefined ? undefined : parseDataUrl(url);
    if (!media) return;
    const key = `image:${choice}:${from.blocks.count()}:${index}`;
    from.blocks.write(out, { key, kind: "image", choice }, { type: "bytes", ...media });
    from.blocks.complete(out, key);
  });
}

function toolFor(from: Reading, choice: number, delta: WireToolDelta, position: number): ToolState {
  const slot = `${choice}:${delta.index ?? position}`;
  const known = from.tools.get(slot);
  if (known && !beginsAnother(known, delta)) return known;
  const state: ToolState = {
    key: `tool:${choice}:${from.toolCount++}`,
    id: delta.id || from.newId("call_"),
    name: "",
    custom: delta.type === "custom" || delta.custom != null,
    early: [],
    json: delta.id ? undefined : jsonProgress(),
    born: false,
  };
  from.tools.set(slot, state);
  return state;
}

/**
 * Some upstreams give every parallel call the same index, or none. A new id with a name is a new call; where there are no
 * ids another name is one, and the same name where the arguments so far are whole and more of them come.
 */
function beginsAnother(known: ToolState, delta: WireToolDelta): boolean {
  const name = nameIn(delta);
  if (name === "") return false;
  if (delta.id) return known.id !== delta.id;
  if (known.name === "" || !known.json) return false;
  if (known.name !== name) return true;
  return !known.custom && known.json.whole() && argumentsIn(delta).trim() !== "";
}

function nameIn(delta: WireToolDelta): string {
  return delta.function?.name ?? delta.custom?.name ?? "";
}

function argumentsIn(delta: WireToolDelta): string {
  const args = delta.function?.arguments ?? delta.custom?.input;
  return args === undefined || args === null ? "" : asText(args);
}

function readTool(
  from: Reading,
  out: CanonicalEvent[],
  choice: number,
  delta: WireToolDelta,
  position: number,
): void {
  const state = toolFor(from, choice, delta, position);
  state.name ||= nameIn(delta);
  const signed = delta.extra_content?.google?.thought_signature;
  if (typeof signed === "string" && signed) state.early.push(proofNote(signed, "openai-chat"));
  const text = argumentsIn(delta);
  if (text !== "") {
    state.json?.read(text);
    state.early.push({ type: "json", delta: text });
  }
  if (state.name) writeTool(from, out, choice, state);
}

/** Begins the call, and writes what came before its name did. */
function writeTool(from: Reading, out: CanonicalEvent[], choice: number, state: ToolState): void {
  const { key, id, name, custom } = state;
  const spec: BlockSpec = { key, kind: "tool-call", callId: id, name, custom, choice };
  if (!state.born) from.blocks.write(out, spec);
  state.born = true;
  for (const payload of state.early) from.blocks.write(out, spec, payload);
  state.early.length = 0;
}
