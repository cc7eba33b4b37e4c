// Keys of channels are write-only, also by way of an address: whoever may edit a channel cannot have its key sent to a
// place of his own. A changed origin or proxy needs the key in the same call, or root; on both databases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Envelope {
  success: boolean;
  message: string;
  code?: string;
  field?: string;
  data: unknown;
}

const SECRET = "sk-the-operators-own-key-0123456789";
const HOME = "https://provider.example/v1";

describe.each(DATABASE_KINDS)("a saved key on %s", (database) => {
  let app: TestApp;
  let admin: TestUser;
  let root: TestUser;
  /** The administrator's own machine. */
  let trap: FakeUpstream;

  beforeAll(async () => {
    app = await startTestApp({ database });
    admin = await app.createUser({ role: 10 });
    root = await app.createUser({ role: 100 });
    trap = await startFakeUpstream();
  });
  afterAll(async () => {
    await app.close();
    trap.stop();
  });

  const call = async (method: string, path: string, body?: unknown, as = admin): Promise<Envelope> =>
    (await app.call<Envelope>(method, `/api/channel${path}`, body, as)).body;
  const add = (fields: Record<string, unknown> = {}) =>
    app.createChannel({ baseUrl: HOME, key: SECRET, models: "gpt-4o-mini", ...fields });
  const setting = (fields: Record<string, unknown>) => JSON.stringify(fields);

  test("is not sent to an address of the editor's", async () => {
    const id = await add();
    expect(await call("PUT", "/", { id, base_url: trap.url })).toMatchObject({
      success: false,
      code: "channel_key_again",
      field: "key",
    });
    const copy = (await call("POST", `/copy/${id}`, {})).data as { id: number };
    expect(await call("PUT", "/", { id: copy.id, base_url: trap.url, status: 1 })).toMatchObject({
      code: "channel_key_again",
    });
    for (const each of [id, copy.id]) expect(app.deps.routing.channel(each)?.baseUrl).toBe(HOME);
    await call("PUT", "/", { id, setting: setting({ proxy: trap.url }) });
    expect(app.deps.routing.channel(id)?.setting.proxy).toBeUndefined();
    // A tag's edit and the lists of typed credentials know no saved key.
    await call("POST", "/batch/tag", { ids: [id], tag: "t" });
    await call("PUT", "/tag", {
      tag: "t",
      base_url: trap.url,
      setting: setting({ proxy: trap.url }),
      type: 8,
    });
    expect(app.deps.routing.channel(id)).toMatchObject({ baseUrl: HOME, type: 1 });
    await call("POST", "/fetch_models", { id, base_url: trap.url, type: 1 });
    expect(trap.requests.filter((request) => JSON.stringify(request.headers).includes(SECRET))).toEqual([]);
  });

  test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ["another host", {}, { base_url: "https://evil.example/v1" }],
    ["a host that begins alike", {}, { base_url: "https://provider.example.evil.example/v1" }],
    ["a host behind a name", {}, { base_url: "https://provider.example@evil.example/v1" }],
    ["another port", {}, { base_url: "https://provider.example:8443/v1" }],
    ["no encryption", {}, { base_url: "http://provider.example/v1" }],
    ["the type's own address", {}, { base_url: "" }],
    ["an address where the type's own was used", { baseUrl: "" }, { base_url: HOME }],
    ["another type's own address", { baseUrl: "" }, { type: 43 }],
    ["an address beside another type", {}, { type: 8, base_url: "https://evil.example/{model}" }],
    ["a proxy", {}, { setting: setting({ proxy: "http://evil.example:1" }) }],
    [
      "another proxy",
      { setting: setting({ proxy: "http://own.example:1" }) },
      { setting: setting({ proxy: "socks5://evil.example:1" }) },
    ],
    ["no proxy any more", { setting: setting({ proxy: "http://own.example:1" }) }, { setting: "" }],
    ["an empty key beside it", {}, { base_url: "https://evil.example", key: " \n " }],
  ])("needs to be typed again for %s", async (_name, before, edit) => {
    const id = await add(before);
    const refused = await call("PUT", "/", { id, ...edit });
    expect(refused).toMatchObject({ success: false, code: "channel_key_again", field: "key" });
    expect(refused.message).toBe("更换接口地址或代理需要重新填写密钥（或由超级管理员修改）");
    expect(await call("PUT", "/", { id, ...edit, key: "sk-typed-again" })).toMatchObject({ success: true });
    expect(app.deps.routing.channel(id)?.keys).toEqual(["sk-typed-again"]);
    const other = await add(before);
    const { key: _key, ...byRoot } = edit;
    expect(await call("PUT", "/", { id: other, ...byRoot }, root)).toMatchObject({ success: true });
    expect(app.deps.routing.channel(other)?.keys).toEqual([SECRET]);
  });

  test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    [
      "what leads nowhere else",
      {},
      { name: "renamed", models: "a,b", model_mapping: '{"a":"b"}', priority: 3 },
    ],
    ["another path of the same origin", {}, { base_url: "https://PROVIDER.example:443/v2/" }],
    ["the same address, written again", {}, { base_url: `${HOME}/`, type: 1 }],
    ["the type's own address, written out", { baseUrl: "" }, { base_url: "https://api.openai.com" }],
    [
      "other settings beside the same proxy",
      { setting: setting({ proxy: "http://own.example:1" }) },
      { setting: setting({ force_format: true, proxy: "http://own.example:1" }) },
    ],
    ["an address for a channel that has no key", { key: "" }, { base_url: "https://other.example" }],
  ])("need not be typed for %s", async (_name, before, edit) => {
    const id = await add(before);
    expect(await call("PUT", "/", { id, ...edit })).toMatchObject({ success: true, message: "" });
    expect(app.deps.routing.channel(id)?.keys).toEqual([before["key"] === "" ? "" : SECRET]);
  });
});
