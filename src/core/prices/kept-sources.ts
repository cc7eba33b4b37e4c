// Prices that come by themselves: once a day, of the kept sources that are told to, what moved by no more than their limit.
// Refuses what nobody has taken from that source before, the operator's own prices, and all that a person has to tick.
import { Failure } from "../../shared/failures.ts";
import type { SyncRow } from "../../shared/price-sync.ts";
import { emptyMaps, PRICE_MAPS, putRow } from "../../shared/row-maps.ts";
import type { Deps } from "../deps.ts";
import type { PriceSource } from "../options/price-sources.ts";
import { changesAgainst, PRICE_OPTIONS, tablesIn, writesOf } from "./changes.ts";
import type { SentChange } from "./changes.ts";
import { priceChange } from "./merge.ts";
import { SHIPPED } from "./origins.ts";
import { lockPrices } from "./price-lock.ts";
import { textsInside } from "./revisions.ts";
import { pacer } from "../kit/turns.ts";
import { comparePrices } from "./sync.ts";
import type { SyncRequest, SyncResult } from "./sync.ts";
import { takenOf } from "./taken.ts";

type KeptDeps = Pick<Deps, "db" | "clock" | "guard" | "reach" | "routing" | "options" | "inbox" | "logger">;

/** What a comparison with the source asks. */
export function requestOf({ name, source, url, strip }: PriceSource): SyncRequest {
  return { source, url, strip, name };
}

/** What its prices are remembered by. */
const originOf = ({ source, name }: PriceSource): string => (source === "shipped" ? SHIPPED : name);

const PERCENT = 100;
/** By so much doubles miss a limit that is met exactly. */
const DRIFT = 1e-9;

type Fate = "take" | "wait" | "leave";

/** What becomes of a row without a person. */
function fateOf(row: SyncRow, source: PriceSource): Fate {
  const { ours, theirs, guards, name } = row;
  if (!theirs) return "leave";
  if (row.case === "new") return row.ticked ? "take" : "leave";
  if (row.case !== "newer" || row.origin !== originOf(source) || !ours) return "leave";
  const isSmall = priceChange(name, ours, theirs) * PERCENT <= source.limit + DRIFT;
  return guards.length === 0 && row.ticked && isSmall ? "take" : "wait";
}

function changesOf(rows: readonly SyncRow[], quotaPerUnit: number): SentChange[] {
  const maps = emptyMaps();
  return rows.flatMap(({ name, theirs, taken }) => {
    putRow(maps, name, theirs ?? undefined, quotaPerUnit);
    return PRICE_MAPS.map((key) => ({ key, name, after: maps[key][name] ?? null, taken }));
  });
}

/** One revision of all that is taken; undefined where somebody wrote prices since they were compared. */
async function take(
  deps: KeptDeps,
  { revision: compared, source, version }: SyncResult,
  rows: readonly SyncRow[],
): Promise<number | undefined> {
  const { db, options } = deps;
  return options.write<number | undefined>(
    function* (tx) {
      const revision = yield* lockPrices(db, tx);
      if (revision !== compared) return { writes: [], value: undefined };
      const texts = yield* textsInside(db, tx, PRICE_OPTIONS);
      const changes = changesAgainst(texts, changesOf(rows, tablesIn(texts).quotaPerUnit));
      return { writes: writesOf(texts, changes), value: revision + 1 };
    },
    {
      userId: 0,
      username: "",
      kind: "sync",
      note: `${source}@${version}`,
      taken: takenOf(rows.map(({ name, taken }) => ({ name, taken }))),
    },
  );
}

async function syncOne(deps: KeptDeps, source: PriceSource): Promise<void> {
  const { inbox, logger } = deps;
  const result = await comparePrices(deps, requestOf(source));
  inbox.gone("price_sync", source.name);
  const rows: SyncRow[] = [];
  let waiting = 0;
  const turn = pacer();
  for (const row of result.rows) {
    await turn();
    const fate = fateOf(row, source);
    if (fate === "take") rows.push(row);
    else if (fate === "wait") waiting += 1;
  }
  const { name, limit } = source;
  if (waiting > 0) inbox.keep({ kind: "price_sync_waits", subject: name, params: { count: waiting, limit } });
  else inbox.gone("price_sync_waits", name);
  if (rows.length === 0) return;
  const revision = await take(deps, result, rows);
  if (revision === undefined)
    logger.info("prices changed meanwhile, sync comes round again", { source: name });
  else logger.info("prices taken from a kept source", { source: name, count: rows.length, revision });
}

/** All kept sources that are told to, one after another; one that fails is told and holds up none. */
export async function syncKeptSources(deps: KeptDeps): Promise<void> {
  for (const source of deps.options.get("PriceSources").filter(({ auto }) => auto)) {
    try {
      await syncOne(deps, source);
    } catch (error) {
      const code = error instanceof Failure ? error.code : "internal";
      deps.logger.warn("price source failed", { source: source.name, error: String(error) });
      deps.inbox.raise({ kind: "price_sync", subject: source.name, params: { code } });
    }
  }
}
