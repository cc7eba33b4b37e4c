// What a process takes of a core while nobody calls it: first in the seconds that follow its start, when it still compiles, makes
// its first looks and collects, then at rest. `bun bench/idle.ts [--rest=60] <program> …` measures several on PostgreSQL side by
// side, thread by thread. Refuses to call the first seconds rest: 20 s after its last use a process rests (src/db/look-around.ts).
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuMs, threadsOf } from "./processes.ts";

/** Shares of a core, from 0 to 1. */
export interface IdleShares {
  young: number;
  atRest: number;
}

export interface IdleSizes {
  /** Begins with the call: the processes have just been started and set up, and nobody asks them anything. More than 20. */
  youngSeconds: number;
  restSeconds: number;
}

/** Shares of a core that the processes take from now on, by their own clocks (`cpuMs`), to the nanosecond. */
async function sharesFor(pids: readonly number[], seconds: number): Promise<number[]> {
  const before = pids.map((pid) => cpuMs(pid) ?? Number.NaN);
  await Bun.sleep(seconds * 1000);
  return pids.map((pid, at) => ((cpuMs(pid) ?? Number.NaN) - (before[at] ?? Number.NaN)) / (seconds * 1000));
}

/** Both stretches one after the other, of all processes at once. `resting` is called between them. */
export async function measureIdle(
  pids: readonly number[],
  { youngSeconds, restSeconds }: IdleSizes,
  resting?: () => void,
): Promise<IdleShares[]> {
  const young = await sharesFor(pids, youngSeconds);
  resting?.();
  const atRest = await sharesFor(pids, restSeconds);
  return pids.map((_, at) => ({ young: young[at] ?? Number.NaN, atRest: atRest[at] ?? Number.NaN }));
}

const YOUNG_SECONDS = 30;

const percent = (share: number): string => `${(share * 100).toFixed(3)} %`;

async function tellPrograms(programs: readonly string[], restSeconds: number): Promise<void> {
  // Not where this file is only a part of the bench: that one starts its own.
  const { startOnPostgres } = await import("./ratios.ts");
  const upstream = Bun.serve({ port: 0, fetch: () => Response.json({}) });
  const port = upstream.port ?? 0;
  const dir = mkdtempSync(join(tmpdir(), "weir-idle-"));
  const running: Awaited<ReturnType<typeof startOnPostgres>>[] = [];
  try {
    for (const [at, program] of programs.entries())
      running.push(
        await startOnPostgres([program], join(dir, String(at)), { upstreamPort: port, httpPort: port }),
      );
    const pids = running.map(({ running: { pid } }) => pid);
    let before = pids.map(threadsOf);
    const sizes = { youngSeconds: YOUNG_SECONDS, restSeconds };
    const shares = await measureIdle(pids, sizes, () => (before = pids.map(threadsOf)));
    for (const [at, { young, atRest }] of shares.entries()) {
      console.log(
        `${programs[at]}: ${percent(young)} of a core in its first ${YOUNG_SECONDS} s, ` +
          `${percent(atRest)} in the ${restSeconds} s at rest behind them`,
      );
      for (const [name, { cpuUs, waits }] of threadsOf(pids[at] ?? 0)) {
        const was = before[at]?.get(name);
        const us = cpuUs - (was?.cpuUs ?? 0);
        const woken = waits - (was?.waits ?? 0);
        if (us > 0) console.log(`  ${name.padEnd(16)} ${us.toFixed(0).padStart(8)} µs, woken ${woken} times`);
      }
    }
  } finally {
    for (const { stop } of running) await stop();
    await upstream.stop(true);
    rmSync(dir, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const words = process.argv.slice(2);
  const programs = words.filter((word) => !word.startsWith("--"));
  const rest = Number(words.find((word) => word.startsWith("--rest="))?.slice("--rest=".length) ?? 60);
  if (programs.length === 0 || !(rest > 0)) {
    console.error("usage: bun bench/idle.ts [--rest=60] <program> …");
    process.exit(2);
  }
  await tellPrograms(programs, rest);
  process.exit(0);
}
