// The lease of a run over many accounts, on two nodes whose clocks differ by a day: the database's clock decides.
import { expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { takeLease } from "../../../src/core/users/bulk-lease.ts";
import { startTestApp } from "../../support/app.ts";
import { testClock } from "../../support/clock.ts";
import { createTestDatabase } from "../../support/postgres.ts";

test("a node whose clock is a day ahead takes no run that another one works on; one a day behind takes what is free", async () => {
  const database = await createTestDatabase("postgres");
  const clock = testClock();
  const app = await startTestApp({ env: { DATABASE_URL: database.databaseUrl ?? "" }, clock });
  try {
    const { db } = app.deps;
    const { userBulks } = db.t;
    const until = (seconds: number) => sql`floor(extract(epoch from now()))::bigint + ${seconds}::bigint`;
    const values = { action: "flag", params: "{}", actor: "{}", actorId: 1, total: 1, createdAt: 1 };
    const [run] = await db.orm
      .insert(userBulks)
      .values({ ...values, leaseUntil: until(30) })
      .returning({ id: userBulks.id });
    const id = run?.id ?? 0;
    const ownSeconds = Math.floor(clock.nowMs() / 1000);
    const [row] = await db.orm.select({ now: until(0).mapWith(Number) }).from(userBulks);
    clock.advance(((row?.now ?? 0) - ownSeconds + 86_400) * 1000);
    expect(await takeLease(app.deps, id, false)).toBe(false);
    await db.orm
      .update(userBulks)
      .set({ leaseUntil: until(-5) })
      .where(eq(userBulks.id, id));
    clock.advance(-2 * 86_400_000);
    expect(await takeLease(app.deps, id, false)).toBe(true);
    expect(await takeLease(app.deps, id, false)).toBe(false);
  } finally {
    await app.close();
    await database.drop();
  }
}, 30_000);
