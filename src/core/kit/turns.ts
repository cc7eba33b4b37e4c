// Turns of the event loop: what one request makes ready is cut into several, so that others are served between them.
// Refuses to wait for time: a turn comes as soon as everything that is due has run.

/** Lets everything that is due come to its turn first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Long enough to be worth a turn, short enough that nobody waits for it. */
const TURN_MS = 8;

/**
 * To be awaited at each step of work whose steps may take any time: lets the others come to their turn once the last one is
 * longer ago than that.
 */
export function pacer(): () => Promise<void> | undefined {
  let began = performance.now();
  return () => {
    if (performance.now() - began < TURN_MS) return undefined;
    return nextTurn().then(() => void (began = performance.now()));
  };
}

type Results<Starts extends readonly (() => Promise<unknown>)[]> = {
  -readonly [At in keyof Starts]: Awaited<ReturnType<Starts[At]>>;
};

/**
 * Begins each in a turn of its own and waits for all, as Promise.all does: a page's statements take a few milliseconds to make ready, and
 * many times that in a process that has just started. After a rejection none begins any more: nobody waits for it.
 */
export async function inTurns<const Starts extends readonly (() => Promise<unknown>)[]>(
  ...starts: Starts
): Promise<Results<Starts>> {
  let isRejected = false;
  const all = starts.map(async (start, at) => {
    for (let turn = 0; turn < at; turn++) await nextTurn();
    if (isRejected) return undefined;
    try {
      return await start();
    } catch (error) {
      isRejected = true;
      throw error;
    }
  });
  return (await Promise.all(all)) as Results<Starts>;
}
