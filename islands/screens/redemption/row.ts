// What the redemption code screen knows of a code, the values of its drawer, and how codes leave for a spreadsheet.
import { DEFAULT_QUOTA_PER_UNIT } from "../../../src/shared/money.ts";
import type { CsvCell } from "../../lib/csv.ts";
import type { StatusTone } from "../../ui/badges.tsx";
import type { CodeRow, ListPageData } from "../../lib/wire.ts";

export type RedemptionPageData = ListPageData<CodeRow>;

export interface CodeValues extends Record<string, unknown> {
  name: string;
  quota: number | undefined;
  count: number | undefined;
  /** As the field has it, by the visitor's clock; "": for ever. */
  expires: string;
}

export const UNUSED = 1;
export const DISABLED = 2;
export const USED = 3;
export const STATUS: Record<number, readonly [StatusTone, string]> = {
  [UNUSED]: ["ok", "redemption.status.unused"],
  [DISABLED]: ["off", "redemption.status.disabled"],
  [USED]: ["running", "redemption.status.used"],
};

/** The specification's defaults. */
export const NEW_CODE: CodeValues = { name: "", quota: 100_000, count: 1, expires: "" };
const PRESET_DOLLARS = [1, 10, 50, 100, 500, 1000] as const;
export const MAX_CODES = 100;

export function quotaPresets(perUnit: number | undefined): number[] {
  return PRESET_DOLLARS.map((dollars) => dollars * (perUnit || DEFAULT_QUOTA_PER_UNIT));
}

/** Calls of many codes take at most this many at once. */
export const MAX_IDS = 1000;

/** A batch that was just made. */
export interface CodeBatch {
  keys: readonly string[];
  name: string;
  /** Whole units each is worth. */
  quota: number;
}

/** Whether nobody can redeem it any more, though nobody has. */
export const isExpired = ({ status, expired_time: end }: CodeRow, nowSeconds: number): boolean =>
  status === UNUSED && end > 0 && end <= nowSeconds;

/** Characters that no file system minds. */
export function fileName(name: string): string {
  return name.replace(/[^\p{L}\p{N}._-]+/gu, "_") || "codes";
}

export function batchCells({ keys, name, quota }: CodeBatch, dollars: string): CsvCell[][] {
  return keys.map((key) => [key, name, dollars, quota]);
}
