// The rows of the table of model rules that belong to one provider, and what must hold whatever body they meet: the input
// is never written to, what is named as changed is what differs, and a second pass finds nothing left to do.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { applyModelRules } from "../../src/providers/apply-rules.ts";
import type { Ruling } from "../../src/providers/apply-rules.ts";
import { providerOf } from "../../src/providers/catalog.ts";
import type { Operation, ProviderRow } from "../../src/providers/define.ts";
import type { JsonBody } from "../../src/providers/quirks.ts";
import { Failure } from "../../src/shared/failures.ts";

function row(type: number): ProviderRow {
  const found = providerOf(type);
  if (!found) throw new Error(`no row ${type}`);
  return found;
}

const CLIENT_OF = { chat: "openai-chat", responses: "openai-responses", messages: "anthropic" } as const;

function ruled(type: number, operation: Operation, model: string, body: JsonBody): Ruling {
  const client = operation in CLIENT_OF ? CLIENT_OF[operation as keyof typeof CLIENT_OF] : "gemini";
  const ruling = applyModelRules(row(type), operation, model, body, { client, isConverted: false });
  return ruling ?? { body, changed: [], dropped: [] };
}

test("Claude at Bedrock has no search, elsewhere it has one; its names carry regions and versions", () => {
  const name = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
  const tools = [
    { name: "f", input_schema: {} },
    { type: "web_search_20250305", name: "web_search" },
  ];
  expect(ruled(33, "messages", name, { tools })).toMatchObject({
    body: { tools: [tools[0]] },
    changed: ["tools"],
    dropped: ["tools.web_search"],
  });
  expect(ruled(14, "messages", name, { tools }).dropped).toEqual([]);
  expect(ruled(33, "messages", name, { temperature: 0, top_p: 0.5 }).dropped).toEqual(["top_p"]);
});

test("the search switch goes where no model of the provider has one, and stays at OpenRouter", () => {
  const body = { web_search_options: {}, messages: [] };
  for (const [type, model] of [
    [42, "mistral-large-latest"],
    [43, "deepseek-chat"],
    [3, "gpt-4o"],
  ] as const) {
    const { body: sent, dropped } = ruled(type, "chat", model, body);
    expect([type, sent, dropped]).toEqual([type, { messages: [] }, ["web_search_options"]]);
  }
  for (const model of ["openai/gpt-4o", "anthropic/claude-sonnet-4.5", "deepseek/deepseek-chat"])
    expect(ruled(20, "chat", model, body).body).toBe(body);
});

test("OpenRouter takes names of 128 characters, OpenAI's models 64 wherever they are", () => {
  const told = (model: string, length: number): readonly string[] =>
    ruled(20, "chat", model, { user: "u".repeat(length) }).dropped;
  expect(told("qwen/qwen3", 128)).toEqual([]);
  expect(told("qwen/qwen3", 129)).toEqual(["user (sha256)"]);
  expect(told("openai/gpt-4o", 65)).toEqual(["user (sha256)"]);
  expect(ruled(1, "embeddings", "text-embedding-3-small", { user: "u".repeat(65) }).dropped).toEqual([
    "user (sha256)",
  ]);
  expect(ruled(1, "chat", "gpt-oss-120b", { user: "u".repeat(65) }).dropped).toEqual([]);
});

test("Grok takes the effort where it has the dial, and no penalty, not even none", () => {
  const told = (model: string, body: JsonBody): [JsonBody, readonly string[]] => {
    const { body: sent, dropped } = ruled(48, "chat", model, body);
    return [sent, dropped];
  };
  for (const model of ["grok-4", "grok-4-fast-reasoning", "grok-4.20-0309-reasoning", "grok-code-fast-1"])
    expect(told(model, { reasoning_effort: "low", presence_penalty: 0, frequency_penalty: 1 })).toEqual([
      {},
      ["reasoning_effort", "frequency_penalty"],
    ]);
  for (const model of ["grok-3-mini", "grok-4.3", "x-ai/grok-4.20-multi-agent-0309"])
    expect(told(model, { reasoning_effort: "low" })).toEqual([{ reasoning_effort: "low" }, []]);
  expect(told("grok-3", { presence_penalty: 1 })[1]).toEqual([]);
});

test("dates in Claude's names are no versions, and dots are", () => {
  const pair = { temperature: 0.5, top_p: 0.5 };
  const told = (model: string): readonly string[] => ruled(14, "messages", model, pair).dropped;
  for (const model of ["claude-opus-4-20250514", "claude-sonnet-4-0", "claude-3-7-sonnet-latest", "kimi-k2"])
    expect([model, told(model)]).toEqual([model, []]);
  for (const model of ["claude-opus-4-1@20250805", "claude-sonnet-4.6", "anthropic/claude-4.5-haiku"])
    expect([model, told(model)]).toEqual([model, ["top_p"]]);
  for (const model of ["claude-opus-4-8", "claude-opus-4.7", "claude-sonnet-5", "claude-mythos-preview"])
    expect([model, told(model)]).toEqual([model, ["temperature", "top_p"]]);
});

test("the probabilities that a reasoning model cannot tell are not asked for in either form", () => {
  const body = { include: ["message.output_text.logprobs", "reasoning.encrypted_content"], top_logprobs: 2 };
  expect(ruled(1, "responses", "gpt-5", body)).toMatchObject({
    body: { include: ["reasoning.encrypted_content"] },
    dropped: ["top_logprobs", "logprobs"],
  });
});

test("tools that come with a prompt or a server are tools", () => {
  for (const [operation, model, body] of [
    ["responses", "gpt-4o", { prompt: { id: "p" }, tool_choice: "required" }],
    ["messages", "claude-opus-4-6", { mcp_servers: [{ name: "m" }], tool_choice: { type: "any" } }],
  ] as const)
    expect(ruled(operation === "responses" ? 1 : 14, operation, model, body).body).toBe(body);
});

const MODELS: [number, Operation, string][] = [
  [1, "chat", "gpt-5"],
  [1, "chat", "gpt-4o"],
  [1, "responses", "gpt-5.1"],
  [14, "messages", "claude-opus-4-6"],
  [14, "messages", "claude-opus-4-7"],
  [14, "messages", "claude-3-haiku-20240307"],
  [24, "gemini", "gemini-2.5-flash"],
];
const TOOL = fc.constantFrom<unknown>(
  { type: "function", function: { name: "f" } },
  { name: "f", input_schema: {} },
  { type: "web_search_20250305", name: "web_search" },
  { googleSearch: {}, functionDeclarations: [{ name: "f" }] },
  { codeExecution: {} },
  null,
  "text",
);
const BODY = fc.record(
  {
    temperature: fc.constantFrom<unknown>(0, 1, null, "1"),
    top_p: fc.constantFrom<unknown>(0.5, 1, null),
    max_tokens: fc.constantFrom<unknown>(0, 5, null),
    max_completion_tokens: fc.constantFrom<unknown>(7, null),
    reasoning_effort: fc.constantFrom<unknown>("none", "low", null),
    user: fc.constantFrom<unknown>("u", "u".repeat(90), 5, null),
    metadata: fc.constantFrom<unknown>({ user_id: "a@b.org", more: 1 }, { user_id: null }, "text", null),
    thinking: fc.constantFrom<unknown>(
      { type: "enabled", budget_tokens: 2000 },
      { type: "adaptive" },
      null,
      "on",
    ),
    output_config: fc.constantFrom<unknown>({ effort: "high", format: 1 }, { effort: "low" }, null),
    generationConfig: fc.constantFrom<unknown>(
      { frequencyPenalty: 1, topK: 1 },
      { presencePenalty: 0 },
      null,
      [],
    ),
    tools: fc.oneof(fc.array(TOOL, { maxLength: 3 }), fc.constantFrom<unknown>(null, "text", {})),
    tool_choice: fc.constantFrom<unknown>("auto", { type: "auto" }, null),
    toolConfig: fc.constantFrom<unknown>({ functionCallingConfig: { mode: "AUTO" }, x: 1 }, null, 5),
    web_search_options: fc.constantFrom<unknown>({}, null),
    include: fc.constantFrom<unknown>(["message.output_text.logprobs"], null, "text"),
    unknown: fc.jsonValue(),
  },
  { requiredKeys: [] },
);

test("any body: the input stays, what is named as changed is what differs, and once is enough", () => {
  fc.assert(
    fc.property(fc.constantFrom(...MODELS), BODY, ([type, operation, model], body) => {
      const before = structuredClone(body);
      let first: Ruling;
      try {
        first = ruled(type, operation, model, body);
      } catch (error) {
        expect((error as Failure).code).toBe("unsupported_field");
        return;
      }
      expect(body).toEqual(before);
      const keys = new Set([...Object.keys(body), ...Object.keys(first.body)]);
      const differing = [...keys].filter(
        (key) => (body as JsonBody)[key] !== first.body[key] || key in body !== key in first.body,
      );
      expect(first.changed.toSorted()).toEqual(differing.toSorted());
      if (differing.length === 0) expect(first.body).toBe(body);
      const second = ruled(type, operation, model, first.body);
      expect([second.changed, second.dropped]).toEqual([[], []]);
    }),
    { numRuns: 2000 },
  );
});
