// What names a row of the usage log in an address.

/** Users get folded ids, which repeat: only with the moment they name a row. */
export function logRowKey(row: { id: number; created_at: number }, isAdmin: boolean): string {
  return isAdmin ? String(row.id) : `${row.created_at}-${row.id}`;
}
