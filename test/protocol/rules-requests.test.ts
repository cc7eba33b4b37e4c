// Guarantees for requests whose meaning does not carry over: what is refused, dropped by name, mapped or clamped.
import { describe, expect, test } from "bun:test";
import { anthropic } from "../../src/protocol/anthropic/dialect.ts";
import { gemini } from "../../src/protocol/gemini/dialect.ts";
import type { Dialect } from "../../src/protocol/dialect.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { openaiResponses } from "../../src/protocol/openai-responses/dialect.ts";
import { Failure } from "../../src/shared/failures.ts";

const user = [{ role: "user", content: "hi" }];
const chat = (more: object) => openaiChat.decodeRequest({ model: "m", messages: user, ...more });
const claude = (more: object) =>
  anthropic.decodeRequest({ model: "m", max_tokens: 4000, messages: user, ...more });
const responses = (more: object) => openaiResponses.decodeRequest({ model: "m", input: "hi", ...more });
const google = (more: object) =>
  gemini.decodeRequest({ contents: [{ role: "user", parts: [{ text: "hi" }] }], ...more }, { model: "m" });

function refused(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(error).toMatchObject({ kind: "client", code: "unsupported_field", status: 400 });
    return (error as Failure).param ?? "";
  }
  throw new Error("was not refused");
}

describe("refused by name", () => {
  test("several answers go to Gemini only", () => {
    const request = chat({ n: 2 });
    expect(refused(() => anthropic.encodeRequest(request))).toBe("n");
    expect(refused(() => openaiResponses.encodeRequest(request))).toBe("n");
    expect(gemini.encodeRequest(request).body["generationConfig"]).toEqual({ candidateCount: 2 });
    expect(openaiChat.encodeRequest(google({ generationConfig: { candidateCount: 2 } })).body["n"]).toBe(2);
  });
  test("state and background work of the Responses API stay with it", () => {
    for (const [field, value] of Object.entries({
      previous_response_id: "resp_1",
      background: true,
      conversation: "c",
      prompt: { id: "p" },
    })) {
      const request = responses({ [field]: value });
      for (const other of [openaiChat, anthropic, gemini])
        expect(refused(() => other.encodeRequest(request))).toBe(field);
      expect(openaiResponses.encodeRequest(request).body[field]).toEqual(value);
    }
    expect(
      anthropic.encodeRequest(responses({ background: false, previous_response_id: null })).body,
    ).toBeDefined();
  });
  test("hosted tools without a counterpart, and items of the provider's own", () => {
    expect(refused(() => anthropic.encodeRequest(responses({ tools: [{ type: "file_search" }] })))).toBe(
      "tools.file_search",
    );
    expect(
      refused(() =>
        gemini.encodeRequest(claude({ tools: [{ type: "computer_20251124", name: "computer" }] })),
      ),
    ).toBe("tools.computer_20251124");
    expect(
      refused(() =>
        openaiChat.encodeRequest(
          claude({ tools: [{ type: "code_execution_20250825", name: "code_execution" }] }),
        ),
      ),
    ).toBe("tools.code_execution_20250825");
    expect(
      refused(() => openaiChat.encodeRequest(responses({ input: [{ type: "item_reference", id: "x" }] }))),
    ).toBe("input.item_reference");
    expect(refused(() => anthropic.encodeRequest(chat({ functions: [{ name: "f" }] })))).toBe("functions");
    expect(refused(() => anthropic.encodeRequest(google({ cachedContent: "c" })))).toBe("cachedContent");
  });
  test("stop words towards Responses, sound towards Anthropic", () => {
    expect(refused(() => openaiResponses.encodeRequest(chat({ stop: ["x"] })))).toBe("stop");
    const audio = [
      { role: "user", content: [{ type: "input_audio", input_audio: { data: "AAAA", format: "wav" } }] },
    ];
    expect(refused(() => anthropic.encodeRequest(chat({ messages: audio })))).toBe("audio");
  });
});

describe("dropped, and listed", () => {
  test("what only tunes the answer is left out by name", () => {
    const { dropped, body } = anthropic.encodeRequest(
      chat({
        seed: 1,
        frequency_penalty: 1,
        presence_penalty: 0,
        logit_bias: { 1: 1 },
        logprobs: true,
        temperature: 1.5,
        future: 1,
        store: null,
      }),
    );
    expect(dropped.sort()).toEqual([
      "frequency_penalty",
      "future",
      "logit_bias",
      "logprobs",
      "seed",
      "temperature",
    ]);
    expect(body["temperature"]).toBe(1);
  });
  test("records of hosted tools in the history are left out", () => {
    const messages = [
      ...user,
      {
        role: "assistant",
        content: [
          { type: "server_tool_use", id: "s", name: "web_search", input: {} },
          { type: "web_search_tool_result", tool_use_id: "s", content: [] },
        ],
      },
      { role: "user", content: "go on" },
    ];
    const { body, dropped } = openaiChat.encodeRequest(claude({ messages }));
    expect(dropped).toEqual(["server_tool_use", "web_search_tool_result"]);
    expect(body["messages"]).toEqual([
      { role: "user", content: "hi" },
      { role: "user", content: "go on" },
    ]);
  });
  test("Gemini settings without a counterpart are named, those with one are not", () => {
    const request = google({
      generationConfig: { temperature: 0, mediaResolution: "LOW" },
      safetySettings: [],
      tools: [],
    });
    expect(openaiChat.encodeRequest(request).dropped).toEqual([
      "generationConfig.mediaResolution",
      "safetySettings",
    ]);
  });
});

describe("nothing is added that the client did not send", () => {
  test("the smallest request stays the smallest, apart from Anthropic's required limit", () => {
    const requests = [
      chat({}),
      responses({}),
      google({}),
      anthropic.decodeRequest({ model: "m", messages: user }),
    ];
    for (const request of requests) {
      expect(Object.keys(openaiChat.encodeRequest(request).body).sort()).toEqual(["messages", "model"]);
      expect(Object.keys(openaiResponses.encodeRequest(request).body).sort()).toEqual(["input", "model"]);
      expect(Object.keys(gemini.encodeRequest(request).body)).toEqual(["contents"]);
      expect(
        Object.keys(anthropic.encodeRequest(request, { defaultMaxOutputTokens: 77 }).body).sort(),
      ).toEqual(["max_tokens", "messages", "model"]);
      expect(anthropic.encodeRequest(request, { defaultMaxOutputTokens: 77 }).body["max_tokens"]).toBe(77);
    }
  });
  test("zero and false keep their meaning across dialects", () => {
    const request = chat({
      temperature: 0,
      max_tokens: 0,
      top_p: 0,
      parallel_tool_calls: false,
      tools: [{ type: "function", function: { name: "f" } }],
    });
    expect(anthropic.encodeRequest(request).body).toMatchObject({
      temperature: 0,
      max_tokens: 0,
      top_p: 0,
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
    });
    expect(openaiResponses.encodeRequest(request).body).toMatchObject({
      temperature: 0,
      max_output_tokens: 0,
      parallel_tool_calls: false,
    });
    expect(gemini.encodeRequest(request).body["generationConfig"]).toEqual({
      temperature: 0,
      maxOutputTokens: 0,
      topP: 0,
    });
  });
});

describe("reasoning", () => {
  const thinkingOf = (more: object, model = "claude-sonnet-4-5") =>
    anthropic.encodeRequest(chat({ ...more }), { model }).body;

  test("an effort becomes a budget that leaves room for the answer", () => {
    expect(thinkingOf({ reasoning_effort: "low", max_tokens: 20_000 })["thinking"]).toEqual({
      type: "enabled",
      budget_tokens: 4096,
    });
    expect(thinkingOf({ reasoning_effort: "high", max_tokens: 10_000 })["thinking"]).toEqual({
      type: "enabled",
      budget_tokens: 8000,
    });
    expect(thinkingOf({ reasoning_effort: "minimal", max_tokens: 1200 })["thinking"]).toEqual({
      type: "enabled",
      budget_tokens: 1024,
    });
    const free = anthropic.encodeRequest(chat({ reasoning_effort: "low" }), {
      defaultMaxOutputTokens: 1000,
      model: "claude-opus-4-1",
    });
    expect(free.body["max_tokens"]).toBe(5096);
  });
  test("an answer limit too small to think in switches thinking off, by name", () => {
    const { body, dropped } = anthropic.encodeRequest(chat({ reasoning_effort: "high", max_tokens: 500 }), {
      model: "claude-opus-4-1",
    });
    expect(body["thinking"]).toBeUndefined();
    expect(dropped).toEqual(["reasoning"]);
  });
  test("thinking leaves sampling at its defaults", () => {
    const { body, dropped } = anthropic.encodeRequest(
      chat({ reasoning_effort: "low", max_tokens: 9000, temperature: 0, top_p: 0.5 }),
      { model: "claude-opus-4-1" },
    );
    expect(body["temperature"]).toBeUndefined();
    expect(dropped.sort()).toEqual(["temperature", "top_p"]);
  });
  test("newer Claude models get the effort itself and no sampling", () => {
    const { body, dropped } = anthropic.encodeRequest(chat({ reasoning_effort: "xhigh", temperature: 0 }), {
      model: "claude-opus-4-8",
    });
    expect(body).toMatchObject({ thinking: { type: "adaptive" }, output_config: { effort: "xhigh" } });
    expect(dropped).toEqual(["temperature"]);
  });
  test("none switches it off everywhere", () => {
    const request = chat({ reasoning_effort: "none" });
    expect(anthropic.encodeRequest(request).body["thinking"]).toEqual({ type: "disabled" });
    expect(gemini.encodeRequest(request).body["generationConfig"]).toEqual({
      thinkingConfig: { thinkingBudget: 0 },
    });
    expect(openaiResponses.encodeRequest(request).body["reasoning"]).toEqual({ effort: "none" });
  });
  test("models that do not reason are not asked to, by name; those that always do think as little as they can", () => {
    const hard = claude({ thinking: { type: "enabled", budget_tokens: 2000 } });
    const asked = (dialect: Dialect, model: string, request = hard) =>
      dialect.encodeRequest?.(request, { model }) ?? { body: {}, dropped: [] };
    for (const [dialect, model] of [
      [openaiChat, "gpt-4o-mini"],
      [openaiChat, "openai/gpt-4.1"],
      [openaiResponses, "gpt-4o"],
      [openaiResponses, "gpt-5-chat-latest"],
      [gemini, "gemini-2.0-flash"],
    ] as const) {
      const { body, dropped } = asked(dialect, model);
      expect([model, dropped]).toEqual([model, ["reasoning"]]);
      expect(JSON.stringify(body)).not.toMatch(/reasoning|thinking|include/);
    }
    const fromChat = chat({ reasoning_effort: "high", max_tokens: 9000 });
    const old = asked(anthropic, "claude-3-5-sonnet-20241022", fromChat);
    expect([old.body["thinking"], old.dropped]).toEqual([undefined, ["reasoning"]]);

    const off = claude({ thinking: { type: "disabled" } });
    const effortOf = (model: string) => asked(openaiChat, model, off).body["reasoning_effort"];
    expect(["gpt-5.1", "gpt-5-mini", "o3", "gpt-5-codex"].map(effortOf)).toEqual([
      "none",
      "minimal",
      "low",
      "low",
    ]);
    expect(asked(openaiChat, "gpt-4o", off)).toMatchObject({ dropped: [] });
    expect(asked(openaiResponses, "gpt-5-codex", off).body["reasoning"]).toEqual({ effort: "low" });
    const budgetOf = (model: string) => asked(gemini, model, off).body["generationConfig"];
    expect(budgetOf("gemini-2.5-flash")).toMatchObject({ thinkingConfig: { thinkingBudget: 0 } });
    expect(budgetOf("gemini-2.5-pro")).toMatchObject({ thinkingConfig: { thinkingBudget: 128 } });
  });
  test("an effort that a model does not take becomes the nearest one it does, weaker before stronger", () => {
    const effort = (word: string, model: string) =>
      openaiChat.encodeRequest(claude({ output_config: { effort: word } }), { model }).body[
        "reasoning_effort"
      ];
    expect(effort("max", "gpt-5")).toBe("high");
    expect(effort("max", "gpt-5.2")).toBe("xhigh");
    expect(effort("max", "somebody's-model")).toBe("xhigh");
    expect(effort("medium", "o4-mini")).toBe("medium");
    // A client that speaks the dialect itself is passed on as it is.
    const own = chat({ reasoning_effort: "max", temperature: 0 });
    expect(openaiChat.encodeRequest(own, { model: "gpt-5" }).body).toMatchObject({
      reasoning_effort: "max",
      temperature: 0,
    });
  });
  test("a budget becomes an effort, and a Gemini budget is clamped", () => {
    const request = claude({ max_tokens: 64_000, thinking: { type: "enabled", budget_tokens: 60_000 } });
    expect(openaiChat.encodeRequest(request).body["reasoning_effort"]).toBe("high");
    expect(openaiResponses.encodeRequest(request).body).toMatchObject({
      reasoning: { effort: "high", summary: "auto" },
      include: ["reasoning.encrypted_content"],
    });
    expect(gemini.encodeRequest(request).body["generationConfig"]).toMatchObject({
      thinkingConfig: { thinkingBudget: 24_576, includeThoughts: true },
    });
    expect(
      openaiChat.encodeRequest(google({ generationConfig: { thinkingConfig: { thinkingBudget: 2000 } } }))
        .body["reasoning_effort"],
    ).toBe("low");
    expect(
      openaiChat.encodeRequest(google({ generationConfig: { thinkingConfig: { thinkingLevel: "HIGH" } } }))
        .body["reasoning_effort"],
    ).toBe("high");
  });
  test("a tool turn under way without signed thinking goes on without thinking", () => {
    const messages = [
      ...user,
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "a", content: "r" },
    ];
    const { body, dropped } = anthropic.encodeRequest(
      chat({ messages, reasoning_effort: "high", max_tokens: 9000 }),
      { model: "claude-opus-4-1" },
    );
    expect(body["thinking"]).toBeUndefined();
    expect(dropped).toEqual(["reasoning"]);
  });
});
