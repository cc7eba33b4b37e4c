// The two status pages: what root reads of the nodes, and what users read of their models, as the server renders them.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { noteBackup } from "../../src/core/backup/state.ts";
import { refuse } from "../support/fake-upstream.ts";
import { startTestApp } from "../support/app.ts";
import type { TestUser } from "../support/app.ts";
import { untilSo } from "../support/turns.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { MODEL, startGateway } from "../relay/support.ts";
import type { Gateway } from "../relay/support.ts";

for (const database of DATABASE_KINDS)
  describe(`on ${database}`, () => {
    let gateway: Gateway;
    let root: TestUser;

    beforeAll(async () => {
      gateway = await startGateway({ database });
      const { db } = gateway.app.deps;
      await db.orm.insert(db.t.setups).values({ version: "0", initializedAt: 1 });
      root = await gateway.app.createUser({ role: 100 });
    });
    afterAll(() => gateway.close());

    const open = async (path: string, user?: TestUser, language = "en") => {
      const headers = { ...user?.headers, "accept-language": language };
      const page = await fetch(gateway.app.url + path, { headers, redirect: "manual" });
      // React puts a mark between a text and a value.
      return { status: page.status, text: (await page.text()).replaceAll("<!-- -->", "") };
    };

    test("root reads of this node, its database, its backups and its channels; nobody else does", async () => {
      const { deps } = gateway.app;
      const fresh = await open("/node", root);
      expect(fresh.status).toBe(200);
      for (const part of [
        deps.nodeId.slice(0, 8),
        "this node",
        "never",
        "no differences found",
        "1 of 1 take calls",
      ])
        expect(fresh.text).toContain(part);
      expect(fresh.text).toContain(database === "postgres" ? "PostgreSQL answers in" : "SQLite answers in");
      expect((await open("/node", root, "zh-CN")).text).toContain("当前节点");
      await noteBackup(deps.db, Math.floor(deps.clock.nowMs() / 1000) - 60, 3 * 1024 * 1024);
      expect((await open("/node", root)).text).toContain("3.0 MiB");
      const admin = await gateway.app.createUser({ role: 10 });
      expect((await open("/node", admin)).status).toBe(403);
      expect((await open("/node")).status).toBe(302);
    });

    test("another node is shown by what it wrote, and as silent once it is", async () => {
      const { db } = gateway.app.deps;
      const now = Math.floor(Date.now() / 1000);
      const row = { history: "x", leaseUntil: now + 30, updatedAt: now };
      await db.orm.insert(db.t.nodes).values([
        {
          ...row,
          nodeId: "aaaaaaaa-1",
          figures: JSON.stringify({ version: "9.9.9", requests: 4711, startedAt: now }),
        },
        { ...row, nodeId: "bbbbbbbb-2", updatedAt: now - 600, figures: "no json" },
        { ...row, nodeId: "cccccccc-3", leaseUntil: 0, updatedAt: now - 3 * 86_400 },
      ]);
      const { text } = await open("/node", root);
      for (const part of [
        "aaaaaaaa",
        "9.9.9",
        "4,711, 0 failed",
        "bbbbbbbb",
        "silent since",
        "told nothing of itself",
      ])
        expect(text).toContain(part);
      expect(text).not.toContain("cccccccc");
    });

    test("there is no page of models until the operator opens it, for users or for everybody", async () => {
      const { user, setOption } = gateway;
      expect((await open("/status", user)).status).toBe(404);
      await setOption("site.status_page", "users");
      expect((await open("/status", user)).status).toBe(200);
      expect((await open("/token", user)).text).toContain('href="/status"');
      expect((await open("/status")).status).toBe(404);
      expect((await open("/pricing")).text).not.toContain('href="/status"');
      await setOption("site.status_page", "public");
      expect((await open("/status")).status).toBe(200);
      expect((await open("/pricing")).text).toContain('href="/status"');
    });

    test("users read which models answer, how fast, how it was, and what they are told; nothing of channels", async () => {
      const { app, upstream, user } = gateway;
      await (await gateway.chat({ stream: true })).text();
      upstream.always(refuse(500));
      for (let at = 0; at < 3; at++) await (await gateway.chat()).text();
      upstream.always(undefined);
      await (await gateway.chat({ model: "nobody-serves-this" })).text();
      await gateway.setOption(
        "site.model_notices",
        JSON.stringify([{ id: "n1", models: [MODEL], channels: [], text: "slow today", until: 0 }]),
      );
      await app.services.modelDays.write();
      await app.services.modelDays.write();
      const { text } = await open("/status", user);
      for (const part of [MODEL, "OpenAI", "25.0 % answered in 90 days", "first token within", "slow today"])
        expect(text).toContain(part);
      // Three failures in a row: its only channel rests.
      expect(text).toContain("1 model does not answer now");
      expect(text).toContain("1 with many, 89 without a request");
      expect(text).not.toContain("nobody-serves-this");
      expect(text).not.toContain(upstream.url);
      const rows = await app.deps.db.orm.select().from(app.deps.db.t.modelDays);
      expect(rows.filter(({ slot }) => slot < 0).map(({ slot, count }) => [slot, count])).toEqual(
        expect.arrayContaining([
          [-2, 1],
          [-1, 3],
        ]),
      );
    });
  });

test("nodes that share a database tell each other how they are", async () => {
  const shared = { ENCRYPTION_KEY: "one key for both nodes" };
  const gateway = await startGateway({ database: "postgres", env: shared });
  const { db } = gateway.app.deps;
  try {
    await db.orm.insert(db.t.setups).values({ version: "0", initializedAt: 1 });
    await untilSo(async () => {
      const rows = await db.orm.select({ figures: db.t.nodes.figures }).from(db.t.nodes);
      return rows.some(({ figures }) => figures.includes('"loopMs"'));
    });
    const env = { ...shared, DATABASE_URL: gateway.app.databaseUrl ?? "" };
    const second = await startTestApp({ env });
    try {
      const root = await second.createUser({ role: 100 });
      const page = await fetch(`${second.url}/node`, {
        headers: { ...root.headers, "accept-language": "en" },
      });
      const text = await page.text();
      expect(text).toContain(gateway.app.deps.nodeId.slice(0, 8));
      expect(text).toContain("alive");
    } finally {
      await second.close();
    }
  } finally {
    await gateway.close();
  }
}, 30_000);
