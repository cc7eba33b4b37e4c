// The inbox of several nodes on one PostgreSQL: an item is opened once and told once; while the database is away root is
// told from memory, and the item is written when it is back. Refuses made-up outages: the server is stopped for real.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { renameSync } from "node:fs";
import { Role } from "../../../src/shared/enums.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { testClock } from "../../support/clock.ts";
import { startOwnPostgres } from "../../support/own-postgres.ts";
import type { OwnPostgres } from "../../support/own-postgres.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import type { TestDatabase } from "../../support/postgres.ts";
import { until } from "../../relay/support.ts";

interface Told {
  type: string;
  title: string;
  content: string;
}

/** A webhook that keeps what it is told. */
function startHook() {
  const told: Told[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      told.push((await request.json()) as Told);
      return new Response("");
    },
  });
  return { told, url: `http://127.0.0.1:${server.port}/hook`, stop: () => server.stop(true) };
}

async function addRoot(app: TestApp, url: string): Promise<void> {
  const root = await app.createUser({ username: "root", role: Role.root });
  const headers = { ...root.headers, cookie: `${root.headers["cookie"]}; i18nextLng=en` };
  const setting = { notify_type: "webhook", quota_warning_threshold: 1, webhook_url: url };
  const { body } = await app.call("PUT", "/api/user/setting", setting, { ...root, headers });
  expect(body).toMatchObject({ success: true });
}

const isTrue = (look: () => boolean | Promise<boolean>) =>
  until(async () => ((await look()) ? true : undefined));

describe("two nodes", () => {
  const clock = testClock();
  let database: TestDatabase;
  let here: TestApp;
  let there: TestApp;
  const hook = startHook();

  beforeAll(async () => {
    database = await createTestDatabase("postgres");
    const env = { DATABASE_URL: database.databaseUrl ?? "", ENCRYPTION_KEY: "one key for both nodes" };
    here = await startTestApp({ env, clock });
    there = await startTestApp({ env, clock });
    await addRoot(here, hook.url);
  });
  afterAll(async () => {
    await here.close();
    await there.close();
    await hook.stop();
    await database.drop();
  });

  test("meet a cause at once: one item, counted on both, one letter; it closes on both", async () => {
    const nodes = [here, there];
    for (let round = 0; round < 5; round++) {
      hook.told.length = 0;
      const subject = `model-${round}`;
      for (const { deps } of nodes) deps.inbox.raise({ kind: "price", subject });
      await Promise.all(nodes.map(({ services }) => services.inbox.settle()));
      // And once more: what the other one wrote is known by now, and told.
      await Promise.all(nodes.map(({ services }) => services.inbox.settle()));
      expect(hook.told.map(({ title }) => title)).toEqual(["Model without a price"]);
      const { inboxItems } = here.deps.db.t;
      const rows = (await here.deps.db.orm.select().from(inboxItems)).filter(
        (row) => row.subject === subject,
      );
      expect(rows.map(({ count, closedAt }) => [count, closedAt])).toEqual([[2, 0]]);
      await isTrue(() => nodes.every(({ deps }) => deps.inbox.summary().count === 1));
      there.deps.inbox.gone("price", subject);
      await isTrue(() => nodes.every(({ deps }) => deps.inbox.summary().count === 0));
      clock.advance(2 * 3_600_000);
    }
  });

  test("a channel that comes back is told by one of them", async () => {
    hook.told.length = 0;
    const nodes = [here, there];
    const params = { name: "main", reason: "余额不足", reason_en: "its balance is used up" };
    here.deps.inbox.raise({ kind: "channel", subject: "7", params });
    await here.services.inbox.settle();
    await isTrue(() => there.deps.inbox.subjects("channel").length === 1);
    for (const { deps } of nodes) deps.inbox.gone("channel", "7");
    await Promise.all(nodes.map(({ services }) => services.inbox.settle()));
    expect(hook.told.map(({ type, content }) => [type, content])).toEqual([
      ["channel_update_7_3", 'Channel "main" (#7) was disabled: its balance is used up'],
      ["channel_update_7_1", 'Channel "main" (#7) was enabled again'],
    ]);
  });
});

describe("PostgreSQL is stopped", () => {
  const clock = testClock();
  let postgres: OwnPostgres;
  let app: TestApp;
  const hook = startHook();

  beforeAll(async () => {
    postgres = await startOwnPostgres();
    app = await startTestApp({ env: { DATABASE_URL: postgres.url }, clock, looks: { awayMs: 2500 } });
    await addRoot(app, hook.url);
    // The account is known: nobody can be asked for it later.
    clock.advance(120_000);
    await app.services.inbox.settle();
  }, 60_000);
  afterAll(async () => {
    await postgres.start();
    await app.close();
    await postgres.remove();
    await hook.stop();
  }, 60_000);

  const history = async () => {
    const { inboxItems } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(inboxItems);
    return rows.map(({ kind, closedAt, toldAt }) => [kind, closedAt > 0, toldAt > 0]);
  };

  test("root hears of it at once and once, and the item stands there afterwards, closed", async () => {
    const { looks, inbox } = app.services;
    await postgres.stop("fast");
    await isTrue(async () => {
      await looks.look();
      return hook.told.length > 0;
    });
    expect(hook.told.map(({ type }) => type)).toEqual(["inbox_database"]);
    expect(hook.told[0]?.content).toMatch(/^Node [0-9a-f]{8} cannot reach the database\.$/);
    await looks.look();
    expect(hook.told).toHaveLength(1);
    // What happens meanwhile waits in memory.
    app.deps.inbox.raise({ kind: "mail" });
    await inbox.settle();
    await postgres.start();
    // A beat of the new connection may come late: until then the item is opened again, and told no more.
    const rows = await until(async () => {
      await looks.look();
      const found = (await history()).toSorted();
      return found.length === 2 && found[0]?.[1] === true ? found : undefined;
    });
    expect(rows).toEqual([
      ["database", true, true],
      ["mail", false, true],
    ]);
    expect(hook.told.map(({ type }) => type)).toEqual(["inbox_database", "inbox_mail"]);
  }, 60_000);

  test("a data directory that is gone: calls are refused, and the item says so until it is back", async () => {
    const { looks, inbox } = app.services;
    const { dataDir } = app.deps;
    const seen = () => app.deps.inbox.subjects("settlement_lost").length;
    renameSync(dataDir, `${dataDir}-away`);
    try {
      await isTrue(async () => {
        await looks.look();
        return seen() === 1;
      });
      await inbox.settle();
      expect(hook.told.at(-1)?.type).toBe("inbox_settlement_lost");
    } finally {
      renameSync(`${dataDir}-away`, dataDir);
    }
    await isTrue(async () => {
      await looks.look();
      return seen() === 0;
    });
  }, 30_000);
});
