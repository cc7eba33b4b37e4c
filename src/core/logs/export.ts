// The log as rows for a file: every row of a filter, newest first, by key pages, so that no page costs more than the first.
// Refuses a second export of the same account while one runs.
import { and, inArray, lt, or } from "drizzle-orm";
import { Failure } from "../../shared/failures.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { rawWhere } from "./filter.ts";
import type { LogFilter } from "./filter.ts";
import { adminRows, rowsQuery, userJson } from "./list.ts";
import type { LogJson } from "./list.ts";

/** Rows of one query: the event loop takes some 10 ms to make them ready, and has other things to do then. */
const PAGE_ROWS = 400;

export interface LogExport {
  /** As of the lists. Its `type` is not read. */
  filter: LogFilter;
  /** Empty: all. */
  types: readonly number[];
  /** For users: their own rows as they read them. Undefined: for administrators. */
  owner: UserAccount | undefined;
}

/** The rows, a page at a time. */
export async function* exportedRows(
  deps: Deps,
  { filter, types, owner }: LogExport,
): AsyncGenerator<LogJson[], void> {
  const { logs } = deps.db.t;
  const [only] = types;
  const { channelId: _, ...withoutChannel } = filter;
  const asked: LogFilter = {
    ...(owner ? { ...withoutChannel, userId: owner.id } : filter),
    // One type has an index of its own; of several the time's serves.
    type: types.length === 1 ? (only ?? 0) : 0,
  };
  const ofTypes = types.length > 1 ? inArray(logs.type, [...types]) : undefined;
  let last: { createdAt: number; id: number } | undefined;
  for (;;) {
    const to = last === undefined ? asked.to : Math.min(asked.to, last.createdAt + 1);
    const after = last && or(lt(logs.createdAt, last.createdAt), lt(logs.id, last.id));
    const where = and(rawWhere(deps.db, asked, asked.from, to), ofTypes, after);
    const rows = await rowsQuery(deps.db.reader, deps.db, where, PAGE_ROWS, 0);
    if (rows.length > 0) yield owner ? rows.map(userJson) : adminRows(deps, rows);
    const end = rows.at(-1);
    if (end === undefined || rows.length < PAGE_ROWS) return;
    last = { createdAt: end.createdAt, id: end.id };
  }
}

/** Holds one account to one export at a time. `begin` throws a Failure `log_export_running`; call what it answers at the end. */
export function createExportTurns(): { begin(userId: number): () => void } {
  const running = new Set<number>();
  return {
    begin(userId) {
      if (running.has(userId)) throw new Failure("limit", "log_export_running");
      running.add(userId);
      return () => void running.delete(userId);
    },
  };
}
