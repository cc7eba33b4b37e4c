// Groups over the wire, on both databases: what users of one group pay in another, which groups they may use, and how an
// automatic key goes from one to the next. After each the books agree, and a replay of the log finds every charge again.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { ERROR_CODE_HEADER } from "../../../src/http/request-id.ts";
import { audit } from "../../../src/core/ledger/audit.ts";
import type { TestUser } from "../../support/app.ts";
import { answer, gate, json, refuse, stream } from "../../support/fake-upstream.ts";
import type { RecordedRequest, Script } from "../../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { replayLog } from "../../support/replayed.ts";
import { errorOf, startGateway } from "../support.ts";
import type { Gateway, LogLine } from "../support.ts";

/** Units of the fake upstream's usage (9 in, 3 out) at ratios 100 and 4. */
const QUOTA = 9 * 100 + 3 * 400;
const HI = [{ role: "user", content: "hi" }];
const GROUPS = {
  GroupRatio: { default: 1, cheap: 0.5, dear: 3 },
  UserUsableGroups: { default: "Everybody", cheap: "Cheap", dear: "Dear" },
  GroupGroupRatio: {},
  GroupSpecialUsableGroup: {},
  AutoGroups: [] as string[],
};

describe.each(DATABASE_KINDS)("groups on %s", (database) => {
  let g: Gateway;
  let vip: TestUser;
  let serial = 0;

  beforeAll(async () => {
    g = await startGateway({ database });
    vip = await g.app.createUser({ quota: 50_000_000, group: "vip" });
  });
  afterAll(() => g.close());
  beforeEach(async () => {
    g.upstream.reset();
    await set(GROUPS);
    await g.setOption("RetryTimes", "3");
  });
  afterEach(async () => {
    await g.app.deps.ledger.flush();
    expect((await audit(g.app.deps.db)).differences).toEqual([]);
    expect((await replayLog(g.app.deps)).differences).toEqual([]);
  });

  async function set(options: Record<string, unknown>): Promise<void> {
    for (const [key, value] of Object.entries(options)) await g.setOption(key, JSON.stringify(value));
  }

  /** A model of its own, with a channel in each of the groups: the key that it is called with says which. */
  async function model(groups: readonly string[], fields: Record<string, unknown> = {}): Promise<string> {
    const name = `groups-${++serial}`;
    const { options } = g.app.deps;
    await set({
      ModelRatio: { ...options.get("ModelRatio"), [name]: 100 },
      CompletionRatio: { ...options.get("CompletionRatio"), [name]: 4 },
    });
    for (const group of groups)
      await g.app.createChannel({ baseUrl: g.upstream.url, models: name, group, key: group, ...fields });
    return name;
  }

  const keyOf = async (user: TestUser, fields: Record<string, unknown> = {}): Promise<string> =>
    (await g.app.createToken(user.id, fields)).key;
  const chat = (key: string, name: string, fields: Record<string, unknown> = {}): Promise<Response> =>
    g.post(
      "/v1/chat/completions",
      { model: name, messages: HI, ...fields },
      { authorization: `Bearer ${key}` },
    );
  const asked = (): string[] =>
    g.upstream.requests.map(({ headers }) => String(headers["authorization"]).slice(7));
  const charged = async (call: () => Promise<Response>): Promise<LogLine> =>
    g.charged(async () => expect((await call()).status).toBe(200));

  describe("what users of one group pay in another", () => {
    test("a ratio of theirs replaces the group's, and the row says that one acted", async () => {
      await set({ GroupGroupRatio: { vip: { dear: 0.8 } } });
      const name = await model(["dear"]);
      const theirs = await charged(async () => chat(await keyOf(vip, { group: "dear" }), name));
      expect(theirs).toMatchObject({ quota: Math.round(QUOTA * 0.8), group: "dear" });
      expect(theirs.other).toMatchObject({ group_ratio: 0.8, user_group_ratio: 0.8 });
      expect(theirs.other["cost"]).toMatchObject({ user_group: "vip" });
      const others = await charged(async () => chat(await keyOf(g.user, { group: "dear" }), name));
      expect(others).toMatchObject({ quota: QUOTA * 3, group: "dear" });
      expect(others.other).toMatchObject({ group_ratio: 3 });
      expect(others.other).not.toHaveProperty("user_group_ratio");
    });

    test("0 is free, held and charged, also streamed", async () => {
      await set({ GroupGroupRatio: { vip: { dear: 0 } } });
      const name = await model(["dear"]);
      const key = await keyOf(vip, { group: "dear" });
      const { quota: before } = await g.balance(vip.id);
      const row = await charged(() => chat(key, name));
      expect(row).toMatchObject({ quota: 0, group: "dear" });
      expect(row.other).toMatchObject({ group_ratio: 0, user_group_ratio: 0 });
      g.upstream.script(stream(["a", "b"]));
      const streamed = await g.charged(async () => (await chat(key, name, { stream: true })).text());
      expect(streamed.quota).toBe(0);
      expect((await g.balance(vip.id)).quota).toBe(before);
    });

    test("the own group has one as well, and a change reaches the next call, not one that runs", async () => {
      const name = await model(["vip"]);
      const key = await keyOf(vip);
      await set({ GroupGroupRatio: { vip: { vip: 2 } } });
      const held = gate();
      g.upstream.script({ ...answer("slow"), before: held });
      const running = charged(() => chat(key, name));
      await g.upstream.request(0);
      await set({ GroupGroupRatio: { vip: { vip: 5 } } });
      held.open();
      expect(await running).toMatchObject({ quota: QUOTA * 2, other: { user_group_ratio: 2 } });
      expect(await charged(() => chat(key, name))).toMatchObject({ quota: QUOTA * 5 });
      await set({ GroupGroupRatio: {} });
      const plain = await charged(() => chat(key, name));
      expect(plain).toMatchObject({ quota: QUOTA, other: { group_ratio: 1 } });
      expect(plain.other).not.toHaveProperty("user_group_ratio");
    });

    test("the playground pays it, too", async () => {
      await set({ GroupGroupRatio: { vip: { dear: 0.25 } } });
      const name = await model(["dear"]);
      const row = await g.charged(async () => {
        const sent = await g.app.call(
          "POST",
          "/pg/chat/completions",
          { model: name, messages: HI, group: "dear" },
          vip,
        );
        expect(sent.status).toBe(200);
      });
      expect(row).toMatchObject({ quota: QUOTA / 4, group: "dear", other: { user_group_ratio: 0.25 } });
    });

    test("every list of groups shows each user what that user pays", async () => {
      await set({ GroupGroupRatio: { vip: { dear: 0.8 }, default: { cheap: 0.1 } } });
      const listed = async (path: string, user?: TestUser) =>
        (
          await g.app.call<{ data: Record<string, { ratio: number }>; group_ratio: Record<string, number> }>(
            "GET",
            path,
            undefined,
            user,
          )
        ).body;
      expect((await listed("/api/user/self/groups", vip)).data["dear"]?.ratio).toBe(0.8);
      expect((await listed("/api/user/self/groups", g.user)).data["dear"]?.ratio).toBe(3);
      expect((await listed("/api/user/groups")).data["cheap"]?.ratio).toBe(0.1);
      expect((await listed("/api/pricing", vip)).group_ratio).toEqual({ default: 1, cheap: 0.5, dear: 0.8 });
      expect((await listed("/api/pricing")).group_ratio).toEqual({ default: 1, cheap: 0.1, dear: 3 });
    });
  });

  describe("which groups may be used", () => {
    const make = async (user: TestUser, fields: Record<string, unknown>) =>
      (
        await g.app.call<{ success: boolean; code?: string; data?: { id: number; key: string } }>(
          "POST",
          "/api/token/",
          { name: "k", unlimited_quota: true, ...fields },
          user,
        )
      ).body;

    test("one that is added for a group of users is open to them alone, when a key is made and at each call", async () => {
      await set({
        UserUsableGroups: { default: "Everybody" },
        GroupSpecialUsableGroup: { vip: { "+:dear": "For you" } },
      });
      const name = await model(["dear"]);
      expect(await make(g.user, { group: "dear" })).toMatchObject({
        success: false,
        code: "token_group_unusable",
      });
      const made = await make(vip, { group: "dear" });
      expect(made.success).toBe(true);
      const key = `sk-${made.data?.key}`;
      expect((await chat(key, name)).status).toBe(200);
      await set({ GroupSpecialUsableGroup: {} });
      const refused = await chat(key, name);
      expect([refused.status, refused.headers.get(ERROR_CODE_HEADER)]).toEqual([403, "token_group_disabled"]);
      expect(g.upstream.requests).toHaveLength(1);
    });

    test("one that is taken away is closed to them alone, in their client's words", async () => {
      const name = await model(["dear"]);
      const key = await keyOf(vip, { group: "dear" });
      const other = await keyOf(g.user, { group: "dear" });
      expect((await chat(key, name)).status).toBe(200);
      await set({ GroupSpecialUsableGroup: { vip: { "-:dear": "" } } });
      expect(await make(vip, { group: "dear" })).toMatchObject({ code: "token_group_unusable" });
      const refused = await g.post(
        "/v1/messages",
        { model: name, max_tokens: 5, messages: HI },
        { authorization: "", "x-api-key": key },
      );
      expect(refused.status).toBe(403);
      expect(await refused.json()).toMatchObject({
        type: "error",
        error: { type: "permission_error", message: expect.stringContaining("dear") },
      });
      expect((await chat(other, name)).status).toBe(200);
    });

    test("the own group stays open whatever is taken away", async () => {
      await set({ GroupSpecialUsableGroup: { vip: { "-:vip": "" } } });
      const name = await model(["vip"]);
      expect((await chat(await keyOf(vip), name)).status).toBe(200);
      expect((await chat(await keyOf(vip, { group: "vip" }), name)).status).toBe(403);
    });

    test("the groups' lists have what is special in them", async () => {
      await set({ GroupSpecialUsableGroup: { vip: { "-:cheap": "", "+:dear": "For you" } } });
      const { body } = await g.app.call<{ data: object }>("GET", "/api/user/self/groups", undefined, vip);
      expect(body.data).toEqual({
        default: { ratio: 1, desc: "Everybody" },
        dear: { ratio: 3, desc: "For you" },
      });
      const { body: pricing } = await g.app.call<{ usable_group: object }>(
        "GET",
        "/api/pricing",
        undefined,
        vip,
      );
      expect(pricing.usable_group).toEqual({ default: "Everybody", dear: "For you", vip: "用户分组" });
    });
  });

  describe("automatic keys", () => {
    const auto = (fields: Record<string, unknown> = {}) => keyOf(g.user, { group: "auto", ...fields });

    test("take the first group that has a channel for the model", async () => {
      await set({ AutoGroups: ["cheap", "default", "dear"] });
      const [first, second] = [await model(["dear", "cheap"]), await model(["dear", "default"])];
      const key = await auto();
      const row = await charged(() => chat(key, first));
      expect(row).toMatchObject({
        quota: QUOTA / 2,
        group: "cheap",
        other: { auto: true, group_ratio: 0.5 },
      });
      expect(await charged(() => chat(key, second))).toMatchObject({ quota: QUOTA, group: "default" });
      expect(asked()).toEqual(["cheap", "default"]);
    });

    test("go on to the next group when one fails; the dearest is held, the one that answers is charged", async () => {
      await set({ AutoGroups: ["cheap", "dear", "default"], GroupGroupRatio: { default: { cheap: 0.25 } } });
      const name = await model(["cheap", "default", "dear"]);
      const key = await auto();
      const held = gate();
      const user = await g.app.deps.accounts.user(g.user.id);
      if (!user) throw new Error("no user");
      const free = () => g.app.deps.ledger.available({ user, token: undefined });
      const before = free();
      g.upstream.script(refuse(500), { ...answer("third"), before: held });
      const running = charged(() => chat(key, name, { max_tokens: 100 }));
      await g.upstream.request(1);
      // 100 tokens of an answer at the dearest of the three, and some prompt.
      expect(before - free()).toBeGreaterThan(100 * 400 * 3);
      held.open();
      const row = await running;
      expect(asked()).toEqual(["cheap", "dear"]);
      expect(row).toMatchObject({ quota: QUOTA * 3, group: "dear", other: { auto: true, group_ratio: 3 } });
      expect(row.other).not.toHaveProperty("user_group_ratio");
      const failed = (await g.logs()).findLast(({ type }) => type === 5);
      expect(failed).toMatchObject({ group: "cheap", modelName: name });
    });

    test("what no channel can serve is not held for, however dear its group is", async () => {
      await set({ AutoGroups: ["cheap", "dear"] });
      const name = await model(["cheap"]);
      // Pays 50 tokens of an answer in the first group, and no answer worth having in the other.
      const poor = await g.app.createUser({ quota: 30 * 50 + 50 * 200 });
      const key = await keyOf(poor, { group: "auto" });
      await charged(() => chat(key, name, { max_tokens: 50 }));
      expect((await g.upstream.request(0)).json()).toMatchObject({ max_tokens: 50 });
    });

    test("a stream that goes on grows by the price of the group that answers", async () => {
      await set({ AutoGroups: ["cheap", "dear"] });
      const name = await model(["cheap", "dear"]);
      const usage = { prompt_tokens: 9, completion_tokens: 3000, total_tokens: 3009 };
      // At the dearest price no more than the first thousand could be paid.
      const quota = 9 * 50 + 3000 * 200 + 200_000;
      const poor = await g.app.createUser({ quota });
      const key = await keyOf(poor, { group: "auto" });
      g.upstream.script(
        stream(
          Array.from({ length: 30 }, () => "word ".repeat(100)),
          { usage },
        ),
      );
      const row = await g.charged(async () => {
        const text = await (await chat(key, name, { stream: true })).text();
        expect(text).toContain("[DONE]");
      });
      expect(row).toMatchObject({ quota: 9 * 50 + 3000 * 200, group: "cheap" });
      expect(row.other).not.toHaveProperty("stopped");
    });

    test("are refused as any key is that no channel serves", async () => {
      await set({ AutoGroups: ["cheap", "default"] });
      const name = await model(["dear"]);
      const unknown = await chat(await auto(), name);
      expect([unknown.status, (await errorOf(unknown)).code]).toEqual([404, "model_not_found"]);
      const off = await model(["cheap"], { status: 2 });
      const refused = await chat(await auto(), off);
      const error = await errorOf(refused);
      expect(refused.status).toBe(503);
      expect(error.message).toContain("auto");
      expect(g.upstream.requests).toEqual([]);
    });

    test("skip groups that their owner may not use and those that do not exist; with none left they are refused", async () => {
      await set({
        AutoGroups: ["dear", "retired", "cheap"],
        GroupSpecialUsableGroup: { default: { "-:dear": "" } },
      });
      const name = await model(["dear", "retired", "cheap"]);
      const key = await auto();
      expect(await charged(() => chat(key, name))).toMatchObject({ group: "cheap" });
      await set({ AutoGroups: ["dear", "retired"] });
      const refused = await chat(key, name);
      expect([refused.status, refused.headers.get(ERROR_CODE_HEADER)]).toEqual([403, "token_group_disabled"]);
    });

    test("try a list of their own in place of the site's", async () => {
      await set({ AutoGroups: ["cheap"] });
      const name = await model(["cheap", "dear", "default"]);
      const key = await auto({ autoGroups: "dear,default" });
      g.upstream.script(refuse(500));
      expect(await charged(() => chat(key, name))).toMatchObject({ group: "default", quota: QUOTA });
      expect(asked()).toEqual(["dear", "default"]);
    });

    test("list the models of all their groups", async () => {
      await set({ AutoGroups: ["cheap", "dear"] });
      const [one, two, three] = [await model(["cheap"]), await model(["dear"]), await model(["default"])];
      const response = await fetch(`${g.app.url}/v1/models`, {
        headers: { authorization: `Bearer ${await auto()}` },
      });
      const { data } = (await response.json()) as { data: { id: string }[] };
      const names = data.map(({ id }) => id);
      expect(names).toEqual([...names].sort());
      expect([one, two, three].map((name) => names.includes(name))).toEqual([true, true, false]);
    });

    test("are limited as their owner's group is, or by a rule of their own", async () => {
      await set({ AutoGroups: ["cheap"], ModelRequestRateLimitGroup: { default: [1, 1] } });
      await g.setOption("ModelRequestRateLimitEnabled", "true");
      const name = await model(["cheap"]);
      const statuses = async () => {
        const key = await keyOf(await g.app.createUser({ quota: 1_000_000 }), { group: "auto" });
        return [(await chat(key, name)).status, (await chat(key, name)).status];
      };
      expect(await statuses()).toEqual([200, 429]);
      await set({ ModelRequestRateLimitGroup: { default: [1, 1], auto: [2, 2] } });
      expect(await statuses()).toEqual([200, 200]);
      await g.setOption("ModelRequestRateLimitEnabled", "false");
    });

    test("without another try the first group's failure is the answer", async () => {
      await set({ AutoGroups: ["cheap", "dear"] });
      await g.setOption("RetryTimes", "0");
      const name = await model(["cheap", "dear"]);
      g.upstream.script(refuse(500));
      const { quota } = await g.balance();
      expect((await chat(await auto(), name)).status).toBeGreaterThanOrEqual(500);
      expect(asked()).toEqual(["cheap"]);
      expect((await g.balance()).quota).toBe(quota);
    });

    test("buy pictures and tasks where they are made, at that group's price", async () => {
      await set({ AutoGroups: ["cheap", "dear"], ModelPrice: { "dall-e-3": 0.02, mj_imagine: 0.1 } });
      for (const group of ["cheap", "dear"])
        await g.app.createChannel({ baseUrl: g.upstream.url, models: "dall-e-3", group, key: group });
      // The first group has a channel for drawings by its list alone: it cannot make any.
      await g.app.createChannel({
        baseUrl: g.upstream.url,
        models: "mj_imagine",
        group: "cheap",
        key: "cheap",
      });
      const setting = JSON.stringify({ allow_networks: ["127.0.0.1"] });
      await g.app.createChannel({
        type: 2,
        baseUrl: g.upstream.url,
        models: "mj_imagine",
        group: "dear",
        key: "dear",
        setting,
      });
      const headers = { authorization: `Bearer ${await auto()}` };
      const picture = { model: "dall-e-3", prompt: "a weir", n: 1, size: "1024x1024" };
      g.upstream.script(refuse(500), json({ created: 1, data: [{ url: "https://pictures.example/1" }] }));
      const bought = await charged(() => g.post("/v1/images/generations", picture, headers));
      expect(bought).toMatchObject({ quota: 30_000, group: "dear", other: { auto: true, group_ratio: 3 } });
      g.upstream.script(json({ code: 1, description: "ok", properties: {}, result: "task-1" }));
      const task = await charged(() => g.post("/mj/submit/imagine", { prompt: "a weir" }, headers));
      expect(task).toMatchObject({ quota: 150_000, group: "dear", other: { auto: true, group_ratio: 3 } });
      const { drawings } = g.app.deps.db.t;
      const rows = await g.app.deps.db.orm.select().from(drawings).where(eq(drawings.userId, g.user.id));
      expect(rows).toMatchObject([{ group: "dear", quota: 150_000 }]);
    });

    test("go on from a stored response in the group that holds it", async () => {
      await set({ AutoGroups: ["cheap", "dear"] });
      const name = await model(["dear"]);
      const key = await auto();
      const headers = { authorization: `Bearer ${key}` };
      const reply = (id: string): Script =>
        json({
          id,
          object: "response",
          status: "completed",
          model: name,
          output: [
            {
              type: "message",
              id: "m",
              role: "assistant",
              status: "completed",
              content: [{ type: "output_text", text: "hi" }],
            },
          ],
          usage: { input_tokens: 9, output_tokens: 3, total_tokens: 12 },
        });
      g.upstream.always(({ url }: RecordedRequest) =>
        url.endsWith("/responses") ? reply("resp_1") : refuse(404),
      );
      expect(
        await charged(() => g.post("/v1/responses", { model: name, input: "hi" }, headers)),
      ).toMatchObject({
        group: "dear",
      });
      await g.app.createChannel({ baseUrl: g.upstream.url, models: name, group: "cheap", key: "cheap" });
      g.upstream.always(() => reply("resp_2"));
      const body = { model: name, input: "more", previous_response_id: "resp_1" };
      expect(await charged(() => g.post("/v1/responses", body, headers))).toMatchObject({
        group: "dear",
        quota: QUOTA * 3,
      });
      expect(asked()).toEqual(["dear", "dear"]);
    });
  });
});
