// What a wire dialect offers the gateway: optional pure halves, each usable without the others.
// Refuses I/O, clocks and randomness: those come in through the context arguments.
import type { Failure } from "../shared/failures.ts";
import type { Usage } from "../shared/usage.ts";
import type { Answer } from "./assemble.ts";
import type { CanonicalRequest, DialectName, EncodedRequest, JsonObject } from "./canonical.ts";
import type { CanonicalEvent } from "./events.ts";
import type { OpenItems, SealItems } from "./openai-responses/references.ts";

/** One server-sent event; `event` is "" when the wire named none. */
export interface WireFrame {
  event: string;
  data: string;
  /** Bytes of `data` as UTF-8, where they were counted. */
  dataBytes?: number;
  /** The event as it came, where its bytes were kept. */
  bytes?: Uint8Array;
}

export interface DecodeContext {
  /** Model and stream flag where the address carries them (Gemini); they win over the body. */
  model?: string;
  stream?: boolean;
  /** Responses: opens what earlier answers sealed into ids for this user (openai-responses/references.ts). */
  openItems?: OpenItems;
}

export interface EncodeContext {
  /** Model name for the upstream; the request's own when absent. */
  model?: string;
  /** Answer limit for dialects that require one (Anthropic) when the client named none. */
  defaultMaxOutputTokens?: number;
  /** Chat completions: which name the upstream knows for the answer limit; chosen by model name when absent. */
  maxTokensField?: "max_tokens" | "max_completion_tokens";
  /** Chat completions: the upstream wants earlier thinking back as reasoning_content (else it is dropped). */
  echoReasoning?: boolean;
  /** Anthropic: say reasoning strength as a thinking budget or as effort; chosen by model name when absent. */
  thinkingStyle?: "budget" | "effort";
}

export interface AnswerContext {
  /** Makes ids where the upstream gave none; called with a wire prefix such as "call_". */
  newId: (prefix: string) => string;
  nowSeconds: number;
  /** Model name the client shall see; the upstream's own when absent. */
  model?: string;
  /** The decoded client request, for dialects that echo parts of it. */
  request?: CanonicalRequest;
  /** Chat completions: whether the client asked for the usage chunk. Absent means yes. */
  includeUsage?: boolean;
  /** Gemini without alt=sse streams a JSON array. */
  framing?: "sse" | "json-array";
  /** Anthropic: our own estimate of the prompt, for a stream whose upstream tells no usage at its beginning. */
  promptTokens?: number;
  /** Responses: seals items into ids, where later requests may refer to them. */
  sealItems?: SealItems;
  /** Responses: the client refers to everything; else only answers with reasoning are sealed. */
  sealsAlways?: boolean;
  /** Renders the public text of a failure for the error frame; defaults to text or code. */
  failureText?: (failure: Failure) => string;
}

export interface StreamDecoder {
  /** Events of one wire frame; never throws on foreign data. */
  push: (frame: WireFrame) => CanonicalEvent[];
  /** The upstream closed: a broken-stream fail when its terminal event is missing, else what is still due. */
  end: () => CanonicalEvent[];
  /** Usage that was told on the way, for a stream that never comes to its end; null = none. */
  usageSoFar: () => Usage | null;
}

/** A decoder that also takes what was parsed already: whole answers are read through it without being written again. */
export interface WireDecoder extends StreamDecoder {
  /** Events of one parsed wire object; `event` is the frame's name where it had one. */
  read: (wire: JsonObject, event?: string) => CanonicalEvent[];
}

export interface StreamEncoder {
  /** Wire text for the client (complete frames), "" when the event says nothing in this dialect. */
  push: (event: CanonicalEvent) => string;
}

/** What a passthrough caller reads while the upstream's bytes go to the client untouched. */
export interface MeterState {
  /** Usage the upstream reported so far; null until then. Anthropic's grows during the stream. */
  usage: Usage | null;
  /** Reported numbers are final: not those of the beginning, nor those that a chunk carries on the way. */
  usageFinal: boolean;
  /** The dialect's terminal event was seen: the stream is whole. */
  ended: boolean;
  failure: Failure | null;
  /** Some model output (text, thinking or tool arguments) was seen. */
  sawText: boolean;
  /**
   * Something of the answer was seen that is no text: a medium, a proof, an act of the model, an end that says why. Known
   * by conversions, and for passed-through streams until their first content (life-cycle.ts).
   */
  sawOther: boolean;
  /** UTF-16 length of the model output so far: for estimates only. */
  textChars: number;
  /** The last frame carried nothing but usage: hold it back when only the gateway asked for it. */
  lastWasUsageOnly: boolean;
  /** Hosted tool calls counted from items; also put into `usage` when it is reported. */
  webSearchCalls: number;
  fileSearchCalls: number;
  /** Responses API: the finished response's id, which a later request may go on from. */
  responseId?: string;
  /** Service tier that the upstream says it served. */
  servedTier?: string;
}

export interface StreamMeter {
  readonly state: MeterState;
  push: (frame: WireFrame) => void;
  /**
   * In place of `push`, for the bytes of whole events: meters them without decoding them, where each is the last plain frame
   * again but for its text, of at most so many UTF-16 units together. Answers by how many bytes these texts are longer than
   * their UTF-16 length; -1 where the frames have to be pushed, and nothing was metered. Absent: every frame has to be.
   */
  skim?: ((bytes: Uint8Array, mostUnits: number) => number) | undefined;
}

export interface MeterOptions {
  /** Receives every output delta, for a caller that counts tokens itself. Costs a full parse per frame. */
  onText?: (delta: string) => void;
}

export interface EncodedFailure {
  status: number;
  body: unknown;
}

export interface Dialect {
  name: DialectName;
  /** Throws a client Failure on a body that is not of this dialect. */
  decodeRequest?: (body: unknown, context?: DecodeContext) => CanonicalRequest;
  /** Throws a client Failure that names what cannot be carried over. */
  encodeRequest?: (request: CanonicalRequest, context?: EncodeContext) => EncodedRequest;
  decodeStream?: (context: Pick<AnswerContext, "newId">) => StreamDecoder;
  encodeStream?: (context: AnswerContext) => StreamEncoder;
  /** A whole answer; throws the upstream's Failure when the body is an error object. */
  decodeAnswer?: (body: unknown, context: Pick<AnswerContext, "newId">) => Answer;
  encodeAnswer?: (answer: Answer, context: AnswerContext) => unknown;
  /** Reads an upstream's error answer; `body` is parsed JSON or text. */
  decodeFailure?: (status: number, body: unknown, retryAfter?: string | null) => Failure;
  /** The dialect's error envelope; `text` is the public sentence in the caller's language. */
  encodeFailure?: (failure: Failure, text: string) => EncodedFailure;
  meterStream?: (options?: MeterOptions) => StreamMeter;
  /** Reads the usage object of an answer; null when it reports nothing. */
  decodeUsage?: (raw: unknown) => Usage | null;
}

export function newMeterState(): MeterState {
  return {
    usage: null,
    usageFinal: false,
    ended: false,
    failure: null,
    sawText: false,
    sawOther: false,
    textChars: 0,
    lastWasUsageOnly: false,
    webSearchCalls: 0,
    fileSearchCalls: 0,
  };
}
