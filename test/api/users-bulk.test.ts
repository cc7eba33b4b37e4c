// Many accounts at once: frozen when it is asked for, each done once, ranks respected row by row. On both databases.
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { resumeBulks } from "../../src/core/users/bulk-run.ts";
import { purgeBulks } from "../../src/core/users/bulk.ts";
import type { BulkHead, BulkJson } from "../../src/core/users/bulk.ts";
import type { AdminUserJson } from "../../src/core/users/user-list.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import type { TestClock } from "../support/clock.ts";
import { startMailServer } from "../support/mail-server.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { until } from "../relay/support.ts";

interface Told<T> {
  success: boolean;
  code?: string;
  data: T;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let clock: TestClock;
  let admin: TestUser;
  let other: TestUser;
  let root: TestUser;
  beforeAll(async () => {
    clock = testClock();
    app = await startTestApp({ database, clock });
    admin = await app.createUser({ role: 10 });
    other = await app.createUser({ role: 10 });
    root = await app.createUser({ role: 100 });
  });
  afterAll(() => app.close());

  const post = (body: unknown) => app.call<Told<{ id: number }>>("POST", "/api/user/bulk", body, admin);
  const report = async (id: number) =>
    (await app.call<Told<BulkJson>>("GET", `/api/user/bulk/${id}`, undefined, admin)).body.data;
  const finished = (id: number) =>
    until(async () => {
      const bulk = await report(id);
      return bulk.finished ? bulk : undefined;
    });
  const rowOf = async (id: number) => {
    const { users } = app.deps.db.t;
    return (await app.deps.db.orm.select().from(users).where(eq(users.id, id)))[0];
  };

  test("a credit to chosen accounts books each once, names the refused, and the books balance", async () => {
    const one = await app.createUser({ quota: 100 });
    const two = await app.createUser();
    const asked = await post({
      action: "credit",
      ids: [one.id, two.id, other.id],
      amount: 500,
      reason: "sorry",
    });
    const bulk = await finished(asked.body.data.id);
    expect(bulk).toMatchObject({ total: 3, done: 2, failed: 1 });
    expect(bulk.failures).toEqual([
      { user_id: other.id, username: other.username, code: "user_rank_update" },
    ]);
    expect([(await rowOf(one.id))?.quota, (await rowOf(two.id))?.quota]).toEqual([600, 500]);
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  test("a credit without a reason is no run", async () => {
    const one = await app.createUser();
    for (const reason of [undefined, "  "]) {
      const body = { action: "credit", ids: [one.id], amount: 1000, reason };
      expect((await post(body)).body).toMatchObject({
        success: false,
        code: "quota_reason_missing",
        field: "reason",
      });
    }
    expect((await rowOf(one.id))?.quota).toBe(0);
  });

  test("a run that was killed goes on where it was and books nobody twice", async () => {
    const { userBulks, userBulkItems } = app.deps.db.t;
    const people = [await app.createUser(), await app.createUser()];
    const asked = await post({
      action: "credit",
      ids: people.map(({ id }) => id),
      amount: 7,
      reason: "fair",
    });
    const { id } = asked.body.data;
    await finished(id);
    // As a kill leaves it: one account waits, the lease has run out.
    const late = await app.createUser();
    await app.deps.db.orm.insert(userBulkItems).values({ bulkId: id, userId: late.id });
    await app.deps.db.orm.update(userBulks).set({ finishedAt: 0, leaseUntil: 0 }).where(eq(userBulks.id, id));
    await resumeBulks(app.deps);
    const quotas = await Promise.all([...people, late].map(async (each) => (await rowOf(each.id))?.quota));
    expect(quotas).toEqual([7, 7, 7]);
    expect((await report(id)).finished).toBe(true);
  });

  test("an administrator's run: within the day's ceiling, refusals with their values, and root hears of it once", async () => {
    const { options, db } = app.deps;
    await options.set("AdminBalanceDailyCeiling", "250");
    const keeper = await app.createUser({ role: 10 });
    // More than one transaction; the third account is the first above the ceiling.
    const people: TestUser[] = [];
    for (let n = 0; n < 55; n++) people.push(await app.createUser());
    const body = { action: "credit", ids: people.map(({ id }) => id), amount: 100, reason: "fair" };
    const asked = await app.call<Told<{ id: number }>>("POST", "/api/user/bulk", body, keeper);
    const { id } = asked.body.data;
    const bulk = await until(async () => {
      const { body: told } = await app.call<Told<BulkJson>>("GET", `/api/user/bulk/${id}`, undefined, keeper);
      return told.data.finished ? told.data : undefined;
    });
    await options.set("AdminBalanceDailyCeiling", "");
    expect(bulk).toMatchObject({ total: 55, done: 2, failed: 53 });
    expect(bulk.failures[0]).toEqual({
      user_id: people[2]?.id ?? 0,
      username: people[2]?.username ?? "",
      code: "quota_ceiling",
      params: { left: "$0.000100" },
    });
    const quotas = await Promise.all(people.slice(0, 4).map(async (each) => (await rowOf(each.id))?.quota));
    expect(quotas).toEqual([100, 100, 0, 0]);
    const { inboxItems } = db.t;
    const item = await until(async () => {
      const items = await db.orm.select().from(inboxItems).where(eq(inboxItems.kind, "balance_run"));
      return items.find(({ subject }) => subject === String(id));
    });
    const params = JSON.stringify({ admin: keeper.username, admin_id: keeper.id, what: "+$0.000200" });
    expect(item).toMatchObject({ count: 2, params });
    expect((await audit(db)).differences).toEqual([]);
  });

  test("a round that cannot be written is done one by one: whoever fails stops nobody else", async () => {
    const { credits } = app.deps.db.t;
    const people = [await app.createUser(), await app.createUser(), await app.createUser()];
    const [first, second] = people;
    const asked = await post({ action: "flag", flagged: false, ids: people.map(({ id }) => id) });
    await finished(asked.body.data.id);
    // An entry of the next run's name stands already: that account's entry cannot be written.
    const ref = `bulk:${asked.body.data.id + 1}:${second?.id}`;
    await app.deps.db.orm
      .insert(credits)
      .values({ userId: second?.id ?? 0, amount: 0, kind: "admin", ref, createdAt: 1 });
    const credit = await post({
      action: "credit",
      ids: people.map(({ id }) => id),
      amount: 9,
      reason: "fair",
    });
    expect(credit.body.data.id).toBe(asked.body.data.id + 1);
    expect(await finished(credit.body.data.id)).toMatchObject({
      done: 2,
      failed: 1,
      failures: [{ user_id: second?.id ?? 0, code: "internal_error" }],
    });
    expect((await rowOf(first?.id ?? 0))?.quota).toBe(9);
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  test("all that match a filter: as many as were confirmed, or none", async () => {
    await app.createUser({ group: "vip" });
    await app.createUser({ group: "vip" });
    const body = { action: "flag", filter: { group: "vip" }, flagged: true };
    expect((await post({ ...body, count: 1 })).body).toMatchObject({ success: false, code: "bulk_changed" });
    const asked = await post({ ...body, count: 2 });
    expect(await finished(asked.body.data.id)).toMatchObject({ done: 2, failed: 0 });
    const path = "/api/user/search?flagged=true";
    const list = await app.call<Told<{ items: AdminUserJson[]; total: number }>>(
      "GET",
      path,
      undefined,
      admin,
    );
    expect(list.body.data.total).toBe(2);
    expect(list.body.data.items.every(({ flagged, group }) => flagged && group === "vip")).toBe(true);
  });

  test("disabling ends sessions, also where nobody could be told of it", async () => {
    const one = await app.createUser();
    const { accounts, db } = app.deps;
    const { sessions } = db.t;
    const telling = spyOn(accounts, "usersChanged").mockRejectedValue(new Error("the database is away"));
    const asked = await post({ action: "disable", ids: [one.id] });
    const ended = async () => {
      const own = eq(sessions.userId, one.id);
      const [row] = await db.orm.select({ reason: sessions.reason }).from(sessions).where(own);
      return row?.reason === "banned" || undefined;
    };
    expect(await until(ended)).toBe(true);
    expect(telling).toHaveBeenCalledWith([one.id]);
    telling.mockRestore();
    // The run, which stopped there, goes on with the next look.
    const { userBulks } = db.t;
    const { id } = asked.body.data;
    await db.orm.update(userBulks).set({ leaseUntil: 0 }).where(eq(userBulks.id, id));
    await resumeBulks(app.deps);
    expect(await report(id)).toMatchObject({ finished: true, done: 1, failed: 0 });
  });

  test("disabling ends what the account could do", async () => {
    const one = await app.createUser();
    const asked = await post({ action: "disable", ids: [one.id] });
    await finished(asked.body.data.id);
    const self = await app.call<Told<unknown>>("GET", "/api/user/self", undefined, one);
    expect(self.body.success).toBe(false);
  });

  test("a letter goes to each in their language, once; whoever has no address is named", async () => {
    const mail = await startMailServer();
    try {
      for (const [key, text] of [
        ["SMTPServer", "127.0.0.1"],
        ["SMTPPort", String(mail.port)],
        ["SMTPFrom", "site@mail.example"],
      ] as const)
        await app.deps.options.set(key, text);
      const people = [await app.createUser(), await app.createUser(), await app.createUser()];
      const { users } = app.deps.db.t;
      for (const [at, language] of (["zh", "en"] as const).entries())
        await app.deps.db.orm
          .update(users)
          .set({ email: `${language}-${database}@mail.example`, setting: JSON.stringify({ language }) })
          .where(eq(users.id, people[at]?.id ?? 0));
      const letters = {
        zh: { subject: "今晚维护", text: "十点开始。\n\n十点半结束。" },
        en: { subject: "Maintenance tonight", text: "From ten.\n\nUntil half past." },
      };
      expect((await post({ action: "letter", ids: [1], letters: {} })).body.code).toBe("bulk_letter_empty");
      const asked = await post({ action: "letter", ids: people.map(({ id }) => id), letters });
      const bulk = await finished(asked.body.data.id);
      expect(bulk.failures.map(({ code }) => code)).toEqual(["bulk_no_mail"]);
      await until(async () => (mail.letters.length >= 2 ? mail.letters : undefined));
      await until(async () =>
        (await app.deps.db.orm.select().from(app.deps.db.t.outbox)).length === 0 ? 1 : undefined,
      );
      const sent = mail.letters.map(({ to, subject }) => [to[0]?.split("-")[0], subject.trim()]);
      expect(sent.toSorted()).toEqual([
        ["en", letters.en.subject],
        ["zh", letters.zh.subject],
      ]);
      expect(mail.letters.find(({ to }) => to[0]?.startsWith("en"))?.text).toContain("Until half past.");
    } finally {
      await app.deps.options.set("SMTPServer", "");
      await mail.close();
    }
  });

  test("a remark is for administrators, never for its subject", async () => {
    const one = await app.createUser();
    await app.call("PUT", `/api/user/${one.id}/notes`, { remark: "pays late", flagged: true }, admin);
    const seen = await app.call<Told<AdminUserJson>>("GET", `/api/user/${one.id}`, undefined, admin);
    expect(seen.body.data).toMatchObject({ remark: "pays late", flagged: true });
    const own = await app.call("GET", "/api/user/self", undefined, one);
    expect(own.text).not.toContain("pays late");
    // The same by a run: the owner's trail says no more than of a note, the run keeps the reason.
    const two = await app.createUser();
    await post({ action: "flag", ids: [two.id], reason: "chargeback suspected" }).then(({ body }) =>
      finished(body.data.id),
    );
    expect((await rowOf(two.id))?.flagged).toBe(true);
    const logOf = async (who: TestUser) => {
      const { body } = await app.call<Told<{ items: { content: string; other: string }[] }>>(
        "GET",
        "/api/log/self?p=1&page_size=10&type=3",
        undefined,
        who,
      );
      return body.data.items.map(({ content, other: more }) => [
        content,
        (JSON.parse(more) as { op: object }).op,
      ]);
    };
    expect(await logOf(two)).toEqual(await logOf(one));
    expect(JSON.stringify(await logOf(two))).not.toMatch(/flag|chargeback/);
    const runs = await app.call<Told<BulkHead[]>>("GET", "/api/user/bulk", undefined, admin);
    expect(runs.body.data[0]).toMatchObject({
      action: "flag",
      reason: "chargeback suspected",
      flagged: true,
    });
    const refused = await app.call("PUT", `/api/user/${other.id}/notes`, { flagged: true }, admin);
    expect(refused.body).toMatchObject({ success: false, code: "user_rank_update" });
  });

  test("a hold counts for keys at once, on the node that heard of it", async () => {
    const one = await app.createUser();
    const key = await app.createToken(one.id);
    const calls = async () => {
      const headers = { authorization: `Bearer ${key.key}`, "content-type": "application/json" };
      const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
      const answer = await fetch(`${app.url}/v1/chat/completions`, { method: "POST", headers, body });
      return answer.headers.get("x-weir-error-code") === "account_flagged";
    };
    expect(await calls()).toBe(false);
    await app.call("PUT", `/api/user/${one.id}/notes`, { flagged: true }, admin);
    expect(await calls()).toBe(true);
    // A disputed payment may stand behind it: only root lifts it, one by one or many at once. A note is no lifting.
    const path = `/api/user/${one.id}/notes`;
    const lift = { flagged: false };
    expect((await app.call("PUT", path, lift, admin)).body).toMatchObject({ code: "user_flag_root" });
    const asked = await post({ action: "flag", ids: [one.id], flagged: false });
    expect((await finished(asked.body.data.id)).failures.map(({ code }) => code)).toEqual(["user_flag_root"]);
    await app.call("PUT", path, { remark: "asked" }, admin);
    expect(await calls()).toBe(true);
    expect((await app.call("PUT", path, lift, root)).body).toMatchObject({ success: true });
    expect(await calls()).toBe(false);
  });

  test("runs are listed for whoever began them, and for root", async () => {
    const one = await app.createUser();
    const boss = await app.createUser({ role: 100 });
    const asked = await post({ action: "group", group: "vip", ids: [one.id], reason: "moved" });
    await finished(asked.body.data.id);
    const listOf = async (who: TestUser) =>
      (await app.call<Told<BulkHead[]>>("GET", "/api/user/bulk", undefined, who)).body.data;
    expect((await listOf(admin))[0]).toMatchObject({
      id: asked.body.data.id,
      action: "group",
      group: "vip",
      reason: "moved",
      username: admin.username,
      total: 1,
      finished: true,
    });
    expect((await listOf(boss))[0]?.id).toBe(asked.body.data.id);
    expect(await listOf(other)).toEqual([]);
  });

  test("not seen for days: neither in the console nor by a key", async () => {
    const { tokens } = app.deps.db.t;
    const quiet = await app.createUser();
    const busy = await app.createUser();
    const key = await app.createToken(busy.id);
    clock.advance(91 * 86_400_000);
    const now = Math.floor(clock.nowMs() / 1000);
    await app.deps.db.orm.update(tokens).set({ accessedTime: now }).where(eq(tokens.id, key.id));
    const boss = await app.createUser({ role: 100 });
    const path = "/api/user/search?unseen=90&page_size=100";
    const list = await app.call<Told<{ items: AdminUserJson[] }>>("GET", path, undefined, boss);
    const ids = list.body.data.items.map(({ id }) => id);
    expect(ids).toContain(quiet.id);
    expect(ids).not.toContain(busy.id);
    expect(ids).not.toContain(boss.id);
  });

  test("runs are forgotten ninety days after their end, with their accounts; open ones stay", async () => {
    const { userBulks, userBulkItems } = app.deps.db.t;
    const one = await app.createUser();
    admin = await app.createUser({ role: 10 });
    const asked = await post({ action: "flag", flagged: true, ids: [one.id] });
    await finished(asked.body.data.id);
    const [open] = await app.deps.db.orm
      .insert(userBulks)
      .values({
        action: "flag",
        params: "{}",
        actor: "{}",
        actorId: 1,
        total: 0,
        createdAt: 1,
        leaseUntil: 1e12,
      })
      .returning({ id: userBulks.id });
    const runs = async () =>
      (await app.deps.db.orm.select({ id: userBulks.id }).from(userBulks)).map(({ id }) => id);
    clock.advance(89 * 86_400_000);
    await purgeBulks(app.deps);
    expect(await runs()).toContain(asked.body.data.id);
    clock.advance(2 * 86_400_000);
    await purgeBulks(app.deps);
    expect(await runs()).toEqual([open?.id ?? 0]);
    expect(await app.deps.db.orm.select().from(userBulkItems)).toEqual([]);
  });
});
