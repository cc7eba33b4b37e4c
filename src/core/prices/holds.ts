// How much is held back for a call before its upstream gets it, and which limit on the answer that amount pays.
// Refuses to assume that an answer will be short: what is held is what the limit that is sent can cost.
import { MAX_QUOTA } from "../../shared/money.ts";
import { ratioOfDollars } from "../../shared/cost.ts";
import type { TokenRates } from "../../shared/cost.ts";
import { MAX_TOKEN_COUNT } from "../../shared/usage.ts";
import { dearestPrices } from "./rules.ts";
import type { CallPrice } from "./prices.ts";

/** Tokens of the answer that a hold covers where nobody knows how long the model's can be. */
export const UNKNOWN_MAX_OUTPUT = 16_384;
/** The largest limit that is sent to a model whose longest answer is unknown: more may be refused by its upstream. */
export const UNKNOWN_MAX_SENT = 4096;
/** An answer is worth having from this length on. */
export const FLOOR_TOKENS = 1024;
/** Below this an answer is none. */
export const LEAST_TOKENS = 16;
/** The hold of a stream grows by at least so many tokens. */
export const STEP_TOKENS = 1000;
/** What an answer usually is, where fewer were seen. */
export const USUAL_OUTPUT = 500;
/** A call beside others takes no more than this share of what is available, as long as that is worth having. */
const SHARE = 4;

/** Which of a model's prices may apply to a request. */
export interface DearestOf {
  /** The prompt may be written to a cache: not at all, for five minutes, or for an hour. */
  cacheWrite: "none" | "short" | "long";
  audioInput: boolean;
  imageInput: boolean;
  audioOutput: boolean;
  /** Tokens of the prompt, as many as they may be; undefined: any number. */
  inputTokens?: number | undefined;
  /** Service tiers that some channel may ask for. */
  tiers?: readonly string[];
}

/** Units per token, group ratio included, at the dearest price that may apply. */
export interface HoldRates {
  text: number;
  media: number;
  output: number;
}

/** The same where rules decide what tokens cost: of every entry that may still act, kind by kind. */
function ruledRates(rates: TokenRates, unitsPerDollar: number, dearest: DearestOf): HoldRates {
  let text = Math.max(rates.in, rates.cache_read);
  if (dearest.cacheWrite !== "none") text = Math.max(text, rates.cache_write);
  if (dearest.cacheWrite === "long") text = Math.max(text, rates.cache_write_1h);
  let media = text;
  if (dearest.imageInput) media = Math.max(media, rates.image_in);
  if (dearest.audioInput) media = Math.max(media, rates.audio_in);
  // A model that has a price of pictures in answers may answer with one.
  let output = Math.max(rates.out, rates.thinking, rates.image_out);
  if (dearest.audioOutput) output = Math.max(output, rates.audio_out);
  return { text: text * unitsPerDollar, media: media * unitsPerDollar, output: output * unitsPerDollar };
}

export function ratesOf(price: CallPrice, dearest: DearestOf): HoldRates {
  const { ratios, groupRatio, quotaPerUnit, rules } = price;
  const { modelRatio, completionRatio, audioRatio } = ratios;
  if (ratios.callPrice !== undefined) return { text: 0, media: 0, output: 0 };
  const rates = rules ? dearestPrices(rules, dearest.inputTokens, dearest.tiers).rates : ratios.rates;
  if (rates) return ruledRates(rates, ratioOfDollars(1, quotaPerUnit) * groupRatio, dearest);
  const rate = modelRatio * groupRatio;
  let input = Math.max(1, ratios.cacheRatio);
  if (dearest.cacheWrite !== "none") input = Math.max(input, ratios.cacheWriteRatio);
  if (dearest.cacheWrite === "long") input = Math.max(input, ratios.cacheWrite1hRatio);
  let media = input;
  if (dearest.imageInput) media = Math.max(media, ratios.imageRatio);
  if (dearest.audioInput) media = Math.max(media, audioRatio);
  const spoken = dearest.audioOutput ? audioRatio * ratios.audioCompletionRatio : 0;
  return { text: rate * input, media: rate * media, output: rate * Math.max(completionRatio, spoken) };
}

/** Dollars of a call at a fixed price, the dearest that its rules may come to; undefined: it is priced by token. */
export function heldCallPrice(
  { ratios, rules }: CallPrice,
  tiers: readonly string[] = [],
): number | undefined {
  if (ratios.callPrice === undefined || !rules) return ratios.callPrice;
  return dearestPrices(rules, undefined, tiers).call ?? ratios.callPrice;
}

/** What a hold follows from. */
export interface HoldTerms {
  /** Units that are due however long the answer is: the prompt, hosted tools, a fixed price. */
  fixedUnits: number;
  /** Units that the prompt may cost beyond its part of those, as long as nobody has counted it. */
  unsureUnits: number;
  /** Units per token of the prompt's text, and of an answer. */
  inputRate: number;
  outputRate: number;
  /** Answers that are asked for at once. */
  choices: number;
  /** The client's own limit on one answer, or the operator's in its place; undefined = none. */
  clientLimit: number | undefined;
  /** The longest answer of the model; undefined = unknown. */
  maxOutput: number | undefined;
  /** The smallest limit that may be sent, where its upstreams refuse what is below; absent: 1. */
  leastSent?: number;
  /** Tokens of an answer that are thoughts before it begins; 0 = no fixed number. */
  thinkingBudget: number;
  /** Units that a call without a limit holds at least, where they are there (PreConsumedQuota). */
  leastUnits: number;
}

export interface WantedHold {
  amount: number;
  /** Less than this serves nothing, however short the prompt turns out to be: the call is refused. */
  least: number;
}

/** Whole units that cover the value; a hair above a whole unit is an artefact of binary fractions. */
function covering(units: number): number {
  if (!(units > 0)) return 0;
  const near = Math.round(units);
  const covered = Math.abs(units - near) <= Math.min(units * 1e-12, 1e-6) ? near : Math.ceil(units);
  return Math.min(covered, MAX_QUOTA);
}

const perToken = ({ outputRate, choices }: HoldTerms): number => outputRate * choices;

/** Units for answers of so many tokens each, whatever the prompt turns out to be. */
export function unitsFor(terms: HoldTerms, tokens: number): number {
  return covering(terms.fixedUnits + terms.unsureUnits + tokens * perToken(terms));
}

/** The same where the prompt is no longer than its estimate. */
function leastFor(terms: HoldTerms, tokens: number): number {
  return covering(terms.fixedUnits + tokens * perToken(terms));
}

/** Tokens of each answer that the amount pays beside what is due anyway. */
function tokensFor(terms: HoldTerms, amount: number): number {
  const rate = perToken(terms);
  if (rate <= 0) return MAX_TOKEN_COUNT;
  const tokens = (amount - terms.fixedUnits - terms.unsureUnits) / rate;
  const near = Math.round(tokens);
  const paid = Math.abs(tokens - near) <= 1e-6 ? near : Math.floor(tokens);
  return Math.max(0, Math.min(paid, MAX_TOKEN_COUNT));
}

/** The longest answer that may have to be paid: by the client's limit, else by what the model can. */
export function mostTokens({ clientLimit, maxOutput }: HoldTerms): number {
  return Math.min(clientLimit ?? Infinity, maxOutput ?? UNKNOWN_MAX_OUTPUT);
}

function upTo({ clientLimit }: HoldTerms, tokens: number): number {
  return Math.min(clientLimit ?? Infinity, tokens);
}

function floorTokens(terms: HoldTerms): number {
  return Math.min(upTo(terms, terms.thinkingBudget + FLOOR_TOKENS), mostTokens(terms));
}

function leastTokens(terms: HoldTerms): number {
  return Math.min(upTo(terms, terms.thinkingBudget + LEAST_TOKENS), mostTokens(terms));
}

/** The largest limit that may be sent where one has to be. */
function mostSent(terms: HoldTerms): number {
  const most = mostTokens(terms);
  return terms.maxOutput === undefined
    ? Math.min(most, Math.max(UNKNOWN_MAX_SENT, floorTokens(terms)))
    : most;
}

function withLeast(terms: HoldTerms, available: number, amount: number): number {
  if (terms.clientLimit !== undefined) return amount;
  return Math.max(amount, Math.min(covering(terms.leastUnits), Math.floor(available)));
}

/**
 * The hold of a call whose answer can only be bounded by a limit that its upstream keeps. `mayLimit`: such a limit can
 * be written into the request; otherwise the full amount is held, or the call refused.
 */
export function limitedHold(terms: HoldTerms, available: number, mayLimit: boolean): WantedHold {
  const full = withLeast(terms, available, unitsFor(terms, mostTokens(terms)));
  if (perToken(terms) <= 0) return { amount: full, least: leastFor(terms, 0) };
  if (!mayLimit) return { amount: full, least: Math.min(full, leastFor(terms, mostTokens(terms))) };
  const least = leastFor(terms, leastTokens(terms));
  // What is unsure of the prompt comes back: nobody's answer is shorter for it.
  const share = available / SHARE + terms.unsureUnits;
  if (full <= share) return { amount: full, least };
  const ofShare = tokensFor(terms, share);
  const tokens = Math.min(Math.max(ofShare, floorTokens(terms)), mostTokens(terms));
  if (tokens === mostTokens(terms)) return { amount: full, least };
  return { amount: unitsFor(terms, Math.min(tokens, mostSent(terms))), least };
}

/** The limit that has to be sent with what was held in the end; undefined = nothing: the full amount is held. */
export function limitToSend(terms: HoldTerms, amount: number): number | undefined {
  if (perToken(terms) <= 0) return undefined;
  const paid = tokensFor(terms, amount);
  return paid >= mostTokens(terms) ? undefined : Math.min(paid, mostSent(terms));
}

/** The first hold of a stream, which grows as the stream does. `usual`: what the model's answers are on this site. */
export function firstHold(terms: HoldTerms, available: number, usual: number): WantedHold {
  const amount = unitsFor(terms, upTo(terms, Math.max(usual, terms.thinkingBudget + LEAST_TOKENS)));
  return {
    amount: withLeast(terms, available, amount),
    least: leastFor(terms, perToken(terms) <= 0 ? 0 : upTo(terms, LEAST_TOKENS)),
  };
}

/** Tokens over all answers that the amount covers. */
export function coveredTokens(terms: HoldTerms, amount: number): number {
  if (terms.outputRate <= 0) return MAX_TOKEN_COUNT;
  const paid = amount - terms.fixedUnits - terms.unsureUnits;
  return Math.max(0, Math.min(paid / terms.outputRate, MAX_TOKEN_COUNT));
}

/** Whole units for so many more tokens. */
export function unitsForMore(outputRate: number, tokens: number): number {
  return covering(outputRate * tokens);
}

/** What a call holds that has a hard cap, and the limit by which its answer stays below it. */
export interface CappedHold extends WantedHold {
  /** Tokens of each answer; undefined = none has to be sent. */
  limit: number | undefined;
}

/**
 * The limit that keeps an answer below the cap: floor((cap − what is due anyway) ÷ (rate × answers)), money.md 8.2. Undefined:
 * the client's own, or the model's longest answer, does.
 */
export function limitUnder(terms: HoldTerms, cap: number): number | undefined {
  if (perToken(terms) <= 0) return undefined;
  const { clientLimit, maxOutput } = terms;
  const paid = tokensFor(terms, cap);
  if (paid >= Math.min(clientLimit ?? Infinity, maxOutput ?? clientLimit ?? UNKNOWN_MAX_OUTPUT))
    return undefined;
  // A client that asked for more knows that its model can.
  if (clientLimit !== undefined || maxOutput !== undefined) return paid;
  return Math.min(paid, Math.max(UNKNOWN_MAX_SENT, floorTokens(terms)));
}

/**
 * The hold of a call that may cost no more than `cap` units: min(worst, cap), whatever else the balance is for. Undefined:
 * the cap pays no answer, because the input alone passes it, or thoughts of a fixed length do, or nothing could hold the
 * answer below it: neither a limit that is written into the request (`mayLimit`) nor a stream that is ended in time (`mayCut`).
 */
export function cappedHold(
  terms: HoldTerms,
  cap: number,
  { mayLimit, mayCut }: { mayLimit: boolean; mayCut: boolean },
): CappedHold | undefined {
  // In whole units: a hair above what the cap pays is an artefact of binary fractions.
  if (unitsFor(terms, 0) > cap) return undefined;
  if (perToken(terms) <= 0) {
    const amount = Math.min(unitsFor(terms, 0), Math.floor(cap));
    return { amount, least: amount, limit: undefined };
  }
  const limit = limitUnder(terms, cap);
  const leastLimit = mayLimit ? (terms.leastSent ?? 1) : 1;
  if (
    limit !== undefined &&
    (limit < leastLimit || (terms.thinkingBudget > 0 && limit <= terms.thinkingBudget))
  )
    return undefined;
  if (limit !== undefined && !mayLimit && !mayCut) return undefined;
  const worst = unitsFor(terms, limit ?? mostTokens(terms));
  const amount = Math.min(mayLimit ? worst : unitsFor(terms, mostTokens(terms)), Math.floor(cap));
  const least = mayLimit ? unitsFor(terms, Math.min(limit ?? Infinity, leastTokens(terms))) : amount;
  return { amount, least: Math.min(least, amount), limit: mayLimit ? limit : undefined };
}
