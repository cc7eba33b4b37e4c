// How far an import has come, in the database that it fills: which source it reads, what it noted, and which batches it has.
// Refuses to go on with a source that is not the one it began with.
import { and, eq, inArray, like, sql } from "drizzle-orm";
import { livingNodes } from "../core/options/seal-rotation.ts";
import { IMPORT_KEY } from "../core/site/setup.ts";
import { q } from "../db/database.ts";
import type { Database, Orm, Steps } from "../db/database.ts";
import { SourceRefused } from "./dsn.ts";
import type { Family } from "./family.ts";
import type { ImportReport, NotesState } from "./report.ts";

const MARK = "import:";
const OTHER_RUN =
  "another run of an import fills this database: let that one end, or stop it and run the import again";

export interface ImportState {
  family: Family;
  /** Of what the source is: it may grow meanwhile, and must not be another. */
  identity: string;
  /** Of the small tables and of what was asked for, once these are being read; "" before. */
  fingerprint: string;
  /** Unix seconds: what "now" means to all of its runs. */
  startedAt: number;
  stage: "logs" | "tables" | "done";
  /** Of the log, whose rows are not read again. */
  logNotes: NotesState;
  /** Unix seconds of the oldest imported call; 0: none. */
  firstCall: number;
  /** Once it is done. */
  report?: ImportReport;
}

export async function readState(db: Database): Promise<ImportState | undefined> {
  const { options } = db.t;
  const [row] = await db.orm.select().from(options).where(eq(options.key, IMPORT_KEY));
  return row ? (JSON.parse(row.value) as ImportState) : undefined;
}

/** The small tables begin. Throws SourceRefused where another run has brought everything meanwhile. */
export function* beginTables(db: Database, tx: Orm, state: ImportState): Steps<void> {
  const { options } = db.t;
  const [row] = yield* q(
    tx.select({ value: options.value }).from(options).where(eq(options.key, IMPORT_KEY)),
  );
  if (row && (JSON.parse(row.value) as ImportState).stage === "done") throw new SourceRefused(OTHER_RUN);
  yield* writeState(db, tx, state);
}

export function* writeState(db: Database, tx: Orm, state: ImportState): Steps<void> {
  const { options } = db.t;
  const value = JSON.stringify(state);
  yield* q(
    tx
      .insert(options)
      .values({ key: IMPORT_KEY, value })
      .onConflictDoUpdate({ target: options.key, set: { value } })
      .returning({ key: options.key }),
  );
}

/** The start is stopped with this sentence. */
export class ImportUnfinished extends Error {
  constructor() {
    super(
      "a site is being moved into this database, and not everything is there yet: run `weir import` again with the same " +
        "source; it goes on where it stopped.",
    );
  }
}

/** Throws ImportUnfinished: half a site is no site. */
export async function refuseHalfImported(db: Database): Promise<void> {
  const state = await readState(db);
  if (state && state.stage !== "done") throw new ImportUnfinished();
}

/** The last batch or key of a step that the database has; 0: none. */
export async function readMark(db: Database, step: string): Promise<number> {
  const { marks } = db.t;
  const [row] = await db.orm
    .select({ value: marks.value })
    .from(marks)
    .where(inArray(marks.key, [MARK + step]));
  return row?.value ?? 0;
}

/**
 * From what the run knew it to be: two that fill one database would count the same sums twice. Call it before anything else of
 * the batch. Throws SourceRefused for the one that came second.
 */
export function* moveMark(
  db: Database,
  tx: Orm,
  step: string,
  { from, to }: { from: number; to: number },
): Steps<void> {
  const { marks } = db.t;
  const key = MARK + step;
  const moved =
    from === 0
      ? yield* q(
          tx.insert(marks).values({ key, value: to }).onConflictDoNothing().returning({ key: marks.key }),
        )
      : yield* q(
          tx
            .update(marks)
            .set({ value: to })
            .where(and(eq(marks.key, key), eq(marks.value, from)))
            .returning({ key: marks.key }),
        );
  if (moved.length === 0) throw new SourceRefused(OTHER_RUN);
}

/** The marks have done their work once everything is there. */
export function* dropMarks(db: Database, tx: Orm): Steps<void> {
  const { marks } = db.t;
  yield* q(
    tx
      .delete(marks)
      .where(like(marks.key, `${MARK}%`))
      .returning({ key: marks.key }),
  );
}

/**
 * A server that is up knows the empty site, and would go on with it: its setup screen moves a site in by itself. Throws
 * SourceRefused. The embedded database has the lock of its directory for that.
 */
export async function refuseServed(db: Database): Promise<void> {
  if ((await livingNodes(db)) > 0)
    throw new SourceRefused(
      "a server uses the target: stop every node first, or move the site in from its setup screen; one that was killed counts " +
        "for half a minute more",
    );
}

/** Whether nobody has used the database yet: no account, no row of the log. */
export async function isEmptyTarget(db: Database): Promise<boolean> {
  const { logs, setups, users } = db.t;
  const one = sql<number>`1`;
  const found = [
    ...(await db.orm.select({ one }).from(users).limit(1)),
    ...(await db.orm.select({ one }).from(logs).limit(1)),
    ...(await db.orm.select({ one }).from(setups).limit(1)),
  ];
  return found.length === 0;
}
