// The outbox: letters wait for a mail server that is away, go once, and are given up in the operator's sight. A real SMTP
// server, on both databases.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { deliverKept } from "../../../src/core/users/notify.ts";
import { maskedMail, PAUSES, postSteps, sendDue } from "../../../src/core/users/outbox.ts";
import { Role } from "../../../src/shared/enums.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { testClock } from "../../support/clock.ts";
import { startMailServer } from "../../support/mail-server.ts";
import type { MailServerStand } from "../../support/mail-server.ts";
import { createTestDatabase, DATABASE_KINDS } from "../../support/postgres.ts";
import type { TestDatabase } from "../../support/postgres.ts";

describe.each(DATABASE_KINDS)("on %s", (kind) => {
  const clock = testClock();
  let database: TestDatabase;
  /** PostgreSQL: two nodes of one site. */
  let nodes: TestApp[] = [];
  let mail: MailServerStand;
  const app = (): TestApp => {
    const [node] = nodes;
    if (!node) throw new Error("no node");
    return node;
  };

  beforeAll(async () => {
    mail = await startMailServer();
    database = await createTestDatabase(kind);
    const env: Record<string, string> = { ENCRYPTION_KEY: "one key for both nodes" };
    if (database.databaseUrl !== undefined) env["DATABASE_URL"] = database.databaseUrl;
    nodes = [await startTestApp({ env, clock })];
    if (kind === "postgres") nodes.push(await startTestApp({ env, clock }));
    await app().createUser({ username: "root", role: Role.root });
    for (const node of nodes) {
      await node.deps.options.set("SMTPServer", "127.0.0.1");
      await node.deps.options.set("SMTPPort", String(mail.port));
      await node.deps.options.set("SMTPFrom", "site@mail.example");
    }
  });
  afterAll(async () => {
    for (const node of nodes) await node.close();
    await database.drop();
    await mail.close();
  });
  beforeEach(async () => {
    mail.letters.length = 0;
    mail.refusal = 0;
    mail.refusedReceiver = "";
    await app().deps.db.orm.delete(app().deps.db.t.outbox);
  });

  const post = (to: string, subject = "News") => {
    const { deps } = app();
    const letter = { to, subject, text: "Some text", html: "<p>Some text</p>" };
    return deps.db.atomic((tx) => postSteps(tx, deps, { userId: 7, kind: "news", letter }));
  };
  const rows = () => app().deps.db.orm.select().from(app().deps.db.t.outbox);
  const subjects = () => mail.letters.map(({ subject }) => subject);

  test("a letter goes once, however many nodes look, and leaves nothing", async () => {
    await post("ada@mail.example", "One");
    await post("bob@mail.example", "Two");
    expect(JSON.stringify(await rows())).not.toContain("mail.example");
    await Promise.all(nodes.flatMap((node) => [sendDue(node.deps), sendDue(node.deps)]));
    expect(subjects().toSorted()).toEqual(["One", "Two"]);
    expect(await rows()).toEqual([]);
  });

  test("a name with a comma is one receiver, not two", async () => {
    await post("a@x.example, b@y.example");
    await sendDue(app().deps);
    expect(mail.letters.flatMap(({ to }) => to)).not.toContain("b@y.example");
  });

  test("while the server is down it waits longer and longer, and then it goes", async () => {
    mail.refusal = 451;
    await post("ada@mail.example");
    await sendDue(app().deps);
    for (const pause of PAUSES.slice(0, -1)) {
      clock.advance((pause - 1) * 1000);
      await sendDue(app().deps);
      const [before] = await rows();
      clock.advance(1000);
      await sendDue(app().deps);
      const [after] = await rows();
      expect([after?.attempts, after?.deadAt]).toEqual([(before?.attempts ?? 0) + 1, null]);
    }
    expect(subjects()).toEqual([]);
    mail.refusal = 0;
    clock.advance((PAUSES.at(-1) ?? 0) * 1000);
    expect(await sendDue(app().deps)).toBe(1);
    expect(subjects()).toContain("News");
    expect(await rows()).toEqual([]);
  });

  test("a node that dies while it sends leaves the letter to others", async () => {
    await post("ada@mail.example");
    const { outbox } = app().deps.db.t;
    // What a claim leaves.
    await app()
      .deps.db.orm.update(outbox)
      .set({ nextAt: Math.floor(clock.nowMs() / 1000) + 120 });
    expect(await sendDue(app().deps)).toBe(0);
    clock.advance(120_000);
    expect(await sendDue(app().deps)).toBe(1);
  });

  test("what no server takes is given up, and the operator's inbox says so", async () => {
    mail.refusedReceiver = "gone@mail.example";
    await post("gone@mail.example");
    await sendDue(app().deps);
    const [row] = await rows();
    expect(row?.deadAt).toBe(Math.floor(clock.nowMs() / 1000));
    await app().services.inbox.settle();
    const items = await app().deps.db.orm.select().from(app().deps.db.t.inboxItems);
    const told = items.filter(({ kind: what }) => what === "letter");
    expect(told).toMatchObject([{ closedAt: 0 }]);
    expect(told[0]?.params).toContain("g***@mail.example");
    // A month later nothing of it is left.
    clock.advance(31 * 86_400_000);
    await sendDue(app().deps);
    expect(await rows()).toEqual([]);
  });

  test("a notice to root goes the same way: kept while the server is down, dead in the inbox's sight in the end", async () => {
    const { deps } = app();
    const user = { id: 1, email: "root@mail.example", role: Role.root };
    const notice = { type: "channel_update_1_2", title: "Channel down", content: "It is." };
    mail.refusal = 451;
    await deliverKept(deps, user, {}, notice);
    expect(await rows()).toMatchObject([{ userId: 1, kind: "channel_update_1_2", attempts: 1 }]);
    mail.refusal = 0;
    clock.advance((PAUSES[0] ?? 0) * 1000);
    expect([await sendDue(deps), subjects()]).toEqual([1, ["Channel down"]]);
    mail.refusedReceiver = user.email;
    await deliverKept(deps, user, {}, notice);
    expect((await rows())[0]?.deadAt).toBeGreaterThan(0);
    await app().services.inbox.settle();
    expect(deps.inbox.subjects("letter")).toHaveLength(1);
  });

  test("two days of silence end it", async () => {
    await app().deps.options.set("SMTPServer", "");
    await post("ada@mail.example");
    for (const pause of [0, ...PAUSES]) {
      clock.advance(pause * 1000);
      await sendDue(app().deps);
    }
    expect((await rows())[0]?.deadAt).not.toBeNull();
    await app().deps.options.set("SMTPServer", "127.0.0.1");
  });
});

test("an address is shown so that its owner knows it, and nobody else", () => {
  expect(["ada@mail.example", "a@b.example", "@x", ""].map(maskedMail)).toEqual([
    "a***@mail.example",
    "a***@b.example",
    "***",
    "***",
  ]);
});
