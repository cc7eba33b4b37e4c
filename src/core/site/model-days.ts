// What models were to their users, day by day: written once a minute by each node from what it counted, read for the status page.
// Refuses to be exact to the call: what a killed process counted in its last minute is lost, and no money hangs on it.
import { gte, lt, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import { lookEvery } from "../../db/look-around.ts";
import { FIRST_TOKEN_BOUNDS } from "../../observe/model-figures.ts";
import type { ModelFigures, ModelTable } from "../../observe/model-figures.ts";
import { copyOf, createTally } from "../../observe/tally.ts";
import type { Tally } from "../../observe/tally.ts";
import type { Deps } from "../deps.ts";
import { within } from "../kit/deadline.ts";

const WRITE_MS = 60_000;
const DATABASE_MS = 2000;
const DAY_SECONDS = 86_400;
export const KEPT_DAYS = 90;
/** Below the parameters of one statement. */
const MOST_ROWS = 200;
/** Longer names are cut nowhere else; a key of a table has its limits. */
const MOST_NAME = 255;

/** Places of a row: the two counts, then one for each bound of the first token and one beyond. */
const ANSWERED = -2;
const FAILED = -1;

interface Row {
  day: number;
  modelName: string;
  slot: number;
  count: number;
}

export interface ModelDays {
  /** Writes what came since the last time; never rejects. Runs by timer. */
  write(): Promise<void>;
  stop(): Promise<void>;
}

type Sources = Pick<Deps, "db" | "clock" | "logger"> & { models: ModelTable };

/** The day in UTC, Unix seconds of its start. */
const dayOf = (seconds: number): number => seconds - (seconds % DAY_SECONDS);

function rowsSince(day: number, model: string, now: ModelFigures, before: ModelFigures | undefined): Row[] {
  const of = (slot: number, count: number): Row => ({
    day,
    modelName: model.slice(0, MOST_NAME),
    slot,
    count,
  });
  return [
    of(ANSWERED, now.answered - (before?.answered ?? 0)),
    of(FAILED, now.failed - (before?.failed ?? 0)),
    ...now.firstToken.counts.map((count, place) =>
      of(place, count - (before?.firstToken.counts[place] ?? 0)),
    ),
  ].filter(({ count }) => count > 0);
}

export function createModelDays({ db, clock, logger, models }: Sources): ModelDays {
  const written = new Map<string, ModelFigures>();
  let writing: Promise<void> | undefined;

  async function insert(rows: readonly Row[]): Promise<void> {
    const { modelDays } = db.t;
    // All or nothing: what failed is written again with the next minute's.
    await db.atomic(function* (tx) {
      for (let at = 0; at < rows.length; at += MOST_ROWS) {
        yield* q(
          tx
            .insert(modelDays)
            .values(rows.slice(at, at + MOST_ROWS))
            .onConflictDoUpdate({
              target: [modelDays.day, modelDays.modelName, modelDays.slot],
              set: { count: sql`${modelDays.count} + excluded.count` },
            })
            .returning({ day: modelDays.day }),
        );
      }
    });
  }

  async function writeAll(): Promise<void> {
    const day = dayOf(Math.floor(clock.nowMs() / 1000));
    const rows: Row[] = [];
    const now = new Map<string, ModelFigures>();
    for (const [model, figures] of models) {
      const before = written.get(model);
      if (before?.answered === figures.answered && before.failed === figures.failed) continue;
      rows.push(...rowsSince(day, model, figures, before));
      now.set(model, { ...figures, firstToken: copyOf(figures.firstToken) });
    }
    if (rows.length === 0) return;
    // In one order on every node: two that write at once never wait for each other in a circle.
    rows.sort((a, b) => (a.modelName < b.modelName ? -1 : a.modelName > b.modelName ? 1 : a.slot - b.slot));
    await insert(rows);
    for (const [model, figures] of now) written.set(model, figures);
    known = undefined;
  }

  function write(): Promise<void> {
    writing ??= writeAll()
      // It is tried again with the next minute's.
      .catch((error: unknown) =>
        logger.debug("days of models could not be written", { error: String(error) }),
      )
      .finally(() => {
        writing = undefined;
      });
    return writing;
  }

  const stopWriting = lookEvery(WRITE_MS, () => void write());
  return {
    write,
    async stop() {
      stopWriting();
      // A database that is away keeps no process from ending.
      const last = (writing ?? Promise.resolve()).then(write);
      await within(DATABASE_MS, last).catch(() => undefined);
    },
  };
}

interface ModelDay {
  answered: number;
  failed: number;
}

export interface ModelHistory {
  /** By day, Unix seconds of its start in UTC; days without a request are missing. */
  days: Map<number, ModelDay>;
  /** Of the last seven days. */
  firstToken: Tally;
}

const RECENT_DAYS = 7;

/** Of every model that was asked in the last 90 days. */
async function readModelDays({ db, clock }: Pick<Deps, "db" | "clock">): Promise<Map<string, ModelHistory>> {
  const { modelDays } = db.t;
  const today = dayOf(Math.floor(clock.nowMs() / 1000));
  const rows = await db.reader
    .select()
    .from(modelDays)
    .where(gte(modelDays.day, today - (KEPT_DAYS - 1) * DAY_SECONDS));
  const found = new Map<string, ModelHistory>();
  for (const { day, modelName, slot, count } of rows) {
    let history = found.get(modelName);
    if (!history) {
      history = { days: new Map(), firstToken: createTally(FIRST_TOKEN_BOUNDS) };
      found.set(modelName, history);
    }
    if (slot >= 0) {
      if (day <= today - RECENT_DAYS * DAY_SECONDS) continue;
      history.firstToken.counts[slot] = (history.firstToken.counts[slot] ?? 0) + count;
      history.firstToken.count += count;
      continue;
    }
    const of = history.days.get(day) ?? { answered: 0, failed: 0 };
    history.days.set(day, of);
    if (slot === ANSWERED) of.answered += count;
    else of.failed += count;
  }
  return found;
}

/** As they were read last: at most a minute ago, whoever asks, and not before this node wrote. Nothing where nobody answers. */
let known: { db: Deps["db"]; atMs: number; days: Promise<Map<string, ModelHistory>> } | undefined;

export function recentModelDays(deps: Pick<Deps, "db" | "clock">): Promise<Map<string, ModelHistory>> {
  const atMs = deps.clock.monotonicMs();
  if (known?.db !== deps.db || atMs - known.atMs > WRITE_MS) {
    const days = within(DATABASE_MS, readModelDays(deps)).catch(() => new Map<string, ModelHistory>());
    known = { db: deps.db, atMs, days };
  }
  return known.days;
}

/** Days that no page shows any more. */
export async function purgeModelDays({ db, clock }: Pick<Deps, "db" | "clock">): Promise<void> {
  const { modelDays } = db.t;
  const today = dayOf(Math.floor(clock.nowMs() / 1000));
  await db.orm.delete(modelDays).where(lt(modelDays.day, today - KEPT_DAYS * DAY_SECONDS));
}
