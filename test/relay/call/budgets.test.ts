// Budgets and limits of keys, users and groups over the wire: never passed however many calls come at once, refused in the
// caller's dialect with the moment when they open again, and opened again at it.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import Anthropic, { APIError as AnthropicError } from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import { and, eq } from "drizzle-orm";
import OpenAI, { RateLimitError } from "openai";
import { audit } from "../../../src/core/ledger/audit.ts";
import { refundSteps } from "../../../src/core/ledger/refund.ts";
import { testClock } from "../../support/clock.ts";
import type { TestClock } from "../../support/clock.ts";
import { answer, gate } from "../../support/fake-upstream.ts";
import { HI, MODEL, startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";
import { ask } from "./holds-support.ts";

const PRICE = 10;
const dollars = (units: number) => JSON.stringify({ [MODEL]: units / 500_000 });
/** A Friday, noon. */
const NOON = Date.parse("2026-11-27T12:00:00Z");
const HOUR_MS = 3_600_000;

describe.each(["sqlite", "postgres"] as const)("on %s", (database) => {
  let g: Gateway;
  let clock: TestClock;

  beforeAll(async () => {
    clock = testClock(NOON);
    g = await startGateway({ database, clock });
    await g.setOption("ModelPrice", dollars(PRICE));
  }, 60_000);
  afterAll(async () => {
    await g.app.deps.ledger.flush();
    expect(await audit(g.app.deps.db)).toMatchObject({ differences: [] });
    await g.close();
  });
  beforeEach(async () => {
    g.upstream.reset();
    await g.setOption("KeyLimitsDefault", "{}");
    await g.setOption("KeyLimitsGroup", "{}");
    await g.setOption("site.time_zone", "UTC");
  });

  const key = async (fields: Record<string, unknown>, userId = g.user.id) =>
    g.app.createToken(userId, { unlimitedQuota: true, ...fields });
  const call = (bearer: string, fields: Record<string, unknown> = {}) =>
    g.chat(fields, { authorization: `Bearer ${bearer}` });
  const statuses = async (calls: Promise<Response>[]) =>
    (await Promise.all(calls)).map(({ status }) => status);
  const count = (all: number[], status: number) => all.filter((each) => each === status).length;
  const spentBy = async (tokenId: number) => {
    await g.app.deps.ledger.flush();
    const { tokens } = g.app.deps.db.t;
    const [row] = await g.app.deps.db.orm.select().from(tokens).where(eq(tokens.id, tokenId));
    return row?.usedQuota;
  };

  test("200 calls at once spend a day's budget to the last unit that fits, and not one more", async () => {
    const { id, key: bearer } = await key({ budgetQuota: 505, budgetPeriod: "day" });
    const first = await statuses(Array.from({ length: 200 }, () => call(bearer)));
    expect(count(first, 200) + count(first, 429)).toBe(200);
    expect(count(first, 200)).toBe(50);
    expect(await spentBy(id)).toBe(500);
    const refused = await call(bearer);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("x-weir-error-code")).toBe("budget_exceeded");
    expect(refused.headers.get("retry-after")).toBe(
      String(12 * 3600 - Math.floor((clock.nowMs() - NOON) / 1000)),
    );
    expect(await refused.text()).toContain("2026-11-28 00:00");
    expect(g.upstream.requests).toHaveLength(50);
    expect(await spentBy(id)).toBe(500);
    const told = await fetch(`${g.app.url}/api/usage/token`, {
      headers: { authorization: `Bearer ${bearer}` },
    });
    expect(await told.json()).toMatchObject({
      data: {
        limits: {
          budget_quota: 505,
          budget_period: "day",
          budget_used: 500,
          budget_resets_at: NOON / 1000 + 12 * 3600,
          rpm_limit: 0,
        },
      },
    });
  });

  test("never more calls at once than the key allows, and the next as soon as one ends", async () => {
    const { key: bearer } = await key({ maxConcurrency: 3 });
    const door = gate();
    g.upstream.always({ ...answer("hello"), before: door });
    let answered = 0;
    const calls = Array.from({ length: 200 }, async () => {
      const { status } = await call(bearer);
      answered++;
      return status;
    });
    // Every one has either been refused or stands before the upstream's door.
    await until(() => Promise.resolve(g.upstream.requests.length + answered === 200 || undefined));
    expect([g.upstream.requests.length, answered]).toEqual([3, 197]);
    door.open();
    const all = await Promise.all(calls);
    expect([count(all, 200), count(all, 429)]).toEqual([3, 197]);
    g.upstream.always(undefined);
    expect((await call(bearer)).status).toBe(200);
  });

  test("20 of 60 calls at once pass a limit of 20 a minute, none more before the minute is over", async () => {
    const { key: bearer } = await key({ rpmLimit: 20 });
    const all = await statuses(Array.from({ length: 60 }, () => call(bearer)));
    expect([count(all, 200), count(all, 429)]).toEqual([20, 40]);
    clock.advance(59_000);
    const refused = await call(bearer);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(refused.headers.get("x-ratelimit-remaining-requests")).toBe("0");
    clock.advance(1000);
    const next = await call(bearer);
    expect([next.status, next.headers.get("x-ratelimit-limit-requests")]).toEqual([200, "20"]);
  });

  test("tokens a minute: what was used counts for a minute, and is told", async () => {
    // An answer of the fake upstream has 9 and 3 tokens.
    const { key: bearer } = await key({ tpmLimit: 24 });
    expect((await call(bearer, { max_tokens: 3 })).status).toBe(200);
    expect((await call(bearer, { max_tokens: 3 })).headers.get("x-ratelimit-limit-tokens")).toBe("24");
    const refused = await call(bearer, { max_tokens: 3 });
    expect([refused.status, refused.headers.get("x-weir-error-code")]).toEqual([429, "key_limit_exceeded"]);
    expect(await refused.text()).toContain("tpm_limit");
    clock.advance(60_000);
    expect((await call(bearer, { max_tokens: 3 })).status).toBe(200);
  });

  test("a user's own limits replace the group's, and count together with the key's: the narrowest wins", async () => {
    const root = await g.app.createUser({ role: 100 });
    const user = await g.app.createUser({ quota: 1_000_000, group: "vip" });
    const { key: wide } = await key({ rpmLimit: 50 }, user.id);
    const { key: narrow } = await key({ rpmLimit: 1 }, user.id);
    await g.app.createChannel({ baseUrl: g.upstream.url, models: MODEL, group: "vip" });
    await g.setOption("KeyLimitsDefault", '{"rpm_limit": 1}');
    await g.setOption("KeyLimitsGroup", '{"vip": {"rpm_limit": 3}}');
    expect(await statuses([call(narrow), call(narrow)])).toEqual([200, 429]);
    expect(count(await statuses(Array.from({ length: 5 }, () => call(wide))), 200)).toBe(2);
    const put = await g.app.call("PUT", "/api/user/", { id: user.id, limits: { rpm_limit: 0 } }, root);
    expect(put.body).toMatchObject({ success: true });
    expect(count(await statuses(Array.from({ length: 5 }, () => call(wide))), 200)).toBe(5);
    expect((await call(narrow)).status).toBe(429);
  });

  test("who asks is told the limits in force and what is spent; administrators of lower ranks alone", async () => {
    const root = await g.app.createUser({ role: 100 });
    const admin = await g.app.createUser({ role: 10 });
    const user = await g.app.createUser({ quota: 1_000_000, group: "vip" });
    const other = await g.app.createUser({});
    const { key: bearer } = await key({}, user.id);
    const told = async (path: string, as = user) => (await g.app.call("GET", path, undefined, as)).body;
    expect(await told("/api/user/self/limits")).toMatchObject({ success: true, data: null });
    await g.setOption("KeyLimitsDefault", '{"budget_quota": 500, "budget_period": "week", "rpm_limit": 7}');
    await g.setOption("KeyLimitsGroup", '{"vip": {"rpm_limit": 9}}');
    expect((await call(bearer)).status).toBe(200);
    const data = {
      budget_quota: 500,
      budget_period: "week",
      rpm_limit: 9,
      tpm_limit: 0,
      max_concurrency: 0,
      budget_used: PRICE,
    };
    const shown = await told("/api/user/self/limits");
    expect(shown).toMatchObject({ data });
    expect((shown as { data: { budget_resets_at: number } }).data.budget_resets_at * 1000).toBeGreaterThan(
      clock.nowMs(),
    );
    const path = `/api/user/${user.id}/limits`;
    expect(await told(path, admin)).toEqual(shown);
    const put = { id: user.id, limits: { budget_quota: 0 } };
    expect((await g.app.call("PUT", "/api/user/", put, root)).body).toMatchObject({ success: true });
    expect(await told(path, root)).toMatchObject({ data: { budget_quota: 0, rpm_limit: 9, budget_used: 0 } });
    expect(await told(path, other)).toMatchObject({ success: false });
    expect(await told(`/api/user/${root.id}/limits`, admin)).toMatchObject({ success: false });
    // What a body does not name stays; null follows the group again; a name that is none is told, and changes nothing.
    const own = async () => (await told(`/api/user/${user.id}`, root)) as { data: { limits: unknown } };
    const putLimits = (limits: unknown) => g.app.call("PUT", "/api/user/", { id: user.id, limits }, root);
    await putLimits({ max_concurrency: 4 });
    expect((await own()).data.limits).toEqual({ budget_quota: 0, max_concurrency: 4 });
    expect((await putLimits({ budget_qouta: 5, rpm_limit: 1 })).body).toMatchObject({
      success: false,
      code: "limit_unknown",
      message: expect.stringContaining("budget_qouta"),
    });
    await putLimits({});
    expect((await own()).data.limits).toEqual({ budget_quota: 0, max_concurrency: 4 });
    await putLimits({ budget_quota: null });
    expect((await own()).data.limits).toEqual({ max_concurrency: 4 });
    await putLimits(null);
    expect((await own()).data.limits).toBeNull();
    for (const limits of [{ rpm_limit: -1 }, { budget_period: "year" }, { tpm_limit: 1.5 }])
      expect((await g.app.call("PUT", "/api/user/", { id: user.id, limits }, root)).body).toMatchObject({
        success: false,
      });
  });

  test("the playground counts for its user", async () => {
    const user = await g.app.createUser({ quota: 1_000_000 });
    await g.setOption("KeyLimitsDefault", `{"budget_quota": ${PRICE}, "budget_period": "week"}`);
    const play = () =>
      g.app.call("POST", "/pg/chat/completions", { model: MODEL, messages: HI, group: "default" }, user);
    expect((await play()).status).toBe(200);
    const refused = await play();
    expect([refused.status, refused.body]).toMatchObject([429, { error: { code: "budget_exceeded" } }]);
    // Monday, in Chinese by default.
    expect(refused.text).toContain("2026-11-30 00:00");
  });

  test("a budget opens with its period: next day, and where a new zone has begun another one", async () => {
    const { key: bearer } = await key({ budgetQuota: PRICE, budgetPeriod: "day" });
    expect(await statuses([call(bearer)])).toEqual([200]);
    expect((await call(bearer)).status).toBe(429);
    // It is one o'clock of the 28th there, and the call was made in the same hour.
    await g.setOption("site.time_zone", "Pacific/Auckland");
    expect((await call(bearer)).status).toBe(429);
    clock.advance(23 * HOUR_MS);
    expect((await call(bearer)).status).toBe(200);
    await g.setOption("site.time_zone", "UTC");
    expect((await call(bearer)).status).toBe(429);
    clock.advance(13 * HOUR_MS);
    expect((await call(bearer)).status).toBe(200);
  });

  test("a zone off the full hour cuts its days inside of an hour's sum", async () => {
    const { key: bearer } = await key({ budgetQuota: PRICE, budgetPeriod: "day" });
    await g.setOption("site.time_zone", "Asia/Kolkata");
    const midnight = Date.parse("2026-12-05T18:30:00Z");
    clock.advance(midnight - 20 * 60_000 - clock.nowMs());
    expect((await call(bearer)).status).toBe(200);
    clock.advance(10 * 60_000);
    expect((await call(bearer)).status).toBe(429);
    clock.advance(11 * 60_000);
    expect((await call(bearer)).status).toBe(200);
    clock.advance(60_000);
    expect((await call(bearer)).status).toBe(429);
  });

  test("its owner is told once a period, at four fifths of it", async () => {
    const user = await g.app.createUser({ quota: 1_000_000 });
    const hook = "https://hooks.example.org/budget";
    const { deps } = g.app;
    const { marks, users } = deps.db.t;
    const setting = JSON.stringify({ notify_type: "webhook", webhook_url: hook });
    await deps.db.orm.update(users).set({ setting }).where(eq(users.id, user.id));
    await deps.accounts.userChanged(user.id);
    const { id, key: bearer } = await key({ budgetQuota: 5 * PRICE, budgetPeriod: "day" }, user.id);
    const told = async () => {
      await deps.ledger.flush();
      await g.app.services.budgetWarnings.settled();
      return deps.db.orm
        .select()
        .from(marks)
        .where(eq(marks.key, `budget:token:${id}`));
    };
    for (let calls = 0; calls < 3; calls++) expect((await call(bearer)).status).toBe(200);
    expect(await told()).toEqual([]);
    expect((await call(bearer)).status).toBe(200);
    const [first] = await told();
    expect(first?.value).toBe(Math.floor(clock.nowMs() / 86_400_000) * 86_400);
    expect((await call(bearer)).status).toBe(200);
    expect(await told()).toHaveLength(1);
    clock.advance(24 * HOUR_MS);
    for (let calls = 0; calls < 4; calls++) expect((await call(bearer)).status).toBe(200);
    const [next] = await told();
    expect(next?.value).toBe((first?.value ?? 0) + 86_400);
  });

  test("a budget that is set later knows what was spent before, and a refund gives room again", async () => {
    const { id, key: bearer } = await key({});
    const charged = await g.charged(() => call(bearer));
    const { deps } = g.app;
    const { tokens } = deps.db.t;
    await deps.db.orm.update(tokens).set({ budgetQuota: PRICE }).where(eq(tokens.id, id));
    await deps.accounts.tokenChanged(id);
    expect((await call(bearer)).status).toBe(429);
    const { logs } = deps.db.t;
    // The charge is in the books, and a refusal is a row of another type.
    const [row] = await deps.db.orm
      .select()
      .from(logs)
      .where(and(eq(logs.tokenId, id), eq(logs.type, 2)));
    if (!row) throw new Error("no log row");
    const settled = {
      ...charged,
      requestId: row.requestId,
      keyId: 0,
      settledHour: row.createdAt - (row.createdAt % 3600),
    };
    expect(await deps.db.atomic((tx) => refundSteps(deps.db, tx, settled, settled.settledHour))).toBe(true);
    await deps.accounts.userChanged(g.user.id);
    await deps.accounts.tokenChanged(id);
    // What PostgreSQL's nodes do every 400 ms: the counter that fell is seen, and the sums are read anew.
    await deps.limits.exchange();
    expect((await call(bearer)).status).toBe(200);
    expect((await call(bearer)).status).toBe(429);
  });

  test("each dialect's own client reads the refusal as its own limit error, and nobody upstream is asked", async () => {
    const { key: bearer } = await key({ budgetQuota: PRICE, budgetPeriod: "month" });
    expect((await call(bearer)).status).toBe(200);
    g.upstream.reset();
    const baseURL = `${g.app.url}/v1`;
    const openai = new OpenAI({ apiKey: bearer, baseURL, maxRetries: 0 });
    const caught = async (work: Promise<unknown>): Promise<unknown> => {
      try {
        await work;
      } catch (error) {
        return error;
      }
      throw new Error("was not refused");
    };
    const ofChat = await caught(openai.chat.completions.create({ model: MODEL, messages: HI }));
    expect(ofChat).toBeInstanceOf(RateLimitError);
    expect(ofChat).toMatchObject({ status: 429, code: "budget_exceeded" });
    expect(String(ofChat)).toContain("-01 00:00（UTC）");
    const ofResponses = await caught(openai.responses.create({ model: MODEL, input: "hi" }));
    expect(ofResponses).toMatchObject({ status: 429, code: "budget_exceeded" });
    const ofEmbeddings = await caught(openai.embeddings.create({ model: MODEL, input: "hi" }));
    expect(ofEmbeddings).toMatchObject({ status: 429, code: "budget_exceeded" });
    const ofImages = await caught(openai.images.generate({ model: MODEL, prompt: "hi" }));
    expect(ofImages).toMatchObject({ status: 429, code: "budget_exceeded" });
    const anthropic = new Anthropic({ apiKey: bearer, baseURL: g.app.url, maxRetries: 0 });
    const ofMessages = await caught(anthropic.messages.create({ model: MODEL, max_tokens: 5, messages: HI }));
    expect(ofMessages).toBeInstanceOf(AnthropicError);
    expect(ofMessages).toMatchObject({ status: 429, error: { error: { type: "rate_limit_error" } } });
    const google = new GoogleGenAI({ apiKey: bearer, httpOptions: { baseUrl: g.app.url } });
    const ofGemini = await caught(google.models.generateContent({ model: MODEL, contents: "hi" }));
    expect(ofGemini).toBeInstanceOf(ApiError);
    expect(ofGemini).toMatchObject({ status: 429 });
    expect(String(ofGemini)).toContain("RESOURCE_EXHAUSTED");
    // A limit of a minute: the same in each dialect, with its name and when to come back.
    const { key: limited } = await key({ rpmLimit: 1 });
    expect((await call(limited)).status).toBe(200);
    g.upstream.reset();
    const openaiForm = { error: { code: "key_limit_exceeded" } };
    for (const [dialect, form] of [
      ["openai-chat", openaiForm],
      ["openai-responses", openaiForm],
      ["anthropic", { type: "error", error: { type: "rate_limit_error" } }],
      ["gemini", { error: { code: 429, status: "RESOURCE_EXHAUSTED" } }],
    ] as const) {
      const response = await ask(g, dialect, MODEL, { key: limited });
      expect([response.status, response.headers.get("x-weir-error-code")]).toEqual([
        429,
        "key_limit_exceeded",
      ]);
      expect(response.headers.get("retry-after")).toBe("60");
      const body = (await response.json()) as { error: { message: string } };
      expect(body).toMatchObject(form);
      expect(body.error.message).toContain("rpm_limit");
    }
    expect(g.upstream.requests).toHaveLength(0);
  });
});
