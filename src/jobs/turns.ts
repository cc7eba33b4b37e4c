// Whose turn a job is: one mark a job in the database, which the node moves that begins it.
import { and, eq, like, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { Deps } from "../core/deps.ts";

/** A job's mark as it stood at a look, and the time of day then; Unix seconds. */
export interface JobMark {
  value: number;
  now: number;
}

export interface Turns {
  /** The marks of all jobs, by name: one question for a look at all of them. */
  marks(): Promise<ReadonlyMap<string, JobMark>>;
  /** True for the one node that begins the job now: its last start is `everySeconds` ago, and no other node took the turn. */
  takesTurn(job: string, everySeconds: number, mark: JobMark | undefined): Promise<boolean>;
  /** A run may outlast its interval: as long as its node lives, no other node begins a second one. */
  keepTurn(job: string): Promise<void>;
}

const PREFIX = "job:";

export function createTurns(deps: Pick<Deps, "db" | "clock">): Turns {
  const { marks } = deps.db.t;

  /** What this node knows of a job's mark: its value, and how old that was when it was first seen. */
  const seen = new Map<string, { value: number; ageMs: number; sinceMs: number }>();

  /** The time of day in Unix seconds: the database's where nodes share one, so that it is the same for all. */
  const wallSeconds = (): SQL<number> =>
    (deps.db.kind === "postgres"
      ? sql`floor(extract(epoch from now()))::bigint`
      : sql`${Math.floor(deps.clock.nowMs() / 1000)}`
    ).mapWith(Number) as SQL<number>;
  const keyOf = (job: string): string => PREFIX + job;

  /**
   * A value that the mark never had tells all nodes that the interval begins anew. It only grows, also where the clock went
   * back: a node that missed one change would take a value that came again for no change at all.
   */
  const nextValue = (): SQL => {
    const now = wallSeconds();
    return sql`case when ${marks.value} >= ${now} then ${marks.value} + 1 else ${now} end`;
  };

  /**
   * How long ago the job was begun. Counted on this node's steady clock: the time of day is asked only for a mark that
   * stood there before this node did, and a mark of the future (the clock was set back) counts from now. Both are whole
   * seconds: two that differ by one may be a millisecond apart, so the last one does not count.
   */
  async function sinceLastStart(
    job: string,
    mark: JobMark | undefined,
  ): Promise<{ value: number; elapsedMs: number } | undefined> {
    const key = keyOf(job);
    const isFirst = mark === undefined;
    let row = mark;
    if (isFirst) {
      // The first interval begins when the job is first seen: nothing starts merely because the process did.
      await deps.db.orm.insert(marks).values({ key, value: wallSeconds() }).onConflictDoNothing();
      const found = { value: marks.value, now: wallSeconds() };
      [row] = await deps.db.orm.select(found).from(marks).where(eq(marks.key, key));
    }
    if (!row) return undefined;
    const { value, now } = row;
    const nowMs = deps.clock.monotonicMs();
    let known = seen.get(job);
    if (known?.value !== value) {
      const isNew = known !== undefined || isFirst;
      known = { value, ageMs: isNew ? 0 : Math.max(0, now - value - 1) * 1000, sinceMs: nowMs };
      seen.set(job, known);
    }
    return { value, elapsedMs: known.ageMs + nowMs - known.sinceMs };
  }

  async function move(job: string, where: SQL | undefined): Promise<boolean> {
    const [moved] = await deps.db.orm.update(marks).set({ value: nextValue() }).where(where).returning();
    if (!moved) return false;
    seen.set(job, { value: moved.value, ageMs: 0, sinceMs: deps.clock.monotonicMs() });
    return true;
  }

  async function allMarks(): Promise<ReadonlyMap<string, JobMark>> {
    const rows = await deps.db.orm
      .select({ key: marks.key, value: marks.value, now: wallSeconds() })
      .from(marks)
      .where(like(marks.key, `${PREFIX}%`));
    return new Map(rows.map(({ key, ...mark }) => [key.slice(PREFIX.length), mark]));
  }

  async function takesTurn(job: string, everySeconds: number, mark: JobMark | undefined): Promise<boolean> {
    const last = await sinceLastStart(job, mark);
    if (!last || last.elapsedMs < everySeconds * 1000) return false;
    return move(job, and(eq(marks.key, keyOf(job)), eq(marks.value, last.value)));
  }

  async function keepTurn(job: string): Promise<void> {
    await move(job, eq(marks.key, keyOf(job)));
  }

  return { marks: allMarks, takesTurn, keepTurn };
}
