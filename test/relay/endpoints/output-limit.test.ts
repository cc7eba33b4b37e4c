// Which streams are limited like plain calls, and how a limit stands in each dialect's body.
import { describe, expect, test } from "bun:test";
import {
  limitChanges,
  limitIn,
  loweredLimits,
  overriddenLimit,
} from "../../../src/relay/endpoints/output-limit.ts";
import { keepsReasoning, thinkingBudgetOf } from "../../../src/relay/endpoints/hidden-reasoning.ts";

describe("models that bill thoughts which they do not deliver", () => {
  test.each<[string, Record<string, unknown>, boolean]>([
    ["o3", {}, true],
    ["openai/o4-mini-high", {}, true],
    ["o1-preview", {}, true],
    ["gpt-5.2", {}, true],
    ["gpt-5.2", { reasoning_effort: "none" }, false],
    ["gpt-5.2", { reasoning: { effort: "none" } }, false],
    ["gpt-7", {}, true],
    ["gpt-5-chat-latest", {}, false],
    ["gpt-4o", {}, false],
    ["gpt-oss-120b", {}, false],
    ["o3-deep-research", { reasoning_effort: "none" }, true],
    ["gemini-2.5-pro", {}, true],
    ["gemini-3-flash", { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }, false],
    ["gemini-2.5-flash-nothinking", {}, false],
    ["gemini-2.5-pro-nothinking", {}, true],
    ["gemini-2.5-pro", { reasoning_effort: "none" }, true],
    ["gemini-3-pro-image", {}, false],
    ["gemini-2.0-flash", {}, false],
    ["claude-sonnet-4-5", {}, false],
    ["claude-sonnet-4-5", { thinking: { type: "enabled", budget_tokens: 2000 } }, true],
    ["claude-sonnet-4-5", { thinking: { type: "disabled" } }, false],
    ["claude-opus-4-7-thinking", {}, true],
    ["claude-3-7-sonnet", { thinking: { type: "enabled", budget_tokens: 2000 } }, false],
    ["claude-3-5-haiku", { reasoning_effort: "high" }, false],
    ["grok-4", {}, true],
    ["grok-4-fast-non-reasoning", {}, false],
    ["deepseek-reasoner", { reasoning_effort: "high" }, false],
    ["qwen3-max", {}, false],
  ])("%s asked with %j: %p", (model, body, isKept) => {
    expect(keepsReasoning(model, body)).toBe(isKept);
  });

  test("a fixed budget is read in the words of any dialect; what is no number is none", () => {
    expect(thinkingBudgetOf({ thinking: { type: "enabled", budget_tokens: 2000 } })).toBe(2000);
    expect(thinkingBudgetOf({ thinking: { type: "disabled", budget_tokens: 2000 } })).toBe(0);
    expect(thinkingBudgetOf({ generationConfig: { thinkingConfig: { thinkingBudget: 300 } } })).toBe(300);
    expect(thinkingBudgetOf({ reasoning: { max_tokens: 700 } })).toBe(700);
    for (const odd of [-1, "9", Number.NaN, Infinity, null])
      expect(thinkingBudgetOf({ generationConfig: { thinkingConfig: { thinkingBudget: odd } } })).toBe(0);
  });
});

describe("the limit in a body", () => {
  test("is lowered where it stands, in every spelling, and written once where none stands", () => {
    expect(limitChanges("openai-chat", { max_tokens: 900, max_completion_tokens: 50 }, 100, "m")).toEqual({
      max_tokens: 100,
    });
    expect(limitChanges("openai-chat", {}, 100, "gpt-4o")).toEqual({ max_tokens: 100 });
    expect(limitChanges("openai-chat", {}, 100, "openai/o3")).toEqual({ max_completion_tokens: 100 });
    expect(limitChanges("openai-responses", { max_output_tokens: null }, 100, "m")).toEqual({
      max_output_tokens: 100,
    });
    expect(limitChanges("anthropic", { max_tokens: 9000 }, 100, "m")).toEqual({ max_tokens: 100 });
    expect(limitChanges("gemini", { generation_config: { topK: 1 } }, 100, "m")).toEqual({
      generation_config: { topK: 1, maxOutputTokens: 100 },
    });
    expect(
      limitChanges(
        "gemini",
        { generationConfig: { maxOutputTokens: 900, max_output_tokens: 800 } },
        100,
        "m",
      ),
    ).toEqual({
      generationConfig: { maxOutputTokens: 100, max_output_tokens: 100 },
    });
  });

  test("is never raised", () => {
    for (const dialect of ["openai-chat", "openai-responses", "anthropic", "gemini"] as const) {
      const body = { max_tokens: 5, max_output_tokens: 5, generationConfig: { maxOutputTokens: 5 } };
      expect(limitChanges(dialect, body, 100, "m")).toEqual({});
      expect(loweredLimits(dialect, {}, 100)).toEqual({});
      expect(limitIn(dialect, body)).toBe(5);
    }
  });

  test("of an operator's overrides counts in whatever words they are", () => {
    expect(overriddenLimit({ max_completion_tokens: 7 })).toBe(7);
    expect(overriddenLimit({ max_output_tokens: 8 })).toBe(8);
    expect(overriddenLimit({ generationConfig: { maxOutputTokens: 9 } })).toBe(9);
    expect(overriddenLimit({ temperature: 1, max_tokens: "many" })).toBe(0);
  });
});
