// Guarantees for tools between dialects: free-text tools become functions and their calls free text again, a search
// keeps its settings, and nothing inside of messages, parts and tools is left behind in silence.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { anthropic } from "../../src/protocol/anthropic/dialect.ts";
import { collect, explode, newBlock } from "../../src/protocol/assemble.ts";
import type { Answer } from "../../src/protocol/assemble.ts";
import type { ClientTool } from "../../src/protocol/client-tools.ts";
import { clientNames, createUnwrapper, unwrapAnswer } from "../../src/protocol/client-tools.ts";
import { gemini } from "../../src/protocol/gemini/dialect.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { openaiResponses } from "../../src/protocol/openai-responses/dialect.ts";
import { validateEvents } from "../../src/protocol/validate-events.ts";
import { emptyUsage } from "../../src/shared/usage.ts";

const user = [{ role: "user", content: "hi" }];
const chat = (more: object) => openaiChat.decodeRequest({ model: "m", messages: user, ...more });
const claude = (more: object) =>
  anthropic.decodeRequest({ model: "m", max_tokens: 4000, messages: user, ...more });
const responses = (more: object) => openaiResponses.decodeRequest({ model: "m", input: "hi", ...more });
const google = (more: object) =>
  gemini.decodeRequest({ contents: [{ role: "user", parts: [{ text: "hi" }] }], ...more }, { model: "m" });

describe("free-text tools", () => {
  const definition = 'start: "*** Begin Patch" LF';
  const format = { type: "grammar", syntax: "lark", definition };
  const flat = { type: "custom", name: "apply_patch", description: "Edits files.", format };
  const { syntax } = format;
  const custom = {
    name: "apply_patch",
    description: "Edits files.",
    format: { type: "grammar", grammar: { syntax, definition } },
  };
  const asked = [responses({ tools: [flat] }), chat({ tools: [{ type: "custom", custom }] })];
  const schema = {
    type: "object",
    properties: { input: { type: "string" } },
    required: ["input"],
    additionalProperties: false,
  };

  test("reach Anthropic and Gemini as a function of one text, whose grammar is told in words", () => {
    for (const request of asked) {
      const one = anthropic.encodeRequest(request);
      const description = expect.stringMatching(/^Edits files\.\n\n.*lark[^]*Begin Patch/);
      expect(one.body["tools"]).toEqual([{ name: "apply_patch", description, input_schema: schema }]);
      expect(one.dropped).toEqual(["tools.apply_patch.format"]);
      const other = gemini.encodeRequest(request);
      expect(other.body["tools"]).toEqual([
        { functionDeclarations: [{ name: "apply_patch", description, parametersJsonSchema: schema }] },
      ]);
      expect(other.dropped).toEqual(one.dropped);
    }
  });

  test("reach upstreams that speak chat completions for other models as a function, and OpenAI's own as they are", () => {
    const call = { type: "custom_tool_call", call_id: "c1", name: "apply_patch", input: '{"a":1}' };
    const output = { type: "custom_tool_call_output", call_id: "c1", output: "Done" };
    const request = responses({
      tools: [flat],
      input: [...user, call, output],
      tool_choice: { type: "custom", name: "apply_patch" },
    });
    const other = openaiChat.encodeRequest(request, { model: "deepseek-chat" });
    expect(other.body).toMatchObject({
      tools: [{ type: "function", function: { name: "apply_patch", parameters: schema } }],
      tool_choice: { type: "function", function: { name: "apply_patch" } },
    });
    const calls = { type: "function", id: "c1", function: { name: "apply_patch" } };
    const { messages } = other.body as { messages: { tool_calls?: { function: { arguments: string } }[] }[] };
    expect(messages[1]).toMatchObject({ tool_calls: [calls] });
    expect(JSON.parse(messages[1]?.tool_calls?.[0]?.function.arguments ?? "")).toEqual({ input: '{"a":1}' });
    const own = openaiChat.encodeRequest(request, { model: "gpt-5" });
    expect(own.body).toMatchObject({ tools: [{ type: "custom" }], tool_choice: { type: "custom" } });
    expect(own.dropped).toEqual([]);
  });

  test("come back in the history as that function's text, also when it looks like an object", () => {
    for (const input of ["*** Begin Patch\n", '{"a":1}', ""]) {
      const call = { type: "custom_tool_call", call_id: "c1", name: "apply_patch", input };
      const output = { type: "custom_tool_call_output", call_id: "c1", output: "Done" };
      const request = responses({ tools: [flat], input: [...user, call, output] });
      const { body } = anthropic.encodeRequest(request);
      expect((body["messages"] as { content: unknown }[]).slice(1)).toEqual([
        {
          role: "assistant",
          content: [{ type: "tool_use", id: "c1", name: "apply_patch", input: { input } }],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "Done" }] },
      ] as never);
      const { contents } = gemini.encodeRequest(request).body as {
        contents: { parts: { functionCall?: { args: unknown } }[] }[];
      };
      expect(contents[1]?.parts[0]?.functionCall?.args).toEqual({ input });
    }
  });

  test("calls become free text however the function's arguments are cut, and other calls stay", () => {
    const names = clientNames(asked[0] as never, false) ?? new Map<string, ClientTool>();
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.integer({ min: 1, max: 9 }), (text, size) => {
        const json = JSON.stringify({ input: text });
        const events = explode({
          blocks: [
            newBlock("text", { text: "so" }),
            newBlock("tool-call", { callId: "1", name: "apply_patch" }),
            newBlock("tool-call", { callId: "2", name: "other", text: json }),
          ],
          usage: emptyUsage(),
          reason: "tool-calls",
          rawReason: null,
          opaque: [],
        });
        const at = events.findIndex((event) => event.type === "open" && event.name === "apply_patch");
        const pieces = json.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
        events.splice(at + 1, 0, ...pieces.map((delta) => ({ type: "json" as const, at: 1, delta })));
        const told = events.flatMap(createUnwrapper(names));
        expect(validateEvents(told)).toEqual([]);
        const expected = [
          { kind: "text", text: "so" },
          { kind: "tool-call", name: "apply_patch", custom: true, text },
          { kind: "tool-call", name: "other", text: json },
        ];
        expect(collect(told).blocks).toMatchObject(expected);
        expect(unwrapAnswer(collect(events) as Answer, names).blocks).toMatchObject(expected);
      }),
    );
  });
});

describe("a search keeps its settings", () => {
  const place = { city: "Zürich", country: "CH", timezone: "Europe/Zurich" };
  const near = { type: "approximate", ...place };
  const fromChat = chat({
    web_search_options: {
      search_context_size: "high",
      user_location: { type: "approximate", approximate: place },
    },
  });
  const fromResponses = responses({
    tools: [
      {
        type: "web_search",
        search_context_size: "low",
        user_location: near,
        filters: { allowed_domains: ["example.org"] },
        external_web_access: false,
      },
    ],
  });
  const fromClaude = claude({
    tools: [
      {
        type: "web_search_20250305",
        name: "web_search",
        max_uses: 3,
        blocked_domains: ["example.net"],
        user_location: near,
      },
    ],
  });

  test("in each upstream's words; what has no word there is listed", () => {
    const one = openaiResponses.encodeRequest(fromChat);
    expect(one.body["tools"]).toEqual([
      { type: "web_search", search_context_size: "high", user_location: near },
    ]);
    expect(one.dropped).toEqual([]);

    const two = anthropic.encodeRequest(fromResponses);
    expect(two.body["tools"]).toMatchObject([
      { name: "web_search", user_location: near, allowed_domains: ["example.org"] },
    ]);
    expect(two.dropped).toEqual([
      "tools.web_search.search_context_size",
      "tools.web_search.external_web_access",
    ]);

    const three = openaiChat.encodeRequest(fromClaude);
    expect(three.body["web_search_options"]).toEqual({
      user_location: { type: "approximate", approximate: place },
    });
    expect(three.dropped).toEqual(["tools.web_search.blocked_domains", "tools.web_search.max_uses"]);

    const four = gemini.encodeRequest(fromClaude);
    expect(four.body["tools"]).toEqual([{ googleSearch: { excludeDomains: ["example.net"] } }]);
    expect(four.dropped).toEqual(["tools.web_search.user_location", "tools.web_search.max_uses"]);
  });
});

describe("nothing is left behind in silence", () => {
  test("fields inside of messages, parts and tools that only their own dialect knows are listed", () => {
    const pdf = {
      type: "document",
      source: { type: "text", media_type: "text/plain", data: "d" },
      context: "c",
      citations: { enabled: true },
    };
    const fromClaude = claude({
      messages: [{ role: "user", content: [pdf] }],
      tools: [{ name: "f", input_schema: {}, defer_loading: true, input_examples: [{}], type: "custom" }],
      context_management: { edits: [] },
    });
    for (const other of [openaiChat, openaiResponses, gemini]) {
      expect(other.encodeRequest(fromClaude).dropped).toEqual([
        "content.context",
        "content.citations",
        "tools.defer_loading",
        "tools.input_examples",
        "context_management",
      ]);
    }
    expect(anthropic.encodeRequest(fromClaude).dropped).toEqual([]);

    const fromChat = chat({
      messages: [
        {
          role: "user",
          content: [{ type: "text", text: "hi", cache_control: { type: "ephemeral" } }],
          weight: 0,
        },
      ],
      tools: [{ type: "function", function: { name: "f", parameters: {}, cached: true }, group: "g" }],
    });
    expect(gemini.encodeRequest(fromChat).dropped).toEqual([
      "messages.weight",
      "cache_control",
      "tools.group",
      "tools.cached",
    ]);

    const video = { fileData: { fileUri: "https://example.org/v.mp4", mimeType: "video/mp4" } };
    const fromGoogle = google({
      contents: [{ role: "user", parts: [{ ...video, videoMetadata: { fps: 5 } }] }],
      tools: [{ functionDeclarations: [{ name: "f", parameters: { type: "OBJECT" }, response: {} }] }],
    });
    expect(openaiResponses.encodeRequest(fromGoogle).dropped).toEqual([
      "content.videoMetadata",
      "tools.response",
    ]);
  });

  test("the wire's own bookkeeping in a history is no loss", () => {
    const history = responses({
      input: [
        { type: "message", role: "user", content: "hi" },
        {
          type: "message",
          id: "msg_1",
          status: "completed",
          role: "assistant",
          content: [{ type: "output_text", text: "a", annotations: [], logprobs: [] }],
        },
        { type: "function_call", id: "fc_1", status: "completed", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "r" },
      ],
    });
    for (const other of [openaiChat, anthropic, gemini])
      expect(other.encodeRequest(history).dropped).toEqual([]);
    const calls = [{ id: "t", type: "function", index: 0, function: { name: "f", arguments: "{}" } }];
    const turns = chat({
      messages: [
        ...user,
        { role: "assistant", content: null, refusal: null, annotations: [], tool_calls: calls },
        { role: "tool", tool_call_id: "t", content: "r" },
      ],
    });
    for (const other of [openaiResponses, anthropic, gemini])
      expect(other.encodeRequest(turns).dropped).toEqual([]);
  });
});

test("the choice that Copilot CLI sends to Gemini's models is theirs, and everybody else's free one", () => {
  const request = chat({
    tools: [{ type: "function", function: { name: "ls", parameters: { type: "object" } } }],
    tool_choice: "validated",
  });
  const told = (dialect: typeof gemini | typeof anthropic | typeof openaiResponses) =>
    dialect.encodeRequest(request, { model: "m" }).body;
  expect(told(gemini)).toMatchObject({ toolConfig: { functionCallingConfig: { mode: "VALIDATED" } } });
  expect(told(anthropic)).toMatchObject({ tool_choice: { type: "auto" } });
  expect(told(openaiResponses)).toMatchObject({ tool_choice: "auto" });
});
