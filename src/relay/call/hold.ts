// What is held back for one call, worked out from its request: the prompt, its tools, and the answer that it may get.
// Refuses a call that the caller could not pay: the ledger decides, with the least amount that serves.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps, Ledger, Reservation, ReserveRequest } from "../../core/deps.ts";
import type { RateClaim } from "../../core/limits/shared-rates.ts";
import { userShort } from "../../core/ledger/refusals.ts";
import {
  cappedHold,
  coveredTokens,
  firstHold,
  limitedHold,
  limitToSend,
  limitUnder,
  mostTokens,
  ratesOf,
  unitsFor,
} from "../../core/prices/holds.ts";
import type { DearestOf, HoldTerms, WantedHold } from "../../core/prices/holds.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import type { DialectName } from "../../protocol/canonical.ts";
import { asList, asObject } from "../../protocol/json.ts";
import { LEAST_OUTPUT_TOKENS } from "../../protocol/openai-responses/wire.ts";
import { routeFor } from "../../providers/address.ts";
import { losesSearch } from "../../providers/apply-rules.ts";
import { providerOf } from "../../providers/catalog.ts";
import type { FailureCode } from "../../shared/failure-codes.ts";
import { Failure } from "../../shared/failures.ts";
import type { Caller } from "./admission.ts";
import type { GroupPrice, GroupTerms } from "./auto-group.ts";
import { overCap } from "./cap.ts";
import { factsFor, leastLimit } from "./hold-facts.ts";
import type { ChannelFacts } from "./hold-facts.ts";
import { countedFirst, dueUnits, isFarEnough, withCounted } from "./hold-input.ts";
import { choicesOf } from "../endpoints/choices.ts";
import type { Endpoint, Json } from "../endpoints/endpoint.ts";
import { limitIn } from "../endpoints/output-limit.ts";
import { hostedToolUnits, searchWish } from "../endpoints/hosted-tools.ts";
import type { PromptSize } from "../meter/meter.ts";
import { claudeDefaultMaxTokens, leastThinkingTokens } from "../endpoints/model-settings.ts";
import type { RelayBody } from "../wire/read-body.ts";
import { keepsReasoning, thinkingBudgetOf } from "../endpoints/hidden-reasoning.ts";
import type { TokenCounter } from "../meter/token-count.ts";
import type { UsualOutput } from "./usual-output.ts";

/** What the hold of a call means for its answer. */
export interface CallHold {
  /** The limit that has to be sent, because no more is held; undefined = the request goes as it is. */
  readonly limit: number | undefined;
  /** Output tokens over all answers that the amount covers so far. */
  readonly tokens: number;
  /** Those that its upstream may give, by the limit that it is sent, whoever set it; Infinity: without any. */
  readonly mostTokens: number;
  /** Units of one output token more, and of one of the prompt. */
  readonly outputRate: number;
  readonly inputRate: number;
  /** Units that are held beyond the prompt's estimate, as long as nobody has counted it. */
  readonly unsureUnits: number;
  /** The first hold of a stream, lengthened as it goes; otherwise all that the limit can cost is held. */
  readonly grows: boolean;
  /** Units that the call may cost at most; undefined: as much as it takes. */
  readonly cap: number | undefined;
  /** Whose limit is sent: that of the cap, or what the balance pays. */
  readonly isLimitedByCap: boolean;
}

/** A call that holds nothing: a test of the operator's own. */
export const NO_HOLD: CallHold = {
  limit: undefined,
  tokens: Infinity,
  mostTokens: Infinity,
  outputRate: 0,
  inputRate: 0,
  unsureUnits: 0,
  grows: false,
  cap: undefined,
  isLimitedByCap: false,
};

/** Its reservation. */
export const FREE: Reservation = {
  requestId: "",
  amount: 0,
  grow: (more) => more,
  settle: () => Promise.resolve(),
  release: () => Promise.resolve(),
};

/** Legacy completions stop here when the request says nothing. */
const COMPLETION_TOKENS = 16;

export interface HoldRequest {
  requestId: string;
  caller: Caller;
  endpoint: Endpoint;
  body: RelayBody;
  model: string;
  /** The dearest of those below. */
  price: CallPrice;
  /** Of an automatic key, in the order in which the groups are asked. */
  groupPrices: readonly GroupPrice[] | undefined;
  prompt: PromptSize;
  wantsStream: boolean;
  pinned: Channel | undefined;
  /** Tokens of the answer that the call goes on from, which its provider reads again; 0 = none is known. */
  earlierTokens: number;
  /** Units that it may cost at most; undefined: as much as it takes. */
  cap: number | undefined;
  /** Under the rate of the site, which is asked about with the hold. */
  rate?: RateClaim | undefined;
  /**
   * What is sent in the body's place, in its upstream's words, where the rules of a channel changed it. `prompt` is the body
   * that is counted; by so many tokens its prompt got longer.
   */
  sent?: { dialect: DialectName; json: Json; prompt: Json; addedTokens: number };
}

/** What a call would hold if it came now; nothing is. */
export interface Forecast {
  /** With its prompt counted. */
  request: HoldRequest;
  terms: HoldTerms;
  wanted: WantedHold;
  /** Limit that would have to be sent. */
  limit: number | undefined;
  /** Units. */
  available: number;
}

/** Throws what the call itself would be refused with by its cap. */
export async function forecast(services: HoldServices, asked: HoldRequest): Promise<Forecast> {
  const facts = factsFor(services.deps.routing, asked);
  const request = await withCounted(services, asked);
  const { cap, caller } = request;
  await services.deps.ledger.ready(caller);
  const growsAlong = cap === undefined && growsWith(request, facts);
  const terms = termsOf(services, request, facts);
  const wanted = wantedOf(services, request, terms, growsAlong);
  const limit = growsAlong
    ? undefined
    : cap === undefined
      ? limitToSend(terms, wanted.amount)
      : limitUnder(terms, cap);
  return { request, terms, wanted, limit, available: services.deps.ledger.available(caller) };
}

export interface Held {
  reservation: Reservation;
  /** As it was held for: estimated, or counted where the balance is too near for an estimate. */
  prompt: PromptSize;
  hold: CallHold;
  /** What the amount pays in each group of an automatic key. */
  groups: readonly GroupTerms[] | undefined;
}

/** Which prices may apply. */
function dearestOf(
  { body, endpoint, prompt, earlierTokens }: HoldRequest,
  tiers: readonly string[],
): DearestOf {
  const { json, text } = body;
  const { mediaTokens, cacheWrite, tokens, mostTokens } = prompt;
  const hasMedia = mediaTokens > 0;
  const hasAudio = hasMedia && text.includes("audio");
  const spoken = asList(
    json["modalities"] ??
      asObject(json["generationConfig"] ?? json["generation_config"])?.["responseModalities"],
  );
  return {
    cacheWrite,
    audioInput: hasAudio,
    imageInput: hasMedia,
    audioOutput:
      endpoint.heldSound !== undefined || spoken.some((kind) => String(kind).toLowerCase() === "audio"),
    inputTokens: Math.max(tokens, mostTokens) + earlierTokens,
    tiers,
  };
}

/** Tiers that some channel may ask its upstream for. */
function possibleTiers({ price }: HoldRequest, facts: ChannelFacts): readonly string[] {
  const asked = price.rules?.request.tier;
  if (asked === undefined || !facts.allowsTiers) return facts.overriddenTiers;
  return [asked, ...facts.overriddenTiers];
}

/** What the hold of a call is worked out with. */
export interface HoldServices {
  deps: Pick<Deps, "ledger" | "options" | "prices" | "routing">;
  usual: UsualOutput;
  counter: TokenCounter;
}

/** Holds back what the call may cost. Usually at once: a promise for every call would cost each of them a turn. */
export function holdCall(services: HoldServices, request: HoldRequest): Held | Promise<Held> {
  const unread = services.deps.ledger.ready(request.caller);
  if (unread) return unread.then(() => holdCall(services, request));
  const facts = factsFor(services.deps.routing, request);
  // A hard cap goes by what the prompt is, not by what it may be.
  if (request.cap !== undefined)
    return withCounted(services, request).then((counted) => reserveFor(services, counted, facts, false));
  const growsAlong = growsWith(request, facts);
  return reserveFor(services, request, facts, growsAlong);
}

function growsWith({ wantsStream, body }: HoldRequest, facts: ChannelFacts): boolean {
  return wantsStream && !facts.names.some((name) => keepsReasoning(name, body.json));
}

function reserveFor(
  services: HoldServices,
  request: HoldRequest,
  facts: ChannelFacts,
  growsAlong: boolean,
): Held | Promise<Held> {
  const { caller, endpoint, requestId, prompt, model } = request;
  const { ledger } = services.deps;
  const { user, token } = caller;
  const terms = termsOf(services, request, facts);
  const wanted: ReserveRequest = {
    requestId,
    user,
    token,
    ...wantedOf(services, request, terms, growsAlong),
    unsure: terms.unsureUnits,
    promptTokens: prompt.tokens,
    rate: request.rate,
    tokens:
      prompt.tokens +
      (endpoint.answersTokens === false ? 0 : answerTokens(terms, services.usual.of(model), growsAlong)),
  };
  if (!isFarEnough(ledger.available(caller), terms, wanted.amount))
    return countedFirst(services, request, wanted.least, (counted) =>
      reserveFor(services, counted, facts, growsAlong),
    );
  const { quotaCode } = endpoint;
  const reserved =
    quotaCode === undefined ? ledger.reserve(wanted) : reserveWithCode(quotaCode, ledger, wanted);
  const made = (reservation: Reservation): Held | Promise<Held> =>
    terms.unsureUnits > 0 && reservation.amount < wanted.amount
      ? countShort(services, request, facts, { reservation, growsAlong })
      : heldFor(services, request, { reservation, terms, growsAlong });
  return reserved instanceof Promise ? reserved.then(made) : made(reserved);
}

/** Less was there than memory had said: the prompt is counted before anything is made of what there was. */
async function countShort(
  services: HoldServices,
  request: HoldRequest,
  facts: ChannelFacts,
  { reservation, growsAlong }: { reservation: Reservation; growsAlong: boolean },
): Promise<Held> {
  try {
    const counted = await withCounted(services, request);
    const terms = termsOf(services, counted, facts);
    const { least } = wantedOf(services, counted, terms, growsAlong, reservation.amount);
    if (reservation.amount >= least) return heldFor(services, counted, { reservation, terms, growsAlong });
    await reservation.release();
    // The ledger says what is in the way. A request under the rate of the site it was already.
    return await reserveFor(services, { ...counted, rate: undefined }, facts, growsAlong);
  } catch (error) {
    await reservation.release();
    throw error;
  }
}

/**
 * What a call counts towards tokens a minute while it is open: a stream begins with the usual length and counts on as it
 * grows, any other call may take what its limit says before anybody can look.
 */
function answerTokens(
  { clientLimit, maxOutput = Infinity, choices }: HoldTerms,
  usual: number,
  growsAlong: boolean,
): number {
  const most = Math.min(clientLimit ?? usual, maxOutput);
  return choices * (growsAlong ? Math.min(most, usual) : most);
}

/** Reserves; where the balance cannot pay, clients of the endpoint know that by a code of its own. */
async function reserveWithCode(
  quotaCode: FailureCode,
  ledger: Pick<Ledger, "reserve">,
  request: ReserveRequest,
): Promise<Reservation> {
  try {
    return await ledger.reserve(request);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "user_quota_short") throw error;
    throw new Failure("quota", quotaCode, { params: error.params, wireCode: "insufficient_user_quota" });
  }
}

/** The body goes on as the client wrote it: neither limits nor overrides reach it. */
function isRaw({ deps }: HoldServices, endpoint: Endpoint): boolean {
  return deps.options.get("global.pass_through_request_enabled") && !endpoint.rewrite;
}

/** What is passed through as it is cannot be limited, nor can a part of an operation that knows no limit. */
function mayBeLimited(services: HoldServices, request: HoldRequest): boolean {
  const { endpoint } = request;
  if (isRaw(services, endpoint) || endpoint.isPart === true) return false;
  return !(endpoint.isConversation && factsFor(services.deps.routing, request).isPassedThrough);
}

/** The client's own limit, or what an operator puts in its place. */
function limitOf(
  services: HoldServices,
  { endpoint, body, model, sent }: HoldRequest,
  facts: ChannelFacts,
): number | undefined {
  // What was sent has whatever an operator put there.
  if (sent) return limitIn(sent.dialect, sent.json) || undefined;
  let named = endpoint.outputLimit(body.json) || undefined;
  if (named === undefined && endpoint.name === "completions") named = COMPLETION_TOKENS;
  if (named === undefined && endpoint.name === "messages")
    named = claudeDefaultMaxTokens(services.deps.options, model);
  // What is converted is sent with no smaller one.
  if (named !== undefined && named < LEAST_OUTPUT_TOKENS && endpoint.dialect !== "openai-responses")
    named = Math.max(named, leastLimit(endpoint, facts));
  if (facts.largestOverride === 0 || isRaw(services, endpoint)) return named;
  if (facts.isAlwaysOverridden) return facts.largestOverride;
  return named === undefined ? undefined : Math.max(named, facts.largestOverride);
}

/** What hosted tools can cost; a search that no channel's model can do is taken out, and holds nothing. */
function toolUnits(services: HoldServices, request: HoldRequest, { places }: ChannelFacts): number {
  const { endpoint, body, model, price } = request;
  const units = hostedToolUnits(body.json, model, price);
  if (units === 0 || isRaw(services, endpoint)) return units;
  const wish = searchWish(body.json);
  const isLost = places.every(({ type, name }) => {
    const row = providerOf(type);
    const found = row && routeFor(row, endpoint.name, name);
    if (!found) return true;
    const isConverted = found.route.dialect !== endpoint.dialect;
    return losesSearch(row, found.operation, name, wish, isConverted);
  });
  return isLost ? hostedToolUnits(body.json, model, price, false) : units;
}

function termsOf(services: HoldServices, request: HoldRequest, facts: ChannelFacts): HoldTerms {
  const { options, prices } = services.deps;
  const { endpoint, body, model, price } = request;
  const { ratios, groupRatio } = price;
  const tiers = possibleTiers(request, facts);
  const rates = ratesOf(price, dearestOf(request, tiers));
  const named = facts.hasThinkingName ? leastThinkingTokens(options) : 0;
  const isAnswered = endpoint.answersTokens !== false;
  const byToken = ratios.callPrice === undefined;
  return {
    ...dueUnits(request, rates, { hosted: toolUnits(services, request, facts), tiers }),
    inputRate: rates.text,
    outputRate: isAnswered ? rates.output : 0,
    choices: choicesOf(request.sent?.dialect ?? endpoint.dialect, request.sent?.json ?? body.json),
    clientLimit: isAnswered ? limitOf(services, request, facts) : undefined,
    maxOutput: prices.maxOutput(model),
    ...(request.cap === undefined ? {} : { leastSent: leastLimit(endpoint, facts) }),
    thinkingBudget: Math.max(thinkingBudgetOf(body.json), named),
    leastUnits: byToken ? options.get("PreConsumedQuota") * ratios.modelRatio * groupRatio : 0,
  };
}

function wantedOf(
  services: HoldServices,
  request: HoldRequest,
  terms: HoldTerms,
  growsAlong: boolean,
  held = 0,
): WantedHold {
  const { caller, model, cap, wantsStream } = request;
  const mayLimit = mayBeLimited(services, request);
  if (cap !== undefined) {
    const capped = cappedHold(terms, cap, { mayLimit, mayCut: wantsStream });
    if (!capped) throw overCap(services.deps.options, leastUnder(terms, mayLimit || wantsStream), cap);
    return { amount: capped.amount, least: capped.least };
  }
  const available = services.deps.ledger.available(caller) + held;
  if (growsAlong) return firstHold(terms, available, services.usual.of(model));
  return limitedHold(terms, available, mayLimit);
}

/** The least that the call could cost, in units: its input and the shortest answer, or thoughts of a fixed length; else all of it. */
function leastUnder(terms: HoldTerms, mayEnd: boolean): number {
  if (terms.outputRate <= 0) return unitsFor(terms, 0);
  return unitsFor(
    terms,
    mayEnd ? Math.max(terms.thinkingBudget + 1, terms.leastSent ?? 1) : mostTokens(terms),
  );
}

/**
 * Holds what a request costs as it is sent, beside what is held for it already. Throws `user_quota_short` where the balance
 * does not pay the least of it, and what a cap refuses.
 */
export async function holdAgain(
  services: HoldServices,
  request: HoldRequest,
  reservation: Reservation,
): Promise<CallHold> {
  const facts = factsFor(services.deps.routing, request);
  const growsAlong = request.cap === undefined && growsWith(request, facts);
  const terms = termsOf(services, request, facts);
  const { amount, least } = wantedOf(services, request, terms, growsAlong, reservation.amount);
  const { ledger, options } = services.deps;
  const counted = async () => holdAgain(services, await withCounted(services, request), reservation);
  if (!isFarEnough(ledger.available(request.caller) + reservation.amount, terms, amount)) return counted();
  const more = amount - reservation.amount;
  if (more > 0) await reservation.grow(more);
  if (terms.unsureUnits > 0 && reservation.amount < amount) return counted();
  if (reservation.amount < least)
    throw userShort(options, {
      available: ledger.available(request.caller) + reservation.amount,
      amount: least,
      isPlan: false,
    });
  return heldFor(services, request, { reservation, terms, growsAlong }).hold;
}

function heldFor(
  services: HoldServices,
  request: HoldRequest,
  { reservation, terms, growsAlong }: { reservation: Reservation; terms: HoldTerms; growsAlong: boolean },
): Held {
  const { amount } = reservation;
  const { price, groupPrices, prompt, cap } = request;
  const holdOf = (at: HoldTerms): CallHold =>
    cap === undefined
      ? openHold(at, amount, growsAlong)
      : capHold(at, { amount, cap, mayLimit: mayBeLimited(services, request) });
  const hold = holdOf(terms);
  const groups = groupPrices?.map((each): GroupTerms => ({
    ...each,
    hold:
      each.price.groupRatio === price.groupRatio
        ? hold
        : holdOf(termsAt(terms, each.price.groupRatio / price.groupRatio)),
  }));
  return { reservation, prompt, hold, groups };
}

function openHold(terms: HoldTerms, amount: number, growsAlong: boolean): CallHold {
  const limit = growsAlong ? undefined : limitToSend(terms, amount);
  return {
    limit,
    mostTokens: mostAnswered(terms, limit),
    tokens: coveredTokens(terms, amount),
    outputRate: terms.outputRate,
    inputRate: terms.inputRate,
    unsureUnits: terms.unsureUnits,
    grows: growsAlong,
    cap: undefined,
    isLimitedByCap: false,
  };
}

function mostAnswered({ choices, clientLimit = Infinity }: HoldTerms, limit = clientLimit): number {
  return choices * limit;
}

/** Under a cap: its limit, or that of a balance which pays less. */
function capHold(
  terms: HoldTerms,
  { amount, cap, mayLimit }: { amount: number; cap: number; mayLimit: boolean },
): CallHold {
  const ofCap = mayLimit ? limitUnder(terms, cap) : undefined;
  const worst = Math.min(cap, unitsFor(terms, ofCap ?? mostTokens(terms)));
  const ofBalance = mayLimit && amount < worst ? limitToSend(terms, amount) : undefined;
  const limit = ofBalance ?? ofCap;
  return {
    limit,
    mostTokens: mostAnswered(terms, limit),
    tokens: coveredTokens(terms, amount),
    outputRate: terms.outputRate,
    inputRate: terms.inputRate,
    unsureUnits: terms.unsureUnits,
    grows: false,
    cap,
    isLimitedByCap: ofBalance === undefined && ofCap !== undefined,
  };
}

/** The same call in a group whose ratio is that share of the dearest one's: all that it costs is a multiple of it. */
function termsAt(terms: HoldTerms, share: number): HoldTerms {
  return {
    ...terms,
    fixedUnits: terms.fixedUnits * share,
    unsureUnits: terms.unsureUnits * share,
    inputRate: terms.inputRate * share,
    outputRate: terms.outputRate * share,
    leastUnits: terms.leastUnits * share,
  };
}
