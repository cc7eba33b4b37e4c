// Guarantees of the table of model rules, over the wire: what a model refuses never reaches it, the log tells what was
// done, everything else stays as the client wrote it, and a search that goes is neither held nor paid.
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { refusing } from "../support/refusing-upstream.ts";
import { errorOf, startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

/** What a channel lets out that others keep. */
const OPEN_GATES = '{"allow_safety_identifier":true}';

type Body = Record<string, unknown>;

const MODELS: Readonly<Record<number, string>> = {
  1: [
    "gpt-4o",
    "gpt-4o-search-preview",
    "gpt-4.1-nano",
    "gpt-5",
    "gpt-5-codex",
    "gpt-5.1",
    "gpt-5-chat-latest",
    "o3",
    "o4-mini",
    "someone/unheard-of",
  ].join(","),
  14: [
    "claude-opus-4-1-20250805",
    "claude-opus-4-20250514",
    "claude-sonnet-4-5-20250929",
    "claude-opus-4-6",
    "claude-opus-4-7",
    "claude-fable-5",
    "claude-3-haiku-20240307",
  ].join(","),
  24: "gemini-2.5-flash,gemini-2.0-flash-lite,gemini-3-flash-preview",
};

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const LONG = `user_${"0123456789".repeat(15)}`.slice(0, 150);
const MAIL = "someone@example.org";
const SCHEMA = { type: "object", properties: { city: { type: "string" } } };

const FUNCTION = { type: "function", function: { name: "weather", parameters: SCHEMA } };
const FLAT_FUNCTION = { type: "function", name: "weather", parameters: SCHEMA, strict: false };
const CLAUDE_FUNCTION = { name: "weather", input_schema: SCHEMA };
const DECLARED = { functionDeclarations: [{ name: "weather", parametersJsonSchema: SCHEMA }] };
const CLAUDE_SEARCH = { type: "web_search_20250305", name: "web_search", max_uses: 2 };

type Client = "chat" | "responses" | "messages" | "gemini";

/** The same question in each dialect, and where it is asked. */
const CLIENTS: Readonly<Record<Client, (model: string, isStream: boolean) => { path: string; body: Body }>> =
  {
    chat: (model, stream) => ({
      path: "/v1/chat/completions",
      body: { model, stream, messages: [{ role: "user", content: "hi" }] },
    }),
    responses: (model, stream) => ({ path: "/v1/responses", body: { model, stream, input: "hi" } }),
    messages: (model, stream) => ({
      path: "/v1/messages",
      body: { model, stream, max_tokens: 2000, messages: [{ role: "user", content: "hi" }] },
    }),
    gemini: (model, isStream) => ({
      path: `/v1beta/models/${model}:${isStream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
      body: { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
    }),
  };

interface Row {
  model: string;
  client: Client;
  fields: Body;
  told: string[];
  /** Fields of the body at the upstream; undefined = not there. */
  sent: Body;
}

const COLD = { temperature: 0.2, top_p: 0.9 };
const NO_SAMPLING = { temperature: undefined, top_p: undefined };

const OPENAI_ROWS: Row[] = [
  ...["gpt-5", "o3", "o4-mini"].map((model): Row => ({
    model,
    client: "chat",
    fields: {
      ...COLD,
      presence_penalty: 0.5,
      frequency_penalty: 0.5,
      logprobs: true,
      top_logprobs: 2,
      logit_bias: {},
    },
    told: [
      "temperature",
      "top_p",
      "logprobs",
      "top_logprobs",
      "presence_penalty",
      "frequency_penalty",
      "logit_bias",
    ],
    sent: { ...NO_SAMPLING, presence_penalty: undefined, frequency_penalty: undefined, logprobs: undefined },
  })),
  ...(["messages", "gemini", "responses"] as const).map((client): Row => ({
    model: "gpt-5",
    client,
    fields: client === "gemini" ? { generationConfig: { temperature: 0.2, topP: 0.9 } } : COLD,
    told: ["temperature", "top_p"],
    sent: NO_SAMPLING,
  })),
  {
    model: "gpt-5-codex",
    client: "chat",
    fields: COLD,
    told: ["temperature", "top_p"],
    sent: { ...NO_SAMPLING, model: "gpt-5-codex" },
  },
  // Its default is nothing lost.
  { model: "o3", client: "chat", fields: { temperature: 1 }, told: [], sent: { temperature: undefined } },
  // With effort none, its default, it samples as others do.
  { model: "gpt-5.1", client: "chat", fields: COLD, told: [], sent: COLD },
  { model: "gpt-5.1", client: "chat", fields: { ...COLD, reasoning_effort: "none" }, told: [], sent: COLD },
  {
    model: "gpt-5.1",
    client: "chat",
    fields: { ...COLD, reasoning_effort: "low" },
    told: ["temperature", "top_p"],
    sent: { ...NO_SAMPLING, reasoning_effort: "low" },
  },
  {
    model: "gpt-5.1",
    client: "responses",
    fields: { ...COLD, reasoning: { effort: "low" } },
    told: ["temperature", "top_p"],
    sent: { ...NO_SAMPLING, reasoning: { effort: "low" } },
  },
  { model: "gpt-5-chat-latest", client: "chat", fields: COLD, told: [], sent: COLD },
  {
    model: "gpt-5",
    client: "chat",
    fields: { max_tokens: 50 },
    told: ["max_tokens (max_completion_tokens)"],
    sent: { max_tokens: undefined, max_completion_tokens: 50 },
  },
  { model: "gpt-5", client: "messages", fields: {}, told: [], sent: { max_completion_tokens: 2000 } },
  {
    model: "o3",
    client: "chat",
    fields: { tools: [FUNCTION], parallel_tool_calls: false },
    told: ["parallel_tool_calls"],
    sent: { parallel_tool_calls: undefined, tools: [FUNCTION] },
  },
  {
    model: "gpt-4o-search-preview",
    client: "chat",
    fields: { ...COLD, presence_penalty: 1, web_search_options: {} },
    told: ["temperature", "top_p", "presence_penalty"],
    sent: { ...NO_SAMPLING, presence_penalty: undefined, web_search_options: {} },
  },
  {
    model: "gpt-4o",
    client: "chat",
    fields: { user: LONG, safety_identifier: `${LONG}s`, prompt_cache_key: `${LONG}k` },
    told: ["user (sha256)", "safety_identifier (sha256)", "prompt_cache_key (sha256)"],
    sent: {
      user: sha256(LONG),
      safety_identifier: sha256(`${LONG}s`),
      prompt_cache_key: sha256(`${LONG}k`),
    },
  },
  {
    model: "gpt-4o",
    client: "chat",
    fields: { user: "u".repeat(64) },
    told: [],
    sent: { user: "u".repeat(64) },
  },
  {
    model: "gpt-5-codex",
    client: "responses",
    fields: { user: LONG, prompt_cache_key: "short" },
    told: ["user (sha256)"],
    sent: { user: sha256(LONG), prompt_cache_key: "short" },
  },
  {
    model: "gpt-4o",
    client: "messages",
    fields: { metadata: { user_id: LONG } },
    told: ["user (sha256)"],
    sent: { user: sha256(LONG) },
  },
  {
    model: "gpt-4o",
    client: "chat",
    fields: { tools: [], tool_choice: "auto", parallel_tool_calls: true },
    told: ["tools", "tool_choice", "parallel_tool_calls"],
    sent: { tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined },
  },
  { model: "gpt-4o", client: "messages", fields: { tools: [] }, told: [], sent: { tools: undefined } },
  { model: "gpt-4o", client: "responses", fields: { tools: [] }, told: [], sent: { tools: [] } },
  {
    model: "gpt-4o",
    client: "responses",
    fields: { tools: [], tool_choice: "required" },
    told: ["tool_choice"],
    sent: { tools: [], tool_choice: undefined },
  },
  {
    model: "gpt-4o",
    client: "chat",
    fields: { web_search_options: { search_context_size: "high" } },
    told: ["web_search_options"],
    sent: { web_search_options: undefined },
  },
  {
    model: "gpt-4o",
    client: "chat",
    fields: { tools: [FUNCTION, { type: "web_search_preview" }], tool_choice: "auto" },
    told: ["tools.web_search"],
    sent: { tools: [FUNCTION], tool_choice: "auto" },
  },
  {
    model: "gpt-4o",
    client: "messages",
    fields: { tools: [CLAUDE_FUNCTION, CLAUDE_SEARCH] },
    told: ["tools.web_search.max_uses", "tools.web_search"],
    sent: { web_search_options: undefined },
  },
  {
    model: "gpt-4o",
    client: "gemini",
    fields: { tools: [{ googleSearch: {} }] },
    told: ["tools.google_search"],
    sent: { web_search_options: undefined, tools: undefined },
  },
  {
    model: "gpt-4.1-nano",
    client: "responses",
    fields: { tools: [FLAT_FUNCTION, { type: "web_search" }] },
    told: ["tools.web_search"],
    sent: { tools: [FLAT_FUNCTION] },
  },
  {
    model: "gpt-5",
    client: "responses",
    fields: { tools: [FLAT_FUNCTION, { type: "web_search" }], reasoning: { effort: "minimal" } },
    told: ["tools.web_search"],
    sent: { tools: [FLAT_FUNCTION] },
  },
  {
    model: "gpt-5",
    client: "responses",
    fields: { tools: [{ type: "web_search" }], reasoning: { effort: "low" } },
    told: [],
    sent: { tools: [{ type: "web_search" }] },
  },
];

/** A converted request declares no tools where it has none. */
const EMPTY_ROWS: Row[] = [
  { model: "claude-opus-4-6", client: "chat", fields: { tools: [] }, told: [], sent: { tools: undefined } },
  { model: "gemini-2.5-flash", client: "chat", fields: { tools: [] }, told: [], sent: { tools: undefined } },
  { model: "gpt-5-codex", client: "messages", fields: { tools: [] }, told: [], sent: { tools: undefined } },
  { model: "claude-opus-4-6", client: "gemini", fields: { tools: [] }, told: [], sent: { tools: undefined } },
];

const CLAUDE_ROWS: Row[] = [
  ...["claude-opus-4-1-20250805", "claude-sonnet-4-5-20250929", "claude-opus-4-6"].flatMap((model): Row[] => [
    {
      model,
      client: "messages",
      fields: COLD,
      told: ["top_p"],
      sent: { temperature: 0.2, top_p: undefined },
    },
    { model, client: "chat", fields: COLD, told: ["top_p"], sent: { temperature: 0.2, top_p: undefined } },
    {
      model,
      client: "responses",
      fields: COLD,
      told: ["top_p"],
      sent: { temperature: 0.2, top_p: undefined },
    },
    {
      model,
      client: "gemini",
      fields: { generationConfig: { temperature: 0.2, topP: 0.9 } },
      told: ["top_p"],
      sent: { temperature: 0.2, top_p: undefined },
    },
  ]),
  // Where one of the two only says the default it is the one that goes.
  {
    model: "claude-opus-4-6",
    client: "messages",
    fields: { temperature: 1, top_p: 0.5 },
    told: ["temperature"],
    sent: { temperature: undefined, top_p: 0.5 },
  },
  { model: "claude-opus-4-6", client: "messages", fields: { top_p: 0.5 }, told: [], sent: { top_p: 0.5 } },
  { model: "claude-opus-4-20250514", client: "messages", fields: COLD, told: [], sent: COLD },
  ...(["messages", "chat", "responses"] as const).map((client): Row => ({
    model: "claude-opus-4-7",
    client,
    fields: COLD,
    told: ["temperature", "top_p"],
    sent: NO_SAMPLING,
  })),
  {
    model: "claude-opus-4-7",
    client: "messages",
    fields: { thinking: { type: "enabled", budget_tokens: 1500, display: "omitted" } },
    told: ["thinking.budget_tokens (adaptive)"],
    sent: { thinking: { type: "adaptive", display: "omitted" }, output_config: { effort: "low" } },
  },
  {
    model: "claude-fable-5",
    client: "messages",
    fields: { thinking: { type: "disabled" } },
    told: ["thinking"],
    sent: { thinking: undefined },
  },
  {
    model: "claude-fable-5",
    client: "chat",
    fields: { reasoning_effort: "none" },
    told: ["thinking"],
    sent: { thinking: undefined },
  },
  {
    model: "claude-sonnet-4-5-20250929",
    client: "messages",
    fields: { thinking: { type: "adaptive" }, output_config: { effort: "high" } },
    told: ["thinking", "output_config.effort"],
    sent: { thinking: undefined, output_config: undefined },
  },
  {
    model: "claude-opus-4-6",
    client: "messages",
    fields: { output_config: { effort: "xhigh" } },
    told: ["output_config.effort (high)"],
    sent: { output_config: { effort: "high" } },
  },
  {
    model: "claude-opus-4-6",
    client: "chat",
    fields: { reasoning_effort: "xhigh" },
    told: ["output_config.effort (high)"],
    sent: { output_config: { effort: "high" } },
  },
  {
    model: "claude-opus-4-6",
    client: "messages",
    fields: { output_config: { effort: "max" } },
    told: [],
    sent: { output_config: { effort: "max" } },
  },
  {
    model: "claude-opus-4-6",
    client: "messages",
    fields: { metadata: { user_id: MAIL } },
    told: ["metadata.user_id (sha256)"],
    sent: { metadata: { user_id: sha256(MAIL) } },
  },
  {
    model: "claude-opus-4-6",
    client: "chat",
    fields: { user: MAIL },
    told: ["metadata.user_id (sha256)"],
    sent: { metadata: { user_id: sha256(MAIL) } },
  },
  {
    model: "claude-opus-4-6",
    client: "messages",
    fields: { metadata: { user_id: LONG } },
    told: [],
    sent: { metadata: { user_id: LONG } },
  },
  {
    model: "claude-opus-4-6",
    client: "messages",
    fields: { tools: [], tool_choice: { type: "auto" } },
    told: ["tool_choice"],
    sent: { tool_choice: undefined, tools: [] },
  },
  {
    model: "claude-3-haiku-20240307",
    client: "messages",
    fields: { tools: [CLAUDE_FUNCTION, CLAUDE_SEARCH] },
    told: ["tools.web_search"],
    sent: { tools: [CLAUDE_FUNCTION] },
  },
  {
    model: "claude-3-haiku-20240307",
    client: "chat",
    fields: { web_search_options: {}, tools: [FUNCTION], tool_choice: "auto" },
    told: ["web_search_options"],
    sent: { tools: [CLAUDE_FUNCTION], tool_choice: { type: "auto" } },
  },
  {
    model: "claude-opus-4-6",
    client: "messages",
    fields: { tools: [CLAUDE_SEARCH] },
    told: [],
    sent: { tools: [CLAUDE_SEARCH] },
  },
];

const GEMINI_ROWS: Row[] = [
  {
    model: "gemini-2.5-flash",
    client: "gemini",
    fields: { tools: [DECLARED, { googleSearch: {} }, { codeExecution: {} }] },
    told: ["tools.google_search", "tools.code_execution"],
    sent: { tools: [DECLARED] },
  },
  {
    model: "gemini-2.5-flash",
    client: "gemini",
    fields: { tools: [{ ...DECLARED, googleSearch: {} }] },
    told: ["tools.google_search"],
    sent: { tools: [DECLARED] },
  },
  {
    model: "gemini-2.5-flash",
    client: "messages",
    fields: { tools: [CLAUDE_FUNCTION, { type: "web_search_20250305", name: "web_search" }] },
    told: ["tools.web_search"],
    sent: { tools: [DECLARED] },
  },
  {
    model: "gemini-2.5-flash",
    client: "chat",
    fields: { tools: [FUNCTION], web_search_options: {} },
    told: ["web_search_options"],
    sent: { tools: [DECLARED] },
  },
  {
    model: "gemini-3-flash-preview",
    client: "chat",
    fields: { tools: [FUNCTION], web_search_options: {} },
    told: ["web_search_options"],
    sent: { tools: [DECLARED] },
  },
  {
    model: "gemini-3-flash-preview",
    client: "gemini",
    fields: {
      tools: [DECLARED, { googleSearch: {} }],
      toolConfig: { includeServerSideToolInvocations: true },
    },
    told: [],
    sent: { tools: [DECLARED, { googleSearch: {} }] },
  },
  {
    model: "gemini-2.5-flash",
    client: "chat",
    fields: { web_search_options: {} },
    told: [],
    sent: { tools: [{ googleSearch: {} }] },
  },
  {
    model: "gemini-2.0-flash-lite",
    client: "gemini",
    fields: { tools: [{ googleSearch: {} }] },
    told: ["tools.google_search"],
    sent: { tools: [] },
  },
  {
    model: "gemini-2.5-flash",
    client: "chat",
    fields: { frequency_penalty: 0.5, presence_penalty: 0 },
    told: ["frequency_penalty"],
    sent: { generationConfig: undefined },
  },
  {
    model: "gemini-2.5-flash",
    client: "gemini",
    fields: { generationConfig: { frequencyPenalty: 0.5, topK: 4 } },
    told: ["frequency_penalty"],
    sent: { generationConfig: { topK: 4 } },
  },
  {
    model: "gemini-2.5-flash",
    client: "gemini",
    fields: { tools: [], toolConfig: { functionCallingConfig: { mode: "AUTO" } } },
    told: ["tool_config.function_calling_config"],
    sent: { tools: [], toolConfig: undefined },
  },
];

function nameOf({ model, client, fields }: Row): string {
  return `${client} to ${model}: ${JSON.stringify(fields).slice(0, 80)}`;
}

let g: Gateway;

beforeAll(async () => {
  g = await startGateway({
    quota: 1_000_000_000,
    channel: { type: 1, models: MODELS[1], settings: OPEN_GATES },
  });
  for (const type of [14, 24])
    await g.app.createChannel({ type, baseUrl: g.upstream.url, models: MODELS[type], settings: OPEN_GATES });
  await g.setOption("SelfUseModeEnabled", "true");
});
afterAll(() => g.close());

for (const isStream of [false, true]) {
  describe(`a model that refuses part of a request serves it without that part, ${isStream ? "streamed" : "whole"}`, () => {
    test.each(
      [...OPENAI_ROWS, ...EMPTY_ROWS, ...CLAUDE_ROWS, ...GEMINI_ROWS].map(
        (row) => [nameOf(row), row] as const,
      ),
    )("%s", async (_, { model, client, fields, told, sent }) => {
      g.upstream.reset();
      g.upstream.always(refusing);
      const { path, body } = CLIENTS[client](model, isStream);
      let answer = "";
      const charge = await g.charged(async () => {
        const response = await g.post(path, { ...body, ...fields });
        answer = await response.text();
        expect([response.status, response.status === 200 ? "" : answer]).toEqual([200, ""]);
      });
      expect(((charge.other["dropped"] ?? []) as string[]).toSorted()).toEqual(told.toSorted());
      const [asked] = g.upstream.requests;
      const seen = asked?.json() ?? {};
      expect(g.upstream.requests).toHaveLength(1);
      for (const field in sent) expect([field, seen[field]]).toEqual([field, sent[field]]);
    });
  });
}

describe("a search that tool_choice demands and the model cannot do is refused, and nobody is asked or charged", () => {
  const DEMANDS: [string, Client, string, Body][] = [
    ["chat, required", "messages", "gpt-4o", { tools: [CLAUDE_SEARCH], tool_choice: { type: "any" } }],
    [
      "chat, by name",
      "messages",
      "gpt-4o",
      { tools: [CLAUDE_FUNCTION, CLAUDE_SEARCH], tool_choice: { type: "tool", name: "web_search" } },
    ],
    [
      "Responses, by type",
      "responses",
      "gpt-4.1-nano",
      { tools: [{ type: "web_search" }, FLAT_FUNCTION], tool_choice: { type: "web_search" } },
    ],
    [
      "Claude, by name",
      "messages",
      "claude-3-haiku-20240307",
      { tools: [CLAUDE_FUNCTION, CLAUDE_SEARCH], tool_choice: { type: "tool", name: "web_search" } },
    ],
    [
      "Claude, required",
      "chat",
      "claude-3-haiku-20240307",
      { web_search_options: {}, tool_choice: "required" },
    ],
    [
      "Gemini, beside functions",
      "messages",
      "gemini-2.5-flash",
      {
        tools: [CLAUDE_FUNCTION, { type: "web_search_20250305", name: "web_search" }],
        tool_choice: { type: "tool", name: "web_search" },
      },
    ],
  ];
  test.each(DEMANDS)("%s", async (_, client, model, fields) => {
    g.upstream.reset();
    g.upstream.always(refusing);
    const before = await g.balance();
    const { path, body } = CLIENTS[client](model, false);
    const response = await g.post(path, { ...body, ...fields }, { "accept-language": "en" });
    expect(response.status).toBe(400);
    const { type, message, param } = await errorOf(response);
    expect([type, message.includes("tool_choice")]).toEqual(["invalid_request_error", true]);
    if (client !== "messages") expect(param).toBe("tool_choice");
    expect(g.upstream.requests).toHaveLength(0);
    expect(await g.balance()).toEqual(before);
  });
});

test("another channel, whose model can search, serves what the first one's cannot", async () => {
  g.upstream.reset();
  g.upstream.always(refusing);
  const to = (model: string): string => JSON.stringify({ "searching-model": model });
  const shared = { baseUrl: g.upstream.url, models: "searching-model" };
  await g.app.createChannel({ ...shared, type: 1, priority: 10, modelMapping: to("gpt-4o") });
  await g.app.createChannel({ ...shared, type: 14, modelMapping: to("claude-opus-4-6") });
  const { path, body } = CLIENTS.messages("searching-model", false);
  const tool_choice = { type: "tool", name: "web_search" };
  const response = await g.post(path, { ...body, tools: [CLAUDE_SEARCH], tool_choice });
  expect(response.status).toBe(200);
  expect(g.upstream.requests.map(({ url }) => url)).toEqual(["/v1/messages"]);
  expect(g.upstream.requests[0]?.json()).toMatchObject({ tools: [CLAUDE_SEARCH], tool_choice });
});

describe("bytes", () => {
  const ODD = '"seed": 1234567890123456789,"metadata":{ "a" : "b" }';

  test("all members but those that a rule names stay byte for byte", async () => {
    g.upstream.reset();
    g.upstream.always(refusing);
    const text = `{ "model":"gpt-5" ,"messages": [ {"role":"user" , "content":"h\\u0069"} ], "temperature" : 0.3,${ODD}}`;
    expect((await g.post("/v1/chat/completions", text)).status).toBe(200);
    expect(g.upstream.requests[0]?.body.toString()).toBe(
      `{"model":"gpt-5","messages": [ {"role":"user" , "content":"h\\u0069"} ],${ODD}}`,
    );
  });

  test("a model that no row names gets its request as it was written", async () => {
    g.upstream.reset();
    const text = `{"model":"someone/unheard-of","messages":[{"role":"user","content":"hi"}], "temperature":0.3,"top_p":0.5,"user":"${LONG}","tools":[],"web_search_options":{},"max_tokens":5,${ODD}}`;
    expect((await g.post("/v1/chat/completions", text)).status).toBe(200);
    expect(g.upstream.requests[0]?.body.toString()).toBe(text);
    expect((await g.lastCharge())?.other["dropped"]).toBeUndefined();
  });

  test("where operators pass bodies through as they are, no rule applies and none is told", async () => {
    await g.setOption("global.pass_through_request_enabled", "true");
    try {
      g.upstream.reset();
      const text = `{"model":"gpt-5","messages":[{"role":"user","content":"hi"}],"temperature":0.3,"tools":[]}`;
      expect((await g.post("/v1/chat/completions", text)).status).toBe(200);
      expect(g.upstream.requests[0]?.body.toString()).toBe(text);
      expect((await g.lastCharge())?.other["dropped"]).toBeUndefined();
    } finally {
      await g.setOption("global.pass_through_request_enabled", "false");
    }
  });

  test("the rule is that of the upstream's model, not of the name that was asked for", async () => {
    g.upstream.reset();
    g.upstream.always(refusing);
    await g.app.createChannel({
      type: 1,
      baseUrl: g.upstream.url,
      models: "our-best",
      modelMapping: JSON.stringify({ "our-best": "gpt-5" }),
    });
    expect((await g.chat({ model: "our-best", temperature: 0.3 })).status).toBe(200);
    expect(g.upstream.requests[0]?.json()["temperature"]).toBeUndefined();
    expect((await g.lastCharge())?.other["dropped"]).toEqual(["temperature"]);
  });
});

describe("money", () => {
  test("a search that goes is not held: a balance that could not pay it serves the call, which pays its tokens alone", async () => {
    const own = await startGateway({
      quota: 20_000,
      channel: { type: 1, models: "gpt-4o,someone/unheard-of" },
    });
    try {
      await own.setOption("SelfUseModeEnabled", "true");
      const search = { web_search_options: {}, max_tokens: 10 };
      // Ten searches are more than the balance, also where only one of two channels would make them.
      await own.app.createChannel({
        type: 1,
        baseUrl: own.upstream.url,
        models: "mixed",
        modelMapping: '{"mixed":"gpt-4o"}',
      });
      await own.app.createChannel({ type: 1, baseUrl: own.upstream.url, models: "mixed" });
      for (const model of ["someone/unheard-of", "mixed"]) {
        const kept = await own.chat({ model, ...search });
        expect([kept.status, (await errorOf(kept)).code]).toEqual([403, "insufficient_user_quota"]);
      }
      const charge = await own.charged(async () =>
        expect((await own.chat({ model: "gpt-4o", ...search })).status).toBe(200),
      );
      expect(charge.other).toMatchObject({ dropped: ["web_search_options"] });
      expect(charge.other["web_search_call_count"]).toBeUndefined();
      expect(charge.quota).toBeLessThan(100);
    } finally {
      await own.close();
    }
  });
});
