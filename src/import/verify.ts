// Whether what was moved in is what stood there: read once more from the source, and held against the database that has it.
// Refuses to change either; meant for the time between the import and the first call, whose figures go on from there.
import { and, eq, gte, ne, sql } from "drizzle-orm";
import { sha256Hex } from "../core/kit/seal.ts";
import type { Sealer } from "../core/kit/seal.ts";
import { audit } from "../core/ledger/audit.ts";
import { definitionOf, isOptionKey } from "../core/options/definitions.ts";
import { countRows, sumOf } from "../db/database.ts";
import type { Database } from "../db/database.ts";
import { ChannelStatus } from "../shared/enums.ts";
import { SourceRefused } from "./dsn.ts";
import type { ImportReport } from "./report.ts";
import type { SourceDatabase, SourceRow } from "./source.ts";
import { readState } from "./state.ts";
import type { ImportState } from "./state.ts";
import { exactWhole, flagOf, textOf, wholeOf } from "./values.ts";

/** One thing that was compared; equal texts are as it should be. */
export interface Check {
  what: string;
  expected: string;
  found: string;
}

interface Verified {
  source: SourceDatabase;
  /** Where the old program's log is. */
  logs: SourceDatabase;
  db: Database;
  seal: Sealer;
}

interface Facts extends Verified {
  state: ImportState;
  report: ImportReport;
  add: (what: string, expected: number | string, found: number | string) => void;
}

const DAY = 86_400;
const CONSUME = 2;
/** Of rows that differ, so many are named. */
const MOST_NAMED = 5;

const carried = ({ report }: Facts, ...tables: string[]): number =>
  tables.reduce((sum, table) => sum + (report.tables[table]?.carried ?? 0), 0);

async function countTables(facts: Facts): Promise<void> {
  const { db, add } = facts;
  const { users, tokens, channels, redemptions, orders, drawings, tasks, plans, userPlans } = db.t;
  const rows = [
    ["users", users, ["users"]],
    ["keys", tokens, ["tokens"]],
    ["channels", channels, ["channels"]],
    ["redemption codes", redemptions, ["redemptions"]],
    ["orders", orders, ["top_ups", "subscription_orders"]],
    ["drawings", drawings, ["midjourneys"]],
    ["tasks", tasks, ["tasks"]],
    ["plans", plans, ["subscription_plans"]],
    ["running plans", userPlans, ["user_subscriptions"]],
  ] as const;
  for (const [what, table, tables] of rows) {
    const [found] = await db.orm.select({ count: countRows() }).from(table);
    add(`rows: ${what}`, carried(facts, ...tables), found?.count ?? 0);
  }
}

/** A figure by id, in the source and here; of those that differ some are named. */
function compareById(
  { add }: Facts,
  what: string,
  expected: ReadonlyMap<number, number>,
  found: ReadonlyMap<number, number>,
): void {
  const wrong = [...found].filter(([id, value]) => expected.get(id) !== value);
  const total = (of: ReadonlyMap<number, number>): bigint =>
    [...found.keys()].reduce((sum, id) => sum + BigInt(of.get(id) ?? 0), 0n);
  const named = (of: ReadonlyMap<number, number>): string =>
    wrong
      .slice(0, MOST_NAMED)
      .map(([id]) => `; ${id}: ${of.get(id) ?? "none"}`)
      .join("");
  add(what, `${total(expected)}${named(expected)}`, `${total(found)}${named(found)}`);
}

async function sourceFigures(
  source: SourceDatabase,
  table: string,
  column: string,
): Promise<Map<number, number>> {
  const found = new Map<number, number>();
  for await (const page of source.pages(table, { columns: ["id", column] }))
    for (const row of page) found.set(wholeOf(row, "id"), exactWhole(row, column).value);
  return found;
}

/** What running plans had left is part of the balance here. */
async function addPlans({ source, db, state }: Facts, balances: Map<number, number>): Promise<void> {
  const { userPlans } = db.t;
  const here = new Set((await db.orm.select({ id: userPlans.id }).from(userPlans)).map(({ id }) => id));
  for (const row of await source.all("user_subscriptions")) {
    if (!here.has(wholeOf(row, "id"))) continue;
    const userId = wholeOf(row, "user_id");
    const resetAt = wholeOf(row, "next_reset_time");
    const used = resetAt > 0 && resetAt <= state.startedAt ? 0 : wholeOf(row, "amount_used");
    balances.set(userId, (balances.get(userId) ?? 0) + Math.max(0, wholeOf(row, "amount_total") - used));
  }
}

async function compareFigures(facts: Facts): Promise<void> {
  const { source, db } = facts;
  const { users, tokens, channels } = db.t;
  const userRows = await db.orm
    .select({ id: users.id, quota: users.quota, used: users.usedQuota, requests: users.requestCount })
    .from(users);
  const balances = await sourceFigures(source, "users", "quota");
  await addPlans(facts, balances);
  const of = <R extends { id: number }>(rows: readonly R[], value: (row: R) => number) =>
    new Map(rows.map((row) => [row.id, value(row)]));
  compareById(
    facts,
    "balances",
    balances,
    of(userRows, ({ quota }) => quota),
  );
  const usedBy = await sourceFigures(source, "users", "used_quota");
  compareById(
    facts,
    "used by users",
    usedBy,
    of(userRows, ({ used }) => used),
  );
  const requests = await sourceFigures(source, "users", "request_count");
  compareById(
    facts,
    "requests of users",
    requests,
    of(userRows, (row) => row.requests),
  );
  const keys = await db.orm.select({ id: tokens.id, used: tokens.usedQuota }).from(tokens);
  compareById(
    facts,
    "used by keys",
    await sourceFigures(source, "tokens", "used_quota"),
    of(keys, ({ used }) => used),
  );
  const served = await db.orm.select({ id: channels.id, used: channels.usedQuota }).from(channels);
  const ofChannels = await sourceFigures(source, "channels", "used_quota");
  compareById(
    facts,
    "used by channels",
    ofChannels,
    of(served, ({ used }) => used),
  );
}

const isCall = (row: SourceRow): boolean =>
  wholeOf(row, "type") === CONSUME && wholeOf(row, "quota") >= 0 && wholeOf(row, "user_id") > 0;

/** Calls by day and model; hours before the first row of the log came from sums of the old site, and are left out. */
async function compareLog({ logs, db, state, add }: Facts): Promise<void> {
  const expected = new Map<string, bigint>();
  const columns = ["id", "user_id", "created_at", "type", "quota", "model_name"];
  for await (const page of logs.pages("logs", { columns })) {
    for (const row of page.filter(isCall)) {
      const key = `${Math.floor(wholeOf(row, "created_at") / DAY)} ${textOf(row, "model_name")}`;
      expected.set(key, (expected.get(key) ?? 0n) + BigInt(wholeOf(row, "quota")));
    }
  }
  const { rollups } = db.t;
  const day = sql<number>`${rollups.hour} / ${sql.raw(String(DAY))}`.mapWith(Number);
  const rows = await db.orm
    .select({ day, model: rollups.modelName, quota: sumOf(rollups.quota) })
    .from(rollups)
    .where(gte(rollups.hour, Math.floor(state.firstCall / 3600) * 3600))
    .groupBy(day, rollups.modelName);
  const found = new Map(rows.map((row) => [`${Math.floor(row.day)} ${row.model}`, BigInt(row.quota)]));
  const keys = [...new Set([...expected.keys(), ...found.keys()])];
  const wrong = keys.filter((key) => expected.get(key) !== found.get(key));
  const said = (of: ReadonlyMap<string, bigint>): string =>
    [`${[...of.values()].reduce((sum, each) => sum + each, 0n)} in ${of.size}`]
      .concat(wrong.slice(0, MOST_NAMED).map((key) => `${key}: ${of.get(key) ?? "none"}`))
      .join("; ");
  add("log by day and model", said(expected), said(found));
}

function opens(seal: Sealer, purpose: Parameters<Sealer["open"]>[0], sealed: string): string | undefined {
  try {
    return seal.open(purpose, sealed);
  } catch {
    return undefined;
  }
}

/** Every secret opens under the key in force, and is found by what it hashes to. */
async function checkSecrets({ db, seal, add }: Facts): Promise<void> {
  const { tokens, redemptions, channelKeys, options } = db.t;
  const all = [
    ["keys", "token", tokens],
    ["redemption codes", "redemption", redemptions],
    ["keys of channels", "channel", channelKeys],
  ] as const;
  for (const [what, purpose, table] of all) {
    const rows = await db.orm.select({ hash: table.keyHash, sealed: table.keySealed }).from(table);
    const good = rows.filter(({ hash, sealed }) => {
      const text = opens(seal, purpose, sealed);
      return text !== undefined && sha256Hex(text) === hash;
    });
    add(`secrets: ${what}`, rows.length, good.length);
  }
  const rows = await db.orm.select().from(options).where(ne(options.value, ""));
  const secret = rows.filter(({ key }) => isOptionKey(key) && definitionOf(key).secret === true);
  const good = secret.filter(({ value }) => opens(seal, "option", value) !== undefined);
  add("secrets: options", secret.length, good.length);
}

/** Which channels serve a model to a group: what was on there and whose channel is on here. */
async function compareRoutes({ source, db, report, add }: Facts): Promise<void> {
  const { abilities, channels } = db.t;
  const rows = await db.orm
    .select({ group: abilities.group, model: abilities.model, channelId: abilities.channelId })
    .from(abilities)
    .innerJoin(channels, eq(channels.id, abilities.channelId))
    .where(and(eq(abilities.enabled, true), eq(channels.status, ChannelStatus.enabled)));
  const here = new Set(rows.map((row) => `${row.channelId} ${row.group} ${row.model}`));
  const on = new Set(rows.map(({ channelId }) => channelId));
  const there = (await source.all("abilities")).filter(
    (row) => flagOf(row, "enabled") && on.has(wholeOf(row, "channel_id")),
  );
  const kept = there.filter((row) =>
    here.has(`${wholeOf(row, "channel_id")} ${textOf(row, "group")} ${textOf(row, "model")}`),
  );
  const lost = report.findings.find(({ code }) => code === "ability_lost")?.count ?? 0;
  add(
    "routes that still serve, but for those that the report names",
    Math.max(0, there.length - lost),
    kept.length,
  );
}

/** Throws SourceRefused where nothing was imported here, or another source. */
export async function verifyImport(verified: Verified): Promise<Check[]> {
  const { db } = verified;
  const state = await readState(db);
  if (state?.stage !== "done" || !state.report)
    throw new SourceRefused("no site was imported into this database, so there is nothing to verify");
  const checks: Check[] = [];
  const facts: Facts = {
    ...verified,
    state,
    report: state.report,
    add: (what, expected, found) =>
      void checks.push({ what, expected: String(expected), found: String(found) }),
  };
  await countTables(facts);
  await compareFigures(facts);
  await compareLog(facts);
  await checkSecrets(facts);
  await compareRoutes(facts);
  const { differences } = await audit(db);
  facts.add("differences that the audit finds", 0, differences.length);
  return checks;
}

export const isAsItWas = ({ expected, found }: Check): boolean => expected === found;

/** A line for each check, those that failed with both sides. */
export function verifyLines(checks: readonly Check[]): string[] {
  const failed = checks.filter((check) => !isAsItWas(check));
  return [
    ...checks.map((check) =>
      isAsItWas(check)
        ? `same       ${check.what}: ${check.found}`
        : `DIFFERENT  ${check.what}: ${check.found}, should be ${check.expected}`,
    ),
    failed.length === 0
      ? "Everything that was imported is as it stood in the source."
      : `${failed.length} of ${checks.length} checks found something else than the source has.`,
  ];
}
