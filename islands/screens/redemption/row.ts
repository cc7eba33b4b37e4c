// What the redemption code screen knows of a code, and the values of its drawer.
// Refuses nothing; the server checks every field again.

export interface CodeRow {
  id: number;
  key: string;
  status: number;
  name: string;
  quota: number;
  created_time: number;
  redeemed_time: number;
  used_user_id: number;
  used_username: string;
}

export interface RedemptionPageData {
  rows: CodeRow[];
  total: number;
  pageSize: number;
}

export interface CodeValues extends Record<string, unknown> {
  name: string;
  quota: number | undefined;
  count: number | undefined;
}

/** The specification's defaults. */
export const NEW_CODE: CodeValues = { name: "", quota: 100_000, count: 1 };
export const QUOTA_PRESETS = [1, 10, 50, 100, 500, 1000] as const;
export const MAX_CODES = 100;
