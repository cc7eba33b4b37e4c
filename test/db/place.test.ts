// By what copies of one database are told apart. Refuses SQLite, which has nothing of the kind.
import { expect, test } from "bun:test";
import { connect } from "../../src/db/connect.ts";
import { databasePlace } from "../../src/db/place.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";

async function placeOf({ databaseUrl = "", dataDir }: TestDatabase): Promise<string> {
  const db = await connect({ dataDir, databaseUrl });
  try {
    return await databasePlace(db);
  } finally {
    await db.close();
  }
}

test("all connections to one database name one place, those to another one of the server another", async () => {
  const one = await createTestDatabase("postgres");
  const two = await createTestDatabase("postgres");
  try {
    const [first, again, other] = [await placeOf(one), await placeOf(one), await placeOf(two)];
    expect(first).toMatch(/^[0-9a-z]+\.[0-9a-z]+$/);
    expect(again).toBe(first);
    expect(other).not.toBe(first);
    expect(other.split(".")[0]).toBe(String(first.split(".")[0]));
  } finally {
    await one.drop();
    await two.drop();
  }
});
