// A wide site for the fault test: two nodes of two workers each on one PostgreSQL and one Redis, each node with a cable, a
// clock and (the second) a small disk of its own, and two hundred keys, some of people who have hardly anything left.
// Refuses the product's insides: faults are done to processes, connections, clocks and disks.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBooks } from "../support/books.ts";
import type { Books } from "../support/books.ts";
import { startOwnPostgres } from "../support/own-postgres.ts";
import type { OwnPostgres } from "../support/own-postgres.ts";
import { makeClock } from "../support/process-clock.ts";
import type { TestClock } from "../support/process-clock.ts";
import { descendantsOf, workersOf } from "../support/processes.ts";
import { startRedis } from "../support/redis.ts";
import type { TestRedis } from "../support/redis.ts";
import { program, startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";
import { startSwitch, throughSwitch } from "../support/tcp-switch.ts";
import type { TcpSwitch } from "../support/tcp-switch.ts";
import { createLoad } from "./wide-load.ts";
import type { Load, LoadKey } from "./wide-load.ts";
import { IS_LONG, signIn, startSite } from "./site.ts";
import type { Person, Site } from "./site.ts";

const WORKERS = 2;
const RICH_PEOPLE = 5;
const POOR_PEOPLE = 5;
const KEYS = 200;
const RICH_BALANCE = 1_000_000_000_000;
/** Room for the journals of two workers, and little more. */
const DISK_MEGABYTES = 48;
const SETTINGS = { WORKERS: String(WORKERS), DRAIN_SECONDS: "5", ENCRYPTION_KEY: "one key for all nodes" };

export interface WideNode {
  server: ServerProcess;
  /** Between it and PostgreSQL. */
  cable: TcpSwitch;
  /** Between it and Redis. */
  redisCable: TcpSwitch;
  clock: TestClock;
  /** Its workers by index. */
  workers(): Map<string, number>;
  /** Parent and workers. */
  pids(): number[];
}

export interface WideSite {
  site: Site;
  nodes: readonly [WideNode, WideNode];
  load: Load;
  poor: readonly Person[];
  /** The one that is written to; a promoted standby takes its place. */
  postgres: OwnPostgres;
  redis: TestRedis;
  /** Of somebody rich, and nobody's in the load: for whoever takes a key away. */
  spare: { person: Person; key: LoadKey };
  /** The second node's disk. */
  disk: { dir: string; fill(): void; empty(): void };
  /** Both cables lead to this server from now on, and it is `postgres`. */
  follow(server: OwnPostgres): Promise<void>;
  /** The books, read past every cable. */
  withBooks<T>(read: (books: Books) => Promise<T>): Promise<T>;
  /** `weir audit`, beside running nodes and past every cable. */
  audit(): Promise<{ code: number; text: string }>;
  /** Everybody who is poor has this much. */
  fillPoor(quota: number): Promise<void>;
  remove(): Promise<void>;
}

/**
 * A small disk of its own, where it is to be filled: in the long run, as root, because others cannot mount. The ordinary run fills
 * none, and has a directory.
 */
function mountDisk(): WideSite["disk"] & { unmount(): void } {
  const dir = mkdtempSync(join(tmpdir(), "weir-wide-disk-"));
  if (IS_LONG) {
    const options = `size=${DISK_MEGABYTES}m,mode=0700`;
    const mount = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", options, "tmpfs", dir]);
    if (mount.exitCode !== 0)
      throw new Error(`this test mounts a tmpfs, as root: ${mount.stderr.toString()}`);
  }
  return {
    dir,
    fill() {
      const filled = Date.now();
      // Halving steps until not a page is left.
      for (let size = DISK_MEGABYTES * 1024 * 1024, step = 0; size >= 4096; step++) {
        const path = join(dir, `ballast-${filled}-${step}`);
        try {
          writeFileSync(path, Buffer.alloc(size));
        } catch {
          rmSync(path, { force: true });
          size = Math.floor(size / 2);
        }
      }
    },
    empty() {
      for (const name of readdirSync(dir)) if (name.startsWith("ballast")) rmSync(join(dir, name));
    },
    unmount() {
      if (IS_LONG) Bun.spawnSync(["umount", "-l", dir]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function nodeOf(
  server: ServerProcess,
  { cable, redisCable, clock }: Pick<WideNode, "cable" | "redisCable" | "clock">,
): WideNode {
  const workers = () => workersOf(server.dataDir);
  return {
    server,
    cable,
    redisCable,
    clock,
    workers,
    pids: () =>
      [
        ...(server.pid === undefined ? [] : [server.pid, ...descendantsOf(server.pid)]),
        ...workers().values(),
      ].filter((pid, at, pids) => pids.indexOf(pid) === at),
  };
}

async function makeKeys(person: Person, count: number, isPoor: boolean): Promise<LoadKey[]> {
  const made = Array.from({ length: count }, async () => {
    const asked = { name: "key", unlimited_quota: true };
    const { id, key } = (await person.send("POST", "/api/token/", asked)) as { id: number; key: string };
    return { tokenId: id, text: `sk-${key}`, isPoor };
  });
  return Promise.all(made);
}

async function makePeople(site: Site): Promise<Pick<WideSite, "poor" | "spare"> & { keys: LoadKey[] }> {
  const many = (count: number, quota: number) =>
    Promise.all(Array.from({ length: count }, () => site.person(quota)));
  const [rich, poor] = [await many(RICH_PEOPLE, RICH_BALANCE), await many(POOR_PEOPLE, 0)];
  const each = (KEYS - POOR_PEOPLE) / RICH_PEOPLE;
  const keys: LoadKey[] = [];
  for (const person of rich) keys.push(...(await makeKeys(person, each, false)));
  for (const person of poor) keys.push(...(await makeKeys(person, 1, true)));
  const [person] = rich as [Person, ...Person[]];
  const [key] = (await makeKeys(person, 1, false)) as [LoadKey];
  return { poor, keys, spare: { person, key } };
}

/** Root's own session: both nodes know it. */
async function rootHeaders(url: string): Promise<Record<string, string>> {
  const { id, cookie } = await signIn(url, "root");
  return { cookie, "new-api-user": String(id) };
}

export async function startWideSite(random: () => number): Promise<WideSite> {
  let postgres = await startOwnPostgres();
  const redis = await startRedis();
  const disk = mountDisk();
  const ways = async () => ({
    cable: await startSwitch(postgres.port),
    redisCable: await startSwitch(redis.port),
    clock: makeClock(),
  });
  const [near, far] = [await ways(), await ways()];
  const env = ({ redisCable, clock }: typeof near) => ({
    ...SETTINGS,
    REDIS_URL: `redis://127.0.0.1:${redisCable.port}`,
    ...clock.env,
  });
  const site = await startSite({ databaseUrl: throughSwitch(near.cable, postgres.url), env: env(near) });
  const settings = {
    DATABASE_URL: throughSwitch(far.cable, postgres.url),
    SESSION_SECRET: "one secret for all nodes",
    // Its disk is small: what the tables have goes soon.
    JOURNAL_KEEP_MINUTES: "1",
    ...env(far),
  };
  const second = await startServerProcess(settings, { dataDir: disk.dir });
  const nodes = [nodeOf(site.server, near), nodeOf(second, far)] as const;
  const { poor, keys, spare } = await makePeople(site);
  const urls = nodes.map(({ server }) => server.url);
  const load = createLoad({ urls, keys, random, rootHeaders: await rootHeaders(site.server.url) });

  return {
    site,
    nodes,
    load,
    poor,
    spare,
    redis,
    disk,
    get postgres() {
      return postgres;
    },
    async follow(server) {
      const before = postgres;
      postgres = server;
      for (const { cable } of nodes) {
        await cable.pointTo(server.port);
        await cable.restore();
      }
      await before.remove();
    },
    async withBooks(read) {
      const books = openBooks({ dataDir: "", databaseUrl: postgres.url });
      try {
        return await read(books);
      } finally {
        await books.close();
      }
    },
    async audit() {
      const command = Bun.spawn([...program(), "audit"], {
        env: { ...Bun.env, ...SETTINGS, DATABASE_URL: postgres.url, DATA_DIR: site.server.dataDir },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      const [out, error] = await Promise.all([
        new Response(command.stdout).text(),
        new Response(command.stderr).text(),
      ]);
      return { code: await command.exited, text: out + error };
    },
    async fillPoor(quota) {
      for (const { id } of poor) await site.root.send("PUT", "/api/user/", { id, quota });
    },
    async remove() {
      for (const { cable, redisCable } of nodes) await Promise.all([cable.stop(), redisCable.stop()]);
      await second.kill();
      await site.remove();
      disk.unmount();
      for (const { clock } of nodes) clock.remove();
      await redis.remove();
      await postgres.remove();
    },
  };
}
