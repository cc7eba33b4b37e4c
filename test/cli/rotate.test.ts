// weir rotate as people run it: killed again and again, nothing is lost; beside a running server it does nothing. Session
// secrets change without ending a session.
// Refuses the product's insides for what counts: the program is started, the answers come over the wire.
import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createSealer } from "../../src/core/kit/seal.ts";
import { internalRow, ROTATION_KEY } from "../../src/core/options/seal-keys.ts";
import { connect } from "../../src/db/connect.ts";
import { callPlan, sender, signIn, startSite } from "../attack/site.ts";
import type { Site } from "../attack/site.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { program, startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

const CODES = 3000;
const isLong = Bun.env["WEIR_LONG"] === "1";
/** When the next one is killed: in the ordinary run the later the further apart, since each goes on where the last one was. */
const nextKillMs = (killMs: number) => killMs + (isLong ? 12 : 40 + killMs / 8);
/** Key and secret are the site's own, as they are where nobody set any. */
const OWN_FILES = { ENCRYPTION_KEY: "", SESSION_SECRET: "" };
let site: Site | undefined;
let other: ServerProcess | undefined;

afterEach(async () => {
  await other?.stop();
  await site?.remove();
  site = other = undefined;
});

/** Codes enough that there is a middle to be killed in. */
async function fill({ server, databaseUrl = "" }: Site, secret: string): Promise<void> {
  const db = await connect({ dataDir: server.dataDir, databaseUrl });
  const seal = createSealer(secret);
  for (let from = 0; from < CODES; from += 500)
    await db.orm.insert(db.t.redemptions).values(
      Array.from({ length: 500 }, (_, index) => ({
        userId: 1,
        name: "many",
        keyHash: `hash ${from + index}`,
        keySealed: seal.seal("redemption", `code ${from + index}`),
      })),
    );
  await db.close();
}

async function isUnderWay({ server, databaseUrl = "" }: Site): Promise<boolean> {
  const db = await connect({ dataDir: server.dataDir, databaseUrl });
  const goal = await internalRow(db, ROTATION_KEY);
  await db.close();
  return goal !== undefined;
}

/** Starts the subcommand and kills it after so many milliseconds, unless it has ended: then its exit code. */
async function rotateFor(
  at: Site,
  killMs: number,
  more: Record<string, string> = {},
): Promise<number | null> {
  const child = Bun.spawn([...program(), "rotate"], {
    cwd: at.server.dataDir,
    env: {
      ...Bun.env,
      DATA_DIR: at.server.dataDir,
      ...(at.databaseUrl ? { DATABASE_URL: at.databaseUrl } : {}),
      ...more,
    },
    stdout: "ignore",
    stderr: "ignore",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), killMs);
  await child.exited;
  clearTimeout(timer);
  return child.exitCode;
}

async function codesOf(send: Site["root"]["send"]): Promise<string[]> {
  const found: string[] = [];
  for (let page = 1; found.length < CODES; page++) {
    const { items } = (await send("GET", `/api/redemption/?p=${page}&page_size=100`)) as {
      items: { key: string; name: string }[];
    };
    if (items.length === 0) break;
    found.push(...items.map(({ key }) => key));
  }
  return found;
}

describe.each(DATABASE_KINDS)("the encryption key on %s", (kind) => {
  test("killed at any point and run again, nothing sealed is lost, and the server waits for the end", async () => {
    const at = (site = await startSite({ kind, env: OWN_FILES }));
    const { server } = at;
    const person = await at.person(1_000_000);
    const key = await person.key();
    await at.set("SMTPToken", "mail password");
    const path = join(server.dataDir, "encryption.key");
    const before = readFileSync(path, "utf8").trim();
    await server.stop();
    await fill(at, before);
    let kills = 0;
    let stopped = 0;
    for (let killMs = 20; ; killMs = nextKillMs(killMs)) {
      const code = await rotateFor(at, killMs);
      if (code === 0) break;
      expect(code).toBeNull();
      kills += 1;
      if (existsSync(`${path}.new`) && stopped < 3) {
        // Between the draft and the mark nothing has begun; behind it no server starts.
        const tried = Bun.spawnSync([...program()], {
          cwd: server.dataDir,
          env: {
            ...Bun.env,
            PORT: "0",
            DATA_DIR: server.dataDir,
            ...(at.databaseUrl ? { DATABASE_URL: at.databaseUrl } : {}),
          },
          timeout: 3000,
        });
        if (tried.stderr.toString().includes("run `weir rotate` again")) stopped += 1;
      }
      expect(kills).toBeLessThan(400);
    }
    expect([kills > 3, stopped > 0]).toEqual([true, true]);
    const after = readFileSync(path, "utf8").trim();
    expect([after === before, existsSync(`${path}.new`), statSync(path).mode & 0o777]).toEqual([
      false,
      false,
      0o600,
    ]);
    await server.restart();
    const codes = await codesOf(at.root.send);
    expect(codes.toSorted()).toEqual(Array.from({ length: CODES }, (_, index) => `code ${index}`).toSorted());
    // The channel's key and the user's open as before: a call goes through, and the list shows the key.
    expect((await callPlan(server.url, key, { id: "after" })).status).toBe(200);
    const [shown] = (await person.send("GET", "/api/token/")) as { key: string }[];
    expect(`sk-${shown?.key}`).toBe(key);
    await server.stop();
    expect(server.audit()).toMatchObject({ code: 0 });
  }, 240_000);

  test("beside a running server nothing is changed", async () => {
    const at = (site = await startSite({ kind, env: OWN_FILES }));
    const before = readFileSync(join(at.server.dataDir, "encryption.key"), "utf8");
    const tried = at.server.run(["rotate"]);
    expect([tried.code, tried.text]).toEqual([1, expect.stringContaining("another weir process is running")]);
    if (kind === "postgres") {
      // From another directory with the same key: the node's lease tells.
      const tried = at.server.run(["rotate"], {
        DATA_DIR: join(at.server.dataDir, "elsewhere"),
        ENCRYPTION_KEY: before.trim(),
        NEW_ENCRYPTION_KEY: "a new key of sixteen letters",
      });
      expect([tried.code, tried.text]).toEqual([2, expect.stringContaining("1 node uses this database")]);
    }
    expect(readFileSync(join(at.server.dataDir, "encryption.key"), "utf8")).toBe(before);
    await at.server.stop();
    await at.server.restart();
  }, 60_000);

  test("a key of the environment goes to NEW_ENCRYPTION_KEY, and to no other once it has begun", async () => {
    const [old, next] = ["the old key of the site", "the new key of the site"];
    const at = (site = await startSite({ kind, env: { ENCRYPTION_KEY: old } }));
    const { server } = at;
    const key = await (await at.person(1_000_000)).key();
    await server.stop();
    await fill(at, old);
    expect(server.run(["rotate"])).toMatchObject({
      code: 2,
      text: expect.stringContaining("NEW_ENCRYPTION_KEY"),
    });
    expect(server.run(["rotate"], { NEW_ENCRYPTION_KEY: old }).code).toBe(2);
    expect(
      server.run(["rotate"], { ENCRYPTION_KEY: "a wrong key of the site", NEW_ENCRYPTION_KEY: next }),
    ).toMatchObject({
      code: 1,
      text: expect.stringContaining("not the key that this database was sealed with"),
    });
    const env = { ENCRYPTION_KEY: old, NEW_ENCRYPTION_KEY: next };
    let isBegun = false;
    // Small steps at first: a start takes some hundred milliseconds, what follows at least as long.
    for (let killMs = 20; !isBegun; killMs += Math.max(4, killMs / 12)) {
      expect(await rotateFor(at, killMs, env)).toBeNull();
      isBegun = await isUnderWay(at);
    }
    expect(server.run(["rotate"], { NEW_ENCRYPTION_KEY: "yet another key of ours" })).toMatchObject({
      code: 2,
      text: expect.stringContaining("a change to another key has begun"),
    });
    expect(server.run(["rotate"], env).code).toBe(0);
    other = await startServerProcess(
      { ENCRYPTION_KEY: next, ...(at.databaseUrl ? { DATABASE_URL: at.databaseUrl } : {}) },
      { dataDir: server.dataDir },
    );
    expect((await callPlan(other.url, key, { id: "next" })).status).toBe(200);
  }, 120_000);
});

describe("the session secret", () => {
  const isIn = async (url: string, id: number, cookie: string) =>
    (await fetch(`${url}/api/user/self`, { headers: { cookie, "new-api-user": String(id) } })).status === 200;

  test("SESSION_SECRET=new,old: sessions and devices of both go on, new ones are the new one's", async () => {
    const [old, next] = ["the old secret of it", "the new secret of it"];
    const at = (site = await startSite({ env: { ...OWN_FILES, SESSION_SECRET: old } }));
    const person = await at.person(1000);
    const { dataDir } = at.server;
    const from = async (secret: string, work: (url: string) => Promise<void>) => {
      other = await startServerProcess({ SESSION_SECRET: secret }, { dataDir });
      await work(other.url);
      await other.stop();
      other = undefined;
    };
    await at.server.stop();
    let newer = { cookie: "", id: person.id };
    await from(`${next},${old}`, async (url) => {
      expect(await isIn(url, person.id, person.cookie)).toBe(true);
      newer = await signIn(url, person.username, person.cookie);
      // The device is known still: it keeps its id.
      expect(/device=([0-9a-f]{32})/.exec(newer.cookie)?.[1]).toBe(
        /device=([0-9a-f]{32})/.exec(person.cookie)?.[1] ?? "none",
      );
    });
    await from(next, async (url) => {
      expect([await isIn(url, person.id, newer.cookie), await isIn(url, person.id, person.cookie)]).toEqual([
        true,
        false,
      ]);
    });
    await from(old, async (url) => {
      expect(await isIn(url, person.id, newer.cookie)).toBe(false);
    });
    // One secret that holds a comma was always one: nobody's session ends for it.
    await from(`${next},short`, async (url) => {
      expect(await isIn(url, person.id, newer.cookie)).toBe(false);
    });
  }, 60_000);

  test("weir rotate --session: sessions go on, with --now they end; a set SESSION_SECRET is left to its owner", async () => {
    const at = (site = await startSite({ env: OWN_FILES }));
    const { server } = at;
    const person = await at.person(1000);
    expect(server.run(["rotate", "--session"]).code).toBe(1);
    await server.stop();
    expect(server.run(["rotate", "--session"], { SESSION_SECRET: "one of sixteen letters" })).toMatchObject({
      code: 2,
      text: expect.stringContaining("SESSION_SECRET=new,old"),
    });
    expect(server.run(["rotate", "--now"]).code).toBe(2);
    expect(server.run(["rotate", "--session"]).code).toBe(0);
    await server.restart();
    expect(await isIn(server.url, person.id, person.cookie)).toBe(true);
    const newer = await signIn(server.url, person.username, person.cookie);
    await server.stop();
    // The one before the last is gone, the last is taken.
    expect(server.run(["rotate", "--session"]).code).toBe(0);
    await server.restart();
    expect([
      await isIn(server.url, person.id, newer.cookie),
      await isIn(server.url, person.id, person.cookie),
    ]).toEqual([true, false]);
    const send = sender(server.url, person.id, newer.cookie);
    expect(await send("GET", "/api/user/self")).toMatchObject({ id: person.id });
    await server.stop();
    expect(server.run(["rotate", "--session", "--now"]).code).toBe(0);
    await server.restart();
    expect(await isIn(server.url, person.id, newer.cookie)).toBe(false);
  }, 60_000);
});
