// Channel rules below the wire: what a row is made from, and that rows, index and routing move together.
// Refuses HTTP: the wire's words and permissions are tested in test/api.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { channelChanges, keysOf, namesOf } from "../../../src/core/channels/input.ts";
import type { ChannelRow } from "../../../src/core/channels/rows.ts";
import { listChannels } from "../../../src/core/channels/list.ts";
import { createChannels, deleteChannels, updateChannel } from "../../../src/core/channels/channels.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

describe("what a channel row is made from", () => {
  test("keys are lines, except where one key has lines itself", () => {
    expect(keysOf(1, " a \r\n\nb\na")).toEqual(["a", "b"]);
    expect(keysOf(1, " \n ")).toEqual([]);
    expect(keysOf(41, '{\n  "a": 1\n}')).toEqual(['{"a":1}']);
    expect(keysOf(41, "not\njson")).toEqual(["notjson"]);
    expect(keysOf(41, "  ")).toEqual([]);
  });

  test("names in comma lists are trimmed and stand once, in their first order", () => {
    expect(namesOf(" b, a ,,b,c ")).toEqual(["b", "a", "c"]);
    expect(namesOf("")).toEqual([]);
  });

  test("absent and null fields change nothing, a status of 0 neither", () => {
    const before = { type: 1, other: "keep" } as ChannelRow;
    expect(channelChanges({}, before)).toEqual({});
    expect(channelChanges({ name: null, models: null, weight: null, tag: null, status: 0 }, before)).toEqual(
      {},
    );
    expect(channelChanges({ weight: 0, priority: 0, auto_ban: 0, other: "" }, before)).toEqual({
      weight: 0,
      priority: 0,
      autoBan: 0,
      other: "",
    });
  });

  test("a row of another installation with a broken field can still be renamed and disabled", () => {
    const before = { type: 41, other: "", modelMapping: "{broken" } as ChannelRow;
    expect(channelChanges({ name: "new", status: 2 }, before)).toEqual({ name: "new", status: 2 });
    expect(() => channelChanges({ other: "" }, before)).toThrow("channel_region_missing");
    expect(channelChanges({ other: "us-east5" }, before)).toEqual({ other: "us-east5" });
    const unserved = { type: 50, other: "" } as ChannelRow;
    expect(channelChanges({ type: 50, name: "same type" }, unserved)).toEqual({ name: "same type" });
    expect(() => channelChanges({ type: 51 }, unserved)).toThrow("provider_unserved");
  });

  test("status mappings take statuses as numbers and as texts, and nothing else", () => {
    const before = { type: 1, other: "" } as ChannelRow;
    for (const text of ['{"429":"500"}', '{"400":500}', "{}", ""]) {
      expect(channelChanges({ status_code_mapping: text }, before).statusCodeMapping).toBe(text);
    }
    for (const text of ['{"429":"5e2"}', '{"400":99}', '{"x":500}', '{"400":600}', "7", "{"]) {
      expect(() => channelChanges({ status_code_mapping: text }, before)).toThrow(
        "channel_status_mapping_invalid",
      );
    }
  });
});

describe.each(DATABASE_KINDS)("channel rows on %s", (database) => {
  let app: TestApp;

  beforeAll(async () => {
    app = await startTestApp({ database });
  });
  afterAll(() => app.close());

  const fields = { name: "c", key: "k", models: "m", group: "default" };

  test("too many keys at once, or one wrong field, create no channel at all", async () => {
    const count = async () =>
      (await listChannels(app.deps, { idSort: false, tagMode: false, offset: 0, limit: 1 })).total;
    const before = await count();
    const keys = Array.from({ length: 201 }, (_, index) => `key-${index}`).join("\n");
    const failures = [
      createChannels(app.deps, { ...fields, key: keys }),
      createChannels(app.deps, { ...fields, key: "a\nb", param_override: "[]" }),
      createChannels(app.deps, {
        ...fields,
        models: Array.from({ length: 1500 }, (_, index) => `model-${index}`).join(","),
        group: Array.from({ length: 90 }, (_, index) => `group-${index}`).join(","),
      }),
    ];
    const outcomes = await Promise.allSettled(failures);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(await count()).toBe(before);
  });

  test("concurrent edits of one channel leave row, index and routing saying the same", async () => {
    const [id = 0] = await createChannels(app.deps, { ...fields, models: "start" });
    const edits = Array.from({ length: 12 }, (_, index) =>
      updateChannel(app.deps, id, { models: `m${index},common`, group: index % 2 === 0 ? "default" : "vip" }),
    );
    await Promise.all(edits);
    const { abilities, channels } = app.deps.db.t;
    const [row] = await app.deps.db.orm.select().from(channels).where(eq(channels.id, id));
    const index = await app.deps.db.orm.select().from(abilities).where(eq(abilities.channelId, id));
    expect(index.map((each) => each.model).sort()).toEqual((row?.models ?? "").split(",").sort());
    expect(new Set(index.map((each) => each.group))).toEqual(new Set([row?.group ?? ""]));
    const routed = app.deps.routing.channel(id);
    expect([routed?.models.join(","), routed?.groups.join(",")]).toEqual([
      row?.models ?? "",
      row?.group ?? "",
    ]);
  });

  test("keys are sealed at rest, and the whole key is found by its hash alone", async () => {
    const [id = 0] = await createChannels(app.deps, { ...fields, key: "very-secret-key" });
    const { channelKeys } = app.deps.db.t;
    const [row] = await app.deps.db.orm.select().from(channelKeys).where(eq(channelKeys.channelId, id));
    expect(JSON.stringify(row)).not.toContain("very-secret-key");
    expect(app.deps.seal.open("channel", row?.keySealed ?? "")).toBe("very-secret-key");
    const search = async (keyword: string) => {
      const query = { keyword, idSort: true, tagMode: false, offset: 0, limit: 10 };
      return (await listChannels(app.deps, query)).items.map((each) => each.id);
    };
    expect(await search("very-secret-key")).toEqual([id]);
    expect(await search("very-secret")).toEqual([]);
  });

  test("enabling clears the reason of an automatic disabling; a rename does not", async () => {
    const [id = 0] = await createChannels(app.deps, fields);
    const { channels } = app.deps.db.t;
    const otherInfo = '{"status_reason":"quota","status_time":1}';
    await app.deps.db.orm.update(channels).set({ status: 3, otherInfo }).where(eq(channels.id, id));
    expect((await updateChannel(app.deps, id, { name: "renamed" })).other_info).toBe(otherInfo);
    expect(await updateChannel(app.deps, id, { status: 1 })).toMatchObject({ status: 1, other_info: "" });
  });

  test("deleting many at once leaves no row of the index behind", async () => {
    const ids = await createChannels(app.deps, { ...fields, key: "a\nb\nc", models: "x,y" });
    await deleteChannels(app.deps, ids);
    const { abilities } = app.deps.db.t;
    const left = await app.deps.db.orm.select().from(abilities);
    expect(left.filter((row) => ids.includes(row.channelId))).toEqual([]);
    expect(ids.map((id) => app.deps.routing.channel(id))).toEqual([undefined, undefined, undefined]);
  });
});
