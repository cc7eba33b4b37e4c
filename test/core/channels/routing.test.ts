// The routing index: built from channel rows, followed through writes, on both databases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, inArray } from "drizzle-orm";
import { followMapping } from "../../../src/core/channels/rows.ts";
import { createRouting } from "../../../src/core/channels/routing.ts";
import { openPostgres, postgresDatabase } from "../../../src/db/postgres.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

describe.each(DATABASE_KINDS)("routing on %s", (database) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ database });
  });
  afterAll(() => app.close());

  const idsOf = (group: string, model: string) =>
    app.deps.routing.tiers(group, model).map((tier) => tier.entries.map((entry) => entry.channel.id));

  test("channels stand by descending priority, in every group and under every model they list, disabled ones nowhere", async () => {
    const low = await app.createChannel({ models: "a, b ,b,", group: "default,vip" });
    const high = await app.createChannel({ models: "a", priority: 7 });
    const off = await app.createChannel({ models: "a", status: 2 });
    expect(idsOf("default", "a")).toEqual([[high], [low]]);
    expect(idsOf("vip", "a")).toEqual([[low]]);
    expect(idsOf("vip", "unknown")).toEqual([]);
    expect(app.deps.routing.modelsOf("default")).toEqual(["a", "b"]);
    expect(app.deps.routing.channel(off)?.status).toBe(2);
  });

  test("a refresh after a write moves exactly what changed, also a deletion", async () => {
    const { channels } = app.deps.db.t;
    const id = await app.createChannel({ models: "moved", group: "g1" });
    await app.deps.db.orm
      .update(channels)
      .set({ group: "g2", models: "moved,more" })
      .where(eq(channels.id, id));
    await app.deps.routing.refresh([id]);
    expect(idsOf("g1", "moved")).toEqual([]);
    expect(idsOf("g2", "more")).toEqual([[id]]);
    await app.deps.db.orm.delete(channels).where(inArray(channels.id, [id]));
    await app.deps.routing.refresh([id]);
    expect(app.deps.routing.channel(id)).toBeUndefined();
    expect(app.deps.routing.enabledModels()).not.toContain("more");
  });

  test("columns that cannot be read leave the channel in place", async () => {
    const id = await app.createChannel({
      models: "odd",
      key: "k1\n\n k2 ",
      modelMapping: "{broken",
      statusCodeMapping: '{"404":"500","x":"1"}',
      paramOverride: "[1]",
      setting: '{"proxy":"socks5://localhost:1"}',
      baseUrl: "https://example.org//",
    });
    expect(app.deps.routing.channel(id)).toMatchObject({
      keys: ["k1", "k2"],
      modelMapping: "json",
      paramOverride: null,
      setting: { proxy: "socks5://localhost:1" },
      baseUrl: "https://example.org",
    });
    expect([...(app.deps.routing.channel(id)?.statusCodeMapping ?? [])]).toEqual([[404, 500]]);
  });

  test("what did not change keeps its place when everything is re-read, and nobody is told of it", async () => {
    const kept = await app.createChannel({ models: "kept" });
    const edited = await app.createChannel({ models: "edited" });
    const before = app.deps.routing.channel(kept);
    const told: number[] = [];
    app.deps.routing.onChange((ids) => void told.push(...ids));
    const { channels } = app.deps.db.t;
    await app.deps.db.orm.update(channels).set({ weight: 5 }).where(eq(channels.id, edited));
    await app.deps.routing.reload();
    expect(told).toEqual([edited]);
    expect(app.deps.routing.channel(kept)).toBe(before);
  });

  test("another node sees a change", async () => {
    if (database === "sqlite") {
      // One process owns an embedded database: a second snapshot only ever starts from the rows.
      const other = await createRouting(app.deps);
      expect(other.enabledModels()).toEqual(app.deps.routing.enabledModels());
      return;
    }
    const db = postgresDatabase(openPostgres(app.databaseUrl ?? "", 2));
    const other = await createRouting({ ...app.deps, db });
    const { promise, resolve } = Promise.withResolvers<void>();
    other.onChange(() => {
      if (other.enabledModels().includes("from-elsewhere")) resolve();
    });
    const { channels } = app.deps.db.t;
    const id = await app.createChannel({ models: "quiet" });
    await app.deps.db.orm.update(channels).set({ models: "from-elsewhere" }).where(eq(channels.id, id));
    await app.deps.routing.refresh([id]);
    await promise;
    expect(other.tiers("default", "from-elsewhere")).toHaveLength(1);
    await db.close();
  });
});

describe("model mapping", () => {
  const end = (text: string, from: string) => {
    const mapping = followMapping(text);
    return typeof mapping === "string" ? mapping : mapping.get(from);
  };
  test.each([
    ["a chain is followed to its end", '{"a":"b","b":"c"}', "a", "c"],
    ["a name that maps to itself ends its chain", '{"a":"b","b":"b"}', "a", "b"],
    ["a name that maps only to itself is not mapped", '{"a":"a"}', "a", undefined],
    ["a cycle is refused", '{"a":"b","b":"a"}', "a", "cycle"],
    ["a cycle behind a chain is refused", '{"a":"b","b":"c","c":"b"}', "a", "cycle"],
    ["text that is no JSON is refused", "{", "a", "json"],
    ["values that are no names are refused", '{"a":1}', "a", "json"],
    ["an empty column maps nothing", "", "a", undefined],
    ["names of Object's own are not mapped", '{"a":"constructor"}', "a", "constructor"],
  ])("%s", (_, text, from, expected) => {
    expect(end(text, from)).toBe(expected as string);
  });
});
