// `bun bench/workers.ts <program> [rounds] [connections]`: on PostgreSQL one process, two that know nothing of each other at the
// same time, and two workers, a second of load on each in turn with so many connections for each process: processor time a call
// (PostgreSQL's not counted), and which worker took how many of the calls. What a call costs hangs on how many come at once,
// so that each process has as many as the lone one; and on a machine without a core for each, two processes cost more than one
// does whatever they are, which is why workers are held against two lone ones.
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
const WARM_SECONDS = 4;

interface Side {
  workers: number;
  gateway: Gateway;
  database: PostgresDatabase;
}

const here = (name: string) => join(import.meta.dir, name);
const cpuUs = ({ cpuUs: us = Number.NaN }: LoadResult) => us;

/** Of all calls together: single seconds tell of the neighbours. */
const costOf = (results: readonly LoadResult[]) =>
  results.reduce((sum, result) => sum + cpuUs(result) * result.requests, 0) /
  results.reduce((sum, { requests }) => sum + requests, 0);
async function loadOf({ workers, gateway }: Side, each: number, seconds: number): Promise<LoadResult> {
  const concurrency = each * workers;
  const result = await withCpu(gateway.target, (target) => closedLoop(target, { concurrency, seconds }));
  if (result.errors > 0) throw new Error(`${workers} workers: ${result.errors} calls failed`);
  return result;
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
const dir = mkdtempSync(join(tmpdir(), "weir-workers-"));
const mock = await startWithPort(LOAD_CORE, [process.execPath, here("mock-upstream.ts")]);
const http = await startWithPort(LOAD_CORE, [process.execPath, here("http-mock.ts")]);
const sides: Side[] = [];
let isMet = false;
try {
  for (const workers of [1, 1, 2]) {
    const own = join(dir, String(sides.length));
    mkdirSync(own);
    const database = await createPostgresDatabase();
    const env = { DATABASE_URL: database.url, WORKERS: String(workers) };
    const ways = { env, core: "any" } as const;
    const gateway = await startGateway([resolve(program)], own, mock.port, http.port, ways);
    sides.push({ workers, gateway, database });
  }
  const [first, second, shared] = sides;
  if (!first || !second || !shared) throw new Error("a side is missing");
  for (const side of sides) await loadOf(side, Number(connections), WARM_SECONDS);
  const results: Record<"one" | "two" | "workers", LoadResult[]> = { one: [], two: [], workers: [] };
  for (let round = 0; round < Number(rounds); round++) {
    const load = (side: Side) => loadOf(side, Number(connections), 1);
    results.one.push(await load(first));
    results.two.push(...(await Promise.all([load(first), load(second)])));
    results.workers.push(await load(shared));
  }
  await shared.gateway.running.stop();
  const shares = await sharesOf(shared);
  const [one, two, workers] = [costOf(results.one), costOf(results.two), costOf(results.workers)];
  console.log(`one process: ${one.toFixed(0)} µs of processor time a call`);
  console.log(`two lone processes at once: ${two.toFixed(0)} µs, ${(two / one).toFixed(3)} of one's`);
  console.log(
    `two workers: ${workers.toFixed(0)} µs, ${(workers / one).toFixed(3)} of one's, ${(workers / two).toFixed(3)} of two lone ones', ` +
      `shares ${shares.map((share) => `${(share * 100).toFixed(1)} %`).join(" / ")}`,
  );
  isMet = workers / two <= MOST_TIMES && Math.max(...shares) <= MOST_SHARE;
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
