// The keys of a channel over the wire, on both databases: every action of the family's call, keys that join or take the place of
// others, and states that come and go with `channel_info`. Refuses to look only at answers: routing is read as well.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { ChannelStatus } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { answer, refuse, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface KeyJson {
  index: number;
  key_id: number;
  tail: string;
  label: string;
  status: number;
  disabled_reason: string;
  disabled_time: number;
  max_concurrency: number;
  rpm_limit: number;
  tpm_limit: number;
  rests_until: number;
  reason: string;
}

interface Page {
  changed: number;
  tests: { index: number; key_id: number; success: boolean }[];
  keys: KeyJson[];
  total: number;
  page: number;
  page_size: number;
  total_pages: number;
  enabled_count: number;
  manual_disabled_count: number;
  auto_disabled_count: number;
  resting_count: number;
  resting_until: number;
}

interface Envelope<T> {
  success: boolean;
  message: string;
  code?: string;
  data: T;
  channel_info_dropped?: number;
}

const VERTEX = 41;
const NOW_MS = Date.UTC(2026, 10, 20);
const keysNamed = (...names: string[]): string[] => names.map((name) => `sk-${name}-of-0123456789`);

describe.each(DATABASE_KINDS)("the keys of a channel on %s", (database) => {
  let app: TestApp;
  let upstream: FakeUpstream;
  let admin: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => NOW_MS } });
    upstream = await startFakeUpstream();
    // Tests of channels are made in root's name.
    await app.createUser({ role: 100 });
    admin = await app.createUser({ role: 10 });
    await app.deps.options.set("AutomaticDisableChannelEnabled", "true");
    await app.deps.options.set("AutomaticEnableChannelEnabled", "true");
  });
  afterAll(async () => {
    await app.close();
    upstream.stop();
  });
  beforeEach(() => upstream.reset());

  const call = <T>(method: string, path: string, body?: unknown, as = admin) =>
    app.call<Envelope<T>>(method, `/api/channel${path}`, body, as);

  async function create(keys: string, fields: object = {}) {
    const body = {
      name: "keyed",
      models: "gpt-4o",
      group: "default",
      base_url: upstream.url,
      mode: "multi_to_single",
      key: keys,
      ...fields,
    };
    const { body: made } = await call<number[]>("POST", "/", body);
    expect([made.message, made.success]).toEqual(["", true]);
    return { ids: made.data, id: made.data[0] ?? 0, dropped: made.channel_info_dropped };
  }

  async function manage(id: number, action: string, rest: object = {}) {
    const { body, text } = await call<Page>("POST", "/multi_key/manage", { channel_id: id, action, ...rest });
    expect(text).not.toContain("0123456789");
    return body;
  }

  const parsed = (id: number) => {
    const channel = app.deps.routing.channel(id);
    if (!channel) throw new Error("no channel");
    return channel;
  };
  const states = (id: number) => parsed(id).keyRows.map(({ status }) => status);
  const change = async (id: number, fields: object) => {
    const { body } = await call<object>("PUT", "/", { id, ...fields });
    expect([body.message, body.success]).toEqual(["", true]);
    return body;
  };

  test("every action does what it says to the keys that it names, and the channel follows", async () => {
    const { id } = await create(keysNamed("a", "b", "c", "d").join("\n"));
    const third = parsed(id).keyRows[2]?.id;
    const { enabled, autoDisabled } = ChannelStatus;
    const steps: [action: string, rest: object, changed: number, states: number[], channel: number][] = [
      ["disable_key", { key_index: 1 }, 1, [1, 2, 1, 1], enabled],
      ["disable_key", { key_id: third }, 1, [1, 2, 2, 1], enabled],
      ["disable_key", { key_id: third }, 0, [1, 2, 2, 1], enabled],
      ["enable_key", { key_index: 1 }, 1, [1, 1, 2, 1], enabled],
      ["enable_key", { key_index: 1 }, 0, [1, 1, 2, 1], enabled],
      ["disable_all_keys", {}, 3, [2, 2, 2, 2], autoDisabled],
      ["enable_all_keys", {}, 4, [1, 1, 1, 1], enabled],
      ["disable_all_keys", {}, 4, [2, 2, 2, 2], autoDisabled],
      ["enable_key", { key_id: third }, 1, [2, 2, 1, 2], enabled],
      ["delete_key", { key_index: 3 }, 1, [2, 2, 1], enabled],
      ["delete_disabled_keys", {}, 2, [1], enabled],
    ];
    for (const [action, rest, changed, after, channel] of steps) {
      const { success, data } = await manage(id, action, rest);
      expect([action, success, data.changed, data.keys.map(({ status }) => status)]).toEqual([
        action,
        true,
        changed,
        after,
      ]);
      expect([states(id), parsed(id).status]).toEqual([after, channel]);
    }
    expect(parsed(id).keyRows[0]?.id).toBe(third ?? 0);
    // Off by hand is dated, and has no reason of a provider's.
    await change(id, { key: keysNamed("e").join(), key_mode: "append" });
    const { data } = await manage(id, "disable_key", { key_index: 1 });
    expect(data.keys[1]).toMatchObject({ status: 2, disabled_reason: "", disabled_time: NOW_MS / 1000 });
  });

  test("what cannot be done is refused by name and changes nothing", async () => {
    const { id } = await create(keysNamed("only").join());
    const refused: [string, object, string][] = [
      ["delete_key", { key_index: 0 }, "channel_key_last"],
      ["delete_key", { key_index: 1 }, "channel_key_missing"],
      ["disable_key", {}, "channel_key_missing"],
      ["enable_key", { key_id: 999_999 }, "channel_key_missing"],
      ["edit_key", { key_index: 0, label: `mine ${keysNamed("only").join()}` }, "params_wrong"],
      ["explode", {}, "invalid_field"],
      ["rest_key", { key_index: 0, minutes: 1441 }, "invalid_field"],
    ];
    for (const [action, rest, code] of refused) {
      const { body } = await call<Page>("POST", "/multi_key/manage", { channel_id: id, action, ...rest });
      expect([action, body.success, body.code]).toEqual([action, false, code]);
    }
    await manage(id, "disable_all_keys");
    expect(await manage(id, "delete_disabled_keys")).toMatchObject({ code: "channel_key_last" });
    expect(states(id)).toEqual([2]);
    expect(await manage(999_999, "get_key_status")).toMatchObject({ success: false });
    const user = await app.createUser();
    const body = { channel_id: id, action: "enable_all_keys" };
    expect((await call("POST", "/multi_key/manage", body, user)).status).toBe(403);
    expect(states(id)).toEqual([2]);
  });

  test("the status comes in pages and by state, with the counts of all", async () => {
    const { id } = await create(keysNamed("a", "b", "c", "d", "e").join("\n"));
    await manage(id, "disable_key", { key_index: 0 });
    await manage(id, "rest_key", { key_index: 4, minutes: 10 });
    const counts = {
      enabled_count: 4,
      manual_disabled_count: 1,
      auto_disabled_count: 0,
      resting_count: 1,
      resting_until: NOW_MS / 1000 + 600,
    };
    const pageOf = async (query: object) => {
      const { data } = await manage(id, "get_key_status", query);
      const { keys, total, page, page_size, total_pages, ...rest } = data;
      expect(rest).toEqual({ changed: 0, tests: [], ...counts });
      return [keys.map(({ index }) => index), total, page, page_size, total_pages];
    };
    expect(await pageOf({})).toEqual([[0, 1, 2, 3, 4], 5, 1, 50, 1]);
    expect(await pageOf({ page: 1, page_size: 2 })).toEqual([[0, 1], 5, 1, 2, 3]);
    expect(await pageOf({ page: 3, page_size: 2 })).toEqual([[4], 5, 3, 2, 3]);
    expect(await pageOf({ page: 4, page_size: 2 })).toEqual([[], 5, 4, 2, 3]);
    expect(await pageOf({ status: 2 })).toEqual([[0], 1, 1, 50, 1]);
    expect(await pageOf({ status: 1, page: 2, page_size: 3 })).toEqual([[4], 4, 2, 3, 2]);
    const [first, last] = (await manage(id, "get_key_status")).data.keys.filter(
      ({ index }) => index === 0 || index === 4,
    );
    expect([first?.tail, last?.reason]).toEqual(["6789", "by_hand"]);
    expect((await manage(id, "rest_key", { key_index: 4, minutes: 0 })).data.resting_count).toBe(0);
  });

  test("a test asks with its key alone; a refused one goes off by itself, one that works is on again", async () => {
    const [good, bad] = keysNamed("good", "bad");
    const { id } = await create(`${good}\n${bad}`);
    const askedWith = () => upstream.requests.map(({ headers }) => String(headers["authorization"]).slice(7));
    upstream.always(({ headers }) =>
      headers["authorization"] === `Bearer ${bad}` ? refuse(401) : answer("hi"),
    );
    const one = await manage(id, "test_key", { key_index: 1 });
    const badId = parsed(id).keyRows[1]?.id ?? 0;
    expect(one.data.tests).toMatchObject([{ index: 1, key_id: badId, success: false }]);
    expect(one.data.keys.map(({ status }) => status)).toEqual([1, 3]);
    expect(askedWith()).toEqual([bad ?? ""]);
    upstream.reset();
    upstream.always(answer("hi"));
    const all = await manage(id, "test_all_keys");
    expect(all.data.tests.map(({ index, success }) => [index, success])).toEqual([
      [0, true],
      [1, true],
    ]);
    expect(askedWith().toSorted()).toEqual([good ?? "", bad ?? ""].toSorted());
    expect(states(id)).toEqual([1, 1]);
  });

  test("names and caps: what is given is written, the rest stays", async () => {
    const { id } = await create(keysNamed("a", "b").join("\n"));
    const shown = async (edit: object) => {
      const { data } = await manage(id, "edit_key", { key_index: 1, ...edit });
      const { label, max_concurrency: calls, rpm_limit: rpm, tpm_limit: tpm } = data.keys[1] ?? {};
      return [label, calls, rpm, tpm];
    };
    expect(await shown({ label: " spare ", rpm_limit: 60, tpm_limit: 9000 })).toEqual(["spare", 0, 60, 9000]);
    expect(await shown({ max_concurrency: 3, rpm_limit: 0 })).toEqual(["spare", 3, 0, 9000]);
    expect(parsed(id).keyRows[0]).toMatchObject({ label: "", maxConcurrency: 0 });
    expect(parsed(id).isCapped).toBe(true);
  });

  test("keys that are sent join those before or take their place; a state goes with its key", async () => {
    const [a = "", b = "", c = "", d = ""] = keysNamed("a", "b", "c", "d");
    const { id } = await create(`${a}\n${b}\n${c}`);
    await manage(id, "disable_key", { key_index: 1 });
    const ids = parsed(id).keyRows.map((row) => row.id);
    await change(id, { key: `${d}\n${a}`, key_mode: "append" });
    expect(parsed(id).keys).toEqual([a, b, c, d]);
    expect(states(id)).toEqual([1, 2, 1, 1]);
    await change(id, { key: `${d}\n${b}`, key_mode: "replace" });
    expect(parsed(id).keys).toEqual([d, b]);
    expect(states(id)).toEqual([1, 2]);
    expect(parsed(id).keyRows[1]?.id).toBe(ids[1] ?? 0);
    // Without a word of how, keys replace, and no key keeps them.
    await change(id, { key: c });
    await change(id, { key: "", name: "renamed" });
    expect(parsed(id).keys).toEqual([c]);
    // Several keys may be refused where one channel is asked for.
    const { body } = await call("POST", "/", { name: "n", models: "m", key: `${a}\n${b}`, mode: "single" });
    expect(body).toMatchObject({ success: false, code: "channel_keys_many" });
  });

  test("channel_info comes in with its keys and goes out the same; a short list is on, what has no key is counted", async () => {
    const [a = "", b = "", c = "", d = ""] = keysNamed("a", "b", "c", "d");
    const info = {
      is_multi_key: true,
      multi_key_size: 4,
      multi_key_status_list: { "1": 2, "2": 3, "9": 3 },
      multi_key_disabled_reason: { "2": `refused ${c}`, "9": "gone" },
      multi_key_disabled_time: { "1": 1_700_000_000, "2": 1_700_000_100, "-1": 5 },
      multi_key_mode: "random",
    };
    const text = `${a}\n${b}\n${c}\n${d}`;
    for (const sent of [info, JSON.stringify(info)]) {
      const { id, dropped } = await create(text, { mode: undefined, channel_info: sent });
      expect(dropped).toBe(2);
      expect(states(id)).toEqual([1, 2, 3, 1]);
      const { body } = await call<{ channel_info: unknown; multi_key_mode: string }>("GET", `/${id}`);
      expect(body.data.multi_key_mode).toBe("random");
      expect(body.data.channel_info).toEqual({
        is_multi_key: true,
        multi_key_size: 4,
        multi_key_status_list: { "1": 2, "2": 3 },
        multi_key_disabled_reason: { "2": "refused ***" },
        multi_key_disabled_time: { "1": 1_700_000_000, "2": 1_700_000_100 },
        multi_key_mode: "random",
      });
      // What went out comes in again as it was.
      const again = await create(text, { channel_info: body.data.channel_info });
      expect([again.dropped, states(again.id)]).toEqual([0, [1, 2, 3, 1]]);
    }
    const off = await create(`${a}\n${b}`, { channel_info: { multi_key_status_list: { "0": 3, "1": 2 } } });
    expect(parsed(off.id).status).toBe(ChannelStatus.autoDisabled);
    const garbage = await create(`${a}\n${b}`, { channel_info: "no json" });
    expect([garbage.dropped, states(garbage.id)]).toEqual([0, [1, 1]]);
  });

  test("Vertex: each element of a JSON array is a key, in the places that channel_info names", async () => {
    const account = (name: string) => ({
      client_email: `${name}@example.com`,
      private_key: "-----\nA\n-----",
    });
    const vertex = { type: VERTEX, other: "us-central1", models: "gemini-2.5-flash" };
    const text = JSON.stringify([account("one"), account("two")], null, 2);
    const states3 = { is_multi_key: true, multi_key_status_list: { "1": 3 } };
    const { id } = await create(text, { ...vertex, channel_info: states3 });
    expect(parsed(id).keys.map((key) => (JSON.parse(key) as { client_email: string }).client_email)).toEqual([
      "one@example.com",
      "two@example.com",
    ]);
    expect(states(id)).toEqual([1, 3]);
    await change(id, { key: JSON.stringify([account("three"), account("one")]), key_mode: "append" });
    expect(states(id)).toEqual([1, 3, 1]);
    const { ids } = await create(text, { ...vertex, mode: "batch" });
    expect(ids.map((each) => parsed(each).keys.length)).toEqual([1, 1]);
    const one = await create(JSON.stringify(account("solo"), null, 2), vertex);
    expect(parsed(one.id).keys).toHaveLength(1);
  });
});
