// kill -9 under load at random moments, six times on each database, a hundred under WEIR_LONG: what was acknowledged is in the
// log, and every sum agrees.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { LogType } from "../../../src/shared/enums.ts";
import { eq } from "drizzle-orm";
import { createTestDatabase, DATABASE_KINDS } from "../../support/postgres.ts";
import { MIGRATED, openBooks } from "./support.ts";

const KILLS = Bun.env["WEIR_LONG"] === "1" ? 100 : 6;

/** Runs the child until it has acknowledged about that many calls, kills it, and answers all it had acknowledged. */
async function killAfter(acknowledgements: number, args: string[]): Promise<string[]> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "crash-child.ts"), ...args], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  let text = "";
  let isKilled = false;
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    text += decoder.decode(chunk, { stream: true });
    if (!isKilled && text.split("\n").length > acknowledgements + 1) {
      isKilled = true;
      child.kill("SIGKILL");
    }
  }
  await child.exited;
  const lines = text.split("\n").slice(0, -1);
  expect(lines[0]).toBe("balanced");
  expect(isKilled).toBe(true);
  return lines.slice(1);
}

describe.each(DATABASE_KINDS)("killed process on %s", (kind) => {
  test(`after ${KILLS} kills under load every acknowledged call is in the log and every sum agrees`, async () => {
    const database = await createTestDatabase(kind, MIGRATED);
    const place = { dataDir: database.dataDir, databaseUrl: database.databaseUrl };
    try {
      const first = await openBooks(place);
      await first.addChannel();
      // One whose reservations stay in memory, one who is near zero and reserves durably on PostgreSQL.
      const users = [await first.addUser(1_000_000_000_000), await first.addUser(400_000)];
      await first.close();

      const acknowledged: string[] = [];
      for (let run = 0; run < KILLS; run++) {
        const moment = 1 + Math.floor(Math.random() * 400);
        const args = [place.dataDir, place.databaseUrl ?? "-", String(run)];
        acknowledged.push(...(await killAfter(moment, [...args, ...users.map((user) => String(user.id))])));
      }

      const books = await openBooks(place);
      await books.expectBalanced();
      const { logs, reservations } = books.db.t;
      const rows = await books.db.orm
        .select({ requestId: logs.requestId })
        .from(logs)
        .where(eq(logs.type, LogType.consume));
      const logged = rows.map((row) => row.requestId);
      expect(new Set(logged).size).toBe(logged.length);
      const known = new Set(logged);
      expect(acknowledged.filter((id) => !known.has(id))).toEqual([]);
      expect(acknowledged.length).toBeGreaterThan(KILLS);
      expect(await books.db.orm.select().from(reservations)).toEqual([]);
      await books.close();
    } finally {
      await database.drop();
    }
  }, 600_000);
});
