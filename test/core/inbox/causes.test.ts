// Every cause of the inbox made for real: the item is seen, root gets the letter from a real SMTP server, the item goes when
// its cause does. On both databases.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eq, sql } from "drizzle-orm";
import { auditForInbox } from "../../../src/core/inbox/audits.ts";
import {
  applyDueDrafts,
  changeDraft,
  createDraft,
  discardDraft,
  listDrafts,
} from "../../../src/core/prices/drafts.ts";
import { syncKeptSources } from "../../../src/core/prices/kept-sources.ts";
import { planPrices } from "../../../src/core/prices/plan.ts";
import { applyPlan, priceState } from "../../../src/core/prices/revisions.ts";
import { disableChannel, reviveChannel } from "../../../src/core/channels/state.ts";
import { SET_ASIDE_FILE } from "../../../src/core/ledger/journal/journal.ts";
import { rawQuery } from "../../../src/db/database.ts";
import { ChannelStatus, Role } from "../../../src/shared/enums.ts";
import { inboxSentence } from "../../../src/shared/inbox.ts";
import { translator } from "../../../src/pages/texts.ts";
import { testClock } from "../../support/clock.ts";
import { sendDue } from "../../../src/core/users/outbox.ts";
import { answer, refuse } from "../../support/fake-upstream.ts";
import { startPriceHost } from "../../support/price-source.ts";
import { startMailServer } from "../../support/mail-server.ts";
import type { MailServerStand } from "../../support/mail-server.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import type { TestUser } from "../../support/app.ts";
import { errorOf, startGateway, until } from "../../relay/support.ts";
import type { Gateway } from "../../relay/support.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

interface Listed {
  id: number;
  kind: "channel";
  subject: string;
  params: Record<string, string>;
  count: number;
  opened_at: number;
  closed_at: number;
  closed_by: number;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let g: Gateway;
  let mail: MailServerStand;
  let root: TestUser;
  /** Blocks of the disk: all and free. */
  let disk = { bsize: 1024 ** 2, blocks: 100_000, bavail: 50_000 };

  beforeAll(async () => {
    mail = await startMailServer();
    g = await startGateway({ database, clock, looks: { diskSpace: () => Promise.resolve(disk) } });
    root = await g.app.createUser({ username: "root", role: Role.root });
    await g.setOption("SMTPFrom", "weir@mail.example");
    await g.setOption("SMTPPort", String(mail.port));
    await g.setOption("SMTPServer", "127.0.0.1");
    await g.setOption("ServerAddress", "https://gate.example");
    const setting = {
      notify_type: "email",
      quota_warning_threshold: 1,
      notification_email: "ops@mail.example",
    };
    const headers = { ...root.headers, cookie: `${root.headers["cookie"]}; i18nextLng=en` };
    await g.app.call("PUT", "/api/user/setting", setting, { ...root, headers });
  });
  afterAll(async () => {
    await g.close();
    await mail.close();
  });
  beforeEach(() => {
    mail.letters.length = 0;
  });
  afterEach(async () => {
    mail.refusal = 0;
    await settled();
    // Each test leaves an inbox without open items, and no letter that others would get.
    expect(await open()).toEqual([]);
    clock.advance(2 * HOUR_MS);
  });

  const list = async (state: string) =>
    (await g.app.call<{ data: { items: Listed[] } }>("GET", `/api/inbox/?state=${state}`, undefined, root))
      .body.data.items;
  const open = () => list("open");
  const settled = () => g.app.services.inbox.settle();
  const look = () => g.app.services.looks.look();
  const letters = () => mail.letters.map(({ subject }) => subject);
  const said = (item: Listed | undefined, language: "zh" | "en" = "en") =>
    item && inboxSentence(translator(language), language, item);

  test("a channel that its upstream refuses, and that answers again", async () => {
    await g.setOption("AutomaticDisableChannelEnabled", "true");
    await g.setOption("AutomaticEnableChannelEnabled", "true");
    const refusal = JSON.stringify({ error: { message: "key is dead", code: "invalid_api_key" } });
    g.upstream.script({ status: 401, steps: [refusal] });
    await g.chat();
    await until(async () => (g.app.deps.inbox.subjects("channel").length > 0 ? true : undefined));
    await settled();
    const [item] = await open();
    expect(item).toMatchObject({ kind: "channel", subject: String(g.channelId), count: 1 });
    expect(said(item)).toBe(
      `Channel “test channel” (#${g.channelId}) was disabled automatically: key is dead`,
    );
    expect(mail.letters).toMatchObject([
      {
        to: ["ops@mail.example"],
        subject: `Channel "test channel" (#${g.channelId}) was disabled`,
        text: expect.stringContaining("key is dead"),
      },
    ]);
    // Still off: a look neither counts nor tells again.
    clock.advance(2 * HOUR_MS);
    await look();
    expect((await open()).map(({ count }) => count)).toEqual([1]);
    expect(mail.letters).toHaveLength(1);

    await (
      await g.app.services.gateway.watch.testAll(false)
    ).finished;
    await settled();
    expect(await open()).toEqual([]);
    expect((await list("closed"))[0]).toMatchObject({ kind: "channel", closed_by: 0 });
    expect(letters()).toEqual([
      `Channel "test channel" (#${g.channelId}) was disabled`,
      `Channel "test channel" (#${g.channelId}) was enabled again`,
    ]);
  });

  test("root hears that it is over also where the database could not be asked for root when it was", async () => {
    const { deps } = g.app;
    // What came back within a day would go on with its count.
    clock.advance(25 * HOUR_MS);
    const channel = () => {
      const found = deps.routing.channel(g.channelId);
      if (!found) throw new Error("no channel");
      return found;
    };
    await disableChannel(deps, channel(), "gone");
    await settled();
    expect(letters()).toEqual([`Channel "test channel" (#${g.channelId}) was disabled`]);
    const asked = spyOn(deps.accounts, "user").mockImplementation(() =>
      Promise.reject(new Error("nobody answers")),
    );
    try {
      await reviveChannel(deps, channel());
      await settled();
      expect(asked).toHaveBeenCalled();
      expect(letters()).toHaveLength(1);
    } finally {
      asked.mockRestore();
    }
    await settled();
    await settled();
    expect(letters().slice(1)).toEqual([`Channel "test channel" (#${g.channelId}) was enabled again`]);
  });

  test("a channel that goes off and on all the time is told once an hour, and its letters stand in the log", async () => {
    const { deps } = g.app;
    // What came back within a day would go on with its count.
    clock.advance(25 * HOUR_MS);
    const turn = async (status: number) => {
      const channel = deps.routing.channel(g.channelId);
      if (!channel) throw new Error("no channel");
      await (status === ChannelStatus.enabled
        ? reviveChannel(deps, channel)
        : disableChannel(deps, channel, "flaky"));
      await settled();
      clock.advance(MINUTE_MS);
    };
    for (let round = 0; round < 10; round++)
      for (const status of [ChannelStatus.autoDisabled, ChannelStatus.enabled]) await turn(status);
    expect(mail.letters).toHaveLength(2);
    expect((await list("closed"))[0]).toMatchObject({ count: 10 });
    const rows = (await g.logs()).filter(({ type, content }) => type === 4 && content.includes("flaky"));
    expect(rows).toHaveLength(10);
    clock.advance(HOUR_MS);
    await turn(ChannelStatus.autoDisabled);
    expect(mail.letters).toHaveLength(3);
    await turn(ChannelStatus.enabled);
  });

  test("a channel below cost, a cost without a charge, and a cost row above the price of sale", async () => {
    const { deps } = g.app;
    clock.advance(26 * HOUR_MS);
    const { channelCosts } = deps.db.t;
    const setCost = async (dollars: number) => {
      clock.advance(MINUTE_MS);
      const validFrom = Math.floor(clock.nowMs() / 1000);
      const price = JSON.stringify({ in: dollars, out: dollars });
      await deps.db.orm
        .insert(channelCosts)
        .values({ channelId: g.channelId, model: "*", price, validFrom, createdAt: validFrom });
      await deps.costs.refresh([g.channelId]);
    };
    const kinds = async () => {
      clock.advance(6 * MINUTE_MS);
      await look();
      await settled();
      return (await open()).map(({ kind }) => String(kind)).sort();
    };
    const usage = (tokens: number) => ({ prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens });
    const reads = (tokens: number) => g.upstream.script(answer("hi", { usage: usage(tokens) }));
    // gpt-4o-mini is sold at $0.15 a million.
    await setCost(0.1);
    reads(1_000_000);
    await g.charged(() => g.chat());
    expect(await kinds()).toEqual([]);
    await setCost(50);
    reads(10_000);
    await g.charged(() => g.chat());
    expect(await kinds()).toEqual(["cost_price", "margin"]);
    expect((await open()).map((item) => said(item)).sort()).toEqual([
      `Channel “test channel” (#${g.channelId}) brought $0.15 in the last 24 hours and cost $0.60.`,
      `Channel “test channel” (#${g.channelId}) has models whose cost is above their sale price (1): gpt-4o-mini`,
    ]);
    // A failed attempt whose upstream bills it.
    g.upstream.script(refuse(500, { error: { message: "broke" }, usage: usage(2000) }));
    await g.chat();
    await deps.ledger.flush();
    expect(await kinds()).toEqual(["cost_price", "margin", "uncharged"]);
    expect(
      said(
        (await open()).find(({ kind }) => String(kind) === "uncharged"),
        "zh",
      ),
    ).toBe(`渠道「test channel」（#${g.channelId}）近 24 小时有 $0.10 的成本没有收到任何费用。`);
    // The cost falls, and the day passes.
    await setCost(0.1);
    clock.advance(26 * HOUR_MS);
    expect(await kinds()).toEqual([]);
    // Without rows nothing is looked at.
    await deps.db.orm.delete(channelCosts);
    await deps.costs.refresh([g.channelId]);
  });

  test("an administrator who switches the channel off knows: the item goes without a letter", async () => {
    const { deps } = g.app;
    const id = await g.app.createChannel({
      name: "second",
      models: "other",
      status: ChannelStatus.autoDisabled,
    });
    // Nobody reported it: the look finds it.
    await look();
    expect((await open())[0]).toMatchObject({ kind: "channel", subject: String(id) });
    expect(mail.letters).toHaveLength(1);
    const { channels } = deps.db.t;
    await deps.db.orm.update(channels).set({ status: ChannelStatus.disabled }).where(eq(channels.id, id));
    await deps.routing.refresh([id]);
    await settled();
    expect(await open()).toEqual([]);
    expect(mail.letters).toHaveLength(1);
  });

  test("a model that is refused for want of a price, until it has one", async () => {
    const model = "house-model";
    await g.app.createChannel({ name: "house", baseUrl: g.upstream.url, models: model });
    for (let call = 0; call < 3; call++)
      expect((await errorOf(await g.chat({ model }))).code).toBe("model_not_priced");
    await settled();
    const [item] = await open();
    expect(item).toMatchObject({ kind: "price", subject: model, count: 3 });
    expect(said(item, "zh")).toContain(model);
    expect(mail.letters).toMatchObject([{ subject: "Model without a price" }]);
    expect(mail.letters[0]?.text).toContain(`https://gate.example/prices?view=unpriced&q=${model}`);
    // More calls within the hour are counted and told when it is over.
    clock.advance(MINUTE_MS);
    await g.chat({ model });
    await settled();
    expect((await open())[0]?.count).toBe(4);
    expect(mail.letters).toHaveLength(1);
    clock.advance(HOUR_MS);
    await look();
    expect(mail.letters).toHaveLength(2);
    clock.advance(HOUR_MS);
    await look();
    expect(mail.letters).toHaveLength(2);

    const ratios = g.app.deps.options.get("ModelRatio");
    await g.setOption("ModelRatio", JSON.stringify({ ...ratios, [model]: 1 }));
    await settled();
    expect(await open()).toEqual([]);
    expect((await g.chat({ model })).status).toBe(200);
  });

  test("a price source that cannot be read, until it can", async () => {
    const host = await startPriceHost();
    const source = { name: "lists", source: "detect", url: `${host.url}/html`, auto: true, limit: 10 };
    const keep = (url: string) =>
      g.setOption("PriceSources", JSON.stringify([{ ...source, url: host.url + url }]));
    await keep("/html");
    await syncKeptSources(g.app.deps);
    await settled();
    const [item] = await open();
    expect(item).toMatchObject({ kind: "price_sync", subject: "lists", count: 1 });
    expect(mail.letters).toMatchObject([{ subject: "Price source failed" }]);
    expect(mail.letters[0]?.text).toContain("https://gate.example/prices?section=sync");

    // It can be read, and has a price that only a person takes.
    host.serve("/list", { success: true, data: { model_ratio: { "sync-model": 1 } } });
    await g.setOption(
      "ModelRatio",
      JSON.stringify({ ...g.app.deps.options.get("ModelRatio"), "sync-model": 1 }),
    );
    await keep("/list");
    await syncKeptSources(g.app.deps);
    await settled();
    expect(await open()).toEqual([]);
    const { db } = g.app.deps;
    await db.orm
      .insert(db.t.priceOrigins)
      .values({ name: "sync-model", price: '{"in":2,"out":2}', source: "lists", version: "1", takenAt: 1 });
    host.serve("/list", { success: true, data: { model_ratio: { "sync-model": 3 } } });
    clock.advance(2 * HOUR_MS);
    await syncKeptSources(g.app.deps);
    await settled();
    expect((await open())[0]).toMatchObject({ kind: "price_sync_waits", subject: "lists" });
    expect(mail.letters.at(-1)).toMatchObject({ subject: "Prices wait" });
    expect(mail.letters.at(-1)?.text).toContain("1 price of the source “lists”");
    host.serve("/list", { success: true, data: { model_ratio: { "sync-model": 1 } } });
    await syncKeptSources(g.app.deps);
    await settled();
    expect(mail.letters).toHaveLength(2);
    await g.setOption("PriceSources", "[]");
    host.close();
  });

  test("a scheduled draft that could not be applied, until somebody has seen to it", async () => {
    const { deps } = g.app;
    const actor = { id: root.id, username: "root", role: Role.root };
    const schedule = async (after: number) => {
      const changes = [{ key: "ModelRatio", name: "draft-model", after }];
      const draft = await createDraft(deps, { title: "autumn", note: "", changes }, actor);
      const { revision } = await priceState(deps.db);
      const effectiveAt = Math.floor(clock.nowMs() / 1000) + 60;
      return changeDraft(
        deps,
        { id: draft.id, version: draft.version, effectiveAt, parent: revision },
        actor,
      );
    };
    const ratio = (value: number) =>
      g.setOption("ModelRatio", JSON.stringify({ ...deps.options.get("ModelRatio"), "draft-model": value }));
    const fail = async (after: number) => {
      await ratio(1);
      const draft = await schedule(after);
      await ratio(2);
      clock.advance(HOUR_MS + MINUTE_MS);
      await applyDueDrafts(deps);
      await settled();
      return draft;
    };
    const first = await fail(5);
    const [item] = await open();
    expect(item).toMatchObject({ kind: "price_draft", subject: String(first.id) });
    expect(said(item)).toContain("“autumn” was not applied (draft-model (ModelRatio))");
    expect(mail.letters).toMatchObject([{ subject: "Scheduled prices failed" }]);
    expect(mail.letters[0]?.text).toContain("https://gate.example/prices?section=drafts");
    await discardDraft(deps, first.id, actor);
    await settled();
    expect(await open()).toEqual([]);

    // Planned and applied by hand it is done with, too.
    const second = await fail(6);
    expect((await open()).map(({ subject }) => subject)).toEqual([String(second.id)]);
    const changes = [{ key: "ModelRatio", name: "draft-model", after: 6 }];
    const { planHash, parent } = await planPrices(deps, { changes, days: 0 });
    await applyPlan(
      deps,
      { planHash, parent, changes, note: "", draftId: second.id },
      { userId: root.id, username: "root" },
    );
    await settled();
    expect(await open()).toEqual([]);

    // Scheduled anew on what is there now.
    const third = await fail(7);
    const { revision } = await priceState(deps.db);
    const [failed] = (await listDrafts(deps.db, { page: 1, pageSize: 1, state: "failed" })).items;
    const effectiveAt = Math.floor(clock.nowMs() / 1000) + 60;
    await changeDraft(
      deps,
      { id: third.id, version: failed?.version ?? 0, effectiveAt, parent: revision },
      actor,
    );
    await settled();
    expect(await open()).toEqual([]);
    await discardDraft(deps, third.id, actor);
  });

  test("differences that the audit finds, until they are repaired", async () => {
    const { deps } = g.app;
    const { users } = deps.db.t;
    const move = (by: number) =>
      deps.db.orm
        .update(users)
        .set({ quota: sql`${users.quota} + ${by}` })
        .where(eq(users.id, g.user.id));
    await deps.ledger.flush();
    await auditForInbox(deps);
    await settled();
    expect(await open()).toEqual([]);
    await move(7);
    await auditForInbox(deps);
    await settled();
    expect(said((await open())[0])).toMatch(
      new RegExp(`1 difference: users.quota \\(${g.user.id}\\) should be \\d+ and is \\d+`),
    );
    expect(letters()).toEqual(["Books disagree"]);
    await move(-7);
    await auditForInbox(deps);
    await settled();
    expect(await open()).toEqual([]);
    expect(letters()).toEqual(["Books disagree"]);
  });

  test("a settlement that the database refuses for its content, until somebody has moved it away", async () => {
    const { deps } = g.app;
    const { client, orm } = deps.db;
    const run = (lite: string, postgres: string) =>
      client ? Promise.resolve(client.run(lite)) : Promise.resolve(rawQuery(orm, sql.raw(postgres)));
    await run(
      "create trigger no_poison before insert on logs when new.content = 'poison' begin select raise(abort, 'no'); end",
      "alter table logs add constraint no_poison check (content <> 'poison') not valid",
    );
    await deps.ledger.log({ type: 4, userId: g.user.id, username: "u", content: "poison" });
    await deps.ledger.flush();
    await look();
    const [item] = await open();
    expect(item).toMatchObject({ kind: "settlement_refused", params: { count: 1 } });
    expect(letters()).toEqual(["Settlements refused"]);
    const file = join(deps.dataDir, SET_ASIDE_FILE);
    renameSync(file, `${file}.done`);
    await look();
    expect(await open()).toEqual([]);
    await run("drop trigger no_poison", "alter table logs drop constraint no_poison");
  });

  test("journal files that were put away, until they are gone", async () => {
    const file = join(g.app.deps.dataDir, `journal-7.log.foreign-${Date.now()}`);
    writeFileSync(file, "");
    await look();
    expect((await open())[0]).toMatchObject({ kind: "journal_put_away", params: { count: 1 } });
    expect(letters()).toEqual(["Journal files put away"]);
    rmSync(file);
    await look();
    expect(await open()).toEqual([]);
  });

  test("a disk that is nearly full: it closes when clearly more is free, not at the threshold", async () => {
    await g.setOption("inbox.disk_free_share", "0.1");
    disk = { ...disk, bavail: 9_000 };
    await look();
    const [item] = await open();
    expect(said(item)).toMatch(/^The disk of node [0-9a-f]{8} has only 8\.8 GiB \(9%\) left\.$/);
    expect(letters()).toEqual(["Disk nearly full"]);
    disk = { ...disk, bavail: 11_000 };
    await look();
    expect(await open()).toHaveLength(1);
    // It is told again while it lasts, a day later.
    clock.advance(12 * HOUR_MS);
    await look();
    expect(mail.letters).toHaveLength(1);
    clock.advance(13 * HOUR_MS);
    await look();
    expect(mail.letters).toHaveLength(2);
    disk = { ...disk, bavail: 12_500 };
    await look();
    expect(await open()).toEqual([]);
    disk = { ...disk, bavail: 11_000 };
    await look();
    expect(await open()).toEqual([]);
    disk = { ...disk, bavail: 50_000 };
  });

  test("letters that the mail server refuses: seen in the inbox, closed by the next that is sent, no letter about it", async () => {
    const kinds = async () => (await open()).map(({ kind }) => String(kind)).toSorted();
    mail.refusal = 554;
    disk = { ...disk, bavail: 1000 };
    await look();
    await settled();
    expect(await kinds()).toEqual(["disk", "mail"]);
    expect(mail.letters).toEqual([]);
    mail.refusal = 0;
    // The letter that could not be sent waits in the outbox: its next try closes the item.
    await sendDue(g.app.deps);
    expect(mail.letters).toEqual([]);
    clock.advance(MINUTE_MS);
    await sendDue(g.app.deps);
    await settled();
    expect(letters()).toEqual(["Disk nearly full"]);
    expect(await kinds()).toEqual(["disk"]);
    disk = { ...disk, bavail: 50_000 };
    await look();
  });

  test("what only one address refuses is no trouble of the server's", async () => {
    mail.refusedReceiver = "nobody@mail.example";
    const setting = {
      notify_type: "email",
      quota_warning_threshold: 1,
      notification_email: mail.refusedReceiver,
    };
    const { body } = await g.app.call("POST", "/api/user/setting/test", setting, g.user);
    expect(body).toMatchObject({ success: false, code: "mail_failed" });
    await settled();
    expect(await open()).toEqual([]);
  });

  test("each kind can be switched off, and what nobody wanted to hear then is not made up for", async () => {
    await g.setOption("inbox.letters.disk", "false");
    disk = { ...disk, bavail: 1000 };
    await look();
    expect(await open()).toHaveLength(1);
    await g.setOption("inbox.letters.disk", "true");
    clock.advance(2 * HOUR_MS);
    await look();
    expect(mail.letters).toEqual([]);
    disk = { ...disk, bavail: 50_000 };
    await look();
  });

  test("an item that is put off is not told until then", async () => {
    const { deps } = g.app;
    await g.setOption("inbox.letters.disk", "false");
    disk = { ...disk, bavail: 1000 };
    await look();
    const [{ id } = { id: 0 }] = await open();
    await g.app.call("PUT", `/api/inbox/${id}`, { state: "snoozed", hours: 48 }, root);
    await g.setOption("inbox.letters.disk", "true");
    expect(deps.inbox.summary()).toMatchObject({ count: 0, newest: [] });
    deps.inbox.raise({
      kind: "disk",
      subject: deps.nodeId,
      params: { node: "n", free: "1 MiB", percent: 0 },
    });
    await settled();
    expect(mail.letters).toEqual([]);
    expect(await open()).toEqual([]);
    clock.advance(49 * HOUR_MS);
    await look();
    expect(letters()).toEqual(["Disk nearly full"]);
    expect(deps.inbox.summary()).toMatchObject({ count: 1, tone: "attention" });
    disk = { ...disk, bavail: 50_000 };
    await look();
  });

  test("many at once are one letter", async () => {
    const { deps } = g.app;
    for (let index = 0; index < 8; index++) deps.inbox.raise({ kind: "price", subject: `model-${index}` });
    await settled();
    expect(letters()).toEqual(["8 things need you"]);
    expect(mail.letters[0]?.text).toContain("model-7");
    // Nobody offers them: nobody can ask for them.
    await look();
  });
});
