// Processes of this machine as the kernel lists them: who started whom, what they were given, what they need.
// Refuses machines without /proc.
import { readdirSync, readFileSync } from "node:fs";

function textOf(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
}

function all(): { pid: number; parent: number }[] {
  return readdirSync("/proc").flatMap((name) => {
    const found = /^\d+$/.test(name) && /\) \S (\d+)/.exec(textOf(Number(name), "stat"));
    return found ? [{ pid: Number(name), parent: Number(found[1]) }] : [];
  });
}

/** Everything that a process has started, and what that has started; not itself. */
export function descendantsOf(pid: number): number[] {
  const processes = all();
  const found = [pid];
  // Grows while it is walked.
  for (const each of found)
    found.push(...processes.filter(({ parent }) => parent === each).map((child) => child.pid));
  return found.slice(1);
}

/** The workers of a data directory by index, whoever their parent is now. */
export function workersOf(dataDir: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const { pid } of all()) {
    const environment = textOf(pid, "environ");
    const index = /(?:^|\0)WEIR_WORKER=(\d+)/.exec(environment)?.[1];
    const ownDir = /(?:^|\0)DATA_DIR=([^\0]*)/.exec(environment)?.[1];
    if (index !== undefined && ownDir === dataDir) found.set(index, pid);
  }
  return found;
}

/** Resident memory in MiB and open descriptors of some processes together. */
export function needsOf(pids: readonly number[]): { megabytes: number; descriptors: number } {
  const needs = { megabytes: 0, descriptors: 0 };
  for (const pid of pids) {
    needs.megabytes += Number(/VmRSS:\s+(\d+) kB/.exec(textOf(pid, "status"))?.[1] ?? 0) / 1024;
    try {
      needs.descriptors += readdirSync(`/proc/${pid}/fd`).length;
    } catch {
      // It has ended meanwhile.
    }
  }
  return needs;
}
