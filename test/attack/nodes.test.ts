// B2 from outside: two nodes with one name, by a copied data directory or a copied file; one of them alone may write books.
// Refuses to count on luck: while both run, both are called, and every answer is looked for.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";
import { callPlan, startSite } from "./site.ts";
import type { Site } from "./site.ts";

/** The lease is half a minute; a start waits it out before it is refused. */
const REFUSAL_LIMIT_MS = 75_000;
const TAKEOVER_LIMIT_MS = 10_000;

const settings = (site: Site) => ({
  DATABASE_URL: site.databaseUrl ?? "",
  ENCRYPTION_KEY: "one key for all nodes",
  SESSION_SECRET: "one secret for all nodes",
});

async function burst(url: string, key: string, count: number): Promise<string[]> {
  const seen = await Promise.all(
    Array.from({ length: count }, (_, number) => callPlan(url, key, { id: `burst-${number}` })),
  );
  return seen.filter(({ status }) => status === 200).map(({ requestId }) => requestId);
}

/** Starts a further process on a directory while calls go on; the refusal, or what both answered together. */
async function secondOn(
  site: Site,
  key: string,
  dataDir: string,
): Promise<{ refusal: string; answered: string[]; second?: ServerProcess }> {
  const answered: string[] = [];
  let isDecided = false;
  const starting = startServerProcess(settings(site), { dataDir, startLimitMs: REFUSAL_LIMIT_MS })
    .then(
      (second) => ({ second, refusal: "" }),
      (error: unknown) => ({ second: undefined, refusal: String(error) }),
    )
    .finally(() => (isDecided = true));
  while (!isDecided) {
    answered.push(...(await burst(site.server.url, key, 8)));
    await Bun.sleep(100);
  }
  const { second, refusal } = await starting;
  if (second) {
    for (let round = 0; round < 20; round++) {
      const both = [burst(site.server.url, key, 8), burst(second.url, key, 8)];
      for (const ids of await Promise.all(both)) answered.push(...ids);
    }
    return { refusal, answered, second };
  }
  return { refusal, answered };
}

async function lost(site: Site, answered: readonly string[]): Promise<number> {
  const known = new Set((await site.books.log(2)).map(({ requestId }) => requestId));
  return answered.filter((id) => !known.has(id)).length;
}

test.concurrent(
  "a copied data directory is refused while its original lives, and no answer is in no book",
  async () => {
    const site = await startSite({ kind: "postgres" });
    const person = await site.person(1_000_000_000);
    const key = await person.key();
    const answered = await burst(site.server.url, key, 20);
    const copy = mkdtempSync(join(tmpdir(), "weir-copied-"));
    cpSync(site.server.dataDir, copy, { recursive: true });
    const outcome = await secondOn(site, key, copy);
    answered.push(...outcome.answered, ...(await burst(site.server.url, key, 20)));
    await outcome.second?.stop();
    await site.server.stop();
    expect(await lost(site, answered)).toBe(0);
    expect(site.server.audit()).toMatchObject({ code: 0 });
    expect(outcome.refusal).toContain("weir cannot start");
    await outcome.second?.remove();
    rmSync(copy, { recursive: true, force: true });
    await site.remove();
  },
  120_000,
);

test.concurrent(
  "another living node's id in one's own directory is refused, an empty one too",
  async () => {
    const site = await startSite({ kind: "postgres" });
    const person = await site.person(1_000_000_000);
    const key = await person.key();
    const other = await site.join();
    const own = readFileSync(join(other.dataDir, "node.id"), "utf8");
    await burst(other.url, key, 5);
    await other.stop();
    writeFileSync(join(other.dataDir, "node.id"), readFileSync(join(site.server.dataDir, "node.id")));
    const outcome = await secondOn(site, key, other.dataDir);
    await outcome.second?.stop();
    expect(outcome.refusal).toContain("weir cannot start");
    writeFileSync(join(other.dataDir, "node.id"), "\n");
    const empty = await startServerProcess(settings(site), {
      dataDir: other.dataDir,
      startLimitMs: REFUSAL_LIMIT_MS,
    }).then(
      async (server) => {
        await server.kill();
        return "it started";
      },
      (error: unknown) => String(error),
    );
    expect(empty).toContain("weir cannot start");
    // With its own name again it serves as before.
    writeFileSync(join(other.dataDir, "node.id"), own);
    const again = await startServerProcess(settings(site), { dataDir: other.dataDir });
    const answered = [...outcome.answered, ...(await burst(again.url, key, 5))];
    await again.stop();
    await site.server.stop();
    expect(await lost(site, answered)).toBe(0);
    expect(site.server.audit()).toMatchObject({ code: 0 });
    await site.remove();
  },
  180_000,
);

test.concurrent(
  "a killed node takes its own directory over at once",
  async () => {
    const site = await startSite({ kind: "postgres" });
    const person = await site.person(1_000_000_000);
    const key = await person.key();
    const answered: string[] = [];
    for (let kill = 0; kill < 3; kill++) {
      answered.push(...(await burst(site.server.url, key, 20)));
      await site.server.kill();
      const beganMs = performance.now();
      await site.server.restart();
      expect(performance.now() - beganMs).toBeLessThan(TAKEOVER_LIMIT_MS);
    }
    await site.server.stop();
    expect(await lost(site, answered)).toBe(0);
    expect(site.server.audit()).toMatchObject({ code: 0 });
    await site.remove();
  },
  60_000,
);
