// The ledger store on PostgreSQL: when what is durable in the local journal is brought into the tables, who waits for
// that, and how it goes on after an outage.
import { isAway } from "../../db/away.ts";
import { createCompany } from "./company.ts";
import type { Company } from "./company.ts";
import { MAX_BATCH } from "./group-commit.ts";
import { createPostgresApplier, PositionMoved } from "./postgres-apply.ts";
import type { PostgresApplier, PostgresApplierDeps } from "./postgres-apply.ts";
import type { CommittingStore } from "./store.ts";

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5000;
/** So long a start tries to enter what it finds in the journal. */
export const START_WAIT_MS = 60_000;
/** So often within one batch the mark may have moved without this process. */
const MAX_MOVES = 2;

export function createPostgresStore(deps: PostgresApplierDeps): CommittingStore {
  const { logger, journal, lease } = deps;
  const applier = createPostgresApplier(deps);
  const { waiters, patient, reached, letGo } = createWaitingRoom();
  const company = createCompany();
  let failures = 0;
  let hasStarted = false;
  let isClosed = false;
  const tellLost = createLossTeller(deps);
  const alarms = createAlarms(() => void kick());
  let draining: Promise<void> | undefined;
  /** The row was found behind what is applied, or older than it was: looked at before anything else is entered. */
  let isMarkDoubted = false;
  const waiting = (): number => journal.lastPosition - applier.applied;

  /** All that there is, or as long as it fills batches or somebody waits. */
  async function drainAll(): Promise<void> {
    if (isMarkDoubted && lease.isHeld) await applier.checkMark();
    isMarkDoubted = false;
    while (!isClosed && lease.isHeld && (await applyBatch(deps, applier, company))) {
      failures = 0;
      reached(applier.applied);
      const isAwaited = !waiters.isEmpty() || (!patient.isEmpty() && company.waitMs(waiting()) === 0);
      if (hasStarted && !isAwaited && waiting() < MAX_BATCH) break;
    }
    // Also where nothing was to be entered: what failed last may have been the look at the mark alone.
    failures = 0;
    waiters.resolve(Infinity, undefined);
  }

  function failed(error: unknown): void {
    applier.doubtMark();
    failures++;
    waiters.resolve(Infinity, undefined);
    logFailure(deps, { error, isFirst: failures === 1, waiting: waiting() });
    if (lease.isHeld && !isClosed) alarms.set("retry", pauseMs(failures));
  }

  /** Never rejects: a failure is tried again later, in growing intervals. */
  function kick(): Promise<void> {
    alarms.clear();
    draining ??= drainAll()
      .catch(failed)
      .finally(() => {
        draining = undefined;
        // What was found in the tables counts as much as what was brought there.
        patient.resolve(applier.applied, true);
        if (!isClosed && !lease.isHeld) tellLost(applier.applied);
        // Without the lease nothing is entered any more, however often it is tried.
        if (isClosed || !lease.isHeld) return letGo();
        // Somebody who waits, or entries that came after the last look.
        if (!waiters.isEmpty() || (failures === 0 && isMarkDoubted)) void kick();
        else if (failures === 0 && !patient.isEmpty()) commitSoon();
        else if (failures === 0 && waiting() > 0) gather();
      });
    return draining;
  }

  function gather(): void {
    alarms.set("gather", company.gatherMs());
    if (waiting() >= MAX_BATCH) void kick();
  }

  /** For answers that wait for the commit. While a batch is under way everybody joins the next one. */
  function commitSoon(): void {
    const waitMs = company.waitMs(waiting());
    if (waitMs > 0) alarms.set("company", waitMs);
    else if (!draining) void kick();
  }

  function doubt(): void {
    isMarkDoubted = true;
    applier.doubtMark();
    void kick();
  }

  async function drain(): Promise<void> {
    const position = journal.lastPosition;
    // After a refusal connections may still be gone that nobody has tried since: then a second run finds new ones.
    const isBusy = draining !== undefined || alarms.has("retry");
    for (let runs = isBusy ? 2 : 1; runs > 0 && position > applier.applied && !isClosed; runs--) {
      void kick();
      await waiters.add(position);
    }
  }

  return {
    async start() {
      journal.resume(lease.position);
      await applier.start(lease.position.mark);
      await untilEntered({ logger, applier, waiting, drainAll });
      hasStarted = true;
      applier.ownBegin(journal.lastPosition + 1);
      lease.watchMark((mark, isOlder) => {
        // What is being entered moves the mark, and looks at it by itself.
        if (isOlder || (mark < applier.applied && draining === undefined)) doubt();
      });
    },
    wake() {
      if (!alarms.has("retry") && draining === undefined) gather();
    },
    drain,
    backlog: () => Math.max(0, waiting()),
    whenApplied(position) {
      if (position <= applier.applied) return Promise.resolve(true);
      if (isClosed || !lease.isHeld) return Promise.resolve(false);
      const applied = patient.add(position);
      // After a failure the next try has its time: calls that end meanwhile make no storm.
      if (failures === 0) commitSoon();
      return applied;
    },
    doubt,
    isFailing: () => failures > 0,
    close() {
      isClosed = true;
      alarms.clear();
      letGo();
    },
  };
}

/** Why the next batch begins later; whichever comes first takes the others along. Keeps no process alive. */
function createAlarms(ring: () => void) {
  const timers = new Map<"retry" | "gather" | "company", ReturnType<typeof setTimeout>>();
  return {
    has: (why: "retry") => timers.has(why),
    set(why: "retry" | "gather" | "company", ms: number): void {
      if (timers.has(why)) return;
      const timer = setTimeout(ring, ms);
      timer.unref();
      timers.set(why, timer);
    },
    clear(): void {
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
    },
  };
}

/** The next batch; false where nothing waits. */
async function applyBatch(
  { journal }: PostgresApplierDeps,
  applier: PostgresApplier,
  company: Company,
): Promise<boolean> {
  for (let moves = 0; ;) {
    const entries = journal.read(applier.applied, MAX_BATCH);
    if (entries.length === 0) return false;
    const begunMs = performance.now();
    try {
      await applier.apply(entries);
      company.committed(entries.length, performance.now() - begunMs);
      return true;
    } catch (error) {
      // Whose the tables are now is looked up at once: until then calls are answered that may belong to nobody.
      if (!(error instanceof PositionMoved) || ++moves > MAX_MOVES) throw error;
      applier.doubtMark();
    }
  }
}

/** Between two tries, the longer the more have failed. */
const pauseMs = (failures: number): number => Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS);

function logFailure(
  { logger }: PostgresApplierDeps,
  { error, isFirst, waiting }: { error: unknown; isFirst: boolean; waiting: number },
): void {
  const level = error instanceof PositionMoved ? "info" : isFirst ? "error" : "debug";
  logger[level]("settlements wait for the database", { waiting, error: String(error) });
}

/** What was answered in the moments before the loss was noticed is kept: the files are not touched any more. */
function createLossTeller({ journal, logger }: PostgresApplierDeps): (applied: number) => void {
  let isTold = false;
  return (applied) => {
    if (isTold || journal.lastPosition <= applied) return;
    isTold = true;
    logger.error("settlements of this process stand in its journal and in no book", {
      from: applied + 1,
      to: journal.lastPosition,
    });
  };
}

/** Those who wait for an attempt, and those who wait for its success. */
function createWaitingRoom() {
  const waiters = createWaiters<void>();
  const patient = createWaiters<boolean>();
  return {
    waiters,
    patient,
    reached: (position: number) => {
      waiters.resolve(position, undefined);
      patient.resolve(position, true);
    },
    letGo: () => {
      waiters.resolve(Infinity, undefined);
      patient.resolve(Infinity, false);
    },
  };
}

/** Those who wait until the tables have come to a position, or could not. */
function createWaiters<T>() {
  let waiting: { position: number; resolve(outcome: T): void }[] = [];
  return {
    isEmpty: () => waiting.length === 0,
    add(position: number): Promise<T> {
      const { promise, resolve } = Promise.withResolvers<T>();
      waiting.push({ position, resolve });
      return promise;
    },
    resolve(upTo: number, outcome: T): void {
      if (waiting.length === 0) return;
      const reached = waiting.filter((waiter) => waiter.position <= upTo);
      if (reached.length === 0) return;
      waiting = waiting.filter((waiter) => waiter.position > upTo);
      for (const waiter of reached) waiter.resolve(outcome);
    },
  };
}

/** What an earlier run left. Others may hold its rows for a while, and a server that has just come up may go down once more. */
async function untilEntered({
  logger,
  applier,
  waiting,
  drainAll,
}: Pick<PostgresApplierDeps, "logger"> & {
  applier: PostgresApplier;
  waiting: () => number;
  drainAll: () => Promise<void>;
}): Promise<void> {
  const untilMs = performance.now() + START_WAIT_MS;
  for (;;) {
    try {
      return await drainAll();
    } catch (error) {
      applier.doubtMark();
      if (!isAway(error) || performance.now() >= untilMs) throw error;
      logger.warn("the start waits for the database", { waiting: waiting(), error: String(error) });
      await Bun.sleep(FIRST_RETRY_MS);
    }
  }
}
