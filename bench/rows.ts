// `bun run bench rows [--rows N] [--db sqlite|postgres] [--dir DIR] [--url postgres://…]`: builds a log of so many rows (10
// million; some 6.5 GB) and prints how long each question of the console takes, and the longest pause of the event loop
// meanwhile. What is named is kept and found filled by the next run of the same schema: a directory, which has the key, and on
// PostgreSQL the database beside it. Not part of the other figures.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Sql } from "postgres";
import { createServices } from "../src/app.ts";
import { audit } from "../src/core/ledger/audit.ts";
import { buildCoarse } from "../src/core/ledger/coarse-build.ts";
import { exportedRows } from "../src/core/logs/export.ts";
import { END_OF_TIME } from "../src/core/logs/filter.ts";
import type { Deps } from "../src/core/deps.ts";
import { readEnv } from "../src/env.ts";
import { createPostgresDatabase } from "../test/support/postgres.ts";
import { questions } from "./log-queries.ts";
import { fillLog } from "./log-rows.ts";

const ROUNDS = 5;
const GOAL_MS = 200;
const EXPORTED_PAGES = 100;

/**
 * Processor time so far in ms: this process with its threads, and the database's processes where it has some on this machine.
 * A busy machine stretches times on the clock, hardly these.
 */
async function usedMs({ db }: Pick<Deps, "db">): Promise<number> {
  const { user, system } = process.cpuUsage();
  const own = (user + system) / 1000;
  if (db.client) return own;
  const client = (db.orm as unknown as { $client: Sql }).$client;
  const rows = await client`select pid from pg_stat_activity where datname = current_database()`;
  return rows.reduce((sum, { pid }) => {
    const file = `/proc/${pid}/schedstat`;
    return sum + (existsSync(file) ? Number(readFileSync(file, "utf8").split(" ")[0]) / 1e6 : 0);
  }, own);
}

/** The longest time that one turn of the event loop took of a processor since the last look, in ms: neighbours do not count. */
function watchLoop(): () => number {
  const usedMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let last = usedMs();
  let longest = 0;
  setInterval(() => {
    const now = usedMs();
    longest = Math.max(longest, now - last);
    last = now;
  }, 1).unref();
  return () => {
    const found = longest;
    longest = 0;
    return found;
  };
}

export async function benchRows(args: readonly string[], dir: string): Promise<void> {
  const option = (name: string, fallback: string) => {
    const at = args.indexOf(`--${name}`);
    return at < 0 ? fallback : (args[at + 1] ?? fallback);
  };
  const rows = Number(option("rows", "10000000"));
  const kind = option("db", "sqlite");
  if (!Number.isInteger(rows) || rows < 1000) throw new Error("--rows must be a whole number from 1000 on");
  if (kind !== "sqlite" && kind !== "postgres") throw new Error("--db must be sqlite or postgres");
  const named = option("url", "");
  const database = kind === "postgres" && named === "" ? await createPostgresDatabase() : undefined;
  const env = readEnv({
    DATA_DIR: option("dir", join(dir, "rows")),
    DATABASE_URL: database?.url ?? named,
    LOG_LEVEL: "warn",
  });
  const services = await createServices(env);
  const { deps } = services;
  const startedMs = performance.now();
  const seconds = () => `${((performance.now() - startedMs) / 1000).toFixed(0)} s`;
  const { logs } = deps.db.t;
  const [known] = await deps.db.orm.select({ id: logs.id }).from(logs).limit(1);
  if (!known) await fillLog(deps, rows, (text) => console.log(`${seconds()}: ${text}`));
  // As every server does when it has come up.
  await buildCoarse(deps);
  const pauseMs = watchLoop();
  console.log(
    `\n${rows} rows on ${kind}; of ${ROUNDS} rounds the least and the median processor time, shortest, median and longest time, and the longest turn of the event loop, in ms\n`,
  );
  const inOrder = (figures: readonly number[]) => {
    const sorted = figures.toSorted((a, b) => a - b);
    return { least: sorted[0] ?? 0, median: sorted[sorted.length >> 1] ?? 0, most: sorted.at(-1) ?? 0 };
  };
  const print = (name: string, times: readonly number[], used: readonly number[] = []) => {
    const [time, own] = [inOrder(times), inOrder(used)];
    const figures = [own.least, own.median, time.least, time.median, time.most, pauseMs()];
    const isSlow = time.median > GOAL_MS;
    console.log(
      `${name.padEnd(44)}${figures.map((ms) => ms.toFixed(1).padStart(10)).join("")}${isSlow ? "  !" : ""}`,
    );
  };
  for (const { name, ask } of questions(deps, rows)) {
    const times: number[] = [];
    const used: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const usedBefore = await usedMs(deps);
      const begun = performance.now();
      await ask();
      times.push(performance.now() - begun);
      used.push((await usedMs(deps)) - usedBefore);
    }
    print(name, times, used);
  }
  const begun = performance.now();
  let pages = 0;
  for await (const page of exportedRows(deps, {
    filter: { type: 0, from: 0, to: END_OF_TIME },
    types: [],
    owner: undefined,
  })) {
    if (page.length === 0 || ++pages === EXPORTED_PAGES) break;
  }
  print(`export, a page (of ${pages})`, [(performance.now() - begun) / pages]);
  for (const how of ["audit", "audit again"]) {
    const auditBegun = performance.now();
    const usedBefore = await usedMs(deps);
    const { differences, months, sums } = await audit(deps.db);
    const ofLog = differences.filter(({ what }) => /^(logs|rollups)/.test(what)).length;
    print(
      `${how}, ${months.read} + ${sums.read} months read (${ofLog} differ)`,
      [performance.now() - auditBegun],
      [(await usedMs(deps)) - usedBefore],
    );
  }
  await services.close();
  await database?.drop();
}
