// How much longer than alone work takes on this machine: what a process waited for a processor, of what it had of one.
// Refuses guesses: where the kernel does not tell, nothing is longer.
import { existsSync, readFileSync } from "node:fs";

/** Nanoseconds of the main thread on a processor, and ready to run without one, since its start. */
function read(pid: number): readonly [ran: number, waited: number] {
  const figures = `/proc/${pid}/schedstat`;
  if (!existsSync(figures)) return [0, 0];
  const [ran = 0, waited = 0] = readFileSync(figures, "utf8").split(" ").map(Number);
  return [ran, waited];
}

/** From now on: 1 on a machine that does nothing else, 5 where four others want each processor too. */
export function startStretch(pid = process.pid): () => number {
  const [ranBefore, waitedBefore] = read(pid);
  return () => {
    const [ran, waited] = read(pid);
    return 1 + (waited - waitedBefore) / Math.max(1, ran - ranBefore);
  };
}
