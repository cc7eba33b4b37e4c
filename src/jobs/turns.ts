// Whose turn a job is: one mark a job in the database, which the node moves that begins it.
import { and, eq, like, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { Deps } from "../core/deps.ts";
import { isAway } from "../db/away.ts";
import { momentValues, NOW } from "../db/moments.ts";
import type { Moment } from "../db/moments.ts";
import { sqlState } from "../db/sql-state.ts";

/** What is asked of a job at a look. */
interface JobQuestion {
  name: string;
  /** Condition: there is something to do; undefined: that shows when it runs. */
  waits?: SQL | undefined;
  /** What the condition names beside moments. */
  values?: () => Readonly<Record<string, string | number>>;
}

/** A job's mark as it stood at a look, and the time of day then; Unix seconds. */
export interface JobMark {
  value: number;
  now: number;
  /** The look has made it. */
  isNew: boolean;
  /** Something is to be done, or nobody can say. */
  waits: boolean;
}

export interface Turns {
  /** The marks of these jobs, by name: one question for all of them. Those that have none get one. */
  look(jobs: readonly JobQuestion[]): Promise<ReadonlyMap<string, JobMark>>;
  /** Its last start is `everySeconds` ago. */
  isDue(job: string, everySeconds: number, mark: JobMark): boolean;
  /** True for the one node that begins the job now: since `isDue` no other node took the turn. */
  takesTurn(job: string, mark: JobMark): Promise<boolean>;
  /** A run may outlast its interval: as long as its node lives, no other node begins a second one. */
  keepTurn(job: string): Promise<void>;
}

const PREFIX = "job:";

/** Built for jobs of these names. */
interface Question {
  names: string;
  ask: (
    values: Record<string, unknown>,
  ) => PromiseLike<{ values: string | null; now: number; waits: string }[]>;
}

/** One answer about several jobs. */
interface Looked {
  /** By key. */
  values: ReadonlyMap<string, number>;
  now: number;
  /** A digit for each job, in their order: 1 where something waits. */
  waits: string;
}

/** The database has answered, and it was the question that failed: asked without conditions it may be answered. */
function isOfStatement(error: unknown): boolean {
  const state = sqlState(error);
  return !isAway(error) && (state === "" || /^(?:[0-9A-Z]{5}|SQLITE_\w+)$/.test(state));
}

/**
 * All conditions stand in one question: where one cannot be asked, every job is taken to have work for that look, so that none
 * ends with it. A database that is away is not asked twice. Said once, until they can be asked again; `forget`: what was built goes.
 */
function askSafely(
  logger: Deps["logger"],
  askWith: (jobs: readonly JobQuestion[]) => Promise<Looked>,
  forget: () => void,
): (jobs: readonly JobQuestion[]) => Promise<Looked> {
  let isTold = false;
  return async (jobs) => {
    try {
      const looked = await askWith(jobs);
      isTold = false;
      return looked;
    } catch (error) {
      forget();
      if (!isOfStatement(error)) throw error;
      const looked = await askWith(jobs.map(({ name }) => ({ name }))).finally(forget);
      if (!isTold) logger.error("conditions of jobs could not be asked", { error: String(error) });
      isTold = true;
      return looked;
    }
  };
}

export function createTurns(deps: Pick<Deps, "db" | "clock" | "logger">): Turns {
  const { marks } = deps.db.t;

  /** What was asked last, built. */
  let question: Question | undefined;
  /** What this node knows of a job's mark: its value, and how old that was when it was first seen. */
  const seen = new Map<string, { value: number; ageMs: number; sinceMs: number }>();

  /** The time of day in Unix seconds: the database's where nodes share one, so that it is the same for all. */
  const wallSeconds = (now: Moment = momentValues(deps.clock).now): SQL<number> =>
    (deps.db.kind === "postgres" ? sql`floor(extract(epoch from now()))::bigint` : sql`${now}`).mapWith(
      Number,
    ) as SQL<number>;
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
  function sinceLastStart(job: string, { value, now, isNew }: JobMark): number {
    const nowMs = deps.clock.monotonicMs();
    let known = seen.get(job);
    if (known?.value !== value) {
      const isFresh = known !== undefined || isNew;
      known = { value, ageMs: isFresh ? 0 : Math.max(0, now - value - 1) * 1000, sinceMs: nowMs };
      seen.set(job, known);
    }
    return known.ageMs + nowMs - known.sinceMs;
  }

  async function move(job: string, where: SQL | undefined): Promise<boolean> {
    const [moved] = await deps.db.orm.update(marks).set({ value: nextValue() }).where(where).returning();
    if (!moved) return false;
    seen.set(job, { value: moved.value, ageMs: 0, sinceMs: deps.clock.monotonicMs() });
    return true;
  }

  /** One row, whatever there is. Built once for the same jobs: at rest a look is this question alone. */
  function build(jobs: readonly JobQuestion[]): Question["ask"] {
    const pairs = sql`${marks.key}, ${marks.value}`;
    const isShared = deps.db.kind === "postgres";
    const all = isShared ? sql`json_object_agg(${pairs})::text` : sql`json_group_object(${pairs})`;
    const flags = jobs.map(({ waits }) => (waits ? sql`case when ${waits} then '1' else '0' end` : sql`'1'`));
    const prepared = deps.db.orm
      .select({
        values: sql<string | null>`${all}`,
        now: wallSeconds(NOW),
        waits: sql<string>`${sql.join([sql`''`, ...flags], sql` || `)}`,
      })
      .from(marks)
      .where(like(marks.key, `${PREFIX}%`))
      .prepare("jobs");
    return (values) => prepared.execute(values);
  }

  async function askWith(jobs: readonly JobQuestion[]): Promise<Looked> {
    const values = Object.assign(momentValues(deps.clock), ...jobs.map((job) => job.values?.())) as object;
    const names = jobs.map(({ name }) => name).join();
    if (question?.names !== names) question = { names, ask: build(jobs) };
    const [row] = await question.ask({ ...values });
    return {
      values: new Map(Object.entries(JSON.parse(row?.values ?? "{}") as Record<string, number>)),
      now: row?.now ?? 0,
      waits: row?.waits ?? "",
    };
  }

  const ask = askSafely(deps.logger, askWith, () => {
    question = undefined;
  });

  async function look(jobs: readonly JobQuestion[]): Promise<ReadonlyMap<string, JobMark>> {
    if (jobs.length === 0) return new Map();
    let found = await ask(jobs);
    const missing = jobs.map(({ name }) => keyOf(name)).filter((key) => !found.values.has(key));
    if (missing.length > 0) {
      // The first interval begins when the job is first seen: nothing starts merely because the process did.
      await deps.db.orm
        .insert(marks)
        .values(missing.map((key) => ({ key, value: wallSeconds() })))
        .onConflictDoNothing();
      found = await ask(jobs);
    }
    const { values, now, waits } = found;
    const seenNow = jobs.flatMap(({ name }, at): [string, JobMark][] => {
      const key = keyOf(name);
      const value = values.get(key);
      if (value === undefined) return [];
      return [[name, { value, now, isNew: missing.includes(key), waits: waits[at] === "1" }]];
    });
    return new Map(seenNow);
  }

  function isDue(job: string, everySeconds: number, mark: JobMark): boolean {
    return sinceLastStart(job, mark) >= everySeconds * 1000;
  }

  function takesTurn(job: string, { value }: JobMark): Promise<boolean> {
    return move(job, and(eq(marks.key, keyOf(job)), eq(marks.value, value)));
  }

  async function keepTurn(job: string): Promise<void> {
    await move(job, eq(marks.key, keyOf(job)));
  }

  return { look, isDue, takesTurn, keepTurn };
}
