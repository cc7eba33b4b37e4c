// `bun bench/workers.ts <program> [rounds] [connections]`: one process and two workers of the same build on PostgreSQL, a second
// of load on each in turn, so many connections for each process: processor time a call (PostgreSQL's not counted), and who
// took how many of the calls. What a call costs hangs on how many come at once (what comes together is written together),
// so that each process has as many as the lone one.
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
import { perSecond } from "./report.ts";
import { closedLoop, ensureWrk } from "./wrk.ts";

const MOST_TIMES = 1.1;
const MOST_SHARE = 0.6;
const WARM_SECONDS = 4;

interface Side {
  workers: number;
  gateway: Gateway;
  database: PostgresDatabase;
  results: LoadResult[];
}

const here = (name: string) => join(import.meta.dir, name);
const middle = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
/** Of all calls together: single seconds tell of the neighbours. */
const costOf = (results: readonly LoadResult[]) =>
  results.reduce((sum, result) => sum + cpuUs(result) * result.requests, 0) /
  results.reduce((sum, { requests }) => sum + requests, 0);
const cpuUs = ({ cpuUs: us = Number.NaN }: LoadResult) => us;

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
let isMet = true;
try {
  for (const workers of [1, 2]) {
    const own = join(dir, String(workers));
    mkdirSync(own);
    const database = await createPostgresDatabase();
    const env = { DATABASE_URL: database.url, WORKERS: String(workers) };
    const ways = { env, core: "any" } as const;
    const gateway = await startGateway([resolve(program)], own, mock.port, http.port, ways);
    sides.push({ workers, gateway, database, results: [] });
  }
  for (const side of sides) await loadOf(side, Number(connections), WARM_SECONDS);
  for (let round = 0; round < Number(rounds); round++)
    for (const side of sides) side.results.push(await loadOf(side, Number(connections), 1));
  const base = sides[0]?.results ?? [];
  for (const side of sides) {
    const { results, workers } = side;
    await side.gateway.running.stop();
    const quotient = costOf(results) / costOf(base);
    const shares = await sharesOf(side);
    isMet &&= quotient <= MOST_TIMES && (workers === 1 || Math.max(...shares) <= MOST_SHARE);
    console.log(
      `${workers} ${workers === 1 ? "process" : "workers"}: ${costOf(results).toFixed(0)} µs of processor time a call, ` +
        `${quotient.toFixed(3)} of one process's, ${middle(results.map(perSecond)).toFixed(0)} calls a second, ` +
        `shares ${shares.map((share) => `${(share * 100).toFixed(1)} %`).join(" / ")}`,
    );
  }
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
