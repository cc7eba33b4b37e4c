// Asks an upstream how many tokens a prompt has, where the model's channel can count: Anthropic's count_tokens and Google's
// countTokens, in the client's own words or converted. Refuses to let a count do harm: it is short, it charges nobody, and no
// answer to it rests a key or a channel.
import type { Channel } from "../../core/channels/rows.ts";
import type { DialectName, JsonObject } from "../../protocol/canonical.ts";
import { DIALECTS } from "../../protocol/dialects.ts";
import { asNumber, asObject, parseJson } from "../../protocol/json.ts";
import { mediaToInline } from "../../protocol/media.ts";
import { routeFor } from "../../providers/address.ts";
import type { FoundRoute } from "../../providers/address.ts";
import { providerOf } from "../../providers/catalog.ts";
import type { ProviderRow } from "../../providers/define.ts";
import { buildUpstreamRequest } from "../../providers/request.ts";
import type { ProviderCall } from "../../providers/request.ts";
import { claudeHeaders, geminiVersion, plainModel } from "../endpoints/model-settings.ts";
import { measurePrompt } from "../meter/meter.ts";
import { patchTopLevel } from "../wire/patch-json.ts";
import type { RelayBody } from "../wire/read-body.ts";
import { pinnedChannel } from "./admission.ts";
import type { Admitted } from "./admission.ts";
import { askUpstream } from "./attempt.ts";
import { groupsOf } from "./auto-group.ts";
import { keysInOrder } from "./channel-keys.ts";
import { mappedModel } from "./plan.ts";
import { applyHeaderRules } from "./rules.ts";
import { anthropicHeaders, queryOf } from "./upstream-request.ts";
import type { CallServices } from "./services.ts";

/** Clients count before they call, and somebody waits for it. */
const COUNT_MS = 4000;
const REST_MS = 60_000;
/** The address is not there; nobody asks again until the channel is edited, which makes another object of it. */
const NEVER_HERE: ReadonlySet<number> = new Set([404, 405, 501]);
/** The prompt itself is refused, which says nothing about the next one. */
const THIS_PROMPT: ReadonlySet<number> = new Set([400, 413, 422]);

/** What Anthropic's count accepts of a Messages body (API reference, "Count tokens in a Message"). */
const ANTHROPIC_FIELDS = [
  "model",
  "messages",
  "system",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
] as const;

/** What is told of a count beside the number, to clients of the same dialect. */
const DETAILS: Readonly<Partial<Record<DialectName, readonly string[]>>> = {
  anthropic: ["context_management"],
  gemini: ["cachedContentTokenCount", "promptTokensDetails", "cacheTokensDetails"],
};

/** A count that an upstream made. */
export interface UpstreamCount {
  tokens: number;
  /** Members of the answer beside the number. */
  details: JsonObject;
}

export interface CountPrompt extends Admitted {
  body: RelayBody;
  /** The prompt itself; Google's clients may wrap it. */
  json: Readonly<Record<string, unknown>>;
  /** As requested. */
  model: string;
}

/** Until when (steady clock) a channel is not asked to count. */
const restsUntil = new WeakMap<Channel, number>();

/** A channel that can count the model's prompts. */
interface Counting {
  channel: Channel;
  row: ProviderRow;
  found: FoundRoute;
  /** The model's name there. */
  model: string;
}

/** Undefined where no channel can count, or the one that was asked did not: the gateway counts for itself then. */
export async function countUpstream(
  services: CallServices,
  prompt: CountPrompt,
): Promise<UpstreamCount | undefined> {
  try {
    const counting = countingChannel(services, prompt);
    if (!counting || isScreenedOut(services, prompt)) return undefined;
    return await ask(services, prompt, counting);
  } catch {
    return undefined;
  }
}

/** The first channel that can count, in the order in which channels serve. */
function countingChannel({ deps }: CallServices, prompt: CountPrompt): Counting | undefined {
  const { caller, model, exchange } = prompt;
  const nowMs = deps.clock.monotonicMs();
  const channels =
    caller.pinned === undefined
      ? groupsOf(caller)
          .flatMap((group) => deps.routing.tiers(group, model))
          .flatMap(({ entries }) => entries.map(({ channel }) => channel))
      : [pinnedChannel(deps, caller.pinned)];
  for (const channel of channels) {
    const row = providerOf(channel.type);
    if (!row || typeof channel.modelMapping === "string" || (restsUntil.get(channel) ?? 0) > nowMs) continue;
    const mapped = mappedModel(channel, model);
    const found = routeFor(row, exchange.endpoint.name, mapped);
    if (found?.route.countUrl === undefined) continue;
    return { channel, row, found, model: plainModel(deps.options, found.route.dialect, mapped) };
  }
  return undefined;
}

/** What may not be sent to a model is not sent to be counted. */
function isScreenedOut({ screens }: CallServices, { exchange, json }: CountPrompt): boolean {
  const screen = screens.prompt(exchange.endpoint);
  if (!screen) return false;
  try {
    measurePrompt(exchange.endpoint, json, screen);
    return false;
  } catch {
    return true;
  }
}

async function ask(
  services: CallServices,
  prompt: CountPrompt,
  counting: Counting,
): Promise<UpstreamCount | undefined> {
  const { deps } = services;
  const { channel, found } = counting;
  const { dialect } = found.route;
  const key = keysInOrder(deps, channel)[0]?.key ?? "";
  const request = countRequest(services, prompt, counting, key);
  if (!request) return undefined;
  const firstByteMs = deps.options.get("relay.first_byte_timeout_seconds") * 1000;
  const rest = (status: number | undefined): void => {
    if (status !== undefined && THIS_PROMPT.has(status)) return;
    const isGone = status !== undefined && NEVER_HERE.has(status);
    restsUntil.set(channel, isGone ? Infinity : deps.clock.monotonicMs() + REST_MS);
  };
  try {
    const { status, text } = await askUpstream({
      ...request,
      method: "POST",
      proxy: typeof channel.setting.proxy === "string" ? channel.setting.proxy : "",
      reach: (url) => deps.reach.target(url, channel),
      timeoutMs: Math.min(COUNT_MS, firstByteMs === 0 ? COUNT_MS : firstByteMs),
    });
    const answer = status === 200 ? asObject(parseJson(text)) : undefined;
    const tokens = asNumber(answer?.[dialect === "gemini" ? "totalTokens" : "input_tokens"]);
    if (answer && tokens !== undefined && tokens > 0)
      return { tokens, details: detailsOf(answer, dialect, prompt) };
    rest(status);
  } catch {
    rest(undefined);
  }
  return undefined;
}

function detailsOf(answer: JsonObject, dialect: DialectName, { exchange }: CountPrompt): JsonObject {
  const details: JsonObject = {};
  if (exchange.endpoint.dialect !== dialect) return details;
  for (const name of DETAILS[dialect] ?? [])
    if (answer[name] !== undefined && answer[name] !== null) details[name] = answer[name];
  return details;
}

interface CountRequest {
  url: string;
  headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer>;
}

/** Undefined where the prompt would have to be fetched together first. */
function countRequest(
  { deps }: CallServices,
  prompt: CountPrompt,
  { channel, row, found, model }: Counting,
  key: string,
): CountRequest | undefined {
  const { endpoint, request } = prompt.exchange;
  const { dialect } = found.route;
  const isConverted = endpoint.dialect !== dialect;
  const body = isConverted ? convertedBody(prompt, dialect, model) : ownBody(prompt, model);
  if (!body) return undefined;
  const call: ProviderCall = {
    operation: endpoint.name,
    model,
    query: endpoint.dialect === "gemini" ? "" : queryOf(request),
    counts: true,
    key,
    contentType: "application/json",
    accept: "application/json",
    body,
    ruled: { client: endpoint.dialect, isConverted },
  };
  const version = row.version === "gemini" ? geminiVersion(deps.options, model) : undefined;
  if (version !== undefined) call.geminiVersion = version;
  if (endpoint.name === "messages" && !isConverted) Object.assign(call, anthropicHeaders(request));
  const built = buildUpstreamRequest(row, channel, call);
  if (dialect === "anthropic") Object.assign(built.headers, claudeHeaders(deps.options, model));
  applyHeaderRules({ channel, headers: built.headers, client: request.headers, key });
  const sent = built.body ?? body;
  if (isConverted)
    return { url: built.url, headers: built.headers, body: JSON.stringify(wrapped(sent, dialect, model)) };
  const { json, text, bytes } = prompt.body;
  const changes: Record<string, unknown> = {};
  for (const name of new Set([...Object.keys(json), ...Object.keys(sent)]))
    if (sent[name] !== json[name]) changes[name] = sent[name];
  const isSame = Object.keys(changes).length === 0;
  return {
    url: built.url,
    headers: built.headers,
    body: isSame ? bytes : patchTopLevel(text, changes, json),
  };
}

/** The client's own body, with the model's name at the upstream. */
function ownBody({ exchange, body, model: requested }: CountPrompt, model: string): JsonObject {
  const { json } = body;
  if (exchange.endpoint.dialect !== "gemini") return json["model"] === model ? json : { ...json, model };
  const inner = asObject(json["generateContentRequest"]);
  // The address names the model, and a wrapped request once more.
  if (!inner || model === requested) return json;
  return { ...json, generateContentRequest: { ...inner, model: `models/${model}` } };
}

function convertedBody(
  { exchange, json, model: requested }: CountPrompt,
  dialect: DialectName,
  model: string,
): JsonObject | undefined {
  const { decodeRequest } = DIALECTS[exchange.endpoint.dialect];
  const request = decodeRequest(json, { model: requested, stream: false });
  if (mediaToInline(request, dialect).length > 0) return undefined;
  return DIALECTS[dialect].encodeRequest(request, { model }).body;
}

/** As the counting call wants a converted request: Google's inside of a member, Anthropic's without what is no prompt. */
function wrapped(body: Readonly<JsonObject>, dialect: DialectName, model: string): JsonObject {
  if (dialect === "gemini") return { generateContentRequest: { ...body, model: `models/${model}` } };
  const out: JsonObject = {};
  for (const name of ANTHROPIC_FIELDS) if (body[name] !== undefined) out[name] = body[name];
  return out;
}
