// WORKERS from outside, on one site under load: processes are replaced, killed and stopped, and what was answered stands in
// the log once. Refuses to count on which worker serves: every call is a connection of its own.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import postgres from "postgres";
import { readEnv } from "../../src/env.ts";
import { promptOf } from "../support/mock-upstream.ts";
import { workersOf } from "../support/processes.ts";
import { startServerProcess } from "../support/server.ts";
import { MODELS, startSite } from "./site.ts";
import type { Site } from "./site.ts";

const LANES = 8;
/** As startSite has it. */
const ENCRYPTION_KEY = "one key for all nodes";
const SETTINGS = { WORKERS: "2", DRAIN_SECONDS: "5" };

let site: Site;
let key: string;
/** Request ids of every call that was answered. */
const answered: string[] = [];

beforeAll(async () => {
  site = await startSite({ kind: "postgres", env: SETTINGS });
  const person = await site.person(1_000_000_000);
  key = await person.key();
  // A channel that one worker has learned of just now reaches the other within a second.
  let row = 0;
  await site.until(async () => (row = (await call()) === 200 ? row + 1 : 0) >= 8);
}, 60_000);
afterAll(() => site.remove(), 30_000);

/** One call on a connection of its own; 0 when that broke. */
async function call(): Promise<number> {
  try {
    const answer = await fetch(`${site.server.url}/v1/chat/completions`, {
      method: "POST",
      keepalive: false,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", connection: "close" },
      body: JSON.stringify({
        model: MODELS["openai-chat"],
        messages: [{ role: "user", content: promptOf({ id: "worker", words: 3 }) }],
      }),
    });
    await answer.text();
    if (answer.status === 200) answered.push(answer.headers.get("X-Oneapi-Request-Id") ?? "");
    return answer.status;
  } catch {
    return 0;
  }
}

/** Calls in lanes while something is done; how many ended with which status. */
async function callsWhile(work: () => Promise<unknown>): Promise<Record<number, number>> {
  const seen: Record<number, number> = {};
  let isDone = false;
  const lanes = Promise.all(
    Array.from({ length: LANES }, async () => {
      while (!isDone) {
        const status = await call();
        seen[status] = (seen[status] ?? 0) + 1;
      }
    }),
  );
  try {
    await work();
  } finally {
    isDone = true;
    await lanes;
  }
  return seen;
}

const pids = () => workersOf(site.server.dataDir);

async function everythingIsLoggedOnce(): Promise<void> {
  const rows = (await site.books.log(2)).map(({ requestId }) => requestId);
  const known = new Set(rows);
  expect(known.size).toBe(rows.length);
  expect(answered.filter((id) => !known.has(id))).toEqual([]);
  expect(site.server.audit()).toMatchObject({ code: 0 });
}

const entered = async (): Promise<number[]> =>
  (await site.books.ask("select entered from nodes order by node_id")).map((row) => Number(row["entered"]));

test("two workers share the port, each with a directory of its own; a second copy on it is refused", async () => {
  expect([...pids().keys()].toSorted()).toEqual(["0", "1"]);
  for (const name of ["w0", "w1"]) expect(existsSync(join(site.server.dataDir, name, "node.id"))).toBe(true);
  expect(existsSync(join(site.server.dataDir, "node.id"))).toBe(false);
  const health = await fetch(`${site.server.url}/healthz`);
  expect([health.status, await health.json()]).toEqual([200, { status: "ok", worker: expect.any(Number) }]);
  const ready = await fetch(`${site.server.url}/readyz`);
  expect([ready.status, await ready.json()]).toEqual([200, { status: "ready" }]);
  const { port } = new URL(site.server.url);
  const settings = { ...SETTINGS, DATABASE_URL: site.databaseUrl ?? "", ENCRYPTION_KEY };
  const copy = startServerProcess({ ...settings, PORT: port });
  expect(await copy.then(() => "it started", String)).toContain(`PORT ${port} is in use`);
  const same = site.server.run(["serve"]);
  expect(same).toMatchObject({ code: 1, text: expect.stringContaining("another weir process") });
  expect((await entered()).filter((count) => count > 0).length).toBe(2);
});

test("SIGHUP replaces both, one after the other, beside a newer release's schema, and no call fails", async () => {
  const before = pids();
  // What a node of the next release does first: it adds a column, and says that this release bears it.
  await site.books.ask("alter table users add column of_the_next_release bigint not null default 0");
  const applied = "insert into schema_version values (2, '0001_next', 'next', 1, 0)";
  await site.books.ask(applied);
  const seen = await callsWhile(async () => {
    process.kill(site.server.pid ?? 0, "SIGHUP");
    await site.until(() => site.server.log().includes("all workers were replaced"), 30_000);
  });
  expect(Object.keys(seen)).toEqual(["200"]);
  // Nothing was in a socket that closed: connections had been sent to the other one before.
  expect(site.server.log().split('"isSteered":true').length - 1).toBe(2);
  expect(seen[200]).toBeGreaterThan(0);
  await site.books.ask("update schema_version set compatible_from = 2 where version = 2");
  const { code, text } = site.server.run(["migrate"]);
  expect([code, text]).toEqual([1, expect.stringContaining("schema version 2, which programs")]);
  await site.books.ask("update schema_version set compatible_from = 1 where version = 2");
  const after = pids();
  expect([...after.keys()].toSorted()).toEqual(["0", "1"]);
  for (const [index, pid] of after) expect(pid).not.toBe(before.get(index) ?? 0);
}, 60_000);

test("whichever worker is asked for the metrics answers for all of them, also for those that were replaced", async () => {
  const requests = async (): Promise<number> => {
    const text = await (await fetch(`${site.server.url}/metrics`, { keepalive: false })).text();
    const line = text
      .split("\n")
      .find((each) => each.startsWith('weir_requests_total{endpoint="chat",outcome="ok"}'));
    return Number(line?.split(" ").at(-1) ?? 0);
  };
  const before = await requests();
  const made = answered.length;
  for (let index = 0; index < 20; index++) expect(await call()).toBe(200);
  expect(answered.length).toBe(made + 20);
  // Two workers had their part in them, whoever is asked.
  for (let index = 0; index < 4; index++) expect(await requests()).toBe(before + 20);
});

test("what one worker is told is in force in the other within a second", async () => {
  const person = await site.person(1_000_000_000);
  const own = await person.key();
  const asked = async () => {
    const answers = Array.from({ length: 8 }, () =>
      fetch(`${site.server.url}/v1/models`, {
        keepalive: false,
        headers: { authorization: `Bearer ${own}`, connection: "close" },
      }).then(({ status }) => status),
    );
    return new Set(await Promise.all(answers));
  };
  await site.until(async () => (await asked()).has(200));
  const [token] = await site.books.ask(`select id from tokens where user_id = ${person.id}`);
  await person.send("PUT", "/api/token/?status_only=true", { id: Number(token?.["id"]), status: 2 });
  const beganMs = performance.now();
  let row = 0;
  // Eight connections may all have come to the same worker: in three rounds on end they have not.
  await site.until(async () => (row = (await asked()).has(200) ? 0 : row + 1) === 3);
  // A machine that is busy with other tests gets three times as long.
  expect(performance.now() - beganMs).toBeLessThan(3000);
  for (let round = 0; round < 5; round++) expect((await asked()).has(200)).toBe(false);
}, 30_000);

test("a worker that is killed is started again, and the other serves meanwhile", async () => {
  const before = pids();
  const seen = await callsWhile(async () => {
    process.kill(before.get("1") ?? 0, "SIGKILL");
    await site.until(() => [...pids()].some(([index, pid]) => index === "1" && pid !== before.get("1")));
    await site.until(() => site.server.log().split('"worker is serving"').length === 6, 20_000);
  });
  // What it had begun breaks with it.
  expect(seen[0] ?? 0).toBeLessThanOrEqual(LANES);
  expect(seen[200]).toBeGreaterThan(0);
  expect(pids().get("0")).toBe(before.get("0") ?? 0);
}, 60_000);

test("SIGTERM ends all of them in order, and everything that was answered is in the log once", async () => {
  const seen = await callsWhile(async () => expect(await site.server.stop()).toBe(0));
  expect(seen[500] ?? 0).toBe(0);
  expect(pids().size).toBe(0);
  await everythingIsLoggedOnce();
}, 60_000);

test("workers end when their parent is killed, and the next start takes over from them", async () => {
  await site.server.restart();
  await callsWhile(async () => {
    await site.until(() => call().then((status) => status === 200));
    await site.server.kill();
  });
  await site.server.restart();
  expect([...pids().keys()].toSorted()).toEqual(["0", "1"]);
  await site.until(() => call().then((status) => status === 200));
}, 90_000);

test("fewer workers: what the others' journals still hold is entered before the start", async () => {
  const sql = postgres(site.databaseUrl ?? "", { max: 1, onnotice: () => {} });
  const held = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  // Settlements wait in the journals as long as nobody can write rows of the log.
  const holding = sql.begin(async (tx) => {
    await tx`lock table logs in share row exclusive mode`;
    locked.resolve();
    await held.promise;
  });
  await locked.promise;
  const first = answered.length;
  await Promise.all(Array.from({ length: 24 }, call));
  expect(answered.length).toBe(first + 24);
  for (const pid of [site.server.pid ?? 0, ...pids().values()]) process.kill(pid, "SIGKILL");
  await site.server.kill();
  held.resolve();
  await holding;
  await sql.end();
  const waiting = site.server.audit();
  // One of an earlier call may not have come to the tables before they were held.
  expect(waiting.text).toMatch(/^2[4-9] accepted entries stand in the journal/m);
  const alone = await startServerProcess(
    { DATABASE_URL: site.databaseUrl ?? "", ENCRYPTION_KEY, WORKERS: "1" },
    { dataDir: site.server.dataDir },
  );
  expect(alone.log()).toContain("entered what a journal held");
  expect(await alone.stop()).toBe(0);
  await everythingIsLoggedOnce();
}, 60_000);

test("WORKERS is a number or auto, and more than one needs PostgreSQL; connections are shared out", () => {
  const DATABASE_URL = "postgres://somewhere/weir";
  const read = (source: Record<string, string>) => readEnv({ DATABASE_URL, ...source });
  expect(readEnv({})).toMatchObject({ workers: 1, worker: undefined, databasePool: 10 });
  expect(() => readEnv({ WORKERS: "2" })).toThrow("WORKERS is 2, but one process alone may write");
  expect(readEnv({ WORKERS: "auto" }).workers).toBe(1);
  for (const value of ["0", "65", "two", "1.5"]) expect(() => read({ WORKERS: value })).toThrow("WORKERS");
  expect(read({ WORKERS: "auto" }).workers).toBeLessThanOrEqual(8);
  expect(read({ WORKERS: "16" })).toMatchObject({ workers: 16, databasePool: 5 });
  expect(read({ WORKERS: "64" }).databasePool).toBe(3);
  expect(read({ DATABASE_POOL: "20" }).databasePool).toBe(20);
  expect(() => read({ DATABASE_POOL: "2" })).toThrow("DATABASE_POOL");
  const second = read({ WORKERS: "2", WEIR_WORKER: "1", DATA_DIR: "/data" });
  expect(second).toMatchObject({ dataDir: "/data/w1", keyDir: "/data", worker: 1 });
});
