// B6, B7 and B8 from outside: a disk that is full, a database that somebody else has locked, and one that is deleted.
// Refuses free calls: whatever the upstream was asked for is in the books, or was never asked for.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lockFile } from "../support/lock-file.ts";
import { createPostgresDatabase } from "../support/postgres.ts";
import { startServerProcess } from "../support/server.ts";
import { callPlan, longCalls, sender, signIn, startSite } from "./site.ts";
import type { Site } from "./site.ts";
import { startStretch } from "../support/stretch.ts";

const KEYS = {
  ENCRYPTION_KEY: "one key for all nodes",
  SESSION_SECRET: "one secret for all nodes",
  DATABASE_URL: "",
};
const CONCURRENCY = 16;

/** A small disk of its own. As root only: others cannot mount, and have no business with this test's disk. */
function mountSmallDisk(megabytes: number): string {
  const dir = mkdtempSync(join(tmpdir(), "weir-small-disk-"));
  const mount = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", `size=${megabytes}m,mode=0700`, "tmpfs", dir]);
  if (mount.exitCode !== 0) throw new Error(`this test mounts a tmpfs, as root: ${mount.stderr.toString()}`);
  return dir;
}

function fill(dir: string): void {
  const path = join(dir, "ballast");
  let size = 32 * 1024 * 1024;
  // Halving steps until not a page is left.
  for (let step = 0; size >= 4096; step++) {
    try {
      writeFileSync(`${path}-${step}`, Buffer.alloc(size));
    } catch {
      rmSync(`${path}-${step}`, { force: true });
      size = Math.floor(size / 2);
    }
  }
}

function empty(dir: string): void {
  for (const name of readdirSync(dir)) if (name.startsWith("ballast")) rmSync(join(dir, name));
}

test.concurrent(
  "B6: on a full disk no call is served that cannot be written down, and the server heals by itself",
  async () => {
    const dataDir = mountSmallDisk(16);
    let site: Site | undefined;
    try {
      site = await startSite({ place: { dataDir } });
      const { server, upstream } = site;
      const person = await site.person(1_000_000_000);
      const key = await person.key();
      expect((await longCalls(site, key, 20)).length).toBe(20);
      fill(dataDir);
      // Until the room that was made in advance is used up, and then for two seconds against the closed gate.
      const startedMs = performance.now();
      let served = 0;
      let closedMs = 0;
      while (
        performance.now() - startedMs < 20_000 &&
        (closedMs === 0 || performance.now() - closedMs < 2500)
      ) {
        const ids = await longCalls(site, key, CONCURRENCY * 4);
        served += ids.length;
        if (ids.length === 0 && closedMs === 0) closedMs = performance.now();
      }
      expect(closedMs).toBeGreaterThan(0);
      const refused = await callPlan(server.url, key, { id: "on-a-full-disk" });
      expect(refused.status).toBe(503);
      expect(upstream.of("on-a-full-disk")).toEqual([]);
      const asked = upstream.calls.length;
      await longCalls(site, key, CONCURRENCY);
      expect(upstream.calls.length).toBe(asked);
      empty(dataDir);
      await site.until(
        async () => (await callPlan(server.url, key, { id: "healed" })).status === 200,
        15_000,
      );
      await server.stop();
      expect(server.audit()).toMatchObject({ code: 0 });
      const rows = (await site.books.log(2)).length;
      // Those that were under way when the last room was taken have been served by the upstream, no others.
      expect(upstream.calls.length - rows).toBeLessThanOrEqual(CONCURRENCY);
      console.log(`${served} calls served on the full disk, ${upstream.calls.length - rows} without a row`);
    } finally {
      await site?.server.kill();
      Bun.spawnSync(["umount", "-l", dataDir]);
      await site?.remove();
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
  90_000,
);

// By itself: the other two run whole processes to their end in this one, which could not look at its clock meanwhile.
test("B7: a database that is locked elsewhere stops neither pages nor calls", async () => {
  const site = await startSite();
  const person = await site.person(1_000_000_000);
  const key = await person.key();
  await callPlan(site.server.url, key, { id: "warm" });
  const file = join(site.server.dataDir, "weir.sqlite");
  const save = (number: number, language = "en") =>
    fetch(`${site.server.url}/api/user/self`, {
      method: "PUT",
      headers: {
        "content-type": "application/json",
        "accept-language": language,
        cookie: person.cookie,
        "new-api-user": String(person.id),
      },
      body: JSON.stringify({ display_name: `name ${number}` }),
    }).then(async (answer) => ({ status: answer.status, ...((await answer.json()) as object) }));
  const nameNow = async () =>
    (await site.books.ask(`select display_name as name from users where id = ${person.id}`))[0];
  /** Looks at the site until it is so: how long it was silent, each time. */
  async function watchUntil(isOver: () => boolean): Promise<number[]> {
    const waits: number[] = [];
    while (!isOver()) {
      const beganMs = performance.now();
      await (await fetch(`${site.server.url}/api/status`)).text();
      waits.push(performance.now() - beganMs);
      expect((await callPlan(site.server.url, key, { id: "locked" })).status).toBe(200);
    }
    return waits;
  }

  const stretch = startStretch(site.server.pid);
  const lock = lockFile(file);
  const saves = [1, 2, 3].map((number) => save(number));
  const startedMs = performance.now();
  const waits = await watchUntil(() => performance.now() - startedMs > 3000);
  lock.release();
  for (const saved of await Promise.all(saves)) expect(saved).toMatchObject({ status: 200, success: true });
  const before = await nameNow();
  expect(before).toEqual({ name: expect.stringMatching(/^name [123]$/) });

  // Longer than anybody waits: refused in time, in the caller's language, and nothing was done.
  const longLock = lockFile(file);
  const beganMs = performance.now();
  let refusedMs = 0;
  const late = Promise.all([save(4), save(5, "zh"), save(6)]).finally(() => {
    refusedMs = performance.now() - beganMs;
  });
  waits.push(...(await watchUntil(() => refusedMs > 0 || performance.now() - beganMs > 15_000)));
  const [english, chinese] = await late;
  expect(refusedMs).toBeLessThan(8000);
  expect(english).toMatchObject({ status: 503, success: false, code: "database_busy" });
  expect(chinese).toMatchObject({ status: 503, message: expect.stringContaining("数据库") });
  expect(await nameNow()).toEqual(before);
  longLock.release();
  expect(await save(7)).toMatchObject({ status: 200, success: true });
  expect(await nameNow()).toEqual({ name: "name 7" });

  const inOrder = waits.toSorted((one, other) => one - other);
  // The machine has others on it: nine of ten are prompt, and not one waited for the lock.
  const slower = stretch();
  expect(inOrder[Math.floor(inOrder.length * 0.9)]).toBeLessThan(200 * slower);
  expect(inOrder.at(-1)).toBeLessThan(1000 * slower);
  await site.server.stop();
  expect(site.server.audit()).toMatchObject({ code: 0 });
  const startLock = lockFile(file);
  const start = await site.server.restart().catch(String);
  expect(start).toContain("another process");
  startLock.release();
  await site.server.restart();
  await site.server.stop();
  expect(site.server.audit()).toMatchObject({ code: 0 });
  await site.remove();
}, 60_000);

test.concurrent(
  "B8: a deleted database is noticed within a second, and nobody starts over it as new",
  async () => {
    const site = await startSite();
    const person = await site.person(1_000_000_000);
    const key = await person.key();
    await callPlan(site.server.url, key, { id: "before" });
    for (const name of readdirSync(site.server.dataDir))
      if (name.startsWith("weir.sqlite")) rmSync(join(site.server.dataDir, name));
    await Bun.sleep(1500);
    const after = await Promise.all(
      Array.from({ length: 20 }, () => callPlan(site.server.url, key, { id: "into-nothing" })),
    );
    expect(after.filter(({ status }) => status === 200).length).toBe(0);
    expect(site.upstream.of("into-nothing").length).toBe(0);
    await site.server.kill();
    const { dataDir } = site.server;
    const start = (env: Record<string, string>) =>
      startServerProcess({ ...KEYS, ...env }, { dataDir, startLimitMs: 20_000 }).then(
        async (server) => {
          await server.kill();
          return "it started";
        },
        (error: unknown) => String(error),
      );
    expect(await start({})).toContain("WEIR_NEW");
    expect(await start({ WEIR_NEW: "1" })).toBe("it started");
    await site.remove();
  },
  60_000,
);

test.concurrent(
  "B8: an empty PostgreSQL beside a product's SQLite file is not a new site",
  async () => {
    const site = await startSite();
    await site.server.stop();
    const database = await createPostgresDatabase();
    const { dataDir } = site.server;
    const start = (env: Record<string, string>) =>
      startServerProcess(
        { ...KEYS, DATABASE_URL: database.url, ...env },
        { dataDir, startLimitMs: 30_000 },
      ).then(
        async (server) => {
          await server.stop();
          return "it started";
        },
        (error: unknown) => String(error),
      );
    expect(await start({})).toContain("WEIR_NEW");
    // The file itself was not touched.
    const file = new Database(join(dataDir, "weir.sqlite"), { readonly: true });
    expect(file.query("select count(*) as count from users").get()).toEqual({ count: 1 });
    file.close();
    const startOnFile = async () => {
      const again = await startServerProcess(KEYS, { dataDir });
      const root = await signIn(again.url, "root");
      expect(root.status).toBe(200);
      await sender(again.url, root.id, root.cookie)("GET", "/api/user/self");
      await again.stop();
      expect(again.audit()).toMatchObject({ code: 0 });
    };
    await startOnFile();
    // Only on purpose; and the file, which knows this node, is still the way back from there.
    expect(await start({ WEIR_NEW: "1" })).toBe("it started");
    await startOnFile();
    await site.remove();
    await database.drop();
  },
  90_000,
);
