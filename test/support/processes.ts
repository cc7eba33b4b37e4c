// Processes of this machine as the kernel lists them: who started whom, what they were given, what they need.
// Refuses machines without /proc.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

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

export interface Needs {
  /** Resident memory in MiB. */
  megabytes: number;
  /** Open sockets, and every other open descriptor. */
  sockets: number;
  files: number;
}

/** What some processes need together. */
export function needsOf(pids: readonly number[]): Needs {
  const needs = { megabytes: 0, sockets: 0, files: 0 };
  for (const pid of pids) {
    needs.megabytes += Number(/VmRSS:\s+(\d+) kB/.exec(textOf(pid, "status"))?.[1] ?? 0) / 1024;
    try {
      for (const name of readdirSync(`/proc/${pid}/fd`)) {
        const isSocket = readlinkSync(`/proc/${pid}/fd/${name}`).startsWith("socket:");
        needs[isSocket ? "sockets" : "files"]++;
      }
    } catch {
      // It has ended, or closed one, meanwhile.
    }
  }
  return needs;
}
