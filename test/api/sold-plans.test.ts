// Plans on sale as a part of prices: whoever changes them, by whichever way, makes a revision that says who, what, when and
// why and that can be taken back; drafts and plans carry them; what was bought keeps its terms. Both databases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { applyDueDrafts } from "../../src/core/prices/drafts.ts";
import { LogType } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

type Terms = Record<string, unknown>;
interface Change {
  key: string;
  name: string;
  before: Terms | null;
  after: Terms | null;
}
interface Revision {
  id: number;
  kind: string;
  username: string;
  created_at: number;
  note: string;
  undo_of: number;
  draft_id: number;
  names: string[];
  changes: Change[];
}
interface Wire<T> {
  success: boolean;
  message: string;
  code?: string;
  data: T;
}

const NEW = { title: "Pro", quota: 5_000_000, duration_unit: "month", wallet_price: 400_000 };
/** Others than the first of their lists. */
const KEPT = { reset: "week", stack: "parallel" };
const PLANS = "Plans";

describe.each(DATABASE_KINDS)("plans in the history of prices on %s", (database) => {
  const clock = testClock(Date.UTC(2027, 2, 1, 12, 0, 0));
  let app: TestApp;
  let root: TestUser;
  let admin: TestUser;
  let buyer: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database, clock });
    root = await app.createUser({ role: 100, username: "chief" });
    admin = await app.createUser({ role: 10, username: "keeper" });
    buyer = await app.createUser({ quota: 5_000_000 });
  });
  afterAll(() => app.close());

  const call = async <T>(method: string, path: string, body?: unknown, as = root) =>
    (await app.call<Wire<T>>(method, `/api${path}`, body, as)).body;
  const done = async <T>(method: string, path: string, body?: unknown, as = root): Promise<T> => {
    const answer = await call<T>(method, path, body, as);
    expect([answer.message, answer.success]).toEqual(["", true]);
    return answer.data;
  };
  const newest = async (): Promise<Revision> => {
    const { items } = await done<{ items: Revision[] }>("GET", "/price/revisions?page_size=1");
    return done<Revision>("GET", `/price/revisions/${items[0]?.id}`);
  };
  const listed = async (): Promise<Terms[]> => done<Terms[]>("GET", "/plan/");
  const planNamed = async (title: string) => (await listed()).find((each) => each["title"] === title);
  const undo = (id: number, more: object = {}, as = root) =>
    call<{ changes: number; skipped: Change[] }>("POST", `/price/revisions/${id}/undo`, more, as);
  /** Actions of the audit trail about plans, the latest last. */
  const told = async (): Promise<{ action: string; params: Terms; by: string }[]> => {
    await app.deps.ledger.flush();
    const { logs } = app.deps.db.t;
    const rows = await app.deps.db.orm
      .select()
      .from(logs)
      .where(eq(logs.type, LogType.manage))
      .orderBy(logs.id);
    return rows.flatMap(({ other, username }) => {
      const { op } = JSON.parse(other) as { op?: { action: string; params: Terms } };
      return op?.action.startsWith("plan.") === true ? [{ ...op, by: username }] : [];
    });
  };

  test("made, changed and taken away in the console: each a revision with its author and reason, each with an audit row", async () => {
    const { id } = await done<{ id: number }>("POST", "/plan/", { ...NEW, ...KEPT, reason: "spring" });
    const made = await newest();
    expect(made).toMatchObject({ kind: "plans", username: "chief", note: "spring", names: ["Pro"] });
    expect(made.created_at).toBe(Math.floor(clock.nowMs() / 1000));
    expect(made.changes).toEqual([
      {
        key: PLANS,
        name: String(id),
        before: null,
        after: expect.objectContaining({ ...NEW, ...KEPT }),
      },
    ]);

    await done("PUT", `/plan/${id}`, { quota: 6_000_000, reason: "more" });
    const changed = await newest();
    expect([changed.id, changed.note, changed.changes[0]?.before?.["quota"]]).toEqual([
      made.id + 1,
      "more",
      5_000_000,
    ]);
    // What is not named stays, choices too.
    expect(changed.changes[0]?.after).toMatchObject({ ...NEW, ...KEPT, quota: 6_000_000 });
    // What changes nothing is no revision.
    await done("PUT", `/plan/${id}`, { quota: 6_000_000 });
    await done("DELETE", `/plan/${id}?reason=over`);
    const gone = await newest();
    expect([gone.id, gone.note, gone.changes[0]?.after]).toEqual([made.id + 2, "over", null]);
    // By its title, as people know it.
    const { items } = await done<{ items: Revision[] }>("GET", "/price/revisions?name=Pro");
    expect(items.map((each) => each.id)).toEqual([gone.id, changed.id, made.id]);
    expect(await told()).toEqual([
      { action: "plan.create", params: { plan: "Pro" }, by: "chief" },
      { action: "plan.update", params: { plan: "Pro", fields: "quota" }, by: "chief" },
      { action: "plan.delete", params: { plan: "Pro" }, by: "chief" },
    ]);

    // Taken back by root alone, as the row that it was: what was sold of it still counts.
    expect((await undo(gone.id, {}, admin)).success).toBe(false);
    expect(await planNamed("Pro")).toBeUndefined();
    expect((await undo(gone.id, { note: "a slip" })).data.changes).toBe(1);
    expect(await planNamed("Pro")).toMatchObject({ id, quota: 6_000_000, enabled: true });
    expect(await newest()).toMatchObject({
      kind: "undo",
      username: "chief",
      note: "a slip",
      undo_of: gone.id,
    });
    expect((await undo(changed.id)).data.changes).toBe(1);
    expect(await planNamed("Pro")).toMatchObject({ id, quota: 5_000_000 });
    expect((await told()).slice(3).map(({ action, by }) => `${by} ${action}`)).toEqual([
      "chief plan.create",
      "chief plan.update",
    ]);
  });

  test("an undo leaves alone what was changed since, renamed or not, unless it is ticked; a title is never there twice", async () => {
    const { id } = await done<{ id: number }>("POST", "/plan/", { ...NEW, title: "Small" });
    await done("PUT", `/plan/${id}`, { title: "Little" });
    const renamed = await newest();
    await done("PUT", `/plan/${id}`, { quota: 1_000_000 });
    const left = await undo(renamed.id);
    expect([left.success, left.code]).toEqual([false, "price_undo_empty"]);
    expect(left.message).toContain("Little");
    await done("POST", "/plan/", { ...NEW, title: "Small" });
    const include = [{ key: PLANS, name: String(id) }];
    expect((await undo(renamed.id, { include })).code).toBe("plan_title_taken");
    await done("DELETE", `/plan/${String((await planNamed("Small"))?.["id"])}`);
    expect((await undo(renamed.id, { include })).data.changes).toBe(1);
    expect(await planNamed("Small")).toMatchObject({ id, quota: 5_000_000 });
    expect((await call("POST", "/plan/", { ...NEW, title: "Small" })).code).toBe("plan_title_taken");
  });

  test("administrators draft a plan, root applies it with prices or not at all; what was bought keeps its terms", async () => {
    const { id } = await done<{ id: number }>("POST", "/plan/", { ...NEW, title: "Basic" });
    await done("POST", `/plan/${id}/buy`, { method: "wallet" }, buyer);
    const changes = [
      { key: PLANS, name: String(id), after: { quota: 9_000_000 } },
      { key: PLANS, name: "Yearly", after: { ...NEW, title: "Yearly", duration_unit: "year" } },
      { key: "GroupRatio", name: "gold", after: 0.5 },
    ];
    const draft = await done<{ id: number; version: number; changes: Change[] }>(
      "POST",
      "/price/drafts",
      { title: "April", changes },
      admin,
    );
    expect(draft.changes.map(({ key, name }) => `${key} ${name}`)).toEqual([
      "GroupRatio gold",
      `Plans ${id}`,
      "Plans Yearly",
    ]);
    const plan = () =>
      done<{ plan_hash: string; parent: number; changes: Change[] }>(
        "POST",
        "/price/plan",
        { changes, days: 0 },
        admin,
      );
    const old = await plan();
    const apply = (of: { plan_hash: string; parent: number }, as = root) =>
      call<{ changes: number }>(
        "POST",
        "/price/apply",
        { plan_hash: of.plan_hash, parent: of.parent, changes, note: "April list", draft_id: draft.id },
        as,
      );
    expect((await apply(old, admin)).success).toBe(false);
    // A plan that moved meanwhile is told by its title.
    await done("PUT", `/plan/${id}`, { max_per_user: 5 });
    const stale = await apply(old);
    expect(stale.code).toBe("price_plan_stale");
    expect(stale.message).toContain("Basic");
    expect(await planNamed("Yearly")).toBeUndefined();
    expect((await apply(await plan())).data.changes).toBe(3);
    expect(await planNamed("Basic")).toMatchObject({ quota: 9_000_000, max_per_user: 5 });
    const yearly = await planNamed("Yearly");
    expect(yearly).toMatchObject({ duration_unit: "year", enabled: true });
    const applied = await newest();
    expect(applied).toMatchObject({
      kind: "apply",
      username: "chief",
      note: "April list",
      draft_id: draft.id,
    });
    expect(applied.changes.map(({ key, name }) => `${key} ${name}`).toSorted()).toEqual(
      ["GroupRatio gold", `Plans ${id}`, `Plans ${String(yearly?.["id"])}`].toSorted(),
    );
    const { userPlans } = app.deps.db.t;
    const [bought] = await app.deps.db.orm
      .select()
      .from(userPlans)
      .where(and(eq(userPlans.userId, buyer.id), eq(userPlans.planId, id)));
    expect(bought).toMatchObject({ title: "Basic", quota: 5_000_000 });
    // One step back for all of it; the new plan is no longer sold.
    expect((await undo(applied.id)).data.changes).toBe(3);
    expect(await planNamed("Yearly")).toBeUndefined();
    expect(await planNamed("Basic")).toMatchObject({ quota: 5_000_000, max_per_user: 5 });
    expect(Object.keys(app.deps.options.get("GroupRatio"))).not.toContain("gold");
  });

  test("a scheduled change of a plan comes at its moment, and fails with its title where it was changed since", async () => {
    const { id } = await done<{ id: number }>("POST", "/plan/", { ...NEW, title: "Timed" });
    const schedule = async (quota: number) => {
      const changes = [{ key: PLANS, name: String(id), after: { quota } }];
      const draft = await done<{ id: number; version: number }>("POST", "/price/drafts", { changes }, admin);
      const { revision } = await done<{ revision: number }>("GET", "/price/revisions");
      const at = Math.floor(clock.nowMs() / 1000) + 60;
      const body = { id: draft.id, version: draft.version, effective_at: at, parent: revision };
      await done("PUT", "/price/drafts", body);
      return draft.id;
    };
    await schedule(7_000_000);
    await applyDueDrafts(app.deps);
    expect(await planNamed("Timed")).toMatchObject({ quota: 5_000_000 });
    clock.jump(61_000);
    await applyDueDrafts(app.deps);
    expect(await planNamed("Timed")).toMatchObject({ quota: 7_000_000 });
    expect(await newest()).toMatchObject({ kind: "schedule", username: "chief", names: ["Timed"] });
    const late = await schedule(8_000_000);
    await done("PUT", `/plan/${id}`, { quota: 1_000_000 });
    clock.jump(61_000);
    await applyDueDrafts(app.deps);
    expect(await planNamed("Timed")).toMatchObject({ quota: 1_000_000 });
    const { items } = await done<{ items: { id: number; state: string; failure: unknown }[] }>(
      "GET",
      "/price/drafts",
    );
    expect(items.find((each) => each.id === late)).toMatchObject({
      state: "failed",
      failure: { code: "price_plan_stale", names: "Timed (Plans)" },
    });
  });

  test("a settings file's plans are a revision and audit rows, too; prices and plans of one file are one revision", async () => {
    const before = (await told()).length;
    const document = {
      format: 1,
      groups: { silver: { ratio: 0.9 } },
      plans: { File: { quota: 1_000_000, duration_unit: "day", wallet_price: 5, group: "silver" } },
    };
    await done("POST", "/config/apply", { document, note: "by file" });
    const filed = await newest();
    expect(filed).toMatchObject({ kind: "cli", username: "chief", note: "by file" });
    expect(filed.changes.map(({ key }) => key).toSorted()).toEqual(["GroupRatio", PLANS]);
    document.plans.File.quota = 2_000_000;
    await done("POST", "/config/apply", { document });
    expect((await told()).slice(before)).toEqual([
      { action: "plan.create", params: { plan: "File" }, by: "chief" },
      { action: "plan.update", params: { plan: "File", fields: "quota" }, by: "chief" },
    ]);
    // A group that a plan gives stays, and the refusal says who names it.
    const changes = [{ key: "GroupRatio", name: "silver", after: null }];
    const planned = await done<{ plan_hash: string; parent: number }>("POST", "/price/plan", {
      changes,
      days: 0,
    });
    const { plan_hash: hash, parent } = planned;
    const used = await call("POST", "/price/apply", { plan_hash: hash, parent, changes });
    expect([used.code, used.message]).toEqual(["price_group_in_use", expect.stringContaining("plans")]);
    expect((await undo((await newest()).id)).success).toBe(true);
    expect(await planNamed("File")).toMatchObject({ quota: 1_000_000 });
  });

  test("terms that could not be kept are refused in a draft as in the console, and nothing is done", async () => {
    const { id } = await done<{ id: number }>("POST", "/plan/", { ...NEW, title: "Kept" });
    const cases: [string, unknown, string][] = [
      [String(id), { quota: 0 }, "quota_out_of_range"],
      [String(id), { group: "nowhere" }, "plan_group"],
      [String(id), { title: "Timed" }, "plan_title_taken"],
      [String(id), { colour: "red" }, "price_change_invalid"],
      [String(id), { reset: "moon" }, "price_change_invalid"],
      ["New", { title: "New" }, "price_change_invalid"],
      ["New", "text", "price_change_invalid"],
    ];
    for (const [name, after, code] of cases) {
      const changes = [{ key: PLANS, name, after }];
      expect([name, after, (await call("POST", "/price/drafts", { changes }, admin)).code]).toEqual([
        name,
        after,
        code,
      ]);
    }
    const unknown = [{ key: PLANS, name: "999999", after: { ...NEW, title: "Ghost" } }];
    const planned = await done<{ plan_hash: string; parent: number }>("POST", "/price/plan", {
      changes: unknown,
      days: 0,
    });
    const refused = await call("POST", "/price/apply", {
      plan_hash: planned.plan_hash,
      parent: planned.parent,
      changes: unknown,
    });
    expect(refused.code).toBe("plan_missing");
    expect(await planNamed("Kept")).toMatchObject({ quota: 5_000_000, group: "" });
  });
});
