// What a settings file is compared with: every option and every channel as the database has them, and the revision of prices.
import { inArray, desc } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { definitionOf, optionRows } from "../options/definitions.ts";
import type { OptionKey } from "../options/definitions.ts";
import type { PriceTexts } from "../prices/changes.ts";
import { PRICE_OPTIONS } from "../prices/changes.ts";
import { lockPrices } from "../prices/price-lock.ts";
import { priceState } from "../prices/revisions.ts";
import { plansOnSale } from "../prices/sold-plans.ts";
import { refuse } from "../../shared/failures.ts";
import type { ChannelRow } from "../channels/rows.ts";
import type { PlanRow } from "../plans/purse.ts";

/** A channel, with the hashes of its keys in their order. */
export interface ConfigChannel extends ChannelRow {
  keyHashes: readonly string[];
}

export interface ConfigState {
  /** Of prices. */
  revision: number;
  prices: PriceTexts;
  /** Every option as it is read: by default where nothing is stored, secrets opened. */
  texts: ReadonlyMap<OptionKey, string>;
  /** By id. */
  channels: readonly ConfigChannel[];
  /** Those on the list, by id. */
  plans: readonly PlanRow[];
  /** The rows of options as they are stored, to know them again. */
  stored: ReadonlyMap<string, string>;
}

export type ConfigDeps = Pick<Deps, "db" | "clock" | "options" | "seal" | "routing">;

const allKeys = (): OptionKey[] => optionRows.map(({ key }) => key);

export async function readState({ db, seal }: Pick<Deps, "db" | "seal">): Promise<ConfigState> {
  const { options, channels } = db.t;
  for (;;) {
    const { revision, texts: prices } = await priceState(db);
    const rows = await db.orm.select().from(options).where(inArray(options.key, allKeys()));
    const stored = new Map(rows.map(({ key, value }) => [key, value]));
    // Prices that moved in between are read again, so that all of it is of one moment.
    if (PRICE_OPTIONS.some((key) => stored.get(key) !== prices.get(key))) continue;
    const texts = new Map<OptionKey, string>();
    for (const key of allKeys()) {
      const text = stored.get(key) ?? definitionOf(key).default;
      const isSealed = definitionOf(key).secret === true && stored.has(key);
      texts.set(key, isSealed ? seal.open("option", text) : text);
    }
    return {
      revision,
      prices,
      texts,
      channels: withHashes(
        await db.orm.select().from(channels).orderBy(channels.id),
        await db.orm.select(hashColumns(db)).from(db.t.channelKeys),
      ),
      plans: await plansOnSale(db, db.orm),
      stored,
    };
  }
}

const hashColumns = ({ t: { channelKeys: t } }: Pick<Deps["db"], "t">) => ({
  channelId: t.channelId,
  pos: t.pos,
  keyHash: t.keyHash,
});

function withHashes(
  rows: readonly ChannelRow[],
  keys: readonly { channelId: number; pos: number; keyHash: string }[],
): ConfigChannel[] {
  const byChannel = Map.groupBy(keys, ({ channelId }) => channelId);
  return rows.map((row) => ({
    ...row,
    keyHashes: (byChannel.get(row.id) ?? []).toSorted((a, b) => a.pos - b.pos).map(({ keyHash }) => keyHash),
  }));
}

/** Columns that calls and tests write by themselves. */
const OWN_COLUMNS = [
  "usedQuota",
  "goneKeysQuota",
  "balance",
  "balanceUpdatedTime",
  "testTime",
  "responseTime",
  "otherInfo",
] as const;

function settingsOf(row: ConfigChannel): string {
  const rest: Partial<ConfigChannel> = { ...row };
  for (const column of OWN_COLUMNS) delete rest[column];
  return JSON.stringify(rest);
}

/**
 * Inside the block that writes: refuses where anything that was read has changed since. Appliers wait for each other at the
 * lock of prices; `touched` are the ids of channels that are about to be written.
 */
export function* refuseMoved(
  { db }: Pick<Deps, "db">,
  tx: Orm,
  state: ConfigState,
  touched: readonly number[],
): Steps<void> {
  const { options, channels } = db.t;
  const revision = yield* lockPrices(db, tx);
  const rows = yield* q(tx.select().from(options).where(inArray(options.key, allKeys())));
  const areOptionsSame =
    rows.length === state.stored.size && rows.every(({ key, value }) => state.stored.get(key) === value);
  const [newest] = yield* q(
    tx.select({ id: channels.id }).from(channels).orderBy(desc(channels.id)).limit(1),
  );
  const isNewestSame = (newest?.id ?? 0) === (state.channels.at(-1)?.id ?? 0);
  const known = new Map(state.channels.map((row) => [row.id, settingsOf(row)]));
  const now =
    touched.length === 0
      ? []
      : yield* q(
          tx
            .select()
            .from(channels)
            .where(inArray(channels.id, [...touched])),
        );
  const keys =
    touched.length === 0
      ? []
      : yield* q(
          tx
            .select(hashColumns(db))
            .from(db.t.channelKeys)
            .where(inArray(db.t.channelKeys.channelId, [...touched])),
        );
  const areChannelsSame =
    now.length === touched.length &&
    withHashes(now, keys).every((row) => known.get(row.id) === settingsOf(row));
  if (revision !== state.revision || !areOptionsSame || !isNewestSame || !areChannelsSame)
    throw refuse("config_moved");
}
