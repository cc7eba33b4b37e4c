// Timers of those who look around at intervals: what is due at one moment wakes the process once, and a process that nobody
// calls is hardly ever woken.

/** Intervals that are multiples of this go together; any other one has a timer of its own. */
const STEP_MS = 500;

interface Looker {
  everySteps: number;
  leftSteps: number;
  look: () => void;
}

/**
 * Calls `look`, which must not throw, every `ms` milliseconds, the first time after one interval or up to a step sooner.
 * Keeps no process alive. Returns what ends it.
 */
export type LookEvery = (ms: number, look: () => void) => () => void;

/** A timer that is shared by all who come to it. */
export function createLookAround(): LookEvery {
  const lookers = new Set<Looker>();
  let timer: ReturnType<typeof setInterval> | undefined;

  function step(): void {
    for (const looker of lookers) {
      if (--looker.leftSteps > 0) continue;
      looker.leftSteps = looker.everySteps;
      looker.look();
    }
  }

  return (ms, look) => {
    if (ms % STEP_MS !== 0) {
      const own = setInterval(look, ms);
      own.unref();
      return () => clearInterval(own);
    }
    const looker: Looker = { everySteps: ms / STEP_MS, leftSteps: ms / STEP_MS, look };
    lookers.add(looker);
    timer ??= setInterval(step, STEP_MS);
    timer.unref();
    return () => {
      lookers.delete(looker);
      if (lookers.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  };
}

/** The process's own. */
export const lookEvery: LookEvery = createLookAround();
