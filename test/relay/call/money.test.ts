// The books under pressure: a balance that pays for exactly a hundred calls, and three hundred at once.
import { describe, expect, test } from "bun:test";
import { audit } from "../../../src/core/ledger/audit.ts";
import { gate, answer } from "../../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { startGateway } from "../support.ts";

describe.each(DATABASE_KINDS)("on %s", (database) => {
  test("300 concurrent calls against a balance for 100: 100 succeed, the rest are refused before any upstream call", async () => {
    const g = await startGateway({ database, quota: 1000 });
    // One call costs 10 units, held back in full: 10 / 500,000 dollars.
    await g.setOption("ModelPrice", JSON.stringify({ "gpt-4o-mini": 10 / 500_000 }));
    const door = gate();
    g.upstream.always({ ...answer("ok"), before: door });
    const calls = Array.from({ length: 300 }, () => g.chat());
    // All admitted calls wait at the upstream's door: nobody's charge can make room for another.
    await g.upstream.request(99);
    const refused = Promise.allSettled(calls);
    door.open();
    const statuses = await Promise.all(
      (await refused).map(async (result) => {
        if (result.status === "rejected") throw result.reason;
        await result.value.text();
        return result.value.status;
      }),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(100);
    // Held beside them for the moment, or empty once they have been charged.
    expect(statuses.filter((status) => status === 429 || status === 403)).toHaveLength(200);
    expect(g.upstream.requests).toHaveLength(100);
    expect(await g.balance()).toEqual({ quota: 0, used: 1000, requests: 100 });
    const { differences } = await audit(g.app.deps.db);
    expect(differences).toEqual([]);
    await g.close();
  }, 60_000);
});
