// Service tiers over the wire, on both databases: which of them leaves the house, which one is charged, and what is held.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { explainStored } from "../../../src/shared/cost.ts";
import { CUT, DONE, gate, json, sse } from "../../support/fake-upstream.ts";
import type { Script, Step } from "../../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { HI, startGateway } from "../support.ts";
import type { Gateway, LogLine } from "../support.ts";

const MODEL = "gpt-5";
const CLAUDE = "claude-sonnet-4-6";
/** gpt-5 costs 1.25 and 10 dollars: 1,000 tokens in and 200 out are 1,625 units. */
const USUAL = 1625;
const WHEN = [
  { tier: "priority", times: 2 },
  { tier: ["flex", "batch"], times: 0.5 },
];

type Wire = Record<string, unknown>;
const tierOf = (tier: string | undefined): Wire => (tier === undefined ? {} : { service_tier: tier });

function whole(tier?: string): Script {
  return json({
    id: "chatcmpl-up",
    object: "chat.completion",
    created: 1_750_000_000,
    model: "m",
    ...tierOf(tier),
    choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1000, completion_tokens: 200, total_tokens: 1200 },
  });
}

const streamed = (...steps: Step[]): Script => ({
  status: 200,
  headers: { "content-type": "text/event-stream" },
  steps,
});

function chatStream(tier?: string): Script {
  const chunk = (more: Wire): string =>
    sse({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", ...tierOf(tier), ...more });
  return streamed(
    chunk({ choices: [{ index: 0, delta: { role: "assistant", content: "hello" }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
    chunk({ choices: [], usage: { prompt_tokens: 1000, completion_tokens: 200, total_tokens: 1200 } }),
    DONE,
  );
}

/** The first frame repeats the request's word, the last one says what was served. */
function responsesStream(asked: string, served: string): Script {
  const usage = { input_tokens: 1000, output_tokens: 200, total_tokens: 1200 };
  const output = [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "hello" }] }];
  const response = (more: Wire): Wire => ({ id: "resp_1", object: "response", model: "m", ...more });
  return streamed(
    sse({ type: "response.created", response: response({ status: "in_progress", ...tierOf(asked) }) }),
    sse({
      type: "response.output_text.delta",
      item_id: "i",
      output_index: 0,
      content_index: 0,
      delta: "hello",
    }),
    sse({
      type: "response.completed",
      response: response({ status: "completed", output, usage, ...tierOf(served) }),
    }),
  );
}

function claudeAnswer(tier: string): Script {
  return json({
    id: "msg_up",
    type: "message",
    role: "assistant",
    model: "m",
    content: [{ type: "text", text: "hello" }],
    stop_reason: "end_turn",
    usage: { input_tokens: 1000, output_tokens: 200, service_tier: tier },
  });
}

function claudeStream(tier: string): Script {
  const usage = { input_tokens: 1000, output_tokens: 1, service_tier: tier };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage };
  return streamed(
    ...[
      { type: "message_start", message },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hello" } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 200 } },
      { type: "message_stop" },
    ].map(sse),
  );
}

describe.each(DATABASE_KINDS)("service tiers on %s", (database) => {
  let g: Gateway;
  beforeAll(async () => {
    const open = { setting: '{"allow_service_tier":true}' };
    g = await startGateway({
      database,
      quota: 1_000_000_000,
      channel: { type: 1, models: `${MODEL},gpt-5-mini`, ...open },
    });
    const { url } = g.upstream;
    await g.app.createChannel({ type: 14, models: CLAUDE, baseUrl: url, ...open });
    await g.app.createChannel({ type: 1, group: "shut", models: `${MODEL},${CLAUDE}`, baseUrl: url });
    const rules = g.app.deps.options.get("PriceRules");
    const mine = { [MODEL]: { when: WHEN }, [CLAUDE]: { when: [{ tier: "priority", times: 1.5 }] } };
    await g.setOption("PriceRules", JSON.stringify({ ...rules, ...mine }));
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  async function charged(script: Script, path: string, body: Wire, key = g.key): Promise<LogLine> {
    g.upstream.always(script);
    const row = await g.charged(async () => {
      const response = await g.post(path, body, { authorization: `Bearer ${key}` });
      expect(response.status).toBe(200);
      await response.text();
    });
    expect(explainStored(row.other)?.quota).toBe(row.quota);
    return row;
  }
  const chat = (script: Script, more: Wire = {}, key?: string): Promise<LogLine> =>
    charged(script, "/v1/chat/completions", { model: MODEL, messages: HI, ...more }, key);
  const sent = (): unknown => g.upstream.requests.at(-1)?.json()?.["service_tier"];

  test("flex is asked for, given and charged, whole and streamed", async () => {
    const asked = { service_tier: "flex" };
    const row = await chat(whole("flex"), asked);
    expect([row.quota, sent(), row.other["dropped"]]).toEqual([813, "flex", undefined]);
    expect(row.other["cost"]).toMatchObject({
      tier: "flex",
      asked: { tier: "flex" },
      rules: [{ tier: ["flex", "batch"] }],
    });
    expect((await chat(chatStream("flex"), { ...asked, stream: true })).quota).toBe(813);
    // The upstream says nothing: what was asked for counts.
    expect((await chat(whole(), asked)).quota).toBe(813);
  });

  test("priority is asked for and the default given: the default is charged", async () => {
    const asked = { service_tier: "priority" };
    const row = await chat(whole("default"), asked);
    expect([row.quota, sent()]).toEqual([USUAL, "priority"]);
    expect(row.other["cost"]).toMatchObject({ tier: "default", asked: { tier: "priority" } });
    // money.md 3's example: where it is given, too, twice the price.
    expect((await chat(whole("priority"), asked)).quota).toBe(2 * USUAL);
    expect((await chat(chatStream("default"), { ...asked, stream: true })).quota).toBe(USUAL);
    expect((await chat(whole("priority"), asked)).quota).toBe(USUAL * 2);
    expect((await chat(chatStream("priority"), { ...asked, stream: true })).quota).toBe(USUAL * 2);
  });

  test("nothing is asked for: what the answer names is charged, and nothing is what the list says", async () => {
    expect([(await chat(whole())).quota, sent()]).toEqual([USUAL, undefined]);
    expect((await chat(whole("default"))).quota).toBe(USUAL);
    // The provider's project is set to it: so it is on the operator's bill.
    expect((await chat(whole("priority"))).quota).toBe(USUAL * 2);
  });

  test("the Responses API: the word of the last frame counts, whole and streamed", async () => {
    const body = { model: MODEL, input: "hi", service_tier: "priority" };
    const ask = (script: Script, more: Wire) => charged(script, "/v1/responses", { ...body, ...more });
    expect((await ask(responsesStream("auto", "default"), { stream: true })).quota).toBe(USUAL);
    expect(sent()).toBe("priority");
    expect((await ask(responsesStream("auto", "priority"), { stream: true })).quota).toBe(USUAL * 2);
    const usage = { input_tokens: 1000, output_tokens: 200, total_tokens: 1200 };
    const output = [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "a" }] }];
    const response = { id: "resp_1", object: "response", status: "completed", model: "m", output, usage };
    expect((await ask(json({ ...response, service_tier: "priority" }), {})).quota).toBe(USUAL * 2);
    expect((await ask(json({ ...response, service_tier: "default" }), {})).quota).toBe(USUAL);
  });

  test("a stream that ends before it says what it served is charged by what was asked for, not by an echo", async () => {
    const steps = responsesStream("auto", "priority").steps?.slice(0, 2) ?? [];
    const body = { model: MODEL, input: "hi", service_tier: "flex", stream: true };
    const door = gate();
    g.upstream.always(streamed(...steps, door, CUT));
    const row = await g.charged(async () => {
      const { body: sent } = await g.post("/v1/responses", body);
      const reader = sent?.pipeThrough(new TextDecoderStream()).getReader();
      let seen = "";
      // Cut before the client has its first word, the call would be tried anew.
      for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
        seen += part.value;
        if (seen.includes("hello")) door.open();
      }
    });
    expect(row.other["cost"]).toMatchObject({
      asked: { tier: "flex" },
      rules: [{ tier: ["flex", "batch"] }],
    });
    expect(row.other["cost"]).not.toHaveProperty("tier");
  });

  test("Claude: `auto` is its word for priority, and usage names what was served", async () => {
    // 3 and 15 dollars: 1,000 in and 200 out are 3,000 units.
    const ask = (script: Script, more: Wire) =>
      charged(script, "/v1/messages", { model: CLAUDE, max_tokens: 300, messages: HI, ...more });
    expect((await ask(claudeAnswer("priority"), { service_tier: "auto" })).quota).toBe(4500);
    expect(sent()).toBe("auto");
    expect((await ask(claudeAnswer("standard"), { service_tier: "auto" })).quota).toBe(3000);
    expect((await ask(claudeStream("priority"), { service_tier: "auto", stream: true })).quota).toBe(4500);
    expect((await ask(claudeStream("standard"), { service_tier: "auto", stream: true })).quota).toBe(3000);
    expect((await ask(claudeAnswer("standard"), { service_tier: "standard_only" })).quota).toBe(3000);
    expect(sent()).toBe("standard_only");
    // A chat client's words are carried over: priority is `auto`, and its own `auto` asks for nothing dear.
    const chatAsks = (tier: string) =>
      charged(claudeAnswer("standard"), "/v1/chat/completions", {
        model: CLAUDE,
        messages: HI,
        service_tier: tier,
      });
    await chatAsks("priority");
    expect(sent()).toBe("auto");
    await chatAsks("auto");
    expect(sent()).toBe("standard_only");
  });

  test("what has no price, or what the channel does not let out, is taken out and told, and charged as served", async () => {
    const told = async (body: Wire, key?: string, script = whole()): Promise<unknown[]> => {
      const row = await chat(script, body, key);
      return [row.quota, sent(), row.other["dropped"]];
    };
    const gone = [USUAL, undefined, ["service_tier"]];
    expect(await told({ service_tier: "scale" })).toEqual(gone);
    expect(await told({ service_tier: "auto" })).toEqual(gone);
    expect(await told({ service_tier: { tier: "flex" } })).toEqual(gone);
    expect(await told({ service_tier: "default" })).toEqual([USUAL, "default", undefined]);
    const [quota, ...rest] = await told({ model: "gpt-5-mini", service_tier: "flex" });
    expect([Number(quota) > 0, ...rest]).toEqual([true, undefined, ["service_tier"]]);
    const shut = await g.app.createUser({ quota: 1_000_000, group: "shut" });
    const { key } = await g.app.createToken(shut.id);
    expect(await told({ service_tier: "flex" }, key)).toEqual(gone);
    expect(await told({ service_tier: "priority" }, key)).toEqual(gone);
    expect(await told({ service_tier: "priority" }, key, chatStream())).toEqual(gone);
    // Readers that fold letters, as Go's do, take other spellings for the same member.
    for (const spelling of ["Service_Tier", "SERVICE_TIER", "ServiceTier", "\u017fervice_tier"]) {
      expect(await told({ [spelling]: "priority" })).toEqual(gone);
      expect(g.upstream.requests.at(-1)?.json()?.[spelling]).toBeUndefined();
      expect(await told({ service_tier: "default", [spelling]: "priority" })).toEqual([
        USUAL,
        "default",
        ["service_tier"],
      ]);
    }
    // Twice in one body: a reader that takes the first would see another one.
    const twice = `{"service_tier":"priority","model":"${MODEL}","messages":[{"role":"user","content":"hi"}],"service_tier":"flex"}`;
    g.upstream.always(whole());
    const row = await g.charged(async () => (await g.post("/v1/chat/completions", twice)).text());
    expect([row.quota, sent(), row.other["dropped"]]).toEqual(gone);
  });

  test("a tier that is only called at some hours is only forwarded then", async () => {
    const before = g.app.deps.options.get("PriceRules");
    const past = [{ tier: "flex", until: "2020-01-01", times: 0.5 }];
    await g.setOption("PriceRules", JSON.stringify({ ...before, [MODEL]: { when: past } }));
    const row = await chat(whole(), { service_tier: "flex" });
    expect([row.quota, sent()]).toEqual([USUAL, undefined]);
    await g.setOption("PriceRules", JSON.stringify(before));
  });

  test("held is the dearest that a channel may ask for: the client's word, and the operator's in its place", async () => {
    // 1,000 tokens of an answer cost 5,000 units, at priority 10,000.
    const holds = async (group: string, fields: Wire): Promise<number> => {
      const user = await g.app.createUser({ quota: 1_000_000, group });
      const { key } = await g.app.createToken(user.id);
      const door = gate();
      g.upstream.script({ ...whole("default"), before: door });
      const before = g.upstream.requests.length;
      const answer = g.chat(
        { model: MODEL, max_tokens: 1000, ...fields },
        { authorization: `Bearer ${key}` },
      );
      await g.upstream.request(before);
      const account = await g.app.deps.accounts.user(user.id);
      if (!account) throw new Error("no account");
      const left = g.app.deps.ledger.available({ user: account, token: undefined });
      door.open();
      await (await answer).text();
      return 1_000_000 - left;
    };
    const [usual, dear] = [5005, 10_010];
    expect(await holds("default", {})).toBe(usual);
    expect(await holds("default", { service_tier: "priority" })).toBe(dear);
    expect(await holds("default", { service_tier: "flex" })).toBe(usual);
    expect(await holds("shut", { service_tier: "priority" })).toBe(usual);
    await g.app.createChannel({
      type: 1,
      group: "forced",
      models: MODEL,
      settings: '{"allow_service_tier":true}',
      baseUrl: g.upstream.url,
      paramOverride: '{"service_tier":"priority"}',
    });
    expect(await holds("forced", {})).toBe(dear);
    expect(sent()).toBe("priority");
  });

  test("bodies that are passed through as they are lose a tier without a price, too", async () => {
    await g.setOption("global.pass_through_request_enabled", "true");
    expect([(await chat(whole(), { service_tier: "flex" })).quota, sent()]).toEqual([813, "flex"]);
    expect([(await chat(whole(), { service_tier: "scale" })).quota, sent()]).toEqual([USUAL, undefined]);
    await g.setOption("global.pass_through_request_enabled", "false");
  });
});
