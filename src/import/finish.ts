// The last steps of an import: the site counts as set up and is closed, keys go on behind the imported ones, coarse sums are made.
// Refuses to open the site: it stands in maintenance until root ends it.
import { getTableColumns, getTableName, sql } from "drizzle-orm";
import type { Column } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import { buildCoarse } from "../core/ledger/coarse-build.ts";
import { openCoarse } from "../core/logs/coarse-state.ts";
import { createOptions } from "../core/options/store.ts";
import { IMPORTED_SITE } from "../core/site/maintenance.ts";
import { setCounters } from "../db/counters.ts";
import { EVERYTHING, q, rawQuery } from "../db/database.ts";
import type { Database, Orm, Steps } from "../db/database.ts";
import { Role } from "../shared/enums.ts";
import type { ImportContext } from "./context.ts";
import type { ImportReport } from "./report.ts";
import { dropMarks, writeState } from "./state.ts";
import type { ImportState } from "./state.ts";

type Counted = Column & { generatedIdentity?: unknown };

/** Whose numbers other rows name: what was deleted there for good must not come back as somebody else. */
function namedIn({ t }: Database): [counted: PgTable, columns: readonly Column[]][] {
  return [
    [
      t.users,
      [t.users.id, t.logs.userId, t.rollups.userId, t.orders.userId, t.drawings.userId, t.tasks.userId],
    ],
    [t.users, [t.tokens.userId, t.redemptions.userId, t.redemptions.usedUserId]],
    [t.tokens, [t.tokens.id, t.logs.tokenId, t.rollups.tokenId]],
    [
      t.channels,
      [t.channels.id, t.logs.channelId, t.rollups.channelId, t.drawings.channelId, t.tasks.channelId],
    ],
    [t.plans, [t.plans.id, t.userPlans.planId]],
  ];
}

/** Ids go on behind the greatest that any imported row has or names. */
async function continueNumbers(db: Database): Promise<void> {
  const greatest = new Map<string, number>();
  const see = async (counted: PgTable, column: Column) => {
    const [found] = await db.orm
      .select({ most: sql<number>`coalesce(max(${column}), 0)`.mapWith(Number) })
      .from(column.table as Database["t"]["users"]);
    const name = getTableName(counted);
    greatest.set(name, Math.max(greatest.get(name) ?? 0, found?.most ?? 0));
  };
  for (const table of Object.values(db.t) as PgTable[]) {
    const { id } = getTableColumns(table) as Record<string, Counted | undefined>;
    // Of rows that brought their numbers along SQLite's counters know, PostgreSQL's do not.
    if (id?.generatedIdentity !== undefined) await see(table, id);
  }
  for (const [counted, columns] of namedIn(db)) for (const column of columns) await see(counted, column);
  await setCounters(
    db,
    [...greatest].flatMap(([name, last]) => (last > 0 ? [{ name, last }] : [])),
  );
}

async function makeCoarse(db: Database, { seal, clock }: FinishDeps): Promise<void> {
  // A site that was looked at while it was empty says that it has all of them.
  await db.orm.delete(db.t.rollupDays);
  const options = await createOptions(db, seal);
  await openCoarse(db, options.get("site.time_zone"));
  // Nobody else is served meanwhile.
  await buildCoarse({ db, clock, options }, async () => undefined);
}

interface FinishDeps extends Pick<ImportContext, "seal"> {
  clock: { nowMs(): number; monotonicMs(): number };
}

/** Nobody but root gets in, and nothing leaves by itself. Whoever serves the database reads all of its options anew. */
export function* closeSite(db: Database, tx: Orm): Steps<void> {
  const { options } = db.t;
  for (const [key, value] of Object.entries(IMPORTED_SITE))
    yield* q(
      tx
        .insert(options)
        .values({ key, value })
        .onConflictDoUpdate({ target: options.key, set: { value } })
        .returning({ key: options.key }),
    );
  // Those that the import wrote before, too: other processes heard of none of them.
  yield* db.announceSteps(tx, "options", [EVERYTHING]);
}

export async function finishImport(
  db: Database,
  deps: FinishDeps & { version: string },
  { state, report }: { state: ImportState; report: ImportReport },
): Promise<void> {
  const { setups, users } = db.t;
  await continueNumbers(db);
  await makeCoarse(db, deps);
  if (db.kind === "postgres")
    await db.atomic(function* (tx) {
      yield* q(rawQuery(tx, sql`analyze`));
    });
  await db.atomic(function* (tx) {
    const [root] = yield* q(
      tx
        .select({ id: users.id })
        .from(users)
        .where(sql`${users.role} >= ${Role.root}`)
        .limit(1),
    );
    if (root)
      yield* q(
        tx
          .insert(setups)
          .values({ id: 1, version: deps.version, initializedAt: state.startedAt })
          .onConflictDoNothing()
          .returning({ id: setups.id }),
      );
    yield* closeSite(db, tx);
    yield* dropMarks(db, tx);
    yield* writeState(db, tx, { ...state, stage: "done", report });
  });
}
