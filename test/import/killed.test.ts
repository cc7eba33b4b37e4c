// An import that is killed goes on where it stopped: the command as a process, killed as it begins a step, then run again to
// its end; what stands there is what an undisturbed one leaves. A sample of places in the run, ten in the long one.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPostgresDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import type { PostgresDatabase } from "../support/postgres.ts";
import { openBooks } from "../support/books.ts";
import { program, withParent } from "../support/server.ts";
import { createFixture } from "./fixtures/sources.ts";
import type { FixtureSource } from "./fixtures/sources.ts";

const isLong = Bun.env["WEIR_LONG"] === "1";
/** Steps as the command tells them; the log is the longest, and is met twice. */
const ALL = [
  "logs",
  "logs",
  "quota_data",
  "users",
  "tokens",
  "redemptions",
  "channels",
  "top_ups",
  "midjourneys",
  "tasks",
];
const PLACES = isLong ? { sqlite: ALL, postgres: ALL } : { sqlite: ["logs"], postgres: ["users"] };
const LIMIT_MS = isLong ? 600_000 : 60_000;
const TABLES = [
  "users",
  "tokens",
  "channels",
  "logs",
  "rollups",
  "credits",
  "orders",
  "openings",
  "tasks",
  "identities",
];

describe.each(DATABASE_KINDS)("to %s", (kind) => {
  let source: FixtureSource;
  const places: { dataDir: string; database: PostgresDatabase | undefined }[] = [];

  beforeAll(async () => {
    source = await createFixture("sqlite", {
      family: "new-api-v1",
      upstream: "http://127.0.0.1:9",
      now: Math.floor(Date.now() / 1000),
      calls: 6000,
    });
  });
  afterAll(async () => {
    await source.drop();
    for (const { dataDir, database } of places) {
      await database?.drop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  async function emptyPlace() {
    const database = kind === "postgres" ? await createPostgresDatabase() : undefined;
    const place = { dataDir: mkdtempSync(join(tmpdir(), "weir-killed-")), database };
    places.push(place);
    return place;
  }
  type Place = Awaited<ReturnType<typeof emptyPlace>>;

  const start = ({ dataDir, database }: Place, ...args: string[]) =>
    Bun.spawn([...withParent(), ...program(), ...args], {
      env: {
        ...Bun.env,
        DATA_DIR: dataDir,
        DATABASE_URL: database?.url ?? "",
        ENCRYPTION_KEY: "a key for what is moved in",
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });

  /** Runs it, and kills it at the first word of a step; the exit code, null where it was killed. */
  async function run(place: Place, killedAt?: string): Promise<number | null> {
    const child = start(place, "import", source.address);
    const decoder = new TextDecoder();
    let told = "";
    for await (const bytes of child.stderr) {
      told += decoder.decode(bytes, { stream: true });
      if (killedAt !== undefined && told.includes(`\n${killedAt}: `)) child.kill("SIGKILL");
    }
    await child.exited;
    if (child.exitCode !== 0 && child.exitCode !== null) throw new Error(told);
    return child.exitCode;
  }

  async function figures({ dataDir, database }: Place): Promise<unknown> {
    const books = openBooks({ dataDir, databaseUrl: database?.url });
    const counts: Record<string, unknown> = {};
    for (const table of TABLES)
      counts[table] = Number((await books.ask(`select count(*) as n from ${table}`))[0]?.["n"]);
    const sums = await books.ask("select sum(quota) as q, sum(count) as c from rollups");
    const balances = await books.balances();
    await books.close();
    return { counts, sums: sums.map((row) => Object.values(row).map(Number)), balances };
  }

  test(
    "killed and run again, it leaves what an undisturbed one leaves, and the books balance",
    async () => {
      const whole = await emptyPlace();
      expect(await run(whole)).toBe(0);
      const expected = await figures(whole);
      expect(expected).toMatchObject({ counts: { users: 8, orders: 6 } });
      const before = await source.digest();
      for (const place of PLACES[kind]) {
        const killed = await emptyPlace();
        // One that was through before the signal came has nothing to go on with; the log takes longer than that.
        const code = await run(killed, place);
        if (place === "logs") expect(code).toBeNull();
        if (code === null) expect([place, await run(killed)]).toEqual([place, 0]);
        expect([place, await figures(killed)]).toEqual([place, expected]);
        const audit = start(killed, "audit");
        expect([place, await audit.exited]).toEqual([place, 0]);
      }
      expect(await source.digest()).toBe(before);
    },
    LIMIT_MS,
  );
});
