// Guarantees for converted requests that reach upstreams which refuse what the client's own takes.
import { describe, expect, test } from "bun:test";
import { anthropic } from "../../src/protocol/anthropic/dialect.ts";
import type { CanonicalRequest } from "../../src/protocol/canonical.ts";
import { gemini } from "../../src/protocol/gemini/dialect.ts";
import { asObject } from "../../src/protocol/json.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { openaiResponses } from "../../src/protocol/openai-responses/dialect.ts";

import { settingsChanges } from "../../src/relay/endpoints/model-settings.ts";

/** What an operator has set, where it is read here. */
const SET: Record<string, unknown> = {
  "claude.thinking_adapter_enabled": true,
  "claude.thinking_adapter_budget_tokens_percentage": 0.8,
  "claude.default_max_tokens": { default: 8192 },
  "gemini.thinking_adapter_enabled": true,
  "gemini.supported_imagine_models": [],
};
const OPTIONS = { get: (key: string) => SET[key] } as Parameters<typeof settingsChanges>[0];

const user = [{ role: "user", content: "hi" }];
const chat = (more: object) => openaiChat.decodeRequest({ model: "m", messages: user, ...more });
const claude = (more: object) =>
  anthropic.decodeRequest({ model: "m", max_tokens: 4000, messages: user, ...more });
const google = (more: object) =>
  gemini.decodeRequest({ contents: [{ role: "user", parts: [{ text: "hi" }] }], ...more }, { model: "m" });
const PNG = "data:image/png;base64,AAAA";
const call = (id: string) => ({ type: "function_call", call_id: id, name: "f", arguments: "{}" });
const result = (id: string, output: unknown) => ({ type: "function_call_output", call_id: id, output });
const responses = (input: unknown[], more: object = {}) =>
  openaiResponses.decodeRequest({ model: "m", input, ...more });

describe("chat completions: results stand directly behind their calls", () => {
  /** Roles, and the call that each result is for. */
  const shapeOf = (input: unknown[], model: string): string[] => {
    const { body } = openaiChat.encodeRequest(responses(input), { model });
    const list = body["messages"] as { role: string; tool_call_id?: string; tool_calls?: unknown[] }[];
    return list.map(({ role, tool_call_id, tool_calls }) =>
      [role, tool_call_id, tool_calls?.length].filter((each) => each !== undefined).join(" "),
    );
  };
  const asked = { role: "user", content: "q" };
  const picture = [
    { type: "input_text", text: "x" },
    { type: "input_image", image_url: PNG },
  ];

  test("a picture in one of several results comes behind the last of them", () => {
    const input = [asked, call("c1"), call("c2"), result("c1", picture), result("c2", "y")];
    const wanted = ["user", "assistant 2", "tool c1", "tool c2", "user"];
    for (const model of ["gpt-4o", "deepseek-chat"]) expect(shapeOf(input, model)).toEqual(wanted);
    const { body } = openaiChat.encodeRequest(responses(input));
    expect((body["messages"] as { content: unknown }[]).slice(2)).toMatchObject([
      { content: "x" },
      { content: "y" },
      { content: [{ type: "image_url", image_url: { url: PNG } }] },
    ]);
  });
  test("so does what developers and users say among the results, in its order", () => {
    const says = (role: string, text: string) => ({ role, content: [{ type: "input_text", text }] });
    const input = [
      asked,
      call("c1"),
      call("c2"),
      says("user", "early"),
      result("c1", "x"),
      says("developer", "first"),
      result("c2", "y"),
      says("developer", "second"),
    ];
    const head = ["user", "assistant 2", "tool c1", "tool c2", "user"];
    expect(shapeOf(input, "gpt-4o")).toEqual([...head, "developer", "developer"]);
    expect(shapeOf(input, "deepseek-chat")).toEqual([...head, "system"]);
    const { body } = openaiChat.encodeRequest(responses(input), { model: "gpt-4o" });
    const texts = (body["messages"] as { content: unknown }[]).map(({ content }) => content);
    expect(texts.slice(2)).toEqual(["x", "y", "early", "first", "second"]);
  });
  test("calls one after the other keep their results, and what was said between stays between", () => {
    const input = [
      asked,
      call("c1"),
      result("c1", "x"),
      { role: "user", content: "go on" },
      call("c2"),
      result("c2", "y"),
    ];
    expect(shapeOf(input, "gpt-4o")).toEqual([
      "user",
      "assistant 1",
      "tool c1",
      "user",
      "assistant 1",
      "tool c2",
    ]);
  });
  test("results that a Claude client spread over messages are joined before its words", () => {
    const results = (id: string, text: string) => ({
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: id, content: "r" },
        { type: "text", text },
      ],
    });
    const request = anthropic.decodeRequest({
      model: "m",
      max_tokens: 9,
      messages: [
        { role: "user", content: "q" },
        {
          role: "assistant",
          content: ["a", "b"].map((id) => ({ type: "tool_use", id, name: "f", input: {} })),
        },
        results("a", "one"),
        results("b", "two"),
      ],
    });
    const list = openaiChat.encodeRequest(request).body["messages"] as Record<string, unknown>[];
    expect(list.slice(2).map(({ tool_call_id, content }) => tool_call_id ?? content)).toEqual([
      "a",
      "b",
      "one",
      "two",
    ]);
  });
});

describe("Anthropic: thoughts that are asked for are shown", () => {
  const thinkingOf = (request: CanonicalRequest, model = "claude-opus-4-7") =>
    anthropic.encodeRequest(request, { model }).body["thinking"];
  const shown = { type: "adaptive", display: "summarized" };

  test("by models that leave them out by default, however they were asked for", () => {
    const asks = [
      chat({ reasoning_effort: "high" }),
      responses([], { reasoning: { effort: "high", summary: "auto" } }),
      responses([], { reasoning: { summary: "concise" } }),
      google({ generationConfig: { thinkingConfig: { thinkingLevel: "HIGH", includeThoughts: true } } }),
    ];
    for (const request of asks) expect(thinkingOf(request)).toEqual(shown);
  });
  test("but not where the client wants none, and a budget has no such word", () => {
    for (const request of [
      responses([], { reasoning: { effort: "high", summary: "none" } }),
      google({ generationConfig: { thinkingConfig: { thinkingLevel: "HIGH", includeThoughts: false } } }),
    ])
      expect(thinkingOf(request)).toEqual({ type: "adaptive" });
    const old = thinkingOf(chat({ reasoning_effort: "low", max_tokens: 9000 }), "claude-sonnet-4-5");
    expect(old).toEqual({ type: "enabled", budget_tokens: 4096 });
  });
});

describe("Anthropic: thinking that it would refuse is left out by name", () => {
  const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];
  const turn = [
    { role: "user", content: "q" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "c", content: "r" },
  ];
  const CASES: [string, string, object, boolean][] = [
    ["a forced tool, by budget", "claude-sonnet-4-5", { tool_choice: "required" }, false],
    ["a forced tool, by effort", "claude-opus-4-7", { tool_choice: "required" }, false],
    ["an open turn without thoughts, by budget", "claude-sonnet-4-5", { messages: turn }, false],
    ["an open turn without thoughts, by effort", "claude-opus-4-7", { messages: turn }, true],
    ["a free choice", "claude-sonnet-4-5", { tool_choice: "auto" }, true],
  ];
  test.each(CASES)("%s", (_, model, more, mayThink) => {
    const asked = { tools, max_tokens: 9000, top_k: 5, ...more };
    const said = anthropic.encodeRequest(chat({ ...asked, reasoning_effort: "high" }), { model });
    expect(said.body["thinking"] !== undefined).toBe(mayThink);
    expect(said.dropped).toEqual([mayThink ? "top_k" : "reasoning"]);

    // The same wish by the model's name.
    const { body } = anthropic.encodeRequest(chat(asked), { model });
    const { changes, dropped } = settingsChanges(OPTIONS, "anthropic", `${model}-thinking`, body, true);
    expect("thinking" in changes).toBe(mayThink);
    expect(dropped).toEqual([mayThink ? "top_k" : "reasoning"]);
    expect("top_k" in changes).toBe(mayThink);
  });
  test("a name's wish is shown, and means nothing to a model that cannot think", () => {
    const changesOf = (model: string) => settingsChanges(OPTIONS, "anthropic", model, {}, true);
    expect(changesOf("claude-opus-4-7-thinking").changes["thinking"]).toEqual({
      type: "adaptive",
      display: "summarized",
    });
    expect(changesOf("claude-3-5-sonnet-20241022-thinking")).toMatchObject({ dropped: ["reasoning"] });
  });
});

test("Gemini: a name that wants no thinking gets the least that its model takes", () => {
  const budgetOf = (model: string) =>
    settingsChanges(OPTIONS, "gemini", `${model}-nothinking`, {}, false).changes["generationConfig"];
  expect(budgetOf("gemini-2.5-pro")).toEqual({ thinkingConfig: { thinkingBudget: 128 } });
  expect(budgetOf("gemini-2.5-flash")).toEqual({ thinkingConfig: { thinkingBudget: 0 } });
});

describe("Anthropic: the schema of an answer is closed", () => {
  const formatOf = (request: CanonicalRequest) => {
    const { body, dropped } = anthropic.encodeRequest(request, { model: "claude-opus-4-7" });
    return { schema: asObject(asObject(body["output_config"])?.["format"])?.["schema"], dropped };
  };
  const format = (schema: object, strict?: boolean) =>
    chat({ response_format: { type: "json_schema", json_schema: { name: "a", schema, strict } } });

  test("on every object, wherever it stands; values that only look like schemas stay", () => {
    const point = { type: "object", properties: { type: { type: "string" } } };
    const { schema, dropped } = formatOf(
      format({
        type: "object",
        properties: {
          list: { type: "array", items: point },
          either: { anyOf: [point, { type: "null" }] },
          maybe: { type: ["object", "null"], properties: { x: { $ref: "#/$defs/p" } } },
          fixed: { enum: [{ type: "object" }], default: { type: "object" } },
        },
        $defs: { p: point },
      }),
    );
    const closed = { ...point, additionalProperties: false };
    expect(schema).toEqual({
      type: "object",
      additionalProperties: false,
      properties: {
        list: { type: "array", items: closed },
        either: { anyOf: [closed, { type: "null" }] },
        maybe: {
          type: ["object", "null"],
          additionalProperties: false,
          properties: { x: { $ref: "#/$defs/p" } },
        },
        fixed: { enum: [{ type: "object" }], default: { type: "object" } },
      },
      $defs: { p: closed },
    });
    expect(dropped).toEqual([]);
  });
  test("also Gemini's; another wish is listed, and a Claude client's own words stay", () => {
    const config = {
      responseMimeType: "application/json",
      responseSchema: { type: "OBJECT", properties: { x: { type: "STRING" } } },
    };
    expect(formatOf(google({ generationConfig: config })).schema).toEqual({
      type: "object",
      properties: { x: { type: "string" } },
      additionalProperties: false,
    });
    const open = { type: "object", properties: {}, additionalProperties: { type: "string" } };
    expect(formatOf(format(open)).schema).toMatchObject({ additionalProperties: false });
    expect(formatOf(format(open)).dropped).toEqual(["response_format.additionalProperties"]);
    const own = { output_config: { format: { type: "json_schema", schema: open } } };
    expect(formatOf(claude(own)).schema).toEqual(open);
  });
});

describe("Anthropic: text without a visible sign is left out", () => {
  const messagesOf = (messages: object[]) => anthropic.encodeRequest(chat({ messages }));
  const calls = [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }];

  test("in system, before calls, beside other text and in results", () => {
    const { body, dropped } = messagesOf([
      { role: "system", content: "\n" },
      { role: "user", content: [" ", "hi"].map((text) => ({ type: "text", text })) },
      { role: "assistant", content: "\n\n", tool_calls: calls },
      { role: "tool", tool_call_id: "c", content: " \n" },
    ]);
    expect("system" in body).toBe(false);
    expect(body["messages"]).toEqual([
      { role: "user", content: [{ type: "text", text: "hi" }] },
      { role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: [] }] },
    ]);
    expect(dropped).toEqual([]);
    const bare = responses([
      { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: "\n" },
    ]);
    expect(anthropic.encodeRequest(bare).body["messages"]).toMatchObject([
      {},
      { content: [{ type: "tool_result", content: "" }] },
    ]);
  });
  test("a turn of the user's stays a turn, by name: without it the request would be none, or another", () => {
    const dot = { role: "user", content: [{ type: "text", text: "." }] };
    for (const blank of [" ", "\n", ""]) {
      const alone = messagesOf([{ role: "user", content: blank }]);
      expect([alone.body["messages"], alone.dropped]).toEqual([[dot], ["messages.content"]]);
    }
    const { body } = messagesOf([
      { role: "user", content: "hi" },
      { role: "assistant", content: "yes" },
      { role: "user", content: " " },
    ]);
    expect((body["messages"] as unknown[]).at(-1)).toEqual(dot);
  });
});

test("Responses: a limit below the least that it takes is that, and none stays none", () => {
  const limitOf = (request: CanonicalRequest) =>
    openaiResponses.encodeRequest(request).body["max_output_tokens"];
  expect([1, 15, 16, 500].map((max_tokens) => limitOf(claude({ max_tokens })))).toEqual([16, 16, 16, 500]);
  expect(limitOf(chat({}))).toBeUndefined();
  // Its own clients hear of it from itself.
  expect(limitOf(responses([], { max_output_tokens: 1 }))).toBe(1);
});
