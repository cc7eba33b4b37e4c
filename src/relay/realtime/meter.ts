// What a realtime session consumed: the usage of each response and of each transcription, and a count of both directions
// for when none is reported. Refuses to keep sound, which is counted by its length.
import type { JsonObject } from "../../protocol/canonical.ts";
import { asList, asObject, asString, parseJson } from "../../protocol/json.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { TokenCounter } from "../meter/token-count.ts";
import { decodeRealtimeUsage, durationUsage, usageOfBoth } from "./reported-usage.ts";
import { TextTally } from "./text-tally.ts";
import { kindOf, namedTranscribers } from "./transcriber.ts";

/** A frame of the protocol, read as far as metering needs it. */
export interface RealtimeEvent {
  type: string;
  /** Absent for frames of sound, which are not parsed. */
  json?: JsonObject;
  /** Bytes of sound that the frame carries. */
  audioBytes?: number;
}

const BESIDE = String.raw`(?:"(?:event_id|response_id|item_id|output_index|content_index)"\s*:\s*(?:"[^"\\]*"|\d+)\s*,\s*)*`;
/**
 * Frames of sound are by far the most and the largest; they are known by how they begin, up to where the sound does. Nothing else may
 * stand there or behind it: of a member that stands twice the upstream reads the last.
 */
const AUDIO_FRAME = new RegExp(
  String.raw`^\{\s*${BESIDE}"type"\s*:\s*"(?:(response\.(?:output_)?audio\.delta)"\s*,\s*${BESIDE}"delta"|(input_audio_buffer\.append)"\s*,\s*${BESIDE}"audio")\s*:\s*"`,
);
const HEAD_CHARS = 512;
const REST = /\s*\}\s*$/y;

function base64Bytes(chars: number): number {
  return Math.floor((chars * 3) / 4);
}

/** The event in a text frame; undefined for anything else, which is relayed all the same. */
export function readEvent(text: string): RealtimeEvent | undefined {
  const audio = AUDIO_FRAME.exec(text.slice(0, HEAD_CHARS));
  if (audio) {
    const [head, delta, append] = audio;
    const end = text.indexOf('"', head.length);
    REST.lastIndex = end + 1;
    if (end !== -1 && REST.test(text))
      return { type: delta ?? append ?? "", audioBytes: base64Bytes(end - head.length) };
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

/** Documented rates of the local count: tokens of sound per second, input and output. */
const INPUT_TOKENS_PER_SECOND = 100 / 0.06 / 60;
const OUTPUT_TOKENS_PER_SECOND = 200 / 0.24 / 60;

/** Tokens of a second of sound, as upstreams count it where they transcribe it: 600 a minute. */
const HEARD_TOKENS_PER_SECOND = 10;

/** A transcription beside responses that is billed by time, by a model without a price: its sound, at the session's price. */
function soundUsage(wire: JsonObject | undefined): Usage | null {
  const seconds = wire?.["seconds"];
  if (typeof seconds !== "number" || !(seconds > 0)) return null;
  const usage = emptyUsage();
  usage.input.audio = boundedCount(Math.ceil(seconds) * HEARD_TOKENS_PER_SECOND);
  usage.raw = { type: "duration", seconds };
  return usage;
}

const PCM_RATE = 24_000;
const BYTES_PER_SAMPLE = 2;
const G711_BYTES_PER_SECOND = 8000;
const IMAGE_TOKENS = 85;
const TOKENS_PER_TOOL = 8;

function bytesPerSecond(format: unknown): number {
  const name = asString(format) ?? asString(asObject(format)?.["type"]) ?? "";
  if (/g711|pcmu|pcma/.test(name)) return G711_BYTES_PER_SECOND;
  const rate = boundedCount(asObject(format)?.["rate"]);
  return (rate >= 8000 && rate <= 48_000 ? rate : PCM_RATE) * BYTES_PER_SAMPLE;
}

/** Parts of a transcription, by the member that holds their words. */
const HEARD_PARTS: ReadonlyMap<string, string> = new Map([
  ["conversation.item.input_audio_transcription.delta", "delta"],
  ["conversation.item.input_audio_transcription.segment", "text"],
]);
const HEARD = "conversation.item.input_audio_transcription.completed";
/** The upstream has begun to write something down. */
const COMMITTED = "input_audio_buffer.committed";

/** How a session is set up, in both generations of the protocol. */
const ASKED: ReadonlySet<string> = new Set(["session.update", "transcription_session.update"]);
const TOLD: ReadonlySet<string> = new Set([
  "session.created",
  "session.updated",
  "transcription_session.created",
  "transcription_session.updated",
]);

/** Whether the frame carries a part of an answer, or of what was heard. */
export function isOutput({ type, audioBytes }: RealtimeEvent): boolean {
  return audioBytes !== undefined || TEXT_DELTAS.has(type) || HEARD_PARTS.has(type);
}

/** What ended a turn, and the usage that the upstream reported. */
export interface TurnEnd {
  id: string;
  usage: Usage | null;
  /** Absent: it is the turn that ended. Else this is a transcription, charged by itself at this model's price. */
  transcriber?: string;
}

/** A transcription with a price of its own. */
export interface HeardEnd extends TurnEnd {
  usage: Usage;
  transcriber: string;
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
  /** What was transcribed since the last turn ended, beside responses: its usage, and the seconds of sound that it covers. */
  #heard: Usage | undefined;
  #heardSeconds = 0;
  /** The transcription that was read last; some are told twice. */
  #heardId = "";
  /** Part of what was heard was counted here: the row says so, and the usage of a response beside it stands. */
  guessesHeard = false;
  /** The model that transcribes what goes in; undefined: none was named. */
  #transcriber: string | undefined;
  /** It is the upstream's word: what a client asks for may be refused there. */
  #isTranscriberTold = false;
  /** The upstream told what a response of the turn took. */
  #isAnswered = false;
  /** Text of a transcription that has not come to its end. */
  #hearing = new TextTally();
  /** Responses under way. */
  #running = 0;
  /** The session's own limit on the tokens of a response; undefined = none. */
  outputLimit: number | undefined;
  /** performance.now() when the running response began, and when its first output came; 0 = not yet. */
  startedMs = 0;
  firstOutputMs = 0;
  /** performance.now() of the first sign that something is being written down; 0 = none. */
  #hearingMs = 0;

  /**
   * `isPriced` tells whether a model that transcribes has a price of its own; `ownModel` is the session's, as its upstream
   * knows it: what that one writes down has the session's price.
   */
  constructor(
    isTranscription: boolean,
    private readonly isPriced: (transcriber: string) => boolean = () => false,
    private readonly ownModel = "",
  ) {
    this.#isTranscription = isTranscription;
  }

  /** The session delivers what it hears, and no responses. */
  get isTranscription(): boolean {
    return this.#isTranscription;
  }

  /** performance.now() when the running turn showed its first sign; 0 = none yet. */
  get beganMs(): number {
    return this.startedMs === 0 ? this.#hearingMs : this.startedMs;
  }

  /** Of a session that only transcribes: the upstream told that another model than the session's own does it. */
  get #isAnothers(): boolean {
    return this.#isTranscriberTold && this.#transcriber !== this.ownModel;
  }

  /** Sound went in that nobody has written down yet. */
  get #isUnheard(): boolean {
    return this.#inputSeconds > this.#heardSeconds;
  }

  /** The turn holds transcriptions and no answer: a price of the call is not due. */
  get isOnlyHeard(): boolean {
    // A session that only transcribes keeps what could not be charged by itself.
    const isHeard = this.#heard !== undefined || (!this.#hearing.isEmpty && !this.#isTranscription);
    return isHeard && this.firstOutputMs === 0 && !this.#isAnswered;
  }

  /** Output was seen since the last turn ended, what was heard too; a session that only transcribes delivers what it hears. */
  get sawOutput(): boolean {
    if (this.firstOutputMs !== 0 || this.#heard || !this.#hearing.isEmpty) return true;
    return this.#isTranscription && this.#isUnheard;
  }

  /** What the upstream reported of a turn that is over before its end; null where more was delivered than that. */
  get reported(): Usage | null {
    const isAll = this.firstOutputMs === 0 && this.#hearing.isEmpty;
    return isAll ? (this.#heard ?? null) : null;
  }

  get isResponding(): boolean {
    return this.#running > 0;
  }

  /** A frame of the client. */
  client({ type, json, audioBytes }: RealtimeEvent): void {
    if (audioBytes !== undefined) this.#inputSeconds += audioBytes / this.#inputRate;
    else if (ASKED.has(type)) {
      const session = asObject(json?.["session"]);
      this.#readSession(session);
      if (!this.#isTranscriberTold) this.#transcriber = namedTranscribers(session)[0] ?? this.#transcriber;
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
    } else if (TOLD.has(type)) {
      const session = asObject(json?.["session"]);
      this.#readSession(session);
      const [told] = namedTranscribers(session);
      if (told !== undefined) this.#isTranscriberTold = true;
      this.#transcriber = told ?? this.#transcriber;
      // What a client asks for may be refused.
      this.#isTranscription = kindOf(session) ?? this.#isTranscription;
    } else if (type === "response.created") {
      this.#running += 1;
      if (this.startedMs === 0) this.startedMs = performance.now();
    } else if (type === "response.done") {
      this.#running = Math.max(0, this.#running - 1);
      const response = asObject(json?.["response"]);
      const usage = decodeRealtimeUsage(response?.["usage"]);
      if (usage) this.#isAnswered = true;
      return {
        id: asString(response?.["id"]) ?? "",
        usage: usage ? usageOfBoth(this.#heard, usage) : this.reported,
      };
    } else if (HEARD_PARTS.has(type)) {
      this.#beginsHearing();
      this.#hearing.add(json?.[HEARD_PARTS.get(type) ?? ""]);
    } else if (type === COMMITTED) this.#beginsHearing();
    else if (type === HEARD && json !== undefined) return this.#hear(json);
    return undefined;
  }

  /**
   * A transcription that is finished. Beside responses it goes with the one that is under way or comes next. Where another
   * follows it before any response, this may be a session that never answers: both are a turn of their own.
   */
  #hear(json: JsonObject): TurnEnd | undefined {
    const item = asString(json["item_id"]) ?? "";
    const part = boundedCount(json["content_index"]);
    const id = part === 0 ? item : `${item}/${part}`;
    const wire = asObject(json["usage"]);
    const isTimed = wire?.["type"] === "duration";
    const reported = isTimed ? durationUsage(wire["seconds"]) : decodeRealtimeUsage(wire);
    if (this.#isTranscription) {
      const priced = this.#isAnothers ? this.#pricedHeard(id, reported) : undefined;
      if (priced) return priced;
      this.#hearing.clear();
      return { id, usage: reported };
    }
    if (id !== "" && id === this.#heardId) return undefined;
    this.#heardId = id;
    const priced = this.#pricedHeard(id, reported);
    if (priced) return priced;
    const before = this.#heard;
    const usage = (isTimed ? soundUsage(wire) : decodeRealtimeUsage(wire)) ?? this.#unreported(json);
    this.#heard = usageOfBoth(before, usage);
    this.#heardSeconds = this.#inputSeconds;
    this.#hearing.clear();
    const isAlone = before !== undefined && this.#running === 0 && this.firstOutputMs === 0;
    return isAlone ? { id, usage: this.#heard } : undefined;
  }

  /**
   * What was heard as a transcription of its own, by whose model it has a price. Where nobody says what it took it is the
   * sound since the last one, counted as a recording is that is sent by itself.
   */
  #pricedHeard(id: string, reported: Usage | null): HeardEnd | undefined {
    const transcriber = this.#transcriber;
    if (transcriber === undefined || !this.isPriced(transcriber)) return undefined;
    const usage = reported ?? durationUsage(Math.max(1, this.#inputSeconds - this.#heardSeconds));
    if (!usage) return undefined;
    if (!reported) usage.estimated = true;
    this.#heardSeconds = this.#inputSeconds;
    this.#hearing.clear();
    this.#hearingMs = 0;
    return { id, usage, transcriber };
  }

  /** What was heard in part only when the session ends, where it has a price of its own; it is not counted again. */
  cutHearing(): HeardEnd | undefined {
    const isCut = this.#isTranscription ? this.#isAnothers && this.#isUnheard : !this.#hearing.isEmpty;
    return isCut ? this.#pricedHeard("", null) : undefined;
  }

  /** Goes with the turn, as what has no price of its own: as sound where it was told by its length. */
  keepHeard(usage: Usage): void {
    const raw = asObject(usage.raw);
    const kept = (raw?.["type"] === "duration" ? soundUsage(raw) : null) ?? usage;
    if (usage.estimated === true) this.guessesHeard = true;
    this.#heard = usageOfBoth(this.#heard, kept);
  }

  /** A transcription of which nobody says what it took: the sound since the last one, and its words. */
  #unreported(json: JsonObject): Usage {
    const words = new TextTally();
    words.add(json["transcript"]);
    const usage = emptyUsage();
    usage.input.audio = boundedCount((this.#inputSeconds - this.#heardSeconds) * HEARD_TOKENS_PER_SECOND);
    usage.output.text = boundedCount(words.quick());
    this.guessesHeard = true;
    return usage;
  }

  #beginsHearing(): void {
    if (this.#hearingMs === 0) this.#hearingMs = performance.now();
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
    // What was transcribed is read again by a response only.
    const known = this.firstOutputMs === 0 ? this.#heardSeconds : 0;
    const rate = this.isOnlyHeard ? HEARD_TOKENS_PER_SECOND : INPUT_TOKENS_PER_SECOND;
    usage.input.audio = boundedCount((this.#inputSeconds - known) * rate);
    usage.input.image = this.#images * IMAGE_TOKENS;
    usage.output.text = boundedCount(outputText);
    usage.output.audio = boundedCount(this.#outputSeconds * OUTPUT_TOKENS_PER_SECOND);
    usage.estimated = true;
    return usageOfBoth(this.#heard, usage);
  }

  /** A rough count of the running turn with what a frame would add to it: no encoder, no waiting. */
  quick(next?: RealtimeEvent): Usage {
    const usage = this.#usage(this.#input.quick(), this.#output.quick() + this.#hearing.quick());
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
    const [input, output, hearing] = await Promise.all([
      this.#input.exact(counter, model),
      this.#output.exact(counter, model),
      this.#hearing.exact(counter, model),
    ]);
    return this.#usage(input, output + hearing);
  }

  /**
   * A turn was billed: the next begins empty. `isHeard`: only what was heard; what a response is still to read is not billed yet.
   */
  next(isHeard = false): void {
    this.#hearing.clear();
    this.#heard = undefined;
    this.guessesHeard = this.#isAnswered = false;
    this.startedMs = this.firstOutputMs = this.#hearingMs = 0;
    if (isHeard) return;
    this.#isFirst = false;
    this.#input.clear();
    this.#output.clear();
    this.#inputSeconds = this.#outputSeconds = this.#images = 0;
    this.#heardSeconds = 0;
  }
}
