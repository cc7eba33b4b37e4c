// How a call is put to one channel: address, headers and body, with the client's own bytes wherever nothing changes.
// Refuses mappings and overrides that cannot be read, and what the dialect of the channel's provider cannot express.
import { allowsTiers, upstreamModel } from "../../core/channels/rows.ts";
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import type { CanonicalRequest } from "../../protocol/canonical.ts";
import type { Dialect } from "../../protocol/dialect.ts";
import { DIALECTS } from "../../protocol/dialects.ts";
import { mediaToInline } from "../../protocol/media.ts";
import { mayHoldSealed } from "../../protocol/openai-responses/references.ts";
import { hasForeignProof } from "../../protocol/signatures.ts";
import type { Adapter, AdapterCall } from "../../providers/adapter.ts";
import { ADAPTERS } from "../../providers/adapters.ts";
import { requireServed, routeFor } from "../../providers/address.ts";
import type { FoundRoute } from "../../providers/address.ts";
import type { Ruled } from "../../providers/apply-rules.ts";
import { providerOf } from "../../providers/catalog.ts";
import type { ProviderRow } from "../../providers/define.ts";
import { buildUpstreamRequest } from "../../providers/request.ts";
import { sessionHeaders } from "../../providers/session-headers.ts";
import type { ProviderCall, ProviderRequest } from "../../providers/request.ts";
import { Failure } from "../../shared/failures.ts";
import { hasTier } from "../../shared/price-rules.ts";
import type { UpstreamRequest } from "./attempt.ts";
import type { Call } from "./call.ts";
import { conversationOf } from "./call.ts";
import { chatRoute } from "./chat-only.ts";
import type { ChatOnlyChannels } from "./chat-only.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { inlineMedia } from "../wire/media.ts";
import type { MediaFetch } from "../wire/media.ts";
import {
  claudeDefaultMaxTokens,
  claudeHeaders,
  geminiVersion,
  plainModel,
  settingsChanges,
} from "../endpoints/model-settings.ts";
import { withField, writeForm } from "../wire/multipart.ts";
import type { Form } from "../wire/multipart.ts";
import { limitChanges, loweredLimits } from "../endpoints/output-limit.ts";
import { passHeaders } from "../wire/passed-headers.ts";
import { patchTopLevel } from "../wire/patch-json.ts";
import { askedTier, gatedTier, NO_TIERS, tierNames } from "../endpoints/service-tier.ts";
import type { TierGate } from "../endpoints/service-tier.ts";

export interface Plan {
  channel: Channel;
  /** Of the channel's keys the one that it is asked with. */
  key: string;
  /** Its place among them, from 0. */
  keyIndex: number;
  /** Dialect that the upstream speaks on this path. */
  dialect: Required<Dialect>;
  /** The answer is written in the client's dialect; otherwise its bytes pass through. */
  isConverted: boolean;
  /** The model's name at the upstream. */
  upstreamModel: string;
  /** The upstream reports usage in its streams when asked, and it was asked. */
  reportsUsage: boolean;
  /** Names of what the client asked for and the upstream's dialect has no words for. */
  dropped: readonly string[];
  /** Service tier that the upstream is asked for. */
  tier: string | undefined;
  upstream: UpstreamRequest;
}

export interface PlanContext extends Pick<Deps, "options" | "clock" | "reach" | "seal"> {
  fetchMedia: MediaFetch;
  chatOnly: ChatOnlyChannels;
}

function adapterOf(row: ProviderRow, found: FoundRoute): Adapter | undefined {
  const name = found.route.adapter ?? (row.auth.kind === "adapter" ? row.auth.name : undefined);
  return name === undefined ? undefined : ADAPTERS[name];
}

function needsAdapter(row: ProviderRow, found: FoundRoute): boolean {
  return found.route.adapter !== undefined || row.auth.kind === "adapter";
}

/** The route for an endpoint: only conversations are converted, and a part of an operation needs its own address. */
function findRoute(row: ProviderRow, endpoint: Endpoint, model: string): FoundRoute | undefined {
  const found = routeFor(row, endpoint.name, model);
  if (!found || endpoint.isConversation) return found;
  if (found.operation !== endpoint.name) return undefined;
  return endpoint.isPart === true && !/\{(?:path|tail)\}/.test(found.route.url) ? undefined : found;
}

/** Whether the channel can serve the endpoint: in the client's own dialect, or through a conversion. */
export function canServe(channel: Channel, endpoint: Endpoint, model: string): boolean {
  const row = providerOf(channel.type);
  if (!row || row.status === "retired" || row.status === "later") return false;
  const found = findRoute(row, endpoint, upstreamModel(channel, model));
  if (!found) return false;
  if (needsAdapter(row, found)) return adapterOf(row, found) !== undefined;
  return channel.baseUrl !== "" || row.baseUrl !== "";
}

/** Why nobody can be asked through the channel, whatever the call: its provider is gone, or not served yet. */
function unservedReason(channel: Channel): Failure | undefined {
  const row = providerOf(channel.type);
  try {
    if (row) requireServed(row);
  } catch (error) {
    if (error instanceof Failure) return error;
  }
  return undefined;
}

/** Why nobody is left to ask: where every channel is of a provider that is gone or not served, the client reads that. */
export function goneReason(channels: readonly Channel[]): Failure | undefined {
  const reasons = channels.map(unservedReason);
  return reasons.every((reason) => reason !== undefined) ? reasons[0] : undefined;
}

/** The name to send upstream; chains were followed when the channel was read. */
export function mappedModel(channel: Channel, model: string): string {
  const { modelMapping } = channel;
  if (typeof modelMapping !== "string") return upstreamModel(channel, model);
  const code = modelMapping === "cycle" ? "model_mapped_cycle" : "model_mapped_json";
  throw new Failure("internal", code, { wireCode: "model_mapped_error" });
}

/** Query of the client's address; credentials in it are left out by the catalogue. */
export function queryOf(request: Request): string {
  const at = request.url.indexOf("?");
  return at === -1 ? "" : request.url.slice(at);
}

/** Proofs of another provider travel in these fields; most bodies have none of them. */
function mayHoldProof(text: string): boolean {
  return (
    text.includes("ignature") || text.includes("encrypted_content") || text.includes("redacted_thinking")
  );
}

function mustConvert(call: Call, channel: Channel, dialect: string): boolean {
  const { endpoint, body } = call;
  if (endpoint.dialect !== dialect) return endpoint.isConversation;
  if (!endpoint.isConversation) return false;
  const { force_format: force, thinking_to_content: asText } = channel.setting;
  if (force === true || (asText === true && call.wantsStream)) return endpoint.name === "chat";
  if (endpoint.name === "responses" && mayHoldSealed(body.text)) return true;
  return mayHoldProof(body.text) && hasForeignProof(body.text);
}

const ADDRESSED_IMAGE = /"(?:url|image_url)"\s*:\s*"https?:/;

/** Pictures behind addresses, for an upstream that takes them inline only: the body cannot go as it is. */
function mustInline(call: Call, row: ProviderRow): boolean {
  return row.inlinesImages && call.endpoint.isConversation && ADDRESSED_IMAGE.test(call.body.text);
}

/** One channel, as a call meets it. */
interface Target {
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

interface ConvertedBody {
  body: Record<string, unknown>;
  dropped: readonly string[];
}

/** The conversation in the upstream's dialect. Throws client failures that name what cannot be carried over. */
function convertBody(
  context: PlanContext,
  call: Call,
  request: CanonicalRequest,
  dialect: Required<Dialect>,
  model: string,
): ConvertedBody {
  const { options } = context;
  const plain = plainModel(options, dialect.name, model);
  const maxTokens = claudeDefaultMaxTokens(options, model);
  const { body, dropped } = dialect.encodeRequest(request, {
    model: plain,
    ...(maxTokens === undefined ? {} : { defaultMaxOutputTokens: maxTokens }),
  });
  const isForeign = call.endpoint.dialect !== dialect.name;
  applyChanges(body, settingsChanges(options, dialect.name, model, body, isForeign));
  return { body, dropped };
}

function applyChanges(body: Record<string, unknown>, changes: Readonly<Record<string, unknown>>): void {
  for (const key of Object.keys(changes)) {
    if (changes[key] === undefined) delete body[key];
    else body[key] = changes[key];
  }
}

function unserved(call: Call): Failure {
  const params = { group: call.group, model: call.model };
  return new Failure("no-channel", "endpoint_unsupported", { params, retryable: true });
}

/** The channel and key that a call is put to; `isChatOnly` is said where it was found out in this very call. */
interface PlannedFor {
  channel: Channel;
  key: string;
  keyIndex: number;
  isChatOnly?: boolean;
}

/**
 * Where an upstream cannot be spoken to, another channel may be: such failures are retryable. A promise only where
 * media has to be fetched first.
 */
export function planCall(
  context: PlanContext,
  call: Call,
  { channel, key, keyIndex, isChatOnly = context.chatOnly.has(channel) }: PlannedFor,
): Plan | Promise<Plan> {
  const row = providerOf(channel.type);
  if (!row) throw unserved(call);
  requireServed(row);
  const mapped = mappedModel(channel, call.model);
  const own = findRoute(row, call.endpoint, mapped);
  const found = chatRoute(own, { channel, row, endpoint: call.endpoint, model: mapped, isChatOnly });
  if (!found) throw unserved(call);
  const dialect = DIALECTS[found.route.dialect];
  const target: Target = { context, call, channel, row, found, mapped, key, keyIndex };
  if (!mustConvert(call, channel, dialect.name) && !mustInline(call, row)) return passPlan(target);
  const request = conversationOf(call, context.seal);
  const media = mediaToInline(request, dialect.name);
  if (row.inlinesImages && media.length === 0) media.push(...addressedImages(request));
  const convert = (): Plan => convertedPlan(target, request);
  return media.length === 0
    ? convert()
    : inlineMedia(media, context.fetchMedia, openNetworks(channel)).then(convert);
}

/** Networks of the operator's own that requests through this channel may name addresses in. */
function openNetworks(channel: Channel): readonly string[] {
  const { allow_networks: networks } = channel.setting;
  return Array.isArray(networks) ? networks.filter((entry) => typeof entry === "string") : [];
}

function addressedImages(request: CanonicalRequest): ReturnType<typeof mediaToInline> {
  const found: ReturnType<typeof mediaToInline> = [];
  for (const message of request.messages)
    for (const part of message.parts)
      if (part.type === "image" && part.source.kind === "url") found.push(part);
  return found;
}

/** Tiers that the call may ask of the channel: those that its model has a price for, where the operator lets them out. */
function tierGate({ call, channel, row, found }: Target): TierGate {
  const { rules } = call.price;
  if (!rules || !allowsTiers(channel) || !call.endpoint.isConversation) return NO_TIERS;
  // What adapters make of a request names no tier.
  return needsAdapter(row, found) ? NO_TIERS : (tier) => hasTier(rules, tier);
}

/** The client's own body, with single top-level fields replaced. */
function passPlan(target: Target): Plan {
  const { context, call, channel, row, found, mapped } = target;
  const { options } = context;
  const { sent } = call;
  const isMedia = call.endpoint.isMedia === true;
  const isRaw = options.get("global.pass_through_request_enabled") && sent === call.body && !isMedia;
  const { dialect } = found.route;
  const plain = plainModel(options, dialect, mapped);
  const changes: Record<string, unknown> = {};
  const tier = isMedia ? undefined : gatedTier(dialect, sent.json, tierGate(target), sent.text);
  if (tier) Object.assign(changes, tier);
  const { limit } = call.hold;
  // Before what the operator's settings make of a limit: budgets of thinking are shares of it.
  if (limit !== undefined) {
    const name = call.endpoint.name === "completions" ? "" : plain;
    Object.assign(changes, limitChanges(dialect, sent.json, limit, name));
  }
  // Gemini's model stands in the address.
  if (dialect !== "gemini" && sent.json["model"] !== plain) changes["model"] = plain;
  // The playground's own field; an upstream would refuse it.
  if (call.caller.token === undefined && sent.json["group"] !== undefined) changes["group"] = undefined;
  if (dialect !== "openai-chat") {
    const limited = limit === undefined ? sent.json : { ...sent.json, ...changes };
    Object.assign(changes, settingsChanges(options, dialect, mapped, limited, false));
  }
  const isSame = Object.keys(changes).length === 0;
  const body = isSame ? sent.json : { ...sent.json, ...changes };
  const built = buildRequest(
    target,
    plain,
    body,
    isRaw ? undefined : { client: dialect, isConverted: false },
  );
  for (const key of built.changed) changes[key] = built.body?.[key];
  if (!isMedia) Object.assign(changes, overrides(channel));
  if (limit !== undefined)
    Object.assign(changes, loweredLimits(dialect, { ...sent.json, ...changes }, limit));
  // Passed through as it is, but never at a price that nobody pays.
  const applied = isRaw ? (tier ?? {}) : changes;
  const isUntouched = Object.keys(applied).length === 0;
  const upstream = upstreamRequest(target, built, () =>
    isUntouched ? sent.json : { ...sent.json, ...applied },
  );
  const named = isUntouched ? sent.json : { ...sent.json, ...applied };
  if (sent.form && !upstream.adapter) upstream.body = formBody(call, sent.form, built.model);
  else if (!upstream.adapter)
    upstream.body = isUntouched ? sent.bytes : patchTopLevel(sent.text, applied, sent.json);
  return {
    channel,
    key: target.key,
    keyIndex: target.keyIndex,
    dialect: DIALECTS[dialect],
    isConverted: false,
    upstreamModel: isRaw ? call.model : built.model,
    reportsUsage: dialect !== "openai-chat" || (row.asksForStreamUsage && (!isRaw || call.wantsUsage)),
    dropped: tier ? [...tierNames(tier), ...built.dropped] : built.dropped,
    tier: isMedia || upstream.adapter ? undefined : askedTier(dialect, named),
    upstream,
  };
}

/** The client's own bytes where neither the model nor anything else has to change. */
function formBody(call: Call, form: Form, model: string): Uint8Array<ArrayBuffer> {
  const shaped = call.endpoint.form?.(form) ?? form;
  const named = call.sent.json["model"] === model ? shaped : withField(shaped, "model", model);
  return named === form ? call.sent.bytes : writeForm(named);
}

function convertedPlan(target: Target, request: CanonicalRequest): Plan {
  const { context, call, channel, row, found, mapped } = target;
  const dialect = DIALECTS[found.route.dialect];
  const { limit } = call.hold;
  const { body, dropped } = convertBody(context, call, limitedTo(request, limit), dialect, mapped);
  const tier = gatedTier(dialect.name, body, tierGate(target));
  if (tier) applyChanges(body, tier);
  const plain = plainModel(context.options, dialect.name, mapped);
  const ruled = { client: call.endpoint.dialect, isConverted: call.endpoint.dialect !== dialect.name };
  const built = buildRequest(target, plain, body, ruled);
  const upstreamBody: Record<string, unknown> = { ...(built.body ?? body) };
  applyChanges(upstreamBody, overrides(channel));
  if (limit !== undefined) applyChanges(upstreamBody, loweredLimits(dialect.name, upstreamBody, limit));
  const upstream = upstreamRequest(target, built, () => upstreamBody);
  if (!upstream.adapter) upstream.body = JSON.stringify(upstreamBody);
  return {
    channel,
    key: target.key,
    keyIndex: target.keyIndex,
    dialect,
    isConverted: true,
    upstreamModel: built.model,
    reportsUsage: dialect.name !== "openai-chat" || row.asksForStreamUsage,
    dropped: toldOnce([...dropped, ...(tier ? tierNames(tier) : []), ...built.dropped]),
    tier: upstream.adapter ? undefined : askedTier(dialect.name, upstreamBody),
    upstream,
  };
}

function toldOnce(names: readonly string[]): readonly string[] {
  return names.length > 1 ? [...new Set(names)] : names;
}

function limitedTo(request: CanonicalRequest, limit: number | undefined): CanonicalRequest {
  if (limit === undefined) return request;
  const maxOutputTokens = Math.min(request.settings.maxOutputTokens ?? limit, limit);
  return { ...request, settings: { ...request.settings, maxOutputTokens } };
}

/** Operators override last: what they say stands, as far as the caller's balance pays it. */
function overrides(channel: Channel): Readonly<Record<string, unknown>> {
  if (channel.paramOverride === null) throw new Failure("internal", "param_override_broken");
  return channel.paramOverride;
}

function buildRequest(
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

function upstreamRequest(
  { context, call, channel, row, found, key }: Target,
  built: ProviderRequest,
  bodyOf: () => Readonly<Record<string, unknown>>,
): UpstreamRequest {
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
  if (built.route.dialect === "anthropic")
    Object.assign(headers, claudeHeaders(context.options, built.model));
  const request: UpstreamRequest = {
    url: built.url,
    headers,
    body: "",
    proxy: typeof channel.setting.proxy === "string" ? channel.setting.proxy : "",
    reach: (url) => context.reach.target(url, channel),
  };
  if (!needsAdapter(row, found)) return request;
  const adapter = adapterOf(row, found);
  if (!adapter) throw unserved(call);
  request.adapter = (send, signal) => {
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
      ...(call.sent.form
        ? { files: call.sent.form.parts.filter((part) => part.filename !== undefined) }
        : {}),
      url: built.url,
      headers,
      signal,
      fetch: send,
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
