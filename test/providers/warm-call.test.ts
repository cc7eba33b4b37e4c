// What a probe asks: short, without thinking where the name tells how, with more room where a model thinks all the same.
import { expect, test } from "bun:test";
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

test("who has words for it thinks as little as it can; nobody else is told of thinking", () => {
  const hi = { messages: [{ role: "user", content: "hi" }], stream: true };
  expect(warmBody("a", "gpt-4o", 16)).toEqual({ model: "a", ...hi, max_tokens: 16 });
  expect(warmBody("b", "some-model", 16)).toEqual({ model: "b", ...hi, max_tokens: 16 });
  const thinking = { ...hi, max_completion_tokens: 64 };
  expect(warmBody("c", "gpt-5.2", 64)).toEqual({ model: "c", ...thinking, reasoning_effort: "none" });
  expect(warmBody("d", "gpt-5-mini", 64)).toEqual({ model: "d", ...thinking, reasoning_effort: "minimal" });
  expect(warmBody("e", "o3", 64)).toEqual({ model: "e", ...thinking, reasoning_effort: "low" });
});
