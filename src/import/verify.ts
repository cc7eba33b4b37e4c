// Whether an import is what its source is: row by row, sum by sum, secret by secret, against both databases as they stand.
// Refuses a site that was not imported; call it before the site is opened, since what happens then is in one of them only.
import { eq, gte, inArray, sql } from "drizzle-orm";
import { sha256Hex } from "../core/kit/seal.ts";
import type { Sealer } from "../core/kit/seal.ts";
import { audit } from "../core/ledger/audit.ts";
import { countSecrets } from "../core/options/seal-rotation.ts";
import { createOptions } from "../core/options/store.ts";
import { priceTablesFrom } from "../core/prices/price-book.ts";
import { comparePrices, replay } from "../core/prices/replay.ts";
import { countRows, sumOf } from "../db/database.ts";
import type { Database } from "../db/database.ts";
import { ChannelStatus, LogType } from "../shared/enums.ts";
import { jsonObject } from "../shared/json-object.ts";
import { SourceRefused } from "./dsn.ts";
import type { TableName } from "./insert.ts";
import { minorOfAmount } from "./mapping/orders.ts";
import type { TableCount } from "./report.ts";
import type { SourceDatabase, SourceRow } from "./source.ts";
import { readState } from "./state.ts";
import { flagOf, textOf, wholeOf } from "./values.ts";

interface Difference {
  /** A figure, for example `users.quota`. */
  what: string;
  id: string;
  source: string;
  found: string;
}

export interface VerifyReport {
  /** Figures that were compared. */
  compared: number;
  differenceCount: number;
  /** The first of them. */
  differences: Difference[];
  /** Groups and models that other channels serve here: `group/model`. Whatever came switched off is among them. */
  servedOtherwise: string[];
  /** Calls of the log, a sample, at the imported prices. */
  repriced: {
    rows: number;
    same: number;
    /** Rows that do not say what they counted. */
    unknown: number;
    models: { model: string; rows: number; charged: number; now: number }[];
  };
  auditDifferences: number;
}

export interface VerifyInput {
  source: SourceDatabase;
  logs: SourceDatabase;
  db: Database;
  seal: Sealer;
}

const MOST_DIFFERENCES = 100;
const SAMPLED_ROWS = 1000;
const IDS_PER_QUERY = 1000;

/** Tables of the source, and where their rows are here. */
const PLACES: readonly [source: readonly string[], table: TableName][] = [
  [["users"], "users"],
  [["tokens"], "tokens"],
  [["channels"], "channels"],
  [["redemptions"], "redemptions"],
  [["logs"], "logs"],
  [["top_ups", "subscription_orders"], "orders"],
  [["subscription_plans"], "plans"],
  [["user_subscriptions"], "userPlans"],
  [["two_fas"], "totps"],
  [["two_fa_backup_codes"], "backupCodes"],
  [["passkey_credentials"], "passkeys"],
  [["custom_oauth_providers"], "customProviders"],
  [["midjourneys"], "drawings"],
  [["tasks"], "tasks"],
];

interface Look extends VerifyInput {
  report: VerifyReport;
  /** One figure of both sides. */
  compare: (
    what: string,
    id: string | number,
    source: string | number,
    found: string | number | undefined,
  ) => void;
}

function createLook(input: VerifyInput): Look {
  const report: VerifyReport = {
    compared: 0,
    differenceCount: 0,
    differences: [],
    servedOtherwise: [],
    repriced: { rows: 0, same: 0, unknown: 0, models: [] },
    auditDifferences: 0,
  };
  return {
    ...input,
    report,
    compare(what, id, source, found) {
      report.compared++;
      if (source === found) return;
      report.differenceCount++;
      if (report.differences.length < MOST_DIFFERENCES)
        report.differences.push({
          what,
          id: String(id),
          source: String(source),
          found: String(found ?? "-"),
        });
    },
  };
}

async function countsAgree(
  { source, logs, db, compare }: Look,
  tables: Record<string, TableCount>,
): Promise<void> {
  for (const [names, table] of PLACES) {
    let carried = 0;
    for (const name of names) {
      const noted = tables[name];
      carried += noted?.carried ?? 0;
      if (noted) compare("rows read", name, await (name === "logs" ? logs : source).count(name), noted.read);
    }
    const [row] = await db.bulkReader
      .select({ count: countRows() })
      .from(db.t[table] as Database["t"]["users"]);
    compare("rows", table, carried, row?.count);
  }
}

/** Calls `look` with each row of the source and the row that it has become; those that were left out are passed over. */
async function eachPair<Row extends { id: number }>(
  source: SourceDatabase,
  table: string,
  rowsOf: (ids: number[]) => PromiseLike<Row[]>,
  look: (row: SourceRow, found: Row) => void,
): Promise<void> {
  for await (const page of source.pages(table, { size: IDS_PER_QUERY })) {
    const found = new Map((await rowsOf(page.map((row) => wholeOf(row, "id")))).map((row) => [row.id, row]));
    for (const row of page) {
      const mine = found.get(wholeOf(row, "id"));
      if (mine) look(row, mine);
    }
  }
}

async function accountsAgree({ source, db, compare }: Look): Promise<void> {
  const { users } = db.t;
  const rowsOf = (ids: number[]) => db.orm.select().from(users).where(inArray(users.id, ids));
  await eachPair(source, "users", rowsOf, (row, found) => {
    compare("users.quota", found.id, wholeOf(row, "quota"), found.planWallet);
    compare("users.used_quota", found.id, wholeOf(row, "used_quota"), found.usedQuota);
    compare("users.request_count", found.id, wholeOf(row, "request_count"), found.requestCount);
    // Never as it stands: whoever has signed in since has another one.
    compare("users.password", found.id, sha256Hex(textOf(row, "password")), sha256Hex(found.passwordHash));
  });
}

const opened = (seal: Sealer, purpose: "token" | "channel" | "redemption", sealed: string): string => {
  try {
    return sha256Hex(seal.open(purpose, sealed));
  } catch {
    return "";
  }
};

async function secretsAgree({ source, db, seal, compare }: Look): Promise<void> {
  const { channelKeys, redemptions, tokens } = db.t;
  const keysOf = (ids: number[]) => db.orm.select().from(tokens).where(inArray(tokens.id, ids));
  await eachPair(source, "tokens", keysOf, (row, found) => {
    const key = sha256Hex(textOf(row, "key").trim().replace(/^sk-/, ""));
    compare("tokens.key", found.id, key, found.keyHash);
    compare("tokens.sealed", found.id, found.keyHash, opened(seal, "token", found.keySealed));
    compare("tokens.used_quota", found.id, wholeOf(row, "used_quota"), found.usedQuota);
    compare("tokens.base", found.id, found.remainQuota + found.usedQuota, found.quotaBase);
  });
  const codesOf = (ids: number[]) => db.orm.select().from(redemptions).where(inArray(redemptions.id, ids));
  await eachPair(source, "redemptions", codesOf, (row, found) => {
    compare("redemptions.key", found.id, sha256Hex(textOf(row, "key").trim()), found.keyHash);
    compare("redemptions.sealed", found.id, found.keyHash, opened(seal, "redemption", found.keySealed));
    compare("redemptions.quota", found.id, wholeOf(row, "quota", 100), found.quota);
  });
  for (const key of await db.orm.select().from(channelKeys))
    compare("channel_keys.sealed", key.id, key.keyHash, opened(seal, "channel", key.keySealed));
  // Second factors, sign-in providers and settings have no hash beside them.
  compare("sealed texts that do not open", "all", 0, (await countSecrets(db, seal)).lost);
}

async function recordsAgree({ source, db, compare }: Look): Promise<void> {
  const { channels, orders, planPeriods } = db.t;
  const channelsOf = (ids: number[]) => db.orm.select().from(channels).where(inArray(channels.id, ids));
  await eachPair(source, "channels", channelsOf, (row, found) =>
    compare("channels.used_quota", found.id, wholeOf(row, "used_quota"), found.usedQuota),
  );
  const ordersOf = (ids: number[]) => db.orm.select().from(orders).where(inArray(orders.id, ids));
  await eachPair(source, "top_ups", ordersOf, (row, found) => {
    compare("orders.money", found.id, minorOfAmount(textOf(row, "money"), found.currency), found.moneyMinor);
    const isPaid = textOf(row, "status") === "success";
    compare("orders.paid", found.id, String(isPaid), String(found.status === "credited"));
  });
  const periodsOf = async (ids: number[]) => {
    const rows = await db.orm.select().from(planPeriods).where(inArray(planPeriods.userPlanId, ids));
    return rows.map((row) => ({ ...row, id: row.userPlanId }));
  };
  await eachPair(source, "user_subscriptions", periodsOf, (row, found) => {
    const total = wholeOf(row, "amount_total");
    if (total > 0) compare("plan_periods.quota", found.id, total, found.quota);
    // A reset that was overdue has been made.
    if (found.used > 0)
      compare("plan_periods.used", found.id, Math.min(wholeOf(row, "amount_used"), total), found.used);
  });
}

async function daysAgree({ logs, db, compare }: Look, firstCall: number): Promise<void> {
  const { rollups } = db.t;
  const day = sql<number>`${rollups.hour} - ${rollups.hour} % 86400`.mapWith(Number);
  const rows = await db.bulkReader
    .select({ day, model: rollups.modelName, count: sumOf(rollups.count), quota: sumOf(rollups.quota) })
    .from(rollups)
    .where(gte(rollups.hour, firstCall))
    .groupBy(day, rollups.modelName);
  const found = new Map(rows.map((row) => [`${row.day}/${row.model}`, row]));
  for (const row of await logs.callsByDay()) {
    const id = `${wholeOf(row, "day")}/${textOf(row, "model")}`;
    compare("log calls of a day", id, wholeOf(row, "n"), found.get(id)?.count);
    compare("log quota of a day", id, wholeOf(row, "total"), found.get(id)?.quota);
    found.delete(id);
  }
  for (const [id, { count }] of found) compare("log calls of a day", id, 0, count);
}

/** `group/model` to the numbers of the channels that serve it, as one text. */
function served(rows: readonly { group: string; model: string; id: number }[]): Map<string, string> {
  const found = Map.groupBy(rows, ({ group, model }) => `${group}/${model}`);
  return new Map(
    [...found].map(([way, each]) => [
      way,
      each
        .map(({ id }) => id)
        .toSorted((a, b) => a - b)
        .join(","),
    ]),
  );
}

async function waysAgree({ source, db, report }: Look): Promise<void> {
  const on = new Set<number>();
  for await (const page of source.pages("channels", { columns: ["id", "status"] }))
    for (const row of page)
      if (wholeOf(row, "status", 1) === ChannelStatus.enabled) on.add(wholeOf(row, "id"));
  const there = (await source.all("abilities"))
    .map((row) => ({
      group: textOf(row, "group"),
      model: textOf(row, "model"),
      id: wholeOf(row, "channel_id"),
      isOn: flagOf(row, "enabled"),
    }))
    .filter(({ id, isOn }) => isOn && on.has(id));
  const { abilities } = db.t;
  const here = await db.orm
    .select({ group: abilities.group, model: abilities.model, id: abilities.channelId })
    .from(abilities)
    .where(eq(abilities.enabled, true));
  const [before, after] = [served(there), served(here)];
  for (const way of new Set([...before.keys(), ...after.keys()]))
    if (before.get(way) !== after.get(way)) report.servedOtherwise.push(way);
}

/** The newest calls at the imported prices: what they were charged, and what they would be. */
async function reprice({ db, seal, report }: Look): Promise<void> {
  const { logs } = db.t;
  const tables = priceTablesFrom(await createOptions(db, seal));
  const prices = comparePrices(tables, tables);
  const rows = await db.bulkReader
    .select()
    .from(logs)
    .where(eq(logs.type, LogType.consume))
    .orderBy(sql`${logs.createdAt} desc`)
    .limit(SAMPLED_ROWS);
  const models = new Map<string, VerifyReport["repriced"]["models"][number]>();
  for (const row of rows) {
    report.repriced.rows++;
    const { trust, new: now } = replay(
      {
        model: row.modelName,
        group: row.group,
        quota: row.quota,
        prompt_tokens: row.promptTokens,
        completion_tokens: row.completionTokens,
        startMs: row.createdAt * 1000 - row.useTimeMs,
        other: jsonObject(row.other) ?? {},
      },
      prices,
    );
    if (trust === "unknown") report.repriced.unknown++;
    else if (Math.abs(now - row.quota) <= 1) report.repriced.same++;
    else {
      const sum = models.get(row.modelName) ?? { model: row.modelName, rows: 0, charged: 0, now: 0 };
      models.set(row.modelName, {
        ...sum,
        rows: sum.rows + 1,
        charged: sum.charged + row.quota,
        now: sum.now + now,
      });
    }
  }
  report.repriced.models = [...models.values()].toSorted((a, b) => b.rows - a.rows);
}

/** Throws SourceRefused where nothing was imported. */
export async function verifyImport(input: VerifyInput): Promise<VerifyReport> {
  const state = await readState(input.db);
  if (state?.stage !== "done") throw new SourceRefused("nothing was imported here, or not all of it yet");
  const look = createLook(input);
  await countsAgree(look, state.report?.tables ?? {});
  await accountsAgree(look);
  await secretsAgree(look);
  await recordsAgree(look);
  await daysAgree(look, state.firstCall);
  await waysAgree(look);
  await reprice(look);
  look.report.auditDifferences = (await audit(input.db, { isReadOnly: true })).total;
  return look.report;
}
