// A new encryption key, row by row: nothing sealed is left behind, whenever it was stopped and run again.
// Refuses to trust a list: the schema is walked for columns that hold sealed text.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eq, getTableColumns, is } from "drizzle-orm";
import { PgColumn } from "drizzle-orm/pg-core";
import { createSealer, SEAL_PURPOSES } from "../../../src/core/kit/seal.ts";
import type { Sealer } from "../../../src/core/kit/seal.ts";
import { internalRow, MAC_KEY, openSealer } from "../../../src/core/options/seal-keys.ts";
import {
  beginRotation,
  endRotation,
  rotationState,
  sealAnew,
  sealedColumns,
} from "../../../src/core/options/seal-rotation.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

/** Columns of a sealed one's name that hold none. */
const PLAIN = new Set(["marks.value"]);
const ROOT = join(import.meta.dir, "../../..");

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let current = "the first key of this test";
  beforeAll(async () => {
    app = await startTestApp({ database, env: { ENCRYPTION_KEY: current } });
  });
  afterAll(() => app.close());

  test("every column whose name or comment says that it is sealed is in the table", () => {
    const schema = readFileSync(join(ROOT, "drizzle/schema.ts"), "utf8");
    // Columns that say so in a comment stand under their own names.
    const commented = [...schema.matchAll(/\/\*\*[^*]*\b[Ss]ealed\b[^*]*\*\/\s*(\w+): d\./g)].map(
      ([, name]) => name ?? "",
    );
    const rotated = new Set(sealedColumns(app.deps.db.t).map(({ column }) => column));
    const missing: string[] = [];
    for (const [table, value] of Object.entries(app.deps.db.t))
      for (const [name, column] of Object.entries(getTableColumns(value))) {
        const looksSealed = /sealed/i.test(name) || commented.includes(name);
        if (looksSealed && !PLAIN.has(`${table}.${name}`) && !rotated.has(column as PgColumn))
          missing.push(`${table}.${name}`);
      }
    expect(missing).toEqual([]);
    expect(commented).toContain("payload");
    for (const { column } of sealedColumns(app.deps.db.t))
      expect(is(column, PgColumn) || column !== undefined).toBe(true);
  });

  test("every purpose that the program seals for is tried", () => {
    const files = new Bun.Glob("src/**/*.ts").scanSync(ROOT);
    const used = new Set<string>();
    for (const file of files)
      for (const [, purpose] of readFileSync(join(ROOT, file), "utf8").matchAll(
        /\bseal\.(?:seal|open|sealBytes|openBytes)\(\s*"(\w+)"/g,
      ))
        used.add(purpose ?? "");
    expect(used.size).toBeGreaterThan(5);
    for (const purpose of used) expect(SEAL_PURPOSES as readonly string[]).toContain(purpose);
  });

  async function fill(secret: string): Promise<void> {
    const { orm, t } = app.deps.db;
    const seal = createSealer(secret);
    const user = await app.createUser();
    await app.createToken(user.id);
    const channelId = await app.createChannel({});
    await orm
      .update(t.channelKeys)
      .set({ keySealed: seal.seal("channel", "upstream key") })
      .where(eq(t.channelKeys.channelId, channelId));
    await app.deps.options.set("SMTPToken", "mail password");
    const setting = JSON.stringify({ language: "en", webhook_secret_sealed: seal.seal("user", "hook") });
    await orm.update(t.users).set({ setting });
    const now = 1_700_000_000;
    await orm.insert(t.authFlows).values({
      kind: "oauth",
      secretHash: crypto.randomUUID(),
      payload: seal.seal("flow", "verifier"),
      createdAt: now,
      expiresAt: now,
    });
    const letterSealed = seal.seal("letter", "{}");
    await orm.insert(t.outbox).values({ kind: "k", letterSealed, createdAt: now, nextAt: now });
    // More than one batch.
    const many = Array.from({ length: 250 }, (_, index) => ({
      userId: user.id,
      keyHash: `${secret} ${index}`,
      keySealed: seal.seal("redemption", `code ${index}`),
    }));
    await orm.insert(t.redemptions).values(many);
  }

  /** How many sealed texts open under which of the two. */
  async function census(from: string, to: string): Promise<{ old: number; new: number; lost: number }> {
    const count = { old: 0, new: 0, lost: 0 };
    const [oldSealer, newSealer] = [createSealer(from), createSealer(to)];
    const opens = (sealer: Sealer, text: string) =>
      SEAL_PURPOSES.some((purpose) => {
        try {
          return sealer.open(purpose, text) !== undefined;
        } catch {
          return false;
        }
      });
    for (const { table, column, field } of sealedColumns(app.deps.db.t)) {
      const rows = await app.deps.db.orm.select({ value: column }).from(table);
      for (const { value } of rows as { value: string }[]) {
        const text = field === undefined ? value : String(/"s1\.[\w-]+"/.exec(value) ?? "").slice(1, -1);
        if (!text.startsWith("s1.")) continue;
        if (opens(newSealer, text)) count.new += 1;
        else if (opens(oldSealer, text)) count.old += 1;
        else count.lost += 1;
      }
    }
    return count;
  }

  test("seals all of it anew, once and again; hashes stay, and what clients carry opens for thirty days", async () => {
    await fill(current);
    const [first, second, third] = [current, "the second key of this test", "the third key of this test"];
    const { db } = app.deps;
    const nowSeconds = 1_800_000_000;
    const carried = app.deps.seal.seal("turn", "state");
    const hash = app.deps.seal.mac("code").toString("hex");
    await beginRotation(db, second);
    expect(
      await openSealer(db, first, nowSeconds).catch((error: Error) => error.name + error.message),
    ).toContain("run `weir rotate` again");
    const { lost, sealed } = await sealAnew(db, { from: first, to: second, nowSeconds });
    expect([lost, sealed > 250]).toEqual([0, true]);
    // Run again, it finds nothing to do.
    expect(await sealAnew(db, { from: first, to: second, nowSeconds })).toEqual({ sealed: 0, lost: 0 });
    await endRotation(db);
    expect(await census(first, second)).toMatchObject({ old: 0, lost: 0 });
    const seal = await openSealer(db, second, nowSeconds);
    expect([seal.mac("code").toString("hex"), seal.open("turn", carried)]).toEqual([hash, "state"]);
    expect(() => seal.open("token", carried)).toThrow();
    const later = await openSealer(db, second, nowSeconds + 30 * 86_400);
    expect(() => later.open("turn", carried)).toThrow();
    expect(await openSealer(db, first, nowSeconds).catch((error: Error) => error.message)).toContain(
      "not the key that this database was sealed with",
    );
    // And once more: the hashes are still those of the first key.
    await beginRotation(db, third);
    await sealAnew(db, { from: second, to: third, nowSeconds });
    await endRotation(db);
    expect((await openSealer(db, third, nowSeconds)).mac("code").toString("hex")).toBe(hash);
    expect(await internalRow(db, MAC_KEY)).toStartWith("s1.");
    current = third;
  });

  test("what opened under no key before is counted, and left as it is", async () => {
    const { db } = app.deps;
    const stray = createSealer("a key that nobody has any more").seal("redemption", "gone");
    await db.orm.insert(db.t.redemptions).values({ userId: 1, keyHash: "stray", keySealed: stray });
    await beginRotation(db, "the fourth key of this test");
    const { lost } = await sealAnew(db, { from: current, to: "the fourth key of this test", nowSeconds: 1 });
    expect(lost).toBe(1);
    expect(await rotationState(db, "the fourth key of this test")).toEqual({
      isUnderWay: true,
      isOwn: true,
      isGoal: true,
    });
    await endRotation(db);
    const rows = await db.orm.select({ sealed: db.t.redemptions.keySealed }).from(db.t.redemptions);
    expect(rows.map(({ sealed }) => sealed)).toContain(stray);
  });
});
