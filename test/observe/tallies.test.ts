// Tallies of calls: what a scrape finds in them, and that no number of names fills the memory.
import { expect, test } from "bun:test";
import { createCallTallies, MOST_COMBINATIONS } from "../../src/observe/call-tallies.ts";
import { OTHER_MODEL } from "../../src/observe/names.ts";
import { createObserver } from "../../src/observe/observer.ts";
import type { EndedRequest } from "../../src/observe/observer.ts";
import { createTally, observe, quantileOf } from "../../src/observe/tally.ts";

test("an observation counts under the first bound that it does not pass", () => {
  const tally = createTally([1, 4, 16]);
  for (const value of [0, 1, 1.5, 4, 16, 17]) observe(tally, value);
  expect(tally.counts).toEqual([2, 2, 1, 1]);
  expect([tally.count, tally.sum]).toEqual([6, 39.5]);
  expect(quantileOf(tally, 0.5)).toBe(4);
  expect(quantileOf(createTally([1]), 0.5)).toBeUndefined();
});

test("one combination too many is told as _other, and those that were there go on", () => {
  const tallies = createCallTallies();
  const first = tallies.of("model-0", "chat", "openai", "");
  for (let index = 1; index < MOST_COMBINATIONS; index++) tallies.of(`model-${index}`, "chat", "openai", "");
  const late = tallies.of("model-late", "chat", "openai", "");
  expect(late.labels.model).toBe(OTHER_MODEL);
  expect(tallies.of("model-later", "chat", "openai", "")).toBe(late);
  expect(tallies.of("model-0", "chat", "openai", "")).toBe(first);
  expect(tallies.all().length).toBe(MOST_COMBINATIONS + 1);
  expect(tallies.refused()).toBe(2);
});

test("a stream's pace leaves out its first token, and a request without a charge has no tokens", () => {
  const observer = createObserver();
  const request: EndedRequest = {
    endpoint: "chat",
    provider: "openai",
    model: "m",
    outcome: "ok",
    error: "",
    durationMs: 1100,
    addedMs: 2,
    firstTokenMs: 100,
    tokens: { input: 5, output: 11, cacheRead: 1, cacheWrite: 2, reasoning: 3 },
  };
  observer.ended(request);
  observer.ended({ ...request, outcome: "upstream", error: "upstream-cut", tokens: undefined });
  const [delivered, failed] = observer.figures.calls.all();
  expect(delivered?.perToken?.sum).toBeCloseTo(0.1, 10);
  expect([failed?.requests?.count, failed?.input, failed?.perToken]).toEqual([1, undefined, undefined]);
  expect(observer.figures.tokens).toEqual({
    input: 5,
    output: 11,
    cache_read: 1,
    cache_write: 2,
    reasoning: 3,
  });
  expect(observer.figures.requests.get("chat")).toEqual([1, 0, 0, 0, 0, 1, 0, 0]);
});
