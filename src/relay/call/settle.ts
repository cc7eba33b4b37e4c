// Turns the end of a call into its charge and its log row: usage known or estimated, by the table of cases.
// Never guesses silently (an estimated charge says so in the log), and reads no price: the call's own is frozen.
import { keyFields } from "../../core/channels/rows.ts";
import { calledModel, chargeSentence } from "../../core/logs/sentences.ts";
import { costOf, withTier } from "../../core/prices/prices.ts";
import type { CallFacts } from "../../core/prices/prices.ts";
import {
  decideCharge,
  isEstimated,
  quotaCapOf,
  usageTrust,
  withCountedOutput,
} from "../../core/ledger/settle-policy.ts";
import type { ChargeDecision, EndReason } from "../../core/ledger/settle-policy.ts";
import type { RemoteObject, Settlement, UpstreamCost } from "../../core/deps.ts";
import { messageText } from "../../http/messages.ts";
import { asObject } from "../../protocol/json.ts";
import { completionTokens, emptyUsage, promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { affinityNote, noteUse } from "./affinity.ts";
import { cacheUseOf } from "./cache-use.ts";
import type { Call } from "./call.ts";
import { countUnits } from "../endpoints/call-units.ts";
import type { AnswerSound } from "../endpoints/endpoint.ts";
import { FAST } from "../endpoints/service-tier.ts";
import { searchesByItself, searchSizeOf } from "../endpoints/hosted-tools.ts";
import { countPrompt, estimatedUsage } from "../meter/meter.ts";
import type { Plan } from "./plan.ts";
import type { RulesDone } from "./rules.ts";
import type { RuleAct } from "../wire/run-rules.ts";
import type { CallServices } from "./services.ts";
import { tellSettled } from "./telling.ts";
import { upstreamCost } from "./upstream-cost.ts";
import { estimateTokens } from "../meter/token-count.ts";
import type { TokenCounter } from "../meter/token-count.ts";
import { hasForbiddenOutput } from "./word-screens.ts";

export interface CallEnd {
  reason: EndReason;
  /** What the upstream reported; null = nothing. */
  usage: Usage | null;
  /** What the upstream reported where more of it than `usage` will be billed: of output that was not delivered. */
  billed?: Usage | undefined;
  /** False: `usage` is what was reported on the way, the final report never came. */
  usageFinal?: boolean;
  /** Model output was seen. */
  sawText: boolean;
  /** Output tokens by our own count, called only when it is needed. */
  outputTokens: () => Promise<number>;
  /** The same of all that came, also of what was not delivered. */
  generatedTokens?: () => Promise<number>;
  isStream: boolean;
  /** Milliseconds to the first streamed event; undefined for plain answers. */
  firstByteMs: number | undefined;
  /** The full answer, where it was JSON; of words as they are, the words. */
  json?: unknown;
  /** Of an answer of sound. */
  sound?: AnswerSound;
  /** What the provider keeps of the answer. */
  object?: RemoteObject | undefined;
  /** The upstream's id of the call (upstreamIdOf). */
  upstreamId?: string | undefined;
  /** Service tier that a stream named. */
  servedTier?: string | undefined;
}

/** Names of dropped fields that a log row keeps. */
const MAX_DROPPED = 50;
/** Of each: clients choose them, and a row must not become as long as a body. */
const MAX_DROPPED_CHARS = 256;

/**
 * Charges and logs, or gives the held amount back; resolves when that is durable, with the usage that was charged
 * (undefined when nothing was).
 */
export async function settleCall(
  services: Pick<CallServices, "inFlight" | "counter" | "deps">,
  call: Call,
  plan: Plan,
  end: CallEnd,
): Promise<Usage | undefined> {
  const endedMs = performance.now();
  try {
    const usage = await chargeCall(services, call, plan, end);
    tellSettled(services.deps, call, plan.channel, { end, endedMs, usage });
    return usage;
  } finally {
    services.inFlight.remove(call);
  }
}

async function chargeCall(
  { counter, deps }: Pick<CallServices, "counter" | "deps">,
  call: Call,
  plan: Plan,
  end: CallEnd,
): Promise<Usage | undefined> {
  const trust = usageTrust(end.usage, end.usageFinal);
  const own =
    trust === "reported" || trust === "partial" || !end.sawText
      ? undefined
      : await ownUsage(counter, call, plan, end);
  const known = own ? "reported" : trust;
  const decision = decideCharge({ end: end.reason, usage: known, tokens: end.sawText ? "some" : "none" });
  const found = own ?? usageOf(decision, counter, call, plan, end);
  // Usually at once: a promise for every call would cost each of them a turn.
  const usage = found instanceof Promise ? await found : found;
  const price = withTier(call.price, plan.tier);
  // Written field by field here and below: a spread for each thing that a call seldom has costs all of them.
  const facts: CallFacts = pieces(call, plan, decision, end.json);
  if (usage.calls.webSearch > 0) facts.searchSize = searchSizeOf(call.billed ?? call.body.json);
  facts.servedTier = servedTier(end, plan);
  if (call.endpoint.name === "messages") facts.surface = "messages";
  const quotaCap = quotaCapOf(decision.rule) ?? call.hold.cap;
  if (quotaCap !== undefined) facts.quotaCap = quotaCap;
  const charge = costOf(price, usage, facts);
  call.charged = charge.quota;
  const capped =
    call.hold.cap === undefined
      ? undefined
      : await capFields(
          call.hold.cap,
          end,
          decision,
          (tokens) =>
            costOf(price, withCountedOutput(usage, tokens), { ...facts, quotaCap: undefined }).quota -
            charge.quota,
        );
  const costed = deps.costs.has(plan.channel.id)
    ? await upstreamCost(deps, {
        call,
        plan,
        end,
        decision,
        facts,
        charged: usage,
        quota: charge.quota,
      })
    : undefined;
  const cache = cacheUseOf(call, usage, (without) => costOf(price, without, facts).quota - charge.quota);
  if (cache) noteUse(deps, call, usage, cache);
  call.lease?.spend(promptTokens(usage) + completionTokens(usage));
  const { other } = charge;
  addFields(other, call, plan, end, { decision, cost: costed });
  if (own?.estimated === true) other["estimated"] = true;
  if (capped) Object.assign(other, capped);
  const settlement: Settlement = {
    quota: charge.quota,
    promptTokens: promptTokens(usage),
    completionTokens: completionTokens(usage),
    modelName: call.model,
    channelId: plan.channel.id,
    keyId: plan.channel.keyRows[plan.keyIndex]?.id,
    group: call.group,
    isStream: end.isStream,
    useTimeMs: Math.round(performance.now() - call.startedMs),
    content: sentence(call, decision),
    object: end.object,
    cost: costed,
    cache,
    other,
  };
  if (call.caller.tokenName !== undefined) settlement.tokenName = call.caller.tokenName;
  await call.reservation.settle(settlement);
  return decision.rule === "release" ? undefined : usage;
}

/** What a fixed price is multiplied by; nothing for a call that is not charged, or that made no piece. */
function pieces(
  { endpoint, body, billed = body.json, price }: Call,
  plan: Plan,
  decision: ChargeDecision,
  json: unknown,
): CallFacts {
  const isPieceless = decision.rule === "prompt" && price.ratios.callPrice !== undefined;
  if (decision.rule === "release" || isPieceless) return { callCount: 0 };
  const facts: CallFacts = { ...countUnits(endpoint, price, { body: billed, form: body.form, json }) };
  if (endpoint.factor) facts.callFactor = endpoint.factor(billed, plan.upstreamModel);
  return facts;
}

/** Usage by the endpoint's own rule; undefined where it has none. */
async function ownUsage(
  counter: TokenCounter,
  call: Call,
  plan: Plan,
  { json, sound }: CallEnd,
): Promise<Usage | undefined> {
  const { endpoint, body, billed = body.json, model, price } = call;
  const { upstreamModel } = plan;
  return endpoint.ownUsage?.({
    body: billed,
    form: body.form,
    json,
    sound,
    ratios: price.ratios,
    model,
    upstreamModel,
    count: async (texts) =>
      (await counter.count(texts, upstreamModel)) ??
      texts.reduce((sum, text) => sum + estimateTokens(text), 0),
  });
}

function usageOf(
  decision: ChargeDecision,
  counter: TokenCounter,
  call: Call,
  plan: Plan,
  end: CallEnd,
): Usage | Promise<Usage> {
  if (decision.rule === "release") return emptyUsage();
  if (decision.rule === "reported" && end.usage) return withSearch(call, end.usage);
  if (decision.rule === "partial" && end.usage) return partialUsage(call, end, end.usage);
  if (decision.rule === "prompt") return promptUsage(counter, call, plan);
  return countedUsage(counter, call, plan, end);
}

async function partialUsage(call: Call, end: CallEnd, reported: Usage): Promise<Usage> {
  return withSearch(call, withCountedOutput(reported, await end.outputTokens()));
}

async function promptUsage(counter: TokenCounter, call: Call, plan: Plan): Promise<Usage> {
  return estimatedUsage(await chargedPrompt(counter, call, plan), 0);
}

async function countedUsage(counter: TokenCounter, call: Call, plan: Plan, end: CallEnd): Promise<Usage> {
  const [prompt, output] = await Promise.all([chargedPrompt(counter, call, plan), end.outputTokens()]);
  return estimatedUsage(prompt, output);
}

/** The prompt by our own count, never more than was held for it: near the limit that went by the encoder of the client's name. */
async function chargedPrompt(
  counter: TokenCounter,
  { endpoint, body, prompt }: Call,
  plan: Plan,
): Promise<number> {
  const counted = await countPrompt(counter, { endpoint, body: body.json, model: plan.upstreamModel });
  return Math.min(counted, prompt.mostTokens) + addedTokens(plan);
}

/** What a channel's own prompt and rules added, which no walk over the client's body finds. */
function addedTokens({ rules }: Plan): number {
  return rules?.repriced?.addedTokens ?? 0;
}

const MAX_TIER_CHARS = 32;

/** The service tier that the upstream says it served: beside its usage, or inside of it. */
function servedTier({ usage, json, servedTier: met }: CallEnd, plan: Plan): string | undefined {
  const raw = usage?.raw;
  // Anthropic tells of its fast mode in a field of its own, beside a tier that is the standard one.
  if (plan.tier === FAST) return asObject(raw)?.["speed"] === "standard" ? "standard" : undefined;
  const tier =
    met ??
    (typeof raw === "object" && raw !== null && "service_tier" in raw ? raw.service_tier : undefined) ??
    asObject(json)?.["service_tier"];
  // Some repeat the request's word before they know: `auto` is what nobody serves.
  if (typeof tier !== "string" || tier === "" || tier === "auto") return undefined;
  return tier.slice(0, MAX_TIER_CHARS);
}

/** Models that search by themselves do so exactly once a call, and say nothing of it in their usage. */
function withSearch(call: Call, usage: Usage): Usage {
  if (call.endpoint.name !== "chat" || !searchesByItself(call.model) || usage.calls.webSearch > 0) {
    return usage;
  }
  return { ...usage, calls: { ...usage.calls, webSearch: 1 } };
}

/** The sentence of the log row, in the words that clients of this log know. */
function sentence(call: Call, decision: ChargeDecision): string {
  let text = chargeSentence(call.price);
  if (call.model.endsWith("-gizmo-*")) text += calledModel(call.model);
  if (call.endpoint.remark) text += `, ${call.endpoint.remark(call.billed ?? call.body.json)}`;
  return decision.note === "" ? text : `${text}, ${messageText(decision.note, "zh")}`;
}

/**
 * What the row of a capped call tells of its cap: the cap, and what was generated above it, which the operator bears.
 * `above`: units of that, with so many tokens of output.
 */
async function capFields(
  cap: number,
  { reason, generatedTokens }: CallEnd,
  { rule }: ChargeDecision,
  above: (tokens: number) => number,
): Promise<Record<string, unknown>> {
  if (rule === "release") return { max_quota: cap };
  const generated = reason === "max-cost" && generatedTokens ? await generatedTokens() : 0;
  const lost = above(generated);
  return lost > 0 ? { max_quota: cap, over_cap: lost } : { max_quota: cap };
}

/** Which channels were asked, and what the upstream knows the call by and charges for it. */
function adminInfo(
  call: Call,
  { channel, keyIndex, upstreamModel }: Plan,
  { upstreamId }: CallEnd,
  cost: UpstreamCost | undefined,
): Record<string, unknown> {
  const info: Record<string, unknown> = {
    use_channel: call.attempts.map((note) => String(note.channel)),
    ...keyFields(channel, keyIndex),
    upstream_model: upstreamModel,
  };
  if (upstreamId !== undefined) info["upstream_id"] = upstreamId;
  const affinity = affinityNote(call);
  if (affinity) info["channel_affinity"] = affinity;
  if (cost) info["cost_nanos"] = cost.nanos;
  return info;
}

/** What the log row tells of the call besides its charge. */
function addFields(
  other: Record<string, unknown>,
  call: Call,
  plan: Plan,
  end: CallEnd,
  { decision, cost }: { decision: ChargeDecision; cost: UpstreamCost | undefined },
): void {
  other["frt"] = end.firstByteMs === undefined ? -1000 : Math.round(end.firstByteMs);
  other["admin_info"] = adminInfo(call, plan, end, cost);
  other["attempts"] = call.attempts;
  other["end_reason"] = end.reason;
  other["client_dialect"] = call.endpoint.dialect;
  other["upstream_dialect"] = plan.dialect.name;
  if (isEstimated(decision.rule)) other["estimated"] = true;
  if (decision.note !== "") other["note"] = decision.note;
  if (plan.upstreamModel !== call.model) {
    other["is_model_mapped"] = true;
    other["upstream_model_name"] = plan.upstreamModel;
  }
  if (call.caller.auto) other["auto"] = true;
  if (call.hold.limit !== undefined) other["limited"] = call.hold.isLimitedByCap ? "max_cost" : "balance";
  if (end.reason === "balance") other["stopped"] = "balance";
  if (end.reason === "max-cost") other["stopped"] = "max_cost";
  if (plan.dropped.length > 0) {
    const names = plan.dropped.slice(0, MAX_DROPPED);
    other["dropped"] = names.map((name) => name.slice(0, MAX_DROPPED_CHARS));
  }
  if (plan.rules) tellRules(other, plan.rules);
  if (hasForbiddenOutput(call)) other["sensitive_output"] = true;
  const json = call.billed ?? call.body.json;
  const effort =
    json["reasoning_effort"] ??
    asObject(json["reasoning"])?.["effort"] ??
    asObject(json["output_config"])?.["effort"];
  if (typeof effort === "string") other["reasoning_effort"] = effort.slice(0, 32);
}

/** Rules by mode and path, none of what they wrote; names of headers are the operator's alone. */
function tellRules(other: Record<string, unknown>, { acts, headerActs, promptTokens }: RulesDone): void {
  const shown = (list: readonly RuleAct[]): string[] =>
    list.slice(0, MAX_DROPPED).map(({ mode, path }) => `${mode} ${path}`);
  const isOfHeader = ({ mode }: RuleAct): boolean => mode.endsWith("_header") || mode === "pass_headers";
  const ofBody = acts.filter((each) => !isOfHeader(each));
  const ofHeaders = [...acts.filter(isOfHeader), ...headerActs];
  if (ofBody.length > 0) other["request_rules"] = shown(ofBody);
  if (promptTokens > 0) other["system_prompt_tokens"] = promptTokens;
  if (ofHeaders.length > 0)
    other["admin_info"] = { ...asObject(other["admin_info"]), header_rules: shown(ofHeaders) };
}
