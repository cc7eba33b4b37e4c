// What the site earns, over the wire and on both databases: cost rows, margins to the unit, bills read once whatever is
// handed in again, drift told apart by tokens and prices, an offer that is a cost and never a price of sale; and nothing of
// it for anybody below administrators.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { createApp } from "../../src/app.ts";
import { audit } from "../../src/core/ledger/audit.ts";
import type { Drift } from "../../src/core/costs/drift.ts";
import type { Margins } from "../../src/core/costs/margins.ts";
import { Role } from "../../src/shared/enums.ts";
import { testClock } from "../support/clock.ts";
import { answer, json } from "../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { startPriceHost } from "../support/price-source.ts";
import type { PriceHost } from "../support/price-source.ts";
import type { TestUser } from "../support/app.ts";
import { MODEL, startGateway } from "../relay/support.ts";
import type { Gateway } from "../relay/support.ts";

interface Told<T> {
  success: boolean;
  message: string;
  code?: string;
  data: T;
}

const DATED = `${MODEL}-2024-07-18`;

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  const dayStart = Math.floor(clock.nowMs() / 86_400_000) * 86_400;
  let g: Gateway;
  let host: PriceHost;
  let root: TestUser;
  let admin: TestUser;

  beforeAll(async () => {
    host = await startPriceHost();
    g = await startGateway({ database, clock });
    root = await g.app.createUser({ role: Role.root });
    admin = await g.app.createUser({ role: Role.admin });
    await g.setOption("ModelRatio", JSON.stringify({ [MODEL]: 1 }));
    await g.setOption("CompletionRatio", JSON.stringify({ [MODEL]: 4 }));
  });
  afterEach(async () => {
    await g.app.deps.ledger.flush();
    expect((await audit(g.app.deps.db)).differences).toEqual([]);
  });
  afterAll(async () => {
    await g.close();
    host.close();
  });

  const call = <T>(method: string, path: string, body?: unknown, as: TestUser = root) =>
    g.app.call<Told<T>>(method, path, body, as);
  async function good<T>(method: string, path: string, body?: unknown, as?: TestUser): Promise<T> {
    const { body: told } = await call<T>(method, path, body, as);
    expect([path, told.success, told.message]).toEqual([path, true, ""]);
    return told.data;
  }
  const codeOf = async (method: string, path: string, body: unknown, as?: TestUser) =>
    (await call(method, path, body, as)).headers.get("x-weir-error-code");

  const usage = (input: number, output: number) => ({
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
  });
  const use = (input: number, output: number, id?: string) =>
    g.charged(() => {
      const script = answer("hi", { usage: usage(input, output) });
      const headers = { ...script.headers, ...(id === undefined ? {} : { "x-request-id": id }) };
      g.upstream.script({ ...script, headers });
      return g.chat();
    });
  const setCost = (row: unknown, more: Record<string, unknown> = {}) =>
    good("POST", "/api/cost/", { channel_id: g.channelId, rows: [{ model: "*", row, ...more }] });
  const margin = (by: string) =>
    good<Margins>("GET", `/api/data/margin?by=${by}&start_timestamp=${dayStart}`, undefined, admin);
  const drift = (source = "") =>
    good<Drift>(
      "GET",
      `/api/cost/drift?channel_id=${g.channelId}&source=${source}&start_timestamp=${dayStart}`,
      undefined,
      admin,
    );
  const imported = (source: string, value: unknown, more: Record<string, unknown> = {}) =>
    good<{ added: number; known: number; replaced: number; refused_count: number }>(
      "POST",
      "/api/cost/import",
      {
        channel_id: g.channelId,
        source,
        text: typeof value === "string" ? value : JSON.stringify(value),
        ...more,
      },
    );

  test("margins by channel, model, group and day are true to the unit; unknown costs are in none", async () => {
    await use(1000, 100);
    clock.advance(1000);
    await setCost({ in: 1, out: 4 });
    clock.advance(1000);
    // 1,400 units a call; (1,000 + 400) / 10^6 dollars are 700 units.
    await use(1000, 100);
    await use(1000, 100);
    await g.app.deps.ledger.flush();
    const sums = {
      calls: 3,
      revenue: 4200,
      known_revenue: 2800,
      known_calls: 2,
      cost: 1400,
      lost: 0,
      margin: 1400,
    };
    for (const [by, id] of [
      ["channel", String(g.channelId)],
      ["model", MODEL],
      ["group", "default"],
    ] as const) {
      const found = await margin(by);
      expect([by, found.total]).toEqual([by, sums]);
      expect(found.rows).toMatchObject([{ id, ...sums }]);
      expect(found.bars.margin.reduce((a, b) => a + b, 0)).toBe(1400);
      expect(found.bars.unknown_revenue.reduce((a, b) => a + b, 0)).toBe(1400);
    }
    const days = await margin("day");
    expect(days.rows.filter(({ calls }) => calls > 0)).toMatchObject([sums]);
  });

  test("a row that makes no sense is refused by its place, all of its call with it", async () => {
    const put = (rows: unknown[], as?: TestUser) =>
      codeOf("POST", "/api/cost/", { channel_id: g.channelId, rows }, as);
    const fine = { model: "fine", row: { in: 1 } };
    expect(await put([fine, { model: "bad", row: { in: -1 } }])).toBe("cost_row");
    expect(await put([fine, { model: "bad", row: { inn: 1 } }])).toBe("cost_row");
    expect(await put([fine, { model: "bad", row: {} }])).toBe("cost_row");
    expect(await put([fine, { model: "bad", row: null, factor: -1 }])).toBe("cost_factor");
    expect(await put([fine, { model: "__proto__", row: null }])).toBe("cost_model");
    expect(await codeOf("POST", "/api/cost/", { channel_id: 999_999, rows: [fine] })).toBe("record_missing");
    const rows = await good<{ model: string; in_force: boolean }[]>(
      "GET",
      `/api/cost/?channel_id=${g.channelId}`,
      undefined,
      admin,
    );
    expect(rows).toMatchObject([{ model: "*", in_force: true }]);
    // Administrators read, root writes.
    expect((await call("POST", "/api/cost/", { channel_id: g.channelId, rows: [fine] }, admin)).status).toBe(
      403,
    );
  });

  const costsOf = (input: number, output: number) => ({
    object: "page",
    data: [
      {
        start_time: dayStart,
        end_time: dayStart + 86_400,
        results: [
          { amount: { value: input, currency: "usd" }, line_item: `${DATED}, input`, project_id: "p" },
          { amount: { value: output, currency: "usd" }, line_item: `${DATED}, output`, project_id: "p" },
        ],
      },
    ],
    next_page: null,
  });
  const usageOf = (input: number, output: number) => ({
    data: [
      {
        start_time: dayStart,
        results: [
          {
            model: DATED,
            input_tokens: input,
            output_tokens: output,
            input_cached_tokens: 0,
            num_model_requests: 4,
          },
        ],
      },
    ],
  });

  test("a bill is read once: doubled it changes nothing, a later one of the same day takes its place", async () => {
    expect(await imported("openai-costs", costsOf(1, 2), { dry: true })).toMatchObject({ added: 2 });
    expect(await imported("openai-costs", costsOf(1, 2))).toMatchObject({ added: 2, known: 0, replaced: 0 });
    expect(await imported("openai-costs", costsOf(1, 2))).toMatchObject({ added: 0, known: 2, replaced: 0 });
    expect(await imported("openai-costs", costsOf(1, 3))).toMatchObject({ added: 0, known: 1, replaced: 1 });
    expect((await drift("openai-costs")).total.billed).toBe(4e9);
    const rows = await good<{ added: number }[]>("GET", `/api/cost/import?channel_id=${g.channelId}`);
    expect(rows.map(({ added }) => added)).toEqual([0, 0, 2]);
  });

  test("calls of another instance's log overlap: each counts once, by its id; the day of the row decides", async () => {
    await use(1000, 0, "up-1");
    const item = (id: string, quota: number) => ({
      type: 2,
      created_at: Math.floor(clock.nowMs() / 1000),
      model_name: "as-they-call-it",
      quota,
      prompt_tokens: 1000,
      completion_tokens: 0,
      request_id: id,
    });
    const log = (...items: unknown[]) => ({ success: true, data: { items } });
    expect(await imported("instance", log(item("up-1", 500), item("up-2", 700)))).toMatchObject({ added: 6 });
    expect(await imported("instance", log(item("up-2", 700), item("up-3", 100)))).toMatchObject({
      added: 3,
      known: 3,
    });
    const report = await drift("instance");
    expect(report).toMatchObject({ matched_by_id: 1, unmatched_ids: 2 });
    // Found by its id: under our model, not under theirs.
    expect(report.models.find(({ model }) => model === MODEL)?.billed).toBe(1_000_000);
    expect(report.models.find(({ model }) => model === "as-they-call-it")?.billed).toBe(1_600_000);
  });

  test("drift tells tokens from prices, and offers a cost row; the price of sale stays", async () => {
    // Ours until here: 3 calls of 1,000 + 100 (one of unknown cost), one of 1,000.
    await g.app.deps.ledger.flush();
    // A million in and 100,000 out at 0.8 and 4 dollars.
    await imported("openai-usage", usageOf(1_000_000, 100_000));
    await imported("openai-costs", costsOf(0.8, 0.4));
    const report = await drift("openai-costs");
    const [model] = report.models;
    expect(model).toMatchObject({
      model: MODEL,
      billed: 1.2e9,
      billed_tokens: 1_100_000,
      reckoned: 3_800_000,
      reckoned_calls: 4,
      unknown_calls: 1,
      drift: 1.2e9 - 3_800_000,
      token_drift: 1.4e9 - 3_800_000,
      price_drift: -0.2e9,
      is_within: false,
      offer: { model: MODEL, row: { in: 0.8, out: 4 }, factor: 1 },
    });
    const before = g.app.deps.options.get("ModelRatio");
    const offer = model?.offer;
    await good("POST", "/api/cost/", { channel_id: g.channelId, source: "bill", rows: [offer] });
    expect(g.app.deps.options.get("ModelRatio")).toEqual(before);
    clock.advance(1000);
    const row = await use(1000, 100);
    expect((row.other["admin_info"] as { cost_nanos: number }).cost_nanos).toBe(1_200_000);
    // What was settled keeps its cost; the bill is right by the row that is in force at the day's end.
    const again = await drift("openai-costs");
    expect(again.models[0]).toMatchObject({ reckoned: 5_000_000, price_drift: 0, offer: null });
  });

  test("half a percent, or a cent, is no drift", async () => {
    const { isTolerated } = await import("../../src/core/costs/drift.ts");
    expect([isTolerated(10_000_000, 1e9), isTolerated(10_000_001, 1e9)]).toEqual([true, false]);
    expect([isTolerated(-50_000_000, 1e10), isTolerated(50_000_001, 1e10)]).toEqual([true, false]);
  });

  test("bills come from an address too: page after page, by the guard, with a key that is kept nowhere", async () => {
    const secret = "sk-admin-never-kept-0123456789";
    const page = (amount: number, next: string | null) => ({
      data: [
        {
          start_time: dayStart - 86_400,
          results: [{ amount: { value: amount, currency: "usd" }, line_item: `item ${amount}` }],
        },
      ],
      next_page: next,
    });
    host.serve("/v1/organization/costs", page(1, null));
    const ask = {
      channel_id: g.channelId,
      source: "openai-costs",
      url: `${host.url}/v1/organization/costs`,
      key: secret,
    };
    const result = await good<{ added: number }>("POST", "/api/cost/import", ask);
    expect(result.added).toBe(1);
    expect(host.seen.at(-1)?.headers["authorization"]).toBe(`Bearer ${secret}`);
    host.serve("/v1/organization/costs", page(2, "page_2"));
    // The same page again and again ends, too.
    expect((await good<{ added: number }>("POST", "/api/cost/import", ask)).added).toBe(1);
    expect(host.seen.at(-1)?.path).toContain("page=page_2");
    const at = (path: string) => codeOf("POST", "/api/cost/import", { ...ask, url: `${host.url}${path}` });
    expect(await at("/hidden")).toBe("price_source_hidden");
    expect(await at("/html")).toBe("price_source_broken");
    expect(await at("/x?to=http://127.0.0.2/")).toBe("price_source_redirected");
    const closed = { ...ask, url: "http://169.254.169.254/v1/organization/costs" };
    expect(await codeOf("POST", "/api/cost/import", closed)).toBe("price_source_private");
    expect((await call("POST", "/api/cost/import", ask, admin)).status).toBe(403);
    const { logs, costImports } = g.app.deps.db.t;
    const stored = [
      await g.app.deps.db.orm.select().from(logs),
      await g.app.deps.db.orm.select().from(costImports),
    ];
    expect(JSON.stringify(stored)).not.toContain(secret);
  });

  test("the shipped list and another instance's prices fill rows; its group ratio is part of the cost", async () => {
    const fill = (body: Record<string, unknown>) =>
      good<{ offers: unknown[]; missing: string[]; groups: Record<string, number> }>(
        "POST",
        "/api/cost/fill",
        {
          channel_id: g.channelId,
          ...body,
        },
      );
    expect((await fill({ source: "list" })).offers).toMatchObject([
      { model: MODEL, row: { in: 0.15, out: 0.6 } },
    ]);
    const text = JSON.stringify({
      data: [{ model_name: MODEL, quota_type: 0, model_ratio: 0.5, completion_ratio: 3 }],
      group_ratio: { default: 1, vip: 0.7 },
    });
    expect(await fill({ source: "pricing", text, group: "vip" })).toEqual({
      offers: [{ model: MODEL, row: { in: 1, out: 3 }, group_ratio: 0.7 }],
      missing: [],
      groups: { default: 1, vip: 0.7 },
    });
    host.serve("/api/pricing", JSON.parse(text));
    expect((await fill({ source: "pricing", url: host.url })).offers).toMatchObject([{ group_ratio: 1 }]);
    const wrong = { channel_id: g.channelId, source: "pricing", text, group: "nobody" };
    expect(await codeOf("POST", "/api/cost/fill", wrong)).toBe("cost_group");
  });

  test.each([
    ["openai-costs", '"value": 0.25', '"value": 0.35', "openai-usage"],
    ["openai-usage", '"output_tokens": 100000', '"output_tokens": 100001', "anthropic-usage"],
    ["anthropic-cost", '"123.78912"', '"123.78913"', "openrouter"],
    ["anthropic-usage", '"output_tokens": 500', '"output_tokens": 501', "openai-costs"],
    ["openrouter", '"usage": 0.015', '"usage": 0.016', "instance"],
    ["instance", '"quota": 1000', '"quota": 1001', "anthropic-cost"],
  ])(
    "a recorded export of %s: doubled it counts once, a changed one takes the old one's place, a broken one counts nothing",
    async (source, was, became, other) => {
      const channel = await g.app.createChannel({ models: "recorded", baseUrl: g.upstream.url });
      const text = await Bun.file(`${import.meta.dir}/../core/costs/recorded/${source}.json`).text();
      expect(text).toContain(was);
      const read = (given: string) => imported(source, given, { channel_id: channel });
      const stored = async () => {
        const { costBills } = g.app.deps.db.t;
        return (await g.app.deps.db.orm.select().from(costBills)).filter(
          ({ channelId }) => channelId === channel,
        );
      };
      const first = await read(text);
      expect(first.added).toBeGreaterThan(0);
      expect([first.known, first.replaced]).toEqual([0, 0]);
      expect(await read(text)).toMatchObject({ added: 0, known: first.added, replaced: 0 });
      const overlapping = await read(text.replace(was, became));
      expect(overlapping.added).toBe(0);
      expect(overlapping.replaced).toBeGreaterThan(0);
      expect(overlapping.known + overlapping.replaced).toBe(first.added);
      const before = await stored();
      expect(before).toHaveLength(first.added);
      const wrong = await Bun.file(`${import.meta.dir}/../core/costs/recorded/${other}.json`).text();
      for (const broken of [text.slice(0, -30), "", "[]", "<html>sign in</html>", wrong]) {
        const told = await call("POST", "/api/cost/import", { channel_id: channel, source, text: broken });
        if (told.body.success) expect(told.body.data).toMatchObject({ added: 0, known: 0, replaced: 0 });
        else expect(told.headers.get("x-weir-error-code")).toMatch(/^(?:bill|price_source)_/);
      }
      expect(await stored()).toEqual(before);
    },
  );

  test("a failed attempt's cost is lost: it is no revenue, and no call", async () => {
    const before = (await margin("channel")).total;
    g.upstream.script(json({ error: { message: "broken" }, usage: usage(10_000, 0) }, 500));
    await g.chat();
    await g.app.deps.ledger.flush();
    const after = (await margin("channel")).total;
    // 10,000 tokens at $0.8 a million.
    expect([after.cost - before.cost, after.lost - before.lost, after.calls - before.calls]).toEqual([
      4000, 4000, 0,
    ]);
    expect(after.margin - before.margin).toBe(-4000);
  });

  test("users read nothing of it, whatever they ask; neither do guests", async () => {
    const { routes } = await createApp(g.app.services);
    const paths = routes
      .filter(
        ({ method, path }) =>
          method === "GET" && !/[:*]/.test(path) && !/^\/(?:v1|pg|assets|openapi)/.test(path),
      )
      .map(({ path }) => path);
    expect(paths.length).toBeGreaterThan(40);
    const words = /cost_nanos|upstream_id|upstream_model"|known_revenue|lost_nanos|channel_costs/;
    for (const as of [g.user, { id: 0, username: "", headers: {} }]) {
      for (const path of paths) {
        const { text } = await g.app.call("GET", path, undefined, as);
        expect([path, words.exec(text)?.[0]]).toEqual([path, undefined]);
      }
      for (const path of ["/api/data/margin", "/api/cost/", "/api/cost/drift", "/api/cost/import"]) {
        const { status } = await g.app.call("GET", path, undefined, as);
        expect([path, status === 401 || status === 403]).toEqual([path, true]);
      }
    }
  });
});
