// Charges one turn of a realtime session and writes its log row.
import { spokenChargeSentence } from "../../core/logs/sentences.ts";
import { bornCost } from "../../core/costs/book.ts";
import type { UpstreamCost } from "../../core/deps.ts";
import { costOf } from "../../core/prices/prices.ts";
import { keyFields } from "../../core/channels/rows.ts";
import type { CallFacts } from "../../core/prices/prices.ts";
import { decideCharge, isEstimated, quotaCapOf, usageTrust } from "../../core/ledger/settle-policy.ts";
import type { ChargeDecision, EndReason } from "../../core/ledger/settle-policy.ts";
import { messageText } from "../../http/messages.ts";
import { tellAnswered } from "../call/telling.ts";
import { completionTokens, emptyUsage, promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { isCut } from "../wire/stream-end.ts";
import type { TurnMeter } from "./meter.ts";
import type { SessionParts } from "./session-parts.ts";
import type { TurnHold } from "./turn-hold.ts";

interface EndedTurn {
  parts: Pick<
    SessionParts,
    | "deps"
    | "counter"
    | "caller"
    | "channel"
    | "keyIndex"
    | "model"
    | "upstreamModel"
    | "requestId"
    | "attempts"
  >;
  turn: TurnHold;
  meter: TurnMeter;
  end: EndReason;
  /** The upstream's own count; null: it reported none. */
  reported: Usage | null;
  /** performance.now() when the turn before ended, or the session was opened. */
  sinceMs: number;
}

/** Resolves with the usage that was charged; undefined: there was nothing to charge, and the hold goes back. */
export async function chargeTurn(ended: EndedTurn): Promise<Usage | undefined> {
  const { parts, turn, meter, end, reported, sinceMs } = ended;
  const { caller, channel, model } = parts;
  const tokens = meter.sawOutput ? "some" : "none";
  const isShort = isCut(end);
  const decision = decideCharge({ end, usage: usageTrust(reported, !isShort), tokens });
  const usage = await chargedUsage(ended, decision);
  const { price, reservation, session, left } = turn;
  const facts: CallFacts = {
    surface: "realtime",
    quotaCap: quotaCapOf(decision.rule) ?? left,
    ...(price.ratios.callPrice === undefined ? {} : { rounding: "floor" }),
    // What was only heard is no call.
    ...(decision.rule === "release" || meter.isOnlyHeard ? { callCount: 0 } : {}),
  };
  const charge = costOf(price, usage, facts);
  const lost = session
    ? costOf(price, usage, { ...facts, quotaCap: quotaCapOf(decision.rule) }).quota - charge.quota
    : 0;
  if (session) session.spent += charge.quota;
  const { deps } = parts;
  // What the upstream counted is billed, whatever of it was charged.
  const nanos =
    decision.rule === "release" || !deps.costs.has(channel.id)
      ? undefined
      : deps.costs.nanos({
          channelId: channel.id,
          upstreamModel: parts.upstreamModel,
          model,
          usage: reported ?? usage,
          facts: meter.isOnlyHeard ? { callCount: 0 } : {},
          atMs: deps.clock.nowMs(),
        });
  const cost = nanos === undefined ? undefined : bornCost(nanos, charge.quota, price.groupRatio);
  const startedMs = meter.beganMs === 0 ? sinceMs : meter.beganMs;
  await reservation.settle({
    quota: charge.quota,
    promptTokens: promptTokens(usage),
    completionTokens: completionTokens(usage),
    modelName: model,
    channelId: channel.id,
    keyId: channel.keyRows[parts.keyIndex]?.id,
    group: caller.group,
    isStream: true,
    useTimeMs: Math.round(performance.now() - startedMs),
    content: logSentence(turn, decision),
    cost,
    ...(caller.tokenName === undefined ? {} : { tokenName: caller.tokenName }),
    other: Object.assign(charge.other, turnFields(ended, decision, cost), lost > 0 ? { over_cap: lost } : {}),
  });
  const charged = decision.rule === "release" ? undefined : usage;
  const { firstOutputMs } = meter;
  tellAnswered(deps, {
    endpoint: "realtime",
    channel,
    group: caller.group,
    model,
    requestId: parts.requestId,
    caller,
    startedMs,
    reason: end,
    firstByteMs: firstOutputMs === 0 ? undefined : Math.max(0, firstOutputMs - startedMs),
    usage: charged,
    quota: charge.quota,
  });
  return charged;
}

async function chargedUsage({ parts, meter, reported }: EndedTurn, { rule }: ChargeDecision): Promise<Usage> {
  if (rule === "release") return emptyUsage();
  const usage = reported ?? emptyUsage();
  if (rule === "reported") return usage;
  const counted = await meter.count(parts.counter, parts.upstreamModel);
  // What was reported of an output that was not delivered is not charged.
  return rule === "partial" ? { ...usage, output: counted.output, estimated: true } : counted;
}

/** The sentence of the log row, in the words that clients of this log know. */
function logSentence({ price }: TurnHold, decision: ChargeDecision): string {
  const text = spokenChargeSentence(price);
  return decision.note === "" ? text : `${text}, ${messageText(decision.note, "zh")}`;
}

/** What the log row of a turn holds besides its charge. */
function turnFields(
  { parts, turn, meter, end }: EndedTurn,
  decision: ChargeDecision,
  cost: UpstreamCost | undefined,
): Record<string, unknown> {
  const { attempts, caller, requestId, model, upstreamModel } = parts;
  const { startedMs, firstOutputMs } = meter;
  const hasBoth = startedMs !== 0 && firstOutputMs !== 0;
  return {
    frt: hasBoth ? Math.max(0, Math.round(firstOutputMs - startedMs)) : -1000,
    admin_info: {
      use_channel: attempts.map((note) => String(note.channel)),
      ...keyFields(parts.channel, parts.keyIndex),
      upstream_model: upstreamModel,
      ...(cost ? { cost_nanos: cost.nanos } : {}),
    },
    attempts,
    end_reason: end,
    ...(end === "balance" ? { stopped: "balance" } : {}),
    ...(end === "max-cost" ? { stopped: "max_cost" } : {}),
    ...(turn.session ? { max_quota: turn.session.units } : {}),
    client_dialect: "openai-realtime",
    upstream_dialect: "openai-realtime",
    // All turns of a session carry the id that its handshake was answered with.
    session: requestId,
    ...(caller.auto ? { auto: true } : {}),
    ...(isEstimated(decision.rule) || meter.guessesHeard ? { estimated: true } : {}),
    ...(decision.note === "" ? {} : { note: decision.note }),
    ...(upstreamModel === model ? {} : { is_model_mapped: true, upstream_model_name: upstreamModel }),
  };
}
