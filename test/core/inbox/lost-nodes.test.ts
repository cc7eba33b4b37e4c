// A node that is gone without a word, as the others see it on one PostgreSQL: an item and a card until it returns, until its
// journal is entered, or until somebody gives it up. Refuses to wait two minutes: the lease is dated back in the database.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eq, sql } from "drizzle-orm";
import { purgeItems } from "../../../src/core/inbox/items.ts";
import { lookAtNodes } from "../../../src/core/inbox/node-look.ts";
import { takeLease } from "../../../src/core/ledger/node-lease.ts";
import { Role } from "../../../src/shared/enums.ts";
import { inboxSentence } from "../../../src/shared/inbox.ts";
import { translator } from "../../../src/pages/texts.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import type { TestDatabase } from "../../support/postgres.ts";
import { silent } from "../ledger/support.ts";

const GONE = "00112233445566aa";

let database: TestDatabase;
let app: TestApp;
let root: TestUser;
let elsewhere: string;

beforeAll(async () => {
  database = await createTestDatabase("postgres");
  app = await startTestApp({ env: { DATABASE_URL: database.databaseUrl ?? "" } });
  await app.deps.db.orm.insert(app.deps.db.t.setups).values({ version: "0", initializedAt: 1 });
  root = await app.createUser({ username: "root", role: Role.root });
  elsewhere = mkdtempSync(join(tmpdir(), "weir-gone-"));
}, 60_000);
afterAll(async () => {
  await app.close();
  await database.drop();
  rmSync(elsewhere, { recursive: true, force: true });
});

interface Listed {
  id: number;
  kind: "node_lost";
  subject: string;
  params: Record<string, string>;
}

async function open(): Promise<Listed[]> {
  await app.services.looks.look();
  const { body } = await app.call<{ data: { items: Listed[] } }>(
    "GET",
    "/api/inbox/?state=open",
    undefined,
    root,
  );
  return body.data.items;
}

async function nodePage(): Promise<string> {
  const headers = { ...root.headers, "accept-language": "en" };
  return (await fetch(`${app.url}/node`, { headers })).text();
}

/** Its lease ended so many seconds ago. */
async function dieSince(seconds: number): Promise<void> {
  const { nodes } = app.deps.db.t;
  const at = sql`extract(epoch from now())::bigint - ${seconds}::bigint`;
  await app.deps.db.orm
    .update(nodes)
    .set({ leaseUntil: at, updatedAt: at, place: "another machine" })
    .where(eq(nodes.nodeId, GONE));
}

const deps = () => ({
  db: app.deps.db,
  logger: silent,
  clock: app.deps.clock,
  nodeId: GONE,
  dataDir: elsewhere,
});

test("a node whose lease ended without a goodbye is told of until it comes back, and shown as lost", async () => {
  // A process that was killed: nobody renews for it any more.
  const { nodes } = app.deps.db.t;
  await app.deps.db.orm.insert(nodes).values({ nodeId: GONE, history: "00112233445566bb", incarnation: 1 });
  await dieSince(-20);
  expect(await open()).toEqual([]);
  await dieSince(100);
  expect(await open()).toEqual([]);
  await dieSince(700);
  const [item, ...others] = await open();
  expect(others).toEqual([]);
  expect(item).toMatchObject({ kind: "node_lost", subject: GONE });
  expect(item && inboxSentence(translator("en"), "en", item)).toStartWith(
    "Node 00112233 has been gone for more than 10 minutes without having stopped in order; its journal may hold calls",
  );
  expect(item && inboxSentence(translator("zh"), "zh", item)).toContain("已失联超过 10 分钟");
  expect(await nodePage()).toContain("lost since");
  // It comes back on its data, and stops in order.
  const lease = await takeLease({ ...deps(), leaseSeconds: 0, pause: () => Bun.sleep(20) });
  expect(await open()).toEqual([]);
  expect(await nodePage()).not.toContain("lost since");
  await lease.release();
  expect(await open()).toEqual([]);
});

/** Whatever closed its item did so long ago. */
async function closedLongAgo(): Promise<void> {
  const { inboxItems } = app.deps.db.t;
  await app.deps.db.orm
    .update(inboxItems)
    .set({ closedAt: sql`${inboxItems.closedAt} - 40000` })
    .where(eq(inboxItems.subject, GONE));
}

test("one that ends with entries in its journal says no goodbye", async () => {
  const lease = await takeLease({ ...deps(), pause: () => Bun.sleep(20) });
  await lease.release(false);
  await dieSince(3 * 3600);
  await closedLongAgo();
  const [item] = await open();
  expect(item?.params).toMatchObject({ span_en: "2 h" });
});

test("closed by hand it stays closed, for this loss; it is opened anew by the next one", async () => {
  const [item] = await open();
  await app.call("PUT", `/api/inbox/${item?.id}`, { state: "closed" }, root);
  expect(await open()).toEqual([]);
  expect(await open()).toEqual([]);
  // Lost since a moment that lies behind the closing.
  await closedLongAgo();
  await dieSince(3600);
  expect((await open()).map(({ subject }) => subject)).toEqual([GONE]);
});

test("what a node told of its disk stays while it is there, starts anew, or is lost; it ends once it said goodbye", async () => {
  const { inbox } = app.services;
  const { nodes } = app.deps.db.t;
  const isTold = async () => {
    await inbox.settle();
    await app.services.looks.look();
    return inbox.subjects("disk").includes(GONE);
  };
  inbox.keep({ kind: "disk", subject: GONE, params: { node: "gone", free: "1 MiB", percent: 1 } });
  for (const seconds of [-20, 3600]) {
    await dieSince(seconds);
    expect(await isTold()).toBe(true);
  }
  const leaves = async (seconds: number) => {
    await dieSince(seconds);
    await app.deps.db.orm.update(nodes).set({ leaseUntil: 0 }).where(eq(nodes.nodeId, GONE));
  };
  await leaves(300);
  expect(await isTold()).toBe(true);
  await leaves(700);
  expect(await isTold()).toBe(false);
});

test("a loss that somebody closed a month ago does not come back", async () => {
  await closedLongAgo();
  await dieSince(3600);
  const [item] = await open();
  expect(item?.kind).toBe("node_lost");
  await app.call("PUT", `/api/inbox/${item?.id}`, { state: "closed" }, root);
  await purgeItems(app.deps.db, Math.floor(Date.now() / 1000) + 31 * 86_400);
  expect(await open()).toEqual([]);
});

test("more than a hundred lost nodes hide neither the latest loss nor one that is told of already", async () => {
  const { db } = app.deps;
  const { nodes } = db.t;
  const now = Math.floor(Date.now() / 1000);
  const rows = Array.from({ length: 150 }, (_, index) => ({
    nodeId: `lost-${index}`,
    history: "00112233445566cc",
    leaseUntil: now - 100_000 + index,
  }));
  await db.orm
    .insert(nodes)
    .values([...rows, { nodeId: "back", history: "00112233445566dd", leaseUntil: 0 }]);
  const kept: string[] = [];
  const gone: string[] = [];
  const inbox = {
    subjects: () => ["lost-0", "back"],
    keep: ({ subject }: { subject?: string | undefined }) => void kept.push(subject ?? ""),
    gone: (_kind: string, subject: string) => void gone.push(subject),
  };
  await lookAtNodes({ db, nodeId: "another", inbox });
  expect(gone).toEqual(["back"]);
  expect(kept).toContain("lost-149");
  expect(kept).toContain("lost-0");
});
