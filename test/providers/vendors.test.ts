// Makers of models by their names: every preset model that has a well-known maker finds it, in both languages.
import { expect, test } from "bun:test";
import { vendors } from "../../src/providers/vendors.ts";
import { listPresetModels } from "../../src/providers/models.ts";

test.each([
  ["gpt-5.1", "openai"],
  ["o3-mini", "openai"],
  ["text-embedding-3-small", "openai"],
  ["claude-sonnet-4-20250514", "anthropic"],
  ["gemini-2.5-pro", "google"],
  ["qwen-max", "alibaba"],
  ["Qwen/Qwen3-32B", "alibaba"],
  ["deepseek-ai/DeepSeek-V3", "deepseek"],
  ["Pro/deepseek-ai/DeepSeek-V3", "deepseek"],
  ["openai/gpt-oss-120b", "openai"],
  ["meta-llama/llama-3-8b", "meta"],
  ["house-model", "house"],
  ["acme/house-model", "acme"],
  ["360gpt", ""],
])("%s is by %p", (model, vendor) => expect(vendors.of(model)).toBe(vendor));

test("titles are in the reader's language; an unknown maker stands for itself", () => {
  expect(vendors.title("zhipu", "en")).toBe("Zhipu");
  expect(vendors.title("zhipu", "zh")).toBe("智谱");
  expect(vendors.title("acme", "zh")).toBe("acme");
});

test("most preset models have a maker with a title", () => {
  const models = listPresetModels();
  const untitled = models.filter(({ id }) => vendors.title(vendors.of(id), "en") === vendors.of(id));
  expect(untitled.length / models.length).toBeLessThan(0.2);
});
