// The canonical request: the one form in which requests of every dialect meet, and the vocabulary of its parts.
// Dialects refuse what they cannot carry, by name; unknown fields ride along in `extra`/`extras`.

export type DialectName = "openai-chat" | "openai-responses" | "anthropic" | "gemini";

export const DIALECT_NAMES: readonly DialectName[] = [
  "openai-chat",
  "openai-responses",
  "anthropic",
  "gemini",
];

export type JsonObject = Record<string, unknown>;

/** Where a picture, sound or document is: inline, behind an address, or stored with one provider. */
export type MediaSource =
  | { kind: "base64"; mime: string; data: string }
  | { kind: "url"; url: string; mime?: string }
  | { kind: "stored"; id: string; dialect: DialectName; mime?: string };

/** A provider's proof over thinking or a tool call; only its own dialect can verify it. */
export interface Signature {
  dialect: DialectName;
  value: string;
}

/** Marks the end of a cacheable prefix (Anthropic's cache_control, verbatim). */
type CacheMark = JsonObject;

interface PartBase {
  /** Unknown wire fields of the part; written again only towards the dialect the request came from. */
  extra?: JsonObject;
  cache?: CacheMark;
}

interface TextPart extends PartBase {
  type: "text";
  text: string;
  /** Text the model gave as a refusal, in an assistant message. */
  refusal?: boolean;
  /** Gemini signs ordinary text parts too. */
  signature?: Signature;
}
export interface ImagePart extends PartBase {
  type: "image";
  source: MediaSource;
  detail?: string;
  signature?: Signature;
}
export interface AudioPart extends PartBase {
  type: "audio";
  source: MediaSource;
}
export interface FilePart extends PartBase {
  type: "file";
  /** `text` holds plain-text documents that travel unencoded. */
  source: MediaSource | { kind: "text"; text: string };
  name?: string;
}
export interface ThinkingPart extends PartBase {
  type: "thinking";
  text: string;
  signature?: Signature;
  /** Encrypted thinking: `signature.value` holds the payload, `text` is empty. */
  redacted?: boolean;
}
export interface ToolCallPart extends PartBase {
  type: "tool-call";
  id: string;
  name: string;
  /** Arguments as JSON text, exactly as the model wrote them (free text for custom tools). */
  input: string;
  custom?: boolean;
  signature?: Signature;
}
export interface ToolResultPart extends PartBase {
  type: "tool-result";
  id: string;
  /** Name of the called tool where the wire tells it; `toolNames` finds it otherwise. */
  name?: string;
  content: Part[];
  isError?: boolean;
  custom?: boolean;
  /** The wire had a bare string, or no content at all, in place of a list of parts. */
  bare?: "string" | "none";
  /** Gemini's result is an object, not text: kept verbatim beside its textual form. */
  value?: unknown;
}
/** Something only its own dialect understands: survives a round trip, refused or dropped by name elsewhere. */
export interface OpaquePart extends PartBase {
  type: "opaque";
  dialect: DialectName;
  /** Wire name, for refusals and the list of dropped things. */
  name: string;
  value: unknown;
  /** Only a record of what a hosted tool did: other dialects may leave it out (and list it). */
  droppable?: boolean;
}

export type Part =
  TextPart | ImagePart | AudioPart | FilePart | ThinkingPart | ToolCallPart | ToolResultPart | OpaquePart;

export type Role = "system" | "developer" | "user" | "assistant" | "tool";

export interface Message {
  role: Role;
  parts: Part[];
  /** System text that came in the request's own field (system, instructions, systemInstruction). */
  topLevel?: boolean;
  /** The wire had a bare string (or null) in place of a list of parts. */
  bare?: "string" | "null";
  name?: string;
  extra?: JsonObject;
}

export interface FunctionTool {
  type: "function";
  name: string;
  description?: string;
  /** JSON Schema of the arguments; absent stays absent. */
  schema?: unknown;
  strict?: boolean;
  cache?: CacheMark;
  extra?: JsonObject;
}
export interface CustomTool {
  type: "custom";
  name: string;
  description?: string;
  format?: unknown;
  extra?: JsonObject;
}
export type HostedKind = "web-search" | "code-execution" | "url-context" | "file-search" | "other";
/** A tool that the provider runs itself; `value` is the wire form in its own dialect. */
export interface HostedTool {
  type: "hosted";
  hosted: HostedKind;
  name: string;
  dialect: DialectName;
  value: JsonObject;
}
export type Tool = FunctionTool | CustomTool | HostedTool;

export type ToolChoice =
  | { mode: "auto" | "none" | "any" }
  | { mode: "tool"; name: string; custom?: boolean }
  | { mode: "allowed"; names: string[]; required: boolean }
  | { mode: "hosted"; dialect: DialectName; value: unknown };

type ResponseFormat =
  | { type: "text" }
  | { type: "json" }
  | { type: "json-schema"; name?: string; schema?: unknown; strict?: boolean; description?: string };

/** How hard the model shall think: by effort word, by token budget, or both as the client said it. */
export interface Reasoning {
  effort?: string;
  budgetTokens?: number;
  /** "off" and "adaptive" are explicit choices; absent means the client did not say. */
  mode?: "on" | "off" | "adaptive";
  /** Whether thoughts shall be shown, in the client's own word where it has several. */
  summary?: string;
  extra?: JsonObject;
}

export interface Settings {
  maxOutputTokens?: number;
  temperature?: number;
  topP?: number;
  topK?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  seed?: number;
  stop?: string[];
  /** Number of answers asked for. */
  n?: number;
  logprobs?: boolean;
  topLogprobs?: number;
  parallelToolCalls?: boolean;
  endUser?: string;
  metadata?: JsonObject;
  serviceTier?: string;
  verbosity?: string;
  modalities?: string[];
  /** Voice and format of spoken answers, verbatim. */
  speech?: unknown;
}

export interface CanonicalRequest {
  /** The dialect the request was written in. */
  dialect: DialectName;
  model: string;
  stream?: boolean;
  /** The client asked for usage inside the stream (only chat completions has the switch). */
  streamUsage?: boolean;
  messages: Message[];
  settings: Settings;
  tools?: Tool[];
  toolChoice?: ToolChoice;
  responseFormat?: ResponseFormat;
  reasoning?: Reasoning;
  /** Top-level fields without a canonical place, by dialect; the rest of the wire survives here. */
  extras: Partial<Record<DialectName, JsonObject>>;
  /** Names of extras that change what is asked for: a foreign encoder refuses them, it never drops them. */
  mustCarry: string[];
  /**
   * Extras that only repeat, in the wire's own form, what also has a canonical place: they win on the way home and
   * are nothing lost elsewhere. `alsoLost` names what was inside them without a canonical place.
   */
  ownForms?: string[];
  alsoLost?: string[];
  /** Names of what could not be read back: told, whoever is asked. */
  unread?: string[];
  /** Which of several spellings the client used for a setting, for the way back into its own dialect. */
  spelling?: Record<string, string>;
}

/** A request body for an upstream, and the names of what could not be said in its dialect. */
export interface EncodedRequest {
  body: JsonObject;
  dropped: string[];
}

/** Tool names by call id, for dialects whose results must repeat the name. */
export function toolNames(messages: readonly Message[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const message of messages) {
    for (const part of message.parts) if (part.type === "tool-call") names.set(part.id, part.name);
  }
  return names;
}
