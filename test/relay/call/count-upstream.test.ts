// Guarantees of token counts that an upstream makes: asked where the model's channel can count, in the client's own bytes or
// converted, free, and without any consequence for keys, channels and the count itself when it fails.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { testClock } from "../../support/clock.ts";
import { hangBeforeHeaders, refuse } from "../../support/fake-upstream.ts";
import type { RecordedRequest, Script } from "../../support/fake-upstream.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const CLAUDE = "claude-sonnet-4-5";
const GEMINI = "gemini-2.5-flash";
const HELLO = { messages: [{ role: "user", content: "hello world" }] };
const GOOGLE_HELLO = { contents: [{ role: "user", parts: [{ text: "hello world" }] }] };
/** As the gateway counts both. */
const OWN = 5;

const clock = testClock();
let g: Gateway;
const channels = new Map<string, number>();

async function channel(fields: Record<string, unknown>): Promise<number> {
  return g.app.createChannel({ baseUrl: g.upstream.url, ...fields });
}

beforeAll(async () => {
  g = await startGateway({ clock, channel: { models: "gpt-4o-mini" } });
  channels.set("claude", await channel({ type: 14, models: CLAUDE, key: "key-1\nkey-2" }));
  await channel({ type: 24, models: GEMINI });
  await channel({ type: 14, models: "ours", modelMapping: JSON.stringify({ ours: CLAUDE }) });
  await channel({ type: 24, models: "our-gemini", modelMapping: JSON.stringify({ "our-gemini": GEMINI }) });
  await channel({ type: 14, models: "elsewhere", group: "vip" });
  await g.setOption("SelfUseModeEnabled", "true");
});
afterAll(() => g.close());
beforeEach(() => {
  g.upstream.reset();
  g.upstream.always(counting);
});
// Whatever a test did to a channel's counting is over.
afterEach(() => clock.advance(120_000));

function counting({ url }: RecordedRequest): Script {
  const body = url.includes(":countTokens")
    ? { totalTokens: 77, promptTokensDetails: [{ modality: "TEXT", tokenCount: 77 }], zz_own: 1 }
    : { input_tokens: 42, context_management: { original_input_tokens: 50 }, zz_own: 1 };
  return { headers: { "content-type": "application/json" }, steps: [JSON.stringify(body)] };
}

const claude = (model: string, more: object = {}): Promise<Response> =>
  g.post("/v1/messages/count_tokens", { model, ...HELLO, ...more });
const google = (model: string, body: object = GOOGLE_HELLO): Promise<Response> =>
  g.post(`/v1beta/models/${model}:countTokens`, body);
const paths = (): string[] => g.upstream.requests.map(({ url }) => url);

describe("an upstream of the client's dialect", () => {
  test("gets Anthropic's call byte for byte, with version, flags and query, and its number goes back", async () => {
    const text = `{ "model" : "${CLAUDE}","messages":[{"role":"user","content":"h\\u0069"}] ,"zero": 0.10,"tools":[]}`;
    const before = await g.balance();
    const rows = (await g.logs()).length;
    const response = await g.post("/v1/messages/count_tokens?beta=true", text, {
      "anthropic-version": "2026-10-21",
      "anthropic-beta": "token-counting-2024-11-01",
    });
    expect(await response.json()).toEqual({
      input_tokens: 42,
      context_management: { original_input_tokens: 50 },
    });
    expect(response.headers.get("x-oneapi-request-id")).not.toBeNull();
    const [asked] = g.upstream.requests;
    expect([asked?.url, asked?.body.toString()]).toEqual(["/v1/messages/count_tokens?beta=true", text]);
    expect(asked?.headers).toMatchObject({
      "x-api-key": "key-1",
      "anthropic-version": "2026-10-21",
      "anthropic-beta": "token-counting-2024-11-01",
    });
    expect([await g.balance(), (await g.logs()).length]).toEqual([before, rows]);
  });

  test.each([
    ["bare", GOOGLE_HELLO],
    ["wrapped", { generateContentRequest: { model: `models/${GEMINI}`, ...GOOGLE_HELLO, tools: [] } }],
  ])("gets Google's call byte for byte, %s", async (_, body) => {
    const response = await google(GEMINI, body);
    expect(await response.json()).toEqual({
      totalTokens: 77,
      promptTokensDetails: [{ modality: "TEXT", tokenCount: 77 }],
    });
    const [asked] = g.upstream.requests;
    expect([asked?.url, asked?.body.toString()]).toEqual([
      `/v1beta/models/${GEMINI}:countTokens`,
      JSON.stringify(body),
    ]);
  });

  test("knows the model by its own name, and nothing else changes", async () => {
    await g.post(
      "/v1/messages/count_tokens",
      `{"messages":[{"role":"user", "content":"x"}], "model":"ours"}`,
    );
    await google("our-gemini", { generateContentRequest: { model: "models/our-gemini", ...GOOGLE_HELLO } });
    const [first, second] = g.upstream.requests;
    expect(first?.body.toString()).toBe(`{"messages":[{"role":"user", "content":"x"}],"model":"${CLAUDE}"}`);
    expect([second?.url, second?.json()]).toEqual([
      `/v1beta/models/${GEMINI}:countTokens`,
      { generateContentRequest: { model: `models/${GEMINI}`, ...GOOGLE_HELLO } },
    ]);
  });

  test("is asked only for what its model takes", async () => {
    expect(await (await claude(CLAUDE, { thinking: { type: "adaptive" } })).json()).toMatchObject({
      input_tokens: 42,
    });
    expect(g.upstream.requests[0]?.json()).toEqual({ model: CLAUDE, ...HELLO });
  });
});

describe("an upstream of another dialect", () => {
  test("counts Anthropic's prompt as Google would get it", async () => {
    const tools = [{ name: "f", input_schema: { type: "object", properties: {} } }];
    const response = await claude(GEMINI, { system: "Be brief.", tools });
    expect(await response.json()).toEqual({ input_tokens: 77 });
    expect(paths()).toEqual([`/v1beta/models/${GEMINI}:countTokens`]);
    expect(g.upstream.requests[0]?.json()).toMatchObject({
      generateContentRequest: {
        model: `models/${GEMINI}`,
        systemInstruction: { parts: [{ text: "Be brief." }] },
        ...GOOGLE_HELLO,
        tools: [{ functionDeclarations: [{ name: "f" }] }],
      },
    });
  });

  test("counts Google's prompt as Anthropic would get it, without what is no prompt", async () => {
    const response = await google(CLAUDE, { ...GOOGLE_HELLO, generationConfig: { temperature: 0.1 } });
    expect(await response.json()).toEqual({ totalTokens: 42 });
    expect(paths()).toEqual(["/v1/messages/count_tokens"]);
    expect(Object.keys(g.upstream.requests[0]?.json() ?? {})).toEqual(["model", "messages"]);
  });
});

describe("the gateway counts for itself", () => {
  test("where the model's channel cannot", async () => {
    expect(await (await claude("gpt-4o-mini")).json()).toEqual({ input_tokens: OWN });
    expect(await (await google("gpt-4o-mini")).json()).toEqual({ totalTokens: OWN });
    expect(paths()).toEqual([]);
  });

  test("where nobody of the caller's group serves the model", async () => {
    expect(await (await claude("elsewhere")).json()).toEqual({ input_tokens: OWN });
    expect(paths()).toEqual([]);
  });

  test("for a key that may not use the model nobody does", async () => {
    const { key } = await g.app.createToken(g.user.id, {
      modelLimitsEnabled: true,
      modelLimits: "gpt-4o-mini",
    });
    const response = await g.post(
      "/v1/messages/count_tokens",
      { model: CLAUDE, ...HELLO },
      {
        authorization: `Bearer ${key}`,
      },
    );
    expect([response.status, paths()]).toEqual([403, []]);
  });

  test("where the prompt holds words that may not be sent", async () => {
    await g.setOption("SensitiveWords", "world");
    await g.setOption("CheckSensitiveEnabled", "true");
    await g.setOption("CheckSensitiveOnPromptEnabled", "true");
    try {
      expect(await (await claude(CLAUDE)).json()).toEqual({ input_tokens: OWN });
      expect(paths()).toEqual([]);
    } finally {
      await g.setOption("CheckSensitiveEnabled", "false");
    }
  });

  const json = { "content-type": "application/json" };
  const FAILURES: [string, Script][] = [
    ["401", refuse(401)],
    ["429", refuse(429, undefined, { "retry-after": "600" })],
    ["500", refuse(500)],
    ["no JSON", { headers: json, steps: ["<html>"] }],
    ["no number", { headers: json, steps: ['{"input_tokens":"many"}'] }],
    ["a redirect", { status: 302, headers: { location: "http://127.0.0.1:1/" }, steps: [] }],
  ];
  test.each(FAILURES)(
    "after %s: the channel counts again a minute later, its keys and its health are untouched",
    async (_, script) => {
      const id = channels.get("claude") ?? 0;
      g.upstream.script(script);
      expect(await (await claude(CLAUDE)).json()).toEqual({ input_tokens: OWN });
      expect(await (await claude(CLAUDE)).json()).toEqual({ input_tokens: OWN });
      expect(paths()).toHaveLength(1);
      const { deps } = g.app;
      const known = deps.routing.channel(id);
      expect(known?.status).toBe(1);
      const states = known ? deps.keyring.states(known) : [];
      expect(states.map(({ restsUntilMs }) => restsUntilMs)).toEqual([0, 0]);
      clock.advance(60_001);
      expect(await (await claude(CLAUDE)).json()).toMatchObject({ input_tokens: 42 });
    },
  );

  test("after a refused prompt, and the next one is asked for again", async () => {
    g.upstream.script(refuse(400));
    expect(await (await claude(CLAUDE)).json()).toEqual({ input_tokens: OWN });
    expect(await (await claude(CLAUDE)).json()).toMatchObject({ input_tokens: 42 });
  });

  test("after 404, until the channel is edited", async () => {
    const id = await channel({ type: 14, models: "gone" });
    g.upstream.script(refuse(404));
    for (let i = 0; i < 3; i++) {
      expect(await (await claude("gone")).json()).toEqual({ input_tokens: OWN });
      clock.advance(3_600_000);
    }
    expect(paths()).toHaveLength(1);
    const { db, routing } = g.app.deps;
    await db.orm.update(db.t.channels).set({ name: "another" });
    await routing.refresh([id]);
    expect(await (await claude("gone")).json()).toMatchObject({ input_tokens: 42 });
  });

  test("where the upstream is silent for as long as a first byte may take", async () => {
    await g.setOption("relay.first_byte_timeout_seconds", "1");
    try {
      g.upstream.script(hangBeforeHeaders());
      expect(await (await claude(CLAUDE)).json()).toEqual({ input_tokens: OWN });
      expect(paths()).toHaveLength(1);
    } finally {
      await g.setOption("relay.first_byte_timeout_seconds", "300");
    }
  });
});
