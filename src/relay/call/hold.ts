// What is held back for one call, worked out from its request: the prompt, its tools, and the answer that it may get.
// Refuses to let a call begin that the caller could not pay: the ledger decides, with the least amount that serves.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps, Reservation, ReserveRequest } from "../../core/deps.ts";
import {
  coveredTokens,
  firstHold,
  limitedHold,
  limitToSend,
  ratesOf,
  USUAL_OUTPUT,
} from "../../core/prices/holds.ts";
import type { DearestOf, HoldTerms, WantedHold } from "../../core/prices/holds.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import type { Tier } from "../../core/channels/routing.ts";
import { asList, asObject } from "../../protocol/json.ts";
import type { Caller } from "./admission.ts";
import type { Endpoint, Json } from "../endpoints/endpoint.ts";
import { holdBack } from "./reserve.ts";
import { hostedToolUnits } from "../endpoints/hosted-tools.ts";
import { countPrompt } from "../meter/meter.ts";
import type { PromptSize } from "../meter/meter.ts";
import { asksToThink, claudeDefaultMaxTokens, leastThinkingTokens } from "../endpoints/model-settings.ts";
import { overriddenLimit } from "../endpoints/output-limit.ts";
import type { RelayBody } from "../wire/read-body.ts";
import { keepsReasoning, thinkingBudgetOf } from "../endpoints/hidden-reasoning.ts";
import type { TokenCounter } from "../meter/token-count.ts";

/** What the hold of a call means for its answer. */
export interface CallHold {
  /** The limit that has to be sent, because no more is held; undefined = the request goes as it is. */
  readonly limit: number | undefined;
  /** Output tokens over all answers that the amount covers so far. */
  readonly tokens: number;
  /** Units of one output token more, and of one of the prompt. */
  readonly outputRate: number;
  readonly inputRate: number;
  /** The first hold of a stream, lengthened as it goes; otherwise all that the limit can cost is held. */
  readonly grows: boolean;
}

/** A call that holds nothing: a test of the operator's own. */
export const NO_HOLD: CallHold = {
  limit: undefined,
  tokens: Infinity,
  outputRate: 0,
  inputRate: 0,
  grows: false,
};

/** Tokens of a large picture: what one costs that is priced by the token. */
const PICTURE_TOKENS = 6240;
/** Legacy completions stop here when the request says nothing. */
const COMPLETION_TOKENS = 16;

/** How long the answers of each model are on this site. */
export interface UsualOutput {
  of(model: string): number;
  learn(model: string, tokens: number): void;
}

const MAX_MODELS = 5000;
/** The mean follows the last answers: a model that is renamed behind its name is soon known again. */
const MEMORY_ANSWERS = 200;

export function createUsualOutput(): UsualOutput {
  const seen = new Map<string, { mean: number; count: number }>();
  return {
    of: (model) => Math.max(USUAL_OUTPUT, Math.ceil(seen.get(model)?.mean ?? 0)),
    learn(model, tokens) {
      const known = seen.get(model);
      if (!known) {
        if (seen.size >= MAX_MODELS) seen.clear();
        seen.set(model, { mean: tokens, count: 1 });
        return;
      }
      known.count = Math.min(known.count + 1, MEMORY_ANSWERS);
      known.mean += (tokens - known.mean) / known.count;
    },
  };
}

/** What the channels that may serve a model add to a request. */
interface ChannelFacts {
  /** Limits that operators put in the client's place; 0 = none. */
  largestOverride: number;
  isAlwaysOverridden: boolean;
  /** The model's names at the upstreams, its own among them. */
  names: readonly string[];
  /** One of them asks for thinking by its suffix. */
  hasThinkingName: boolean;
}

/** Tiers are built anew when one of their channels changes. */
const factsOf = new WeakMap<readonly Tier[], ChannelFacts>();

function channelFacts(tiers: readonly Tier[], pinned: Channel | undefined, model: string): ChannelFacts {
  if (pinned) return gather([pinned], model);
  let facts = factsOf.get(tiers);
  if (!facts) {
    facts = gather(
      tiers.flatMap(({ entries }) => entries.map(({ channel }) => channel)),
      model,
    );
    factsOf.set(tiers, facts);
  }
  return facts;
}

function gather(channels: readonly Channel[], model: string): ChannelFacts {
  const limits = channels.map(({ paramOverride }) => overriddenLimit(paramOverride ?? {}));
  const names = new Set([model]);
  for (const { modelMapping } of channels)
    if (typeof modelMapping !== "string") names.add(modelMapping.get(model) ?? model);
  return {
    largestOverride: Math.max(0, ...limits),
    isAlwaysOverridden: limits.length > 0 && limits.every((limit) => limit > 0),
    names: [...names],
    hasThinkingName: [...names].some(asksToThink),
  };
}

export interface HoldRequest {
  requestId: string;
  caller: Caller;
  endpoint: Endpoint;
  body: RelayBody;
  model: string;
  price: CallPrice;
  prompt: PromptSize;
  wantsStream: boolean;
  pinned: Channel | undefined;
  /** Tokens of the answer that the call goes on from, which its provider reads again; 0 = none is known. */
  earlierTokens: number;
}

export interface Held {
  reservation: Reservation;
  /** As it was held for: estimated, or counted where the balance is too near for an estimate. */
  prompt: PromptSize;
  hold: CallHold;
}

export type HoldCall = (request: HoldRequest) => Held | Promise<Held>;

type HoldDeps = Pick<Deps, "ledger" | "options" | "prices" | "routing">;

/** How many answers one request asks for. */
function choicesOf(endpoint: Endpoint, json: Json): number {
  if (endpoint.dialect === "gemini") {
    const config = asObject(json["generationConfig"] ?? json["generation_config"]);
    return wholeOr1(config?.["candidateCount"] ?? config?.["candidate_count"]);
  }
  return Math.max(wholeOr1(json["n"]), wholeOr1(json["best_of"]));
}

function wholeOr1(value: unknown): number {
  return typeof value === "number" && value > 1 && Number.isFinite(value) ? Math.ceil(value) : 1;
}

/** Which prices may apply. */
function dearestOf({ json, text }: RelayBody, { mediaTokens, cacheWrite }: PromptSize): DearestOf {
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
    audioOutput: spoken.some((kind) => String(kind).toLowerCase() === "audio"),
  };
}

export function createHoldCall(deps: HoldDeps, usual: UsualOutput, counter: TokenCounter): HoldCall {
  const { ledger, options, prices, routing } = deps;

  /** The body goes on as the client wrote it: neither limits nor overrides reach it. */
  const isRaw = (endpoint: Endpoint): boolean =>
    options.get("global.pass_through_request_enabled") && !endpoint.rewrite;

  /** The client's own limit, or what an operator puts in its place. */
  function limitOf({ endpoint, body, model }: HoldRequest, facts: ChannelFacts): number | undefined {
    let named = endpoint.outputLimit(body.json) || undefined;
    if (named === undefined && endpoint.name === "completions") named = COMPLETION_TOKENS;
    if (named === undefined && endpoint.name === "messages") named = claudeDefaultMaxTokens(options, model);
    if (facts.largestOverride === 0 || isRaw(endpoint)) return named;
    if (facts.isAlwaysOverridden) return facts.largestOverride;
    return named === undefined ? undefined : Math.max(named, facts.largestOverride);
  }

  /** Units that are due whatever is answered. */
  function fixedUnits(request: HoldRequest, output: number, text: number, media: number): number {
    const { endpoint, body, model, price, prompt } = request;
    const { json } = body;
    const { callPrice } = price.ratios;
    const tools = hostedToolUnits(json, model, price) * price.groupRatio;
    if (callPrice !== undefined) {
      const pieces = endpoint.pieces?.(json) ?? 1;
      const factor = endpoint.factor?.(json, model) ?? 1;
      return callPrice * factor * pieces * price.quotaPerUnit * price.groupRatio + tools;
    }
    const counted = endpoint.heldInput?.({ body: json, form: body.form, model }) ?? 0;
    const { mediaTokens } = prompt;
    const read = Math.max(prompt.tokens - mediaTokens, counted) + request.earlierTokens;
    const pictures = endpoint.pieces ? endpoint.pieces(json) * PICTURE_TOKENS : 0;
    return read * text + mediaTokens * media + pictures * output + tools;
  }

  function termsOf(request: HoldRequest, facts: ChannelFacts): HoldTerms {
    const { endpoint, body, model, price } = request;
    const { ratios, groupRatio } = price;
    const rates = ratesOf(price, dearestOf(body, request.prompt));
    const named = facts.hasThinkingName ? leastThinkingTokens(options) : 0;
    const isAnswered = endpoint.answersTokens !== false;
    const byToken = ratios.callPrice === undefined;
    return {
      fixedUnits: fixedUnits(request, rates.output, rates.text, rates.media),
      inputRate: rates.text,
      outputRate: isAnswered ? rates.output : 0,
      choices: choicesOf(endpoint, body.json),
      clientLimit: isAnswered ? limitOf(request, facts) : undefined,
      maxOutput: prices.maxOutput(model),
      thinkingBudget: Math.max(thinkingBudgetOf(body.json), named),
      leastUnits: byToken ? options.get("PreConsumedQuota") * ratios.modelRatio * groupRatio : 0,
    };
  }

  function wantedOf(request: HoldRequest, terms: HoldTerms, growsAlong: boolean): WantedHold {
    const { endpoint, caller, model } = request;
    const available = ledger.available(caller);
    if (growsAlong) return firstHold(terms, available, usual.of(model));
    // What is passed through as it is cannot be limited, nor can a part of an operation that knows no limit.
    return limitedHold(terms, available, !isRaw(endpoint) && endpoint.isPart !== true);
  }

  function heldFor(
    request: HoldRequest,
    reservation: Reservation,
    terms: HoldTerms,
    growsAlong: boolean,
  ): Held {
    const { amount } = reservation;
    return {
      reservation,
      prompt: request.prompt,
      hold: {
        limit: growsAlong ? undefined : limitToSend(terms, amount),
        tokens: coveredTokens(terms, amount),
        outputRate: terms.outputRate,
        inputRate: terms.inputRate,
        grows: growsAlong,
      },
    };
  }

  /** Whether the balance still pays when the prompt's estimate is as wrong as it can be. */
  function isFarEnough({ caller, prompt }: HoldRequest, { inputRate }: HoldTerms, held: number): boolean {
    const unsure = (prompt.mostTokens - prompt.tokens) * inputRate;
    if (unsure <= 0) return true;
    const available = ledger.available(caller);
    return available <= 0 || available - held >= unsure;
  }

  function hold(request: HoldRequest, facts: ChannelFacts, growsAlong: boolean): Held | Promise<Held> {
    const { caller, endpoint, requestId, prompt } = request;
    const { user, token } = caller;
    const terms = termsOf(request, facts);
    const wanted: ReserveRequest = { requestId, user, token, ...wantedOf(request, terms, growsAlong) };
    if (!isFarEnough(request, terms, wanted.amount))
      return countPrompt(counter, endpoint, request.body.json, request.model).then((tokens) =>
        hold({ ...request, prompt: { ...prompt, tokens, mostTokens: tokens } }, facts, growsAlong),
      );
    // Usually at once: a promise for every call would cost each of them a turn.
    const held = endpoint.quotaCode ? holdBack(ledger, endpoint, wanted) : ledger.reserve(wanted);
    return held instanceof Promise
      ? held.then((reservation) => heldFor(request, reservation, terms, growsAlong))
      : heldFor(request, held, terms, growsAlong);
  }

  return (request) => {
    const { caller, model, pinned } = request;
    const facts = channelFacts(routing.tiers(caller.group, model), pinned, model);
    const growsAlong =
      request.wantsStream && !facts.names.some((name) => keepsReasoning(name, request.body.json));
    return hold(request, facts, growsAlong);
  };
}
