// The form of a provider's row: everything the relay has to know about a channel type, as data.
// Refuses behaviour: no fetch, no environment, no clock; the functions that read rows stand in the files beside it.
import type { DialectName } from "../protocol/canonical.ts";
import type { Localized, ProviderField, ProviderGroup, ProviderStatus } from "../shared/provider-forms.ts";

/** What a client asks for, whatever its dialect; each has one path of its own. */
export type Operation =
  | "chat"
  | "responses"
  | "messages"
  | "gemini"
  | "completions"
  | "embeddings"
  | "moderations"
  | "image-generations"
  | "image-edits"
  | "speech"
  | "transcriptions"
  | "translations"
  | "rerank"
  | "realtime";

/** Path of each operation at an upstream that is shaped like its inventor's; Gemini's is made from the model. */
export const OPERATION_PATHS: Readonly<Record<Operation, string>> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
  gemini: "/v1beta/models",
  completions: "/v1/completions",
  embeddings: "/v1/embeddings",
  moderations: "/v1/moderations",
  "image-generations": "/v1/images/generations",
  "image-edits": "/v1/images/edits",
  speech: "/v1/audio/speech",
  transcriptions: "/v1/audio/transcriptions",
  translations: "/v1/audio/translations",
  rerank: "/v1/rerank",
  realtime: "/v1/realtime",
};

/** Operations that carry the same conversation in four dialects; each can be served by each other one. */
export const CONVERSATIONS: readonly Operation[] = ["chat", "messages", "gemini", "responses"];

/** Which models a route takes; absent parts allow everything. */
export interface ModelRule {
  prefixes?: readonly string[];
  contains?: string;
  /** Models that the route does not take although the rest fits. */
  except?: RegExp;
}

/** Another address for certain models or hosts; the first that fits wins. */
interface RouteVariant {
  modelPrefix?: string;
  baseSuffix?: string;
  url: string;
}

/**
 * How one operation is served. Templates know {base} (no slash at its end), {path} (the call's path), {tail} (that
 * path behind /v1/), {query} (the client's query with its "?"), {model}, {other} (the channel's special field) and
 * {version} (see ProviderRow.version); values are escaped for a path.
 */
export interface Route {
  /** Dialect of body, answer and errors; "openai-chat" also stands for the OpenAI-shaped endpoints without dialogue. */
  dialect: DialectName;
  url: string;
  /** For streamed calls, where it differs. */
  streamUrl?: string;
  /** Where the provider counts the tokens of a prompt of this operation, for nothing; absent: it does not. */
  countUrl?: string;
  variants?: readonly RouteVariant[];
  models?: ModelRule;
  /** Folder entry of adapters/ that makes the request and reads the answer; absent: the row alone is enough. */
  adapter?: string;
  /** Dialect besides `dialect` whose clients' own bodies the adapter is handed, too (`AdapterCall.own`). */
  alsoSpeaks?: DialectName;
  /** Piece of the template that a base URL may already end with and that must not stand there twice. */
  once?: string;
}

/** How the channel's key is sent. An adapter signs or exchanges it. */
export type Auth =
  | { kind: "header"; name: string; prefix?: string }
  | { kind: "by-dialect" }
  | { kind: "adapter"; name: string };

/** A header beyond key and content type; `{other}` and `{site}` are filled in, and absent values leave it out. */
export interface ExtraHeader {
  name: string;
  value: string;
  when?: "stream";
}

/** Small changes that an OpenAI-shaped upstream needs in the body; carried out by quirks.ts. */
export type Quirk = {
  /** Operations it concerns; chat and completions when absent. */
  on?: readonly Operation[];
  /** Models it concerns, matched against the upstream name; all when absent. */
  models?: RegExp;
} & (
  | { patch: "effort-suffix" }
  | { patch: "move-output-limit"; to: "max_tokens" | "max_completion_tokens" }
  | { patch: "developer-role" }
  | { patch: "omit"; fields: readonly string[] }
  | { patch: "rename"; from: string; to: string }
  | { patch: "refuse-above"; field: string; max: number }
  | { patch: "bound"; field: string; min?: number; max?: number }
  | { patch: "set"; field: string; value: unknown; when?: "not-streaming" }
  | { patch: "as-list"; field: string }
  | { patch: "search-suffix" }
  | { patch: "image-url-as-text" }
  | { patch: "bare-base64-images" }
);

export type BalanceKind =
  | "none"
  | "openai-billing"
  | "aiproxy"
  | "api2gpt"
  | "aigc2d"
  | "openrouter"
  | "moonshot"
  | "siliconflow"
  | "deepseek";

/** Where an upstream lists its models (an OpenAI-shaped list); `strip` is cut from the front of each id. */
interface ModelsListing {
  url: string;
  strip?: string;
  /** It comes in pages: `has_more` says that there is another, which begins behind `last_id`. */
  isPaged?: boolean;
  /** It is given to anybody: it says nothing of a key. */
  isPublic?: boolean;
}

export interface ProviderRow {
  /** Channel type. */
  id: number;
  label: Localized;
  group: ProviderGroup;
  status: ProviderStatus;
  /** Stands in for an empty base URL of the channel. */
  baseUrl: string;
  keyHint: Localized;
  fields: readonly ProviderField[];
  auth: Auth;
  headers: readonly ExtraHeader[];
  /** Native operations only; conversations reach the others through routeFor. */
  operations: Readonly<Partial<Record<Operation, Route>>>;
  /** Family of asynchronous tasks that channels of this type take. */
  tasks?: "midjourney" | "suno" | "video";
  /** The base URL is the whole address: no path is appended, {model} is replaced. */
  hasFullUrl: boolean;
  /** The optional organisation of the channel is sent along. */
  sendsOrganization: boolean;
  /** Piece that is dropped from addresses below Cloudflare's AI gateway. */
  gatewayDrops?: "/v1" | "/openai/deployments";
  /** What {version} means: Azure's api-version, or the version of Gemini's API. */
  version?: "azure" | "gemini";
  /** stream_options.include_usage may be sent; otherwise stream_options is removed. */
  asksForStreamUsage: boolean;
  /** Pictures given by address have to be fetched and inlined before the call. */
  inlinesImages: boolean;
  quirks: readonly Quirk[];
  /** Of a provider that serves Anthropic's dialect but not all of its betas: those that it takes. */
  betas?: readonly string[];
  /** Completion tokens are the total less the prompt: the upstream counts reasoning only in the total (`corrected-usage.ts`). */
  countsReasoningInTotal: boolean;
  balance: BalanceKind;
  modelsListing?: ModelsListing;
  /** owned_by of the models that this type presets. */
  owner: string;
  presetModels: readonly string[];
}

/** What address and headers need of a channel; src/core's Channel fits. */
export interface UpstreamChannel {
  baseUrl: string;
  other: string;
  organization: string;
  /** Unix seconds. */
  createdTime: number;
}
