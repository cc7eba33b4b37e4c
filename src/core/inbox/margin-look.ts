// What costs more than it brings: channels whose calls of a day lose money, costs that nobody was charged for, and cost rows
// above the price of sale. Looks at the sums every five minutes, and only where something is known of costs.
import type { Deps } from "../deps.ts";
import { NANOS_PER_DOLLAR } from "../costs/book.ts";
import { marginsSince } from "../costs/margins.ts";
import { priceLines } from "../../shared/cost.ts";
import type { PriceLine } from "../../shared/cost.ts";
import type { InboxService } from "./inbox.ts";

export type MarginLookDeps = Pick<Deps, "db" | "clock" | "options" | "routing" | "prices" | "costs"> & {
  inbox: InboxService;
};

const EVERY_MS = 300_000;
const DAY_SECONDS = 86_400;
/** Less is no matter for a person. */
const LEAST_DOLLARS = 0.01;
const MOST_NAMED = 3;
/** Prices that differ by less are the same. */
const SAME = 1e-6;
const KINDS = ["margin", "uncharged", "cost_price"] as const;

export function createMarginLook(deps: MarginLookDeps): () => Promise<void> {
  const { costs, clock } = deps;
  let lookedMs = -Infinity;
  let version = -1;
  return async () => {
    const nowMs = clock.monotonicMs();
    if (costs.version === version && nowMs - lookedMs < EVERY_MS) return;
    lookedMs = nowMs;
    version = costs.version;
    const known = new Set(costs.channelIds());
    for (const kind of KINDS)
      for (const subject of deps.inbox.subjects(kind))
        if (!known.has(Number(subject))) deps.inbox.gone(kind, subject);
    if (known.size === 0) return;
    lookAtPrices(deps, known);
    await lookAtMargins(deps, known);
  };
}

const dollarText = (dollars: number): string => `$${dollars.toFixed(2)}`;

async function lookAtMargins(deps: MarginLookDeps, known: ReadonlySet<number>): Promise<void> {
  const { inbox, routing, clock, options } = deps;
  const perDollar = options.get("QuotaPerUnit");
  const rows = await marginsSince(deps, Math.floor(clock.nowMs() / 1000) - DAY_SECONDS);
  const met = new Map(rows.map((row) => [row.channelId, row]));
  for (const id of known) {
    const row = met.get(id);
    const subject = String(id);
    const name = routing.channel(id)?.name ?? "";
    if (row && -row.margin >= LEAST_DOLLARS * perDollar)
      inbox.keep({
        kind: "margin",
        subject,
        params: {
          name,
          revenue: dollarText(row.known_revenue / perDollar),
          cost: dollarText(row.nanos / NANOS_PER_DOLLAR),
        },
      });
    else inbox.gone("margin", subject);
    if (row && row.lostNanos >= LEAST_DOLLARS * NANOS_PER_DOLLAR)
      inbox.keep({
        kind: "uncharged",
        subject,
        params: { name, cost: dollarText(row.lostNanos / NANOS_PER_DOLLAR) },
      });
    else inbox.gone("uncharged", subject);
  }
}

/** Models of the channel that cost more than they are sold for, in the cheapest of its groups that pays. */
function soldBelowCost({ routing, costs, prices, clock }: MarginLookDeps, id: number): string[] {
  const channel = routing.channel(id);
  if (!channel) return [];
  const { modelMapping } = channel;
  const perDollar = prices.tables().quotaPerUnit;
  return channel.models.filter((model) => {
    const upstreamModel = typeof modelMapping === "string" ? model : (modelMapping.get(model) ?? model);
    const cost = costs.price(id, { upstreamModel, model }, clock.nowMs());
    const sale = prices.pricing(model);
    if (!cost || !sale) return false;
    const ratios = channel.groups
      .map((group) => prices.groupRatio(group, group))
      .filter((ratio) => ratio > 0);
    if (ratios.length === 0) return false;
    const sold = priceLines(sale, Math.min(...ratios), perDollar);
    return isAbove(priceLines(cost.ratios, cost.groupRatio, cost.quotaPerUnit), sold);
  });
}

/** Input, output or the call dearer than it is sold; prices of different things are not compared. */
function isAbove(cost: readonly PriceLine[], sale: readonly PriceLine[]): boolean {
  return cost.some(({ kind, unitPrice }) => {
    if (kind !== "fresh" && kind !== "output" && kind !== "per_call") return false;
    const sold = sale.find((each) => each.kind === kind);
    return sold !== undefined && unitPrice > sold.unitPrice * (1 + SAME);
  });
}

function lookAtPrices(deps: MarginLookDeps, known: ReadonlySet<number>): void {
  const { inbox, routing } = deps;
  for (const id of known) {
    const below = soldBelowCost(deps, id);
    if (below.length === 0) {
      inbox.gone("cost_price", String(id));
      continue;
    }
    const models = below.slice(0, MOST_NAMED).join(", ") + (below.length > MOST_NAMED ? " …" : "");
    const params = { name: routing.channel(id)?.name ?? "", count: below.length, models };
    inbox.keep({ kind: "cost_price", subject: String(id), params });
  }
}
