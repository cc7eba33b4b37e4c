// Every column of a log row and of an hour's sums is written, each with its own value, on both databases.
import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { LogType } from "../../../src/shared/enums.ts";
import { START_MS } from "../../support/clock.ts";
import { settlement, startBooks } from "./support.ts";

for (const database of ["sqlite", "postgres"] as const) {
  test(`on ${database} every column of a log row and of its hour has the value of the call`, async () => {
    const books = await startBooks(database);
    const user = await books.addUser(1_000_000);
    const token = await books.addToken(user);
    const channelId = await books.addChannel();
    const fields = { channelId, promptTokens: 11, completionTokens: 7, useTimeMs: 345, isStream: true };
    const named = { modelName: 'm"odel', group: "g'roup", content: "内容 \\ \n", other: { a: 1 } };
    const call = async (quota: number) => {
      const hold = await books.ledger.reserve({ requestId: `call-${quota}`, user, token, amount: 50 });
      await hold.settle(settlement(quota, { ...fields, ...named }));
    };
    await call(23);
    await call(29);
    await books.ledger.flush();

    const { logs, rollups } = books.db.t;
    const createdAt = Math.floor(START_MS / 1000);
    const [row] = await books.db.orm.select().from(logs).where(eq(logs.requestId, "call-23"));
    expect(row).toEqual({
      ...fields,
      ...named,
      id: row?.id ?? 0,
      createdAt,
      type: LogType.consume,
      userId: user.id,
      tokenId: token.id,
      quota: 23,
      requestId: "call-23",
      username: user.username,
      tokenName: token.name,
      other: '{"a":1}',
    });
    expect(await books.db.orm.select().from(rollups)).toEqual([
      {
        hour: createdAt - (createdAt % 3600),
        userId: user.id,
        modelName: named.modelName,
        channelId,
        tokenId: token.id,
        group: named.group,
        count: 2,
        quota: 52,
        promptTokens: 22,
        completionTokens: 14,
        useTimeMs: 690,
        loggedCount: 2,
        loggedQuota: 52,
        // Nobody said what the calls cost.
        costNanos: 0,
        costCount: 0,
        costQuota: 0,
        lostNanos: 0,
        errorCount: 0,
        // Nor what caches did for them.
        cacheInput: 0,
        cacheRead: 0,
        cacheSaved: 0,
      },
    ]);
    // Sums of another batch are added to the same hour.
    await call(31);
    await books.expectBalanced();
    const [sum, ...more] = await books.db.orm.select().from(rollups);
    expect([sum?.count, sum?.quota, sum?.useTimeMs, more.length]).toEqual([3, 83, 1035, 0]);
    await books.close();
  });
}
