// How much longer than alone work takes on this machine: what a process waited for a processor, of what it had of one.
// Refuses guesses: where the kernel does not tell, nothing is longer, and so little work as says nothing is none.
import { existsSync, readFileSync } from "node:fs";

/** A limit of time grows so many times at most: one that follows every figure limits nothing. */
export const MOST_STRETCH = 5;
/** Of less work than this the scheduler's turns are most of what is measured. */
const LEAST_RAN_NS = 20_000_000;

/** Nanoseconds of the main thread on a processor, and ready to run without one, since its start. */
function read(pid: number): readonly [ran: number, waited: number] {
  const figures = `/proc/${pid}/schedstat`;
  if (!existsSync(figures)) return [0, 0];
  const [ran = 0, waited = 0] = readFileSync(figures, "utf8").split(" ").map(Number);
  return [ran, waited];
}

/** From now on, as it is measured: 1 on a machine that does nothing else, 5 where four others want each processor too. */
export function startSlowness(pid = process.pid): () => number {
  const [ranBefore, waitedBefore] = read(pid);
  return () => {
    const [ran, waited] = read(pid);
    return slownessOf(ran - ranBefore, waited - waitedBefore);
  };
}

/** Of so many nanoseconds on a processor, and ready to run without one. */
export function slownessOf(ran: number, waited: number): number {
  return ran < LEAST_RAN_NS ? 1 : 1 + waited / ran;
}

/** What a limit of time may be multiplied by from now on: at most `MOST_STRETCH`. */
export function startStretch(pid = process.pid): () => number {
  const slowness = startSlowness(pid);
  return () => stretchOf(slowness());
}

export function stretchOf(slowness: number): number {
  return Math.min(MOST_STRETCH, slowness);
}
