// `bun bench/workers.ts <program> [rounds] [connections]`: on PostgreSQL one process, two that know nothing of each other at the
// same time, and two workers, two seconds of load on each in turn: processor time a call (PostgreSQL's not counted), as the
// median of the rounds' quotients, because single seconds tell of the neighbours. What a call costs hangs on how many come at
// once, so two workers are loaded both ways: with as many connections for each process as the lone one has, from as many clients
// (one client of all of them paces both workers), and with as many for both together, where each has half of what makes batches.
// On a machine without a core for each, two processes cost more than one does whatever they are, which is why workers are held
// against two lone ones. Then which worker takes how many of the calls of 256 connections, opened anew for each look: the kernel
// gives a connection to a worker by its addresses, so that the share of few connections is luck. They pause between calls: under
// more than the machine can do it is the scheduler that shares out calls.
// Refuses a verdict on rates: load, mock, PostgreSQL and workers share the machine's cores.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import postgres from "postgres";
import { createPostgresDatabase } from "../test/support/postgres.ts";
import type { PostgresDatabase } from "../test/support/postgres.ts";
import { type Gateway, startGateway, withCpu } from "./gateway.ts";
import type { LoadResult } from "./load.ts";
import { LOAD_CORE, startWithPort } from "./processes.ts";
import { closedLoop, ensureWrk } from "./wrk.ts";

const MOST_TIMES = 1.1;
const MOST_SHARE = 0.6;
/**
 * Calls that each process has answered before it is measured: until then the engine compiles, and a call costs up to twice as
 * much. Sides that had fewer would be held against warmer ones.
 */
const WARM_CALLS = 60_000;
const SECONDS = 2;
/** Of which no worker takes more than MOST_SHARE but once in a thousand looks, if the kernel throws dice. */
const SHARED_CONNECTIONS = 256;
const LOOKS = 5;
/** With so many connections some 500 calls a second, which leaves both workers time. */
const PAUSE_MS = 500;
/** Longer than entries wait to be settled together. */
const SETTLED_MS = 20_000;

interface Side {
  workers: number;
  gateway: Gateway;
  database: PostgresDatabase;
}

/** All nodes of the bench: the second one opens what the first one sealed. */
const ENCRYPTION_KEY = "one key for all nodes";

const here = (name: string) => join(import.meta.dir, name);
const cpuUs = ({ cpuUs: us = Number.NaN }: LoadResult) => us;

const middle = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Of all calls of one round together. */
const costOf = (results: readonly LoadResult[]) =>
  results.reduce((sum, result) => sum + cpuUs(result) * result.requests, 0) /
  results.reduce((sum, { requests }) => sum + requests, 0);

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

/** More calls until each process has answered enough of them. In turn: the engine throws away what nobody ran for a while. */
async function warm(sides: readonly Side[], each: number): Promise<void> {
  const calls = sides.map(() => 0);
  const isCold = (side: Side, at: number) => (calls[at] ?? 0) < WARM_CALLS * side.workers;
  while (sides.some(isCold))
    for (const [at, side] of sides.entries()) {
      if (isCold(side, at))
        calls[at] = (calls[at] ?? 0) + (await loadOf(side, each * side.workers, SECONDS)).requests;
    }
}

/** How many calls each process has settled so far, as soon as nothing more comes. */
async function settledBy({ database }: Side): Promise<number[]> {
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  try {
    const until = performance.now() + SETTLED_MS;
    for (let last = -1; ;) {
      const rows = await sql<{ entered: string }[]>`select entered from nodes order by node_id`;
      const counts = rows.map(({ entered }) => Number(entered));
      const all = counts.reduce((sum, count) => sum + count, 0);
      if (all === last) return counts;
      if (performance.now() > until) throw new Error("settlements do not come to an end");
      last = all;
      await Bun.sleep(1000);
    }
  } finally {
    await sql.end();
  }
}

/** The share of the busier worker in the calls of many connections. */
async function busierShare(side: Side): Promise<number> {
  const before = await settledBy(side);
  const paced = { concurrency: SHARED_CONNECTIONS, seconds: SECONDS, pauseMs: PAUSE_MS };
  const { errors } = await closedLoop(side.gateway.target, paced);
  if (errors > 0) throw new Error(`port ${side.gateway.port}: ${errors} calls failed`);
  const own = (await settledBy(side)).map((count, at) => count - (before[at] ?? 0));
  return Math.max(...own) / own.reduce((sum, count) => sum + count, 0);
}

const [program, rounds = "7", connections = "32"] = process.argv.slice(2);
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
let isMet = false;
try {
  for (const workers of [1, 1, 2]) {
    const database = await createPostgresDatabase();
    const env = { DATABASE_URL: database.url, WORKERS: String(workers), ENCRYPTION_KEY };
    const ways = { env, core: "any" } as const;
    const own = ownDir(String(sides.length));
    const gateway = await startGateway([resolve(program)], own, mock.port, http.port, ways);
    sides.push({ workers, gateway, database });
  }
  const [first, second, shared] = sides;
  if (!first || !second || !shared) throw new Error("a side is missing");
  await warm(sides, each);
  const costs: Record<"one" | "two" | "workers" | "mixed" | "halves", number[]> = {
    one: [],
    two: [],
    workers: [],
    mixed: [],
    halves: [],
  };
  for (let round = 0; round < Number(rounds); round++) {
    const load = (side: Side) => loadOf(side, each, SECONDS);
    costs.one.push(costOf([await load(first)]));
    costs.two.push(costOf(await Promise.all([load(first), load(second)])));
    costs.workers.push(costOf([await loadOf(shared, each, SECONDS, 2)]));
    costs.mixed.push(costOf([await loadOf(shared, 2 * each, SECONDS)]));
    costs.halves.push(costOf([await load(shared)]));
  }
  const times = (of: keyof typeof costs, base: keyof typeof costs) =>
    middle(costs[of].map((cost, round) => cost / (costs[base][round] ?? Number.NaN)));
  const say = (what: string, of: keyof typeof costs) =>
    console.log(
      `${what}: ${middle(costs[of]).toFixed(0)} µs of processor time a call, ${times(of, "one").toFixed(3)} of one's, ` +
        `${times(of, "two").toFixed(3)} of two lone ones'`,
    );
  say(`one process, ${each} callers`, "one");
  say(`two lone processes at once, ${each} callers each`, "two");
  say(`two workers, two clients of ${each} callers`, "workers");
  say(`two workers, one client of ${2 * each} callers`, "mixed");
  say(`two workers, one client of ${each} callers`, "halves");
  const shares: number[] = [];
  for (let look = 0; look < LOOKS; look++) shares.push(await busierShare(shared));
  console.log(
    `share of the busier worker, ${SHARED_CONNECTIONS} connections: ${shares.map((share) => `${(share * 100).toFixed(1)} %`).join(", ")}`,
  );
  isMet = times("workers", "two") <= MOST_TIMES && middle(shares) <= MOST_SHARE;
} finally {
  for (const { gateway, database } of sides) {
    await gateway.running.stop();
    await database.drop();
  }
  await Promise.all([mock.stop(), http.stop()]);
  rmSync(dir, { recursive: true, force: true });
}
console.log(isMet ? "within the goals (1.1 times, 60 %)" : "not within the goals (1.1 times, 60 %)");
process.exit(isMet ? 0 : 2);
