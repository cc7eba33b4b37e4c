// The inbox over the wire: administrators read it, put items off and close them; pages carry the bell without a query.
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { purgeItems } from "../../src/core/inbox/items.ts";
import { ChannelStatus } from "../../src/shared/enums.ts";
import { INBOX_KINDS, inboxKinds } from "../../src/shared/inbox.ts";
import type { InboxKind } from "../../src/shared/inbox.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Item {
  id: number;
  kind: string;
  subject: string;
  count: number;
  closed_at: number;
  closed_by: number;
  snoozed_until: number;
}

interface Answer<T> {
  success: boolean;
  code?: string;
  data: T;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let admin: TestUser;
  let user: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database, clock });
    await app.deps.db.orm.insert(app.deps.db.t.setups).values({ version: "test", initializedAt: 1 });
    admin = await app.createUser({ role: 10 });
    user = await app.createUser();
  });
  afterAll(() => app.close());

  const list = async (query = "") =>
    (
      await app.call<Answer<{ items: Item[]; total: number; page_size: number }>>(
        "GET",
        `/api/inbox/?${query}`,
        undefined,
        admin,
      )
    ).body.data;
  const put = async (id: number, body: object) =>
    (await app.call<Answer<Item>>("PUT", `/api/inbox/${id}`, body, admin)).body;
  const raised = async (kind: InboxKind, subject: string) => {
    app.deps.inbox.raise({ kind, subject, params: { count: 1 } });
    await app.services.inbox.settle();
    const found = (await list(`kind=${kind}`)).items.find((item) => item.subject === subject);
    if (!found) throw new Error("not there");
    return found;
  };

  test("nobody but administrators reads or changes it", async () => {
    for (const who of [undefined, user]) {
      const get = await app.call("GET", "/api/inbox/", undefined, who);
      const change = await app.call("PUT", "/api/inbox/1", { state: "closed" }, who);
      const expected = who ? 403 : 401;
      expect([get.status, change.status]).toEqual([expected, expected]);
    }
  });

  test("pages, kinds and states narrow the list; what they do not know means all that is open", async () => {
    for (let index = 0; index < 12; index++) await raised("price", `listed-${index}`);
    await raised("disk", "node");
    expect(await list("page_size=5&p=3")).toMatchObject({ total: 13, page_size: 5 });
    expect((await list("page_size=5&p=3")).items).toHaveLength(3);
    expect((await list("kind=disk")).items.map(({ kind }) => kind)).toEqual(["disk"]);
    expect((await list("kind=nonsense&state=odd")).total).toBe(13);
    for (let index = 0; index < 12; index++) app.deps.inbox.gone("price", `listed-${index}`);
    app.deps.inbox.gone("disk", "node");
    await app.services.inbox.settle();
    expect((await list()).total).toBe(0);
    expect((await list("state=closed&kind=price")).total).toBe(12);
  });

  test("an item is put off for hours, taken up again, and closed by whoever does so", async () => {
    const { id } = await raised("price", "one");
    const { data } = await put(id, { state: "snoozed", hours: 3 });
    expect(data.snoozed_until).toBe(Math.floor(clock.nowMs() / 1000) + 3 * 3600);
    expect([(await list()).total, (await list("state=snoozed")).total]).toEqual([0, 1]);
    expect(app.deps.inbox.summary().count).toBe(0);
    clock.advance(3 * 3_600_000);
    expect([(await list()).total, (await list("state=snoozed")).total]).toEqual([1, 0]);
    expect(app.deps.inbox.summary().count).toBe(1);
    await put(id, { state: "snoozed" });
    expect((await put(id, { state: "open" })).data.snoozed_until).toBe(0);
    expect((await put(id, { state: "closed" })).data).toMatchObject({ closed_by: admin.id });
    expect(app.deps.inbox.summary().count).toBe(0);
    expect(await put(id, { state: "closed" })).toMatchObject({ success: false, code: "record_missing" });
    // It is met again: open, and counted on.
    expect(await raised("price", "one")).toMatchObject({ id, count: 2, closed_at: 0, closed_by: 0 });
    app.deps.inbox.gone("price", "one");
    await app.services.inbox.settle();
  });

  test("what lasts cannot be closed by hand, only put off; absurd changes are refused", async () => {
    const { id } = await raised("audit", "");
    expect(await put(id, { state: "closed" })).toMatchObject({ success: false, code: "inbox_lasting" });
    expect((await put(id, { state: "snoozed" })).success).toBe(true);
    for (const body of [
      {},
      { state: "gone" },
      { state: "snoozed", hours: 0 },
      { state: "snoozed", hours: 1e6 },
    ])
      expect((await put(id, body)).success).not.toBe(true);
    for (const missing of ["0", "x", "999999"])
      expect(
        (await app.call<Answer<Item>>("PUT", `/api/inbox/${missing}`, { state: "open" }, admin)).body,
      ).toMatchObject({ success: false, code: "record_missing" });
    app.deps.inbox.gone("audit");
    await app.services.inbox.settle();
  });

  test("what lasts is closed by hand once nobody has seen it for two hours: its node is gone", async () => {
    const { id } = await raised("settlement_lost", "gone-node");
    clock.advance(2 * 3_600_000 - 1000);
    expect(await put(id, { state: "closed" })).toMatchObject({ success: false, code: "inbox_lasting" });
    clock.advance(1000);
    expect((await put(id, { state: "closed" })).data).toMatchObject({ closed_by: admin.id });
    await app.services.looks.look();
    expect(await list("kind=settlement_lost")).toMatchObject({ total: 0 });
  });

  test("what a node of the embedded database told of itself ends with it; what it says of money stays", async () => {
    const kinds = ["disk", "database", "node_stopped", "settlement_lost", "settlement_refused"] as const;
    for (const kind of [...kinds, "journal_put_away"] as const) await raised(kind, "gone-node");
    await app.services.looks.look();
    expect((await list("page_size=100")).items.map(({ kind }) => kind).toSorted()).toEqual([
      "journal_put_away",
      "settlement_lost",
      "settlement_refused",
    ]);
    const { inboxItems } = app.deps.db.t;
    await app.deps.db.orm.delete(inboxItems);
    await app.services.inbox.read();
  });

  test("a kind with a thousand causes leaves room for others, and what is grave is always there", async () => {
    const { inbox } = app.deps;
    for (const kind of ["price", "budget"] as const)
      for (let index = 0; index < 600; index++) inbox.raise({ kind, subject: `${kind}-${index}` });
    await app.services.inbox.settle();
    expect(["price", "budget"].map((kind) => inbox.subjects(kind as "price").length)).toEqual([150, 150]);
    // What is known is met again, however full it is; what is told once is not left out beside many of its kind.
    inbox.raise({ kind: "price", subject: "price-7" });
    for (let index = 0; index < 200; index++) inbox.raise({ kind: "payment", subject: `paid-${index}` });
    inbox.raise({ kind: "dispute", subject: "order" });
    await app.services.inbox.settle();
    const { inboxItems } = app.deps.db.t;
    const [met] = await app.deps.db.orm.select().from(inboxItems).where(eq(inboxItems.subject, "price-7"));
    expect([met?.count, inbox.subjects("dispute")]).toEqual([2, ["order"]]);
    expect(inbox.subjects("payment").length).toBe(200);
    const rows = Array.from({ length: 1000 }, (_, index) => ({
      kind: "payment",
      subject: `older-${index}`,
      params: "{}",
      openedAt: Math.floor(clock.nowMs() / 1000) + 60,
      lastSeenAt: 0,
      count: 1,
    }));
    for (let at = 0; at < rows.length; at += 250)
      await app.deps.db.orm.insert(inboxItems).values(rows.slice(at, at + 250));
    await app.services.inbox.read();
    for (const kind of ["audit", "settlement_refused"] as const)
      inbox.keep({ kind, subject: "", params: { count: 1 } });
    inbox.raise({ kind: "mail" });
    await app.services.inbox.settle();
    expect(inbox.subjects("mail")).toEqual([]);
    expect(inbox.subjects("payment").length).toBe(998);
    expect(["audit", "settlement_refused"].map((kind) => inbox.subjects(kind as "audit"))).toEqual([
      [""],
      [""],
    ]);
    expect(inbox.summary().tone).toBe("broken");
    await app.deps.db.orm.delete(inboxItems);
    await app.services.inbox.read();
  });

  test("what tells root of an administrator is closed and put off by root alone", async () => {
    const kinds = INBOX_KINDS.filter((kind) => inboxKinds[kind].isRootsToClose);
    expect(kinds.toSorted()).toEqual(["balance", "balance_run", "codes", "plan_by_hand"]);
    const root = await app.createUser({ role: 100 });
    for (const kind of kinds) {
      const { id } = await raised(kind, `${admin.id}:${user.id}`);
      for (const state of ["closed", "snoozed", "open"])
        expect([kind, state, (await put(id, { state })).code]).toEqual([kind, state, "inbox_root"]);
      expect((await list(`kind=${kind}`)).items).toMatchObject([{ id, snoozed_until: 0 }]);
      const closed = await app.call<Answer<Item>>("PUT", `/api/inbox/${id}`, { state: "closed" }, root);
      expect(closed.body.data.closed_by).toBe(root.id);
    }
  });

  test("many acts of one administrator leave room for the rest: those beyond fifty share an item that counts them", async () => {
    for (let act = 1; act <= 60; act++)
      app.deps.inbox.raise({
        kind: "codes",
        subject: `${admin.id}:${act}:spring`,
        params: { admin: admin.username, name: "spring", what: `$${act}` },
      });
    await app.services.inbox.settle();
    const { items } = await list("kind=codes&page_size=100");
    expect(items).toHaveLength(51);
    const shared = items.find(({ subject }) => subject === `${admin.id}:`);
    expect(shared).toMatchObject({ count: 10, params: { what: "$60" } });
    const { inboxItems } = app.deps.db.t;
    await app.deps.db.orm.delete(inboxItems).where(eq(inboxItems.kind, "codes"));
    await app.services.inbox.read();
  });

  test("the bell stands on administrators' pages with its count and the newest eight, in the reader's language", async () => {
    for (let index = 0; index < 9; index++) {
      clock.advance(1000);
      await raised("price", `bell-${index}`);
    }
    const html = async (who: TestUser, language: string) =>
      (await fetch(`${app.url}/token`, { headers: { ...who.headers, "accept-language": language } })).text();
    const page = await html(admin, "en");
    const nameOf = (text: string) => /popoverTarget="menu-inbox"[^>]*aria-label="([^"]*)"/i.exec(text)?.[1];
    expect(nameOf(page)).toBe("Inbox: 9 items need you");
    const menu = /<ul id="menu-inbox"[\s\S]*?<\/ul>/.exec(page)?.[0] ?? "";
    expect([...menu.matchAll(/bell-\d/g)].map(([name]) => name)).toEqual(
      [8, 7, 6, 5, 4, 3, 2, 1].flatMap((each) => [`bell-${each}`, `bell-${each}`]),
    );
    expect(menu).toContain('href="/prices?view=unpriced&amp;q=bell-8"');
    expect(nameOf(await html(admin, "zh"))).toBe("收件箱：9 项待处理");
    expect((await html(user, "en")).includes("menu-inbox")).toBe(false);
    const inbox = await fetch(`${app.url}/inbox`, { headers: { ...user.headers, "accept-language": "en" } });
    expect((await inbox.text()).includes("This page needs the role of")).toBe(true);
  });

  test("what was closed a month ago is deleted, what is open stays however old it is", async () => {
    const closed = () => list("state=closed").then(({ total }) => total);
    await raised("disk", "old");
    const before = await closed();
    expect(before).toBeGreaterThan(0);
    const now = Math.floor(clock.nowMs() / 1000);
    await purgeItems(app.deps.db, now + 29 * 86_400);
    expect(await closed()).toBe(before);
    await purgeItems(app.deps.db, now + 31 * 86_400);
    expect(await closed()).toBe(0);
    expect((await list("kind=disk")).items.map(({ subject }) => subject)).toEqual(["old"]);
  });

  test("what a person closed does not come back by itself, however long its cause lasts", async () => {
    const { channels } = app.deps.db.t;
    const id = await app.createChannel({ name: "off", status: ChannelStatus.autoDisabled });
    const subject = String(id);
    const open = async () => {
      await app.services.looks.look();
      return (await list("kind=channel")).items.filter((item) => item.subject === subject);
    };
    const [item] = await open();
    await put(item?.id ?? 0, { state: "closed" });
    const later = Math.floor(clock.nowMs() / 1000) + 31 * 86_400;
    await purgeItems(app.deps.db, later);
    expect(await open()).toEqual([]);
    await app.deps.db.orm.delete(channels);
    await purgeItems(app.deps.db, later);
    expect((await list("state=closed")).total).toBe(0);
  });
});
