// How a call is put to one channel: address, headers and body, with the client's own bytes wherever nothing changes.
// Refuses mappings and rules that cannot be read, and what the dialect of the channel's provider cannot express.
import { allowsTiers, upstreamModel } from "../../core/channels/rows.ts";
import type { Channel } from "../../core/channels/rows.ts";
import type { CanonicalRequest } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import type { Dialect } from "../../protocol/dialect.ts";
import { DIALECTS } from "../../protocol/dialects.ts";
import { mediaToInline } from "../../protocol/media.ts";
import { mayHoldSealed } from "../../protocol/openai-responses/references.ts";
import { hasForeignProof } from "../../protocol/signatures.ts";
import { requireServed, routeFor } from "../../providers/address.ts";
import type { FoundRoute } from "../../providers/address.ts";
import { lostFields } from "../../providers/carried-fields.ts";
import { providerOf } from "../../providers/catalog.ts";
import type { ProviderRow } from "../../providers/define.ts";
import { Failure } from "../../shared/failures.ts";
import { hasTier } from "../../shared/price-rules.ts";
import type { UpstreamRequest } from "./attempt.ts";
import type { Call } from "./call.ts";
import { conversationOf } from "./call.ts";
import { chatRoute } from "./chat-only.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { gatedFields } from "../endpoints/gates.ts";
import { inlineMedia } from "../wire/media.ts";
import { claudeDefaultMaxTokens, plainModel, settingsChanges } from "../endpoints/model-settings.ts";
import { withField, withoutField, writeForm } from "../wire/multipart.ts";
import type { Form } from "../wire/multipart.ts";
import { limitChanges } from "../endpoints/output-limit.ts";
import { patchTopLevel } from "../wire/patch-json.ts";
import type { Changes } from "../wire/patch-json.ts";
import { askedTier, gatedTier, NO_TIERS, tierNames } from "../endpoints/service-tier.ts";
import type { TierGates } from "../endpoints/service-tier.ts";
import { disowned, mayHoldProof, PROOF_NAMES } from "./proofs.ts";
import { applyHeaderRules, applyRules } from "./rules.ts";
import type { Ruled, RulesDone } from "./rules.ts";
import {
  adapterOf,
  buildRequest,
  finishHeaders,
  needsAdapter,
  unserved,
  upstreamRequest,
} from "./upstream-request.ts";
import type { PlanContext, Target } from "./upstream-request.ts";

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
  /** What the channel's rules did to the request; undefined: it has none that acted. */
  rules: RulesDone | undefined;
  /** Writes the body anew with this limit on its answer: what was sent in the request's place had to be held for first. */
  writeLimit: (limit: number | undefined) => void;
  /** The body as it is sent, in the upstream's dialect. */
  sentJson: () => Readonly<Record<string, unknown>>;
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
  if (passesThrough(channel, endpoint) && found.route.dialect !== endpoint.dialect) return false;
  if (needsAdapter(row, found)) return adapterOf(row, found) !== undefined;
  return channel.baseUrl !== "" || row.baseUrl !== "";
}

/** The channel takes conversations as their clients wrote them. */
function passesThrough({ setting }: Pick<Channel, "setting">, endpoint: Endpoint): boolean {
  return setting.pass_through_body_enabled === true && endpoint.isConversation;
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
  const done = settingsChanges(options, dialect.name, model, body, isForeign);
  applyChanges(body, done.changes);
  return { body, dropped: [...dropped, ...done.dropped] };
}

function applyChanges(body: Record<string, unknown>, changes: Readonly<Record<string, unknown>>): void {
  for (const key of Object.keys(changes)) {
    if (changes[key] === undefined) delete body[key];
    else body[key] = changes[key];
  }
}

/** The channel and key that a call is put to; `isChatOnly` is said where it was found out in this very call. */
interface PlannedFor {
  channel: Channel;
  key: string;
  keyIndex: number;
  isChatOnly?: boolean;
  /** Proofs of another account are left out: this one could not read them. */
  dropsProofs?: boolean;
}

/**
 * Where an upstream cannot be spoken to, another channel may be: such failures are retryable. A promise only where
 * media has to be fetched first.
 */
export function planCall(
  context: PlanContext,
  call: Call,
  { channel, key, keyIndex, isChatOnly = context.chatOnly.has(channel), dropsProofs = false }: PlannedFor,
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
  if (passesThrough(channel, call.endpoint)) {
    if (dialect.name !== call.endpoint.dialect) throw unserved(call);
    return passPlan(target);
  }
  const isBare = dropsProofs && call.endpoint.isConversation && mayHoldProof(call.body.text);
  if (!isBare && !mustConvert(call, channel, dialect.name) && !mustInline(call, row)) return passPlan(target);
  const whole = conversationOf(call, context.seal);
  const request = isBare ? disowned(whole, dialect.name) : whole;
  const media = mediaToInline(request, dialect.name);
  if (row.inlinesImages && media.length === 0) media.push(...addressedImages(request));
  const convert = (): Plan => convertedPlan(target, request, isBare ? [PROOF_NAMES[dialect.name]] : []);
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
function tierGates({ call, channel, row, found }: Target): TierGates {
  const { rules } = call.price;
  // What adapters make of a request names no tier.
  if (!rules || !call.endpoint.isConversation || needsAdapter(row, found)) return NO_TIERS;
  const isFastOpen = channel.setting.allow_speed === true;
  if (!allowsTiers(channel) && !isFastOpen) return NO_TIERS;
  const isPriced = (tier: string): boolean => hasTier(rules, tier);
  return {
    tier: allowsTiers(channel) ? isPriced : NO_TIERS.tier,
    speed: isFastOpen ? isPriced : NO_TIERS.speed,
  };
}

/** Of a body that has to go as it is: throws with the name of what would have to change. */
function requireUnchanged({ call, channel, found }: Target, model: string, tier: Changes | undefined): void {
  const { sent, hold } = call;
  const { dialect } = found.route;
  if (dialect !== "gemini" && sent.json["model"] !== model) throw cannotCarry("model");
  const [ofTier] = tier ? tierNames(tier) : [];
  const [gated = ofTier] = gatedFields(dialect, sent.json, channel.setting)?.names ?? [];
  if (gated !== undefined) throw cannotCarry(gated);
  const [limit] =
    hold.limit === undefined ? [] : Object.keys(limitChanges(dialect, sent.json, hold.limit, model));
  if (limit !== undefined) throw cannotCarry(limit);
}

/**
 * What the upstream is not told of a body in the route's dialect: what its adapter has no words for, and what the client's
 * own form said besides, where the upstream does not take that one.
 */
function leftBehind(
  { call, found, mapped, key }: Target,
  body: Readonly<Record<string, unknown>>,
): readonly string[] {
  const { losses, dialect } = call.endpoint;
  const lost = lostFields(found, body, { model: mapped, key });
  if (losses === undefined || found.route.alsoSpeaks === dialect) return lost;
  return [...losses(call.body.json), ...lost];
}

/** The client's own body, with single top-level fields replaced. */
function passPlan(target: Target): Plan {
  const { context, call, channel, row, found, mapped } = target;
  const { options } = context;
  const { sent, endpoint } = call;
  const isMedia = endpoint.isMedia === true;
  const isPassed = passesThrough(channel, endpoint);
  const isRaw =
    isPassed || (options.get("global.pass_through_request_enabled") && sent === call.body && !isMedia);
  const { dialect } = found.route;
  const plain = plainModel(options, dialect, mapped);
  const changes: Record<string, unknown> = {};
  const tiers = tierGates(target);
  const tier = isMedia ? undefined : gatedTier(dialect, sent.json, tiers, sent.text);
  if (isPassed) requireUnchanged(target, plain, tier);
  if (tier) Object.assign(changes, tier);
  const { limit } = call.hold;
  const limitName = endpoint.name === "completions" ? "" : plain;
  // Before what the operator's settings make of a limit: budgets of thinking are shares of it.
  if (limit !== undefined) Object.assign(changes, limitChanges(dialect, sent.json, limit, limitName));
  // Gemini's model stands in the address.
  if (dialect !== "gemini" && sent.json["model"] !== plain) changes["model"] = plain;
  // The playground's own field; an upstream would refuse it.
  if (call.caller.token === undefined && sent.json["group"] !== undefined) changes["group"] = undefined;
  let lost = leftBehind(target, sent.json);
  if (dialect !== "openai-chat") {
    const limited = limit === undefined ? sent.json : { ...sent.json, ...changes };
    const done = settingsChanges(options, dialect, mapped, limited, false);
    Object.assign(changes, done.changes);
    if (!isRaw && done.dropped.length > 0) lost = [...lost, ...done.dropped];
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
  finishHeaders(target, built);
  const ruled = isRaw ? undefined : applyRules(target, built, built.body ?? body, tiers);
  if (ruled) Object.assign(changes, ruled.changes);
  // Passed through as it is, but never at a price that nobody pays.
  let applied: Changes = changes;
  if (isPassed) applied = "group" in changes ? { group: undefined } : {};
  else if (isRaw) applied = tier ?? {};
  const isUntouched = (): boolean => Object.keys(applied).length === 0;
  const named = (): Record<string, unknown> => (isUntouched() ? sent.json : { ...sent.json, ...applied });
  const upstream = upstreamRequest(target, built, named);
  const write = (newLimit: number | undefined): void => {
    if (!isRaw && newLimit !== undefined)
      applied = { ...changes, ...limitChanges(dialect, { ...sent.json, ...changes }, newLimit, limitName) };
    if (upstream.adapter) return;
    upstream.body = sent.form
      ? formBody(call, sent.form, built.model, ruled)
      : isUntouched()
        ? sent.bytes
        : patchTopLevel(sent.text, applied, sent.json);
  };
  write(limit);
  const told = tier ? [...tierNames(tier), ...built.dropped] : built.dropped;
  const dropped = lost.length === 0 ? told : toldOnce([...lost, ...told]);
  return {
    channel,
    key: target.key,
    keyIndex: target.keyIndex,
    dialect: DIALECTS[dialect],
    isConverted: false,
    upstreamModel: isRaw ? call.model : sentModel(built.model, ruled),
    reportsUsage: dialect !== "openai-chat" || (row.asksForStreamUsage && (!isRaw || call.wantsUsage)),
    dropped: ruled ? toldOnce([...dropped, ...ruled.dropped]) : dropped,
    tier: isMedia || upstream.adapter ? undefined : askedTier(dialect, named()),
    upstream,
    rules: withHeaderRules(target, built.headers, ruled),
    writeLimit: write,
    sentJson: named,
  };
}

/** The name that is sent, where a rule put another in its place. */
function sentModel(model: string, ruled: Ruled | undefined): string {
  const named = ruled?.changes["model"];
  return typeof named === "string" && named !== "" ? named : model;
}

/** Headers have the last word, whatever became of the body. */
function withHeaderRules(
  target: Target,
  headers: Record<string, string>,
  ruled: Ruled | undefined,
): RulesDone | undefined {
  const { channel, call, key } = target;
  if (!channel.headerRules) return ruled?.done;
  const headerActs = applyHeaderRules({ channel, headers, client: call.request.headers, key });
  if (!headerActs) return ruled?.done;
  return { acts: [], promptTokens: 0, repriced: undefined, ...ruled?.done, headerActs };
}

/** The client's own bytes where neither the model nor anything else has to change, and every reader reads them alike. */
function formBody(call: Call, form: Form, model: string, ruled: Ruled | undefined): Uint8Array<ArrayBuffer> {
  const shaped = call.endpoint.form?.(form) ?? form;
  let named = call.sent.json["model"] === model ? shaped : withField(shaped, "model", model);
  for (const [key, value] of Object.entries(ruled?.changes ?? {}))
    named =
      value === undefined
        ? withoutField(named, key)
        : withField(named, key, typeof value === "string" ? value : JSON.stringify(value));
  return named === form && form.isPlain ? call.sent.bytes : writeForm(named);
}

function convertedPlan(target: Target, request: CanonicalRequest, leftOut: readonly string[]): Plan {
  const { context, call, channel, row, found, mapped } = target;
  const dialect = DIALECTS[found.route.dialect];
  const { limit } = call.hold;
  const { body, dropped } = convertBody(context, call, limitedTo(request, limit), dialect, mapped);
  const tiers = tierGates(target);
  const tier = gatedTier(dialect.name, body, tiers);
  if (tier) applyChanges(body, tier);
  const plain = plainModel(context.options, dialect.name, mapped);
  const converted = { client: call.endpoint.dialect, isConverted: call.endpoint.dialect !== dialect.name };
  const built = buildRequest(target, plain, body, converted);
  finishHeaders(target, built);
  const ruledBody: Record<string, unknown> = { ...(built.body ?? body) };
  const ruled = applyRules(target, built, ruledBody, tiers);
  if (ruled) applyChanges(ruledBody, ruled.changes);
  let upstreamBody = ruledBody;
  const upstream = upstreamRequest(target, built, () => upstreamBody);
  const write = (newLimit: number | undefined): void => {
    upstreamBody = { ...ruledBody };
    if (newLimit !== undefined)
      applyChanges(upstreamBody, limitChanges(dialect.name, upstreamBody, newLimit, plain));
    if (!upstream.adapter) upstream.body = JSON.stringify(upstreamBody);
  };
  write(limit);
  return {
    channel,
    key: target.key,
    keyIndex: target.keyIndex,
    dialect,
    isConverted: true,
    upstreamModel: sentModel(built.model, ruled),
    reportsUsage: dialect.name !== "openai-chat" || row.asksForStreamUsage,
    dropped: toldOnce([
      ...leftOut,
      ...dropped,
      ...leftBehind(target, body),
      ...(tier ? tierNames(tier) : []),
      ...built.dropped,
      ...(ruled?.dropped ?? []),
    ]),
    tier: upstream.adapter ? undefined : askedTier(dialect.name, upstreamBody),
    upstream,
    rules: withHeaderRules(target, built.headers, ruled),
    writeLimit: write,
    sentJson: () => upstreamBody,
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
