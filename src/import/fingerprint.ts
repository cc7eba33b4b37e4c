// Whether a source is the one that an import began with, and whether its small tables are still what they were.
import type { Family } from "./family.ts";
import type { ImportSettings } from "./context.ts";
import type { SourceDatabase } from "./source.ts";
import { textOf } from "./values.ts";

const hash = (value: unknown): string =>
  new Bun.CryptoHasher("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 32);

async function firstRow(
  source: SourceDatabase,
  table: string,
  columns: readonly string[],
): Promise<string[]> {
  for await (const [row] of source.pages(table, { columns: ["id", ...columns], size: 1 }))
    return row ? columns.map((column) => textOf(row, column)) : [];
  return [];
}

/** Of what the source is: it may grow, and stays the same. */
export async function identityOf(
  source: SourceDatabase,
  logs: SourceDatabase,
  family: Family,
): Promise<string> {
  const shape = [...source.tables].map(([table, columns]) => [table, [...columns].toSorted()]);
  return hash([
    family,
    shape.toSorted(([a], [b]) => String(a).localeCompare(String(b))),
    await firstRow(source, "users", ["id", "username"]),
    await firstRow(logs, "logs", ["id", "created_at"]),
  ]);
}

/** Columns that tell of a change, by table. */
const FIGURES: readonly [table: string, columns: readonly string[]][] = [
  ["users", ["id", "quota", "used_quota", "request_count"]],
  ["tokens", ["id", "remain_quota", "used_quota", "status"]],
  ["channels", ["id", "used_quota", "status"]],
  ["redemptions", ["id", "status"]],
  ["quota_data", ["id", "quota"]],
  ["top_ups", ["id", "complete_time"]],
  ["subscription_orders", ["id", "complete_time"]],
  ["subscription_plans", ["id", "total_amount"]],
  ["user_subscriptions", ["id", "amount_used"]],
  ["two_fas", ["id"]],
  ["two_fa_backup_codes", ["id"]],
  ["passkey_credentials", ["id"]],
  ["custom_oauth_providers", ["id"]],
  ["user_oauth_bindings", ["id"]],
  ["midjourneys", ["id"]],
  ["tasks", ["id"]],
];

/** Of the small tables as they stand, and of what was asked for: batches are the same only where both are. */
export async function fingerprintOf(source: SourceDatabase, settings: ImportSettings): Promise<string> {
  const figures: string[] = [];
  for (const [table, columns] of FIGURES)
    for (const column of columns) figures.push(await source.figures(table, column));
  const options = (await source.all("options")).map((row) => [textOf(row, "key"), textOf(row, "value")]);
  return hash([
    figures,
    options.toSorted(([a = ""], [b = ""]) => a.localeCompare(b)),
    settings.unlimitedPlanQuota ?? -1,
    [...(settings.optionTexts ?? [])],
  ]);
}
