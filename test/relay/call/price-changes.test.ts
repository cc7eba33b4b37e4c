// Prices change while calls run: a call is charged what it was reserved at, whichever way its price changes meanwhile, and what
// the log's calls would cost at unchanged prices is what they did cost. Case 31 of the hostile ones.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { audit } from "../../../src/core/ledger/audit.ts";
import { applyDueDrafts } from "../../../src/core/prices/drafts.ts";
import type { TestUser } from "../../support/app.ts";
import { testClock } from "../../support/clock.ts";
import { answer, gate, json, stream } from "../../support/fake-upstream.ts";
import type { Script } from "../../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { MODEL, startGateway } from "../support.ts";
import type { Gateway, LogLine } from "../support.ts";

const PICTURES = "dall-e-3";
/** Units of the fake upstream's usage (9 in, 3 out) at ratios 100 and 4, and at 200. */
const OLD_QUOTA = 9 * 100 + 3 * 400;
const NEW_QUOTA = 2 * OLD_QUOTA;

interface Change {
  key: string;
  name: string;
  after: unknown;
}
interface Sums {
  calls: number;
  old: number;
  new: number;
  charged: number;
}
interface Effect extends Sums {
  every_hours: number;
  approximate: { calls: number; charged: number };
  lost_calls: number;
  refused_calls: number;
  by_model: (Sums & { model: string })[];
  by_group: (Sums & { group: string })[];
  by_user: (Sums & { user_id: number; username: string })[];
  cells: (Sums & { model: string; group: string; user_id: number })[];
}
interface Plan {
  parent: number;
  plan_hash: string;
  effect: Effect;
}

describe.each(DATABASE_KINDS)("prices that change on %s", (database) => {
  let g: Gateway;
  let root: TestUser;
  const clock = testClock(Date.now());

  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const sent = await g.app.call<{ success: boolean; message: string; data: T }>(
      method,
      `/api/price${path}`,
      body,
      root,
    );
    expect([path, sent.body.message]).toEqual([path, ""]);
    return sent.body.data;
  };
  const plan = (changes: Change[], days = 0) => call<Plan>("POST", "/plan", { changes, days });
  async function apply(changes: Change[]): Promise<number> {
    const { parent, plan_hash } = await plan(changes);
    return (await call<{ revision: number }>("POST", "/apply", { parent, plan_hash, changes })).revision;
  }
  /** Schedules the changes and lets their moment come. */
  async function schedule(changes: Change[]): Promise<void> {
    const draft = await call<{ id: number; parent: number }>("POST", "/drafts", { changes });
    const effective_at = Math.floor(clock.nowMs() / 1000) + 60;
    await call("PUT", "/drafts", { id: draft.id, version: 1, effective_at, parent: draft.parent });
    clock.advance(61_000);
    await applyDueDrafts(g.app.deps);
  }
  async function reset(): Promise<void> {
    for (const [key, value] of [
      ["ModelRatio", { [MODEL]: 100 }],
      ["CompletionRatio", { [MODEL]: 4 }],
      ["ModelPrice", { [PICTURES]: 0.01 }],
      ["GroupRatio", { default: 1 }],
    ] as const)
      await g.app.deps.options.set(key, JSON.stringify(value));
    await g.app.deps.options.set("QuotaPerUnit", "500000");
  }

  beforeAll(async () => {
    g = await startGateway({
      database,
      clock,
      channel: { models: `${MODEL},${PICTURES}` },
      quota: 1_000_000_000,
    });
    root = await g.app.createUser({ role: 100 });
    await reset();
  });
  afterAll(() => g.close());

  /** Starts a call, does the work once the upstream has it, lets the upstream answer, and gives the charge. */
  async function around(
    path: string,
    body: object,
    script: Script,
    work: () => Promise<unknown>,
  ): Promise<LogLine> {
    const door = gate();
    const before = g.upstream.requests.length;
    g.upstream.script({ ...script, before: door });
    return g.charged(async () => {
      const response = g.post(path, body);
      await g.upstream.request(before);
      await work();
      door.open();
      expect([path, (await response).status]).toEqual([path, 200]);
      await (await response).text();
    });
  }
  const chat = { model: MODEL, messages: [{ role: "user", content: "hi" }] };
  const double = [{ key: "ModelRatio", name: MODEL, after: 200 }];

  const WAYS: [string, () => Promise<unknown>][] = [
    [
      "an option that is set",
      () => g.app.call("PUT", "/api/option/", { key: "ModelRatio", value: `{"${MODEL}":200}` }, root),
    ],
    ["a plan that is applied", () => apply(double)],
    ["a scheduled draft", () => schedule(double)],
    ["a group that becomes dearer", () => apply([{ key: "GroupRatio", name: "default", after: 2 }])],
  ];
  const CALLS: [string, object, () => Script][] = [
    ["a whole answer", chat, () => answer("hello")],
    ["a stream", { ...chat, stream: true }, () => stream(["hel", "lo"])],
  ];
  describe.each(CALLS)("%s in flight", (_name, body, script) => {
    test.each(WAYS)("keeps its price beside %s; the next call has the new one", async (_way, work) => {
      await reset();
      const row = await around("/v1/chat/completions", body, script(), work);
      expect(row.quota).toBe(OLD_QUOTA);
      const next = await around("/v1/chat/completions", body, script(), async () => {});
      expect(next.quota).toBe(NEW_QUOTA);
      expect(next.other["cost"]).toMatchObject({
        revision: g.app.deps.prices.callPrice(MODEL, "default", "default")?.revision ?? "",
      });
    });
  });

  test("a picture in flight keeps the units that a dollar had", async () => {
    await reset();
    const body = { model: PICTURES, prompt: "a cat" };
    const script = json({ created: 1, data: [{ url: "https://example.org/cat.png" }] });
    const row = await around("/v1/images/generations", body, script, () =>
      apply([{ key: "QuotaPerUnit", name: "", after: 1_000_000 }]),
    );
    expect(row.quota).toBe(5_000);
    expect((await around("/v1/images/generations", body, script, async () => {})).quota).toBe(10_000);
  });

  test("change, schedule and undo between reservation and settlement leave the call its price, and the books clean", async () => {
    await reset();
    const before = await g.balance();
    const row = await around("/v1/chat/completions", chat, answer("hello"), async () => {
      const applied = await apply([{ key: "ModelRatio", name: MODEL, after: 300 }]);
      await schedule([{ key: "CompletionRatio", name: MODEL, after: 9 }]);
      await call("POST", `/revisions/${applied}/undo`, {});
      await apply([{ key: "ModelRatio", name: MODEL, after: null }]);
    });
    expect(row.quota).toBe(OLD_QUOTA);
    expect((await g.balance()).quota).toBe(before.quota - OLD_QUOTA);
    // The model has lost its price meanwhile: whoever comes now is refused.
    expect((await g.chat()).status).toBe(400);
    expect((await audit(g.app.deps.db)).differences).toEqual([]);
  });

  test("what the log's calls would cost: at unchanged prices what they did cost, else what the next ones do", async () => {
    await reset();
    // Apart from all that was called before.
    clock.advance(3 * 86_400_000);
    const rows: LogLine[] = [];
    const calls = async (): Promise<LogLine[]> => [
      await around("/v1/chat/completions", chat, answer("hello"), async () => {}),
      await around("/v1/chat/completions", { ...chat, stream: true }, stream(["hel", "lo"]), async () => {}),
      await around(
        "/v1/messages",
        { model: MODEL, max_tokens: 100, messages: chat.messages },
        answer("hello", {
          usage: { prompt_tokens: 900, completion_tokens: 77, prompt_tokens_details: { cached_tokens: 333 } },
        }),
        async () => {},
      ),
      await around(
        "/v1/images/generations",
        { model: PICTURES, prompt: "a cat", n: 1, size: "1024x1792", quality: "hd" },
        json({ created: 1, data: [{ url: "https://example.org/cat.png" }] }),
        async () => {},
      ),
    ];
    rows.push(...(await calls()));
    g.upstream.script({ status: 500, steps: ["{}"] });
    expect((await g.chat()).status).toBe(500);
    await g.app.deps.ledger.flush();

    const sum = rows.reduce((all, { quota }) => all + quota, 0);
    const same = await plan([], 1);
    expect(same.effect).toMatchObject({ calls: 4, old: sum, new: sum, charged: sum, every_hours: 1 });
    expect(same.effect).toMatchObject({
      approximate: { calls: 0, charged: 0 },
      lost_calls: 0,
      refused_calls: 1,
    });

    const changes = [
      { key: "ModelRatio", name: MODEL, after: 33.3 },
      { key: "CompletionRatio", name: MODEL, after: 7 },
      { key: "CacheRatio", name: MODEL, after: 0.1 },
      { key: "ModelPrice", name: PICTURES, after: 0.07 },
      { key: "GroupRatio", name: "default", after: 1.1 },
    ];
    const planned = await plan(changes, 1);
    await apply(changes);
    const dearer = await calls();
    const next = dearer.reduce((all, { quota }) => all + quota, 0);
    expect(next).not.toBe(sum);
    expect(planned.effect).toMatchObject({ old: sum, new: next, charged: sum });
    expect(planned.effect.by_model.map(({ model }) => model).toSorted()).toEqual(
      [PICTURES, MODEL].toSorted(),
    );
    const pictures = planned.effect.by_model.find(({ model }) => model === PICTURES);
    expect(pictures).toMatchObject({ calls: 1, old: rows[3]?.quota ?? 0, new: dearer[3]?.quota ?? 0 });
    expect(planned.effect.by_user).toMatchObject([
      { user_id: g.user.id, username: g.user.username, old: sum, new: next },
    ]);
    expect(planned.effect.by_group).toMatchObject([{ group: "default", old: sum, new: next }]);
    expect(planned.effect.cells[0]).toMatchObject({ model: PICTURES, group: "default", user_id: g.user.id });

    // Now that they are in force, the old rows count at today's prices, and say what they were charged.
    const today = await plan([], 1);
    expect(today.effect).toMatchObject({ calls: 8, old: 2 * next, new: 2 * next, charged: sum + next });
    const lost = await plan([{ key: "ModelPrice", name: PICTURES, after: null }], 1);
    expect(lost.effect.lost_calls).toBe(2);
  });

  test("calls that left no row are sums, and change as the model's other calls do", async () => {
    await reset();
    clock.advance(3 * 86_400_000);
    const rows = [await around("/v1/chat/completions", chat, answer("hello"), async () => {})];
    await g.app.deps.options.set("LogConsumeEnabled", "false");
    g.upstream.script(answer("hello"), answer("hello"));
    expect((await g.chat()).status).toBe(200);
    expect((await g.chat()).status).toBe(200);
    await g.app.deps.options.set("LogConsumeEnabled", "true");
    await g.app.deps.ledger.flush();
    const { effect } = await plan(double, 1);
    expect(rows[0]?.quota).toBe(OLD_QUOTA);
    expect(effect).toMatchObject({
      calls: 3,
      old: 3 * OLD_QUOTA,
      new: 3 * NEW_QUOTA,
      charged: 3 * OLD_QUOTA,
    });
    expect(effect.approximate).toEqual({ calls: 2, charged: 2 * OLD_QUOTA });
  });
});
