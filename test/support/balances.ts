// What an account has, by the books themselves.
// Refuses to look at memory: what was accepted is entered first.
import { eq } from "drizzle-orm";
import type { TestApp } from "./app.ts";

/** Units; NaN: there is no such account. */
export async function balanceOf(app: TestApp, userId: number): Promise<number> {
  const { users } = app.deps.db.t;
  await app.deps.ledger.flush();
  const [row] = await app.deps.db.orm.select({ quota: users.quota }).from(users).where(eq(users.id, userId));
  return row?.quota ?? Number.NaN;
}
