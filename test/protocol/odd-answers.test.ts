// Guarantees for answers that upstreams write in their own way: what they mean reaches the client, as soon as it is known.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { anthropic } from "../../src/protocol/anthropic/dialect.ts";
import { collect } from "../../src/protocol/assemble.ts";
import type { CanonicalEvent } from "../../src/protocol/events.ts";
import { gemini } from "../../src/protocol/gemini/dialect.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { openaiResponses } from "../../src/protocol/openai-responses/dialect.ts";
import { createConversion } from "../../src/relay/wire/stream-convert.ts";
import { counter, dataFrame, decode, encode, textOf } from "./support.ts";

const chunk = (delta: object, reason: string | null = null, index = 0) =>
  dataFrame({ id: "c", model: "m", choices: [{ index, delta, finish_reason: reason }] });
const call = (index: number | undefined, args: string, id?: string, name?: string) =>
  chunk({ tool_calls: [{ index, id, function: { name, arguments: args } }] });
const DONE = dataFrame("[DONE]");
const callsOf = (events: CanonicalEvent[]) =>
  collect(events).blocks.map(({ name, text }) => `${name ?? ""} ${text}`);
const typesOf = (events: CanonicalEvent[]): string[] => events.map(({ type }) => type);

describe("a chat upstream that ends a call with stop", () => {
  const tool_calls = [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }];
  const whole = {
    id: "c",
    choices: [
      { index: 0, message: { role: "assistant", content: null, tool_calls }, finish_reason: "stop" },
      { index: 1, message: { role: "assistant", content: "x" }, finish_reason: "stop" },
    ],
  };

  test("asks the client for its result all the same, streamed and whole", () => {
    const events = decode(openaiChat, [call(0, "{}", "a", "f"), chunk({}, "stop"), DONE]);
    expect(events.at(-1)).toMatchObject({ reason: "tool-calls", raw: "stop" });
    expect(encode(anthropic, events)).toContain('"stop_reason":"tool_use"');
    const answer = openaiChat.decodeAnswer(whole, { newId: counter() });
    expect(answer).toMatchObject({ reason: "tool-calls", others: [{ choice: 1, reason: "stop" }] });
  });
  test("text alone ends with stop, and a call that was cut with its limit", () => {
    expect(decode(openaiChat, [chunk({ content: "x" }, "stop"), DONE]).at(-1)).toMatchObject({
      reason: "stop",
    });
    const cut = decode(openaiChat, [call(0, "{", "a", "f"), chunk({}, "length"), DONE]);
    expect(cut.at(-1)).toMatchObject({ reason: "length" });
  });
});

describe("calls without ids", () => {
  const cases: [string, ReturnType<typeof call>[], string[]][] = [
    [
      "of two names",
      [call(undefined, '{"a":1}', "", "f"), call(undefined, '{"b":1}', "", "g")],
      ['f {"a":1}', 'g {"b":1}'],
    ],
    [
      "of two names, before the first is whole",
      [call(0, "", "", "f"), call(0, "{}", "", "g")],
      ["f ", "g {}"],
    ],
    [
      "of one name, once the first is whole",
      [call(0, '{"a":1}', "", "f"), call(0, '{"a":2}', "", "f")],
      ['f {"a":1}', 'f {"a":2}'],
    ],
    [
      "one, whose name is repeated",
      [call(0, '{"a"', "", "f"), call(0, ":1}", "", "f"), call(0, "", "", "f")],
      ['f {"a":1}'],
    ],
    [
      "one, whose name comes once",
      [call(0, '{"a"', "", "f"), call(0, ":1}"), call(0, "\n")],
      ['f {"a":1}\n'],
    ],
  ];
  test.each(cases)("%s", (_, frames, wanted) => {
    expect(callsOf(decode(openaiChat, [...frames, chunk({}, "tool_calls"), DONE]))).toEqual(wanted);
  });
});

describe("blocks that wait for their turn", () => {
  const pushed = (frames: ReturnType<typeof call>[]): string[][] => {
    const decoder = openaiChat.decodeStream({ newId: counter() });
    return frames.map((frame) => typesOf(decoder.push(frame)));
  };

  test("a call of which nothing came makes way when something follows a later one that is whole", () => {
    expect(
      pushed([
        call(0, "", "a", "none"),
        call(1, '{"x":', "b", "f"),
        call(1, "1}"),
        chunk({ content: "text" }),
        chunk({ content: " more" }),
      ]),
    ).toEqual([
      ["start", "open"],
      [],
      [],
      ["close", "open", "json", "json", "close", "open", "text"],
      ["text"],
    ]);
  });
  test("not for one of another choice, nor before that one is whole: its own may still come", () => {
    const other = (args: string) =>
      chunk({ tool_calls: [{ index: 0, id: "z", function: { name: "g", arguments: args } }] }, null, 1);
    const events = decode(openaiChat, [
      call(0, "", "a", "f"),
      other("{}"),
      call(1, '{"b"', "b", "h"),
      call(0, '{"a":1}'),
      call(1, ":2}"),
      chunk({}, "tool_calls"),
      chunk({}, "tool_calls", 1),
      DONE,
    ]);
    expect(callsOf(events).toSorted()).toEqual(['f {"a":1}', "g {}", 'h {"b":2}']);
  });
  test("the delta that makes the open call whole lets the next one go", () => {
    expect(pushed([call(0, '{"a":', "a", "f"), call(1, "{", "b", "g"), call(0, "1}")]).at(-1)).toEqual([
      "json",
      "close",
      "open",
      "json",
    ]);
  });
  test("no argument of calls that were named is lost, however they are cut and interleaved", () => {
    const args = fc.constantFrom("", "{}", '{"a":[1,{"b":"}"}]}', '{"text":"x\\\\"}');
    fc.assert(
      fc.property(
        fc.array(args, { minLength: 1, maxLength: 4 }),
        fc.infiniteStream(fc.nat(3)),
        (list, picks) => {
          const rest: string[] = [...list];
          const frames = list.map((_, at) => call(at, "", `id${at}`, `f${at}`));
          while (rest.some((left) => left !== "")) {
            const open = rest.flatMap((left, at) => (left === "" ? [] : [at]));
            const at = open[(picks.next().value ?? 0) % open.length] ?? 0;
            const left = rest[at] ?? "";
            const size = 1 + ((picks.next().value ?? 0) % 3);
            frames.push(call(at, left.slice(0, size)));
            rest[at] = left.slice(size);
          }
          const events = decode(openaiChat, [...frames, chunk({}, "tool_calls"), DONE]);
          expect(callsOf(events)).toEqual(list.map((text, at) => `f${at} ${text}`));
        },
      ),
      { numRuns: 300 },
    );
  });
  test("free text is no JSON: what looks whole goes on", () => {
    const item = (index: number, type: string, more: object) =>
      dataFrame({ type, output_index: index, ...more });
    const custom = { type: "custom_tool_call", id: "i1", call_id: "c1", name: "patch" };
    const events = decode(openaiResponses, [
      dataFrame({ type: "response.created", response: { id: "r", model: "m" } }),
      item(0, "response.output_item.added", { item: custom }),
      item(0, "response.custom_tool_call_input.delta", { delta: "foo() {}" }),
      item(1, "response.output_item.added", {
        item: { type: "function_call", id: "i2", call_id: "c2", name: "g" },
      }),
      item(0, "response.custom_tool_call_input.delta", { delta: " bar" }),
      item(0, "response.output_item.done", { item: { ...custom, input: "foo() {} bar" } }),
      item(1, "response.function_call_arguments.delta", { delta: "{}" }),
      dataFrame({ type: "response.completed", response: { id: "r", status: "completed" } }),
    ]);
    expect(callsOf(events)).toEqual(["patch foo() {} bar", "g {}"]);
  });
});

describe("thinking that goes to the client as text", () => {
  const converted = (events: object[]): string => {
    const conversion = createConversion({
      decoder: anthropic.decodeStream({ newId: counter() }),
      encoder: openaiChat.encodeStream({ newId: counter(), nowSeconds: 1 }),
      contentType: "text/event-stream",
      thinkingAsText: true,
    });
    for (const event of events) conversion.push(dataFrame(event));
    const usage = conversion.usageSoFar();
    return conversion.take() + (usage ? conversion.tail(usage) : "");
  };
  const begin = { type: "message_start", message: { id: "m", usage: { input_tokens: 1, output_tokens: 1 } } };
  const block = (index: number, content_block: object, ...deltas: object[]) => [
    { type: "content_block_start", index, content_block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
  const end = [{ type: "message_delta", delta: { stop_reason: "end_turn" } }, { type: "message_stop" }];
  const text = block(1, { type: "text", text: "" }, { type: "text_delta", text: "Hi" });
  const thought = { type: "thinking", thinking: "", signature: "" };
  const signed = { type: "signature_delta", signature: "S" };
  const seen = (events: object[]) =>
    textOf(decode(openaiChat, converted([begin, ...events, ...text, ...end])), "text");

  test("stands between tags", () => {
    const said = ["t1", " t2"].map((thinking) => ({ type: "thinking_delta", thinking }));
    expect(seen(block(0, thought, ...said, signed))).toBe("<think>\nt1 t2\n</think>\nHi");
  });
  test("and leaves no tags where there is none but a proof", () => {
    expect(seen(block(0, thought, signed))).toBe("Hi");
    expect(seen(block(0, { type: "redacted_thinking", data: "x" }))).toBe("Hi");
  });
});

test("an error in a whole Gemini answer is what its own code says, as in a stream", () => {
  const failureOf = (error: object) => {
    try {
      gemini.decodeAnswer({ error }, { newId: counter() });
    } catch (failure) {
      return failure;
    }
    return undefined;
  };
  expect(failureOf({ code: 400, message: "bad", status: "INVALID_ARGUMENT" })).toMatchObject({
    kind: "upstream-request",
    retryable: false,
  });
  expect(failureOf({ message: "?" })).toMatchObject({ kind: "upstream-down", retryable: true });
});
