// Guarantees of the chat completions stream: decoder, encoder, meter, usage.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { collect, explode } from "../../src/protocol/assemble.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { decodeUsage, encodeUsage } from "../../src/protocol/openai-chat/usage.ts";
import { completionTokens, MAX_TOKEN_COUNT, promptTokens } from "../../src/shared/usage.ts";
import { counter, dataFrame, decode, encode, fixture, frames, jsonFixture, textOf } from "./support.ts";

const chunk = (delta: object, more: object = {}) =>
  dataFrame({
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: null, ...more }],
  });
const tool = (index: number, args: string, id?: string, name?: string) =>
  chunk({
    tool_calls: [
      {
        index,
        ...(id ? { id, type: "function" } : {}),
        function: { ...(name ? { name } : {}), arguments: args },
      },
    ],
  });
const DONE = dataFrame("[DONE]");
const finishWith = (reason: string) => chunk({}, { finish_reason: reason });

describe("decoding", () => {
  test("text, usage split into disjoint fields, and the end", () => {
    const events = decode(openaiChat, fixture("openai-chat/text.sse"));
    expect(textOf(events, "text")).toBe("Grüße, 世界 👋");
    const usage = events.find((event) => event.type === "usage");
    expect(usage?.type === "usage" && usage.usage.input).toEqual({
      fresh: 20,
      cacheRead: 100,
      cacheWrite5m: 0,
      cacheWrite1h: 0,
      audio: 5,
      image: 0,
    });
    expect(usage?.type === "usage" && usage.usage.output).toEqual({
      text: 7,
      thinking: 30,
      audio: 3,
      image: 0,
    });
    expect(events.at(-1)).toEqual({ type: "finish", reason: "stop", raw: "stop" });
  });

  test("interleaved parallel calls come out one after the other, arguments whole", () => {
    const events = decode(openaiChat, fixture("openai-chat/tools-interleaved.sse"));
    const answer = collect(events);
    expect(answer.blocks.map(({ kind, callId, name, text }) => ({ kind, callId, name, text }))).toEqual([
      { kind: "text", callId: undefined, name: undefined, text: "Let me look." },
      { kind: "tool-call", callId: "call_a", name: "weather", text: '{"city":"Zürich"}' },
      { kind: "tool-call", callId: "call_b", name: "time", text: '{"zone":"CET"}' },
    ]);
    expect(answer.reason).toBe("tool-calls");
  });

  test("a call that is whole makes way at once, so a second call streams live", () => {
    const decoder = openaiChat.decodeStream({ newId: counter() });
    decoder.push(tool(0, '{"a":"}"}', "x", "f"));
    const events = decoder.push(tool(1, "{", "y", "g"));
    expect(events.map((event) => event.type)).toEqual(["close", "open", "json"]);
  });

  test("an escaped quote does not make half a call whole", () => {
    const decoder = openaiChat.decodeStream({ newId: counter() });
    decoder.push(tool(0, '{"a":"\\"}', "x", "f"));
    expect(decoder.push(tool(1, "{}", "y", "g"))).toEqual([]);
    // Now it is, and the next one goes on.
    expect(decoder.push(tool(0, '"}')).map((event) => event.type)).toEqual(["json", "close", "open", "json"]);
  });

  test("white space behind a call that was closed makes no new call", () => {
    const events = decode(openaiChat, [
      tool(0, "{}", "x", "f"),
      tool(1, "{}", "y", "g"),
      tool(0, " "),
      finishWith("tool_calls"),
      DONE,
    ]);
    expect(collect(events).blocks).toHaveLength(2);
  });

  test("events without an end are no answer", () => {
    expect(() => collect([{ type: "start" }])).toThrow(expect.objectContaining({ kind: "broken-stream" }));
  });

  test("calls that share an index but not an id are two calls", () => {
    const events = decode(openaiChat, [
      tool(0, '{"n":1}', "a", "f"),
      tool(0, '{"n":2}', "b", "f"),
      finishWith("tool_calls"),
      DONE,
    ]);
    expect(collect(events).blocks.map((block) => block.text)).toEqual(['{"n":1}', '{"n":2}']);
  });

  test("a call without name and arguments beside text is none: such an answer ends as its upstream says", () => {
    const nothing = chunk({ tool_calls: [{ index: 0, id: "", function: { name: "", arguments: "" } }] });
    const events = decode(openaiChat, [chunk({ content: "Hi" }), nothing, finishWith("stop"), DONE]);
    expect(collect(events)).toMatchObject({ reason: "stop", blocks: [{ kind: "text", text: "Hi" }] });
  });

  test("a call with an id goes on under its index, whatever name comes with it", () => {
    const events = decode(openaiChat, [
      tool(0, "", "a", "f"),
      tool(0, '{"a":1}', undefined, "f_more"),
      finishWith("tool_calls"),
      DONE,
    ]);
    expect(collect(events).blocks).toMatchObject([{ callId: "a", name: "f", text: '{"a":1}' }]);
  });

  test("a missing call id is made up and a late name is waited for", () => {
    const events = decode(openaiChat, [
      tool(0, '{"a"'),
      tool(0, ":1}", undefined, "late"),
      finishWith("tool_calls"),
      DONE,
    ]);
    expect(collect(events).blocks).toMatchObject([{ callId: "call_1", name: "late", text: '{"a":1}' }]);
  });

  test("arguments given as an object are read as their JSON", () => {
    const frame = chunk({
      tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: { x: 0 } } }],
    });
    expect(collect(decode(openaiChat, [frame, finishWith("tool_calls"), DONE])).blocks[0]?.text).toBe(
      '{"x":0}',
    );
  });

  test("reasoning in its spellings becomes thinking, with its signature", () => {
    const events = decode(openaiChat, [
      chunk({ reasoning_content: "a" }),
      chunk({ reasoning: "b" }),
      chunk({ reasoning_details: [{ type: "reasoning.text", text: "c", signature: "anthropic.sig" }] }),
      chunk({ content: "done" }),
      finishWith("stop"),
      DONE,
    ]);
    expect(textOf(events, "thinking")).toBe("abc");
    expect(events).toContainEqual({
      type: "note",
      at: 0,
      note: "signature",
      dialect: "anthropic",
      value: "sig",
    });
  });

  test("refusals, audio and logprobs keep their kind", () => {
    const logprobs = {
      content: [{ token: "x", logprob: -0.1, bytes: null, top_logprobs: [] }],
      refusal: null,
    };
    const events = decode(openaiChat, [
      chunk({ content: "x" }, { logprobs }),
      chunk({ refusal: "no" }),
      chunk({ audio: { id: "aud", data: "AAAA", transcript: "hi" } }),
      chunk({ audio: { data: "BBBB" } }),
      finishWith("stop"),
      DONE,
    ]);
    expect(events).toContainEqual({
      type: "note",
      at: 0,
      note: "logprobs",
      dialect: "openai-chat",
      value: logprobs,
    });
    expect(textOf(events, "refusal")).toBe("no");
    expect(collect(events).blocks[2]).toMatchObject({ kind: "audio", callId: "aud", data: "AAAABBBB" });
  });

  test("an error object in mid-stream fails the stream and hides hosts and keys", () => {
    const events = decode(openaiChat, [
      chunk({ content: "par" }),
      dataFrame({
        error: {
          message: "bad request at https://internal.example.com sk-abcdefghijklmnop",
          type: "invalid_request_error",
          code: "bad",
        },
      }),
      chunk({ content: "ignored" }),
      DONE,
    ]);
    const last = events.at(-1);
    expect(last?.type === "fail" && last.failure.kind).toBe("upstream-request");
    expect(last?.type === "fail" && last.failure.text).toBe("bad request at [url] [key]");
    expect(textOf(events, "text")).toBe("par");
  });

  test("a stream cut before its terminal event fails as broken; one with finish_reason but no [DONE] is whole", () => {
    const cut = decode(openaiChat, [chunk({ content: "par" })]);
    expect(cut.at(-1)).toMatchObject({ type: "fail", failure: { kind: "broken-stream" } });
    expect(decode(openaiChat, []).at(-1)).toMatchObject({ type: "fail" });
    expect(decode(openaiChat, [chunk({ content: "x" }), finishWith("length")]).at(-1)).toMatchObject({
      type: "finish",
      reason: "length",
    });
  });

  test("garbage between frames is skipped", () => {
    const events = decode(openaiChat, [
      dataFrame("not json"),
      dataFrame("[1]"),
      dataFrame("null"),
      chunk({ content: "ok" }),
      dataFrame({ choices: [null, 3] }),
      finishWith("stop"),
      DONE,
    ]);
    expect(textOf(events, "text")).toBe("ok");
  });

  test("any object for a delta keeps the invariants", () => {
    const delta = fc.record(
      {
        content: fc.oneof(fc.string(), fc.constant(null), fc.array(fc.anything())),
        reasoning_content: fc.oneof(fc.string(), fc.constant(null)),
        refusal: fc.oneof(fc.string(), fc.constant(null)),
        tool_calls: fc.array(
          fc.record(
            {
              index: fc.nat(3),
              id: fc.constantFrom("a", "b", "c"),
              function: fc.record(
                { name: fc.constantFrom("f", "g"), arguments: fc.constantFrom("", "{", "}", '{"a":1}', '"') },
                { requiredKeys: [] },
              ),
            },
            { requiredKeys: [] },
          ),
        ),
        annotations: fc.array(fc.anything()),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(delta), fc.boolean(), (deltas, whole) => {
        decode(openaiChat, [
          ...deltas.map((item) => chunk(item)),
          ...(whole ? [finishWith("stop"), DONE] : []),
        ]);
      }),
      { numRuns: 300 },
    );
  });
});

describe("usage", () => {
  test("negative, absurd and non-numbers never pass", () => {
    expect(decodeUsage({ prompt_tokens: -5, completion_tokens: Number.NaN, total_tokens: -1 })).toBeNull();
    const big = decodeUsage({
      prompt_tokens: 1e300,
      completion_tokens: "7",
      prompt_tokens_details: { cached_tokens: 1e301 },
    });
    expect(big?.input.cacheRead).toBe(MAX_TOKEN_COUNT);
    expect(big?.input.fresh).toBe(0);
    fc.assert(
      fc.property(fc.anything(), fc.anything(), fc.anything(), fc.anything(), (p, c, cached, reasoning) => {
        const usage = decodeUsage({
          prompt_tokens: p,
          completion_tokens: c,
          prompt_tokens_details: { cached_tokens: cached },
          completion_tokens_details: { reasoning_tokens: reasoning },
        });
        if (!usage) return;
        for (const count of [...Object.values(usage.input), ...Object.values(usage.output)]) {
          expect(count).toBeGreaterThanOrEqual(0);
          expect(count).toBeLessThanOrEqual(MAX_TOKEN_COUNT);
        }
      }),
    );
  });
  test("cached tokens are not counted twice, and the parts sum to the total", () => {
    const usage = decodeUsage({
      prompt_tokens: 100,
      completion_tokens: 50,
      prompt_tokens_details: { cached_tokens: 80 },
      completion_tokens_details: { reasoning_tokens: 20 },
    });
    expect(usage?.input.fresh).toBe(20);
    expect(usage && promptTokens(usage)).toBe(100);
    expect(usage && completionTokens(usage)).toBe(50);
  });
  test("DeepSeek's cache hits are cache reads", () => {
    const usage = decodeUsage({
      prompt_tokens: 100,
      completion_tokens: 1,
      prompt_cache_hit_tokens: 64,
      prompt_cache_miss_tokens: 36,
    });
    expect(usage?.input).toMatchObject({ fresh: 36, cacheRead: 64 });
  });
  test("reasoning that an upstream left out of the completion count is added", () => {
    const usage = decodeUsage({
      prompt_tokens: 10,
      completion_tokens: 9,
      total_tokens: 319,
      completion_tokens_details: { reasoning_tokens: 300 },
    });
    expect(usage?.output).toMatchObject({ text: 9, thinking: 300 });
  });
  test("so is what cannot be in it; deep research reads and thinks beside everything else", () => {
    const more = {
      prompt_tokens: 10,
      completion_tokens: 9,
      completion_tokens_details: { reasoning_tokens: 300 },
    };
    expect(decodeUsage({ ...more, total_tokens: 19 })?.output).toMatchObject({ text: 9, thinking: 300 });
    const research = {
      prompt_tokens: 33,
      completion_tokens: 7163,
      total_tokens: 7196,
      num_search_queries: 18,
    };
    for (const reasoning of [73_997, 500]) {
      const usage = decodeUsage({ ...research, citation_tokens: 20_016, reasoning_tokens: reasoning });
      expect(usage).toMatchObject({
        input: { fresh: 33 + 20_016 },
        output: { text: 7163, thinking: reasoning },
        calls: { webSearch: 18 },
      });
    }
    // Of the other models what is cited costs nothing.
    expect(decodeUsage({ ...research, citation_tokens: 20_016 })?.input.fresh).toBe(33);
  });
  test("embeddings and rerank that report only a total count as input", () => {
    expect(decodeUsage({ total_tokens: 12 })?.input.fresh).toBe(12);
    expect(decodeUsage({ prompt_tokens: 8, total_tokens: 8 })?.output.text).toBe(0);
    expect(decodeUsage(null)).toBeNull();
  });
  test("what is encoded decodes to the same counts", () => {
    const usage = decodeUsage({
      prompt_tokens: 100,
      completion_tokens: 50,
      prompt_tokens_details: { cached_tokens: 80, audio_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 20 },
    });
    expect(usage).not.toBeNull();
    if (!usage) return;
    expect(decodeUsage(encodeUsage(usage))).toMatchObject({ input: usage.input, output: usage.output });
  });
});

describe("encoding", () => {
  for (const name of ["text", "tools-interleaved"]) {
    test(`${name}: decode(encode(events)) is the same answer`, () => {
      const answer = collect(decode(openaiChat, fixture(`openai-chat/${name}.sse`)));
      const again = collect(decode(openaiChat, encode(openaiChat, explode(answer))));
      expect({ ...again, usage: again.usage.input, extra: null }).toEqual({
        ...answer,
        usage: answer.usage.input,
        extra: null,
      });
    });
  }
  test("the usage chunk is only sent when the client asked", () => {
    const events = decode(openaiChat, fixture("openai-chat/text.sse"));
    expect(encode(openaiChat, events, { includeUsage: false })).not.toContain('"usage"');
    expect(encode(openaiChat, events)).toContain('"choices":[],"usage"');
  });
  test("a failed stream ends with an error object and without [DONE]", () => {
    const wire = encode(openaiChat, decode(openaiChat, [chunk({ content: "x" })]));
    const last = frames(wire).at(-1)?.data ?? "";
    expect(JSON.parse(last)).toMatchObject({ error: { code: "broken_stream" } });
    expect(wire).not.toContain("[DONE]");
  });
  test("a whole answer survives decodeAnswer and encodeAnswer", () => {
    const wire = jsonFixture("openai-chat/answer.json");
    const context = { newId: counter(), nowSeconds: 5 };
    const answer = openaiChat.decodeAnswer(wire, context);
    expect(openaiChat.encodeAnswer(answer, context)).toEqual(wire);
  });
});

describe("metering", () => {
  test("a passthrough stream yields the decoder's usage, end and text length", () => {
    const meter = openaiChat.meterStream();
    const last: boolean[] = [];
    for (const frame of frames(fixture("openai-chat/text.sse"))) {
      meter.push(frame);
      last.push(meter.state.lastWasUsageOnly);
    }
    expect(meter.state).toMatchObject({ ended: true, usageFinal: true, sawText: true, failure: null });
    expect(meter.state.usage?.input.cacheRead).toBe(100);
    expect(meter.state.textChars).toBe("Grüße, 世界 👋".length);
    expect(last.filter(Boolean)).toHaveLength(1);
    expect(last.at(-2)).toBe(true);
  });
  test("the short way and the full parse agree on any text without escapes", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const seen: string[] = [];
        const fast = openaiChat.meterStream();
        const full = openaiChat.meterStream({ onText: (delta) => seen.push(delta) });
        fast.push(chunk({ content: text }));
        full.push(chunk({ content: text }));
        expect(seen.join("")).toBe(text);
        expect(fast.state.sawText).toBe(text !== "");
        expect(fast.state.textChars).toBeGreaterThanOrEqual(full.state.textChars);
      }),
    );
  });
  test("a frame among its like is measured as it is alone", () => {
    const contents = [
      "one",
      "",
      'a "quote"',
      "ends in \\\\",
      "\\n",
      '"}',
      "汉字 👋",
      '","content":"x',
      "last",
    ];
    const told = [
      chunk({ content: "x", refusal: "no" }),
      chunk({ content: "x" }, { finish_reason: "stop" }),
      dataFrame({
        choices: [{ delta: { content: "x" } }],
        usage: { prompt_tokens: 1, completion_tokens: 2 },
      }),
      dataFrame({ error: { message: "x" } }),
    ];
    for (const last of told) {
      const together = openaiChat.meterStream();
      let chars = 0;
      for (const frame of [...contents.map((content) => chunk({ content })), last]) {
        const alone = openaiChat.meterStream();
        alone.push(frame);
        together.push(frame);
        chars += alone.state.textChars;
        const { ended, failure, usage } = alone.state;
        expect([together.state.textChars, together.state.ended, together.state.usage]).toEqual([
          chars,
          ended,
          usage,
        ]);
        expect(together.state.failure?.code).toBe(failure?.code);
      }
    }
  });

  test("other fields beside the content, and quotes inside it, are counted too", () => {
    const meter = openaiChat.meterStream();
    meter.push(chunk({ content: "ab", reasoning_content: "xyz" }));
    expect(meter.state.textChars).toBe(5);
    meter.push(chunk({ content: 'a"}bcdef' }));
    expect(meter.state.textChars).toBe(13);
  });
  test("text that looks like wire fields is only text", () => {
    const meter = openaiChat.meterStream();
    meter.push(
      chunk({ content: '"usage":{"prompt_tokens":9} "finish_reason":"stop" "error":{"message":"x"}' }),
    );
    expect(meter.state).toMatchObject({ ended: false, usage: null, failure: null, sawText: true });
  });
  test("an error object is seen, and a stream without an end is not whole", () => {
    const meter = openaiChat.meterStream();
    meter.push(chunk({ content: "x" }));
    meter.push(dataFrame({ error: { message: "m", code: "server_error" } }));
    expect(meter.state.failure?.kind).toBe("upstream-down");
    expect(meter.state.ended).toBe(false);
  });
  test("legacy completions text counts", () => {
    const meter = openaiChat.meterStream();
    meter.push(
      dataFrame({ object: "text_completion", choices: [{ index: 0, text: "abc", finish_reason: "stop" }] }),
    );
    expect(meter.state).toMatchObject({ ended: true, textChars: 3 });
  });
});
