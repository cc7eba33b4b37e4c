// Moving in from the setup screen's call: before there is any account the served program imports as a job, tells how far it
// is, begins anew with the site that came, and stands closed until root opens it. The product as a process, on both databases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { openBooks } from "../support/books.ts";
import { createPostgresDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import type { PostgresDatabase } from "../support/postgres.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";
import { untilSo } from "../support/turns.ts";
import { PASSWORD } from "./fixtures/rows.ts";
import { createFixture } from "./fixtures/sources.ts";
import type { FixtureSource } from "./fixtures/sources.ts";

interface Told {
  success: boolean;
  code?: string;
  message: string;
  data: { state: string; source?: string; report?: string[]; error?: string };
}

describe.each(DATABASE_KINDS)("on %s", (kind) => {
  let server: ServerProcess;
  let source: FixtureSource;
  let database: PostgresDatabase | undefined;

  beforeAll(async () => {
    database = kind === "postgres" ? await createPostgresDatabase() : undefined;
    source = await createFixture("sqlite", {
      family: "new-api-v1",
      upstream: "http://127.0.0.1:9",
      now: Math.floor(Date.now() / 1000),
      calls: 300,
    });
    server = await startServerProcess(database ? { DATABASE_URL: database.url } : {});
  });
  afterAll(async () => {
    await server.remove();
    await source.drop();
    await database?.drop();
  });

  const ask = async (method: string, path: string, body?: object): Promise<Told> => {
    const answer = await fetch(server.url + path, {
      method,
      headers: { "content-type": "application/json", "accept-language": "en" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return (await answer.json()) as Told;
  };
  /** Another process of the site. */
  async function write(statement: string): Promise<void> {
    if (database) {
      const books = openBooks({ dataDir: server.dataDir, databaseUrl: database.url });
      await books.ask(statement);
      return books.close();
    }
    const file = new Database(join(server.dataDir, "weir.sqlite"));
    file.run("pragma busy_timeout = 5000");
    file.run(statement);
    file.close();
  }
  const status = async () => (await ask("GET", "/api/status")).data as unknown as Record<string, unknown>;

  test("what cannot be read is refused with the reason, and the setup stays open", async () => {
    expect((await ask("GET", "/api/setup/import")).data).toEqual({ state: "none" });
    const refused = await ask("POST", "/api/setup/import", { source: "/no/such/one-api.db" });
    expect(refused).toMatchObject({ success: false, code: "setup_import_refused" });
    expect(refused.message).toContain("neither a file that is there");
    const foreign = await ask("POST", "/api/setup/import", { source: `${server.dataDir}/weir.sqlite` });
    expect(foreign).toMatchObject({ success: false, code: "setup_import_refused" });
    expect(await status()).toMatchObject({ setup: false });
  });

  test("what another process of the site imports is told here too, and nobody begins beside it", async () => {
    const told = { source: "mysql old:3306/newapi", step: "logs", done: 5, total: 9 };
    const sign = (secondsAgo: number) => {
      const value = JSON.stringify({ ...told, at: Math.floor(Date.now() / 1000) - secondsAgo });
      return write(
        `insert into options (key, value) values ('internal:import-sign', '${value}') on conflict (key) do update set value = excluded.value`,
      );
    };
    const state = async () => (await ask("GET", "/api/setup/import")).data;
    await sign(0);
    // The embedded database has one process alone.
    const isShared = kind === "postgres";
    expect(await state()).toEqual(isShared ? { state: "running", ...told } : { state: "none" });
    const mine = { username: "me", password: PASSWORD, confirmPassword: PASSWORD };
    if (isShared) {
      expect((await ask("POST", "/api/setup", mine)).code).toBe("setup_importing");
      const begun = await ask("POST", "/api/setup/import", { source: source.address });
      expect(begun.code).toBe("setup_importing");
    }
    await sign(60);
    expect(await state()).toEqual({ state: "none" });
    await write("delete from options where key = 'internal:import-sign'");
  });

  test("one that fails before anything came leaves the site open, and to be set up by hand", async () => {
    const path = join(server.dataDir, "no-log.db");
    const file = new Database(path);
    for (const table of [
      "users (id, username, quota)",
      "tokens (id, key)",
      "channels (id, models, channel_info)",
      "options (key, value)",
    ])
      file.run(`create table ${table}`);
    file.close();
    expect((await ask("POST", "/api/setup/import", { source: path })).success).toBe(true);
    let last: Told["data"] = { state: "" };
    await untilSo(async () => {
      last = (await ask("GET", "/api/setup/import")).data;
      return last.state !== "running";
    });
    expect(last).toMatchObject({
      state: "failed",
      error: expect.stringContaining("no table `logs`") as string,
    });
    expect(await status()).toMatchObject({ setup: false, maintenance_enabled: false });
  });

  test("half a site, whoever brings it in, is not set up by hand", async () => {
    const half = JSON.stringify({ stage: "tables" });
    await write(`insert into options (key, value) values ('internal:import', '${half}')`);
    const mine = { username: "me", password: PASSWORD, confirmPassword: PASSWORD };
    expect((await ask("POST", "/api/setup", mine)).code).toBe("setup_importing");
    await write("delete from options where key = 'internal:import'");
    expect(await status()).toMatchObject({ setup: false });
  });

  test("it runs as a job, once; the report comes before the process begins anew with the site", async () => {
    const begun = await Promise.all([
      ask("POST", "/api/setup/import", { source: source.address }),
      ask("POST", "/api/setup/import", { source: source.address }),
    ]);
    expect(begun.map(({ success }) => success).toSorted()).toEqual([false, true]);
    expect(["setup_importing", "setup_done"]).toContain(begun.find(({ success }) => !success)?.code ?? "");
    const setup = await ask("POST", "/api/setup", {
      username: "me",
      password: PASSWORD,
      confirmPassword: PASSWORD,
    });
    expect(["setup_importing", "setup_done"]).toContain(setup.code ?? "");
    // Closed from the first row on: nothing is concluded from the part that is there.
    expect(await status()).toMatchObject({ maintenance_enabled: true });
    const pid = server.pid;
    let last: Told["data"] = { state: "" };
    await untilSo(async () => {
      last = (await ask("GET", "/api/setup/import")).data;
      return last.state !== "running";
    });
    expect(last).toMatchObject({ state: "done", source: source.address });
    // Nobody gets in before it begins anew, either.
    expect(await status()).toMatchObject({ maintenance_enabled: true });
    expect(last.report?.join("\n")).toContain("Did not come along");
    await untilSo(() => server.log().split('"serving"').length === 3);
    expect(server.pid).toBe(pid);
  });

  test("then the site is there, closed; the call says nothing to strangers any more", async () => {
    expect(await status()).toMatchObject({ setup: true, maintenance_enabled: true, system_name: "Old site" });
    expect((await ask("GET", "/api/setup/import")).data).toEqual({ state: "none" });
    expect((await ask("POST", "/api/setup/import", { source: source.address })).code).toBe("setup_done");
    expect((await ask("POST", "/api/user/login", { username: "root", password: PASSWORD })).success).toBe(
      true,
    );
  });

  test("the books balance, coarse sums too", async () => {
    await server.stop();
    expect(server.audit()).toMatchObject({ code: 0 });
    await server.restart();
    expect(await status()).toMatchObject({ setup: true, maintenance_enabled: true });
  });
});
