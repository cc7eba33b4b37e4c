// Guarantees of the chat completions request: what the client said goes back out unchanged.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Failure } from "../../src/shared/failures.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { jsonFixture } from "./support.ts";
import { chatRequest } from "./arbitraries.ts";

const roundTrip = (body: unknown): unknown => openaiChat.encodeRequest(openaiChat.decodeRequest(body)).body;
const user = [{ role: "user", content: "hi" }];

describe("there and back", () => {
  test("a request with everything in it survives word for word", () => {
    const body = jsonFixture("openai-chat/request-full.json");
    expect(roundTrip(body)).toEqual(body);
  });
  test("zero, false, empty and null values survive", () => {
    const body = {
      model: "m",
      messages: user,
      temperature: 0,
      max_tokens: 0,
      n: 0,
      seed: 0,
      stream: false,
      parallel_tool_calls: false,
      logprobs: false,
      tools: [],
      stop: null,
      top_p: null,
      metadata: {},
    };
    expect(roundTrip(body)).toEqual(body);
  });
  test("nothing is added that the client did not send", () => {
    const body = { model: "m", messages: user };
    expect(roundTrip(body)).toEqual(body);
    expect(Object.keys(roundTrip(body) as object)).toEqual(["model", "messages"]);
  });
  test("unknown fields survive at the top, in messages, parts, calls and tools", () => {
    const body = {
      model: "m",
      future: { a: [0] },
      messages: [
        { role: "user", content: [{ type: "text", text: "x", z: false }], weight: 0 },
        { role: "user", content: [{ type: "video_url", video_url: { url: "https://example.org/v" } }] },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "" }, extra: 1 }],
        },
        { role: "tool", tool_call_id: "a", content: [{ type: "text", text: "r" }], note: "n" },
        { role: "function", name: "old", content: "x" },
      ],
      tools: [
        { type: "function", function: { name: "f", parameters: {}, odd: true }, y: 1 },
        { type: "future_tool", k: 0 },
      ],
    };
    expect(roundTrip(body)).toEqual(body);
  });
  test("any request of known shape is encode(decode(x))", () => {
    fc.assert(
      fc.property(chatRequest, (body) => expect(roundTrip(body)).toEqual(body)),
      { numRuns: 300 },
    );
  });
});

describe("refusals", () => {
  for (const [name, body] of Object.entries({
    "no object": 3,
    "no model": { messages: user },
    "no messages": { model: "m" },
    "a message that is no object": { model: "m", messages: ["hi"] },
    "an unknown tool choice": { model: "m", messages: user, tool_choice: "sometimes" },
  })) {
    test(`${name} is refused with the field's name`, () => {
      expect(() => openaiChat.decodeRequest(body)).toThrow(Failure);
    });
  }
});
