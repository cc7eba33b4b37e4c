// Turns the end of a call into its charge and its log row: usage known or estimated, by the table of cases.
// Refuses to guess silently: an estimated charge says so in the log, and never exceeds what was held back.
import type { Deps } from "../core/deps.ts";
import { cost } from "../core/prices.ts";
import { decideCharge, isAbsurdCount } from "../core/settle-policy.ts";
import type { ChargeDecision, EndReason, UsageKnown } from "../core/settle-policy.ts";
import { messageText } from "../http/messages.ts";
import { asObject } from "../protocol/json.ts";
import { completionTokens, emptyUsage, MAX_TOKEN_COUNT, promptTokens } from "../shared/usage.ts";
import type { Usage } from "../shared/usage.ts";
import type { Call } from "./call.ts";
import { countPrompt, estimatedUsage } from "./meter.ts";
import type { Plan } from "./plan.ts";
import type { TokenCounter } from "./token-count.ts";

export interface CallEnd {
  reason: EndReason;
  /** What the upstream reported; null = nothing. */
  usage: Usage | null;
  /** Model output was seen. */
  sawText: boolean;
  /** Output tokens by our own count, asked only when it is needed. */
  outputTokens: () => Promise<number>;
  isStream: boolean;
  /** Milliseconds to the first streamed event; undefined for plain answers. */
  firstByteMs: number | undefined;
}

const COUNT_FIELDS = [
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "input_tokens",
  "output_tokens",
] as const;

function trustOf(usage: Usage | null): UsageKnown {
  if (usage === null) return "missing";
  const raw = asObject(usage.raw);
  if (raw && COUNT_FIELDS.some((field) => isAbsurdCount(raw[field], MAX_TOKEN_COUNT))) return "absurd";
  return "reported";
}

/**
 * Charges and logs, or gives the held amount back; resolves when that is durable, with the usage that was charged
 * (undefined when nothing was).
 */
export async function settleCall(
  deps: Pick<Deps, "prices">,
  counter: TokenCounter,
  call: Call,
  plan: Plan,
  end: CallEnd,
): Promise<Usage | undefined> {
  const known = trustOf(end.usage);
  const decision = decideCharge({ end: end.reason, usage: known, tokens: end.sawText ? "some" : "none" });
  const usage = await usageOf(decision, counter, call, plan, end);
  const { pricing, groupRatio } = call;
  const charge = cost(pricing, groupRatio, usage, { quotaPerUnit: deps.prices.tables().quotaPerUnit });
  const quota =
    decision.rule === "release"
      ? 0
      : decision.rule === "estimate"
        ? Math.min(charge.quota, call.reservation.amount)
        : charge.quota;
  await call.reservation.settle({
    quota,
    promptTokens: promptTokens(usage),
    completionTokens: completionTokens(usage),
    modelName: call.model,
    channelId: plan.channel.id,
    group: call.caller.group,
    isStream: end.isStream,
    useTimeMs: Math.round(performance.now() - call.startedMs),
    content: sentence(call, decision),
    ...(call.caller.tokenName === undefined ? {} : { tokenName: call.caller.tokenName }),
    other: Object.assign(charge.other, otherFields(call, plan, end, decision)),
  });
  return decision.rule === "release" ? undefined : usage;
}

async function usageOf(
  decision: ChargeDecision,
  counter: TokenCounter,
  call: Call,
  plan: Plan,
  end: CallEnd,
): Promise<Usage> {
  if (decision.rule === "release") return emptyUsage();
  if (decision.rule === "reported" && end.usage) return end.usage;
  const [prompt, output] = await Promise.all([
    countPrompt(counter, call.endpoint, call.body.json, plan.upstreamModel),
    end.outputTokens(),
  ]);
  return estimatedUsage(prompt, output);
}

/** The sentence of the log row, in the words that clients of this log know. */
function sentence(call: Call, decision: ChargeDecision): string {
  const { pricing, groupRatio } = call;
  const group = `分组倍率 ${groupRatio.toFixed(2)}`;
  let text =
    pricing.callPrice === undefined
      ? `模型倍率 ${pricing.modelRatio.toFixed(2)}，补全倍率 ${pricing.completionRatio.toFixed(2)}，${group}`
      : `模型价格 ${pricing.callPrice.toFixed(2)}，${group}`;
  if (call.model.endsWith("-gizmo-*")) text += `，模型 ${call.model}`;
  return decision.note === "" ? text : `${text}, ${messageText(decision.note, "zh")}`;
}

function otherFields(
  call: Call,
  plan: Plan,
  end: CallEnd,
  decision: ChargeDecision,
): Record<string, unknown> {
  const other: Record<string, unknown> = {
    frt: end.firstByteMs === undefined ? -1000 : Math.round(end.firstByteMs),
    admin_info: { use_channel: call.attempts.map((note) => String(note.channel)) },
    attempts: call.attempts,
    end_reason: end.reason,
    client_dialect: call.endpoint.dialect,
    upstream_dialect: plan.dialect.name,
  };
  if (decision.rule === "estimate") other["estimated"] = true;
  if (decision.note !== "") other["note"] = decision.note;
  if (plan.upstreamModel !== call.model) {
    other["is_model_mapped"] = true;
    other["upstream_model_name"] = plan.upstreamModel;
  }
  const effort = call.body.json["reasoning_effort"];
  if (typeof effort === "string") other["reasoning_effort"] = effort.slice(0, 32);
  return other;
}
