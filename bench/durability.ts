// `bun bench/durability.ts <program> [rounds] [concurrencies, 1,16,64] [further programs]`: what an answer that waits for PostgreSQL's
// commit costs (DURABILITY=database): calls a second and waiting time beside the same program with `journal`, a second of
// load on each in turn, on a server that syncs its commits. Beside both the floor: as many callers who do nothing but insert
// a row and commit, by the driver alone.
// Refuses a verdict on rates alone: load, mock, gateway and PostgreSQL share the machine; what counts is the quotient.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import postgres from "postgres";
import { startOwnPostgres } from "../test/support/own-postgres.ts";
import type { OwnPostgres } from "../test/support/own-postgres.ts";
import { type Gateway, startGateway, withCpu } from "./gateway.ts";
import type { LoadResult } from "./load.ts";
import { LOAD_CORE, startWithPort } from "./processes.ts";
import { perSecond } from "./report.ts";
import { closedLoop, ensureWrk } from "./wrk.ts";

interface Side {
  name: string;
  load: (concurrency: number, seconds: number) => Promise<LoadResult>;
}

/** Answered by each gateway before it is measured: until then the engine compiles. */
const WARM_CALLS = 20_000;
const WARM_CONCURRENCY = 32;

const here = (name: string) => join(import.meta.dir, name);
const middle = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

async function databaseOf(server: OwnPostgres, name: string): Promise<string> {
  const admin = postgres(server.url, { max: 1 });
  await admin.unsafe(`create database ${name}`);
  await admin.end();
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  return url.href;
}

function sideOf(name: string, { target }: Gateway): Side {
  return {
    name,
    async load(concurrency, seconds) {
      const result = await withCpu(target, (each) => closedLoop(each, { concurrency, seconds }));
      if (result.errors > 0) throw new Error(`${name}: ${result.errors} calls failed`);
      return result;
    },
  };
}

/** Each caller has a connection of its own and waits for each commit. */
async function floorOf(url: string, most: number): Promise<Side> {
  const client = postgres(url, { max: most, onnotice: () => {} });
  await client`create table floor (id bigserial primary key, text text)`;
  return {
    name: "bare insert and commit",
    async load(concurrency, seconds) {
      const times: number[] = [];
      const untilMs = performance.now() + seconds * 1000;
      const caller = async (): Promise<void> => {
        while (performance.now() < untilMs) {
          const beganMs = performance.now();
          await client`insert into floor (text) values ('a row as small as there is')`;
          times.push(performance.now() - beganMs);
        }
      };
      await Promise.all(Array.from({ length: concurrency }, caller));
      times.sort((a, b) => a - b);
      const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN;
      return { requests: times.length, seconds, errors: 0, p50Ms: at(0.5), p99Ms: at(0.99) } as LoadResult;
    },
  };
}

const [program, rounds = "5", list = "1,16,64", ...further] = process.argv.slice(2);
if (program === undefined) {
  console.error("usage: bun bench/durability.ts <program> [rounds] [concurrencies] [further programs]");
  process.exit(2);
}
ensureWrk();
const levels = list.split(",").map(Number);
const dir = mkdtempSync(join(tmpdir(), "weir-durability-"));
const server = await startOwnPostgres();
const mock = await startWithPort(LOAD_CORE, [process.execPath, here("mock-upstream.ts")]);
const http = await startWithPort(LOAD_CORE, [process.execPath, here("http-mock.ts")]);
const gateways: Gateway[] = [];
try {
  const sides: Side[] = [];
  const wanted = [[program, "journal"], [program, "database"], ...further.map((each) => [each, "database"])];
  for (const [at, [command = "", durability = ""]] of wanted.entries()) {
    const own = join(dir, String(at));
    mkdirSync(own);
    const env = { DATABASE_URL: await databaseOf(server, `site${at}`), DURABILITY: durability };
    const gateway = await startGateway([resolve(command)], own, mock.port, http.port, { env, core: "any" });
    gateways.push(gateway);
    sides.push(sideOf(`${durability}, ${command}`, gateway));
  }
  for (const side of sides)
    for (let calls = 0; calls < WARM_CALLS;) calls += (await side.load(WARM_CONCURRENCY, 2)).requests;
  sides.push(await floorOf(await databaseOf(server, "floor"), Math.max(...levels)));
  for (const level of levels) {
    const results = sides.map((): LoadResult[] => []);
    for (let round = 0; round < Number(rounds); round++)
      for (const [at, side] of sides.entries()) results[at]?.push(await side.load(level, 1));
    for (const [at, side] of sides.entries()) {
      const own = results[at] ?? [];
      const quotients = own.map((each, round) => {
        const first = results[0]?.[round];
        return first ? perSecond(each) / perSecond(first) : Number.NaN;
      });
      console.log(
        `${level} at once: ${side.name}: ${middle(own.map(perSecond)).toFixed(0)} a second, ` +
          `${middle(quotients).toFixed(2)} of the first, p50 ${middle(own.map(({ p50Ms }) => p50Ms)).toFixed(2)} ms, ` +
          `p99 ${middle(own.map(({ p99Ms }) => p99Ms)).toFixed(2)} ms, ` +
          `processor time ${middle(own.map(({ cpuUs = Number.NaN }) => cpuUs)).toFixed(0)} µs a call`,
      );
    }
  }
} finally {
  for (const { running } of gateways) await running.stop();
  await Promise.all([mock.stop(), http.stop()]);
  await server.remove();
  rmSync(dir, { recursive: true, force: true });
}
process.exit(0);
