// The upstream request of one attempt: address, headers with what passes of the client's, and how an adapter is called.
// Refuses nothing of the body: whoever plans the attempt has written it.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import type { Adapter, AdapterCall } from "../../providers/adapter.ts";
import { ADAPTERS } from "../../providers/adapters.ts";
import type { FoundRoute } from "../../providers/address.ts";
import { correctedAnswer } from "../../providers/corrected-usage.ts";
import type { Ruled } from "../../providers/apply-rules.ts";
import type { ProviderRow } from "../../providers/define.ts";
import { buildUpstreamRequest } from "../../providers/request.ts";
import type { ProviderCall, ProviderRequest } from "../../providers/request.ts";
import { sessionHeaders } from "../../providers/session-headers.ts";
import { Failure } from "../../shared/failures.ts";
import { claudeHeaders, geminiVersion } from "../endpoints/model-settings.ts";
import type { MediaFetch } from "../wire/media.ts";
import { passHeaders } from "../wire/passed-headers.ts";
import type { UpstreamRequest } from "./attempt.ts";
import type { Call } from "./call.ts";
import { hintHeader } from "./session-hint.ts";
import { traceHeader } from "./tracing.ts";
import type { ChatOnlyChannels } from "./chat-only.ts";

export interface PlanContext extends Pick<Deps, "options" | "clock" | "reach" | "seal"> {
  fetchMedia: MediaFetch;
  chatOnly: ChatOnlyChannels;
}

/** One channel, as a call meets it. */
export interface Target {
  context: PlanContext;
  call: Call;
  channel: Channel;
  row: ProviderRow;
  found: FoundRoute;
  /** The requested model behind the channel's mapping. */
  mapped: string;
  key: string;
  keyIndex: number;
}

export function adapterOf(row: ProviderRow, found: FoundRoute): Adapter | undefined {
  const name = found.route.adapter ?? (row.auth.kind === "adapter" ? row.auth.name : undefined);
  return name === undefined ? undefined : ADAPTERS[name];
}

export function needsAdapter(row: ProviderRow, found: FoundRoute): boolean {
  return found.route.adapter !== undefined || row.auth.kind === "adapter";
}

export function unserved(call: Call): Failure {
  const params = { group: call.group, model: call.model };
  return new Failure("no-channel", "endpoint_unsupported", { params, retryable: true });
}

/** Query of the client's address; credentials in it are left out by the catalogue. */
export function queryOf(request: Request): string {
  const at = request.url.indexOf("?");
  return at === -1 ? "" : request.url.slice(at);
}

export function buildRequest(
  { context, call, channel, row, found, key }: Target,
  model: string,
  body: Readonly<Record<string, unknown>>,
  ruled: Ruled | undefined,
): ProviderRequest {
  const { endpoint, request } = call;
  const { form } = call.sent;
  const providerCall: ProviderCall = {
    operation: endpoint.name,
    via: found.operation,
    model,
    // Gemini's query says how the stream is framed, which is the gateway's business.
    query: endpoint.dialect === "gemini" ? "" : queryOf(request),
    isStream: call.wantsStream,
    key,
    contentType: form ? `multipart/form-data; boundary=${form.boundary}` : "application/json",
    accept: acceptOf(call),
    site: context.options.get("ServerAddress"),
  };
  if (endpoint.path !== undefined) providerCall.path = endpoint.path;
  if (!form) providerCall.body = body;
  if (ruled) providerCall.ruled = ruled;
  const version = row.version === "gemini" ? geminiVersion(context.options, model) : undefined;
  if (version !== undefined) providerCall.geminiVersion = version;
  if (endpoint.name === "messages") Object.assign(providerCall, anthropicHeaders(request));
  return buildUpstreamRequest(row, channel, providerCall);
}

function acceptOf({ endpoint, request, wantsStream }: Call): string {
  if (wantsStream) return "text/event-stream";
  if (endpoint.answers === undefined) return "application/json";
  return request.headers.get("accept") ?? "*/*";
}

/** The client's own version and beta flags. */
export function anthropicHeaders(request: Request): { anthropicVersion?: string; anthropicBeta?: string } {
  const version = request.headers.get("anthropic-version");
  const beta = request.headers.get("anthropic-beta");
  return {
    ...(version === null ? {} : { anthropicVersion: version }),
    ...(beta === null ? {} : { anthropicBeta: beta }),
  };
}

/** Headers besides the provider's own: what passes of the client's, and what the operator's options add. */
export function finishHeaders({ context, call, channel, key }: Target, built: ProviderRequest): void {
  const { headers } = built;
  // Usage is read along: a compressed stream would have to be unpacked for that.
  headers["accept-encoding"] = "identity";
  passHeaders(headers, call.request.headers, {
    seal: context.seal,
    userId: call.caller.user.id,
    channelId: channel.id,
    key,
    client: call.endpoint.dialect,
    upstream: built.route.dialect,
    own: sessionHeaders(channel.type, channel),
  });
  hintHeader(headers, context.seal, channel, call);
  const parent = traceHeader(channel, call);
  if (parent !== undefined) headers["traceparent"] = parent;
  if (built.route.dialect === "anthropic")
    Object.assign(headers, claudeHeaders(context.options, built.model));
}

/** Anthropic's address with the query that its beta endpoints are known by, where the channel wants it. */
function addressOf({ setting }: Channel, { url, route }: ProviderRequest): string {
  if (setting.claude_beta_query !== true || route.dialect !== "anthropic") return url;
  if (/[?&]beta=/.test(url)) return url;
  return `${url}${url.includes("?") ? "&" : "?"}beta=true`;
}

export function upstreamRequest(
  { context, call, channel, row, found, key }: Target,
  built: ProviderRequest,
  bodyOf: () => Readonly<Record<string, unknown>>,
): UpstreamRequest {
  const { headers } = built;
  const request: UpstreamRequest = {
    url: addressOf(channel, built),
    headers,
    body: "",
    proxy: typeof channel.setting.proxy === "string" ? channel.setting.proxy : "",
    reach: (url) => context.reach.target(url, channel),
  };
  if (row.countsReasoningInTotal) request.correct = correctedAnswer;
  if (!needsAdapter(row, found)) return request;
  const adapter = adapterOf(row, found);
  if (!adapter) throw unserved(call);
  request.adapter = (send, signal, underWay) => {
    const adapterCall: AdapterCall = {
      operation: built.operation,
      row,
      route: built.route,
      channel,
      key,
      model: built.model,
      requestedModel: call.model,
      isStream: call.wantsStream,
      body: bodyOf(),
      ...(built.route.alsoSpeaks === call.endpoint.dialect ? { own: call.body.json } : {}),
      ...(call.sent.form
        ? { files: call.sent.form.parts.filter((part) => part.filename !== undefined) }
        : {}),
      url: request.url,
      headers,
      signal,
      fetch: send,
      underWay,
      proxy: request.proxy,
      reach: request.reach,
      nowMs: () => context.clock.nowMs(),
      monotonicMs: () => context.clock.monotonicMs(),
      newId: (prefix) => prefix + crypto.randomUUID().replaceAll("-", "").slice(0, 24),
    };
    return adapter(adapterCall);
  };
  return request;
}
