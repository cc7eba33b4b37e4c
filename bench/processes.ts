// The bench's processes: started on a fixed core, watched for memory, ended by their own id.
// Refuses to measure against a machine it cannot pin on: without taskset it says so in the report.

import { dlopen, ptr } from "bun:ffi";
import { existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { availableParallelism } from "node:os";

export const canPin = Bun.which("taskset") !== null && availableParallelism() >= 2;
/** What is measured runs alone here … */
export const SUBJECT_CORE = 0;
/** … and the mock with the load here. */
export const LOAD_CORE = 1;

export function pinned(core: number | "any", command: string[]): string[] {
  return canPin && core !== "any" ? ["taskset", "-c", String(core), ...command] : command;
}

/** Moves this process, all its threads, to one core. */
export function pinSelf(core: number): void {
  if (canPin) Bun.spawnSync(["taskset", "-acp", String(core), String(process.pid)], { stdout: "ignore" });
}

export interface Running {
  pid: number;
  exited: Promise<number>;
  /** SIGTERM, then SIGKILL after five seconds. */
  stop: () => Promise<void>;
}

export interface StartOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** File for both outputs; without it they are dropped. */
  logFile?: string;
}

export function start(core: number | "any", command: string[], options: StartOptions = {}): Running {
  const output = options.logFile ? Bun.file(options.logFile) : "ignore";
  const child = Bun.spawn(pinned(core, command), {
    cwd: options.cwd,
    env: { ...Bun.env, ...options.env },
    stdin: "ignore",
    stdout: output,
    stderr: output,
  });
  return {
    pid: child.pid,
    exited: child.exited,
    async stop() {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 5000);
      await child.exited;
      clearTimeout(timer);
    },
  };
}

/** Starts a process whose first line of output is the port it serves on. */
export async function startWithPort(
  core: number,
  command: string[],
  env: Record<string, string> = {},
): Promise<Running & { port: number }> {
  const child = Bun.spawn(pinned(core, command), {
    env: { ...Bun.env, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  let text = "";
  for await (const part of child.stdout) {
    text += new TextDecoder().decode(part);
    if (text.includes("\n")) break;
  }
  const port = Number(text.trim());
  if (!port) throw new Error(`${command.join(" ")} did not name its port`);
  const stop = async () => {
    child.kill("SIGTERM");
    await child.exited;
  };
  return { pid: child.pid, exited: child.exited, port, stop };
}

/** Runs a command on the load's core to its end and reads the last line it prints as JSON. */
export async function runForJson<T>(command: string[], env: Record<string, string> = {}): Promise<T> {
  const child = Bun.spawn(pinned(LOAD_CORE, command), {
    env: { ...Bun.env, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const text = await new Response(child.stdout).text();
  const last = text.trim().split("\n").at(-1) ?? "";
  if ((await child.exited) !== 0 || !last.startsWith("{"))
    throw new Error(`${command[0]} gave no result: ${text}`);
  return JSON.parse(last) as T;
}

export function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

/** Resident memory of one process in MB; undefined where the system does not tell. */
export function residentMb(pid: number): number | undefined {
  const file = `/proc/${pid}/status`;
  if (!existsSync(file)) return undefined;
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(file, "utf8"))?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
}

const TICK_MS = 10;
const SCHEDULED = 2;

/** Reads a clock by its id into two 64-bit numbers, seconds and nanoseconds; undefined where the C library is another one. */
const readClock = ((): ((id: number, into: BigInt64Array) => boolean) | undefined => {
  try {
    const { symbols } = dlopen("libc.so.6", { clock_gettime: { args: ["i32", "ptr"], returns: "i32" } });
    return (id, into) => symbols.clock_gettime(id, ptr(into)) === 0;
  } catch {
    return undefined;
  }
})();

/**
 * Processor time of a process so far, in ms to the nanosecond, with that of threads that have ended: its clock, whose id Linux
 * makes of the process's (clock_getcpuclockid(3)). By ticks of 10 ms where that clock cannot be read.
 */
function ownCpuMs(pid: number, stat: string): number {
  const time = new BigInt64Array(2);
  // The lowest bits of such an id say what is counted: 2 is what the scheduler measured.
  if (readClock?.((~pid << 3) | SCHEDULED, time)) return Number(time[0]) * 1e3 + Number(time[1]) / 1e6;
  const fields = stat.split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** Processor time of a process and its children so far, in ms; undefined where the system does not tell. */
export function cpuMs(pid: number): number | undefined {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return undefined;
  const own = ownCpuMs(pid, readFileSync(file, "utf8"));
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === ""
    ? own
    : children.split(" ").reduce((sum, child) => sum + (cpuMs(Number(child)) ?? 0), own);
}

/** What threads of one name have taken so far. */
export interface ThreadUse {
  /** Processor time in µs. */
  cpuUs: number;
  /** How often they went to sleep by themselves, and how often another one took their processor. */
  waits: number;
  preempted: number;
  /** Page faults that no disk was needed for. */
  faults: number;
}

/** The threads of a process by name (proc(5): schedstat, status, stat); empty where the system does not tell. */
export function threadsOf(pid: number): Map<string, ThreadUse> {
  const threads = new Map<string, ThreadUse>();
  const tasks = `/proc/${pid}/task`;
  for (const task of existsSync(tasks) ? readdirSync(tasks) : []) {
    const read = (name: string): string => readFileSync(join(tasks, task, name), "utf8");
    try {
      const name = read("comm").trim();
      const use = threads.get(name) ?? { cpuUs: 0, waits: 0, preempted: 0, faults: 0 };
      const status = read("status");
      use.cpuUs += Number(read("schedstat").split(" ")[0]) / 1000;
      use.waits += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1]);
      use.preempted += Number(/^nonvoluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1]);
      use.faults += Number(read("stat").split(") ")[1]?.split(" ")[7]);
      threads.set(name, use);
    } catch {
      // It ended meanwhile.
    }
  }
  return threads;
}

/** Asks every millisecond until somebody answers well. Rejects at the limit, or when the process ends before. */
export async function waitForAnswer(url: string, limitMs: number, process?: Running): Promise<void> {
  const startedMs = performance.now();
  let isGone = false;
  void process?.exited.then(() => (isGone = true));
  while (performance.now() - startedMs < limitMs && !isGone) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(2000) });
      await response.arrayBuffer();
      if (response.ok) return;
    } catch {
      // Nobody listens yet.
    }
    await Bun.sleep(1);
  }
  throw new Error(isGone ? `the process ended before it answered at ${url}` : `no answer at ${url}`);
}

/** nginx as the yardstick: one worker on the subject's core, keep-alive on both sides. Undefined when not installed. */
export async function startNginx(
  dir: string,
  upstreamPort: number,
): Promise<(Running & { port: number }) | undefined> {
  const program = Bun.which("nginx") ?? ["/usr/sbin/nginx", "/usr/local/sbin/nginx"].find(existsSync);
  if (!program) return undefined;
  mkdirSync(dir, { recursive: true });
  const port = freePort();
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const config = `
    daemon off; worker_processes 1; ${user} pid ${join(dir, "nginx.pid")}; error_log ${join(dir, "nginx.log")} error;
    events { worker_connections 8192; }
    http {
      access_log off; tcp_nodelay on; keepalive_requests 100000000; keepalive_timeout 3600s; client_max_body_size 64m;
      ${temporary.map((name) => `${name}_temp_path ${join(dir, `nginx_${name}`)};`).join(" ")}
      upstream mock { server 127.0.0.1:${upstreamPort}; keepalive 512; keepalive_requests 100000000; }
      server {
        listen 127.0.0.1:${port} backlog=4096;
        location / {
          proxy_pass http://mock; proxy_http_version 1.1; proxy_set_header Connection "";
          proxy_read_timeout 600s;
        }
      }
    }`;
  const file = join(dir, "nginx.conf");
  await Bun.write(file, config);
  const running = start(SUBJECT_CORE, [program, "-p", dir, "-c", file, "-e", join(dir, "nginx.log")]);
  await waitForAnswer(`http://127.0.0.1:${port}/v1/models`, 5000, running);
  return { ...running, port };
}
