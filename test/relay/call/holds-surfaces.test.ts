// What is held on every other surface: thoughts that are billed unseen, several answers, tools, stored answers, vectors,
// legacy completions, bodies that are passed through; and the clean ends as the real SDKs read them.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import type { Reservation, ReserveRequest } from "../../../src/core/deps.ts";
import { answer, sse } from "../../support/fake-upstream.ts";
import type { Script } from "../../support/fake-upstream.ts";
import { longStream, completeAnswer, wordsIn } from "./holds-support.ts";
import { HI, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const CHAT = "deepseek-chat";
const CLAUDE = "claude-sonnet-4-5";
const GEMINI = "gemini-2.0-flash";
const GPT = "gpt-4.1-nano";
const REASONER = "o4-mini";
/** Served by the Responses API alone. */
const CODEX = "gpt-5-codex";
const BALANCE = 20_000;

let g: Gateway;
beforeAll(async () => {
  g = await startGateway({
    channel: { type: 1, models: `${GPT},${REASONER},${CODEX},vectors,old,gpt-image-1,mapped` },
  });
  for (const [type, models] of [
    [43, CHAT],
    [14, `${CLAUDE},${CLAUDE}-thinking`],
    [24, GEMINI],
  ])
    await g.app.createChannel({ type, models, baseUrl: g.upstream.url });
  await g.app.createChannel({
    type: 1,
    models: "renamed",
    modelMapping: JSON.stringify({ renamed: REASONER }),
    baseUrl: g.upstream.url,
  });
  await g.app.createChannel({
    type: 43,
    models: "overridden",
    paramOverride: JSON.stringify({ max_tokens: 3000 }),
    baseUrl: g.upstream.url,
  });
  const names = [
    CHAT,
    CLAUDE,
    `${CLAUDE}-thinking`,
    GEMINI,
    GPT,
    REASONER,
    CODEX,
    "vectors",
    "old",
    "gpt-image-1",
    "renamed",
    "overridden",
  ];
  const all = (value: number) => JSON.stringify(Object.fromEntries(names.map((name) => [name, value])));
  await g.setOption("ModelRatio", all(1));
  await g.setOption("CompletionRatio", all(4));
  await g.setOption("CacheRatio", "{}");
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

async function person(quota: number): Promise<{ id: number; key: string; headers: Record<string, string> }> {
  const user = await g.app.createUser({ quota });
  const { key } = await g.app.createToken(user.id);
  return { id: user.id, key, headers: { authorization: `Bearer ${key}` } };
}

/** What the ledger is asked for while the call runs. */
async function held(call: () => Promise<unknown>): Promise<{ asked: ReserveRequest; amount: number }> {
  const { ledger } = g.app.deps;
  const { reserve } = ledger;
  const seen: { asked: ReserveRequest; amount: number }[] = [];
  ledger.reserve = (asked) => {
    const given = reserve(asked);
    const note = (reservation: Reservation) => {
      seen.push({ asked, amount: reservation.amount });
      return reservation;
    };
    return given instanceof Promise ? given.then(note) : note(given);
  };
  try {
    await call();
  } finally {
    ledger.reserve = reserve;
  }
  const [first] = seen;
  if (!first) throw new Error("nothing was held");
  return first;
}

const lastBody = () => g.upstream.requests.at(-1)?.json() ?? {};
const drained = async (response: Response | Promise<Response>) => {
  const { status } = await response;
  return { status, text: await (await response).text() };
};
const chat = (fields: Record<string, unknown>, headers: Record<string, string>) =>
  drained(g.post("/v1/chat/completions", { model: CHAT, messages: HI, ...fields }, headers));
/** Prompt of `HI` by the cheap count, a word and two frames; and what is held for it: its two letters may be two tokens. */
const PROMPT = 7;
const HELD = 8;

describe("a limit below sixteen, which the Responses API refuses", () => {
  const ask = (max_tokens: number, headers: Record<string, string>) =>
    drained(g.post("/v1/messages", { model: CODEX, messages: HI, max_tokens }, headers));

  test("is sent as sixteen by clients of other dialects, and held", async () => {
    g.upstream.always(completeAnswer("openai-responses", 16));
    const seen: unknown[] = [];
    for (const limit of [1, 15, 16, 17]) {
      const { headers } = await person(BALANCE);
      const { amount } = await held(() => ask(limit, headers));
      seen.push([lastBody()["max_output_tokens"], amount]);
    }
    const { headers } = await person(BALANCE);
    const full = (await held(() => ask(16, headers))).amount;
    expect(seen).toEqual([
      [16, full],
      [16, full],
      [16, full],
      [17, full + 4],
    ]);
    // The prompt counts as it is there, hardly less than was held for it.
    const poor = await person(full - 10);
    const asked = g.upstream.requests.length;
    expect((await ask(1, poor.headers)).status).toBe(403);
    expect(g.upstream.requests).toHaveLength(asked);
  });

  test.each<[string, object]>([
    ["/v1/messages", { messages: HI, max_tokens: 500 }],
    ["/v1/responses", { input: HI }],
  ])(
    "is not what a cap of %s comes to: such a call is refused, and told what it costs",
    async (path, body) => {
      g.upstream.always(completeAnswer("openai-responses", 16));
      const { headers } = await person(BALANCE);
      const under = (cap: number) =>
        drained(g.post(path, { model: CODEX, ...body }, { ...headers, "x-max-quota": String(cap) }));
      const least = Number(/(\d+) 额度/.exec((await under(40)).text)?.[1]);
      expect(least).toBeGreaterThan(16 * 4);
      expect((await under(least - 1)).status).toBe(402);
      expect(g.upstream.requests).toHaveLength(0);
      expect((await under(least)).status).toBe(200);
      expect(lastBody()["max_output_tokens"]).toBe(16);
    },
  );
});

describe("thoughts that are billed unseen", () => {
  test.each([REASONER, "renamed"])(
    "a stream of %s is limited like a call that is no stream",
    async (model) => {
      const { headers } = await person(BALANCE);
      g.upstream.always(longStream("openai-chat", { words: 5, per: 5, usage: { input: 4, output: 900 } }));
      const charge = await g.charged(() => chat({ model, stream: true }, headers));
      const limit = Number(lastBody()["max_completion_tokens"]);
      expect(limit).toBe(Math.floor((BALANCE / 4 - PROMPT) / 4));
      expect(charge.other["limited"]).toBe("balance");
    },
  );

  test("a fixed budget leaves room for an answer, and is held on top of it", async () => {
    const { headers } = await person(BALANCE);
    g.upstream.always(completeAnswer("anthropic", 10));
    const body = {
      model: CLAUDE,
      messages: HI,
      max_tokens: 60_000,
      thinking: { type: "enabled", budget_tokens: 2000 },
    };
    await drained(g.post("/v1/messages", body, headers));
    expect(lastBody()).toMatchObject({ max_tokens: 3024, thinking: { budget_tokens: 2000 } });
    const poor = await person(8000);
    const asked = g.upstream.requests.length;
    expect((await drained(g.post("/v1/messages", body, poor.headers))).status).toBe(403);
    expect(g.upstream.requests).toHaveLength(asked);
  });

  test("a -thinking name keeps its budget below the limit that is sent", async () => {
    const { headers } = await person(BALANCE);
    g.upstream.always(completeAnswer("anthropic", 10));
    await drained(
      g.post("/v1/messages", { model: `${CLAUDE}-thinking`, messages: HI, max_tokens: 60_000 }, headers),
    );
    const { max_tokens: limit, thinking } = lastBody() as {
      max_tokens: number;
      thinking: { budget_tokens: number };
    };
    expect(limit * 4).toBeLessThanOrEqual(BALANCE / 2);
    expect(thinking.budget_tokens).toBeLessThan(limit);
    expect(thinking.budget_tokens).toBeGreaterThanOrEqual(1024);
  });
});

describe("what is held", () => {
  const RICH = 1_000_000_000;
  test("the prompt and what the limit can cost, for each of several answers", async () => {
    const { headers } = await person(RICH);
    expect((await held(() => chat({ max_tokens: 100 }, headers))).amount).toBe(HELD + 400);
    expect((await held(() => chat({ max_tokens: 100, n: 3 }, headers))).amount).toBe(HELD + 1200);
    const longest = g.app.deps.prices.maxOutput(CHAT) ?? 0;
    expect(longest).toBeGreaterThan(0);
    expect((await held(() => chat({}, headers))).amount).toBe(HELD + 4 * longest);
  });

  test("an operator's override counts as the client's limit, and stands as far as the balance pays it", async () => {
    const { headers } = await person(RICH);
    expect((await held(() => chat({ model: "overridden", max_tokens: 10 }, headers))).amount).toBe(
      HELD + 12_000,
    );
    expect(lastBody()["max_tokens"]).toBe(3000);
    const poor = await person(6000);
    await chat({ model: "overridden", max_tokens: 10 }, poor.headers);
    expect(lastBody()["max_tokens"]).toBe(1024);
  });

  test("a stream: the usual answer, learnt from what the model answers here, and never more than the client's limit", async () => {
    const { headers } = await person(RICH);
    const first = (fields: object) => held(() => chat({ stream: true, ...fields }, headers));
    g.upstream.always(
      longStream("openai-chat", { words: 2000, per: 100, usage: { input: 4, output: 2000 } }),
    );
    await chat({ model: GPT, stream: true }, headers);
    expect((await first({ model: GPT })).amount).toBe(HELD + 4 * 2000);
    expect((await first({ model: GPT, max_tokens: 50 })).amount).toBe(HELD + 200);
    g.upstream.always(undefined);
    // Short answers never bring it below five hundred.
    await chat({ stream: true }, headers);
    expect((await first({})).amount).toBeGreaterThanOrEqual(HELD + 4 * 500);
  });

  test("cache writes at their dearer price where the request may make some", async () => {
    const { headers } = await person(RICH);
    g.upstream.always(completeAnswer("anthropic", 5));
    const ask = (cache?: object) =>
      held(() =>
        drained(
          g.post(
            "/v1/messages",
            {
              model: CLAUDE,
              max_tokens: 1,
              messages: [
                {
                  role: "user",
                  content: [
                    { type: "text", text: "tip ".repeat(1000), ...(cache ? { cache_control: cache } : {}) },
                  ],
                },
              ],
            },
            headers,
          ),
        ),
      );
    const plain = (await ask()).amount - 4;
    expect((await ask({ type: "ephemeral" })).amount).toBe(Math.ceil(plain * 1.25) + 4);
    expect((await ask({ type: "ephemeral", ttl: "1h" })).amount).toBe(plain * 2 + 4);
  });

  test("hosted tools: their price for each call that is allowed, else for ten", async () => {
    const { headers } = await person(RICH);
    g.upstream.always(completeAnswer("anthropic", 5));
    const ask = (tools: object[]) =>
      held(() =>
        drained(g.post("/v1/messages", { model: CLAUDE, max_tokens: 1, messages: HI, tools }, headers)),
      );
    const search = { type: "web_search_20250305", name: "web_search" };
    const few = (await ask([{ ...search, max_uses: 3 }])).amount;
    const many = (await ask([search])).amount;
    // $10 a thousand: the shipped row of the model.
    expect(Math.abs(many - few - (7 * 10 * 500_000) / 1000)).toBeLessThan(20);
  });

  test("a stored answer is read again: all its tokens are held", async () => {
    const { headers } = await person(RICH);
    g.upstream.always(completeAnswer("openai-responses", 700));
    const ask = (previous?: string) =>
      held(() =>
        drained(
          g.post(
            "/v1/responses",
            {
              model: GPT,
              input: "hi",
              max_output_tokens: 10_000,
              ...(previous ? { previous_response_id: previous } : {}),
            },
            headers,
          ),
        ),
      );
    const { amount } = await ask();
    expect((await ask("resp_up")).amount).toBe(amount + 704);
  });

  test("vectors hold their input and no answer; pictures by the token hold 6,240 each", async () => {
    const { headers } = await person(RICH);
    const vectors = await held(() =>
      drained(g.post("/v1/embeddings", { model: "vectors", input: "tip ".repeat(1000) }, headers)),
    );
    // Nobody has counted them: each byte may be a token.
    expect(vectors.amount).toBe(4000);
    const { headers: near } = await person(1500);
    const counted = await held(() =>
      drained(g.post("/v1/embeddings", { model: "vectors", input: "tip ".repeat(1000) }, near)),
    );
    expect(counted.amount).toBeLessThan(1100);
    const pictures = await held(() =>
      drained(g.post("/v1/images/generations", { model: "gpt-image-1", prompt: "a cat", n: 2 }, headers)),
    );
    expect(pictures.amount).toBe("a cat".length + 2 * 6240 * 4);
  });

  test("PreConsumedQuota is the least that a call without a limit holds, and refuses nobody", async () => {
    const rich = await person(RICH);
    const small = () => drained(g.post("/v1/embeddings", { model: "vectors", input: "tip" }, rich.headers));
    expect((await held(small)).amount).toBe(500);
    const poor = await person(3);
    const served = await held(() =>
      drained(g.post("/v1/embeddings", { model: "vectors", input: "tip" }, poor.headers)),
    );
    expect(served.amount).toBe(3);
  });

  test("legacy completions stop at sixteen tokens when the request says nothing", async () => {
    const { headers } = await person(RICH);
    const old = (fields: object) =>
      held(() =>
        drained(g.post("/v1/completions", { model: "old", prompt: "tip tip tip tip ", ...fields }, headers)),
      );
    expect((await old({})).amount).toBe(16 + 64);
    expect((await old({ best_of: 4, max_tokens: 10 })).amount).toBe(16 + 160);
    // Each prompt of a list is answered.
    expect((await old({ prompt: ["tip ", "tip "], n: 2, max_tokens: 10 })).amount).toBe(8 + 160);
    expect((await old({ prompt: [1, 2], max_tokens: 10 })).amount).toBe(8 + 40);
  });

  test("what costs nothing holds nothing, sends no limit, and still needs a balance", async () => {
    await g.setOption("GroupRatio", '{"default":0}');
    const { headers } = await person(1);
    expect((await held(() => chat({}, headers))).amount).toBe(0);
    expect(lastBody()).not.toHaveProperty("max_tokens");
    const empty = await person(0);
    expect((await chat({}, empty.headers)).status).toBe(403);
    await g.setOption("GroupRatio", '{"default":1}');
  });

  test("a body that is passed through as it is holds the whole, or is refused", async () => {
    await g.setOption("global.pass_through_request_enabled", "true");
    const { headers } = await person(BALANCE);
    expect((await chat({ max_tokens: 128_000 }, headers)).status).toBe(403);
    expect(g.upstream.requests).toHaveLength(0);
    const seen = await held(() => chat({ max_tokens: 1000, zero: 0 }, headers));
    expect([seen.amount, seen.asked.least]).toEqual([HELD + 4000, PROMPT + 4000]);
    expect(lastBody()).toMatchObject({ max_tokens: 1000, zero: 0 });
    // Overrides do not reach it, so that they bound nothing.
    expect((await chat({ model: "overridden", max_tokens: 50_000 }, headers)).status).toBe(403);
    await g.setOption("global.pass_through_request_enabled", "false");
  });
});

test("a prompt that was counted by the name that the client knows costs no more by the upstream's", async () => {
  const balance = 230;
  const { id, headers } = await person(balance);
  // 61 tokens by the one vocabulary, 91 by the other.
  const messages = [{ role: "user", content: "selectedIndexPath ".repeat(30) }];
  g.upstream.script(answer(Array<string>(40).fill("tip").join(" "), { usage: null }));
  const charge = await g.charged(() =>
    chat({ model: "renamed", messages, max_completion_tokens: 40 }, headers),
  );
  expect(charge.quota).toBeGreaterThan(balance - 10);
  expect((await g.balance(id)).quota).toBe(balance - charge.quota);
  expect(charge.quota).toBeLessThanOrEqual(balance);
});

test("a limited key is what is available, however rich its owner is", async () => {
  const owner = await g.app.createUser({ quota: 1_000_000_000 });
  const { key } = await g.app.createToken(owner.id, { remainQuota: 8000 });
  g.upstream.always(completeAnswer("openai-chat", 50_000));
  await chat({}, { authorization: `Bearer ${key}` });
  expect(lastBody()["max_tokens"]).toBe(1024);
});

test("the bytes of a limited request are the client's but for the limit", async () => {
  const { headers } = await person(8000);
  const body = `{"model":"${CHAT}", "zero":0,"max_tokens": 90000 ,"messages":[ {"role":"user","content":"hi"}]}`;
  await drained(g.post("/v1/chat/completions", body, headers));
  expect(g.upstream.requests.at(-1)?.body.toString()).toBe(
    `{"model":"${CHAT}","zero":0,"max_tokens": 1024,"messages":[ {"role":"user","content":"hi"}]}`,
  );
});

describe("a stream that the balance ends, as the SDKs read it", () => {
  const QUOTA = 6000;
  /** Most of what the balance buys, at four units a word. */
  const enough = (words: number) => expect(words).toBeGreaterThan((QUOTA / 4) * 0.9);

  test("OpenAI's chat: a finish by length, the usage that is charged, nothing raised", async () => {
    const { key } = await person(QUOTA);
    g.upstream.script(longStream("openai-chat", { words: 6000, per: 3 }));
    const client = new OpenAI({ apiKey: key, baseURL: `${g.app.url}/v1`, maxRetries: 0 });
    const charge = await g.charged(async () => {
      const told = client.chat.completions.stream({
        model: CHAT,
        messages: HI,
        stream_options: { include_usage: true },
      });
      const { choices, usage } = await told.finalChatCompletion();
      expect(choices[0]?.finish_reason).toBe("length");
      enough(wordsIn(choices[0]?.message.content ?? ""));
      expect(usage?.completion_tokens).toBe(wordsIn(choices[0]?.message.content ?? ""));
    });
    expect(charge.other["stopped"]).toBe("balance");
  });

  test("OpenAI's Responses: response.incomplete by max_output_tokens", async () => {
    const { key } = await person(QUOTA);
    g.upstream.script(longStream("openai-responses", { words: 6000, per: 3 }));
    const client = new OpenAI({ apiKey: key, baseURL: `${g.app.url}/v1`, maxRetries: 0 });
    let text = "";
    let last: OpenAI.Responses.ResponseStreamEvent | undefined;
    for await (const event of await client.responses.create({ model: GPT, input: "hi", stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
      last = event;
    }
    enough(wordsIn(text));
    expect(last).toMatchObject({
      type: "response.incomplete",
      response: { id: "resp_up", status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
    });
  });

  test("Anthropic's: every block closed, stopped by max_tokens", async () => {
    const { key } = await person(QUOTA);
    g.upstream.script(longStream("anthropic", { words: 6000, per: 3 }));
    const client = new Anthropic({ apiKey: key, baseURL: g.app.url, maxRetries: 0 });
    const seen: string[] = [];
    const told = client.messages.stream({ model: CLAUDE, max_tokens: 60_000, messages: HI });
    told.on("streamEvent", (event) => seen.push(event.type));
    const message = await told.finalMessage();
    expect(message.stop_reason).toBe("max_tokens");
    enough(wordsIn(message.content[0]?.type === "text" ? message.content[0].text : ""));
    expect(seen.slice(-3)).toEqual(["content_block_stop", "message_delta", "message_stop"]);
  });

  test("Google's: a last chunk by MAX_TOKENS; and in a JSON array, which is whole", async () => {
    const { key } = await person(QUOTA);
    g.upstream.script(longStream("gemini", { words: 6000, per: 3 }));
    const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: g.app.url } });
    let text = "";
    let reason: string | undefined;
    for await (const chunk of await client.models.generateContentStream({ model: GEMINI, contents: "hi" })) {
      text += chunk.text ?? "";
      reason = chunk.candidates?.[0]?.finishReason ?? reason;
    }
    expect(reason).toBe("MAX_TOKENS");
    enough(wordsIn(text));
    const other = await person(QUOTA);
    g.upstream.script(longStream("gemini", { words: 6000, per: 3 }));
    const whole = await drained(
      g.post(
        `/v1beta/models/${GEMINI}:streamGenerateContent`,
        { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
        other.headers,
      ),
    );
    const list = JSON.parse(whole.text) as { candidates: { finishReason?: string }[] }[];
    expect(list.at(-1)?.candidates[0]?.finishReason).toBe("MAX_TOKENS");
    enough(wordsIn(whole.text));
  });

  test("legacy completions: their own form, to the [DONE]", async () => {
    const { headers } = await person(QUOTA);
    const piece = (text: string) =>
      sse({ id: "cmpl-up", object: "text_completion", choices: [{ index: 0, text, finish_reason: null }] });
    const script: Script = {
      headers: { "content-type": "text/event-stream" },
      steps: [...Array.from({ length: 600 }, () => piece("tip ".repeat(10))), "data: [DONE]\n\n"],
    };
    g.upstream.script(script);
    const { text } = await drained(
      g.post("/v1/completions", { model: "old", prompt: "tip", stream: true, max_tokens: 60_000 }, headers),
    );
    enough(wordsIn(text));
    expect(text).toEndWith("data: [DONE]\n\n");
    expect(text).toContain('"object":"text_completion"');
    expect(text).toContain('"finish_reason":"length"');
  });

  test("several answers at once: each is told that it ended", async () => {
    const { headers } = await person(QUOTA);
    g.upstream.script(longStream("openai-chat", { words: 6000, per: 3 }));
    const { text } = await chat({ stream: true, n: 2 }, headers);
    expect(text).toContain('"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]');
    expect(text).toContain('"choices":[{"index":1,"delta":{},"logprobs":null,"finish_reason":"length"}]');
  });

  test("a first chunk beyond everything is not delivered: the prompt alone is charged", async () => {
    const { id, headers } = await person(QUOTA);
    g.upstream.script(
      longStream("openai-chat", { words: 6000, per: 6000, usage: { input: 4, output: 6000 } }),
    );
    const charge = await g.charged(async () => {
      const { status, text } = await chat({ stream: true }, headers);
      expect([status, wordsIn(text)]).toEqual([200, 0]);
      expect(text).toEndWith("data: [DONE]\n\n");
    });
    expect(charge).toMatchObject({ completionTokens: 0, other: { stopped: "balance" } });
    expect((await g.balance(id)).quota).toBe(QUOTA - charge.promptTokens);
  });
});

test("a whole answer to a call for a stream is one chunk: paid, or neither delivered nor charged", async () => {
  const rich = await person(1_000_000);
  g.upstream.always(completeAnswer("openai-chat", 5000));
  const paid = await chat({ stream: true }, rich.headers);
  expect([paid.status, wordsIn(paid.text)]).toEqual([200, 5000]);
  expect((await g.balance(rich.id)).quota).toBe(1_000_000 - 4 - 5000 * 4);
  const poor = await person(8000);
  const charge = await g.charged(async () => {
    const { status, text } = await chat({ stream: true }, poor.headers);
    expect([status, wordsIn(text)]).toEqual([200, 0]);
    expect(text).toContain('"finish_reason":"length"');
    expect(text).toEndWith("data: [DONE]\n\n");
  });
  expect(charge).toMatchObject({ completionTokens: 0, other: { stopped: "balance" } });
  expect((await g.balance(poor.id)).quota).toBe(8000 - charge.quota);
});

test("an upstream that answers with a plain body leaves no hold behind", async () => {
  const { id, headers } = await person(BALANCE);
  g.upstream.always(answer("ok"));
  await chat({ max_tokens: 100 }, headers);
  const { accounts, ledger } = g.app.deps;
  await ledger.flush();
  const user = await accounts.user(id);
  if (!user) throw new Error("no user");
  expect(ledger.available({ user, token: undefined })).toBe((await g.balance(id)).quota);
});
