// Which frames of a stream say nothing of the answer yet, by dialect: its beginning, empty blocks, signs of life, and an
// ordinary end with nothing before it. As long as nothing else came, another upstream can still be asked.
import { isBlank } from "./assemble.ts";
import type { DialectName, JsonObject } from "./canonical.ts";
import type { WireFrame } from "./dialect.ts";
import { asList, asObject, asString, parseJson } from "./json.ts";
import { finishFromWire } from "./openai-chat/wire.ts";

/** True for a frame without a word of the answer: no text, thinking, call, refusal, medium, or telling end. */
export const SAYS_NOTHING: Readonly<Record<DialectName, (frame: WireFrame) => boolean>> = {
  "openai-chat": ({ data }) => asList(wireOf(data)?.["choices"]).every(isEmptyChoice),
  "openai-responses": (frame) => isEmptyEvent(wireOf(frame.data), frame.event),
  anthropic: (frame) => isEmptyMessageEvent(wireOf(frame.data), frame.event),
  gemini: ({ data }) => asList(wireOf(data)?.["candidates"]).every(isEmptyCandidate),
};

/** Whether a whole chat completion, or an elder one, says anything by the same rule. */
export const completionSays = (json: JsonObject): boolean =>
  !asList(json["choices"]).every((choice) => isEmptyChoice(choice));

/** Some proxies of Gemini put each chunk into a list. */
function wireOf(data: string): JsonObject | undefined {
  const parsed = parseJson(data);
  return asObject(Array.isArray(parsed) ? parsed[0] : parsed);
}

function isNothing(value: unknown): boolean {
  return isBlank(value) || value === "";
}

/** Whether nothing but these members says anything. */
function isEmptyBut(object: JsonObject | undefined, members: ReadonlySet<string>): boolean {
  for (const key in object) if (!members.has(key) && !isNothing(object[key])) return false;
  return true;
}

const ROLE: ReadonlySet<string> = new Set(["role"]);
const THOUGHT: ReadonlySet<string> = new Set(["thought"]);
const TYPE: ReadonlySet<string> = new Set(["type"]);

/** Also of the elder completions, whose choices carry `text`. */
function isEmptyChoice(value: unknown): boolean {
  const choice = asObject(value);
  const reason = asString(choice?.["finish_reason"]);
  if (reason !== undefined && reason !== "" && finishFromWire(reason) !== "stop") return false;
  const delta = asObject(choice?.["delta"]) ?? asObject(choice?.["message"]);
  return isNothing(choice?.["text"]) && isEmptyBut(delta, ROLE);
}

function isEmptyCandidate(value: unknown): boolean {
  const candidate = asObject(value);
  const reason = asString(candidate?.["finishReason"]);
  if (reason !== undefined && reason !== "STOP") return false;
  return asList(asObject(candidate?.["content"])?.["parts"]).every((part) =>
    isEmptyBut(asObject(part), THOUGHT),
  );
}

/** Blocks that may turn out empty; any other one is an act of the model. */
const TEXT_BLOCKS: ReadonlySet<unknown> = new Set(["text", "thinking"]);

function isEmptyMessageEvent(wire: JsonObject | undefined, event: string): boolean {
  const type = asString(wire?.["type"]) ?? event;
  switch (type) {
    case "message_start":
      return isNothing(asObject(wire?.["message"])?.["content"]);
    case "content_block_start": {
      const block = asObject(wire?.["content_block"]);
      return TEXT_BLOCKS.has(block?.["type"]) && isEmptyBut(block, TYPE);
    }
    case "content_block_delta":
      return isEmptyBut(asObject(wire?.["delta"]), TYPE);
    case "message_delta": {
      const reason = asString(asObject(wire?.["delta"])?.["stop_reason"]);
      return reason === undefined || reason === "end_turn";
    }
    case "ping":
    case "content_block_stop":
    case "message_stop":
      return true;
    default:
      return type === "";
  }
}

const RESPONSE_LIFE: ReadonlySet<string> = new Set([
  "response.created",
  "response.in_progress",
  "response.queued",
  "response.keep_alive",
  "keepalive",
]);
/** Members of a Responses event besides what it says. */
const PLACES: ReadonlySet<string> = new Set([
  "type",
  "sequence_number",
  "item_id",
  "output_index",
  "content_index",
  "summary_index",
  "obfuscation",
]);

function isEmptyEvent(wire: JsonObject | undefined, event: string): boolean {
  const type = asString(wire?.["type"]) ?? event;
  if (!wire || type === "" || RESPONSE_LIFE.has(type)) return true;
  const item = asObject(wire["item"]);
  switch (type) {
    // What is announced of a reasoning item is no thought yet.
    case "response.output_item.added":
      return item?.["type"] === "reasoning" || isEmptyMessage(item);
    case "response.output_item.done":
      return isEmptyMessage(item);
    case "response.content_part.added":
    case "response.content_part.done":
    case "response.reasoning_summary_part.added":
      return isEmptyPart(wire["part"]);
    case "response.completed":
      return asList(asObject(wire["response"])?.["output"]).every((each) => isEmptyMessage(asObject(each)));
    default:
      return /\.(?:delta|text\.done)$/.test(type) && isEmptyBut(wire, PLACES);
  }
}

function isEmptyMessage(item: JsonObject | undefined): boolean {
  return item?.["type"] === "message" && asList(item["content"]).every(isEmptyPart);
}

function isEmptyPart(value: unknown): boolean {
  return isEmptyBut(asObject(value), TYPE);
}
