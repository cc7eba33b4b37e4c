// A charge is given back where it was charged: the hour of its call, its own log row, once. Nothing is given back of
// what was never charged, and the books agree afterwards, on both databases.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { audit } from "../../../src/core/ledger/audit.ts";
import { CREATIVE_TASKS, DRAWINGS } from "../../../src/core/tasks/families.ts";
import type { DrawingRow } from "../../../src/core/tasks/families.ts";
import { addTask, failTask } from "../../../src/core/tasks/store.ts";
import { hourOf } from "../../../src/core/ledger/items.ts";
import { clearLogs } from "../../../src/core/logs/list.ts";
import { newRequestId } from "../../../src/http/request-id.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";

const PRICE = 50_000;
const HOUR_MS = 3_600_000;
const MODEL = "mj_imagine";

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    let app: TestApp;
    let user: TestUser;
    let channelId = 0;
    let tokenId = 0;
    let key = "";
    let nowMs = Date.UTC(2026, 10, 20, 12, 59, 59);
    let names = 0;

    beforeAll(async () => {
      app = await startTestApp({ database, clock: { nowMs: () => nowMs } });
      user = await app.createUser({ quota: 10_000_000 });
      ({ id: tokenId, key } = await app.createToken(user.id));
      channelId = await app.createChannel({ type: 2, models: MODEL });
    });
    afterAll(() => app.close());
    afterEach(async () => {
      await app.deps.ledger.flush();
      expect((await audit(app.deps.db)).differences).toEqual([]);
    });

    /** A charge as the task routes make it, at this moment. */
    async function charge(quota = PRICE): Promise<string> {
      const requestId = newRequestId(nowMs);
      const token = await app.deps.accounts.tokenByKey(key.slice(3));
      if (!token) throw new Error("no token");
      const held = await app.deps.ledger.reserve({ requestId, user: token.user, token, amount: quota });
      await held.settle({
        quota,
        promptTokens: 0,
        completionTokens: 0,
        modelName: MODEL,
        channelId,
        group: "default",
        isStream: false,
        useTimeMs: 1,
        content: "",
        other: {},
        atMs: nowMs,
      });
      return requestId;
    }

    const drawing = (requestId: string, fields: Partial<DrawingRow> = {}) =>
      addTask(app.deps, DRAWINGS, {
        userId: user.id,
        tokenId,
        channelId,
        group: "default",
        modelName: MODEL,
        action: "IMAGINE",
        mjId: `refund-${++names}`,
        requestId,
        quota: PRICE,
        submitTimeMs: nowMs,
        settledHour: hourOf(Math.floor(nowMs / 1000)),
        ...fields,
      });

    async function sumsOf(hourMs: number) {
      await app.deps.ledger.flush();
      const { rollups } = app.deps.db.t;
      const hour = hourOf(Math.floor(hourMs / 1000));
      const [sum] = await app.deps.db.orm
        .select({ quota: rollups.quota, logged: rollups.loggedQuota })
        .from(rollups)
        .where(and(eq(rollups.hour, hour), eq(rollups.userId, user.id)));
      return sum ?? { quota: 0, logged: 0 };
    }

    const balance = async () => {
      await app.deps.ledger.flush();
      const { users } = app.deps.db.t;
      const [row] = await app.deps.db.orm.select().from(users).where(eq(users.id, user.id));
      return [row?.quota, row?.usedQuota];
    };

    const failed = { failReason: "no" };

    test.each([
      ["its row knows the hour", {}],
      ["its row is of an earlier version", { settledHour: 0 }],
    ])("a refund after the hour goes to the hour of its call: %s", async (_name, fields) => {
      nowMs += HOUR_MS;
      const firstMs = nowMs;
      const first = await drawing(await charge(), fields);
      const afterFirst = await sumsOf(firstMs);
      nowMs += 2 * HOUR_MS;
      await charge();
      const afterSecond = await sumsOf(nowMs);
      expect(await failTask(app.deps, DRAWINGS, first, failed)).toBe(true);
      expect(await sumsOf(firstMs)).toEqual({
        quota: afterFirst.quota - PRICE,
        logged: afterFirst.logged - PRICE,
      });
      expect(await sumsOf(nowMs)).toEqual(afterSecond);
    });

    test("a song alike, also where consume logs are off", async () => {
      for (const [fields, isLogged] of [
        [{}, "true"],
        [{ settledHour: 0 }, "true"],
        [{}, "false"],
        [{ settledHour: 0 }, "false"],
      ] as const) {
        nowMs += HOUR_MS;
        await app.deps.options.set("LogConsumeEnabled", isLogged);
        const firstMs = nowMs;
        const before = await balance();
        const requestId = await charge();
        await app.deps.options.set("LogConsumeEnabled", "true");
        const song = await addTask(app.deps, CREATIVE_TASKS, {
          userId: user.id,
          tokenId,
          channelId,
          group: "default",
          modelName: MODEL,
          action: "MUSIC",
          taskId: `song-${++names}`,
          requestId,
          quota: PRICE,
          createdAt: Math.floor(nowMs / 1000),
          settledHour: hourOf(Math.floor(nowMs / 1000)),
          ...fields,
        });
        nowMs += 2 * HOUR_MS;
        expect(await failTask(app.deps, CREATIVE_TASKS, song, failed)).toBe(true);
        expect(await sumsOf(firstMs)).toEqual({ quota: 0, logged: 0 });
        expect(await balance()).toEqual(before);
      }
    });

    test("a second refund does nothing, whether it comes later or at the same time", async () => {
      nowMs += HOUR_MS;
      const before = await balance();
      const row = await drawing(await charge());
      await charge();
      const answers = await Promise.all(
        Array.from({ length: 4 }, () => failTask(app.deps, DRAWINGS, row, failed)),
      );
      expect(answers).toEqual([true, true, true, true]);
      await failTask(app.deps, DRAWINGS, row, failed);
      expect(await balance()).toEqual([(before[0] ?? 0) - PRICE, (before[1] ?? 0) + PRICE]);
    });

    test("a task that was imported gives its charge back as a credit, once: no sum has it", async () => {
      nowMs += HOUR_MS;
      const [quota, used] = await balance();
      // The two tables count for themselves: both may have a task of one number.
      const row = await drawing("", { settledHour: 0 });
      const song = await addTask(app.deps, CREATIVE_TASKS, {
        userId: user.id,
        action: "MUSIC",
        quota: PRICE,
        taskId: "imported",
      });
      expect(await failTask(app.deps, DRAWINGS, row, failed)).toBe(true);
      await failTask(app.deps, DRAWINGS, row, failed);
      expect(await failTask(app.deps, CREATIVE_TASKS, song, failed)).toBe(true);
      expect(await balance()).toEqual([(quota ?? 0) + 2 * PRICE, used]);
      const { credits } = app.deps.db.t;
      const refs = await app.deps.db.orm
        .select({ ref: credits.ref })
        .from(credits)
        .where(eq(credits.kind, "refund"));
      expect(refs.map(({ ref }) => ref)).toEqual([`import-drawing-${row.id}`, `import-task-${song.id}`]);
    });

    test("a charge that never came takes nothing back of others in the same hour", async () => {
      nowMs += HOUR_MS;
      await charge();
      const before = await balance();
      const orphan = await drawing("never-settled");
      expect(await failTask(app.deps, DRAWINGS, orphan, failed)).toBe(false);
      expect(await failTask(app.deps, DRAWINGS, { ...orphan, settledHour: 0 }, failed)).toBe(false);
      expect(await balance()).toEqual(before);
      // Once there is no hope the row ends, and still nothing is given back.
      expect(await failTask(app.deps, DRAWINGS, orphan, failed, true)).toBe(true);
      expect(await balance()).toEqual(before);
    });

    test("a charge whose log row was cleared is given back, and its hour stays sound", async () => {
      nowMs += HOUR_MS;
      const before = await balance();
      const row = await drawing(await charge());
      nowMs += HOUR_MS;
      await app.deps.ledger.flush();
      await clearLogs(app.deps, Math.floor(nowMs / 1000));
      expect(await failTask(app.deps, DRAWINGS, row, failed)).toBe(true);
      expect(await balance()).toEqual(before);
    });
  });
}
