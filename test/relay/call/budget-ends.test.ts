// Where budgets and limits end what runs, and what people are told: streams in every dialect, sound, tasks; periods by the
// calendar of the site's zone; the warning at four fifths as it arrives; limits that are set while calls are open.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../../src/core/ledger/audit.ts";
import type { DialectName } from "../../../src/protocol/canonical.ts";
import { testClock } from "../../support/clock.ts";
import type { TestClock } from "../../support/clock.ts";
import { answer, gate } from "../../support/fake-upstream.ts";
import { startMailServer } from "../../support/mail-server.ts";
import type { MailServerStand } from "../../support/mail-server.ts";
import { HI, MODEL, startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";
import { ask, completeAnswer, longStream, wordsIn } from "./holds-support.ts";

const PRICE = 10;
const OUT = 4;
const MODELS: Readonly<Record<DialectName, string>> = {
  "openai-chat": "deepseek-chat",
  "openai-responses": "gpt-4.1-nano",
  anthropic: "claude-3-5-haiku-latest",
  gemini: "gemini-2.0-flash",
};
const CLEAN_END: Readonly<Record<DialectName, string>> = {
  "openai-chat": '"finish_reason":"length"',
  "openai-responses": '"type":"response.incomplete"',
  anthropic: '"stop_reason":"max_tokens"',
  gemini: '"finishReason":"MAX_TOKENS"',
};
const DIALECTS = Object.keys(MODELS) as DialectName[];

describe.each(["sqlite", "postgres"] as const)("on %s", (database) => {
  let g: Gateway;
  let clock: TestClock;
  let mail: MailServerStand;

  beforeAll(async () => {
    clock = testClock(Date.parse("2026-11-27T12:00:00Z"));
    mail = await startMailServer();
    g = await startGateway({
      database,
      clock,
      channel: { type: 1, models: `${MODEL},${MODELS["openai-responses"]},tts-1` },
    });
    for (const [type, models] of [
      [43, MODELS["openai-chat"]],
      [14, MODELS.anthropic],
      [24, MODELS.gemini],
      [2, "mj_imagine"],
    ])
      await g.app.createChannel({ type, models, baseUrl: g.upstream.url });
    const units = PRICE / 500_000;
    await g.setOption("ModelPrice", JSON.stringify({ [MODEL]: units, "tts-1": units, mj_imagine: units }));
    const all = (value: number) =>
      JSON.stringify(Object.fromEntries(Object.values(MODELS).map((name) => [name, value])));
    await g.setOption("ModelRatio", all(1));
    await g.setOption("CompletionRatio", all(OUT));
    await g.setOption("SMTPFrom", "weir@mail.example");
    await g.setOption("SMTPPort", String(mail.port));
    await g.setOption("SMTPServer", "127.0.0.1");
  }, 60_000);
  afterAll(async () => {
    await g.app.deps.ledger.flush();
    expect(await audit(g.app.deps.db)).toMatchObject({ differences: [] });
    await g.close();
    await mail.close();
  });
  beforeEach(async () => {
    g.upstream.reset();
    await g.setOption("KeyLimitsDefault", "{}");
    await g.setOption("site.time_zone", "UTC");
  });

  const key = (fields: Record<string, unknown>, userId = g.user.id) =>
    g.app.createToken(userId, { unlimitedQuota: true, ...fields });
  const call = (bearer: string, fields: Record<string, unknown> = {}) =>
    g.chat(fields, { authorization: `Bearer ${bearer}`, "accept-language": "en" });
  const setKey = async (id: number, fields: Record<string, number>) => {
    const { db, accounts } = g.app.deps;
    await db.orm.update(db.t.tokens).set(fields).where(eq(db.t.tokens.id, id));
    await accounts.tokenChanged(id);
  };
  const codeOf = async (response: Response) => {
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    return { header: response.headers.get("x-weir-error-code"), ...error };
  };

  describe("what a budget ends", () => {
    test.each(DIALECTS)(
      "a stream of %s that grows into it ends cleanly, and is paid to the last word",
      async (dialect) => {
        const budget = 6000;
        const { id, key: bearer } = await key({ budgetQuota: budget, budgetPeriod: "day" });
        g.upstream.script(longStream(dialect, { words: 6000, per: 10 }));
        let text = "";
        const charge = await g.charged(async () => {
          const response = await ask(g, dialect, MODELS[dialect], { key: bearer, stream: true });
          expect(response.status).toBe(200);
          text = await response.text();
        });
        expect(text).toContain(CLEAN_END[dialect]);
        expect(text).not.toContain('"error":{');
        expect(wordsIn(text) * OUT).toBeGreaterThan(budget * 0.9);
        expect(charge.quota).toBeLessThanOrEqual(budget);
        expect(charge.other).toMatchObject({ stopped: "balance", end_reason: "balance" });
        await setKey(id, { budgetQuota: charge.quota });
        const refused = await ask(g, dialect, MODELS[dialect], { key: bearer, stream: true });
        expect([refused.status, refused.headers.get("x-weir-error-code")]).toEqual([429, "budget_exceeded"]);
      },
    );

    test("speech: one fits, the next is refused as its clients read it, and nobody upstream is asked", async () => {
      const { key: bearer } = await key({ budgetQuota: PRICE, budgetPeriod: "day" });
      g.upstream.always({ headers: { "content-type": "audio/mpeg" }, steps: ["sound"] });
      const speak = () =>
        g.post(
          "/v1/audio/speech",
          { model: "tts-1", voice: "alloy", input: "hello" },
          { authorization: `Bearer ${bearer}` },
        );
      const first = await speak();
      expect([first.status, await first.text()]).toEqual([200, "sound"]);
      const refused = await speak();
      expect([refused.status, await codeOf(refused)]).toMatchObject([429, { code: "budget_exceeded" }]);
      expect(g.upstream.requests).toHaveLength(1);
    });

    test("a drawing: one fits, the next is refused before anything is submitted", async () => {
      const { key: bearer } = await key({ budgetQuota: PRICE, budgetPeriod: "day" });
      g.upstream.always({
        headers: { "content-type": "application/json" },
        steps: ['{"code":1,"description":"ok","result":"14"}'],
      });
      const draw = () =>
        g.post("/mj/submit/imagine", { prompt: "a weir" }, { authorization: `Bearer ${bearer}` });
      expect((await draw()).status).toBe(200);
      const refused = await draw();
      expect([refused.status, refused.headers.get("x-weir-error-code")]).toEqual([429, "budget_exceeded"]);
      expect(g.upstream.requests).toHaveLength(1);
    });
  });

  describe("limits that are set while calls are open", () => {
    test.each([
      ["of the key", (id: number) => setKey(id, { maxConcurrency: 3 })],
      ["for everybody", () => g.setOption("KeyLimitsDefault", '{"max_concurrency": 3}')],
    ] as const)("%s: those calls count, and leave when they end", async (_, limit) => {
      const user = await g.app.createUser({ quota: 1_000_000 });
      const { id, key: bearer } = await key({}, user.id);
      const door = gate();
      g.upstream.always({ ...answer("hello"), before: door });
      const open = Array.from({ length: 3 }, () => call(bearer));
      await until(() => Promise.resolve(g.upstream.requests.length === 3 || undefined));
      await limit(id);
      const refused = await codeOf(await call(bearer));
      expect([refused.header, refused.code]).toEqual(["key_limit_exceeded", "key_limit_exceeded"]);
      expect(refused.message).toContain("3 calls open at once (max_concurrency)");
      door.open();
      expect((await Promise.all(open)).map(({ status }) => status)).toEqual([200, 200, 200]);
      expect((await call(bearer)).status).toBe(200);
    });

    test("what they hold counts in a new budget; the refusal says that it is only held", async () => {
      const { id, key: bearer } = await key({});
      const door = gate();
      g.upstream.always({ ...answer("hello"), before: door });
      const open = Array.from({ length: 2 }, () => call(bearer));
      await until(() => Promise.resolve(g.upstream.requests.length === 2 || undefined));
      await setKey(id, { budgetQuota: 2 * PRICE });
      const response = await call(bearer);
      expect(response.headers.get("retry-after")).toBe("2");
      const refused = await codeOf(response);
      expect([refused.header, refused.code]).toEqual(["budget_exceeded", "budget_exceeded"]);
      expect(refused.message).toContain("held for calls that are still running");
      door.open();
      await Promise.all(open);
      const after = await codeOf(await call(bearer));
      expect([after.code, after.message.includes("is used up")]).toEqual(["budget_exceeded", true]);
    });
  });

  describe("limits of a minute", () => {
    test("a call that the balance refuses is no request of the minute", async () => {
      const user = await g.app.createUser({ quota: PRICE });
      const { key: bearer } = await key({ rpmLimit: 3 }, user.id);
      expect((await call(bearer)).status).toBe(200);
      for (let count = 0; count < 5; count++) {
        const refused = await call(bearer);
        expect([refused.status, refused.headers.get("x-ratelimit-remaining-requests")]).toEqual([403, "2"]);
      }
    });

    test("40 calls at once that use all they ask for stay within the tokens of the minute", async () => {
      const model = MODELS["openai-chat"];
      g.upstream.always(completeAnswer("openai-chat", 100));
      const { id, key: bearer } = await key({ tpmLimit: 1000 });
      const all = await Promise.all(
        Array.from({ length: 40 }, () => call(bearer, { model, max_tokens: 100 })),
      );
      const refused = all.find(({ status }) => status === 429);
      if (!refused) throw new Error("none was refused");
      const { message } = await codeOf(refused);
      expect(message).toMatch(/may use 1000 tokens a minute \(tpm_limit\).* in \d+ s/);
      const rows = (await g.logs()).filter((row) => row.tokenId === id && row.type === 2);
      const used = rows.reduce((sum, row) => sum + row.promptTokens + row.completionTokens, 0);
      expect(rows.length).toBeGreaterThan(7);
      expect(used).toBeLessThanOrEqual(1000);
      const left = (await call(bearer, { model, max_tokens: 100 })).headers;
      expect(left.get("x-ratelimit-remaining-tokens")).toBe(String(1000 - used));
    });

    test("an open stream counts what it has grown to", async () => {
      const model = MODELS["openai-chat"];
      const door = gate();
      g.upstream.script(longStream("openai-chat", { words: 3000, per: 2000, between: door }));
      const { key: bearer } = await key({ tpmLimit: 2000 });
      const stream = await ask(g, "openai-chat", model, { key: bearer, stream: true });
      const reader = stream.body?.getReader();
      const seen = async (): Promise<number> => {
        let text = "";
        while (wordsIn(text) < 2000) text += new TextDecoder().decode((await reader?.read())?.value);
        return wordsIn(text);
      };
      expect(await seen()).toBe(2000);
      const refused = await codeOf(await call(bearer, { model, max_tokens: 1 }));
      expect([refused.code, refused.message.includes("tpm_limit")]).toEqual(["key_limit_exceeded", true]);
      door.open();
      while (!(await reader?.read())?.done);
    });

    test("a prompt that is longer than the minute is told so, and when to come back is never promised", async () => {
      const { key: bearer } = await key({ tpmLimit: 5 });
      const refused = await codeOf(await call(bearer, { model: MODELS["openai-chat"] }));
      expect(refused.message).toContain("the prompt of this call alone has more");
    });

    test("headers tell the narrowest limit in the form of each dialect, Google's clients none", async () => {
      const { key: bearer } = await key({ rpmLimit: 9, tpmLimit: 90_000 });
      const told = async (dialect: DialectName) => {
        g.upstream.always(completeAnswer(dialect, 2));
        const { headers } = await ask(g, dialect, MODELS[dialect], { key: bearer });
        return Object.fromEntries([...headers].filter(([name]) => name.includes("ratelimit")));
      };
      const duration = expect.stringMatching(/^(\d+m)?\d+s$/);
      for (const [dialect, left] of [
        ["openai-chat", "8"],
        ["openai-responses", "7"],
      ] as const)
        expect(await told(dialect)).toEqual({
          "x-ratelimit-limit-requests": "9",
          "x-ratelimit-remaining-requests": left,
          "x-ratelimit-reset-requests": duration,
          "x-ratelimit-limit-tokens": "90000",
          "x-ratelimit-remaining-tokens": expect.stringMatching(/^89\d\d\d$/),
          "x-ratelimit-reset-tokens": duration,
        });
      const moment = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(await told("anthropic")).toEqual({
        "anthropic-ratelimit-requests-limit": "9",
        "anthropic-ratelimit-requests-remaining": "6",
        "anthropic-ratelimit-requests-reset": moment,
        "anthropic-ratelimit-tokens-limit": "90000",
        "anthropic-ratelimit-tokens-remaining": expect.stringMatching(/^89\d\d\d$/),
        "anthropic-ratelimit-tokens-reset": moment,
      });
      expect(await told("gemini")).toEqual({});
    });
  });

  describe("the warning at four fifths", () => {
    const spend = async (bearer: string, calls: number) => {
      for (let count = 0; count < calls; count++) expect((await call(bearer)).status).toBe(200);
      await g.app.deps.ledger.flush();
      await g.app.services.budgetWarnings.settled();
    };
    const noticed = async (userId: number, setting: object) => {
      const { db, accounts } = g.app.deps;
      await db.orm
        .update(db.t.users)
        .set({ setting: JSON.stringify(setting) })
        .where(eq(db.t.users.id, userId));
      await accounts.userChanged(userId);
    };

    test("arrives at the webhook once a period", async () => {
      const bodies: Record<string, unknown>[] = [];
      const receiver = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        async fetch(request) {
          bodies.push((await request.json()) as Record<string, unknown>);
          return new Response("ok");
        },
      });
      const user = await g.app.createUser({ quota: 1_000_000, role: 10 });
      await noticed(user.id, { notify_type: "webhook", webhook_url: `http://127.0.0.1:${receiver.port}/` });
      const { key: bearer } = await key(
        { name: "agent", budgetQuota: 5 * PRICE, budgetPeriod: "day" },
        user.id,
      );
      await spend(bearer, 3);
      expect(bodies).toEqual([]);
      await spend(bearer, 2);
      expect(bodies).toMatchObject([{ type: "budget_warning" }]);
      expect(JSON.stringify(bodies[0])).toContain("agent");
      clock.advance(24 * 3_600_000);
      await spend(bearer, 5);
      expect(bodies).toHaveLength(2);
      await receiver.stop(true);
    });

    test("arrives as a letter to the user whose own budget it is", async () => {
      const user = await g.app.createUser({ quota: 1_000_000 });
      await noticed(user.id, {
        notify_type: "email",
        notification_email: "grace@mail.example",
        language: "en",
      });
      await g.setOption("KeyLimitsDefault", `{"budget_quota": ${5 * PRICE}, "budget_period": "week"}`);
      const { key: bearer } = await key({}, user.id);
      await spend(bearer, 5);
      const letters = () => mail.letters.filter(({ to }) => to.includes("grace@mail.example"));
      await until(() => Promise.resolve(letters().length > 0 || undefined));
      expect(letters()).toHaveLength(1);
      expect(letters()[0]?.subject).toContain("nearly used up");
    });

    test("stands in the operator's inbox where a user has a budget and cannot be told", async () => {
      const user = await g.app.createUser({ quota: 1_000_000, username: "silent" });
      await g.setOption("KeyLimitsDefault", `{"budget_quota": ${5 * PRICE}, "budget_period": "week"}`);
      const { key: bearer } = await key({}, user.id);
      await spend(bearer, 3);
      expect(g.app.deps.inbox.subjects("budget")).toEqual([]);
      await spend(bearer, 1);
      await until(() =>
        Promise.resolve(g.app.deps.inbox.subjects("budget").includes(String(user.id)) || undefined),
      );
      expect(g.app.deps.inbox.subjects("budget")).toEqual([String(user.id)]);
    });
  });

  // In the order of time: the clock never goes back.
  test.each([
    ["a month that has 30 days", "month", "UTC", "2026-11-30T23:59:00Z", "2026-12-01T00:00:00Z"],
    ["a year's end", "month", "Asia/Shanghai", "2026-12-31T15:00:00Z", "2026-12-31T16:00:00Z"],
    ["the 31st of January", "month", "UTC", "2027-01-31T10:00:00Z", "2027-02-01T00:00:00Z"],
    ["February, which is short", "month", "UTC", "2027-02-28T10:00:00Z", "2027-03-01T00:00:00Z"],
    [
      "a week in which clocks go forward",
      "week",
      "America/New_York",
      "2027-03-14T12:00:00Z",
      "2027-03-15T04:00:00Z",
    ],
    ["a day of 23 hours", "day", "Europe/Berlin", "2027-03-27T23:10:00Z", "2027-03-28T22:00:00Z"],
    ["a day of 25 hours", "day", "Europe/Berlin", "2027-10-30T22:10:00Z", "2027-10-31T23:00:00Z"],
    ["a leap day", "month", "UTC", "2028-02-29T10:00:00Z", "2028-03-01T00:00:00Z"],
  ] as const)(
    "a budget is shut until its period ends: %s",
    async (_, budgetPeriod, zone, calledAt, opensAt) => {
      await g.setOption("site.time_zone", zone);
      const { key: bearer } = await key({ budgetQuota: PRICE, budgetPeriod });
      clock.advance(Date.parse(calledAt) - clock.nowMs());
      expect((await call(bearer)).status).toBe(200);
      const seconds = (Date.parse(opensAt) - Date.parse(calledAt)) / 1000;
      const refused = await call(bearer);
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, String(seconds)]);
      clock.advance(seconds * 1000 - 1000);
      const last = await call(bearer, { messages: HI });
      expect([last.status, last.headers.get("retry-after")]).toEqual([429, "1"]);
      clock.advance(1000);
      expect((await call(bearer)).status).toBe(200);
    },
  );
});
