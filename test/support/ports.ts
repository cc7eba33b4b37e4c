// A port for a program that a test starts and may start again on the same port. Taken from below the ports that the system hands to
// outgoing connections and to `port: 0`, and claimed by a file, for another test process or connection would take a port that was only
// looked at: a server that starts three times in a test then finds its port in use.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const CLAIMS_DIR = join(tmpdir(), "weir-test-ports");
const FIRST = 10_000;
/** Linux's default of the first port of outgoing connections. */
const FIRST_OUTGOING = 32_768;
const ATTEMPTS = 1000;

/** The first port that the system itself hands out; the default where it says nothing or leaves nothing below it. */
function firstOutgoing(): number {
  try {
    const first = Number.parseInt(readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8"), 10);
    return first > FIRST + ATTEMPTS ? first : FIRST_OUTGOING;
  } catch {
    return FIRST_OUTGOING;
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Whether the port is this process's now. The claim of a process that is gone is taken away for the next one who asks. */
function claim(port: number): boolean {
  const file = join(CLAIMS_DIR, String(port));
  try {
    writeFileSync(file, String(process.pid), { flag: "wx" });
    return true;
  } catch {
    try {
      const owner = Number(readFileSync(file, "utf8"));
      if (owner > 0 && !isRunning(owner)) rmSync(file, { force: true });
    } catch {
      // Another process took it away first.
    }
    return false;
  }
}

/** Whether nobody listens on it. */
function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}

/** A port of 127.0.0.1 that nobody listens on and that is this process's until it ends. Throws when it finds none. */
export function freePort(): number {
  mkdirSync(CLAIMS_DIR, { recursive: true });
  const ports = firstOutgoing() - FIRST;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const port = FIRST + Math.floor(Math.random() * ports);
    if (claim(port) && isFree(port)) return port;
  }
  throw new Error("no free port");
}
