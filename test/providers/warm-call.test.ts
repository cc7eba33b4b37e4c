// What a probe asks: short, without thinking where the name tells how, with more room where a model thinks all the same.
import { expect, test } from "bun:test";
import { DIALECTS } from "../../src/protocol/dialects.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { warmBody, warmLimitOf } from "../../src/providers/warm-call.ts";

test.each([
  ["gpt-4o-mini", 16],
  ["claude-sonnet-4-5", 16],
  ["deepseek-chat", 16],
  ["gpt-5-mini", 64],
  ["openai/o3", 64],
  ["deepseek-reasoner", 64],
  ["deepseek-ai/DeepSeek-R1", 64],
  ["Qwen/Qwen3-32B", 64],
  ["gemini-2.5-pro", 64],
  ["claude-3-7-sonnet-thinking", undefined],
])("the answer of %s is limited to %p tokens", (model, limit) => {
  expect(warmLimitOf(model)).toBe(limit as number);
});

const hi = { messages: [{ role: "user", content: "hi" }], stream: true };
const bodyFor = (type: number, upstreamModel: string, limit: number) =>
  warmBody({ type, model: "asked", upstreamModel, limit });

test("who has words for it thinks as little as it can; nobody else is told of thinking", () => {
  const OPENAI = 1;
  const short = { model: "asked", ...hi };
  expect(bodyFor(OPENAI, "gpt-4o", 16)).toEqual({ ...short, max_tokens: 16 });
  expect(bodyFor(OPENAI, "some-model", 16)).toEqual({ ...short, max_tokens: 16 });
  const thinking = { ...short, max_completion_tokens: 64 };
  expect(bodyFor(OPENAI, "gpt-5.2", 64)).toEqual({ ...thinking, reasoning_effort: "none" });
  expect(bodyFor(OPENAI, "gpt-5-mini", 64)).toEqual({ ...thinking, reasoning_effort: "minimal" });
  expect(bodyFor(OPENAI, "o3", 64)).toEqual({ ...thinking, reasoning_effort: "low" });
});

const OFF = { thinking: { type: "disabled" } };
const NOT = { enable_thinking: false };

test.each<[name: string, type: number, model: string, words: object]>([
  ["Ali", 17, "qwen3-32b", NOT],
  ["Ali", 17, "qwen-plus-latest", NOT],
  ["Ali", 17, "qwen3-235b-a22b-thinking-2507", {}],
  ["Ali", 17, "qwen3-coder-plus", {}],
  ["SiliconFlow", 40, "Qwen/Qwen3-8B", NOT],
  ["SiliconFlow", 40, "Pro/zai-org/GLM-4.7", NOT],
  ["SiliconFlow", 40, "Qwen/Qwen2.5-7B-Instruct", {}],
  ["SiliconFlow", 40, "Qwen/Qwen3-30B-A3B-Instruct-2507", {}],
  ["DeepSeek", 43, "deepseek-v4-flash", OFF],
  ["DeepSeek", 43, "deepseek-chat", {}],
  ["DeepSeek", 43, "deepseek-reasoner", {}],
  ["Zhipu", 26, "glm-4.6", OFF],
  ["Zhipu", 26, "glm-4-flash", {}],
  ["Zhipu", 26, "glm-4.1v-thinking-flash", {}],
  ["Moonshot", 25, "kimi-k2.5", OFF],
  ["Moonshot", 25, "kimi-k2-thinking", {}],
  ["Moonshot", 25, "kimi-k2.7-code", {}],
  ["Volcengine", 45, "doubao-seed-1-6-250615", OFF],
  ["Volcengine", 45, "doubao-seed-1-6-thinking-250715", {}],
  ["OpenRouter", 20, "qwen/qwen3-32b", { reasoning: { enabled: false } }],
  ["OpenRouter", 20, "deepseek/deepseek-r1", {}],
  ["Ollama", 4, "qwen3:8b", { reasoning_effort: "none" }],
  ["xAI", 48, "grok-3-mini", { reasoning_effort: "low" }],
  ["xAI", 48, "grok-4", {}],
  // Somebody else's server: which words it knows cannot be told.
  ["OpenAI's form", 1, "qwen3-32b", {}],
])("%s (%d) is told of %s in its own words", (_, type, model, words) => {
  const { model: asked, messages, stream, max_tokens: limit, ...rest } = bodyFor(type, model, 64);
  expect([asked, messages, stream, limit]).toEqual(["asked", hi.messages, true, 64]);
  expect(rest).toEqual({ ...words });
});

test("what is converted gets the other dialect's words for it", () => {
  const converted = (type: number, model: string, dialect: "anthropic" | "gemini") => {
    const request = openaiChat.decodeRequest(bodyFor(type, model, 16));
    return DIALECTS[dialect].encodeRequest(request, { model }).body;
  };
  expect(converted(14, "claude-sonnet-4-5", "anthropic")).toMatchObject({ ...OFF, max_tokens: 16 });
  // It has never thought, and would refuse the word.
  expect(converted(14, "claude-3-5-haiku-latest", "anthropic")).not.toHaveProperty("thinking");
  const config = (model: string) => converted(24, model, "gemini")["generationConfig"];
  expect(config("gemini-2.5-flash")).toMatchObject({ thinkingConfig: { thinkingBudget: 0 } });
  expect(config("gemini-2.5-pro")).toMatchObject({ thinkingConfig: { thinkingBudget: 128 } });
  expect(config("gemma-3-27b-it")).not.toHaveProperty("thinkingConfig");
});
