// Timers that a test turns by hand: nobody looks by itself, as in a process between two looks of its rest.
// Refuses to know how long a rest takes; test/db/look-around.test.ts does.
import type { Look, LookAround } from "../../src/db/look-around.ts";

export interface HandTurned {
  around: LookAround;
  /** Everybody looks as after so many milliseconds. */
  look(dueMs: number): void;
  /** The next use wakes the process. */
  rest(): void;
}

export function handTurned(): HandTurned {
  const lookers = new Set<(look: Look) => void>();
  let isResting = false;
  return {
    around: {
      lookEvery(_ms, look) {
        lookers.add(look);
        return () => lookers.delete(look);
      },
      use() {
        if (!isResting) return;
        isResting = false;
        for (const look of lookers) look({ dueMs: 1, isWaking: true });
      },
      restUnless: () => () => undefined,
    },
    look(dueMs) {
      for (const look of lookers) look({ dueMs, isWaking: false });
    },
    rest() {
      isResting = true;
    },
  };
}
