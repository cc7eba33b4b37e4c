// One turn of a realtime session as the books see it: what is held back for it, and the sentence of its log row.
// Holds no state.
import type { Deps, Reservation } from "../core/deps.ts";
import { estimateReserve } from "../core/prices.ts";
import type { ModelPricing } from "../core/prices.ts";
import type { ChargeDecision } from "../core/settle-policy.ts";
import { messageText } from "../http/messages.ts";

/** One turn's amounts and the price at which it is charged. */
export interface Turn {
  holds: Reservation[];
  pricing: ModelPricing;
  groupRatio: number;
}

export function heldBy(turn: Turn): number {
  return turn.holds.reduce((sum, hold) => sum + hold.amount, 0);
}

/** The sentence of the log row, in the words that clients of this log know. */
export function sentence({ pricing, groupRatio }: Turn, decision: ChargeDecision): string {
  const group = `分组倍率 ${groupRatio.toFixed(2)}`;
  const text =
    pricing.callPrice === undefined
      ? `模型倍率 ${pricing.modelRatio.toFixed(2)}，补全倍率 ${pricing.completionRatio.toFixed(2)}，音频倍率 ${pricing.audioRatio.toFixed(2)}，音频补全倍率 ${pricing.audioCompletionRatio.toFixed(2)}，${group}`
      : `模型价格 ${pricing.callPrice.toFixed(2)}，${group}`;
  return decision.note === "" ? text : `${text}, ${messageText(decision.note, "zh")}`;
}

/** What to hold back for a turn: the assumed prompt, and no less than the turn before cost, for the history only grows. */
export function turnReserve(
  deps: Pick<Deps, "options">,
  pricing: ModelPricing,
  groupRatio: number,
  atLeast: number,
): number {
  const assumed = estimateReserve(pricing, groupRatio, {
    promptTokens: 0,
    maxTokens: 0,
    preConsumedTokens: deps.options.get("PreConsumedQuota"),
    quotaPerUnit: deps.options.get("QuotaPerUnit"),
  });
  return Math.max(assumed, atLeast);
}
