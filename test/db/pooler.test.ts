// A real pgbouncer before PostgreSQL, in each of its modes: told apart, used as far as it goes, refused with what to set.
// Refuses to stand in for one: named statements, LISTEN and lost connections behave as the pooler makes them.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eq, sql } from "drizzle-orm";
import { isAway } from "../../src/db/away.ts";
import { connect } from "../../src/db/connect.ts";
import type { ConnectSettings } from "../../src/db/connect.ts";
import { fixedQuery, flightOf, q, rawQuery } from "../../src/db/database.ts";
import type { Database } from "../../src/db/database.ts";
import { sqlState } from "../../src/db/sql-state.ts";
import { readEnv } from "../../src/env.ts";
import { poolerMode } from "../../src/db/pooler.ts";
import { startPgbouncer } from "../support/pgbouncer.ts";
import type { Pgbouncer } from "../support/pgbouncer.ts";
import { createPostgresDatabase } from "../support/postgres.ts";
import type { PostgresDatabase } from "../support/postgres.ts";
import { untilSo } from "../support/turns.ts";

let database: PostgresDatabase;
/** As many server connections as a node has. */
let session: Pgbouncer;
/** Fewer, so that the connections of a node take turns on them. */
let transaction: Pgbouncer;
beforeAll(async () => {
  database = await createPostgresDatabase();
  session = await startPgbouncer(database.url, { mode: "session" });
  transaction = await startPgbouncer(database.url, { mode: "transaction", poolSize: 3 });
}, 30_000);
afterAll(async () => {
  await Promise.all([session.remove(), transaction.remove()]);
  await database.drop();
});

const place = (databaseUrl: string, databaseDirectUrl = ""): ConnectSettings => ({
  dataDir: "",
  databaseUrl,
  databaseDirectUrl,
  databasePool: 8,
});

/** The sentence that the start ends with; a database that opens is closed again. */
const refusal = (settings: ConnectSettings): Promise<string> =>
  connect(settings).then(
    async (db) => {
      await db.close();
      return "it was opened";
    },
    (error: unknown) => String(error),
  );

test("the mode is told by who answers, whatever the size of the pool", async () => {
  const others = await Promise.all([
    startPgbouncer(database.url, { mode: "transaction", poolSize: 1 }),
    startPgbouncer(database.url, { mode: "statement" }),
    startPgbouncer(database.url, { mode: "session", poolSize: 1 }),
  ]);
  const [one, statement, exhausted] = others;
  expect(
    await Promise.all([database, session, transaction, one, statement].map(({ url }) => poolerMode(url))),
  ).toEqual(["none", "session", "transaction", "transaction", "statement"]);
  expect(await poolerMode(exhausted.url).catch(String)).toContain("pool_size must be at least");
  expect(await refusal(place(statement.url, database.url))).toContain("set pool_mode = session");
  await Promise.all(others.map((each) => each.remove()));
}, 30_000);

test("a session whose process vanishes in a transaction gives its rows back, and none compiles its statements; poolers, which refuse that, are not asked for it", async () => {
  const setting = async (settings: ConnectSettings) => {
    const db = await connect(settings);
    const asked = sql`select current_setting('idle_in_transaction_session_timeout') as limit, current_setting('jit') as jit`;
    const [row] = await rawQuery(db.orm, asked);
    await db.close();
    return [row?.["limit"], row?.["jit"]];
  };
  expect(await setting(place(database.url))).toEqual(["8s", "off"]);
  expect(await setting(place(session.url))).toEqual(["0", "on"]);
});

test("what a pooler says of its servers is an outage, what it refuses is none", () => {
  const away = (message: string) =>
    isAway(new Error("query", { cause: Object.assign(new Error(message), { code: "08P01" }) }));
  for (const text of [
    "query_wait_timeout",
    "server login has been failing, try again later (server_login_retry)",
    "pgbouncer cannot connect to server",
    "no more connections allowed (max_client_conn)",
  ])
    expect([text, away(text)]).toEqual([text, true]);
  for (const text of [
    "unsupported startup parameter: tcp_keepalives_idle",
    "invalid message format",
    "no such database: x",
  ])
    expect([text, away(text)]).toEqual([text, false]);
});

test("a pooler in transaction mode is refused without a way past it, with what to set", async () => {
  const sentence = await refusal(place(transaction.url));
  expect(sentence).toContain("DATABASE_URL names a database that cannot be used");
  expect(sentence).toContain("DATABASE_DIRECT_URL to the address of PostgreSQL itself");
  // No way past it either.
  const twice = await refusal(place(transaction.url, transaction.url));
  expect(twice).toContain(
    "DATABASE_DIRECT_URL names a database that cannot be used: a pooler in transaction mode",
  );
});

test("DATABASE_DIRECT_URL may stand in a file, and says nothing without DATABASE_URL", () => {
  const path = join(tmpdir(), `weir-direct-${process.pid}`);
  writeFileSync(path, `${database.url}\n`);
  const read = readEnv({ DATABASE_URL: transaction.url, DATABASE_DIRECT_URL_FILE: path });
  expect([read.databaseUrl, read.databaseDirectUrl]).toEqual([transaction.url, database.url]);
  rmSync(path);
  expect(() => readEnv({ DATABASE_DIRECT_URL: database.url })).toThrow("DATABASE_URL is empty");
  expect(() => readEnv({ DATABASE_URL: database.url, DATABASE_DIRECT_URL: "mysql://there" })).toThrow(
    "DATABASE_DIRECT_URL must start with postgres://",
  );
});

test("a way past the pooler that leads to another database is refused", async () => {
  const other = await createPostgresDatabase();
  for (const pooler of [session, transaction])
    expect(await refusal(place(pooler.url, other.url))).toContain("it is not the one of DATABASE_URL");
  await other.drop();
});

describe.each([
  ["session mode, and nothing else set", () => [session, place(session.url)] as const],
  ["session mode, and a way past it", () => [session, place(session.url, database.url)] as const],
  ["transaction mode, and a way past it", () => [transaction, place(transaction.url, database.url)] as const],
])("%s", (_, setting) => {
  interface Node {
    db: Database;
    ids: string[];
    lost: number;
  }
  let pooler: Pgbouncer;
  let nodes: [Node, Node];
  async function startNode(settings: ConnectSettings): Promise<Node> {
    const node: Node = { db: await connect(settings), ids: [], lost: 0 };
    await node.db.onChange("channels", {
      changed: (ids) => void node.ids.push(...ids),
      lost: () => void node.lost++,
    });
    return node;
  }
  beforeAll(async () => {
    const [own, settings] = setting();
    pooler = own;
    nodes = [await startNode(settings), await startNode(settings)];
  }, 20_000);
  afterAll(async () => {
    await Promise.all(nodes.map(({ db }) => db.close()));
  });

  test("statements and transactions of many callers are answered right", async () => {
    const [{ db }] = nodes;
    const { marks } = db.t;
    const rounds = Array.from({ length: 40 }, async (_each, number) => {
      // The same text on every connection, which is what a name would stand for.
      const [read] = await fixedQuery(db.orm, "select $1::int + 1 as n", [number]);
      const key = `pooled:${number}`;
      const found = await db.atomic(function* (tx) {
        yield* q(tx.insert(marks).values({ key, value: number }).onConflictDoNothing());
        const [rows] = yield* q(
          flightOf([
            fixedQuery(tx, "update marks set value = value + 1 where key = $1 returning value", [key]),
            fixedQuery(tx, "select count(*) as n from marks where key = $1", [key]),
          ]),
        );
        yield* q(tx.delete(marks).where(eq(marks.key, key)));
        return Number(rows?.[0]?.["value"]);
      });
      // The same in one go with its commit; and one that fails in the middle, of which nothing stands.
      const add = "insert into marks (key, value) values ($1, $2) returning value";
      const drop = "delete from marks where key = $1 returning value";
      const sent = await db.atomic(function* (tx) {
        const flight = flightOf([fixedQuery(tx, add, [key, number]), fixedQuery(tx, drop, [key])]);
        return Number((yield* q(flight))[1]?.[0]?.["value"]);
      }, "at once");
      const failed = db.atomic(function* (tx) {
        const added = [key, `${key}-behind`].map((each) => fixedQuery(tx, add, [each, number]));
        yield* q(
          flightOf([...added.slice(0, 1), fixedQuery(tx, "select 1 / $1::int", [0]), ...added.slice(1)]),
        );
      }, "at once");
      const error = await failed.catch(sqlState);
      return [Number(read?.["n"]), found, sent, error];
    });
    expect(await Promise.all(rounds)).toEqual(
      rounds.map((_each, number) => [number + 1, number + 1, number, "22012"]),
    );
    expect(await fixedQuery(db.orm, "select key from marks where key like 'pooled:%'", [])).toEqual([]);
  }, 20_000);

  test("changes are heard by id, and again after the pooler was killed and came back", async () => {
    const [here, there] = nodes;
    await here.db.announce("channels", [7]);
    await untilSo(() => there.ids.includes("7"));
    expect(there.lost).toBe(0);
    await pooler.kill();
    expect(await here.db.ping().catch(() => "away")).toBe("away");
    await pooler.start();
    await untilSo(() => here.db.ping().catch(() => false));
    // Both nodes are back where each of them hears the other.
    for (const [teller, listener, from] of [
      [here, there, 100],
      [there, here, 200],
    ] as const) {
      let next: number = from;
      await untilSo(async () => {
        await teller.db.announce("channels", [next++]).catch(() => undefined);
        return listener.ids.some((id) => Number(id) >= from);
      });
    }
  }, 20_000);
});
