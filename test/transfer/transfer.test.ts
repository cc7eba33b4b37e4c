// The whole site as lines: awkward rows of every table go from the embedded database to PostgreSQL and back, and the lines are
// the same bytes each time. A run that was ended anywhere goes on there; what is no whole export is refused, and by its place.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getTableColumns, sql } from "drizzle-orm";
import { getTableConfig } from "drizzle-orm/pg-core";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { schema } from "../../drizzle/postgres.ts";
import { connect } from "../../src/db/connect.ts";
import type { ConnectSettings } from "../../src/db/connect.ts";
import type { Database } from "../../src/db/database.ts";
import { openSnapshot } from "../../src/db/snapshot.ts";
import { settleIn } from "../../src/core/ledger/installation.ts";
import { insertRows } from "../../src/import/insert.ts";
import { enterLines, release } from "../../src/transfer/enter.ts";
import { exportLines } from "../../src/transfer/export.ts";
import { apart, Proofs, TransferRefused } from "../../src/transfer/format.ts";
import type { End } from "../../src/transfer/format.ts";
import { linesOf, textOf as decodedOf } from "../../src/transfer/lines.ts";
import { refuseBusy } from "../../src/transfer/move.ts";
import { ALL_TABLES, CARRIED } from "../../src/transfer/tables.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";

const OPTIONS = { release: "test", key: { fingerprint: "" } };
const ROWS = 12;
const TEXTS = [
  "",
  "'quotes' \"and\" \\slashes\\",
  "中文与 emoji 🎲",
  "line\nfeed\r\n\ttab \u2028 \u0085",
  '{"json":[1,null]}',
  "long ".repeat(200),
];
const WHOLES = [0, -1, 1, 2 ** 31 - 1, -(2 ** 31)];
const BIGS = [...WHOLES, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER];
const REALS = [0, 0.1, -1.5, 1 / 3, 5e-324, 1.7976931348623157e308];

/** Names of columns in which no two rows may be alike, alone or together. */
function distinctColumns(table: PgTable): Set<string> {
  const { primaryKeys, indexes, columns } = getTableConfig(table);
  const unique = indexes.flatMap(({ config }) => (config.unique ? config.columns : []));
  return new Set([
    ...columns.filter(({ primary }) => primary).map(({ name }) => name),
    ...primaryKeys.flatMap(({ columns: parts }) => parts.map(({ name }) => name)),
    ...unique.map((part) => ("name" in part ? String(part.name) : "")),
  ]);
}

function valueFor(column: PgColumn, isDistinct: boolean, row: number): unknown {
  const pick = <T>(from: readonly T[]): T => from[(row * 7 + column.name.length) % from.length] as T;
  if (!column.notNull && row % 3 === 0) return null;
  switch (column.getSQLType()) {
    case "text":
      return isDistinct ? `${pick(TEXTS).slice(0, 200)} ${row}` : pick(TEXTS);
    case "boolean":
      return row % 2 === 0;
    case "double precision":
      return pick(REALS);
    case "integer":
      return isDistinct ? row + 1 : pick(WHOLES);
    default:
      return isDistinct ? row + 1 : pick(BIGS);
  }
}

/** Rows of every table that is carried, none of them like another. */
async function fill(db: Database): Promise<void> {
  for (const { name } of CARRIED) {
    const table = schema[name] as unknown as PgTable;
    const distinct = distinctColumns(table);
    const rows = Array.from({ length: ROWS }, (_, row) =>
      Object.fromEntries(
        Object.entries(getTableColumns(table)).map(([field, column]) => [
          field,
          valueFor(column as PgColumn, distinct.has((column as PgColumn).name), row),
        ]),
      ),
    );
    if (name === "users") Object.assign(rows[2] ?? {}, { quota: 60, displayName: "\0of\0 old" });
    if (name === "tokens") Object.assign(rows[3] ?? {}, { remainQuota: 10 });
    if (name === "tasks") Object.assign(rows[5] ?? {}, { data: "very long ".repeat(100_000) });
    if (name === "logs")
      rows.forEach((row, at) => (row["createdAt"] = at === 0 ? 0 : Date.UTC(2025, at, 1) / 1000 - (at % 2)));
    await db.atomic((tx) => insertRows(db, tx, { table: name, rows }));
  }
}

async function textOf(settings: ConnectSettings): Promise<string> {
  const snapshot = await openSnapshot(settings);
  let text = "";
  for await (const part of exportLines(snapshot, OPTIONS)) text += part.text;
  await snapshot.close();
  return text;
}

async function* pieces(text: string, size = 100_000): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
}

const bringIn = (db: Database, text: string, tell?: (table: string) => void) =>
  enterLines(db, linesOf(pieces(text)), tell);

/** What it was refused with; undefined: it was not. */
const refusalOf = (entering: Promise<unknown>): Promise<Error | undefined> =>
  entering.then(
    () => undefined,
    (error: unknown) => error as Error,
  );

let directory = "";
let postgres: TestDatabase;
let source: ConnectSettings;
let whole = "";
let serial = 0;

const fileIn = (): ConnectSettings => ({ dataDir: join(directory, String(++serial)), databaseUrl: "" });

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "weir-transfer-"));
  postgres = await createTestDatabase("postgres");
  source = fileIn();
  const db = await connect(source);
  await fill(db);
  const { users, marks, reservations, limitUses } = db.t;
  // An id that was given out and is no more.
  const [gone] = await db.orm.insert(users).values({ username: "gone", usernameKey: "gone" }).returning();
  await db.orm.delete(users).where(sql`${users.id} = ${gone?.id}`);
  await db.orm.insert(marks).values([
    { key: "database", value: 77 },
    { key: "version:users", value: 5 },
  ]);
  await db.orm.insert(limitUses).values({
    nodeId: "n",
    kind: "user",
    ownerId: 1,
    held: 1,
    calls: 1,
    requests: 1,
    tokens: 1,
    expiresAt: 1,
  });
  await db.orm
    .insert(reservations)
    .values({ requestId: "open", userId: 3, tokenId: 4, amount: 40, nodeId: "n", expiresAt: 1 });
  await db.close();
  whole = await textOf(source);
});
afterAll(async () => {
  await postgres.drop();
  rmSync(directory, { recursive: true, force: true });
});

test("every table of the schema is classified, and has a key by which its rows are in order", () => {
  expect([...ALL_TABLES].toSorted()).toEqual(Object.keys(schema).toSorted());
  for (const { key } of CARRIED) expect(key.length).toBeGreaterThan(0);
});

test("to PostgreSQL and back: the same bytes, the next ids behind the last that were given out", async () => {
  const there: ConnectSettings = { dataDir: "", databaseUrl: postgres.databaseUrl ?? "" };
  const db = await connect(there);
  await bringIn(db, whole);
  expect(String(await refusalOf(settleIn(db, directory, false)))).toContain("not all of it is there");
  await release(db);
  const own = await textOf(there);
  expect(own === whole).toBe(true);
  const months = await db.orm
    .select({ name: sql<string>`relname` })
    .from(sql`pg_class`)
    .where(sql`relname like 'logs_20%' and relkind = 'r'`);
  expect(months.map(({ name }) => name)).toContain("logs_2025_05");
  const back = fileIn();
  const file = await connect(back);
  await bringIn(file, own);
  await release(file);
  for (const each of [db, file]) {
    const [next] = await each.orm
      .insert(each.t.users)
      .values({ username: "next", usernameKey: "next" })
      .returning();
    expect(next?.id).toBe(ROWS + 2);
    await each.orm.delete(each.t.users).where(sql`${each.t.users.id} = ${next?.id}`);
    const left = [each.t.reservations, each.t.limitUses, each.t.auditMonths];
    for (const table of left) expect(await each.orm.select().from(table)).toEqual([]);
  }
  await file.close();
  await db.close();
  const before = whole.split("\n").slice(1).join("\n");
  expect((await textOf(back)).split("\n").slice(1).join("\n") === before).toBe(true);
});

test("what open calls hold stands in the balances again; numbers of one database and signs of life stay behind", () => {
  const rows = whole
    .split("\n")
    .filter((line) => line.startsWith('{"table"'))
    .map((line) => JSON.parse(line) as { table: string; row: Record<string, unknown> });
  const find = (table: string, id: number) =>
    rows.find((each) => each.table === table && each.row["id"] === id)?.row;
  expect(find("users", 3)).toMatchObject({ quota: 100, display_name: "of old" });
  expect(find("tokens", 4)).toMatchObject({ remain_quota: 50 });
  const marks = rows.filter(({ table }) => table === "marks").map(({ row }) => row["key"]);
  expect(marks).toHaveLength(ROWS);
  for (const { table, row } of rows)
    if (table === "nodes") expect(row).toMatchObject({ journaled: row["mark"], lease_until: 0 });
  expect(JSON.parse(whole.slice(0, whole.indexOf("\n")))).toMatchObject({
    weir: "export",
    format: 1,
    database: 77,
    counters: { users: ROWS + 1 },
  });
});

test("a run that was ended after any batch goes on there, and ends like one that was not", async () => {
  const into = fileIn();
  let kills = 0;
  for (let batches = 1; batches > 0; kills++) {
    const db = await connect(into);
    batches = 0;
    // Each run gets a little further than the last one.
    const ended = await refusalOf(
      bringIn(db, whole, () => {
        if (++batches === 6) throw new Error("killed");
      }),
    );
    await db.close();
    if (!ended) break;
    expect(String(ended)).toContain("killed");
  }
  expect(kills).toBeGreaterThan(6);
  const db = await connect(into);
  await bringIn(db, whole);
  await release(db);
  await db.close();
  expect((await textOf(into)) === whole).toBe(true);
});

test("what an earlier build exported under load comes in: how far its journals were is not waited for", async () => {
  const rows = whole.split("\n").slice(1, -2);
  const old = rows.map((line) =>
    line.startsWith('{"table":"nodes"')
      ? line.replace(/"journaled":-?\d+/, `"journaled":${Number.MAX_SAFE_INTEGER - 1}`)
      : line,
  );
  expect(old).not.toEqual(rows);
  const proofs = new Proofs();
  for (const line of old) {
    const { table } = JSON.parse(line) as { table: string };
    for (const each of CARRIED) if (each.sqlName === table) proofs.add(each, `${line}\n`);
  }
  const end = JSON.stringify({ end: { tables: proofs.end() } });
  const text = [whole.slice(0, whole.indexOf("\n")), ...old, end, ""].join("\n");
  const into = fileIn();
  const db = await connect(into);
  const { tables } = await bringIn(db, text);
  await release(db);
  await db.close();
  const back = await textOf(into);
  expect(back === whole).toBe(true);
  // What the target is proved by.
  const { end: proved } = JSON.parse(back.trimEnd().split("\n").at(-1) ?? "") as End;
  expect(apart(tables, proved.tables)).toEqual([]);
});

test("beside settled calls that wait in a journal nothing is moved", async () => {
  const at = fileIn();
  const db = await connect(at);
  const node = { nodeId: "0123456789abcdef", history: "h", mark: 4, entered: 4 };
  await db.orm.insert(db.t.nodes).values({ ...node, journaled: 4 });
  const refusal = async () => {
    const snapshot = await openSnapshot(at);
    try {
      await refuseBusy(snapshot, [at.dataDir]);
      return "";
    } catch (error) {
      return String(error);
    } finally {
      await snapshot.close();
    }
  };
  expect(await refusal()).toBe("");
  await db.orm.update(db.t.nodes).set({ journaled: 6 });
  expect(await refusal()).toContain("2 settled calls stand in a journal");
  // The directory's own journal has lost them: the start that names them would be another database's after a move.
  writeFileSync(join(at.dataDir, "node.id"), `${node.nodeId}\n`);
  expect(await refusal()).toContain("2 settled calls stand in a journal");
  await db.close();
});

describe("refused", () => {
  const lines = () => whole.trimEnd().split("\n");
  const cases: [what: string, text: () => string, says: RegExp][] = [
    ["something else", () => "id,name\n1,a\n", /no export of weir/],
    ["another format", () => whole.replace('"format":1', '"format":2'), /format 2/],
    [
      "another release's tables",
      () => whole.replace(/"schema":"\w+"/, '"schema":"0123456789abcdef"'),
      /release test/,
    ],
    ["one that was cut between lines", () => `${lines().slice(0, -1).join("\n")}\n`, /no end/],
    ["one that was cut within a line", () => whole.slice(0, -20), /cut off/],
    ["a line that is none", () => whole.replace('{"table":"users"', '{"table":"user'), /line 2 /],
    [
      "a table that is none",
      () => whole.replace('{"table":"users"', '{"table":"people"'),
      /line 2 .*no table/,
    ],
    [
      "a value of another kind",
      () => whole.replace(/"role":-?\d+/, '"role":"admin"'),
      /line 2 .*users\.role/,
    ],
    ["a figure that somebody changed", () => whole.replace(/"quota":-?\d+/, '"quota":5'), /damaged: users/],
    [
      "a row that somebody took out",
      () => [...lines().slice(0, 1), ...lines().slice(2), ""].join("\n"),
      /damaged: users/,
    ],
  ];
  test.each(cases)("%s", async (_, text, says) => {
    const db = await connect(fileIn());
    const refusal = await refusalOf(bringIn(db, text()));
    expect(String(refusal)).toMatch(says);
    expect(refusal).toBeInstanceOf(TransferRefused);
    await db.close();
  });

  test("bytes that are no text, by the number of their line, however they come", async () => {
    const good = new TextEncoder().encode("一\n二二\n三 🎲\n四\n");
    async function* cut(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    }
    const read = async (bytes: Uint8Array, size: number) => {
      let text = "";
      for await (const piece of decodedOf(cut(bytes, size))) text += piece;
      return text;
    };
    for (const size of [1, 2, 3, 5, 8, good.length]) {
      expect(await read(good, size)).toBe("一\n二二\n三 🎲\n四\n");
      for (let at = 0; at < good.length; at++) {
        if (good[at] === 0x0a) continue;
        const line = good.subarray(0, at).filter((byte) => byte === 0x0a).length + 1;
        const refusal = await refusalOf(read(good.with(at, 0xff), size));
        expect([at, size, refusal]).toEqual([at, size, expect.any(TransferRefused)]);
        expect([at, size, String(refusal)]).toEqual([at, size, expect.stringContaining(`line ${line} `)]);
      }
      expect(String(await refusalOf(read(good.subarray(0, -2), size)))).toContain("line 4 ");
    }
  });

  test("a database that has anything in it, and another export than the one that began", async () => {
    const used = await connect(fileIn());
    await used.orm.insert(used.t.setups).values({ version: "1", initializedAt: 1 });
    expect(String(await refusalOf(bringIn(used, whole)))).toContain("setups has rows");
    await used.close();
    const begun = await connect(fileIn());
    expect(String(await refusalOf(bringIn(begun, whole.slice(0, whole.length / 2))))).toContain("cut off");
    const other = whole.replace('"database":77', '"database":78');
    expect(String(await refusalOf(bringIn(begun, other)))).toContain("another export");
    await begun.close();
  });
});
