// One channel asked on purpose: a small test call, the account's balance, the list of its models. Charges nobody, and one
// bad key of several never speaks for its channel.
import { and, eq } from "drizzle-orm";
import { upstreamModel } from "../core/channels/rows.ts";
import type { Channel } from "../core/channels/rows.ts";
import type { ChannelProbe, KeyListing, ProbeResult } from "../core/channels/watch.ts";
import type { RouteQuestion } from "../core/channels/route-report.ts";
import type { Deps, TokenAccount } from "../core/deps.ts";
import { asObject, parseJson } from "../protocol/json.ts";
import { openaiChat } from "../protocol/openai-chat/dialect.ts";
import { scrub } from "../protocol/classify.ts";
import { modelsUrl, routeFor } from "../providers/address.ts";
import { readBalance } from "../providers/balance.ts";
import { providerOf } from "../providers/catalog.ts";
import type { ProviderRow } from "../providers/define.ts";
import { ownHeaders } from "../providers/headers.ts";
import { warmLimitOf } from "../providers/warm-call.ts";
import type { FailureCode } from "../shared/failure-codes.ts";
import { Failure, refuse } from "../shared/failures.ts";
import { withoutKeys } from "../shared/without-keys.ts";
import { AttemptFailure, askUpstream, retryAfterOf, upstreamFailure } from "./call/attempt.ts";
import { askableKeys, askInTurn, askWithKeys, keysInOrder, MAX_KEYS_ASKED } from "./call/channel-keys.ts";
import type { ChannelKey } from "./call/channel-keys.ts";
import type { Relay } from "./call/pipeline.ts";
import { applyHeaderRules } from "./call/rules.ts";
import type { TestCall } from "./endpoints/test-endpoints.ts";

const TIMEOUT_MS = 20_000;
const MAX_PAGES = 20;
const MAX_MODELS = 20_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** Statuses as the provider means them: what a channel makes of them is for clients. */
const UNMAPPED: Pick<Channel, "statusCodeMapping"> = { statusCodeMapping: new Map() };
const FALLBACK_MODEL = "gpt-4o-mini";
const JINA = 38;
const MOKA = 44;
const UNTESTED: ReadonlyMap<number, string> = new Map([
  [2, "midjourney channel test is not supported"],
  [5, "midjourney plus channel test is not supported!!!"],
  [36, "suno channel test is not supported"],
]);

/** Speech, hearing and video: a test would cost more than a few tokens, or has nothing to send. */
const SOUND_AND_VIDEO_MODELS = /^(?:tts-|whisper|sora|veo-)|-(?:tts|transcribe|asr|realtime)\b/;

const PICTURE_MODELS =
  /^(?:dall-e|gpt-image|imagen|wanx|cogview|image-0\d)|flux|seedream|kolors|stable-diffusion|image-generation$/;

/** What the model is for, by its name; by what the type serves where it holds no conversations with the model. */
function operationFor(model: string, type: number): TestCall["operation"] {
  const name = model.toLowerCase();
  if (name.includes("rerank")) return "rerank";
  if (/embed|^m3e|bge-/.test(name) || type === MOKA || type === JINA) return "embeddings";
  if (PICTURE_MODELS.test(name)) return "image-generations";
  const row = providerOf(type);
  if (!row || routeFor(row, "chat", model)) return "chat";
  const others = ["embeddings", "rerank", "image-generations"] as const;
  return others.find((operation) => routeFor(row, operation, model)) ?? "chat";
}

/** Which endpoint a model is tested on, and the smallest body that it takes. */
export function testCallFor(model: string, type: number): TestCall {
  const name = model.toLowerCase();
  const operation = operationFor(model, type);
  if (operation === "rerank")
    return { operation, body: { model, query: "hi", documents: ["hello", "world"], top_n: 1 } };
  if (operation === "embeddings") return { operation, body: { model, input: ["hello world"] } };
  if (operation === "image-generations")
    return { operation, body: { model, prompt: "a white square", n: 1 } };
  const body: Record<string, unknown> = { model, messages: [{ role: "user", content: "hi" }] };
  if (/^o\d/.test(name)) body["max_completion_tokens"] = 10;
  else if (name.includes("thinking")) {
    // Claude's budget decides by itself how much room an answer has.
    if (!name.includes("claude")) body["max_tokens"] = 50;
  } else body["max_tokens"] = name.includes("gemini") ? 300 : 10;
  return { operation: "chat", body };
}

function unsupported(code: FailureCode): Failure {
  return new Failure("client", code);
}

function modelIds(answer: Readonly<Record<string, unknown>>, row: ProviderRow): string[] {
  const strip = row.modelsListing?.strip ?? "";
  const list = answer["data"];
  if (!Array.isArray(list)) throw new Failure("upstream-down", "models_unreadable");
  const ids = (list as unknown[]).flatMap((item) => {
    const id = asObject(item)?.["id"] ?? item;
    return typeof id === "string" && id !== "" ? [id.startsWith(strip) ? id.slice(strip.length) : id] : [];
  });
  return ids;
}

/** All pages of a list, from its address on. */
async function listOf(
  row: ProviderRow,
  url: string,
  ask: (url: string) => Promise<Record<string, unknown>>,
): Promise<string[]> {
  const ids = new Set<string>();
  let next = url;
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = await ask(next);
    for (const id of modelIds(answer, row)) ids.add(id);
    const { has_more: hasMore, last_id: last } = answer;
    if (row.modelsListing?.isPaged !== true || hasMore !== true || typeof last !== "string") break;
    next = `${url}&after_id=${encodeURIComponent(last)}`;
  }
  return [...ids].slice(0, MAX_MODELS);
}

/** The object that a provider answered with; a refusal says by its verdict whether it is the key's. */
function answerOf(status: number, headers: Headers, text: string): Record<string, unknown> {
  const json = parseJson(text);
  if (status !== 200) {
    const { failure, verdict, refusal } = upstreamFailure({
      dialect: openaiChat,
      channel: UNMAPPED,
      status,
      body: json ?? text,
      retryAfter: retryAfterOf(headers),
    });
    const { retryAfterSeconds } = failure;
    const details = { params: { status }, internal: scrub(text), upstreamStatus: status };
    throw new AttemptFailure(
      new Failure("upstream-down", "upstream_status", {
        ...details,
        ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      }),
      verdict,
      refusal,
    );
  }
  const answer = asObject(json);
  if (!answer)
    throw new Failure("upstream-down", "models_unreadable", { internal: scrub(text.slice(0, 200)) });
  return answer;
}

function rowOf(type: number): ProviderRow {
  const row = providerOf(type);
  if (!row) throw unsupported("provider_unknown");
  return row;
}

function modelsAddress(row: ProviderRow, channel: Pick<Channel, "baseUrl">): string {
  const url = modelsUrl(row, channel);
  if (url === undefined) throw unsupported("models_unsupported");
  return url;
}

/** What a test calls unless somebody names a model. */
function testModelOf({ testModel, models }: Pick<Channel, "testModel" | "models">): string {
  return testModel || models[0] || FALLBACK_MODEL;
}

/** Why the channel's type or its test model cannot be tested. */
function untestable(channel: Channel): Failure | undefined {
  const { type } = channel;
  if (UNTESTED.has(type)) return unsupported("channel_untested");
  const row = providerOf(type);
  if (!row) return unsupported("provider_unknown");
  if (row.status === "retired" || row.status === "later") return unsupported("channel_untested");
  const model = testModelOf(channel);
  const isServed = routeFor(row, operationFor(model, type), upstreamModel(channel, model)) !== undefined;
  return isServed && !SOUND_AND_VIDEO_MODELS.test(model.toLowerCase())
    ? undefined
    : new Failure("client", "model_untested", { params: { model } });
}

export function createProbe(
  deps: Deps,
  relay: Pick<Relay, "probe" | "warm" | "dryRun" | "route">,
): ChannelProbe {
  return {
    test: (channel, model) => testChannel(deps, relay, channel, model),
    key: (channel, index, model) => testKey(relay, channel, index, model),
    listsModelsFor: (channel, index) => keyListsModels(deps, channel, index),
    warmLimit,
    warm: (probe) => relay.warm(probe),
    untestable,
    dryRun: (user, channel, request) => relay.dryRun(user, channel, request),
    route: async (question) => relay.route(question, await tokenOf(deps, question)),
    balance: (channel) => channelBalance(deps, channel),
    async models(channel) {
      const row = rowOf(channel.type);
      const url = modelsAddress(row, channel);
      const { answer } = await askWithKeys(deps, channel, (key) =>
        listOf(row, url, (page) => askChannel(deps, channel, page, { key, headers: ownHeaders(row, key) })),
      );
      return answer;
    },
    async typedModels({ baseUrl, type, key: typed }, isTrusted) {
      const row = rowOf(type);
      const url = modelsAddress(row, { baseUrl });
      // Whoever runs the server may look into its own networks.
      const allow = isTrusted ? deps.reach.networks(url, { baseUrl: url, setting: {} }) : [];
      // Nothing rests: these keys belong to no channel yet.
      const { answer } = await askInTurn(typedKeys(typed), (key) =>
        listOf(row, url, async (page) => {
          const limits = { maxBytes: MAX_ANSWER_BYTES, timeoutMs: TIMEOUT_MS };
          const guarded = await deps.guard(page, { headers: ownHeaders(row, key), ...limits, allow });
          const text = new TextDecoder().decode(guarded.bytes);
          return answerOf(guarded.status, guarded.headers, withoutKeys(text, [key]));
        }),
      );
      return answer;
    },
  };
}

/** One of the user's keys; throws where they have no such key. */
async function tokenOf(deps: Deps, { tokenId, user }: RouteQuestion): Promise<TokenAccount | undefined> {
  if (tokenId === 0) return undefined;
  const { tokens: t } = deps.db.t;
  const [row] = await deps.db.orm
    .select({ keySealed: t.keySealed })
    .from(t)
    .where(and(eq(t.id, tokenId), eq(t.userId, user.id)));
  const token = row && (await deps.accounts.tokenByKey(deps.seal.open("token", row.keySealed)));
  if (!token) throw refuse("record_missing");
  return token;
}

/** As they stand in the form, one to a line. */
function typedKeys(text: string): ChannelKey[] {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const keys = lines.length > 0 ? lines : [""];
  return keys.slice(0, MAX_KEYS_ASKED).map((key, keyIndex) => ({ key, keyIndex }));
}

/** GET below a channel's own address: it is called there anyway. */
async function askChannel(
  deps: Deps,
  channel: Channel,
  url: string,
  { key, headers }: { key: string; headers: Record<string, string> },
): Promise<Record<string, unknown>> {
  const { proxy } = channel.setting;
  // Some channels have their credentials there.
  applyHeaderRules({ channel, headers, client: new Headers(), key });
  const {
    status,
    headers: answered,
    text,
  } = await askUpstream({
    url,
    headers,
    proxy: typeof proxy === "string" ? proxy : "",
    reach: (address) => deps.reach.target(address, channel),
    timeoutMs: TIMEOUT_MS,
  });
  return answerOf(status, answered, withoutKeys(text, [key]));
}

/** One key that works is enough for the channel: a test goes on to the next one when it is the key that is refused. */
async function testChannel(
  deps: Deps,
  relay: Pick<Relay, "probe">,
  channel: Channel,
  model: string | undefined,
): Promise<ProbeResult> {
  const untested = UNTESTED.get(channel.type);
  if (untested !== undefined) {
    const failure = new Failure("client", "channel_untested", { text: untested });
    return { ms: 0, isFatal: false, failure };
  }
  const name = model || testModelOf(channel);
  const call = testCallFor(name, channel.type);
  const keys = keysInOrder(deps, channel, name);
  let result: ProbeResult = { ms: 0, isFatal: false };
  const badKeys: number[] = [];
  for (const { keyIndex } of keys) {
    result = await askKey(relay, channel, keyIndex, call);
    if (!result.isFatal) return { ...result, badKeys, ...(result.failure ? {} : { goodKey: keyIndex }) };
    badKeys.push(keyIndex);
  }
  // Of many keys those that were not asked may work.
  return { ...result, badKeys, isFatal: result.isFatal && keys.length === askableKeys(channel).length };
}

/** Asked on purpose: it takes no turn from calls, and what comes of it is for whoever asked. */
async function askKey(
  relay: Pick<Relay, "probe">,
  channel: Channel,
  index: number,
  call: TestCall,
): Promise<ProbeResult> {
  const startedMs = performance.now();
  const alone = {
    ...channel,
    keys: channel.keys.slice(index, index + 1),
    keyRows: channel.keyRows.slice(index, index + 1),
  };
  const { failure, isFatal } = await relay.probe(alone, call);
  return { ms: performance.now() - startedMs, isFatal, ...(failure ? { failure } : {}) };
}

/** One key, with the channel's test call; charges nobody, never throws. */
async function testKey(
  relay: Pick<Relay, "probe">,
  channel: Channel,
  index: number,
  model: string | undefined,
): Promise<ProbeResult> {
  const untested = untestable(channel);
  if (untested) return { ms: 0, isFatal: false, failure: untested };
  const result = await askKey(
    relay,
    channel,
    index,
    testCallFor(model || testModelOf(channel), channel.type),
  );
  if (!result.failure) return { ...result, goodKey: index };
  return result.isFatal ? { ...result, badKeys: [index] } : result;
}

/** Whether the provider, asked with this key alone, gives its list of models, which is free. Never throws. */
async function keyListsModels(deps: Deps, channel: Channel, index: number): Promise<KeyListing> {
  const row = providerOf(channel.type);
  const url = row && row.modelsListing?.isPublic !== true ? modelsUrl(row, channel) : undefined;
  const key = channel.keys[index];
  if (!row || url === undefined || key === undefined) return "unknown";
  try {
    const headers = ownHeaders(row, key);
    modelIds(await askChannel(deps, channel, url, { key, headers }), row);
    return "listed";
  } catch (error) {
    return error instanceof AttemptFailure && error.verdict === "rejected" ? "refused" : "unknown";
  }
}

/** Tokens of a streamed conversation that is only to show that the model answers; undefined: it has none. */
function warmLimit(channel: Channel, model: string): number | undefined {
  const row = providerOf(channel.type);
  const isGone = !row || row.status === "retired" || row.status === "later" || UNTESTED.has(channel.type);
  if (isGone || SOUND_AND_VIDEO_MODELS.test(model.toLowerCase())) return undefined;
  const name = upstreamModel(channel, model);
  const isChat = operationFor(model, channel.type) === "chat" && routeFor(row, "chat", name) !== undefined;
  return isChat ? warmLimitOf(name) : undefined;
}

/** The balance of the first account that has anything left: the channel works as long as one of them does. */
async function channelBalance(deps: Deps, channel: Channel): Promise<number> {
  const row = rowOf(channel.type);
  const read = (key: string): Promise<number> =>
    readBalance({
      row,
      channel,
      key,
      ask: (url, headers) => askChannel(deps, channel, url, { key, headers }),
      nowMs: deps.clock.nowMs(),
      currencyPerDollar: deps.options.get("Price"),
    });
  const { answer: left, refused } = await askWithKeys(deps, channel, read, (balance) => balance > 0);
  if (left > 0) return left;
  // Nothing is known of the accounts that were not asked, or told nothing: the channel is not empty because the others are.
  const silent = Math.max(askableKeys(channel).length - MAX_KEYS_ASKED, 0) + refused.length;
  if (silent === 0) return left;
  const internal = `nothing left on the accounts that answered; ${silent} said nothing`;
  throw new Failure("upstream-down", "balance_unreadable", { internal });
}
