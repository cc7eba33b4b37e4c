// `bun bench/workers.ts <program> [rounds] [connections]`: on PostgreSQL one process, two that know nothing of each other at the
// same time, two nodes of one site at the same time, and two workers, a second of load on each in turn: processor time a call
// (PostgreSQL's not counted), and which worker took how many of the calls. What a call costs hangs on how many come at once,
// so two workers are loaded both ways: with as many connections for each process as the lone one has, from as many clients (one
// client of all of them paces both workers), and with as many for both together, where each has half of what makes batches. And on a machine without a core for each, two processes cost more than
// one does whatever they are, which is why workers are held against two lone ones; what two nodes cost beyond these is their
// common database, what workers cost beyond nodes is the port that they share.
// Refuses a verdict on rates: load, mock, PostgreSQL and workers share the machine's cores.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import postgres from "postgres";
import { createPostgresDatabase } from "../test/support/postgres.ts";
import type { PostgresDatabase } from "../test/support/postgres.ts";
import { type Gateway, launchGateway, origin, startGateway, withCpu } from "./gateway.ts";
import type { LoadResult } from "./load.ts";
import { LOAD_CORE, type Running, freePort, startWithPort, waitForAnswer } from "./processes.ts";
import { closedLoop, ensureWrk } from "./wrk.ts";

const MOST_TIMES = 1.1;
const MOST_SHARE = 0.6;
/**
 * Calls that each process has answered before it is measured: until then the engine compiles, and a call costs up to twice as
 * much. Sides that had fewer would be held against warmer ones.
 */
const WARM_CALLS = 60_000;
const WARM_SECONDS = 2;

interface Side {
  workers: number;
  gateway: Gateway;
  database: PostgresDatabase;
}

/** All nodes of the bench: the second one opens what the first one sealed. */
const ENCRYPTION_KEY = "one key for all nodes";

const here = (name: string) => join(import.meta.dir, name);
const cpuUs = ({ cpuUs: us = Number.NaN }: LoadResult) => us;

/** Of all calls together: single seconds tell of the neighbours, and one without a call of nothing. */
const costOf = (results: readonly LoadResult[]) => {
  const some = results.filter(({ requests }) => requests > 0);
  return (
    some.reduce((sum, result) => sum + cpuUs(result) * result.requests, 0) /
    some.reduce((sum, { requests }) => sum + requests, 0)
  );
};

/** `generators`: so many clients at once, each with so many connections. */
async function loadOf(
  { gateway }: Pick<Side, "gateway">,
  concurrency: number,
  seconds: number,
  generators = 1,
): Promise<LoadResult> {
  const result = await withCpu(gateway.target, async (target) => {
    const loads = Array.from({ length: generators }, () => closedLoop(target, { concurrency, seconds }));
    const [first, ...others] = await Promise.all(loads);
    if (!first) throw new Error("nobody generates any load");
    const add = (of: "requests" | "errors") => others.reduce((sum, each) => sum + each[of], first[of]);
    return { ...first, requests: add("requests"), errors: add("errors") };
  });
  if (result.errors > 0) throw new Error(`port ${gateway.port}: ${result.errors} calls failed`);
  return result;
}

async function warm(side: Pick<Side, "gateway">, each: number, processes: number): Promise<void> {
  for (let calls = 0; calls < WARM_CALLS * processes;)
    calls += (await loadOf(side, each * processes, WARM_SECONDS)).requests;
}

/** A further process on the same database. */
async function joinNode(
  { gateway, database }: Side,
  dir: string,
): Promise<{ gateway: Gateway; running: Running }> {
  const port = freePort();
  const env = { DATABASE_URL: database.url, ENCRYPTION_KEY };
  const running = launchGateway(gateway.command, dir, port, { env, core: "any" });
  await waitForAnswer(`${origin(port)}/api/status`, 30_000, running);
  const target = { ...gateway.target, port, pid: running.pid };
  return { gateway: { ...gateway, running, port, target }, running };
}

/** How much of what was settled each process settled. */
async function sharesOf({ database }: Side): Promise<number[]> {
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  const rows = await sql<{ entered: string }[]>`select entered from nodes order by node_id`;
  await sql.end();
  const counts = rows.map(({ entered }) => Number(entered));
  const all = counts.reduce((sum, count) => sum + count, 0);
  return counts.map((count) => count / all);
}

const [program, rounds = "15", connections = "32"] = process.argv.slice(2);
if (program === undefined) {
  console.error("usage: bun bench/workers.ts <program> [rounds] [connections]");
  process.exit(2);
}
ensureWrk();
const each = Number(connections);
const dir = mkdtempSync(join(tmpdir(), "weir-workers-"));
const ownDir = (name: string) => {
  const own = join(dir, name);
  mkdirSync(own);
  return own;
};
const mock = await startWithPort(LOAD_CORE, [process.execPath, here("mock-upstream.ts")]);
const http = await startWithPort(LOAD_CORE, [process.execPath, here("http-mock.ts")]);
const sides: Side[] = [];
let joined: Running | undefined;
let isMet = false;
try {
  for (const workers of [1, 1, 1, 2]) {
    const database = await createPostgresDatabase();
    const env = { DATABASE_URL: database.url, WORKERS: String(workers), ENCRYPTION_KEY };
    const ways = { env, core: "any" } as const;
    const own = ownDir(String(sides.length));
    const gateway = await startGateway([resolve(program)], own, mock.port, http.port, ways);
    sides.push({ workers, gateway, database });
  }
  const [first, second, node, shared] = sides;
  if (!first || !second || !node || !shared) throw new Error("a side is missing");
  const other = await joinNode(node, ownDir("node"));
  joined = other.running;
  for (const side of sides) await warm(side, each, side.workers);
  await warm(other, each, 1);
  const results: Record<"one" | "two" | "nodes" | "workers" | "mixed" | "halves", LoadResult[]> = {
    one: [],
    two: [],
    nodes: [],
    workers: [],
    mixed: [],
    halves: [],
  };
  for (let round = 0; round < Number(rounds); round++) {
    const load = (side: Pick<Side, "gateway">) => loadOf(side, each, 1);
    results.one.push(await load(first));
    results.two.push(...(await Promise.all([load(first), load(second)])));
    results.nodes.push(...(await Promise.all([load(node), load(other)])));
    results.workers.push(await loadOf(shared, each, 1, 2));
    results.mixed.push(await loadOf(shared, 2 * each, 1));
    results.halves.push(await load(shared));
  }
  await shared.gateway.running.stop();
  const shares = await sharesOf(shared);
  const [one, two] = [costOf(results.one), costOf(results.two)];
  const say = (what: string, of: keyof typeof results) => {
    const cost = costOf(results[of]);
    console.log(
      `${what}: ${cost.toFixed(0)} µs of processor time a call, ${(cost / one).toFixed(3)} of one's, ` +
        `${(cost / two).toFixed(3)} of two lone ones'`,
    );
  };
  say(`one process, ${each} callers`, "one");
  say(`two lone processes at once, ${each} callers each`, "two");
  say(`two nodes of one site at once, ${each} callers each`, "nodes");
  say(`two workers, two clients of ${each} callers`, "workers");
  say(`two workers, one client of ${2 * each} callers`, "mixed");
  say(`two workers, one client of ${each} callers`, "halves");
  console.log(`shares of the workers: ${shares.map((share) => `${(share * 100).toFixed(1)} %`).join(" / ")}`);
  isMet = costOf(results.workers) / two <= MOST_TIMES && Math.max(...shares) <= MOST_SHARE;
} finally {
  await joined?.stop();
  for (const { gateway, database } of sides) {
    await gateway.running.stop();
    await database.drop();
  }
  await Promise.all([mock.stop(), http.stop()]);
  rmSync(dir, { recursive: true, force: true });
}
console.log(isMet ? "within the goals (1.1 times, 60 %)" : "not within the goals (1.1 times, 60 %)");
process.exit(isMet ? 0 : 2);
