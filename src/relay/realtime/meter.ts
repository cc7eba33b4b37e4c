// What a realtime session consumed: the usage of each response, and a count of both directions for when none is reported.
// Refuses to keep sound, which is counted by its length, and more text of a turn than an estimate needs.
import type { JsonObject } from "../../protocol/canonical.ts";
import { asList, asObject, asString, parseJson } from "../../protocol/json.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { estimateFromLengths } from "../meter/token-count.ts";
import type { TokenCounter } from "../meter/token-count.ts";

/** A frame of the protocol, read as far as metering needs it. */
export interface RealtimeEvent {
  type: string;
  /** Absent for frames of sound, which are not parsed. */
  json?: JsonObject;
  /** Bytes of sound that the frame carries. */
  audioBytes?: number;
}

/**
 * Frames of sound are by far the most and the largest; they are known by how they begin. Quotes inside of texts are
 * escaped, so that no text can look like a frame of its own.
 */
const AUDIO_FRAME =
  /^\{\s*(?:"event_id"\s*:\s*"[^"\\]*"\s*,\s*)?"type"\s*:\s*"(response\.(?:output_)?audio\.delta|input_audio_buffer\.append)"/;
const HEAD_CHARS = 256;

function base64Bytes(chars: number): number {
  return Math.floor((chars * 3) / 4);
}

/** Length of the text that stands behind a key, without reading it; undefined when the frame looks different. */
function lengthOf(text: string, key: string): number | undefined {
  const at = text.indexOf(`"${key}"`);
  if (at === -1) return undefined;
  const from = text.indexOf('"', at + key.length + 2);
  const to = from === -1 ? -1 : text.indexOf('"', from + 1);
  return to === -1 ? undefined : to - from - 1;
}

/** The event in a text frame; undefined for anything else, which is relayed all the same. */
export function readEvent(text: string): RealtimeEvent | undefined {
  const audio = AUDIO_FRAME.exec(text.slice(0, HEAD_CHARS));
  if (audio) {
    const type = audio[1] ?? "";
    const chars = lengthOf(text, type === "input_audio_buffer.append" ? "audio" : "delta");
    if (chars !== undefined) return { type, audioBytes: base64Bytes(chars) };
  }
  const json = asObject(parseJson(text));
  const type = asString(json?.["type"]);
  if (json === undefined || type === undefined) return undefined;
  const sound =
    type === "input_audio_buffer.append" ? json["audio"] : isAudioDelta(type) ? json["delta"] : "";
  return typeof sound === "string" && sound !== ""
    ? { type, json, audioBytes: base64Bytes(sound.length) }
    : { type, json };
}

function isAudioDelta(type: string): boolean {
  return type === "response.audio.delta" || type === "response.output_audio.delta";
}

const TEXT_DELTAS: ReadonlySet<string> = new Set([
  "response.text.delta",
  "response.output_text.delta",
  "response.audio_transcript.delta",
  "response.output_audio_transcript.delta",
  "response.function_call_arguments.delta",
]);

/**
 * Usage of a response.done (also of a finished transcription), or null when it tells none. input_tokens contain cached,
 * audio and image tokens. Cached sound counts as sound: no provider's price list is the same for it, and the documented
 * formula knows one price per token of sound.
 */
export function decodeRealtimeUsage(raw: unknown): Usage | null {
  const wire = asObject(raw);
  if (!wire) return null;
  const input = asObject(wire["input_token_details"] ?? wire["input_tokens_details"]);
  const output = asObject(wire["output_token_details"] ?? wire["output_tokens_details"]);
  let left = boundedCount(wire["input_tokens"]);
  const completion = boundedCount(wire["output_tokens"]);
  if (left === 0 && completion === 0) {
    left = boundedCount(wire["total_tokens"]);
    if (left === 0) return null;
  }
  const take = (value: unknown): number => {
    const count = Math.min(boundedCount(value), left);
    left -= count;
    return count;
  };
  const usage = emptyUsage();
  usage.raw = raw;
  usage.input.audio = take(input?.["audio_tokens"]);
  usage.input.image = take(input?.["image_tokens"]);
  const cachedText = asObject(input?.["cached_tokens_details"])?.["text_tokens"];
  usage.input.cacheRead = take(cachedText ?? input?.["cached_tokens"]);
  usage.input.fresh = left;
  left = completion;
  usage.output.audio = take(output?.["audio_tokens"]);
  usage.output.text = left;
  return usage;
}

/** Tokens of a transcription that is billed by time: 1000 a minute, of whole seconds. */
function durationUsage(seconds: unknown): Usage | null {
  if (typeof seconds !== "number" || !(seconds > 0)) return null;
  const usage = emptyUsage();
  usage.input.fresh = boundedCount(Math.round((Math.ceil(seconds) / 60) * 1000));
  usage.raw = { type: "duration", seconds };
  return usage;
}

/** Documented rates of the local count: tokens of sound per second, input and output. */
const INPUT_TOKENS_PER_SECOND = 100 / 0.06 / 60;
const OUTPUT_TOKENS_PER_SECOND = 200 / 0.24 / 60;
const PCM_RATE = 24_000;
const BYTES_PER_SAMPLE = 2;
const G711_BYTES_PER_SECOND = 8000;
const IMAGE_TOKENS = 85;
const TOKENS_PER_TOOL = 8;
/** Text of one turn that is kept for the encoder; what goes beyond is estimated from its length. */
const KEPT_CHARS = 64 * 1024;

function bytesPerSecond(format: unknown): number {
  const name = asString(format) ?? asString(asObject(format)?.["type"]) ?? "";
  if (/g711|pcmu|pcma/.test(name)) return G711_BYTES_PER_SECOND;
  const rate = boundedCount(asObject(format)?.["rate"]);
  return (rate >= 8000 && rate <= 48_000 ? rate : PCM_RATE) * BYTES_PER_SAMPLE;
}

/** Texts of one direction: the texts themselves up to a bound, the lengths of what goes beyond. */
class TextTally {
  #kept: string[] = [];
  #keptChars = 0;
  #chars = 0;
  #bytes = 0;

  add(value: unknown): void {
    if (typeof value !== "string" || value === "") return;
    if (this.#keptChars + value.length <= KEPT_CHARS) {
      this.#kept.push(value);
      this.#keptChars += value.length;
      return;
    }
    this.#chars += value.length;
    this.#bytes += Buffer.byteLength(value);
  }

  get isEmpty(): boolean {
    return this.#keptChars + this.#chars === 0;
  }

  quick(): number {
    return Math.ceil(this.#keptChars / 4) + estimateFromLengths(this.#chars, this.#bytes);
  }

  async exact(counter: TokenCounter, model: string): Promise<number> {
    if (this.isEmpty) return 0;
    const text = this.#kept.join("");
    const counted = text === "" ? 0 : await counter.count([text], model);
    const known = counted ?? estimateFromLengths(text.length, Buffer.byteLength(text));
    return known + estimateFromLengths(this.#chars, this.#bytes);
  }

  clear(): void {
    if (this.#kept.length > 0) this.#kept = [];
    this.#keptChars = this.#chars = this.#bytes = 0;
  }
}

/** Whether the frame carries a part of an answer. */
export function isOutput({ type, audioBytes }: RealtimeEvent): boolean {
  return audioBytes !== undefined || TEXT_DELTAS.has(type);
}

/** What ended a turn, and the usage that the upstream reported. */
export interface TurnEnd {
  id: string;
  usage: Usage | null;
}

/** Counts both directions of a session, turn by turn. */
export class TurnMeter {
  #inputRate = PCM_RATE * BYTES_PER_SAMPLE;
  #outputRate = PCM_RATE * BYTES_PER_SAMPLE;
  #input = new TextTally();
  #output = new TextTally();
  #inputSeconds = 0;
  #outputSeconds = 0;
  #images = 0;
  #tools: unknown[] = [];
  #isFirst = true;
  #isTranscription: boolean;
  /** Responses under way. */
  #running = 0;
  /** The session's own limit on the tokens of a response; undefined = none. */
  outputLimit: number | undefined;
  /** performance.now() when the running response began, and when its first output came; 0 = not yet. */
  startedMs = 0;
  firstOutputMs = 0;

  constructor(isTranscription: boolean) {
    this.#isTranscription = isTranscription;
  }

  /** Output was seen since the last turn ended; a session that only transcribes delivers what it hears. */
  get sawOutput(): boolean {
    if (this.firstOutputMs !== 0) return true;
    return this.#isTranscription && this.#inputSeconds > 0;
  }

  get isResponding(): boolean {
    return this.#running > 0;
  }

  /** A frame of the client. */
  client({ type, json, audioBytes }: RealtimeEvent): void {
    if (audioBytes !== undefined) this.#inputSeconds += audioBytes / this.#inputRate;
    else if (type === "session.update") {
      const session = asObject(json?.["session"]);
      this.#readSession(session);
      this.#input.add(session?.["instructions"]);
      if (Array.isArray(session?.["tools"])) this.#tools = session["tools"] as unknown[];
    } else if (type === "conversation.item.create") this.#countItem(asObject(json?.["item"]));
    else if (type === "response.create") {
      const response = asObject(json?.["response"]);
      this.#input.add(response?.["instructions"]);
      for (const item of asList(response?.["input"])) this.#countItem(asObject(item));
    }
  }

  /** A frame of the upstream; the answer tells that it ended a turn. */
  server({ type, json, audioBytes }: RealtimeEvent): TurnEnd | undefined {
    if (audioBytes !== undefined) {
      this.#outputSeconds += audioBytes / this.#outputRate;
      this.#sawFirstOutput();
    } else if (TEXT_DELTAS.has(type)) {
      this.#output.add(json?.["delta"]);
      this.#sawFirstOutput();
    } else if (type === "session.created" || type === "session.updated") {
      this.#readSession(asObject(json?.["session"]));
    } else if (type === "response.created") {
      this.#running += 1;
      if (this.startedMs === 0) this.startedMs = performance.now();
    } else if (type === "response.done") {
      this.#running = Math.max(0, this.#running - 1);
      const response = asObject(json?.["response"]);
      return { id: asString(response?.["id"]) ?? "", usage: decodeRealtimeUsage(response?.["usage"]) };
    } else if (
      this.#isTranscription &&
      type === "conversation.item.input_audio_transcription.completed" &&
      json !== undefined
    ) {
      const usage = asObject(json["usage"]);
      const isTimed = usage?.["type"] === "duration";
      return {
        id: asString(json["item_id"]) ?? "",
        usage: isTimed ? durationUsage(usage["seconds"]) : decodeRealtimeUsage(usage),
      };
    }
    return undefined;
  }

  #sawFirstOutput(): void {
    if (this.firstOutputMs === 0) this.firstOutputMs = performance.now();
  }

  /** Both generations of the protocol name their formats differently. */
  #readSession(session: JsonObject | undefined): void {
    if (!session) return;
    const audio = asObject(session["audio"]);
    const input = session["input_audio_format"] ?? asObject(audio?.["input"])?.["format"];
    const output = session["output_audio_format"] ?? asObject(audio?.["output"])?.["format"];
    const limit = session["max_response_output_tokens"] ?? session["max_output_tokens"];
    if (limit !== undefined) this.outputLimit = typeof limit === "number" && limit > 0 ? limit : undefined;
    if (input !== undefined) this.#inputRate = bytesPerSecond(input);
    if (output !== undefined) this.#outputRate = bytesPerSecond(output);
    if (session["type"] === "transcription" || session["object"] === "realtime.transcription_session")
      this.#isTranscription = true;
  }

  #countItem(item: JsonObject | undefined): void {
    this.#input.add(item?.["output"]);
    for (const value of asList(item?.["content"])) {
      const part = asObject(value);
      this.#input.add(part?.["text"]);
      const audio = part?.["audio"];
      if (typeof audio === "string") this.#inputSeconds += base64Bytes(audio.length) / this.#inputRate;
      if (part?.["type"] === "input_image") this.#images += 1;
    }
  }

  /** Tools go along with every response, but are not counted before the first. */
  #toolText(): string {
    return this.#isFirst ? "" : this.#tools.map((tool) => JSON.stringify(tool)).join("");
  }

  #usage(inputText: number, outputText: number): Usage {
    const usage = emptyUsage();
    usage.input.fresh = boundedCount(inputText + (this.#isFirst ? 0 : TOKENS_PER_TOOL * this.#tools.length));
    usage.input.audio = boundedCount(this.#inputSeconds * INPUT_TOKENS_PER_SECOND);
    usage.input.image = this.#images * IMAGE_TOKENS;
    usage.output.text = boundedCount(outputText);
    usage.output.audio = boundedCount(this.#outputSeconds * OUTPUT_TOKENS_PER_SECOND);
    usage.estimated = true;
    return usage;
  }

  /** A rough count of the running turn with what a frame would add to it: no encoder, no waiting. */
  quick(next?: RealtimeEvent): Usage {
    const usage = this.#usage(this.#input.quick(), this.#output.quick());
    if (!next) return usage;
    if (next.audioBytes !== undefined) {
      const seconds = this.#outputSeconds + next.audioBytes / this.#outputRate;
      usage.output.audio = boundedCount(Math.ceil(seconds * OUTPUT_TOKENS_PER_SECOND));
    } else {
      const delta = next.json?.["delta"];
      // A token has at least one byte, and rarely less than two letters.
      if (typeof delta === "string") usage.output.text += Math.ceil(delta.length / 2);
    }
    return usage;
  }

  /** The running turn, its texts counted by the encoder. */
  async count(counter: TokenCounter, model: string): Promise<Usage> {
    const tools = this.#toolText();
    if (tools !== "") this.#input.add(tools);
    const [input, output] = await Promise.all([
      this.#input.exact(counter, model),
      this.#output.exact(counter, model),
    ]);
    return this.#usage(input, output);
  }

  /** A turn was billed: the next begins empty. */
  next(): void {
    this.#isFirst = false;
    this.#input.clear();
    this.#output.clear();
    this.#inputSeconds = this.#outputSeconds = this.#images = 0;
    this.startedMs = this.firstOutputMs = 0;
  }
}
