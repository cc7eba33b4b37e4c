// What a provider row says, and the pure helpers that turn a row and a channel into an upstream request.
// Refuses operations that a row does not offer, and retired providers, each with a clear failure.
import type { DialectName } from "../protocol/canonical.ts";
import { Failure } from "../shared/failures.ts";

export type Operation =
  | "chat"
  | "completions"
  | "embeddings"
  | "moderations"
  | "imagesGenerations"
  | "imagesEdits"
  | "audioSpeech"
  | "audioTranscription"
  | "audioTranslation"
  | "rerank"
  | "responses"
  | "realtime"
  | "claudeMessages"
  | "geminiNative";

export type ProviderStatus = "active" | "legacy" | "retired";

/** How the key travels; `adapter` rows sign their requests in code. */
export type AuthKind = "bearer" | "x-api-key" | "api-key" | "x-goog-api-key" | "mj-api-secret" | "adapter";

export interface ProviderRow {
  id: number;
  label: { zh: string; en: string };
  status: ProviderStatus;
  /** Section of the editor's type list. */
  group: "openai" | "own" | "task";
  /** Empty: the operator must give one. */
  baseUrl: string;
  /** What the upstream speaks; undefined for rows that name an adapter or a task protocol. */
  dialect: DialectName | undefined;
  /** Name of the module in providers/adapters that speaks this provider's own protocol. */
  adapter?: string;
  auth: AuthKind;
  operations: readonly Operation[];
  /**
   * Address per operation. Placeholders: {base}, {path} (the client's path), {model}, {other}. Operations without one
   * use {base}{path}.
   */
  urls?: Partial<Record<Operation | "*", string>>;
  /** The upstream knows `stream_options.include_usage`. */
  asksStreamUsage: boolean;
  /** Body fields that the upstream does not know and answers with an error. */
  dropsFields?: readonly string[];
  /** How the upstream's balance is read; undefined where it cannot be. */
  balance?:
    "openai" | "aiproxy" | "api2gpt" | "aigc2d" | "openrouter" | "moonshot" | "siliconflow" | "deepseek";
}

/** What the helpers need of a channel. */
export interface ProviderChannel {
  baseUrl: string;
  other: string;
  organization: string;
  /** Unix seconds. */
  createdTime: number;
}

export interface UpstreamTarget {
  operation: Operation;
  /** The upstream's model name. */
  model: string;
  /** Client path below the gateway, without query: "/v1/chat/completions". */
  path: string;
  /** Client query with its question mark, or empty. */
  search: string;
}

export const AZURE_API_VERSION = "2025-04-01-preview";

/** Deployments of channels made before this moment are named without dots (10 May 2025). */
const AZURE_DOTS_SINCE = Date.UTC(2025, 4, 10) / 1000;

const CLOUDFLARE_GATEWAY = "https://gateway.ai.cloudflare.com";

/** The channel's own base address, else the row's, without trailing slashes. */
export function baseUrlOf(row: ProviderRow, channel: Pick<ProviderChannel, "baseUrl">): string {
  return (channel.baseUrl || row.baseUrl).replace(/\/+$/, "");
}

export function assertUsable(
  row: ProviderRow | undefined,
  type: number,
  operation: Operation,
): asserts row is ProviderRow {
  if (!row) throw new Failure("internal", "provider_unknown", { params: { type }, retryable: true });
  if (row.status === "retired") {
    throw new Failure("upstream-request", "provider_retired", {
      params: { name: row.label.en },
      retryable: true,
    });
  }
  if (row.adapter !== undefined || row.dialect === undefined || !row.operations.includes(operation)) {
    throw new Failure("upstream-request", "provider_operation", {
      params: { name: row.label.en, operation },
      retryable: true,
    });
  }
}

/** The address of one upstream call. */
export function upstreamUrl(row: ProviderRow, channel: ProviderChannel, target: UpstreamTarget): string {
  const base = baseUrlOf(row, channel);
  if (base === "")
    throw new Failure("upstream-request", "provider_base_url", {
      params: { name: row.label.en },
      retryable: true,
    });
  if (row.id === 3) return azureUrl(base, channel, target);
  const path = base.startsWith(CLOUDFLARE_GATEWAY) ? target.path.replace(/^\/v1(?=\/)/, "") : target.path;
  const template = row.urls?.[target.operation] ?? row.urls?.["*"] ?? "{base}{path}";
  const url = template
    .replaceAll("{base}", base)
    .replaceAll("{path}", path)
    .replaceAll("{model}", encodeURI(target.model))
    .replaceAll("{other}", encodeURIComponent(channel.other));
  return template.includes("{path}") ? url + target.search : url;
}

/** Version: the client's query, then the channel's field, then ours. */
function azureUrl(base: string, channel: ProviderChannel, target: UpstreamTarget): string {
  const asked = new URLSearchParams(target.search).get("api-version");
  const version = encodeURIComponent(asked || channel.other || AZURE_API_VERSION);
  if (target.operation === "responses") return `${base}/openai/responses?api-version=${version}`;
  const name =
    channel.createdTime > 0 && channel.createdTime < AZURE_DOTS_SINCE
      ? target.model.replaceAll(".", "")
      : target.model;
  const tail = target.path.replace(/^\/v1\//, "");
  const prefix = base.startsWith(CLOUDFLARE_GATEWAY) ? base : `${base}/openai/deployments`;
  return `${prefix}/${encodeURIComponent(name)}/${tail}?api-version=${version}`;
}

export interface HeaderInputs {
  key: string;
  organization: string;
  /** The client's own anthropic-version, forwarded to Anthropic. */
  anthropicVersion?: string | undefined;
}

/** Authentication headers of one upstream call; a keyless channel sends none. */
export function upstreamHeaders(row: ProviderRow, inputs: HeaderInputs): Record<string, string> {
  const headers: Record<string, string> = {};
  if (row.auth === "x-api-key") headers["anthropic-version"] = inputs.anthropicVersion || "2023-06-01";
  if (inputs.organization !== "" && row.id === 1) headers["openai-organization"] = inputs.organization;
  if (inputs.key === "") return headers;
  if (row.auth === "bearer") headers.authorization = `Bearer ${inputs.key}`;
  else if (row.auth !== "adapter") headers[row.auth] = inputs.key;
  return headers;
}

/** Name of the upstream model of an o-series request: the effort suffix is cut (Azure names deployments without it). */
const EFFORT_SUFFIX = /-(high|medium|low)$/;

/**
 * The small differences of OpenAI-shaped upstreams, over a parsed body. Never touches the input: returns the same
 * object when nothing has to change. Absent stays absent; zero, false and unknown fields survive.
 */
export function patchBody(
  row: ProviderRow,
  body: Readonly<Record<string, unknown>>,
): { body: Readonly<Record<string, unknown>>; changed: string[] } {
  const changed: string[] = [];
  let next: Record<string, unknown> | undefined;
  const edit = () => (next ??= { ...body });
  for (const field of row.dropsFields ?? []) {
    if (Object.hasOwn(body, field)) {
      delete edit()[field];
      changed.push(field);
    }
  }
  if (row.id === 3 && typeof body.model === "string" && /^o\d/.test(body.model)) {
    const target = edit();
    if (body.max_tokens !== undefined && body.max_completion_tokens === undefined) {
      target.max_completion_tokens = body.max_tokens;
      changed.push("max_completion_tokens");
    }
    for (const field of ["max_tokens", "temperature"]) {
      if (!Object.hasOwn(target, field)) continue;
      delete target[field];
      changed.push(field);
    }
    const effort = EFFORT_SUFFIX.exec(body.model)?.[1];
    if (effort !== undefined) {
      target.model = body.model.replace(EFFORT_SUFFIX, "");
      target.reasoning_effort = effort;
      changed.push("model", "reasoning_effort");
    }
  }
  return { body: next ?? body, changed };
}
