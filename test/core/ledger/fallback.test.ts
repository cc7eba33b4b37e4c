// A PostgreSQL that is set back to an older state under a running program: noticed while nobody calls, entered again from the
// journal, told everywhere; and refused by name where the journal no longer has it. Refuses to fake the older state: the
// server's files are put back as they were.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { answer, gate, startFakeUpstream } from "../../support/fake-upstream.ts";
import type { FakeUpstream } from "../../support/fake-upstream.ts";
import { startOperator } from "../../support/operator.ts";
import type { Operator } from "../../support/operator.ts";
import { startOwnPostgres } from "../../support/own-postgres.ts";
import type { OwnPostgres } from "../../support/own-postgres.ts";
import { startServerProcess } from "../../support/server.ts";
import type { ServerProcess } from "../../support/server.ts";
import { untilSo } from "../../support/turns.ts";

const MODEL = "gpt-4o-mini";

let database: OwnPostgres;
let server: ServerProcess;
let upstream: FakeUpstream;
let operator: Operator;

beforeAll(async () => {
  database = await startOwnPostgres();
  upstream = await startFakeUpstream();
  server = await startServerProcess({ DATABASE_URL: database.url });
  operator = await startOperator(server, { base_url: upstream.url, models: MODEL });
}, 60_000);
afterAll(async () => {
  await server.remove();
  await database.remove();
  upstream.stop();
}, 60_000);

async function call(): Promise<{ status: number; code: string | null }> {
  const answer = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${operator.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "hi" }] }),
  });
  await answer.text();
  return { status: answer.status, code: answer.headers.get("x-weir-error-code") };
}

async function callTimes(times: number): Promise<void> {
  for (let made = 0; made < times; made++) expect((await call()).status).toBe(200);
}

/** Past the program; 0 while the server is on its way up. */
async function rowsThere(): Promise<number> {
  const books = postgres(database.url, { max: 1, onnotice: () => {}, connect_timeout: 2 });
  try {
    const [row] = await books`select count(*) as rows from logs where type = 2`;
    return Number(row?.["rows"]);
  } catch {
    return 0;
  } finally {
    await books.end();
  }
}

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN);
}

async function open(kind: string): Promise<{ params: Record<string, string> }[]> {
  try {
    const found = await operator.send("GET", `/api/inbox/?state=open&kind=${kind}`);
    return (found as { items: { params: Record<string, string> }[] }).items;
  } catch {
    // The session is read from a database that is on its way up.
    return [];
  }
}

/** The write that begins with the position is no longer whole, as when its file was used anew. */
function damage(dataDir: string, position: number): void {
  for (const name of readdirSync(dataDir).filter((each) => /^journal-\d+\.log$/.test(each))) {
    const path = join(dataDir, name);
    const at = readFileSync(path, "latin1").search(new RegExp(`weir2 [0-9a-f]{16} ${position} `));
    if (at < 0) continue;
    const file = openSync(path, "r+");
    writeSync(file, "lost!", at);
    closeSync(file);
    return;
  }
  throw new Error(`no write begins with position ${position}`);
}

const ready = async () => {
  const answer = await fetch(`${server.url}/readyz`);
  return { code: answer.status, ...((await answer.json()) as { status: string }) };
};

test("what the older state lacks is entered again at once while nobody calls, once, and every place tells of it", async () => {
  await callTimes(5);
  await untilSo(async () => (await rowsThere()) === 5);
  await database.keep();
  await callTimes(7);
  await untilSo(async () => (await rowsThere()) === 12);
  await database.setBack();
  const begun = performance.now();
  await untilSo(async () => (await rowsThere()) === 12);
  // Its connections are made anew and its mark is looked at once a second.
  expect(performance.now() - begun).toBeLessThan(15_000);
  expect(await metric("weir_database_falls_total")).toBeGreaterThanOrEqual(1);
  expect(server.log()).toContain("the database fell back");
  await untilSo(async () => (await open("database_fell_back")).length === 1);
  const [item] = await open("database_fell_back");
  expect(item?.params["text_en"]).toMatch(
    /^Its settlements at the positions \d+ to \d+ are entered again from its journal\.$/,
  );
  expect(await ready()).toMatchObject({ code: 200 });
  await callTimes(1);
  await untilSo(async () => (await rowsThere()) === 13);
  expect(server.audit()).toMatchObject({ code: 0 });
}, 60_000);

test("an idle node notices an older state that lacks nothing of it", async () => {
  const before = await metric("weir_database_falls_total");
  await database.keep();
  // A renewal of the lease, and nothing else.
  const books = postgres(database.url, { max: 1, onnotice: () => {} });
  const renewedAt = async () => Number((await books`select max(updated_at) as at from nodes`)[0]?.["at"]);
  const kept = await renewedAt();
  await untilSo(async () => (await renewedAt()) > kept);
  await books.end();
  await database.setBack();
  await untilSo(async () => (await metric("weir_database_falls_total")) > before);
  expect(await rowsThere()).toBe(13);
}, 60_000);

test("what an open call near zero had reserved is taken again, and nobody else spends it", async () => {
  const books = postgres(database.url, { max: 1, onnotice: () => {}, connect_timeout: 2 });
  const ask = async (run: () => Promise<postgres.Row[]>): Promise<number> =>
    Number((await run().catch(() => []))[0]?.["units"] ?? Number.NaN);
  const balance = () => ask(() => books`select quota as units from users where id = 1`);
  const held = () => ask(() => books`select coalesce(sum(amount), 0) as units from reservations`);
  const change = async (units: number) =>
    void (await operator.send("PUT", "/api/user/", { id: 1, quota_change: units, quota_reason: "a test" }));
  const price = 2000;
  await operator.send("PUT", "/api/option/", {
    key: "ModelPrice",
    value: JSON.stringify({ [MODEL]: price / 500_000 }),
  });
  const before = await balance();
  await change(3000 - before);
  await database.keep();
  await untilSo(async () => (await ready()).code === 200 && (await balance()) === 3000);
  const door = gate();
  upstream.script({ ...answer("hello"), before: door });
  const asked = upstream.requests.length;
  const first = call();
  await upstream.request(asked);
  expect(await held()).toBe(price);
  // By a renewal of its lease the node knows the older state for one.
  const renewedAt = () => ask(() => books`select max(updated_at) as units from nodes`);
  const kept = await renewedAt();
  await untilSo(async () => (await renewedAt()) > kept);
  await database.setBack();
  await untilSo(async () => (await held()) === price);
  expect(await balance()).toBe(3000 - price);
  expect(await call()).toEqual({ status: 429, code: "quota_held" });
  door.open();
  expect((await first).status).toBe(200);
  await untilSo(async () => (await held()) === 0 && (await balance()) === 3000 - price);
  await change(before);
  await books.end();
}, 60_000);

test("what the journal no longer has stops the node by name: no call is answered until a person has decided", async () => {
  await database.keep();
  const books = postgres(database.url, { max: 1, onnotice: () => {} });
  const [row] = await books`select mark from nodes`;
  await books.end();
  await callTimes(4);
  await untilSo(async () => (await rowsThere()) === 18);
  damage(server.dataDir, Number(row?.["mark"]) + 2);
  await database.setBack();
  await untilSo(async () => (await ready()).status === "stopped");
  expect(await ready()).toMatchObject({ code: 503 });
  const asked = upstream.requests.length;
  expect(await call()).toEqual({ status: 503, code: "ledger_down" });
  expect(upstream.requests).toHaveLength(asked);
  expect(await metric("weir_node_stopped")).toBe(1);
  await untilSo(async () => (await open("node_stopped")).length === 1);
  const [item] = await open("node_stopped");
  expect(item?.params["reason_en"]).toContain("weir journal check");
  await server.stop();
  // Nor does it start; the doctor and the journal say which positions.
  const refused: unknown = await server.restart().catch((error: unknown) => error);
  expect(String(refused)).toMatch(/journal (is|are) missing or damaged/);
  expect(server.run(["doctor"]).text).toContain("missing or damaged");
  const checked = server.run(["journal", "check"]);
  expect(checked.code).toBe(1);
  const [, span = ""] = /weir journal skip (\d+-\d+)/.exec(checked.text) ?? [];
  expect(server.run(["journal", "skip", span])).toMatchObject({ code: 0 });
  await server.restart();
  expect((await call()).status).toBe(200);
  await server.stop();
  expect(server.audit()).toMatchObject({ code: 0 });
}, 60_000);
