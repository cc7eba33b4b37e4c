// Upstreams' lists of models: compared, never believed blindly, proposed, taken over by whoever decides, and taken back.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { compareLists, driftState, withDrift } from "../../../src/core/channels/drift.ts";
import { createUpstreamModels } from "../../../src/core/channels/upstream-models.ts";
import { jobsOf } from "../../../src/jobs/jobs.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { FORTY_DAYS_MS, testClock } from "../../support/clock.ts";

const HOUR_S = 3600;
const NOW_S = 1_800_000_000;

describe("comparing", () => {
  const look = (
    models: string[],
    list: string[],
    modelDrift = "",
    nowS = NOW_S,
    mapping: [string, string][] = [],
  ) =>
    compareLists(driftState({ settings: "", modelDrift }), { models, mapping: new Map(mapping), list, nowS });

  test("what differs in case alone is the same; names that are mapped are neither missing nor new", () => {
    expect(
      look(["GPT-a", "alias"], ["gpt-A", "target", "new"], "", NOW_S, [["alias", "target"]]),
    ).toMatchObject({
      detected: ["new"],
      removed: [],
      missingSince: {},
    });
  });

  test("what is missing is proposed once it was missing twice, an hour apart; back in between, it begins anew", () => {
    const first = look(["a", "b"], ["a"]);
    expect(first).toMatchObject({ removed: [], missingSince: { b: NOW_S } });
    const settings = withDrift("", first ?? {});
    expect(look(["a", "b"], ["a"], settings, NOW_S + HOUR_S - 1)?.removed).toEqual([]);
    expect(look(["a", "b"], ["a"], settings, NOW_S + HOUR_S)?.removed).toEqual(["b"]);
    expect(look(["a", "b"], ["a", "b"], settings, NOW_S + HOUR_S)?.missingSince).toEqual({});
  });

  test.each([
    ["an empty list", 4, 0],
    ["one that has shrunk by more than half", 5, 2],
  ])("%s is not believed", (_, before, now) => {
    const list = Array.from({ length: now }, (_each, at) => `m${at}`);
    expect(look(["m0"], list, withDrift("", { listSize: before }))).toBeUndefined();
  });

  test("half of it is; what is ignored is proposed in neither direction", () => {
    const found = { listSize: 4, ignored: ["New", "gone"], missingSince: { gone: 1 } };
    const modelDrift = withDrift(withDrift("", { before: "kept" }), found);
    expect(look(["a", "gone"], ["a", "new"], modelDrift)).toMatchObject({ detected: [], removed: [] });
    expect(driftState({ settings: "", modelDrift })).toMatchObject({ before: "kept", ...found });
    // As channels of the family bring it along.
    const settings = '{"upstream_model_update_ignored_models":["theirs"]}';
    expect(driftState({ settings, modelDrift: "" }).ignored).toEqual(["theirs"]);
    expect(driftState({ settings, modelDrift }).ignored).toEqual(["New", "gone"]);
  });
});

interface Proposal {
  channel_id: number;
  add_models: string[];
  remove_models: string[];
  can_undo: boolean;
  problem: string;
}

describe.each(["sqlite", "postgres"] as const)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let root: TestUser;
  let asked = 0;
  let list: string[] | number = [];
  const upstream = Bun.serve({
    port: 0,
    fetch() {
      asked++;
      if (typeof list === "number") return new Response("no", { status: list });
      return Response.json({ data: list.map((id) => ({ id })) });
    },
  });

  beforeAll(async () => {
    app = await startTestApp({ database, clock });
    root = await app.createUser({ role: 100 });
    await app.deps.options.set("ModelPrice", JSON.stringify({ priced: 0.01, "priced-too": 0.01 }));
  });
  afterAll(async () => {
    await app.close();
    await upstream.stop(true);
  });

  const channel = (models: string, settings: object = {}): Promise<number> =>
    app.createChannel({ baseUrl: upstream.url.origin, models, key: "k", settings: JSON.stringify(settings) });
  const post = async <T = Proposal>(path: string, body?: object): Promise<T> => {
    const { body: answer } = await app.call<{ success: boolean; data: T }>(
      "POST",
      `/api/channel/upstream_updates/${path}`,
      body,
      root,
    );
    expect(answer.success).toBe(true);
    return answer.data;
  };
  const modelsOf = (id: number) => app.deps.routing.channel(id)?.models;

  test("a look proposes and changes nothing; five minutes pass before the next one; apply, ignore and undo", async () => {
    const id = await channel("old");
    list = ["old", "one", "two", "three"];
    expect(await post("detect", { id })).toMatchObject({ add_models: ["one", "two", "three"], problem: "" });
    const before = asked;
    list = ["old"];
    clock.advance(299_000);
    expect(await post("detect", { id })).toMatchObject({ add_models: ["one", "two", "three"] });
    expect([asked, modelsOf(id)]).toEqual([before, ["old"]]);
    // The look was noted by a clock that was ahead: it does not keep others from looking until then.
    clock.jump(-FORTY_DAYS_MS);
    await post("detect", { id });
    expect(asked).toBe(before + 1);
    clock.jump(FORTY_DAYS_MS);
    list = ["old", "one", "two", "three"];
    await post("detect", { id });
    list = ["old"];
    const applied = await post("apply", { id, add_models: ["one"], ignore_models: ["two"] });
    expect(applied).toMatchObject({ add_models: ["three"], can_undo: true });
    expect(modelsOf(id)).toEqual(["old", "one"]);
    expect(app.deps.routing.tiers("default", "one")).toHaveLength(1);
    expect(await post("undo", { id })).toMatchObject({ can_undo: false });
    expect(modelsOf(id)).toEqual(["old"]);
    expect(app.deps.routing.tiers("default", "one")).toHaveLength(0);
  });

  test("a list that fails, is empty or has shrunk leaves models and proposals as they are, and says why", async () => {
    const id = await channel("a,b,c,d");
    list = ["a", "b", "c", "d", "e", "f"];
    await post("detect", { id });
    for (const bad of [500, [], ["a", "b"]]) {
      list = bad;
      clock.advance(2 * HOUR_S * 1000);
      const told = await post("detect", { id });
      expect(told).toMatchObject({ add_models: ["e", "f"], remove_models: [] });
      expect(told.problem).not.toBe("");
    }
    expect(modelsOf(id)).toEqual(["a", "b", "c", "d"]);
  });

  test("a form that was opened before a look and saved after it leaves what was found and decided", async () => {
    const id = await channel("old");
    list = ["old", "one", "two"];
    const read = async () =>
      (await app.call<{ data: { settings: string } }>("GET", `/api/channel/${id}`, undefined, root)).body
        .data;
    const opened = await read();
    await post("detect", { id });
    await post("apply", { id, add_models: [], ignore_models: ["two"] });
    expect((await read()).settings).toBe(opened.settings);
    const settings = JSON.stringify({ allow_speed: true });
    const saved = await app.call("PUT", "/api/channel/", { id, settings }, root);
    expect(saved.body).toMatchObject({ success: true });
    expect(await post("detect", { id })).toMatchObject({ add_models: ["one"], ignored_models: ["two"] });
  });

  test("nobody leaves a channel without models", async () => {
    const id = await channel("only");
    const { body } = await app.call<{ success: boolean; code?: string }>(
      "POST",
      "/api/channel/upstream_updates/apply",
      { id, remove_models: ["only"] },
      root,
    );
    expect([body.success, body.code, modelsOf(id)]).toEqual([false, "channel_without_models", ["only"]]);
  });

  test("every half hour those that are watched; by themselves they take over what has a price; root is told once a day", async () => {
    const watched = await channel("kept", { upstream_model_update_check_enabled: true });
    const automatic = await channel("kept,gone", {
      upstream_model_update_check_enabled: true,
      upstream_model_update_auto_sync_enabled: true,
    });
    const unwatched = await channel("kept");
    list = ["kept", "priced", "unpriced"];
    const job = jobsOf(app.deps, app.services.gateway.watch, () => Promise.resolve()).find(
      ({ name }) => name === "upstream-models",
    );
    expect(job?.everySeconds()).toBe(HOUR_S / 2);
    const notices = async () =>
      (await app.deps.db.orm.select().from(app.deps.db.t.logs)).filter(({ content }) =>
        content.includes("上游模型列表"),
      );
    await job?.run();
    expect(modelsOf(automatic)).toEqual(["kept", "gone", "priced"]);
    expect([modelsOf(watched), modelsOf(unwatched)]).toEqual([["kept"], ["kept"]]);
    clock.advance(HOUR_S * 1000);
    await job?.run();
    expect(modelsOf(automatic)).toEqual(["kept", "priced"]);
    await app.deps.ledger.flush();
    expect(await notices()).toHaveLength(1);
    // Neither a start nor another node tells it again, but the next day.
    const other = createUpstreamModels(app.deps, { models: () => Promise.resolve(["kept", "unpriced"]) });
    clock.advance(22 * HOUR_S * 1000);
    await other.detectAll();
    await app.deps.ledger.flush();
    expect(await notices()).toHaveLength(1);
    clock.advance(HOUR_S * 1000);
    await Promise.all([other.detectAll(), job?.run()]);
    await app.deps.ledger.flush();
    expect(await notices()).toHaveLength(2);
    list = ["kept", "priced", "unpriced"];
    clock.advance(HOUR_S * 1000);
    await job?.run();
    await post("apply_all");
    expect(modelsOf(watched)).toEqual(["kept", "priced"]);
  });

  test("a channel that is deleted, or fails, while others are looked at stops none of them", async () => {
    const settings = { upstream_model_update_check_enabled: true };
    const [gone, odd, last] = [
      await channel("a", settings),
      await channel("a", settings),
      await channel("a", settings),
    ];
    const models = async ({ id }: { id: number }): Promise<string[]> => {
      if (id === gone) await app.call("DELETE", `/api/channel/${id}`, undefined, root);
      if (id === odd) throw new TypeError("a list that nobody foresaw");
      return ["a", "b"];
    };
    const looked = (await createUpstreamModels(app.deps, { models }).detectAll()).map(
      (each) => each.channel_id,
    );
    expect([gone, odd, last].map((id) => looked.includes(id))).toEqual([false, false, true]);
    expect(modelsOf(gone)).toBeUndefined();
  });
});
