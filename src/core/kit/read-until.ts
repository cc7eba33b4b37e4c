// Reads on somebody's behalf end when they leave.
import type { Database } from "../../db/database.ts";

/** The services of a call whose reads end when its client leaves. */
export function readUntil<Services extends { db: Database }>(
  deps: Services,
  { signal }: Request,
  isBulk = false,
): Services {
  return { ...deps, db: { ...deps.db, reader: deps.db.readerUntil(signal, isBulk) } };
}
