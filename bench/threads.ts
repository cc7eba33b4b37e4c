// `bun bench/threads.ts [--load=streams] [--seconds=8] [NAME=value…] <program> …`: where a call's processor time goes, thread by
// thread, for any number of programs, `bare` and `floor` among them, warm and side by side. Loads are those of pair.ts.
// Refuses to compare by itself: what one thread takes depends on what the others of the machine do, totals are for pair.ts.
import { type ThreadUse, threadsOf } from "./processes.ts";
import { type Side, type SideWords, loadOf, nextSide, warm, withSides } from "./sides.ts";

/** Threads that take less, in µs a call, are not named. */
const LEAST_US = 0.5;

function option(name: string, otherwise: string): string {
  const begin = `--${name}=`;
  return process.argv.find((word) => word.startsWith(begin))?.slice(begin.length) ?? otherwise;
}

/** What each thread took for one of so many calls. */
function shares(
  before: ReadonlyMap<string, ThreadUse>,
  after: ReadonlyMap<string, ThreadUse>,
  calls: number,
): [name: string, use: ThreadUse][] {
  return [...after]
    .map(([name, use]): [string, ThreadUse] => {
      const was = before.get(name);
      const share = (key: keyof ThreadUse) => (use[key] - (was?.[key] ?? 0)) / calls;
      return [
        name,
        {
          cpuUs: share("cpuUs"),
          waits: share("waits"),
          preempted: share("preempted"),
          faults: share("faults"),
        },
      ];
    })
    .filter(([, { cpuUs }]) => cpuUs >= LEAST_US)
    .sort(([, a], [, b]) => b.cpuUs - a.cpuUs);
}

async function tell(side: Side, load: string, seconds: number): Promise<void> {
  const { pid = 0 } = side.target;
  const before = threadsOf(pid);
  const { requests, cpuUs = Number.NaN } = await loadOf(side, load, seconds);
  console.log(`${side.name}, ${load}: ${cpuUs.toFixed(0)} µs of processor time a call, ${requests} calls`);
  for (const [name, use] of shares(before, threadsOf(pid), requests))
    console.log(
      `  ${name.padEnd(16)} ${use.cpuUs.toFixed(1).padStart(8)} µs, ${use.waits.toFixed(2)} waits, ` +
        `${use.preempted.toFixed(2)} times preempted, ${use.faults.toFixed(2)} page faults`,
    );
}

const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const asked: SideWords[] = [];
for (let next = nextSide(words); next; next = nextSide(words)) asked.push(next);
if (asked.length === 0) {
  console.error(
    "usage: bun bench/threads.ts [--load=32 | 30/s | streams | bursts] [--seconds=8] [NAME=value…] <program | bare | floor> …",
  );
  process.exit(2);
}
const load = option("load", "streams");
const seconds = Number(option("seconds", "8"));
await withSides(asked, async (sides) => {
  await warm(sides, load);
  for (const side of sides) {
    // While the others had their turn nobody ran its code.
    await loadOf(side, load, 2);
    await tell(side, load, seconds);
  }
});
process.exit(0);
