// What a client's handshake asks for, and how it is put to an upstream: model, query, sub-protocols.
import type { ProviderRow } from "../../providers/define.ts";
import { Failure } from "../../shared/failures.ts";
import type { AttemptedRequest } from "../call/channel-attempts.ts";
import { familyName } from "../endpoints/model-name.ts";
import type { NamedQuote } from "../call/quote-id.ts";
import type { SessionCap } from "./turn-hold.ts";

/** A client that asked for a session and was admitted. */
export interface RealtimeRequest extends AttemptedRequest {
  readonly request: Request;
  /** Sub-protocols that the client offers. */
  readonly offered: readonly string[];
  /** Of the whole session; undefined: it may cost as much as it takes. */
  readonly cap: SessionCap | undefined;
  /** Prices of the turns that are opened while it stands; undefined: none was asked for. */
  readonly quote: NamedQuote | undefined;
}

const MAX_MODEL_CHARS = 256;
const KEY_PROTOCOL = "openai-insecure-api-key.";
const BETA_PROTOCOL = "openai-beta.";
/** Parameters that are the gateway's matter or that would reach into somebody else's session. */
const OWN_PARAMETERS: ReadonlySet<string> = new Set([
  "model",
  "key",
  "api-key",
  "authorization",
  "deployment",
  "call_id",
]);

export function offeredProtocols(request: Request): string[] {
  const header = request.headers.get("sec-websocket-protocol") ?? "";
  return header
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

/** The one that is answered: browsers insist on one of those they offered, and a key must not be repeated. */
export function chosenProtocol(offered: readonly string[]): string | undefined {
  return (
    offered.find((name) => name === "realtime") ?? offered.find((name) => !name.startsWith(KEY_PROTOCOL))
  );
}

export function requestedModel(request: Request): string {
  return sessionModel(new URL(request.url).searchParams.getAll("model"));
}

/** The one model that a session is asked for. Throws Failures of kind client for none, several and what is no name. */
export function sessionModel(names: readonly string[]): string {
  const details = { wireCode: "invalid_request", param: "model" };
  if (names.length > 1) throw new Failure("client", "model_ambiguous", details);
  const name = names[0] ?? "";
  if (name === "") throw new Failure("client", "field_required", { params: { field: "model" }, ...details });
  if (name.length > MAX_MODEL_CHARS || hasControl(name))
    throw new Failure("client", "invalid_field", {
      params: { field: "model", reason: "must be a name" },
      ...details,
    });
  return familyName(name);
}

/** The model as the client names it, good or not: for the row of a refusal. */
export function namedModel(request: Request): string {
  return (new URL(request.url).searchParams.get("model") ?? "").slice(0, MAX_MODEL_CHARS);
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) < 0x20) return true;
  return false;
}

export function isTranscription(request: Request): boolean {
  return new URL(request.url).searchParams.get("intent") === "transcription";
}

/** The client's query with one model in it: the one that is priced is the one that is served. */
export function upstreamQuery(request: Request, model: string): string {
  const query = new URLSearchParams({ model });
  for (const [name, value] of new URL(request.url).searchParams)
    if (!OWN_PARAMETERS.has(name.toLowerCase())) query.append(name, value);
  return `?${query.toString()}`;
}

/** Sends the key the way the client sent its own; providers with headers of their own for it get those only. */
export function upstreamProtocols(row: ProviderRow, offered: readonly string[], key: string): string[] {
  if (offered.length === 0) return [];
  const takesKey = row.auth.kind === "header" && row.auth.name === "authorization" && key !== "";
  return [
    "realtime",
    ...(takesKey ? [`${KEY_PROTOCOL}${key}`] : []),
    ...offered.filter((name) => name.startsWith(BETA_PROTOCOL)),
  ];
}
