// The coarse sums of calls: what keeps them apart, and how an hour's sums are added to them. One list for the statements
// of both databases, for refunds, for what fills them anew, and for the audit.
import type { Database } from "../../db/database.ts";
import { dayOf } from "./coarse-days.ts";

/** What keeps the sums of an hour apart. */
export const ROLLUP_KEY = ["hour", "userId", "modelName", "channelId", "tokenId", "group"] as const;

export type RollupSum = Database["t"]["rollups"]["$inferSelect"];

/**
 * Under what model an error is counted: under none where no channel was asked, because then the name is whatever the client
 * chose, and sums are never cleared.
 */
export function errorSumName({ channelId, modelName }: { channelId: number; modelName: string }): string {
  return channelId === 0 ? "" : modelName;
}

/** An hour's sums and the day that it belongs to. */
export type DatedSum = RollupSum & { day: number };

/** The tables: the name, and which fields of a dated sum are the key, in the order of the primary key. */
export const COARSE = [
  { name: "rollups_by_model", table: "rollupsByModel", key: ["hour", "modelName"] },
  { name: "rollups_by_user", table: "rollupsByUser", key: ["day", "userId"] },
  { name: "rollups_by_user_model", table: "rollupsByUserModel", key: ["day", "userId", "modelName"] },
  { name: "rollups_by_token", table: "rollupsByToken", key: ["day", "tokenId", "userId"] },
  { name: "rollups_by_channel", table: "rollupsByChannel", key: ["day", "modelName", "channelId", "group"] },
] as const satisfies readonly {
  name: string;
  table: keyof Database["t"];
  key: readonly (keyof DatedSum)[];
}[];

export type CoarseTable = (typeof COARSE)[number];

/** The id of the one row of `rollup_days`. */
export const DAYS_ROW = 1;

/** As a row of `rollup_days`. */
export interface CoarseState {
  zone: string;
  /** Unix seconds: sums of earlier hours are not there (yet). */
  fromHour: number;
}

export function dated(zone: string, sum: RollupSum): DatedSum {
  return { ...sum, day: dayOf(zone, sum.hour) };
}

/** A batch's sums as one coarse table has them: the key's fields and every sum. */
export function coarsen(sums: readonly DatedSum[], { key }: CoarseTable): DatedSum[] {
  const found = new Map<string, DatedSum>();
  const fields = Object.keys(sums[0] ?? {}).filter(isSum);
  for (const sum of sums) {
    const id = key.map((field) => sum[field]).join("\0");
    const known = found.get(id);
    if (!known) found.set(id, { ...sum });
    else for (const field of fields) known[field] += sum[field];
  }
  return [...found.values()];
}

type SumField = Exclude<keyof RollupSum, (typeof ROLLUP_KEY)[number]>;

/** Whether a field is added up. */
export function isSum(field: string): field is SumField {
  return field !== "day" && !ROLLUP_KEY.some((key) => key === field);
}
