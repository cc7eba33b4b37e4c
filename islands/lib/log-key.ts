// How a row of the usage log is named in an address: its id, or for users the moment and the part of the id that they see.
import type { LogRow } from "./wire.ts";

/** Users get folded ids, which repeat: only with the moment they name a row. */
export function rowKeyOf(row: LogRow, isAdmin: boolean): string {
  return isAdmin ? String(row.id) : `${row.created_at}-${row.id}`;
}
