// Tests, balances and model lists of channels with several keys: one bad key never takes the whole channel while another
// works, and what is asked on purpose takes no turn from calls.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { ChannelStatus, Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { answer, refuse, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream, Script } from "../support/fake-upstream.ts";

interface Reply {
  success: boolean;
  message: string;
  data?: unknown;
  balance?: number;
}

const DEEPSEEK = 43;
const MORE_THAN_ARE_ASKED = 25;

let app: TestApp;
let upstream: FakeUpstream;
let root: TestUser;

beforeAll(async () => {
  app = await startTestApp();
  upstream = await startFakeUpstream();
  root = await app.createUser({ role: Role.root, quota: 0 });
  await app.deps.options.set("AutomaticDisableChannelEnabled", "true");
});
afterAll(async () => {
  await app.close();
  upstream.stop();
});
beforeEach(async () => {
  upstream.reset();
  for (const { id } of await app.deps.db.orm.select().from(app.deps.db.t.channels))
    await ask(`/${id}`, "DELETE");
});

const ask = (path: string, method = "GET", body?: unknown) =>
  app.call<Reply>(method, `/api/channel${path}`, body, root).then((reply) => reply.body);

const add = (keys: readonly string[], fields: Record<string, unknown> = {}) =>
  app.createChannel({ baseUrl: upstream.url, models: "gpt-4o-mini", key: keys.join("\n"), ...fields });

/** The upstream answers by the key that it is asked with; what is not listed is refused. */
function byKey(answers: Record<string, Script>): void {
  upstream.always((request) => answers[keyOf(request)] ?? refuse(401));
}
const keyOf = ({ headers }: { headers: Record<string, unknown> }): string =>
  String(headers["authorization"]).slice("Bearer ".length);
const keysAsked = (): string[] => upstream.requests.map(keyOf);

function reasons(id: number): string[] {
  const channel = app.deps.routing.channel(id);
  return channel ? app.deps.keyring.states(channel).map(({ reason }) => reason) : [];
}
const statusOf = (id: number): number | undefined => app.deps.routing.channel(id)?.status;

const ok = (body: unknown): Script => ({
  status: 200,
  headers: { "content-type": "application/json" },
  steps: [JSON.stringify(body)],
});
const list = ok({ data: [{ id: "only-model" }] });
const left = (amount: number): Script =>
  ok({ balance_infos: [{ currency: "CNY", total_balance: String(amount) }] });

describe("the list of models", () => {
  test("comes from the next key where the first is rejected, which rests; the list after it asks the good one at once", async () => {
    const id = await add(["bad", "good"]);
    byKey({ good: list });
    expect((await ask(`/fetch_models/${id}`)).data).toEqual(["only-model"]);
    expect(keysAsked()).toEqual(["bad", "good"]);
    expect(reasons(id)).toEqual(["rejected", ""]);
    await ask(`/fetch_models/${id}`);
    expect(keysAsked()).toEqual(["bad", "good", "good"]);
    expect(statusOf(id)).toBe(ChannelStatus.enabled);
  });

  test("rests no key where all are refused: the address may refuse the keys of calls", async () => {
    const id = await add(["one", "two"]);
    byKey({});
    expect(await ask(`/fetch_models/${id}`)).toMatchObject({ success: false });
    expect(keysAsked()).toEqual(["one", "two"]);
    expect(reasons(id)).toEqual(["", ""]);
  });

  test("is not asked for again when it is not the key that fails", async () => {
    const id = await add(["one", "two"]);
    upstream.always(refuse(500));
    expect(await ask(`/fetch_models/${id}`)).toMatchObject({ success: false });
    expect(keysAsked()).toEqual(["one"]);
  });

  test("comes from the first typed key that is accepted", async () => {
    byKey({ good: list });
    const typed = { base_url: upstream.url, type: 1, key: "bad\n\n good " };
    expect((await ask("/fetch_models", "POST", typed)).data).toEqual(["only-model"]);
    expect(keysAsked()).toEqual(["bad", "good"]);
  });

  test("takes no turn from calls", async () => {
    const id = await add(["one", "two"]);
    byKey({ one: list, two: list });
    const channel = app.deps.routing.channel(id);
    if (!channel) throw new Error("no channel");
    for (const key of ["one", "two", "one"]) {
      await ask(`/fetch_models/${id}`);
      expect(app.deps.keyring.next(channel, "m", app.deps.clock.monotonicMs())?.key).toBe(key);
    }
  });
});

describe("the balance", () => {
  test("is that of the next key where the first is rejected", async () => {
    const id = await add(["bad", "good"], { type: DEEPSEEK });
    byKey({ good: left(5) });
    expect(await ask(`/update_balance/${id}`)).toMatchObject({ success: true, balance: 5 });
    expect(reasons(id)).toEqual(["rejected", ""]);
  });

  test("of an empty account disables no channel whose other account has something left", async () => {
    const id = await add(["empty", "full"], { type: DEEPSEEK });
    byKey({ empty: left(0), full: left(3) });
    await ask("/update_balance");
    expect(statusOf(id)).toBe(ChannelStatus.enabled);
    expect(app.deps.routing.channel(id)).toBeDefined();
    expect(await ask(`/update_balance/${id}`)).toMatchObject({ success: true, balance: 3 });
    expect(reasons(id)).toEqual(["", ""]);
  });

  test("of accounts that are all empty disables the channel", async () => {
    const id = await add(["empty", "bare"], { type: DEEPSEEK });
    byKey({ empty: left(0), bare: left(-1) });
    await ask("/update_balance");
    expect(statusOf(id)).toBe(ChannelStatus.autoDisabled);
  });

  test("of some empty accounts says nothing of the ones that were not asked", async () => {
    const keys = Array.from({ length: MORE_THAN_ARE_ASKED }, (_, i) => `empty-${i}`);
    const id = await add(keys, { type: DEEPSEEK });
    byKey(Object.fromEntries(keys.map((key) => [key, left(0)])));
    await ask("/update_balance");
    expect(upstream.requests.length).toBeLessThan(MORE_THAN_ARE_ASKED);
    expect(statusOf(id)).toBe(ChannelStatus.enabled);
  });
});

describe("testing all", () => {
  async function testAll(): Promise<void> {
    const { finished } = await app.services.gateway.watch.testAll(false);
    await finished;
  }

  test("leaves a channel in service whose first key is dead and whose second works", async () => {
    const id = await add(["dead", "good"]);
    byKey({ good: answer("hi") });
    await testAll();
    expect(statusOf(id)).toBe(ChannelStatus.enabled);
    expect(keysAsked()).toEqual(["dead", "good"]);
    expect(reasons(id)).toEqual(["", ""]);
    expect(await ask(`/test/${id}`)).toMatchObject({ success: true });
  });

  test("disables a channel all of whose keys are dead", async () => {
    const id = await add(["dead", "gone"]);
    byKey({});
    await testAll();
    expect(statusOf(id)).toBe(ChannelStatus.autoDisabled);
  });

  test("revives a channel one of whose keys works again", async () => {
    await app.deps.options.set("AutomaticEnableChannelEnabled", "true");
    const id = await add(["dead", "good"], { status: ChannelStatus.autoDisabled });
    byKey({ good: answer("hi") });
    await testAll();
    expect(statusOf(id)).toBe(ChannelStatus.enabled);
  });

  test("disables none for keys of which not all were asked", async () => {
    const id = await add(Array.from({ length: MORE_THAN_ARE_ASKED }, (_, i) => `dead-${i}`));
    byKey({});
    await testAll();
    expect(upstream.requests.length).toBeLessThan(MORE_THAN_ARE_ASKED);
    expect(statusOf(id)).toBe(ChannelStatus.enabled);
  });
});
