// A quote before a call: what it says, that it costs nothing and asks nobody, and that a call with its id is charged at its
// prices for five minutes, whatever becomes of the prices; every other id is refused by name.
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { DialectName } from "../../../src/protocol/canonical.ts";
import { answer, json } from "../../support/fake-upstream.ts";
import { testClock } from "../../support/clock.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { errorOf, HI, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";
import { completeAnswer } from "./holds-support.ts";

// The encoder has a thread of its own, which a busy machine starts slowly.
setDefaultTimeout(30_000);

const MODELS: Readonly<Record<DialectName, string>> = {
  "openai-chat": "deepseek-chat",
  "openai-responses": "gpt-4.1-nano",
  anthropic: "claude-3-5-haiku-latest",
  gemini: "gemini-2.0-flash",
};
const CHAT = MODELS["openai-chat"];
const IN = 2;
const OUT = 8;

interface Quote {
  quote_id: string;
  revision: string;
  model: string;
  group: string;
  input_tokens: { count: number; method: string; error: number };
  output_tokens: number;
  expected: number;
  worst: number;
  reserve: number;
  cost: { expected: number; worst: number; reserve: number };
  affordable: boolean;
  lines: { kind: string; count: number; quota: number }[];
  rules: unknown[];
  expires_at: number;
}

/** The same question with a limit of 400 in each dialect. */
const ASKED: Readonly<Record<DialectName, { path: string; body: object }>> = {
  "openai-chat": { path: "/v1/chat/completions", body: { model: CHAT, messages: HI, max_tokens: 400 } },
  "openai-responses": {
    path: "/v1/responses",
    body: { model: MODELS["openai-responses"], input: "hi", max_output_tokens: 400 },
  },
  anthropic: { path: "/v1/messages", body: { model: MODELS.anthropic, messages: HI, max_tokens: 400 } },
  gemini: {
    path: `/v1beta/models/${MODELS.gemini}:generateContent`,
    body: {
      contents: [{ role: "user", parts: [{ text: "hi" }] }],
      generationConfig: { maxOutputTokens: 400 },
    },
  },
};

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let g: Gateway;
  const prices = async (ratio: number) => {
    const names = [...Object.values(MODELS), "vectors"];
    await g.setOption("ModelRatio", JSON.stringify(Object.fromEntries(names.map((name) => [name, ratio]))));
  };
  beforeAll(async () => {
    g = await startGateway({
      database,
      clock,
      channel: { type: 1, models: `${MODELS["openai-responses"]},vectors,picture,voice,ear` },
    });
    for (const [type, models] of [
      [43, CHAT],
      [14, MODELS.anthropic],
      [24, MODELS.gemini],
    ])
      await g.app.createChannel({ type, models, baseUrl: g.upstream.url });
    for (const [type, models] of [
      [2, "mj_imagine,mj_inpaint,swap_face"],
      [36, "suno_music,suno_lyrics"],
    ])
      await g.app.createChannel({ type, models, baseUrl: g.upstream.url });
    const names = [...Object.values(MODELS), "vectors"];
    await g.setOption(
      "CompletionRatio",
      JSON.stringify(Object.fromEntries(names.map((name) => [name, OUT / IN]))),
    );
    await g.setOption("ModelPrice", JSON.stringify({ picture: 0.04, voice: 0.01, ear: 0.006 }));
    await g.setOption("CacheRatio", "{}");
    await g.setOption("PriceRules", "{}");
  }, 60_000);
  afterAll(() => g.close());
  beforeEach(async () => {
    g.upstream.reset();
    await prices(IN);
  });

  const person = async (quota = 10_000_000) => {
    const user = await g.app.createUser({ quota });
    const { key } = await g.app.createToken(user.id);
    return { id: user.id, key, headers: { authorization: `Bearer ${key}` } };
  };
  const quoteOf = async (asked: object, headers: Record<string, string>): Promise<Quote> => {
    const response = await g.post("/v1/quote", asked, headers);
    expect(response.status).toBe(200);
    return (await response.json()) as Quote;
  };
  const call = async (headers: Record<string, string>, body: object = ASKED["openai-chat"].body) =>
    g.post("/v1/chat/completions", body, headers);

  test.each(Object.keys(ASKED) as DialectName[])(
    "%s: what a call would cost; nobody is asked or charged",
    async (dialect) => {
      const { id, headers } = await person();
      const asked = ASKED[dialect];
      const quote = await quoteOf(asked, headers);
      const input = quote.input_tokens.count;
      expect(input).toBeGreaterThan(0);
      expect(quote).toMatchObject({
        model: MODELS[dialect],
        group: "default",
        revision: expect.stringMatching(/./),
        output_tokens: 100,
        expected: input * IN + 100 * OUT,
        worst: input * IN + 400 * OUT,
        affordable: true,
        rules: [],
        expires_at: Math.floor(clock.nowMs() / 1000) + 300,
        lines: [
          { kind: "fresh", count: input, quota: input * IN },
          { kind: "output", count: 100, quota: 100 * OUT },
        ],
      });
      expect(quote.input_tokens.method).toBe(dialect === "openai-responses" ? "encoder" : "similar_encoder");
      expect(quote.reserve).toBeLessThanOrEqual(quote.worst);
      expect(quote.cost.worst).toBe(quote.worst / 500_000);
      expect(g.upstream.requests).toHaveLength(0);
      expect(await g.balance(id)).toEqual({ quota: 10_000_000, used: 0, requests: 0 });
      // What was quoted as the worst is what the longest answer is charged.
      g.upstream.always(completeAnswer(dialect, 400));
      const charge = await g.charged(async () =>
        (await g.post(asked.path, asked.body, { ...headers, "x-quote": quote.quote_id })).text(),
      );
      expect(charge.completionTokens).toBe(400);
      expect(Math.abs(charge.quota - quote.worst)).toBeLessThanOrEqual(input * IN);
    },
  );

  test("from the second call on what is expected is the median of the caller's last calls", async () => {
    const { headers } = await person();
    for (const tokens of [10, 30, 20]) {
      g.upstream.script(
        answer("hi", { usage: { prompt_tokens: 4, completion_tokens: tokens, total_tokens: 4 + tokens } }),
      );
      await g.charged(async () => (await call(headers)).text());
    }
    expect((await quoteOf(ASKED["openai-chat"], headers)).output_tokens).toBe(20);
    const other = await person();
    expect((await quoteOf(ASKED["openai-chat"], other.headers)).output_tokens).toBe(100);
  });

  test("a change of prices does not reach a quoted call; without the quote, and after five minutes, it does", async () => {
    const { headers } = await person();
    g.upstream.always(
      answer("hi", { usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 } }),
    );
    const { quote_id: id, expires_at: expiresAt } = await quoteOf(ASKED["openai-chat"], headers);
    await prices(IN * 10);
    const chargeWith = async (more: Record<string, string>) =>
      (await g.charged(async () => (await call({ ...headers, ...more })).text())).quota;
    expect(await chargeWith({ "x-quote": id })).toBe(10 * IN + 10 * OUT);
    expect(await chargeWith({})).toBe((10 * IN + 10 * OUT) * 10);
    expect(await chargeWith({ "x-quote": id, "x-max-quota": "90" })).toBe(90);
    const asked = g.upstream.requests.length;
    clock.advance(expiresAt * 1000 - clock.nowMs() + 1000);
    const response = await call({ ...headers, "x-quote": id });
    expect([response.status, (await errorOf(response)).code]).toEqual([400, "quote_expired"]);
    expect(g.upstream.requests).toHaveLength(asked);
  });

  test("quotes of others and made-up ones are refused by name, before anybody is asked", async () => {
    const owner = await person();
    const { quote_id: id } = await quoteOf(ASKED["openai-chat"], owner.headers);
    const refusalOf = async (headers: Record<string, string>, quote: string, body?: object) => {
      const response = await call({ ...headers, "x-quote": quote }, body);
      return [response.status, response.headers.get("x-weir-error-code")];
    };
    const stranger = await person();
    const second = { authorization: `Bearer ${(await g.app.createToken(owner.id)).key}` };
    const foreign = [400, "quote_foreign"];
    expect(await refusalOf(stranger.headers, id)).toEqual(foreign);
    expect(await refusalOf(second, id)).toEqual(foreign);
    expect(await refusalOf(owner.headers, id, { model: MODELS["openai-responses"], messages: HI })).toEqual(
      foreign,
    );
    const at = id.length >> 1;
    const forged = id.slice(0, at) + (id[at] === "A" ? "B" : "A") + id.slice(at + 1);
    for (const made of [forged, "", "x", id.slice(0, -4), Buffer.from('{"user":1}').toString("base64url")])
      expect(await refusalOf(owner.headers, made)).toEqual([400, "quote_invalid"]);
    expect(g.upstream.requests).toHaveLength(0);
  });

  test("a cap and a small balance are told before: the cap is the worst, what cannot be paid is not affordable", async () => {
    const { headers } = await person(100);
    const poor = await quoteOf({ ...ASKED["openai-chat"] }, headers);
    expect(poor.affordable).toBe(false);
    const rich = await person();
    const capped = await quoteOf(ASKED["openai-chat"], { ...rich.headers, "x-max-quota": "1000" });
    expect(capped.worst).toBeLessThanOrEqual(1000);
    expect(capped.worst).toBeGreaterThan(1000 - OUT - IN);
    expect(capped.reserve).toBe(capped.worst);
    const below = await g.post("/v1/quote", ASKED["openai-chat"], { ...rich.headers, "x-max-quota": "1" });
    expect([below.status, (await errorOf(below)).code]).toEqual([402, "max_cost_exceeded"]);
  });

  test("every inference route with a price of its own has a quote; others say that they have none", async () => {
    const { headers } = await person();
    const expectedOf = async (path: string, body: object) =>
      (await quoteOf({ path, body }, headers)).expected;
    expect(await expectedOf("/v1/images/generations", { model: "picture", prompt: "a pear", n: 2 })).toBe(
      40_000,
    );
    expect(await expectedOf("/v1/images/edits", { model: "picture", prompt: "a pear" })).toBe(20_000);
    expect(await expectedOf("/v1/audio/speech", { model: "voice", input: "hello", voice: "alloy" })).toBe(
      5000,
    );
    for (const path of ["/v1/audio/transcriptions", "/v1/audio/translations"])
      expect(await quoteOf({ path, body: { model: "ear" } }, headers)).toMatchObject({
        expected: 3000,
        worst: 3000,
      });
    const vectors = await quoteOf(
      { path: "/v1/embeddings", body: { model: "vectors", input: "hello" } },
      headers,
    );
    expect(vectors.expected).toBe(vectors.input_tokens.count * IN);
    expect(vectors.worst).toBe(vectors.expected);
    const refusalOf = async (body: object) => {
      const response = await g.post("/v1/quote", body, headers);
      return [response.status, (await errorOf(response)).code];
    };
    // How long a recording is nobody knows here: of a price by its length a quote would say too little.
    const heard = { path: "/v1/audio/transcriptions", body: { model: "vectors" } };
    expect(await refusalOf(heard)).toEqual([400, "quote_path_unknown"]);
    expect(await refusalOf({ path: "/v1/files", body: {} })).toEqual([400, "quote_path_unknown"]);
    expect(await refusalOf({ path: "/v1/constructor", body: {} })).toEqual([400, "quote_path_unknown"]);
    expect(await refusalOf({ body: {} })).toEqual([400, "field_required"]);
    expect(await refusalOf({ path: "/v1/chat/completions", body: { model: CHAT } })).toEqual([
      400,
      expect.stringMatching(/./),
    ]);
    expect((await g.post("/v1/quote", ASKED["openai-chat"], { authorization: "Bearer sk-no" })).status).toBe(
      401,
    );
    expect(g.upstream.requests).toHaveLength(0);
  });

  test("tasks: quoted as their submission would be read, and charged so, whatever becomes of the price", async () => {
    const price = 50_000;
    const { headers, id } = await person();
    const imagine = { path: "/mj/submit/imagine", body: { prompt: "a weir" } };
    for (const [path, body, model, units] of [
      [imagine.path, imagine.body, "mj_imagine", price],
      ["/mj-fast/mj/submit/imagine", imagine.body, "mj_imagine", price],
      ["/mj/submit/action", { taskId: "1", customId: "MJ::Inpaint::1::x" }, "mj_inpaint", 0],
      ["/mj/insight-face/swap", { sourceBase64: "x", targetBase64: "y" }, "swap_face", price],
      ["/suno/submit/lyrics", { prompt: "rain" }, "suno_lyrics", price],
    ] as const)
      expect(await quoteOf({ path, body }, headers)).toMatchObject({
        model,
        expected: units,
        worst: units,
        reserve: units,
        affordable: true,
        input_tokens: { count: 0 },
      });
    expect(await quoteOf(imagine, (await person(price - 1)).headers)).toMatchObject({ affordable: false });
    const refusalOf = async (path: string, body: object, more: Record<string, string> = {}) => {
      const response = await g.post(path, body, { ...headers, ...more });
      return [response.status, response.headers.get("x-weir-error-code")];
    };
    expect(await refusalOf("/v1/quote", { path: imagine.path, body: {} })).toEqual([
      400,
      "task_request_invalid",
    ]);
    expect(await refusalOf("/v1/quote", { path: "/suno/submit/dance", body: {} })).toEqual([
      400,
      "task_request_invalid",
    ]);
    expect(await refusalOf("/v1/quote", imagine, { "x-max-quota": String(price - 1) })).toEqual([
      402,
      "max_cost_exceeded",
    ]);
    expect(g.upstream.requests).toHaveLength(0);

    const drawing = await quoteOf(imagine, headers);
    const song = await quoteOf({ path: "/suno/submit/music", body: {} }, headers);
    await g.setOption("GroupRatio", JSON.stringify({ default: 2, vip: 1, svip: 1 }));
    let task = 0;
    const chargeOf = async (path: string, body: object, quote?: string) => {
      const answered = path.startsWith("/suno")
        ? { code: "success", data: `${++task}` }
        : { code: 1, result: `${++task}` };
      g.upstream.always(json(answered));
      const before = (await g.balance(id)).quota;
      const response = await g.post(path, body, { ...headers, ...(quote ? { "x-quote": quote } : {}) });
      expect(response.status).toBe(200);
      return before - (await g.balance(id)).quota;
    };
    expect(await chargeOf(imagine.path, imagine.body, drawing.quote_id)).toBe(price);
    expect(await chargeOf(imagine.path, imagine.body)).toBe(2 * price);
    expect(await chargeOf("/suno/submit/music", {}, song.quote_id)).toBe(price);
    const asked = g.upstream.requests.length;
    for (const [quote, code] of [
      [song.quote_id, "quote_foreign"],
      ["x", "quote_invalid"],
    ] as const)
      expect(await refusalOf(imagine.path, imagine.body, { "x-quote": quote })).toEqual([400, code]);
    clock.advance(drawing.expires_at * 1000 - clock.nowMs() + 1000);
    expect(await refusalOf(imagine.path, imagine.body, { "x-quote": drawing.quote_id })).toEqual([
      400,
      "quote_expired",
    ]);
    expect(g.upstream.requests).toHaveLength(asked);
    await g.setOption("GroupRatio", JSON.stringify({ default: 1, vip: 1, svip: 1 }));
  });

  test("the playground asks with its session, and for the group that its body names", async () => {
    const post = (headers: Record<string, string>) =>
      fetch(`${g.app.url}/pg/quote`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({
          path: "/v1/chat/completions",
          body: { model: CHAT, messages: HI, group: "default", max_tokens: 400 },
        }),
      });
    const response = await post(g.user.headers);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ model: CHAT, group: "default", affordable: true });
    expect((await post({})).status).toBe(401);
  });
});
