// `bun bench/pair.ts [--limits] [NAME=value…] <program> [NAME=value…] <program> [rounds] [concurrency, a steady rate as 1000/s, or
// streams, bursts]`: two builds side by side on the same machine, one in two environments, or a build and `bare`, the proxy of this runtime
// that does nothing else, or `floor`, one that meters and does nothing else. `REDIS_URL=own` is a Redis started for it; with `--limits` keys have limits that are never reached.
// Each gets a second of load in turn, and each second is compared with the other's next to it, so that a
// noisy minute hits both. The first seconds, in which the engine still compiles, are told apart from what comes after.
// Refuses to print a rate without its fellow: on a shared machine only the quotient means something.
import type { LoadResult } from "./load.ts";
import { perSecond } from "./report.ts";
import { type Side, loadOf, nextSide, warm, withSides } from "./sides.ts";

/** What was measured of one side. */
interface Measured {
  side: Side;
  /** One for each of the first seconds. */
  cold: LoadResult[];
  /** One a round. */
  results: LoadResult[];
}

/** Seconds of load on a process that has just started. */
const COLD_SECONDS = 3;

const middle = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const cpuUs = ({ cpuUs: us = Number.NaN }: LoadResult) => us;

/** A line for each side; `resultsOf` names what is compared. */
function say(
  what: string,
  sides: readonly Measured[],
  resultsOf: (measured: Measured) => readonly LoadResult[],
): void {
  const base = sides[0] ? resultsOf(sides[0]) : [];
  for (const measured of sides) {
    const results = resultsOf(measured);
    const quotients = results.map((result, round) => {
      const beside = base[round];
      return beside ? cpuUs(result) / cpuUs(beside) : Number.NaN;
    });
    console.log(
      `${what}: ${measured.side.name}: ${middle(results.map(cpuUs)).toFixed(0)} µs of processor time a call, ` +
        `${middle(results.map(perSecond)).toFixed(0)} calls a second, ${middle(quotients).toFixed(3)} of the first, ` +
        `p50 ${middle(results.map(({ p50Ms }) => p50Ms)).toFixed(2)} ms, p99 ${middle(results.map(({ p99Ms }) => p99Ms)).toFixed(2)} ms`,
    );
  }
}

const words = process.argv.slice(2).filter((word) => word !== "--limits");
const hasLimits = process.argv.includes("--limits");
const [first, second] = [nextSide(words), nextSide(words)];
const [rounds = "15", load = "32"] = words;
if (!first || !second) {
  console.error(
    "usage: bun bench/pair.ts [--limits] [NAME=value…] <program> [NAME=value…] <program> [rounds] [concurrency | rate/s | streams | bursts]",
  );
  process.exit(2);
}
await withSides(
  [first, second],
  async (sides) => {
    const measured = sides.map((side): Measured => ({ side, cold: [], results: [] }));
    for (let turn = 0; turn < COLD_SECONDS; turn++)
      for (const { side, cold } of measured) cold.push(await loadOf(side, load, 1));
    await warm(sides, load);
    for (let round = 0; round < Number(rounds); round++)
      for (const { side, results } of measured) results.push(await loadOf(side, load, 1));
    say("cold", measured, ({ cold }) => cold);
    say("warm", measured, ({ results }) => results);
  },
  hasLimits,
);
process.exit(0);
