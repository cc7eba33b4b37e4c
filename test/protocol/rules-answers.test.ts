// Guarantees for usage numbers, upstream errors, Gemini's array framing, and the validator itself.
import { describe, expect, test } from "bun:test";
import { anthropic } from "../../src/protocol/anthropic/dialect.ts";
import { decodeUsage as anthropicUsage } from "../../src/protocol/anthropic/usage.ts";
import { classify, scrub } from "../../src/protocol/classify.ts";
import { gemini } from "../../src/protocol/gemini/dialect.ts";
import { decodeUsage as geminiUsage } from "../../src/protocol/gemini/usage.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { embeddingsToBase64, meterAnswer } from "../../src/protocol/openai-text.ts";
import { openaiResponses } from "../../src/protocol/openai-responses/dialect.ts";
import { validateEvents } from "../../src/protocol/validate-events.ts";
import { collect } from "../../src/protocol/assemble.ts";
import { Failure } from "../../src/shared/failures.ts";
import { dataFrame, decode, encode } from "./support.ts";

describe("usage", () => {
  test("Anthropic: the remainder of cache writes counts as short, later zeros replace nothing", () => {
    const usage = anthropicUsage({
      input_tokens: 1,
      cache_creation_input_tokens: 100,
      cache_creation: { ephemeral_1h_input_tokens: 30, ephemeral_5m_input_tokens: 10 },
      output_tokens: 5,
    });
    expect(usage?.input).toMatchObject({ fresh: 1, cacheWrite1h: 30, cacheWrite5m: 70 });
    const events = decode(anthropic, [
      dataFrame({
        type: "message_start",
        message: { usage: { input_tokens: 50, cache_read_input_tokens: 7, output_tokens: 1 } },
      }),
      dataFrame({
        type: "message_delta",
        delta: { stop_reason: "end_turn" },
        usage: { input_tokens: 0, cache_read_input_tokens: null, output_tokens: 9 },
      }),
      dataFrame({ type: "message_stop" }),
    ]);
    expect(collect(events).usage).toMatchObject({ input: { fresh: 50, cacheRead: 7 }, output: { text: 9 } });
  });
  test("Gemini: thoughts, cache and modalities are disjoint and sum up to the total", () => {
    const usage = geminiUsage({
      promptTokenCount: 100,
      cachedContentTokenCount: 40,
      promptTokensDetails: [{ modality: "IMAGE", tokenCount: 30 }],
      candidatesTokenCount: 20,
      thoughtsTokenCount: 10,
      toolUsePromptTokenCount: 5,
      totalTokenCount: 135,
    });
    expect(usage?.input).toMatchObject({ fresh: 35, cacheRead: 40, image: 30 });
    expect(usage?.output).toMatchObject({ text: 20, thinking: 10 });
    expect(geminiUsage({ promptTokenCount: 10, totalTokenCount: 25 })?.output.text).toBe(15);
  });
  test("whole OpenAI-shaped answers are metered without decoding them", () => {
    expect(
      meterAnswer({ object: "list", data: [], usage: { prompt_tokens: 8, total_tokens: 8 } }).usage?.input
        .fresh,
    ).toBe(8);
    expect(meterAnswer({ choices: [{ text: "abcd" }] })).toMatchObject({
      usage: null,
      failure: null,
      textChars: 4,
    });
    expect(
      meterAnswer({
        choices: [{ message: { content: "ab", tool_calls: [{ function: { name: "f", arguments: "{}" } }] } }],
        usage: null,
      }).textChars,
    ).toBe(5);
    expect(meterAnswer({ error: { message: "m", type: "server_error" } }).failure?.kind).toBe(
      "upstream-down",
    );
    expect(meterAnswer({ error: {}, usage: { prompt_tokens: 1 } }).failure).toBeNull();
  });
});

describe("embeddings", () => {
  test("vectors become base64 floats, text stays, and nothing else changes", () => {
    const body = {
      object: "list",
      data: [
        { index: 0, embedding: [0.5, -2] },
        { index: 1, embedding: "AAAA" },
      ],
      model: "m",
    };
    const out = embeddingsToBase64(body) as typeof body;
    const bytes = Buffer.from(String(out.data[0]?.embedding), "base64");
    expect([bytes.readFloatLE(0), bytes.readFloatLE(4)]).toEqual([0.5, -2]);
    expect(out.data[1]).toEqual({ index: 1, embedding: "AAAA" });
    expect(out).toMatchObject({ object: "list", model: "m" });
    expect(embeddingsToBase64({ error: {} })).toEqual({ error: {} });
  });
});

describe("upstream errors", () => {
  const cases: [number, unknown, string, boolean][] = [
    [
      401,
      {
        error: {
          message: "bad key sk-aaaaaaaaaaaaaaaaaaaa",
          type: "invalid_request_error",
          code: "invalid_api_key",
        },
      },
      "upstream-auth",
      true,
    ],
    [429, { error: { message: "slow", type: "rate_limit_error" } }, "upstream-limit", true],
    [429, { error: { message: "no credit", code: "insufficient_quota" } }, "upstream-quota", true],
    [400, { error: { message: "bad", code: "content_filter" } }, "upstream-refusal", false],
    [400, { error: { message: "bad", type: "invalid_request_error" } }, "upstream-request", false],
    [529, { type: "error", error: { type: "overloaded_error", message: "busy" } }, "upstream-down", true],
    [500, "<html>oops</html>", "upstream-down", true],
    [504, "", "upstream-timeout", true],
    [404, { detail: "no such model" }, "upstream-request", false],
  ];
  for (const [status, body, kind, retryable] of cases) {
    test(`${status} ${JSON.stringify(body).slice(0, 60)} is ${kind}`, () => {
      for (const dialect of [openaiChat, anthropic, openaiResponses, gemini]) {
        const failure = dialect.decodeFailure(status, body, "7");
        expect(failure).toMatchObject({ kind, retryable, upstreamStatus: status, retryAfterSeconds: 7 });
        expect(`${failure.text} ${failure.internal}`).not.toContain("sk-aaaa");
        if (kind === "upstream-auth" || kind === "upstream-quota") expect(failure.text).toBeUndefined();
      }
    });
  }
  test("Google's bad key is 400 on the wire and an auth failure here; its delay is heard", () => {
    const bad = gemini.decodeFailure(400, {
      error: {
        code: 400,
        message: "API key not valid",
        status: "INVALID_ARGUMENT",
        details: [{ reason: "API_KEY_INVALID" }],
      },
    });
    expect(bad.kind).toBe("upstream-auth");
    const slow = gemini.decodeFailure(429, {
      error: { code: 429, message: "m", status: "RESOURCE_EXHAUSTED", details: [{ retryDelay: "37s" }] },
    });
    expect(slow).toMatchObject({ kind: "upstream-limit", retryAfterSeconds: 37 });
  });
  test("a blocked prompt is a refusal, streamed and whole", () => {
    const body = { promptFeedback: { blockReason: "SAFETY" } };
    expect(decode(gemini, [dataFrame(body)]).at(-1)).toMatchObject({
      type: "fail",
      failure: { kind: "upstream-refusal", retryable: false },
    });
    expect(() => gemini.decodeAnswer(body, { newId: (p) => p })).toThrow(Failure);
  });
  test("public text shows no address, host, key or account", () => {
    const text = scrub(
      "at https://api.example.com/v1 host api.internal.example.com:8443 10.0.0.7 key sk-proj-abcdefghijklmnop org-abcdefgh123 me@example.com Bearer abc.def token eyJhbGciOiJIUzI1NiJ9.eyJhcGlfa2V5IjoiYSJ9.c2lnbmVk",
    );
    for (const secret of ["example", "eyJ", "c2lnbmVk", "10.0.0.7", "abcdefghijklmnop", "org-abc", "abc.def"])
      expect(text).not.toContain(secret);
    expect(scrub("max_tokens must be at most 4096. See the docs.")).toBe(
      "max_tokens must be at most 4096. See the docs.",
    );
    expect(classify({ status: 200, message: "", type: "api_error" })).toBe("upstream-down");
    expect(classify({ status: 200, message: "", code: 429 })).toBe("upstream-limit");
    expect(classify({ status: 200, message: "", code: "400" })).toBe("upstream-request");
  });
});

describe("Gemini without alt=sse", () => {
  test("the stream is one JSON array, also when it fails", () => {
    const events = decode(gemini, [
      dataFrame({ candidates: [{ content: { parts: [{ text: "a" }] }, finishReason: "STOP" }] }),
    ]);
    expect(JSON.parse(encode(gemini, events, { framing: "json-array" }))).toHaveLength(2);
    const failed = encode(
      gemini,
      [
        { type: "start" },
        { type: "ping" },
        { type: "fail", failure: new Failure("internal", "internal_error") },
      ],
      { framing: "json-array" },
    );
    expect(JSON.parse(failed)).toMatchObject([{ error: { code: 500, status: "INTERNAL" } }]);
  });
});

describe("answers", () => {
  test("several Gemini candidates are several choices of a chat client", () => {
    const frames = [
      dataFrame({
        candidates: [
          { index: 0, content: { parts: [{ text: "a" }] } },
          { index: 1, content: { parts: [{ text: "b" }] } },
        ],
      }),
      dataFrame({
        candidates: [
          { index: 0, content: { parts: [{ text: "A" }] }, finishReason: "STOP" },
          { index: 1, content: { parts: [{ text: "B" }] }, finishReason: "MAX_TOKENS" },
        ],
      }),
    ];
    const wire = openaiChat.encodeAnswer(collect(decode(gemini, frames)), { newId: (p) => p, nowSeconds: 0 });
    expect(wire["choices"]).toMatchObject([
      { index: 0, message: { content: "aA" }, finish_reason: "stop" },
      { index: 1, message: { content: "bB" }, finish_reason: "length" },
    ]);
    const streamed = collect(decode(openaiChat, encode(openaiChat, decode(gemini, frames))));
    expect(streamed.others).toEqual([{ choice: 1, reason: "length", raw: "length" }]);
  });
  test("a refusal in words is an ordinary end; one by the provider's filter is not", () => {
    const words = decode(openaiChat, [
      dataFrame({ choices: [{ index: 0, delta: { refusal: "No." } }] }),
      dataFrame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
      dataFrame("[DONE]"),
    ]);
    const through = decode(openaiResponses, encode(openaiResponses, words));
    expect(collect(through)).toMatchObject({ reason: "stop", blocks: [{ kind: "refusal", text: "No." }] });
    const filtered = decode(anthropic, [
      dataFrame({ type: "message_start", message: {} }),
      dataFrame({ type: "message_delta", delta: { stop_reason: "refusal" } }),
      dataFrame({ type: "message_stop" }),
    ]);
    const context = { newId: (p: string) => p, nowSeconds: 0 };
    expect(openaiResponses.encodeAnswer(collect(filtered), context)).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "content_filter" },
    });
    expect(openaiChat.encodeAnswer(collect(filtered), context)["choices"]).toMatchObject([
      { finish_reason: "content_filter" },
    ]);
    expect(gemini.encodeAnswer(collect(filtered), context)["candidates"]).toMatchObject([
      { finishReason: "SAFETY" },
    ]);
  });
  test("pictures reach the protocols that can show them", () => {
    const events = decode(gemini, [
      dataFrame({
        candidates: [
          {
            content: { parts: [{ inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } }] },
            finishReason: "STOP",
          },
        ],
      }),
    ]);
    for (const client of [openaiChat, openaiResponses, gemini]) {
      expect(collect(decode(client, encode(client, events))).blocks).toMatchObject([
        { kind: "image", data: "iVBORw0KGgo=", mime: "image/png" },
      ]);
    }
    expect(collect(decode(anthropic, encode(anthropic, events))).blocks).toEqual([]);
  });
  test("source references are told in every protocol's own form", () => {
    const value = {
      type: "url_citation",
      url_citation: { url: "https://example.org/", title: "T", start_index: 0, end_index: 1 },
    };
    const events = decode(openaiChat, [
      dataFrame({ choices: [{ index: 0, delta: { content: "x" } }] }),
      dataFrame({ choices: [{ index: 0, delta: { annotations: [value] }, finish_reason: "stop" }] }),
    ]);
    for (const client of [openaiChat, openaiResponses, anthropic, gemini]) {
      const [block] = collect(decode(client, encode(client, events))).blocks;
      expect(JSON.stringify(block?.notes)).toContain("https://example.org/");
    }
  });
});

describe("the validator", () => {
  test("sees every broken invariant", () => {
    const failure = new Failure("internal", "internal_error");
    const frames = [dataFrame(`{"choices":[]}`), dataFrame("[DONE]")];
    const usage = decode(openaiChat, frames).find((event) => event.type === "usage");
    if (!usage) throw new Error("no usage");
    const finish = { type: "finish", reason: "stop", raw: null } as const;
    const open = { type: "open", at: 0, kind: "text" } as const;
    const wrong = [
      [{ type: "start" }],
      [{ type: "start" }, { type: "start" }, { type: "fail", failure }],
      [open, { type: "fail", failure }],
      [{ type: "start" }, { ...open, at: 1 }, { type: "fail", failure }],
      [{ type: "start" }, open, { ...open, at: 1 }, { type: "fail", failure }],
      [{ type: "start" }, open, usage, finish],
      [{ type: "start" }, finish],
      [{ type: "start" }, usage, usage, finish],
      [{ type: "start" }, usage, finish, { type: "ping" }],
      [{ type: "start" }, usage, finish, { type: "fail", failure }],
      [{ type: "start" }, open, { type: "json", at: 0, delta: "" }, { type: "fail", failure }],
      [{ type: "start" }, { type: "open", at: 0, kind: "tool-call" }, { type: "fail", failure }],
      [{ type: "start" }, { type: "close", at: 0 }, { type: "fail", failure }],
      [{ type: "start" }, { type: "text", at: 0, delta: "x" }, { type: "fail", failure }],
    ] as const;
    for (const events of wrong) expect(validateEvents(events)).not.toEqual([]);
    expect(
      validateEvents([{ type: "ping" }, { type: "start" }, open, { type: "close", at: 0 }, usage, finish]),
    ).toEqual([]);
  });
});
