// Whether this machine's clock goes with the database's, which counts for leases and turns of jobs: asked once, at the start.
// Refuses the start of a node that is far off: its calls would stand in hours that no other node has.
import type { Deps } from "../deps.ts";
import { readDatabase } from "./node-reading.ts";

const REFUSED_SECONDS = 30;
const WARNED_SECONDS = 2;

/** The start is stopped with this sentence. */
export class ClockWrong extends Error {
  constructor(skewSeconds: number) {
    const off = `${Math.abs(Math.round(skewSeconds))} s ${skewSeconds < 0 ? "behind" : "ahead of"}`;
    super(
      `this machine's clock is ${off} the database's: let a time service (chrony, systemd-timesyncd) set both, then start again.`,
    );
  }
}

/** Throws ClockWrong. A database on this machine's own clock, or one that does not answer, says nothing. */
export async function refuseWrongClock(deps: Pick<Deps, "db" | "clock" | "logger">): Promise<void> {
  const { skewSeconds = 0 } = await readDatabase(deps);
  if (Math.abs(skewSeconds) > REFUSED_SECONDS) throw new ClockWrong(skewSeconds);
  if (Math.abs(skewSeconds) >= WARNED_SECONDS)
    deps.logger.warn("this machine's clock differs from the database's", { seconds: skewSeconds });
}
