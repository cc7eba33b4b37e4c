// Connections to PostgreSQL that break: nothing of a lost one meets the next, and nobody is left without an answer.
// Refuses to fake the protocol: a real server behind a real socket that is cut, refused or left silent.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect as connectSocket, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import type { Sql } from "postgres";
import { fixedQuery, flightOf, q } from "../../src/db/database.ts";
import { openPostgres, postgresDatabase } from "../../src/db/postgres.ts";
import { createPostgresDatabase } from "../support/postgres.ts";
import type { PostgresDatabase } from "../support/postgres.ts";
import { startSwitchTo } from "../support/tcp-switch.ts";
import { untilSo } from "../support/turns.ts";

const ROUNDS = 40;
/** An advisory lock of this file's own database. */
const LOCK = 7;
/** Looks at what is to be over at once; a timer's end is hundreds of times as far. */
const TURNS = 50;

let database: PostgresDatabase;
let line: Server;
let target: { host: string; port: number };
/** Whether the line leads anywhere; closed, it takes a connection and ends it at once, as a balancer without a server does. */
let isOpen = true;
let arrivals = 0;
const cables = new Set<Socket>();

beforeAll(async () => {
  database = await createPostgresDatabase();
  const url = new URL(database.url);
  target = { host: url.hostname, port: Number(url.port) };
  line = createServer((near) => {
    arrivals++;
    near.on("error", () => undefined);
    if (!isOpen) return void near.destroy();
    const far = connectSocket(target.port, target.host);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      cables.add(from);
      from.on("error", () => undefined);
      from.on("close", () => {
        cables.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  await new Promise<void>((resolve) => line.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  line.close();
  await database.drop();
});

function open(max: number): Sql {
  const url = new URL(database.url);
  url.hostname = "127.0.0.1";
  url.port = String((line.address() as AddressInfo).port);
  return openPostgres(url.href, max);
}

test("connections that a firewall has forgotten are given up, one long query on a pool is not, nor a pool at work", async () => {
  const cable = await startSwitchTo(database.url);
  // A door that is asked beside three lanes of tests has a second to answer.
  const ways = { silentMs: 1000, quietMs: 1500 };
  const client = openPostgres(cable.url, 3, ways);
  // Nothing stands between, so that the server knows whom it works for.
  const near = openPostgres(database.url, 3, ways);
  const three = (pool: Sql, seconds: number) =>
    Promise.all([1, 2, 3].map(() => outcome(pool.unsafe(`select pg_sleep(${seconds})`))));
  const [answered, refused] = [Array(3).fill("answered"), Array(3).fill("refused")];
  await Promise.all([three(client, 0.05), three(near, 0.05)]);
  // And where nobody says anything, those who wait behind the first are refused with it.
  const mute = createServer(() => undefined).listen(0, "127.0.0.1");
  const far = openPostgres(`postgres://127.0.0.1:${(mute.address() as AddressInfo).port}/x`, 1);
  const waiting = [1, 2, 3].map(() => inTime(far.unsafe("select 1"), 8000));
  const atWork = three(near, 3.5);
  await client.unsafe("select pg_sleep(2.5)");
  await cable.forget();
  expect(await Promise.all([three(client, 0), atWork, Promise.all(waiting)])).toEqual([
    refused,
    answered,
    refused,
  ]);
  mute.close();
  expect(await three(client, 0)).toEqual(answered);
  await Promise.all([client, near, far].map((pool) => pool.end({ timeout: 1 })));
  await cable.stop();
}, 20_000);

function cut(): void {
  for (const cable of cables) cable.destroy();
}

const outcome = (asked: PromiseLike<unknown>) =>
  Promise.resolve(asked).then(
    () => "answered",
    () => "refused",
  );

/** The promise's outcome, or "silent" where it has none in time. */
function inTime(asked: PromiseLike<unknown>, limitMs = 8000): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(() => resolve("silent"), limitMs);
  void outcome(asked).then((said) => {
    clearTimeout(timer);
    resolve(said);
  });
  return promise;
}

test("where nobody answers at the door reads are refused, and new ones at once, but nothing that writes; one sign of life ends it", async () => {
  const cable = await startSwitchTo(database.url);
  const client = openPostgres(cable.url, 2, { quietMs: 300 });
  await client.unsafe("create table if not exists notes (n int)");
  await cable.silence();
  const write = client.unsafe("insert into notes values (1)").then(
    () => "committed",
    (error: unknown) => String((error as { code?: string }).code),
  );
  const silent = { code: "DATABASE_SILENT" };
  let bodies = 0;
  const block = () => outcome(client.begin(async () => void bodies++));
  // Neither has begun.
  const waiting = block();
  const reads = ["select 1", "(select 1) union (select 2)", "with one as (select 1 as n) select n from one"];
  const refused = await Promise.allSettled(reads.map((text) => client.unsafe(text)));
  expect(refused).toMatchObject(reads.map(() => ({ status: "rejected", reason: silent })));
  // Nobody is asked any more, so that no timer and no socket has to be waited for.
  let isOver = false;
  const atOnce = Promise.all([Promise.allSettled([client.unsafe("select 1")]), waiting, block()]);
  void atOnce.then(() => (isOver = true));
  for (let turns = 0; turns < TURNS && !isOver; turns++)
    await new Promise((resolve) => setImmediate(resolve));
  expect(isOver).toBe(true);
  const [[next], ...blocks] = await atOnce;
  expect(next).toMatchObject({ status: "rejected", reason: silent });
  expect([...blocks, bodies]).toEqual(["refused", "refused", 0]);
  // Nobody waits for this one: it ends no process.
  void client.unsafe("select 1");
  await cable.restore();
  // It was lost on the way, as its connection tells.
  expect(await write).toMatch(/^(ECONNRESET|CONNECTION_CLOSED)$/);
  expect(await inTime(untilAnswered(client))).toBe("answered");
  const [row] = await client.unsafe("select count(*)::int as n from notes");
  expect(row?.["n"]).toBe(0);
  await client.end({ timeout: 1 });
  await cable.stop();
});

test("what a transaction was answered is a sign of life: who reads behind it is answered, whatever was silent before", async () => {
  const cable = await startSwitchTo(database.url);
  const mute = createServer(() => undefined).listen(0, "127.0.0.1");
  const pools = [1, 2].map(() => openPostgres(cable.url, 1, { quietMs: 300 }));
  await Promise.all(pools.map((pool) => pool.unsafe("select 1")));
  // What is open goes on, and at the door nobody answers any more.
  await cable.pointTo((mute.address() as AddressInfo).port);
  const [inSteps, atOnce] = pools as [Sql, Sql];
  // Both wait until the reads were refused, however long that takes on this machine.
  const holder = openPostgres(database.url, 1);
  await holder.unsafe("select pg_advisory_lock($1)", [LOCK]);
  const slow = "select pg_advisory_xact_lock_shared($1)";
  let meanwhile: Promise<string> | undefined;
  const over = [
    inSteps.begin(async (tx) => {
      await tx.unsafe(slow, [LOCK]);
      meanwhile = outcome(inSteps.unsafe("select 1"));
    }),
    postgresDatabase(atOnce).atomic(function* (tx) {
      yield* q(flightOf([fixedQuery(tx, slow, [LOCK])]));
    }, "at once"),
  ];
  const waiting = pools.map((pool) => outcome(pool.unsafe("select 1")));
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => "refused"));
  await holder.unsafe("select pg_advisory_unlock($1)", [LOCK]);
  const behind = pools.map(async (pool, at) => {
    await over[at];
    return outcome(pool.unsafe("select 1"));
  });
  expect(await Promise.all(behind)).toEqual(behind.map(() => "answered"));
  expect(await meanwhile).toBe("answered");
  await Promise.all([holder, ...pools].map((pool) => pool.end({ timeout: 1 })));
  mute.close();
  await cable.stop();
});

test("what is asked one after another goes over the connection that was used last, what is asked at once over as many as there are", async () => {
  const client = open(3);
  const pid = async () => Number((await client.unsafe("select pg_backend_pid() as pid"))[0]?.["pid"]);
  const atOnce = () => Promise.all([pid(), pid(), pid()]);
  expect(new Set(await atOnce()).size).toBe(3);
  const last = await pid();
  for (let nth = 0; nth < 6; nth++) expect(await pid()).toBe(last);
  expect(new Set(await atOnce()).size).toBe(3);
  await client.end();
});

test("whatever runs when connections are cut gets an answer, and the next queries are answered right", async () => {
  const client = open(3);
  for (let round = 0; round < ROUNDS; round++) {
    const running = Array.from({ length: 6 }, (_, at) =>
      at % 2 === 0
        ? client.unsafe("select generate_series(1, $1::int) as n", [2000])
        : client.begin(async (tx) => {
            await tx.unsafe("select 1");
            await tx.unsafe("select pg_sleep($1::float8)", [0.005]);
            await tx.unsafe("select 2");
          }),
    ).map((each) => inTime(each));
    for (let turns = 0; turns < round % 7; turns++) await new Promise((resolve) => setImmediate(resolve));
    cut();
    // Asked in the very moment in which the connections end.
    const late = [client.unsafe("select 1"), client.unsafe("select 1")].map((each) => inTime(each));
    expect([...(await Promise.all(running)), ...(await Promise.all(late))]).not.toContain("silent");
    const next = Array.from({ length: 3 }, () =>
      client.unsafe("select generate_series(1, $1::int) as n", [3]),
    );
    const rows = await Promise.all(next);
    expect(rows.map((each) => each.map((row) => Number(row["n"])))).toEqual(rows.map(() => [1, 2, 3]));
  }
  await client.end({ timeout: 1 });
}, 60_000);

test("a transaction that outlives its connection writes nothing more, on no connection", async () => {
  const client = open(1);
  await client.unsafe("create table if not exists steps (n int)");
  for (let round = 0; round < 10; round++) {
    const lost = client.begin(async (tx) => {
      await tx.unsafe("insert into steps values (1)");
      cut();
      // Another caller has the new connection by now.
      await outcome(client.unsafe("select 1"));
      await client.unsafe("select 1");
      await tx.unsafe("insert into steps values (2)");
    });
    expect(await inTime(lost)).toBe("refused");
    const [row] = await client.unsafe("select count(*)::int as n from steps");
    expect(row?.["n"]).toBe(0);
  }
  await client.end({ timeout: 1 });
});

test("a reservation refuses what waits in it when its connection is lost; one that got none takes nobody's place", async () => {
  const client = open(1);
  const reserved = await client.reserve();
  const asked = [1, 2, 3].map((n) => reserved.unsafe("select pg_sleep(5), $1::int", [n]).execute());
  cut();
  expect(await Promise.all(asked.map((each) => inTime(each)))).toEqual(["refused", "refused", "refused"]);
  reserved.release();
  await untilAnswered(client);
  const running = inTime(client.unsafe("select pg_sleep(5)"));
  await new Promise((resolve) => setImmediate(resolve));
  const waiting = client.reserve();
  cut();
  expect([await running, await inTime(waiting)]).toEqual(["refused", "answered"]);
  (await waiting).release();
  isOpen = false;
  cut();
  expect(await inTime(client.unsafe("select 1"))).toBe("refused");
  expect(await inTime(client.reserve())).toBe("refused");
  isOpen = true;
  expect(await inTime(untilAnswered(client))).toBe("answered");
  await client.end({ timeout: 1 });
});

test("a transaction sent at once comes in whole, also where the server has forgotten the name of a statement", async () => {
  const client = open(1);
  const db = postgresDatabase(client);
  await client.unsafe("create table if not exists parts (n int)");
  const texts = ["insert into parts values ($1)", "insert into parts select $1::int"];
  const enter = () =>
    db.atomic(function* (tx) {
      yield* q(flightOf(texts.map((text) => fixedQuery(tx, text, [1]))));
    }, "at once");
  await enter();
  for (const [round, text] of texts.entries()) {
    const [row] = await client.unsafe("select name from pg_prepared_statements where statement = $1", [text]);
    await client.unsafe(`deallocate "${row?.["name"]}"`, [], { prepare: false });
    await enter();
    const [sum] = await client.unsafe("select count(*)::int as n from parts");
    expect(sum?.["n"]).toBe(2 * (round + 2));
  }
  await client.end({ timeout: 1 });
});

test("where nobody answers, queries are refused in time and connections are tried at a measured pace", async () => {
  const client = open(4);
  expect(await outcome(client.unsafe("select 1"))).toBe("answered");
  isOpen = false;
  cut();
  arrivals = 0;
  const until = performance.now() + 1500;
  while (performance.now() < until)
    expect(await Promise.all([1, 2, 3, 4].map(() => inTime(client.unsafe("select 1"))))).not.toContain(
      "silent",
    );
  // Four places, each at most every half second once it has failed a few times.
  expect(arrivals).toBeLessThan(60);
  isOpen = true;
  expect(await inTime(untilAnswered(client))).toBe("answered");
  await client.end({ timeout: 1 });
});

test("who listens hears again after the server was away, without asking", async () => {
  const client = open(2);
  let heard = 0;
  await client.listen("lost", () => void heard++);
  isOpen = false;
  cut();
  arrivals = 0;
  // Several tries fail meanwhile.
  const until = performance.now() + 10_000;
  await untilSo(() => arrivals >= 4 || performance.now() >= until);
  expect(arrivals).toBeGreaterThan(3);
  isOpen = true;
  while (heard === 0 && performance.now() < until)
    await inTime(client.unsafe("select pg_notify('lost', 'x'), pg_sleep(0.02)"));
  expect(heard).toBeGreaterThan(0);
  await client.end({ timeout: 1 });
});

async function untilAnswered(client: Sql): Promise<void> {
  const untilMs = performance.now() + 2000;
  while ((await outcome(client.unsafe("select 1"))) !== "answered") {
    if (performance.now() > untilMs) throw new Error("never back");
    await new Promise((resolve) => setImmediate(resolve));
  }
}
