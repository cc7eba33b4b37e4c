// The cost rows of channels: what is written, by whom, from when on; and what fills them: the shipped list, or the
// prices of another instance. Refuses to change what was settled: a row holds from its moment on.
import { and, asc, desc, eq } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { shippedPrices } from "../prices/shipped.ts";
import { detectFormat, parsedSource, readSource } from "../prices/sources/read.ts";
import { upstreamModel } from "../channels/rows.ts";
import { refuse } from "../../shared/failures.ts";
import { jsonObject } from "../../shared/json-object.ts";
import { priceName } from "../../shared/price-name.ts";
import { isPriceName, readPriceRow } from "../../shared/price-row.ts";
import type { PriceRow } from "../../shared/price-row.ts";
import { ANY_MODEL } from "./book.ts";
import type { CostRow } from "./book.ts";

export const COST_SOURCES = ["manual", "list", "pricing", "bill"] as const;
type CostSource = (typeof COST_SOURCES)[number];

export const MOST_COST_ROWS = 2000;
/** A factor or ratio beyond is a slip. */
const MAX_FACTOR = 1000;

export interface CostInput {
  /** As the upstream knows it, or `*`. */
  model: string;
  /** Dollars; null: the shipped list's. */
  row: unknown;
  factor?: number | undefined;
  group_ratio?: number | undefined;
  /** Unix seconds; absent: now. */
  valid_from?: number | undefined;
}

export interface CostJson {
  id: number;
  channel_id: number;
  model: string;
  row: PriceRow | null;
  factor: number;
  group_ratio: number;
  source: string;
  valid_from: number;
  created_at: number;
  username: string;
  /** Whether it is the one of its model that counts now. */
  in_force: boolean;
}

type CostDeps = Pick<Deps, "db" | "clock" | "costs" | "routing" | "ledger">;

function costJson(row: CostRow, inForce: boolean): CostJson {
  return {
    id: row.id,
    channel_id: row.channelId,
    model: row.model,
    row: row.price === "" ? null : (readPriceRow(jsonObject(row.price)).row ?? null),
    factor: row.factor,
    group_ratio: row.groupRatio,
    source: row.source,
    valid_from: row.validFrom,
    created_at: row.createdAt,
    username: row.username,
    in_force: inForce,
  };
}

/** Rows of a channel, or of all; by channel and model, the latest first. */
export async function listCosts(deps: CostDeps, channelId: number | undefined): Promise<CostJson[]> {
  const { channelCosts } = deps.db.t;
  const rows = await deps.db.orm
    .select()
    .from(channelCosts)
    .where(channelId === undefined ? undefined : eq(channelCosts.channelId, channelId))
    .orderBy(asc(channelCosts.channelId), asc(channelCosts.model), desc(channelCosts.validFrom))
    .limit(MOST_COST_ROWS);
  const now = Math.floor(deps.clock.nowMs() / 1000);
  const met = new Set<string>();
  return rows.map((row) => {
    const key = `${row.channelId} ${row.model}`;
    const inForce = row.validFrom <= now && !met.has(key);
    if (inForce) met.add(key);
    return costJson(row, inForce);
  });
}

function factorOf(value: number | undefined, model: string): number {
  const factor = value ?? 1;
  if (!Number.isFinite(factor) || factor < 0 || factor > MAX_FACTOR) throw refuse("cost_factor", { model });
  return factor;
}

/**
 * Writes rows; one of the same model and moment is replaced. Throws record_missing, cost_model, cost_row (place) and
 * cost_factor; all of them or none.
 */
export async function putCosts(
  deps: CostDeps,
  { channelId, source, rows }: { channelId: number; source: CostSource; rows: readonly CostInput[] },
  by: AuditActor,
): Promise<{ count: number }> {
  const channel = deps.routing.channel(channelId);
  if (!channel) throw refuse("record_missing");
  const now = Math.floor(deps.clock.nowMs() / 1000);
  const values = rows.map((input) => {
    const model = input.model.trim();
    if (model !== ANY_MODEL && !isPriceName(model)) throw refuse("cost_model", { model });
    const read = input.row === null ? undefined : readPriceRow(input.row);
    if (read && !read.row) throw refuse("cost_row", { model, place: read.problem });
    if (read?.row && read.row.call === undefined && read.row.in === undefined && read.row.out === undefined)
      throw refuse("cost_row", { model, place: "in" });
    return {
      channelId,
      model,
      price: read?.row ? JSON.stringify(read.row) : "",
      factor: factorOf(input.factor, model),
      groupRatio: factorOf(input.group_ratio, model),
      source,
      validFrom: input.valid_from ?? now,
      createdAt: now,
      userId: by.id,
      username: by.username,
    };
  });
  const { channelCosts } = deps.db.t;
  await deps.db.atomic(function* (tx) {
    for (const value of values) {
      yield* q(
        tx
          .insert(channelCosts)
          .values(value)
          .onConflictDoUpdate({
            target: [channelCosts.channelId, channelCosts.model, channelCosts.validFrom],
            set: value,
          })
          .returning({ id: channelCosts.id }),
      );
    }
    yield* auditSteps(tx, deps, {
      user: by,
      action: "cost.set",
      params: { channel: channelId, name: channel.name, count: values.length },
      by,
    });
  });
  await deps.costs.refresh([channelId]);
  return { count: values.length };
}

/** Takes a row away; calls that were settled by it keep their cost. */
export async function deleteCost(deps: CostDeps, id: number, by: AuditActor): Promise<void> {
  const { channelCosts } = deps.db.t;
  const channelId = await deps.db.atomic(function* (tx) {
    const [row] = yield* q(
      tx
        .delete(channelCosts)
        .where(and(eq(channelCosts.id, id)))
        .returning({ channelId: channelCosts.channelId, model: channelCosts.model }),
    );
    if (!row) throw refuse("record_missing");
    const params = { channel: row.channelId, name: row.model };
    yield* auditSteps(tx, deps, { user: by, action: "cost.delete", params, by });
    return row.channelId;
  });
  await deps.costs.refresh([channelId]);
}

interface CostOffer {
  model: string;
  row: PriceRow | null;
  group_ratio: number;
}

export interface CostFill {
  offers: CostOffer[];
  /** Models of the channel that the source says nothing of. */
  missing: string[];
  /** The groups of another instance with their ratios: one of them is the key's. */
  groups: Record<string, number>;
}

/** Names at the upstream of what the channel serves. */
function upstreamModels(deps: CostDeps, channelId: number): string[] {
  const channel = deps.routing.channel(channelId);
  if (!channel) throw refuse("record_missing");
  return [...new Set(channel.models.map((model) => upstreamModel(channel, model)))].sort();
}

/** Rows of the shipped list for the channel's models. */
export function fillFromList(deps: CostDeps, channelId: number): CostFill {
  const { rows } = shippedPrices();
  const offers: CostOffer[] = [];
  const missing: string[] = [];
  for (const model of upstreamModels(deps, channelId)) {
    const row = rows.get(model) ?? rows.get(priceName(model));
    if (row) offers.push({ model, row, group_ratio: 1 });
    else missing.push(model);
  }
  return { offers, missing, groups: {} };
}

/** The group ratios that an instance's `/api/pricing` tells: what its groups cost. */
function groupRatios(parsed: unknown): Record<string, number> {
  const whole = typeof parsed === "object" && parsed !== null ? (parsed as Record<string, unknown>) : {};
  const found = whole["group_ratio"];
  if (typeof found !== "object" || found === null) return {};
  return Object.fromEntries(
    Object.entries(found as Record<string, unknown>).filter(
      (entry): entry is [string, number] =>
        isPriceName(entry[0]) && typeof entry[1] === "number" && entry[1] >= 0 && entry[1] <= MAX_FACTOR,
    ),
  );
}

/**
 * Rows of another instance's prices (`/api/pricing` or `/api/ratio_config`) for the channel's models; the ratio of the
 * group that our key is in there is part of the cost. Throws price_source_* where it is no such list, and cost_group.
 */
export function fillFromPricing(
  deps: CostDeps,
  channelId: number,
  { text, group }: { text: string; group: string | undefined },
): CostFill {
  const parsed = parsedSource(text);
  const { rows } = readSource(detectFormat(parsed), text, deps.clock.nowMs());
  const groups = groupRatios(parsed);
  const ratio = group === undefined ? (groups["default"] ?? 1) : groups[group];
  if (ratio === undefined) throw refuse("cost_group", { group: group ?? "" });
  const offers: CostOffer[] = [];
  const missing: string[] = [];
  for (const model of upstreamModels(deps, channelId)) {
    const row = rows.get(model) ?? rows.get(priceName(model));
    if (row) offers.push({ model, row, group_ratio: ratio });
    else missing.push(model);
  }
  return { offers, missing, groups };
}
