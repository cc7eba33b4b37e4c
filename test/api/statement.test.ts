// Statements: whatever happened, in whatever zone, each month's sum is the books' sum and opens where the one before closed.
// Histories and zones by chance; the clock is the test's. On both databases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import fc from "fast-check";
import { statementCsv } from "../../src/core/payments/statement-csv.ts";
import { statementOf } from "../../src/core/payments/statement.ts";
import type { Statement } from "../../src/core/payments/statement.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const HOUR = 3600;
/** Whole hours, half hours, a quarter, beyond a day, and one whose clock changes at a month's first midnight. */
const ZONES = [
  "UTC",
  "Asia/Shanghai",
  "America/Havana",
  "Asia/Kolkata",
  "Pacific/Kiritimati",
  "Asia/Kathmandu",
];
const FIRST = Date.UTC(2026, 8, 1) / 1000;
const LAST = Date.UTC(2026, 11, 10) / 1000;
const KINDS = ["register", "redeem", "admin", "refund", "affiliate"] as const;

/** Near the ends of months things are cut; half of all moments lie there. */
const moment = fc.oneof(
  fc.integer({ min: FIRST, max: LAST - 1 }),
  fc
    .tuple(
      fc.constantFrom(...[9, 10, 11].map((month) => Date.UTC(2026, month, 1) / 1000)),
      fc.integer({ min: -15 * HOUR, max: 15 * HOUR }),
    )
    .map(([at, by]) => at + by),
);
interface Happened {
  at: number;
  amount: number;
  kind: string;
  isUse: boolean;
  model: string;
  tokenId: number;
}
const event: fc.Arbitrary<Happened> = fc.record({
  at: moment,
  amount: fc.integer({ min: -5_000_000, max: 9_000_000 }),
  kind: fc.constantFrom(...KINDS),
  isUse: fc.boolean(),
  model: fc.constantFrom("gpt-a", "=cmd|'/c calc'!A1", "模型"),
  tokenId: fc.constantFrom(0, 1, 2),
});

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock(LAST * 1000);
  let app: TestApp;
  let root: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database, clock });
    root = await app.createUser({ role: Role.root });
  });
  afterAll(() => app.close());

  async function lived(events: readonly Happened[]): Promise<TestUser> {
    const user = await app.createUser();
    const { credits, rollups, users } = app.deps.db.t;
    let [came, went] = [0, 0];
    for (const { at, amount, kind, isUse, model, tokenId } of events) {
      if (!isUse) {
        came += amount;
        await app.deps.db.orm.insert(credits).values({ userId: user.id, amount, kind, createdAt: at });
        continue;
      }
      const quota = Math.abs(amount);
      went += quota;
      const hour = at - (at % HOUR);
      const key = { hour, userId: user.id, modelName: model, channelId: 1, tokenId, group: `g${went}${at}` };
      const sums = { count: 1, quota, promptTokens: 7, completionTokens: 3, loggedCount: 0 };
      await app.deps.db.orm.insert(rollups).values({ ...key, ...sums });
    }
    await app.deps.db.orm
      .update(users)
      .set({ quota: came - went, usedQuota: went })
      .where(eq(users.id, user.id));
    return user;
  }

  const total = (rows: readonly { quota: number }[]) => rows.reduce((sum, { quota }) => sum + quota, 0);

  function expectSound(statement: Statement): void {
    const { opening, credited, used, closing, entries, credits, use } = statement;
    expect(opening + credited - used).toBe(closing);
    expect(entries.reduce((sum, { amount }) => sum + amount, 0)).toBe(credited);
    expect(credits.reduce((sum, { amount }) => sum + amount, 0)).toBe(credited);
    for (const rows of [use.by_day, use.by_model, use.by_key, use.lines]) expect(total(rows)).toBe(used);
    for (const { day } of [...use.by_day, ...entries]) expect(day.slice(0, 7)).toBe(statement.month);
    const lines = statementCsv(statement).trimEnd().split("\r\n").slice(1);
    const units = lines.map((line) => Number(line.split(",").at(9)));
    expect(units.slice(0, -1).reduce((sum, each) => sum + each, 0)).toBe(units.at(-1) ?? Number.NaN);
    expect(lines.join("\n")).not.toMatch(/(^|,)"?=/m);
  }

  test("any history in any zone: months chain, and the last closes with the balance that the books have", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(event, { maxLength: 25 }),
        fc.constantFrom(...ZONES),
        async (events, zone) => {
          const user = await lived(events);
          await app.deps.options.set("site.time_zone", zone);
          const { users } = app.deps.db.t;
          const [row] = await app.deps.db.orm
            .select({ quota: users.quota })
            .from(users)
            .where(eq(users.id, user.id));
          const { months } = await statementOf(app.deps, { userId: user.id, month: "2026-12" });
          let before = 0;
          for (const month of months.toReversed()) {
            const statement = await statementOf(app.deps, { userId: user.id, month });
            expectSound(statement);
            expect(statement.opening).toBe(before);
            before = statement.closing;
          }
          expect(before).toBe(row?.quota ?? Number.NaN);
        },
      ),
      {
        numRuns: 12,
        // The first moment of a month whose first midnight comes twice.
        examples: [
          [
            [{ at: 1_793_505_600, amount: 5, kind: "register", isUse: false, model: "gpt-a", tokenId: 0 }],
            "America/Havana",
          ],
        ],
      },
    );
  }, 60_000);

  test("a credit at a month's first second is that month's, and a zone that is changed cuts the same books anew", async () => {
    const [first, last] = [Date.UTC(2026, 9, 31, 16) / 1000, Date.UTC(2026, 9, 31, 16) / 1000 - 1];
    const base = { amount: 5, kind: "admin", isUse: false, model: "gpt-a", tokenId: 0 };
    const user = await lived([
      { ...base, at: first },
      { ...base, at: last, amount: 3 },
    ]);
    const november = async (zone: string) => {
      await app.deps.options.set("site.time_zone", zone);
      const { opening, credited, from } = await statementOf(app.deps, { userId: user.id, month: "2026-11" });
      return { opening, credited, from };
    };
    expect(await november("Asia/Shanghai")).toEqual({ opening: 3, credited: 5, from: first });
    expect(await november("UTC")).toEqual({ opening: 8, credited: 0, from: first + 8 * HOUR });
    // The month turns over by the clock: now the next one has a statement, a second before it had none.
    await app.deps.options.set("site.time_zone", "Asia/Shanghai");
    const turn = Date.UTC(2026, 11, 31, 16) * 1;
    clock.jump(turn - 1000 - clock.nowMs());
    const january = () => statementOf(app.deps, { userId: user.id, month: "2027-01" });
    expect(await january().catch((error: unknown) => error)).toMatchObject({ code: "statement_month" });
    clock.jump(1000);
    expect(await january()).toMatchObject({ opening: 8, closing: 8, is_open: true });
  });

  test("an imported account begins with what it had left where its sums begin", async () => {
    await app.deps.options.set("site.time_zone", "UTC");
    const base = { amount: 900, kind: "import", model: "gpt-a", tokenId: 0 };
    const user = await lived([
      { ...base, at: FIRST + 100, isUse: false },
      { ...base, at: FIRST + 7 * HOUR, amount: 250, isUse: true },
    ]);
    await app.deps.db.orm
      .insert(app.deps.db.t.openings)
      .values({ kind: "user", id: user.id, usedQuota: 150 });
    const months = ["2026-09", "2026-10"].map((month) => statementOf(app.deps, { userId: user.id, month }));
    const [first, second] = await Promise.all(months);
    expectSound(first as Statement);
    expect(first).toMatchObject({ opening: 0, credited: 750, used: 250, closing: 500 });
    expect(second).toMatchObject({ opening: 500, closing: 500 });
  });

  test("everybody reads their own, administrators everybody's, as data and as a file", async () => {
    await app.deps.options.set("site.time_zone", "UTC");
    const base = { kind: "redeem", model: "=1+1", tokenId: 0, at: FIRST + 100 };
    const user = await lived([
      { ...base, amount: 900, isUse: false },
      { ...base, amount: 250, isUse: true },
    ]);
    const path = "/api/user/statement?month=2026-09";
    const own = await app.call<{ data: Statement }>("GET", path, undefined, user);
    expect(own.body.data).toMatchObject({
      opening: 0,
      credited: 900,
      used: 250,
      closing: 650,
      is_open: false,
    });
    const file = await app.call("GET", `${path}&format=csv`, undefined, user);
    expect([file.headers.get("content-type"), file.headers.get("content-disposition")]).toEqual([
      "text/csv;charset=utf-8",
      `attachment; filename="statement-${user.id}-2026-09.csv"`,
    ]);
    const [head, ...lines] = file.text.trimEnd().split("\r\n");
    expect(head).toBe("line,day,time_utc,kind,reference,model,key,calls,tokens,units,dollars,money,currency");
    expect(lines).toEqual([
      "opening,2026-09-01,,,,,,,,0,0,,",
      "credit,2026-09-01,2026-09-01T00:01:40Z,redeem,,,,,,900,0.0018,,",
      "use,2026-09-01,,,,'=1+1,0,1,10,-250,-0.0005,,",
      "closing,,,,,,,,,650,0.0013,,",
    ]);
    const stranger = await app.createUser();
    expect((await app.call("GET", `${path}&user_id=${user.id}`, undefined, stranger)).status).toBe(403);
    const read = await app.call<{ data: Statement }>("GET", `${path}&user_id=${user.id}`, undefined, root);
    expect(read.body.data.user.username).toBe(user.username);
    for (const month of ["2026-13", "2026-9", "2099-01", "x"])
      expect(
        (await app.call("GET", `/api/user/statement?month=${month}`, undefined, user)).body,
      ).toMatchObject({
        code: "statement_month",
      });
    expect((await app.call("GET", `${path}&user_id=999999`, undefined, root)).body).toMatchObject({
      code: "user_missing",
    });
  });
});
