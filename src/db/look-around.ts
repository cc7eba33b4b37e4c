// Timers of those who look around at intervals: what is due at one moment wakes the process once. While nobody has used the
// process for a while it rests: who said so comes seldom, the others as ever; the first use brings all of these at once, as it
// does where the process stood still.
// Refuses to rest while somebody says that they are at work.

/** Intervals that are multiples of this go together; any other one has a timer of its own while the process is in use. */
const STEP_MS = 500;
/** Nobody has used the process for so long: accounts that nobody asks for rest then too (core/users/account-refresh.ts). */
const UNUSED_MS = 20_000;

/** A step that is so late was held up with the whole process: it was stopped (SIGSTOP), or the machine stood still. */
const FROZEN_MS = 15_000;

/** What a look is told of itself. */
export interface Look {
  /** How long after the one before it was meant to come, in milliseconds. */
  dueMs: number;
  /** The process has rested or stood still until this moment, and somebody waits for it: what is kept here may be old. */
  isWaking: boolean;
}

interface Looker {
  readonly everyMs: number;
  readonly restMs: number;
  /** When it looked last, by the clock of the steps. */
  lookedAtMs: number;
  readonly look: (look: Look) => void;
  own: ReturnType<typeof setInterval> | undefined;
}

/**
 * Calls `look`, which must not throw, every `ms` milliseconds, the first time after one interval or up to a step sooner; every
 * `restMs`, the same when absent, while the process rests. Keeps no process alive. Returns what ends it.
 */
export type LookEvery = (ms: number, look: (look: Look) => void, restMs?: number) => () => void;

export interface LookAround {
  readonly lookEvery: LookEvery;
  /** Somebody needs what is kept in this process. Where it rested or stood still, everybody who comes seldom then looks before this returns. */
  use(): void;
  /** The process does not rest while this answers true, and ends its rest with the next step. Returns what ends that. */
  restUnless(isAtWork: () => boolean): () => void;
}

/** A timer that is shared by all who come to it. */
export function createLookAround(): LookAround {
  const lookers = new Set<Looker>();
  const works = new Set<() => boolean>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wantedMs = STEP_MS;
  /**
   * The steps so far. They count as long as they were meant to be, so that who is due with one is called by it; of a step that was
   * broken off, what had passed.
   */
  let clockMs = 0;
  let stepMs = STEP_MS;
  let steppedAtMs = 0;
  let usedAtMs = 0;
  let isResting = false;

  function callAgain(looker: Looker, isWaking: boolean): void {
    const passedMs = clockMs - looker.lookedAtMs;
    looker.lookedAtMs = clockMs;
    looker.look({ dueMs: isWaking ? passedMs : Math.max(passedMs, looker.everyMs), isWaking });
  }

  /** Whole milliseconds: sums of fractions come out a little short, and who is due with a step would be called by the next one. */
  function sinceStep(): number {
    return Math.round(performance.now() - steppedAtMs);
  }

  function startStep(ms: number): void {
    stepMs = ms;
    steppedAtMs = performance.now();
    timer = setTimeout(step, ms);
    timer.unref();
  }

  const hasStoodStill = (): boolean => timer !== undefined && sinceStep() - stepMs > FROZEN_MS;

  function step(): void {
    const isLate = hasStoodStill();
    clockMs += stepMs;
    startStep(wantedMs);
    const isUnused = clockMs - usedAtMs >= UNUSED_MS;
    const isAtWork = isUnused && [...works].some((each) => each());
    if (isResting ? isAtWork : isLate) wake();
    for (const looker of lookers) {
      if (looker.own) continue;
      if (clockMs - looker.lookedAtMs >= (isResting ? looker.restMs : looker.everyMs))
        callAgain(looker, false);
    }
    if (!isResting && isUnused && !isAtWork) settle(true);
  }

  /** One shared timer, as seldom as who comes most often allows. */
  function settle(toRest: boolean): void {
    const isOwn = ({ everyMs, restMs }: Looker): boolean =>
      everyMs % STEP_MS !== 0 && !(toRest && restMs > everyMs);
    const shared = [...lookers].filter((looker) => !isOwn(looker));
    const beforeMs = wantedMs;
    wantedMs = toRest ? Math.min(...shared.map(({ restMs }) => restMs)) : STEP_MS;
    if (!timer || shared.length === 0 || toRest !== isResting || wantedMs !== beforeMs)
      startAnew(shared, toRest);
    isResting = toRest;
    for (const looker of lookers) {
      if (isOwn(looker) === (looker.own !== undefined)) continue;
      clearInterval(looker.own);
      if (looker.own) looker.lookedAtMs = clockMs;
      looker.own = looker.own ? undefined : ownTimer(looker);
    }
  }

  /** What has passed of the step is lost to nobody, and who comes most often is called when they would have been. */
  function startAnew(shared: readonly Looker[], toRest: boolean): void {
    if (timer) {
      clockMs += sinceStep();
      clearTimeout(timer);
      timer = undefined;
    }
    if (shared.length === 0) return;
    const often = shared.filter(({ restMs }) => restMs === wantedMs);
    const passedMs = toRest ? clockMs - Math.max(...often.map(({ lookedAtMs }) => lookedAtMs)) : 0;
    startStep(Math.max(1, wantedMs - passedMs));
  }

  function ownTimer(looker: Looker): ReturnType<typeof setInterval> {
    const own = setInterval(() => looker.look({ dueMs: looker.everyMs, isWaking: false }), looker.everyMs);
    own.unref();
    return own;
  }

  /** Everybody who came seldom looks now. */
  function wake(): void {
    settle(false);
    for (const looker of lookers) if (looker.restMs > looker.everyMs) callAgain(looker, true);
  }

  return {
    lookEvery(everyMs, look, restMs = everyMs) {
      const lookedAtMs = clockMs + (timer ? sinceStep() : 0);
      const looker: Looker = { everyMs, restMs, lookedAtMs, look, own: undefined };
      lookers.add(looker);
      settle(isResting);
      // Where the step goes on they come with it, sooner than they said.
      looker.lookedAtMs = clockMs;
      return () => {
        clearInterval(looker.own);
        lookers.delete(looker);
        settle(isResting);
      };
    },
    use() {
      const isLate = hasStoodStill();
      if (isResting || isLate) wake();
      // Its step is due, and comes with the next turn: nobody is woken twice.
      if (isLate) steppedAtMs = performance.now();
      usedAtMs = clockMs;
    },
    restUnless(isAtWork) {
      works.add(isAtWork);
      return () => works.delete(isAtWork);
    },
  };
}

/** The process's own. */
export const lookAround: LookAround = createLookAround();
export const { lookEvery } = lookAround;
