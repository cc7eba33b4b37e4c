// Drafts and their moments: several people edit without losing each other's work, a scheduled draft is applied once and by one
// node, in its order, also after a rest, and never over what was changed since.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import {
  applyDueDrafts,
  changeDraft,
  createDraft,
  discardDraft,
  listDrafts,
} from "../../../src/core/prices/drafts.ts";
import type { Draft, DraftEdit } from "../../../src/core/prices/drafts.ts";
import type { SentChange } from "../../../src/core/prices/changes.ts";
import type { CallPrice } from "../../../src/core/prices/prices.ts";
import { planPrices } from "../../../src/core/prices/plan.ts";
import { originRows } from "../../../src/core/prices/origins.ts";
import { takenMark } from "../../../src/core/prices/taken.ts";
import { applyPlan, listRevisions, priceState, revisionDetail } from "../../../src/core/prices/revisions.ts";
import { jobsOf } from "../../../src/jobs/jobs.ts";
import { createScheduler } from "../../../src/jobs/scheduler.ts";
import { LogType } from "../../../src/shared/enums.ts";
import type { Failure } from "../../../src/shared/failures.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { testClock } from "../../support/clock.ts";
import { createTestDatabase, DATABASE_KINDS } from "../../support/postgres.ts";
import type { TestDatabase } from "../../support/postgres.ts";
import { nextLook } from "../../support/turns.ts";

const ROOT = { id: 1, username: "chief", role: 100 };
const ADMIN = { id: 2, username: "keeper", role: 10 };
const LIMIT_MS = 1000;

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "done",
    (error: Failure) => error.code,
  );
const ratio = (name: string, after: number | null): SentChange => ({ key: "ModelRatio", name, after });

describe.each(DATABASE_KINDS)("drafts on %s", (database) => {
  let app: TestApp;
  const clock = testClock();
  const now = (): number => Math.floor(clock.nowMs() / 1000);

  beforeAll(async () => {
    app = await startTestApp({ database, clock });
  });
  afterAll(() => app.close());
  beforeEach(() => app.deps.options.set("ModelRatio", '{"a":1,"b":2}'));

  const draft = (...changes: SentChange[]) => createDraft(app.deps, { title: "", note: "", changes }, ADMIN);
  const change = (of: Draft, edit: Partial<DraftEdit>, actor = ROOT) =>
    changeDraft(app.deps, { id: of.id, version: of.version, ...edit }, actor);
  const schedule = async (of: Draft, inSeconds: number) =>
    change(of, { effectiveAt: now() + inSeconds, parent: (await priceState(app.deps.db)).revision });
  const stored = async (id: number): Promise<Draft | undefined> => {
    const { items } = await listDrafts(app.deps.db, { page: 1, pageSize: 100 });
    return items.find((each) => each.id === id);
  };

  test("of two who edit the same draft the second is told, and nothing of the first's is lost", async () => {
    const read = await draft(ratio("a", 3));
    const edits = ["first", "second"].map((title) => change(read, { title }, ADMIN));
    const codes = await Promise.all(edits.map(codeOf));
    expect(codes.toSorted()).toEqual(["done", "price_draft_changed"]);
    expect((await stored(read.id))?.title).toBe(codes[0] === "done" ? "first" : "second");
    expect((await stored(read.id))?.version).toBe(2);
  });

  test("a name keeps what it was drafted against, until it is scheduled", async () => {
    const read = await draft(ratio("a", 3));
    await app.deps.options.set("ModelRatio", '{"a":1.5,"b":2}');
    const more = await change(read, { changes: [ratio("a", 3), ratio("b", 5)] }, ADMIN);
    expect(more.changes).toMatchObject([
      { name: "a", before: 1, after: 3 },
      { name: "b", before: 2, after: 5 },
    ]);
    const scheduled = await schedule(more, 60);
    expect(scheduled.changes[0]).toMatchObject({ name: "a", before: 1.5, after: 3 });
    await discardDraft(app.deps, read.id, ROOT);
  });

  test("is scheduled by root alone, on the prices that root has seen, and for the future", async () => {
    const read = await draft(ratio("a", 3));
    const { revision } = await priceState(app.deps.db);
    const at = { effectiveAt: now() + 60, parent: revision };
    expect(await codeOf(change(read, at, ADMIN))).toBe("price_draft_scheduled");
    expect(await codeOf(change(read, { ...at, effectiveAt: now() }))).toBe("price_moment_past");
    expect(await codeOf(change(read, { ...at, parent: revision - 1 }))).toBe("price_plan_stale");
    expect(await codeOf(change(read, { effectiveAt: at.effectiveAt }))).toBe("price_plan_stale");
    const empty = await draft(ratio("a", 1));
    expect(await codeOf(change(empty, at))).toBe("price_plan_empty");
    const scheduled = await change(read, at);
    expect(scheduled).toMatchObject({ state: "scheduled", schedulerName: "chief" });
    expect(await codeOf(change(scheduled, { note: "x" }, ADMIN))).toBe("price_draft_scheduled");
    expect(await codeOf(discardDraft(app.deps, scheduled.id, ADMIN))).toBe("price_draft_scheduled");
    // What is edited is no longer what was scheduled.
    const edited = await change(scheduled, { changes: [ratio("a", 4)] });
    expect(edited).toMatchObject({ state: "open", effectiveAt: 0 });
    clock.advance(120_000);
    await applyDueDrafts(app.deps);
    expect(app.deps.options.get("ModelRatio")["a"]).toBe(1);
    await discardDraft(app.deps, edited.id, ADMIN);
    expect(await codeOf(change(edited, { title: "x" }))).toBe("price_draft_closed");
  });

  test("is applied at its moment, not before, as a revision of whoever scheduled it", async () => {
    const scheduled = await schedule(await draft(ratio("a", 3), ratio("b", null)), 60);
    clock.advance(59_000);
    await applyDueDrafts(app.deps);
    expect(app.deps.options.get("ModelRatio")).toEqual({ a: 1, b: 2 });
    clock.advance(1000);
    await applyDueDrafts(app.deps);
    await applyDueDrafts(app.deps);
    expect(app.deps.options.get("ModelRatio")).toEqual({ a: 3 });
    const after = await stored(scheduled.id);
    const { items, revision } = await listRevisions(app.deps.db, { page: 1, pageSize: 1 });
    expect(after).toMatchObject({ state: "applied", revisionId: revision, failure: null });
    expect(items[0]).toMatchObject({ kind: "schedule", username: "chief", userId: 1, draftId: scheduled.id });
    expect((await revisionDetail(app.deps.db, revision)).changeCount).toBe(2);
  });

  test("fails where one of its names was changed since, whole, and says which; other changes do not matter", async () => {
    const title = "autumn";
    const read = await change(await draft(ratio("a", 3), ratio("b", 4)), { title });
    const scheduled = await schedule(read, 60);
    const other = await schedule(await draft(ratio("c", 7)), 60);
    await app.deps.options.set("ModelRatio", '{"a":1,"b":2.5}');
    clock.advance(61_000);
    await applyDueDrafts(app.deps);
    expect(await stored(scheduled.id)).toMatchObject({
      state: "failed",
      failure: { code: "price_plan_stale", names: "b (ModelRatio)" },
      revisionId: 0,
    });
    expect(await stored(other.id)).toMatchObject({ state: "applied" });
    expect(app.deps.options.get("ModelRatio")).toEqual({ a: 1, b: 2.5, c: 7 });
    const { logs } = app.deps.db.t;
    await app.deps.ledger.flush();
    const rows = await app.deps.db.orm.select().from(logs);
    const told = rows.filter(({ type }) => type === LogType.system).map(({ content }) => content);
    expect(told.at(-1)).toBe("定时调价 autumn 未生效，以下项目在排期后已被修改：b (ModelRatio)");
    // Looked at again it can be scheduled again.
    const failed = await stored(scheduled.id);
    if (!failed) throw new Error("no draft");
    expect(await schedule(failed, 60)).toMatchObject({ state: "scheduled", failure: null });
    clock.advance(61_000);
    await applyDueDrafts(app.deps);
    expect(app.deps.options.get("ModelRatio")).toEqual({ a: 3, b: 4, c: 7 });
  });

  test("takes no ratio of a group in use: refused when it is scheduled, failed where it came into use since", async () => {
    const { options, db } = app.deps;
    await options.set("GroupRatio", '{"default":1,"gold":3}');
    const taken: SentChange = { key: "GroupRatio", name: "gold", after: null };
    const scheduled = await schedule(await draft(taken, ratio("a", 9)), 60);
    const user = await app.createUser({ quota: 1000 });
    const { users } = db.t;
    await db.orm.update(users).set({ group: "gold" }).where(eq(users.id, user.id));
    expect(await codeOf(schedule(await draft(taken), 60))).toBe("price_group_in_use");
    clock.advance(61_000);
    await applyDueDrafts(app.deps);
    expect(await stored(scheduled.id)).toMatchObject({
      state: "failed",
      failure: { code: "price_group_in_use", names: "" },
    });
    expect([options.get("GroupRatio"), options.get("ModelRatio")]).toEqual([
      { default: 1, gold: 3 },
      { a: 1, b: 2 },
    ]);
    await db.orm.update(users).set({ group: "default" }).where(eq(users.id, user.id));
    const failed = await stored(scheduled.id);
    if (!failed) throw new Error("no draft");
    await schedule(failed, 60);
    clock.advance(61_000);
    await applyDueDrafts(app.deps);
    expect(options.get("GroupRatio")).toEqual({ default: 1 });
  });

  test("a price that was taken from a source is remembered as taken when its moment comes", async () => {
    const row = { in: 6, out: 24 };
    const taken = takenMark("lists", "1", row);
    const named = await draft(
      { key: "ModelRatio", name: "a", after: 3, taken },
      { key: "CompletionRatio", name: "a", after: 4, taken },
    );
    const scheduled = await schedule(named, 60);
    expect(scheduled.changes.map((each) => each.taken)).toEqual([taken, taken]);
    clock.advance(61_000);
    await applyDueDrafts(app.deps);
    expect((await originRows(app.deps)).get("a")).toEqual({ source: "lists", row });
    await app.deps.options.set("CompletionRatio", "{}");
  });

  test("moments that were missed come in their order", async () => {
    const third = await schedule(await draft(ratio("z", 3)), 300);
    const first = await schedule(await draft(ratio("x", 1)), 100);
    const second = await schedule(await draft(ratio("y", 2)), 200);
    clock.advance(3_600_000);
    await applyDueDrafts(app.deps);
    const done = await Promise.all([first, second, third].map(({ id }) => stored(id)));
    expect(done.map((each) => each?.state)).toEqual(["applied", "applied", "applied"]);
    const [a = 0, b = 0, c = 0] = done.map((each) => each?.revisionId);
    expect([b - a, c - b]).toEqual([1, 1]);
  });

  test("the job finds them by itself, also those whose moment passed while nothing ran", async () => {
    const watch = {} as Parameters<typeof jobsOf>[1];
    const only = () =>
      jobsOf(app.deps, watch, () => Promise.resolve()).filter(({ name }) => name === "price-schedule");
    const before = createScheduler({ ...app.deps, clock }, only());
    await before.look();
    await before.stop();
    const scheduled = await schedule(await draft(ratio("job", 3)), 60);
    clock.advance(3_600_000);
    const after = createScheduler({ ...app.deps, clock }, only());
    clock.advance(15_000);
    await after.look();
    clock.advance(15_000);
    await after.look();
    await after.stop();
    expect((await stored(scheduled.id))?.state).toBe("applied");
  });
});

describe("two nodes", () => {
  const clock = testClock();
  const now = (): number => Math.floor(clock.nowMs() / 1000);
  let database: TestDatabase;
  let here: TestApp;
  let there: TestApp;

  beforeAll(async () => {
    database = await createTestDatabase("postgres");
    const env = { DATABASE_URL: database.databaseUrl ?? "", ENCRYPTION_KEY: "one key for both nodes" };
    here = await startTestApp({ env, clock });
    there = await startTestApp({ env, clock });
    await here.deps.options.set("ModelRatio", '{"a":1}');
  });
  afterAll(async () => {
    await here.close();
    await there.close();
    await database.drop();
  });

  /** Looks until the node charges the model at the ratio, at most for the second that is promised. */
  async function inForce(node: TestApp, ratioNow: number): Promise<CallPrice> {
    const startedMs = performance.now();
    for (let looks = 0; ; looks++) {
      const price = node.deps.prices.callPrice("a", "default", "default");
      if (price?.ratios.modelRatio === ratioNow) return price;
      if (performance.now() - startedMs > LIMIT_MS) throw new Error("not in force after a second");
      await nextLook(looks);
    }
  }

  test("apply the same scheduled draft once, and both have its prices within a second", async () => {
    for (let round = 1; round <= 5; round++) {
      const changes = [ratio("a", 1 + round), { key: "QuotaPerUnit", name: "", after: 500_000 + round }];
      const made = await createDraft(here.deps, { title: "", note: "", changes }, ADMIN);
      const { revision } = await priceState(here.deps.db);
      const edit = { id: made.id, version: 1, effectiveAt: now() + 60, parent: revision };
      await changeDraft(here.deps, edit, ROOT);
      clock.advance(61_000);
      await Promise.all([applyDueDrafts(here.deps), applyDueDrafts(there.deps)]);
      expect((await priceState(here.deps.db)).revision).toBe(revision + 1);
      const { items } = await listDrafts(here.deps.db, { page: 1, pageSize: 1 });
      expect(items[0]).toMatchObject({ id: made.id, state: "applied", revisionId: revision + 1 });
      // Both options of the revision together, or neither.
      for (const node of [here, there])
        expect((await inForce(node, 1 + round)).quotaPerUnit).toBe(500_000 + round);
    }
  });

  test("of two plans on one parent one is applied, on both nodes; the other is told what changed", async () => {
    const author = { userId: ROOT.id, username: ROOT.username };
    for (let round = 1; round <= 5; round++) {
      const sides = [
        { node: here, after: 100 + round },
        { node: there, after: 200 + round },
      ];
      const outcomes = await Promise.all(
        sides.map(async ({ node, after }) => {
          const changes = [ratio("a", after)];
          const { parent, planHash } = await planPrices(node.deps, { changes, days: 0 });
          return { node, changes, parent, planHash, after };
        }),
      ).then((plans) =>
        Promise.all(
          plans.map(async ({ node, after, ...plan }) => {
            const code = await codeOf(applyPlan(node.deps, { ...plan, note: "" }, author));
            return { code, after };
          }),
        ),
      );
      expect(outcomes.map(({ code }) => code).toSorted()).toEqual(["done", "price_plan_stale"]);
      const winner = outcomes.find(({ code }) => code === "done")?.after ?? 0;
      for (const node of [here, there]) await inForce(node, winner);
    }
  });
});
