// Request rules over the wire, on both databases: what leaves, what is held and charged for it, and what the log tells.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { audit } from "../../../src/core/ledger/audit.ts";
import { answer, gate, json, refuse, stream } from "../../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { createVertex, serviceAccount } from "../../providers/adapters/fakes/vertex.ts";
import { requestOf, serve } from "../../providers/adapters/support.ts";
import { HI, MODEL, startGateway } from "../support.ts";
import type { Gateway, LogLine } from "../support.ts";

type Wire = Record<string, unknown>;

const CLAUDE = "claude-sonnet-4-6";
const GEMINI = "gemini-2.5-flash";
const PICTURES = "dall-e-2";
const operations = (...list: Wire[]): string => JSON.stringify({ operations: list });

const claudeAnswer = json({
  id: "msg_up",
  type: "message",
  role: "assistant",
  model: "m",
  content: [{ type: "text", text: "hello" }],
  stop_reason: "end_turn",
  usage: { input_tokens: 10, output_tokens: 2 },
});
const geminiAnswer = json({
  candidates: [{ content: { role: "model", parts: [{ text: "hello" }] }, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 2, totalTokenCount: 12 },
});
const responsesAnswer = json({
  id: "resp_1",
  object: "response",
  status: "completed",
  model: "m",
  output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "hello" }] }],
  usage: { input_tokens: 10, output_tokens: 2, total_tokens: 12 },
});

describe.each(DATABASE_KINDS)("request rules on %s", (database) => {
  let g: Gateway;
  let groups = 0;
  beforeAll(async () => {
    g = await startGateway({ database, quota: 1_000_000_000, channel: { models: `${MODEL},${CLAUDE}` } });
    await g.setOption("SelfUseModeEnabled", "true");
    await g.setOption("RetryTimes", "2");
    const prices = { ...g.app.deps.options.get("ModelPrice"), [PICTURES]: 0.02 };
    await g.setOption("ModelPrice", JSON.stringify(prices));
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  /** A channel in a group of its own, and a key that is served there. */
  async function channel(
    fields: Wire,
    quota = 100_000_000,
  ): Promise<{ key: string; userId: number; id: number; group: string }> {
    const group = `g${groups++}`;
    const id = await g.app.createChannel({ baseUrl: g.upstream.url, models: MODEL, group, ...fields });
    const user = await g.app.createUser({ quota, group });
    const { key } = await g.app.createToken(user.id);
    return { key, userId: user.id, id, group };
  }
  const auth = (key: string, headers: Record<string, string> = {}): Record<string, string> => ({
    authorization: `Bearer ${key}`,
    ...headers,
  });
  const last = () => {
    const request = g.upstream.requests.at(-1);
    if (!request) throw new Error("nobody was asked");
    return request;
  };
  async function charged(
    key: string,
    body: Wire | string,
    path = "/v1/chat/completions",
    headers: Record<string, string> = {},
  ): Promise<LogLine> {
    return g.charged(async () => {
      const response = await g.post(path, body, auth(key, headers));
      expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    });
  }
  const chat = (key: string, fields: Wire = {}, headers?: Record<string, string>): Promise<LogLine> =>
    charged(key, { model: MODEL, messages: HI, ...fields }, undefined, headers);

  test("an empty header rule takes anthropic-beta out, of bodies that pass through as they are, too", async () => {
    g.upstream.always(claudeAnswer);
    const text = `{"max_tokens": 5.0, "model":"${CLAUDE}","messages":[{"role":"user","content":"hi"}], "x":1e2}`;
    const beta = { "anthropic-beta": "context-1m-2025-08-07" };
    const verbatim = await channel({ type: 14, models: CLAUDE });
    await charged(verbatim.key, text, "/v1/messages", beta);
    expect(last().headers["anthropic-beta"]).toBe("context-1m-2025-08-07");
    for (const setting of ["", '{"pass_through_body_enabled":true}']) {
      const cut = await channel({
        type: 14,
        models: CLAUDE,
        setting,
        headerOverride: '{"Anthropic-Beta":""}',
      });
      const row = await charged(cut.key, text, "/v1/messages", beta);
      expect(last().headers["anthropic-beta"]).toBeUndefined();
      expect(last().body.toString()).toBe(text);
      expect(row.other["admin_info"]).toMatchObject({ header_rules: ["delete_header anthropic-beta"] });
    }
  });

  test("one answer becomes four: they are held for, a balance that pays one alone is refused before anybody is asked", async () => {
    const rules = operations({ mode: "set", path: "n", value: 4 });
    const held = async (fields: Wire): Promise<number> => {
      const { key, userId } = await channel(fields);
      const door = gate();
      g.upstream.script({ ...answer("hello"), before: door });
      const before = g.upstream.requests.length;
      const open = g.chat({ max_tokens: 1000 }, auth(key));
      await g.upstream.request(before);
      const account = await g.app.deps.accounts.user(userId);
      if (!account) throw new Error("no account");
      const left = g.app.deps.ledger.available({ user: account, token: undefined });
      door.open();
      await (await open).text();
      return 100_000_000 - left;
    };
    const single = await held({});
    const asked = { paramOverride: rules };
    const four = await held(asked);
    // The prompt once, the answers four times.
    expect(four).toBeGreaterThan(single * 3.9);
    expect(four).toBeLessThanOrEqual(single * 4);
    expect(last().json()).toMatchObject({ n: 4, max_tokens: 1000 });
    // By a plain map it is the same.
    expect(await held({ paramOverride: '{"n":4}' })).toBe(four);
  });

  test("pictures: number and size are charged as they were sent, at the price of the name that was asked for", async () => {
    g.upstream.always(json({ created: 1, data: Array(4).fill({ url: "https://x/1" }) }));
    const body = { model: PICTURES, prompt: "a cat", n: 1, size: "256x256" };
    const plain = await channel({ models: PICTURES });
    const { quota } = await charged(plain.key, body, "/v1/images/generations");
    const four = await channel({ models: PICTURES, paramOverride: '{"n":4,"quality":"hd"}' });
    // A cent a picture, two for a fine one, less for small ones: the upstream asks for what it was sent, too.
    const price = { call: 0.01, unit: "image", when: [{ quality: "hd", set: { call: 0.02 } }] };
    const { deps } = g.app;
    await deps.db.orm.insert(deps.db.t.channelCosts).values(
      [plain, four].map(({ id }) => ({
        channelId: id,
        model: "*",
        validFrom: 0,
        createdAt: 0,
        price: JSON.stringify(price),
      })),
    );
    await deps.costs.refresh([plain.id, four.id]);
    const nanos = ({ other }: LogLine) => (other["admin_info"] as Wire)["cost_nanos"];
    expect(nanos(await charged(plain.key, body, "/v1/images/generations"))).toBe(4_000_000);
    const row = await charged(four.key, body, "/v1/images/generations");
    expect(nanos(row)).toBe(4 * 8_000_000);
    expect([row.quota, row.modelName]).toEqual([quota * 4, PICTURES]);
    expect(row.other["request_rules"]).toEqual(["set n", "set quality"]);
    expect(last().json()).toEqual({ ...body, n: 4, quality: "hd" });
    // As a form, whose fields are texts.
    const form = new FormData();
    form.set("model", PICTURES);
    form.set("prompt", "a cat");
    form.set("image", new File([new Uint8Array([1, 2])], "a.png", { type: "image/png" }));
    const ofForm = await g.charged(async () => {
      const response = await fetch(`${g.app.url}/v1/images/edits`, {
        method: "POST",
        headers: auth(four.key),
        body: form,
      });
      await response.text();
    });
    expect(last().body.toString("latin1")).toMatch(/name="?n"?\r\n[^]*?\r\n4\r\n/);
    expect(ofForm.quota).toBeGreaterThan(quota);
    // Who can pay one cannot be served four, and pays nothing.
    const poor = await channel({ models: PICTURES, paramOverride: '{"n":4}' }, quota * 2);
    g.upstream.reset();
    const refused = await g.post("/v1/images/generations", body, auth(poor.key));
    expect([refused.status, g.upstream.requests.length]).toEqual([403, 0]);
    expect(await refused.json()).toMatchObject({ error: { code: "insufficient_user_quota" } });
    expect((await g.balance(poor.userId)).quota).toBe(quota * 2);
  });

  test("a cap holds for what rules made of the request", async () => {
    const { key, userId } = await channel({
      paramOverride: operations(
        { mode: "set", path: "n", value: 100 },
        { mode: "delete", path: "max_tokens" },
      ),
    });
    g.upstream.always(answer("hello"));
    const response = await g.chat({ max_tokens: 10 }, auth(key, { "x-max-quota": "50" }));
    await response.text();
    const { quota } = await g.balance(userId);
    expect(100_000_000 - quota).toBeLessThanOrEqual(50);
    // A limit that a rule took out is written anew: what is held stays the most that it can cost.
    if (response.status === 200) expect(Number(last().json()["max_tokens"])).toBeGreaterThan(0);
    else expect([response.status, g.upstream.requests.length]).toEqual([402, 0]);
    // Every answer that a rule asked for ends at the cap.
    const four = await channel({ paramOverride: '{"n":4}' });
    g.upstream.always(stream(Array.from({ length: 500 }, () => "some more words ")));
    const streamed = await g.chat({ stream: true }, auth(four.key, { "x-max-quota": "100" }));
    const ends = [...(await streamed.text()).matchAll(/"index":(\d),[^\n]*"finish_reason":"length"/g)];
    expect(ends.map(([, index]) => index).toSorted()).toEqual(["0", "1", "2", "3"]);
  });

  test("templates inside of a client's header stay what they are; keys and connections never pass", async () => {
    g.upstream.always(answer("hello"));
    const headerOverride = '{"*":"","x-own":"{api_key}","x-team":"{client_header:x-team}"}';
    const { key } = await channel({ headerOverride, key: "sk-secret-of-ours" });
    const row = await chat(
      key,
      {},
      {
        "x-team": "{api_key}",
        "x-trace": "t",
        cookie: "a=b",
        "x-forwarded-for": "10.1.1.1",
        "new-api-user": "1",
        "x-api-key": "client",
      },
    );
    const { headers } = last();
    expect(headers).toMatchObject({
      "x-own": "sk-secret-of-ours",
      "x-team": "{api_key}",
      "x-trace": "t",
      authorization: "Bearer sk-secret-of-ours",
      host: new URL(g.upstream.url).host,
    });
    for (const name of ["cookie", "x-forwarded-for", "new-api-user", "x-api-key"])
      expect(headers[name]).toBeUndefined();
    expect(JSON.stringify(row.other)).not.toContain("sk-secret");
  });

  test("members that no rule names stay byte for byte", async () => {
    g.upstream.always(answer("hello"));
    const { key } = await channel({
      paramOverride: operations(
        { mode: "set", path: "metadata.a", value: 1 },
        { mode: "delete", path: "user" },
      ),
    });
    const rest = `"big": 12345678901234567890,"temperature":1.0,"messages":[ {"role":"user","content":"\\u0068i"} ]`;
    await charged(key, `{"model":"${MODEL}","user":"u","metadata":{},${rest}}`);
    expect(last().body.toString()).toBe(`{"model":"${MODEL}","metadata":{"a":1},${rest}}`);
  });

  test("return_error: nobody is asked, nothing is charged; for its channel alone the next one serves", async () => {
    g.upstream.always(answer("hello"));
    const value = { message: "no pictures here", status_code: 451, code: "no_pictures" };
    const rule = { mode: "return_error", value, conditions: [{ path: "user", value: "bad" }] };
    const { key, userId, group } = await channel({ paramOverride: operations(rule), priority: 10 });
    const refused = await g.chat({ user: "bad" }, auth(key));
    expect([refused.status, g.upstream.requests.length]).toEqual([451, 0]);
    expect(await refused.json()).toMatchObject({
      error: { code: "no_pictures", message: expect.stringContaining("no pictures here") },
    });
    expect(await g.balance(userId)).toMatchObject({ quota: 100_000_000, used: 0 });
    expect((await chat(key)).channelId).toBeGreaterThan(0);
    const next = await channel({
      paramOverride: operations({ ...rule, value: { ...value, skip_retry: false } }),
      priority: 10,
    });
    const second = await g.app.createChannel({
      baseUrl: g.upstream.url,
      models: MODEL,
      group: next.group,
      priority: 1,
    });
    expect((await chat(next.key, { user: "bad" })).channelId).toBe(second);
    expect(group).not.toBe(next.group);
  });

  test("each attempt has the rules of its own channel, and knows how the one before ended", async () => {
    const rule = { mode: "set", path: "temperature", value: 0.5 };
    const { key, group } = await channel({
      paramOverride: operations({ ...rule, value: 0.1 }, { mode: "set", path: "n", value: 3 }),
      priority: 10,
    });
    const conditions = { is_retry: true, "last_error.status_code": 500 };
    await g.app.createChannel({
      baseUrl: g.upstream.url,
      models: MODEL,
      group,
      priority: 1,
      paramOverride: operations({ ...rule, logic: "AND", conditions }),
    });
    g.upstream.script(refuse(500), answer("hello"));
    const row = await chat(key);
    expect(g.upstream.requests.map((request) => request.json())).toMatchObject([
      { temperature: 0.1, n: 3 },
      { temperature: 0.5 },
    ]);
    expect(last().json()["n"]).toBeUndefined();
    expect(row.other["request_rules"]).toEqual(["set temperature"]);
    // Once more without trouble before: the condition does not hold.
    const alone = await channel({ paramOverride: operations({ ...rule, logic: "AND", conditions }) });
    g.upstream.script(answer("hello"));
    expect((await chat(alone.key)).other["request_rules"]).toBeUndefined();
  });

  test("rules act after a conversion, in the upstream's words", async () => {
    g.upstream.always(claudeAnswer);
    const { key } = await channel({
      type: 14,
      models: CLAUDE,
      paramOverride: operations(
        {
          mode: "set",
          path: "thinking",
          value: { type: "disabled" },
          conditions: { original_model: CLAUDE },
        },
        { mode: "set_header", path: "x-model", value: "a" },
      ),
    });
    const row = await charged(key, { model: CLAUDE, messages: HI });
    expect(last().json()).toMatchObject({ thinking: { type: "disabled" }, max_tokens: expect.any(Number) });
    expect(last().headers["x-model"]).toBe("a");
    expect(row.other).toMatchObject({
      request_rules: ["set thinking"],
      admin_info: { header_rules: ["set_header x-model"] },
    });
  });

  test("another model may be sent; what is billed is the name that was asked for", async () => {
    g.upstream.always(answer("hello"));
    const { key } = await channel({
      paramOverride: operations({ mode: "set", path: "model", value: "gpt-4o-special" }),
    });
    const row = await chat(key);
    expect([last().json()["model"], row.modelName]).toEqual(["gpt-4o-special", MODEL]);
    expect(row.other["upstream_model_name"]).toBe("gpt-4o-special");
  });

  test("a tier that a rule asks for needs the gate and a price, as a client's does", async () => {
    const rules = g.app.deps.options.get("PriceRules");
    await g.setOption(
      "PriceRules",
      JSON.stringify({ ...rules, [MODEL]: { when: [{ tier: "priority", times: 2 }] } }),
    );
    g.upstream.always(
      answer("hello", { usage: { prompt_tokens: 1000, completion_tokens: 1000, total_tokens: 2000 } }),
    );
    const paramOverride = '{"service_tier":"priority"}';
    const shut = await channel({ paramOverride });
    const { quota, other } = await chat(shut.key);
    expect([last().json()["service_tier"], other["dropped"]]).toEqual([undefined, ["service_tier"]]);
    const open = await channel({ paramOverride, settings: '{"allow_service_tier":true}' });
    expect((await chat(open.key)).quota).toBe(quota * 2);
    expect(last().json()["service_tier"]).toBe("priority");
    await g.setOption("PriceRules", JSON.stringify(rules));
  });

  test.each([
    ["allow_safety_identifier", { safety_identifier: "s" }, "safety_identifier"],
    [
      "allow_include_obfuscation",
      { stream_options: { include_obfuscation: false } },
      "stream_options.include_obfuscation",
    ],
  ])("%s: without it the field is taken out and listed", async (name, fields, told) => {
    g.upstream.always(responsesAnswer);
    const body = { model: MODEL, input: "hi", ...fields };
    const shut = await channel({});
    const row = await charged(shut.key, body, "/v1/responses");
    expect([Object.keys(fields).some((key) => key in last().json()), row.other["dropped"]]).toEqual([
      false,
      [told],
    ]);
    const open = await channel({ settings: JSON.stringify({ [name]: true }) });
    expect((await charged(open.key, body, "/v1/responses")).other["dropped"]).toBeUndefined();
    expect(last().json()).toMatchObject(fields);
  });

  test("Anthropic's gates: where it works, how fast, and the query of its address", async () => {
    g.upstream.always(claudeAnswer);
    const body = { model: CLAUDE, max_tokens: 5, messages: HI, inference_geo: "us", speed: "fast" };
    const shut = await channel({ type: 14, models: CLAUDE });
    const row = await charged(shut.key, body, "/v1/messages");
    expect(last().json()).toEqual({ model: CLAUDE, max_tokens: 5, messages: HI });
    expect(row.other["dropped"]).toEqual(["speed", "inference_geo"]);
    expect(last().url).not.toContain("beta");
    const settings = '{"allow_inference_geo":true,"allow_speed":true,"claude_beta_query":true}';
    const open = await channel({ type: 14, models: CLAUDE, settings });
    const before = await charged(open.key, body, "/v1/messages");
    // Faster is dearer: without a price for it nobody gets it.
    expect([last().json()["speed"], last().json()["inference_geo"], before.other["dropped"]]).toEqual([
      undefined,
      "us",
      ["speed"],
    ]);
    expect(last().url).toContain("?beta=true");
    const rules = g.app.deps.options.get("PriceRules");
    await g.setOption(
      "PriceRules",
      JSON.stringify({ ...rules, [CLAUDE]: { when: [{ tier: "fast", times: 6 }] } }),
    );
    const fast = await charged(open.key, body, "/v1/messages");
    expect([last().json()["speed"], fast.quota]).toEqual(["fast", before.quota * 6]);
    await g.setOption("PriceRules", JSON.stringify(rules));
  });

  test("disable_store: nothing is kept at the provider", async () => {
    g.upstream.always(responsesAnswer);
    const { key } = await channel({ settings: '{"disable_store":true}' });
    const row = await charged(key, { model: MODEL, input: "hi" }, "/v1/responses");
    expect([last().json()["store"], row.other["dropped"]]).toEqual([false, ["store"]]);
  });

  test("pass-through: the client's bytes or a refusal by name of what would have to change", async () => {
    g.upstream.always(answer("hello"));
    const setting = '{"pass_through_body_enabled":true}';
    const { key } = await channel({ setting, paramOverride: '{"temperature":0}' });
    const text = `{ "model":"${MODEL}","messages":[{"role":"user","content":"hi"}] , "seed":1.0}`;
    await charged(key, text);
    expect(last().body.toString()).toBe(text);
    const mapped = await channel({ setting, modelMapping: JSON.stringify({ [MODEL]: "other" }) });
    for (const [of, body, field] of [
      [mapped, {}, "model"],
      [{ key }, { safety_identifier: "s" }, "safety_identifier"],
      [{ key }, { service_tier: "flex" }, "service_tier"],
    ] as const) {
      g.upstream.reset();
      const refused = await g.chat(body, auth(of.key));
      expect([refused.status, g.upstream.requests.length]).toEqual([400, 0]);
      expect(await refused.json()).toMatchObject({ error: { param: field } });
    }
  });

  test("a system prompt of the channel's, in four dialects: where the client has none, or before its own", async () => {
    const setting = JSON.stringify({ system_prompt: "Be kind." });
    const both = JSON.stringify({ system_prompt: "Be kind.", system_prompt_override: true });
    const user = { role: "user", content: "hi" };
    const sent = async (
      path: string,
      body: Wire,
      fields: Wire,
      script: Parameters<typeof g.upstream.always>[0],
    ) => {
      g.upstream.always(script);
      const { key } = await channel(fields);
      return { row: await charged(key, body, path), json: () => last().json() };
    };
    const chatPath = "/v1/chat/completions";
    const own = { role: "developer", content: "Own." };
    const plain = await sent(chatPath, { model: MODEL, messages: [user] }, { setting }, answer("hello"));
    expect(plain.json()["messages"]).toEqual([{ role: "system", content: "Be kind." }, user]);
    expect(plain.row.other).toMatchObject({
      system_prompt_tokens: expect.any(Number),
      request_rules: ["system_prompt messages"],
    });
    expect(JSON.stringify(plain.row)).not.toContain("kind");
    const kept = await sent(chatPath, { model: MODEL, messages: [own, user] }, { setting }, answer("hello"));
    expect([kept.json()["messages"], kept.row.other["system_prompt_tokens"]]).toEqual([
      [own, user],
      undefined,
    ]);
    const joined = await sent(
      chatPath,
      { model: MODEL, messages: [own, user] },
      { setting: both },
      answer("hello"),
    );
    expect(joined.json()["messages"]).toEqual([{ ...own, content: "Be kind.\nOwn." }, user]);
    const parts = [{ type: "text", text: "Own.", cache_control: { type: "ephemeral" } }];
    const claude = { model: CLAUDE, max_tokens: 5, messages: [user] };
    const marked = await sent(
      "/v1/messages",
      { ...claude, system: parts },
      { type: 14, models: CLAUDE, setting: both },
      claudeAnswer,
    );
    expect(marked.json()["system"]).toEqual([{ type: "text", text: "Be kind." }, ...parts]);
    const bare = await sent("/v1/messages", claude, { type: 14, models: CLAUDE, setting }, claudeAnswer);
    expect(bare.json()["system"]).toBe("Be kind.");
    const responses = await sent(
      "/v1/responses",
      { model: MODEL, input: "hi" },
      { setting },
      responsesAnswer,
    );
    expect(responses.json()["instructions"]).toBe("Be kind.");
    const gemini = await sent(
      `/v1beta/models/${GEMINI}:generateContent`,
      { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
      { type: 24, models: GEMINI, setting },
      geminiAnswer,
    );
    expect(gemini.json()["systemInstruction"]).toEqual({ parts: [{ text: "Be kind." }] });
  });

  test("its tokens are the user's where the upstream reports none", async () => {
    const silent = json({
      id: "x",
      object: "chat.completion",
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
    });
    g.upstream.always(silent);
    const plain = await channel({});
    const { promptTokens } = await chat(plain.key);
    const prompt = "word ".repeat(200);
    const { key } = await channel({ setting: JSON.stringify({ system_prompt: prompt }) });
    const row = await chat(key);
    expect(row.promptTokens).toBeGreaterThan(promptTokens + 150);
  });

  test("Bedrock: betas that it does not know are left out with their fields, and listed", async () => {
    g.upstream.always(claudeAnswer);
    const { key } = await channel({ type: 33, models: CLAUDE, key: "AK|SK|us-east-1" });
    const body = {
      model: CLAUDE,
      max_tokens: 5,
      messages: HI,
      anthropic_beta: ["fast-mode-2026-02-01", "context-1m-2025-08-07"],
      tools: [{ name: "a", input_schema: { type: "object" }, defer_loading: true }],
      mcp_servers: [],
    };
    const beta = "advanced-tool-use-2025-11-20, interleaved-thinking-2025-05-14";
    const row = await charged(key, body, "/v1/messages", { "anthropic-beta": beta });
    expect(last().json()).toMatchObject({ tools: [{ name: "a", input_schema: { type: "object" } }] });
    expect(JSON.stringify(last().json())).not.toMatch(
      /defer_loading|mcp_servers|advanced-tool-use|fast-mode/,
    );
    expect(last().json()["anthropic_beta"]).toEqual(expect.arrayContaining(["context-1m-2025-08-07"]));
    expect(row.other["dropped"]).toEqual([
      "anthropic-beta: advanced-tool-use-2025-11-20",
      "anthropic-beta: fast-mode-2026-02-01",
      "tools.defer_loading",
      "mcp_servers",
    ]);
  });

  test("Vertex: the same, with its own list", async () => {
    const vertex = serve(createVertex().handler);
    const account = { type: 41, other: "us-central1", key: serviceAccount(vertex.url, `rules-${database}`) };
    const { key } = await channel({ ...account, models: CLAUDE, baseUrl: vertex.url });
    const body = {
      model: CLAUDE,
      max_tokens: 5,
      messages: HI,
      anthropic_beta: ["fast-mode-2026-02-01"],
      speed: "fast",
      tools: [{ name: "a", input_schema: { type: "object" }, defer_loading: true }],
    };
    const beta = "context-1m-2025-08-07, effort-2025-11-24, advanced-tool-use-2025-11-20";
    const row = await charged(key, body, "/v1/messages", { "anthropic-beta": beta });
    const sent = requestOf(vertex);
    expect(sent.path).toContain("/publishers/anthropic/models/");
    expect(sent.json()).toMatchObject({ tools: [{ name: "a", input_schema: { type: "object" } }] });
    const left = `${sent.text} ${sent.headers.get("anthropic-beta") ?? ""}`;
    expect(left).toContain("context-1m-2025-08-07");
    expect(left).not.toMatch(/defer_loading|"speed"|effort-|advanced-tool-use|fast-mode/);
    expect(row.other["dropped"]).toEqual(
      expect.arrayContaining([
        "anthropic-beta: effort-2025-11-24",
        "anthropic-beta: advanced-tool-use-2025-11-20",
        "anthropic-beta: fast-mode-2026-02-01",
        "tools.defer_loading",
        "speed",
      ]),
    );
    vertex.stop();
  });

  test("tasks and counts have the channel's headers, too; what a task is made of stays", async () => {
    const headerOverride = '{"x-own":"{api_key}","x-team":"{client_header:x-team}"}';
    g.upstream.always(json({ code: "success", message: "", data: "task-1" }));
    const fields = { type: 36, models: "suno_music", headerOverride, paramOverride: '{"prompt":"other"}' };
    const song = await channel({ ...fields, key: "sk-song" });
    const path = "/suno/submit/MUSIC";
    const submitted = await g.post(path, { prompt: "a song" }, auth(song.key, { "x-team": "red" }));
    expect([submitted.status, await submitted.text()]).toEqual([200, expect.any(String)]);
    expect(last().headers).toMatchObject({ "x-own": "sk-song", "x-team": "red" });
    expect(last().json()["prompt"]).toBe("a song");
    g.upstream.always(json({ input_tokens: 3 }));
    const counted = await channel({ type: 14, models: CLAUDE, headerOverride, key: "sk-count" });
    const count = await g.post(
      "/v1/messages/count_tokens",
      { model: CLAUDE, messages: HI },
      auth(counted.key),
    );
    expect(count.status).toBe(200);
    expect(last().headers["x-own"]).toBe("sk-count");
  });

  test("the books are clean after all of it", async () => {
    await g.app.deps.ledger.flush();
    expect((await audit(g.app.deps.db)).differences).toEqual([]);
  });
});
