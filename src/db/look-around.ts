// Timers of those who look around at intervals: what is due at one moment wakes the process once. While nobody has used the
// process for a while it rests: who said so comes seldom, the others as ever; the first use brings all of these at once.
// Refuses to rest while somebody says that they are at work.

/** Intervals that are multiples of this go together; any other one has a timer of its own while the process is in use. */
const STEP_MS = 500;
/** Nobody has used the process for so long: accounts that nobody asks for rest then too (core/users/account-refresh.ts). */
const UNUSED_MS = 20_000;

/** What a look is told of itself. */
export interface Look {
  /** How long after the one before it was meant to come, in milliseconds. */
  dueMs: number;
  /** The process has rested until this moment, and somebody waits for it: what is kept here may be old. */
  isWaking: boolean;
}

interface Looker {
  readonly everyMs: number;
  readonly restMs: number;
  /** Since its last look, in steps of the shared timer. */
  passedMs: number;
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
  /** Somebody needs what is kept in this process. Where it rested, everybody who comes seldom then looks before this returns. */
  use(): void;
  /** The process does not rest while this answers true. Returns what ends that. */
  restUnless(isAtWork: () => boolean): () => void;
}

/** A timer that is shared by all who come to it. */
export function createLookAround(): LookAround {
  const lookers = new Set<Looker>();
  const works = new Set<() => boolean>();
  let timer: ReturnType<typeof setInterval> | undefined;
  let stepMs = STEP_MS;
  let startedAtMs = 0;
  let unusedMs = 0;
  let isResting = false;

  function callAgain(looker: Looker, isWaking: boolean): void {
    const dueMs = isWaking ? looker.passedMs : Math.max(looker.passedMs, looker.everyMs);
    looker.passedMs = 0;
    looker.look({ dueMs, isWaking });
  }

  function step(): void {
    startedAtMs = performance.now();
    unusedMs += stepMs;
    for (const looker of lookers) {
      if (looker.own) continue;
      looker.passedMs += stepMs;
      if (looker.passedMs >= (isResting ? looker.restMs : looker.everyMs)) callAgain(looker, false);
    }
    if (!isResting && unusedMs >= UNUSED_MS && ![...works].some((isAtWork) => isAtWork())) settle(true);
  }

  /** One shared timer, as seldom as who comes most often allows. */
  function settle(toRest: boolean): void {
    isResting = toRest;
    for (const looker of lookers) {
      const needsOwn = looker.everyMs % STEP_MS !== 0 && !(isResting && looker.restMs > looker.everyMs);
      if (needsOwn === (looker.own !== undefined)) continue;
      clearInterval(looker.own);
      looker.own = needsOwn ? ownTimer(looker) : undefined;
    }
    const shared = [...lookers].filter(({ own }) => !own);
    const wantedMs = isResting ? Math.min(...shared.map(({ restMs }) => restMs)) : STEP_MS;
    if (timer && (shared.length === 0 || wantedMs !== stepMs)) {
      clearInterval(timer);
      timer = undefined;
    }
    stepMs = wantedMs;
    if (timer || shared.length === 0) return;
    startedAtMs = performance.now();
    timer = setInterval(step, stepMs);
    timer.unref();
  }

  function ownTimer(looker: Looker): ReturnType<typeof setInterval> {
    const own = setInterval(() => looker.look({ dueMs: looker.everyMs, isWaking: false }), looker.everyMs);
    own.unref();
    return own;
  }

  return {
    lookEvery(everyMs, look, restMs = everyMs) {
      const looker: Looker = { everyMs, restMs, passedMs: 0, look, own: undefined };
      lookers.add(looker);
      settle(isResting);
      return () => {
        clearInterval(looker.own);
        lookers.delete(looker);
        settle(isResting);
      };
    },
    use() {
      unusedMs = 0;
      if (!isResting) return;
      const sinceMs = performance.now() - startedAtMs;
      settle(false);
      for (const looker of lookers) {
        if (looker.restMs <= looker.everyMs) continue;
        looker.passedMs += sinceMs;
        callAgain(looker, true);
      }
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
