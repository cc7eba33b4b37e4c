// What is held for a call, over the wire in all four dialects: a small balance is served with a limit that it can pay,
// a stream ends cleanly where it cannot follow, and whatever is delivered is charged.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { audit } from "../../../src/core/ledger/audit.ts";
import { FLOOR_TOKENS } from "../../../src/core/prices/holds.ts";
import { encode } from "gpt-tokenizer/encoding/cl100k_base";
import type { Reservation } from "../../../src/core/deps.ts";
import { answer, gate } from "../../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import {
  ask,
  CLEAN_END,
  completeAnswer,
  DIALECTS,
  IN,
  INPUT_TOKENS,
  lastBody,
  limitOf,
  longStream,
  MODELS,
  OUT,
  person,
  startPriced,
  wordsIn,
} from "./holds-support.ts";
import { until } from "../support.ts";
import type { Gateway } from "../support.ts";

const REASONER = "gpt-5-pro-test";

/** Text of which three letters are two tokens, where the estimate takes four letters for one. */
function dense(chars: number, seed: number): string {
  const signs = "!#$%&()*+,-./:;<=>?[]^_{|}~0123456789";
  const at = (i: number) => i * i * 7 + i * 13 + seed * 31 + (i % 11) * (i % 7);
  return Array.from({ length: chars }, (_, i) => signs[at(i) % signs.length]).join("");
}

/** An answer of so many tokens to the last. */
const words = (count: number): string => Array<string>(count).fill("tip").join(" ");

/** The encoder's thread cannot start until the test lets it. */
function withoutEncoder(): { restore: () => void } {
  const { Worker: real } = globalThis;
  globalThis.Worker = new Proxy(real, {
    construct(target, [url, ...more]: ConstructorParameters<typeof Worker>) {
      if (String(url).includes("token-worker")) throw new Error("no thread");
      return new target(url, ...more);
    },
  });
  return { restore: () => void (globalThis.Worker = real) };
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let g: Gateway;
  beforeAll(async () => {
    g = await startPriced(database, [REASONER, "tiny-embedding", "old-completion"]);
  }, 60_000);
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  describe.each(DIALECTS)("%s", (dialect) => {
    const model = MODELS[dialect];

    test("128,000 tokens asked for on a small balance: served, with the limit that a quarter of it pays", async () => {
      const { id, key } = await person(g, 20_000);
      g.upstream.always(completeAnswer(dialect, 50_000));
      const charge = await g.charged(async () => {
        const response = await ask(g, dialect, model, { key, limit: 128_000 });
        expect(response.status).toBe(200);
        await response.text();
      });
      const limit = limitOf(dialect, lastBody(g)) ?? 0;
      expect(limit).toBeGreaterThan(FLOOR_TOKENS);
      expect(limit * OUT).toBeLessThanOrEqual(5000);
      expect(charge.other["limited"]).toBe("balance");
      expect(charge.quota).toBe(INPUT_TOKENS * IN + limit * OUT);
      expect((await g.balance(id)).quota).toBe(20_000 - charge.quota);
    });

    test("no limit asked for: what a small balance pays is sent; on less, what there is; on nothing, nothing", async () => {
      g.upstream.always(completeAnswer(dialect, 50_000));
      const limitOn = async (quota: number) => {
        const { id, key } = await person(g, quota);
        const response = await ask(g, dialect, model, { key });
        await response.text();
        const { quota: left } = await g.balance(id);
        expect(left).toBeGreaterThanOrEqual(0);
        return response.status === 200 ? limitOf(dialect, lastBody(g)) : response.status;
      };
      expect(await limitOn(8000)).toBe(FLOOR_TOKENS);
      const few = (await limitOn(200)) ?? 0;
      expect(few).toBeGreaterThanOrEqual(16);
      expect(few).toBeLessThan(50);
      const asked = g.upstream.requests.length;
      expect(await limitOn(30)).toBe(403);
      expect(g.upstream.requests).toHaveLength(asked);
    });

    test("far from the limit nothing of the request is touched and nothing is said in the log", async () => {
      const { key } = await person(g, 10_000_000);
      g.upstream.always(completeAnswer(dialect, 20));
      const charge = await g.charged(async () =>
        (await ask(g, dialect, model, { key, limit: 5000, fields: { zero: 0 } })).text(),
      );
      expect(limitOf(dialect, lastBody(g))).toBe(5000);
      expect(charge.other).not.toHaveProperty("limited");
    });

    test("a stream that the balance cannot follow ends cleanly, delivered to the last unit it pays, and not beyond", async () => {
      const balance = 6000;
      const { id, key } = await person(g, balance);
      g.upstream.script(longStream(dialect, { words: 6000, per: 10 }));
      let text = "";
      const charge = await g.charged(async () => {
        const response = await ask(g, dialect, model, { key, stream: true });
        expect(response.status).toBe(200);
        text = await response.text();
      });
      expect(CLEAN_END[dialect].filter((part) => !text.includes(part))).toEqual([]);
      expect(text).not.toContain('"error":{');
      const words = wordsIn(text);
      expect(words * OUT).toBeGreaterThan(balance * 0.9);
      expect(words * OUT).toBeLessThan(balance);
      expect(Math.abs(charge.completionTokens - words)).toBeLessThanOrEqual(1);
      expect(charge.quota).toBe(charge.promptTokens * IN + charge.completionTokens * OUT);
      expect(charge.other).toMatchObject({ stopped: "balance", end_reason: "balance", estimated: true });
      const left = await g.balance(id);
      expect(left.quota).toBe(balance - charge.quota);
      expect(left.quota).toBeGreaterThanOrEqual(0);
      // The upstream was hung up on.
      const [request] = g.upstream.requests;
      await request?.closed;
    });

    test("a long stream without a word on usage is charged by its length", async () => {
      const { id, key } = await person(g, 10_000_000);
      g.upstream.script(longStream(dialect, { words: 4068, per: 50 }));
      const charge = await g.charged(async () =>
        (await ask(g, dialect, model, { key, stream: true, limit: 100_000 })).text(),
      );
      expect(Math.abs(charge.completionTokens - 4068)).toBeLessThanOrEqual(2);
      expect(charge.quota).toBe(charge.promptTokens * IN + charge.completionTokens * OUT);
      expect((await g.balance(id)).quota).toBe(10_000_000 - charge.quota);
    });
  });

  test.each([
    ["openai-chat", "anthropic"],
    ["anthropic", "openai-chat"],
    ["gemini", "openai-chat"],
    ["openai-responses", "openai-chat"],
  ] as const)("a stream of %s clients told by %s upstreams ends as cleanly", async (client, upstream) => {
    const balance = 5000;
    const { id, key } = await person(g, balance);
    g.upstream.script(longStream(upstream, { words: 6000, per: 10 }));
    let text = "";
    const charge = await g.charged(async () => {
      text = await (await ask(g, client, MODELS[upstream], { key, stream: true })).text();
    });
    expect(CLEAN_END[client].filter((part) => !text.includes(part))).toEqual([]);
    const words =
      client === "openai-responses"
        ? wordsIn(text.split("response.output_text.done")[0] ?? "")
        : wordsIn(text);
    // Counted by the encoder in pieces, whose edges may part a word.
    expect(Math.abs(charge.completionTokens - words)).toBeLessThanOrEqual(40);
    expect(words * OUT).toBeGreaterThan(balance * 0.9);
    if (client === "openai-responses") {
      // The closing events repeat what was delivered, and no more.
      const done = /"type":"response.output_text.done"[^\n]*?"text":"([^"]*)"/.exec(text)?.[1] ?? "";
      expect(wordsIn(done)).toBe(words);
    }
    expect((await g.balance(id)).quota).toBe(balance - charge.quota);
    expect((await g.balance(id)).quota).toBeGreaterThanOrEqual(0);
  });

  test("190 parallel calls spend no more than the balance, and what reached people was paid", async () => {
    const balance = 100_000;
    const { id, key } = await person(g, balance);
    const model = MODELS["openai-chat"];
    g.upstream.always((request) =>
      request.json()["stream"] === true
        ? longStream("openai-chat", { words: 16_000, per: 400, usage: { input: 10, output: 16_000 } })
        : completeAnswer("openai-chat", 16_000)(request),
    );
    const seen = await Promise.all(
      Array.from({ length: 190 }, async (_, at) => {
        const response = await ask(g, "openai-chat", model, { key, stream: at % 2 === 0 });
        return { status: response.status, words: wordsIn(await response.text()) };
      }),
    );
    expect(seen.filter(({ status }) => ![200, 403, 429].includes(status))).toEqual([]);
    const delivered = seen.filter(({ status }) => status === 200).reduce((sum, { words }) => sum + words, 0);
    const { quota, used } = await g.balance(id);
    expect(delivered).toBeGreaterThan(0);
    expect(quota).toBeGreaterThanOrEqual(0);
    expect(used).toBe(balance - quota);
    expect(used).toBeGreaterThanOrEqual(delivered * OUT);
    const { differences } = await audit(g.app.deps.db);
    expect(differences).toEqual([]);
  }, 60_000);

  /** Asks with a prompt that counts for more than it seems; `limit` and balance are what the model's price makes of it. */
  const askDense = (key: string, fields: { content: string; stream?: boolean; limit?: number }) => {
    const messages = [{ role: "user", content: fields.content }];
    return ask(g, "openai-chat", MODELS["openai-chat"], { key, ...fields, fields: { messages } });
  };
  /** A whole answer as long as its limit, without a word on usage. */
  const silent = (body: Record<string, unknown>) =>
    answer(words(limitOf("openai-chat", body) ?? 5000), { usage: null });

  test("two calls that nobody reports on share 4,400 units: what each prompt counts for is held, and nothing is owed", async () => {
    const { id, key } = await person(g, 4400);
    const door = gate();
    g.upstream.always((request) => ({ ...silent(request.json()), before: door }));
    const first = askDense(key, { content: dense(160, 1) });
    await g.upstream.request(0);
    const second = askDense(key, { content: dense(160, 2) });
    await g.upstream.request(1);
    door.open();
    for (const response of [await first, await second]) {
      expect(response.status).toBe(200);
      await response.text();
    }
    const { quota, used } = await g.balance(id);
    expect(quota).toBeGreaterThanOrEqual(0);
    expect(quota + used).toBe(4400);
    expect(used).toBeGreaterThan(4300);
  });

  test("a crowd of 20 with prompts that count for more than they seem spends no more than there is", async () => {
    const { id, key } = await person(g, 10_000);
    const door = gate();
    g.upstream.always((request) => {
      const { messages } = request.json() as { messages: { content: string }[] };
      const input = encode(messages[0]?.content ?? "").length;
      const usage = { prompt_tokens: input, completion_tokens: 16, total_tokens: input + 16 };
      return { ...answer("tip ".repeat(16), { usage }), before: door };
    });
    let refused = 0;
    const calls = Array.from({ length: 20 }, async (_, at) => {
      const response = await askDense(key, { content: dense(2000, at), limit: 16 });
      if (response.status !== 200) refused++;
      await response.text();
      return response.status;
    });
    await until(async () => (g.upstream.requests.length + refused === 20 ? true : undefined));
    door.open();
    const served = (await Promise.all(calls)).filter((status) => status === 200).length;
    const { quota, used } = await g.balance(id);
    expect(quota).toBeGreaterThanOrEqual(0);
    expect(quota + used).toBe(10_000);
    // Nobody is refused for tokens that are none: a quarter and more of what is there is never unsure.
    expect(served).toBeGreaterThanOrEqual(5);
  });

  test("where the ledger has less than memory knew, the prompt is counted before the limit is sent", async () => {
    const { key } = await person(g, 10_000);
    const { ledger } = g.app.deps;
    const { reserve } = ledger;
    const rest = 366;
    let given: Reservation | undefined;
    ledger.reserve = async (asked) =>
      (given = await reserve({ ...asked, amount: Math.max(asked.least ?? 0, Math.min(asked.amount, rest)) }));
    g.upstream.always((request) => silent(request.json()));
    try {
      const charge = await g.charged(async () =>
        (await askDense(key, { content: dense(160, 3), limit: 600 })).text(),
      );
      expect(given?.amount).toBe(rest);
      expect(charge.quota).toBeLessThanOrEqual(rest);
      expect(charge.quota).toBeGreaterThan(rest - 2 * OUT);
    } finally {
      ledger.reserve = reserve;
    }
  });

  test("a stream with such a prompt ends at the last unit that is there, and not beyond", async () => {
    const { id, key } = await person(g, 40_000);
    g.upstream.script(longStream("openai-chat", { words: 12_000, per: 5 }));
    const charge = await g.charged(async () =>
      (await askDense(key, { content: dense(2000, 4), stream: true })).text(),
    );
    expect(charge.other).toMatchObject({ stopped: "balance" });
    const { quota } = await g.balance(id);
    expect(quota).toBe(40_000 - charge.quota);
    expect(quota).toBeGreaterThanOrEqual(0);
    expect(quota).toBeLessThan(100);
  });

  test("a stream whose hold cannot grow beside another's goes on when that one has ended", async () => {
    const { key } = await person(g, 10_000);
    const door = gate();
    g.upstream.script(longStream("openai-chat", { words: 1000, per: 500, between: door }));
    const first = await ask(g, "openai-chat", MODELS["openai-chat"], { key, stream: true, limit: 1000 });
    door.open();
    expect(wordsIn(await first.text())).toBe(1000);
  });
});

test("an encoder that gives no answer: the prompt is held as long as it can be, whatever it counts for later", async () => {
  const balance = 470;
  const encoder = withoutEncoder();
  const g = await startPriced("sqlite", []);
  try {
    const { id, key } = await person(g, balance);
    g.upstream.always((request) => {
      // It is back when the answer is charged.
      encoder.restore();
      return answer(words(limitOf("openai-chat", request.json()) ?? 0), { usage: null });
    });
    const charge = await g.charged(async () =>
      (
        await ask(g, "openai-chat", MODELS["openai-chat"], {
          key,
          limit: 100,
          fields: { messages: [{ role: "user", content: dense(160, 5) }] },
        })
      ).text(),
    );
    expect(charge.promptTokens).toBeGreaterThan(100);
    expect(charge.quota).toBeLessThanOrEqual(balance);
    expect((await g.balance(id)).quota).toBe(balance - charge.quota);
  } finally {
    encoder.restore();
    await g.close();
  }
});

test("a balance that pays the estimate of a prompt which nobody could count: come again, not too poor", async () => {
  const encoder = withoutEncoder();
  const g = await startPriced("sqlite", []);
  try {
    const { id, key } = await person(g, 300);
    g.upstream.always(answer("tip"));
    const send = (length: number) =>
      ask(g, "openai-chat", MODELS["openai-chat"], {
        key,
        limit: 16,
        fields: { messages: [{ role: "user", content: words(length) }] },
      });
    const early = await send(100);
    expect([early.status, await early.text()]).toEqual([429, expect.stringContaining("count_busy")]);
    expect(early.headers.get("retry-after")).toBe("1");
    // Not even the estimate is paid.
    const poor = await send(2000);
    expect([poor.status, await poor.text()]).toEqual([
      403,
      expect.stringContaining("insufficient_user_quota"),
    ]);
    expect((await g.balance(id)).quota).toBe(300);
    encoder.restore();
    const later = await send(100);
    expect([later.status, await later.text()]).toEqual([200, expect.stringContaining("tip")]);
  } finally {
    encoder.restore();
    await g.close();
  }
});
