// What the upstream charges for a call, as far as its channel's cost rows know; settled with the call, never shown to its user.
// Nothing is looked at for channels without such rows.
import { bornCost } from "../../core/costs/book.ts";
import type { CallFacts } from "../../core/prices/prices.ts";
import type { Deps, UpstreamCost } from "../../core/deps.ts";
import type { ChargeDecision } from "../../core/ledger/settle-policy.ts";
import { usageTrust, withCountedOutput } from "../../core/ledger/settle-policy.ts";
import { LogType } from "../../shared/enums.ts";
import type { Usage } from "../../shared/usage.ts";
import { countUnits } from "../endpoints/call-units.ts";
import { requestFacts } from "../endpoints/service-tier.ts";
import type { Call } from "./call.ts";
import type { Plan } from "./plan.ts";
import type { CallEnd } from "./settle.ts";

type CostDeps = Pick<Deps, "costs" | "clock">;

/** What the upstream counts, which may be more than what the caller is charged for; undefined: nobody knows. */
async function billedUsage(
  end: CallEnd,
  decision: ChargeDecision,
  charged: Usage,
): Promise<Usage | undefined> {
  const { usage, usageFinal } = end;
  if (end.billed) return end.billed;
  if (decision.rule === "release") {
    const trust = usageTrust(usage, usageFinal);
    return usage && (trust === "reported" || trust === "partial") ? usage : undefined;
  }
  const isStopped = end.reason === "max-cost" || end.reason === "balance";
  if (!isStopped || !end.generatedTokens) return charged;
  return withCountedOutput(charged, await end.generatedTokens());
}

/** What the cost follows from as it was sent: by rules of the channel in the upstream's dialect, else as the client wrote it. */
function sentFacts({ endpoint, body }: Call, { rules }: Plan): ReturnType<typeof requestFacts> {
  const sent = rules?.repriced;
  return sent ? requestFacts(sent.dialect, sent.body) : requestFacts(endpoint.dialect, body.json);
}

/**
 * The cost of a call that ends so; undefined: unknown. `facts` are those of the charge, `quota` what it came to, `charged`
 * the usage that it was made of.
 */
export async function upstreamCost(
  deps: CostDeps,
  {
    call,
    plan,
    end,
    decision,
    facts,
    charged,
    quota,
  }: {
    call: Call;
    plan: Plan;
    end: CallEnd;
    decision: ChargeDecision;
    facts: CallFacts;
    charged: Usage;
    quota: number;
  },
): Promise<UpstreamCost | undefined> {
  const usage = await billedUsage(end, decision, charged);
  if (!usage) return undefined;
  const { endpoint, body, billed = body.json, model, price } = call;
  const { channel, upstreamModel, tier } = plan;
  const nanos = deps.costs.nanos({
    channelId: channel.id,
    upstreamModel,
    model,
    tier,
    request: sentFacts(call, plan),
    usage,
    facts: (costs) => ({
      ...facts,
      ...(decision.rule === "release"
        ? { callCount: 0 }
        : countUnits(endpoint, costs, { body: billed, form: body.form, json: end.json })),
    }),
    atMs: deps.clock.nowMs(),
  });
  return nanos === undefined ? undefined : bornCost(nanos, quota, price.groupRatio);
}

/** An attempt that failed, and whose upstream reported usage all the same: a cost that nobody pays for. Never rejects. */
export function bearFailed(
  { deps }: { deps: CostDeps & Pick<Deps, "ledger" | "logger"> },
  call: Call,
  plan: Plan,
  usage: Usage,
): void {
  const { channel, upstreamModel, tier } = plan;
  if (call.isTest || !deps.costs.has(channel.id)) return;
  const trust = usageTrust(usage);
  if (trust !== "reported") return;
  const { model, caller, requestId, group } = call;
  const nanos = deps.costs.nanos({
    channelId: channel.id,
    upstreamModel,
    model,
    tier,
    request: sentFacts(call, plan),
    usage,
    facts: { callCount: 0 },
    atMs: deps.clock.nowMs(),
  });
  if (nanos === undefined || nanos === 0) return;
  deps.ledger
    .bear(
      {
        type: LogType.error,
        userId: caller.user.id,
        username: caller.user.username,
        content: "",
        channelId: channel.id,
        tokenId: caller.token?.id ?? 0,
        modelName: model,
        group,
        requestId,
      },
      { nanos, isLost: true },
    )
    .catch((error: unknown) => {
      deps.logger.warn("the cost of a failed attempt could not be written", {
        request_id: requestId,
        error: String(error),
      });
    });
}
