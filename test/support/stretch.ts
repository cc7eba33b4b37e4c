// How much longer than alone work takes on this machine: what this process waited for a processor, of what it had of one.
// Refuses guesses: where the kernel does not tell, nothing is longer.
import { existsSync, readFileSync } from "node:fs";

const FIGURES = "/proc/self/schedstat";

/** Nanoseconds on a processor, and ready to run without one, since the start. */
function read(): readonly [ran: number, waited: number] {
  if (!existsSync(FIGURES)) return [0, 0];
  const [ran = 0, waited = 0] = readFileSync(FIGURES, "utf8").split(" ").map(Number);
  return [ran, waited];
}

/** From now on: 1 on a machine that does nothing else, 5 where four others want each processor too. */
export function startStretch(): () => number {
  const [ranBefore, waitedBefore] = read();
  return () => {
    const [ran, waited] = read();
    return 1 + (waited - waitedBefore) / Math.max(1, ran - ranBefore);
  };
}
