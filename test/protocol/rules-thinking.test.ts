// Guarantees for thinking and tools in requests: proofs go home or nowhere, ids and arguments stay matched, media is found.
import { describe, expect, test } from "bun:test";
import { anthropic } from "../../src/protocol/anthropic/dialect.ts";
import { gemini } from "../../src/protocol/gemini/dialect.ts";
import { toJsonSchema } from "../../src/protocol/gemini/wire.ts";
import { mediaToInline } from "../../src/protocol/media.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { openaiResponses } from "../../src/protocol/openai-responses/dialect.ts";
import { hasForeignProof, packSignature } from "../../src/protocol/signatures.ts";
import { collect } from "../../src/protocol/assemble.ts";
import { Failure } from "../../src/shared/failures.ts";
import { dataFrame, decode, encode } from "./support.ts";

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

describe("thinking and its proof", () => {
  test("unsigned thinking is never sent to Anthropic, not even by its own clients", () => {
    const messages = [
      ...user,
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "t", signature: "" },
          { type: "text", text: "a" },
        ],
      },
    ];
    for (const request of [
      claude({ messages }),
      chat({ messages: [...user, { role: "assistant", content: "a", reasoning_content: "t" }] }),
    ]) {
      const { body, dropped } = anthropic.encodeRequest(request);
      expect(JSON.stringify(body)).not.toContain("thinking");
      expect(dropped).toEqual(["thinking"]);
    }
  });
  test("Gemini's proof of a call goes back beside the call, through every client", () => {
    const stream = decode(gemini, [
      dataFrame({
        candidates: [
          {
            content: { parts: [{ functionCall: { name: "f", args: {} }, thoughtSignature: "c2ln" }] },
            finishReason: "STOP",
          },
        ],
      }),
    ]);
    const shown = collect(decode(anthropic, encode(anthropic, stream)));
    expect(shown.blocks.map((block) => block.kind)).toEqual(["thinking", "tool-call"]);
    const content = (
      anthropic.encodeAnswer(shown, { newId: (p) => p, nowSeconds: 0 }) as { content: unknown }
    ).content;
    const { body } = gemini.encodeRequest(claude({ messages: [...user, { role: "assistant", content }] }), {
      model: "gemini-3-pro",
    });
    expect((body["contents"] as unknown[])[1]).toEqual({
      role: "model",
      parts: [{ functionCall: { name: "f", args: {} }, thoughtSignature: "c2ln" }],
    });
  });
  test("calls of other models carry Google's own mark where proofs are required, and only there", () => {
    const messages = [
      ...user,
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }],
      },
    ];
    expect(
      JSON.stringify(gemini.encodeRequest(chat({ messages }), { model: "gemini-3-pro-preview" }).body),
    ).toContain("skip_thought_signature_validator");
    expect(
      JSON.stringify(gemini.encodeRequest(chat({ messages }), { model: "gemini-2.5-pro" }).body),
    ).not.toContain("thoughtSignature");
  });
  test("a client that changed its upstream brings no foreign proof to its own protocol's provider", () => {
    const proof = { dialect: "openai-responses", value: "rs_1~enc" } as const;
    const calls = [
      {
        id: "a",
        type: "function",
        function: { name: "f", arguments: "{}" },
        extra_content: { google: { thought_signature: "gemini.c2ln" } },
      },
    ];
    const details = [{ type: "reasoning.text", text: "t", signature: packSignature(proof, "openai-chat") }];
    const asked = chat({
      messages: [
        ...user,
        { role: "assistant", content: null, reasoning_details: details, tool_calls: calls },
      ],
    });
    expect(JSON.stringify(openaiChat.encodeRequest(asked).body)).not.toMatch(/gemini\.|openai-responses\./);
    const parts = [
      { text: "t", thought: true, thoughtSignature: packSignature(proof, "gemini") },
      { functionCall: { name: "f", args: {} }, thoughtSignature: packSignature(proof, "gemini") },
    ];
    const { body, dropped } = gemini.encodeRequest(google({ contents: [{ role: "model", parts }] }), {
      model: "gemini-3-pro",
    });
    expect(body["contents"]).toEqual([
      {
        role: "model",
        parts: [
          { functionCall: { name: "f", args: {} }, thoughtSignature: "skip_thought_signature_validator" },
        ],
      },
    ]);
    expect(dropped).toEqual(["thinking"]);
    const items = [{ type: "reasoning", id: "rs_2", summary: [], encrypted_content: "anthropic.c2ln" }];
    expect(openaiResponses.encodeRequest(responses({ input: items })).body["input"]).toEqual([]);
  });
  test("a grammar is nested in chat completions and flat in Responses", () => {
    const flat = { type: "grammar", syntax: "lark", definition: "start: A" };
    const nested = { type: "grammar", grammar: { syntax: "lark", definition: "start: A" } };
    const fromResponses = responses({ tools: [{ type: "custom", name: "sh", format: flat }] });
    expect(openaiChat.encodeRequest(fromResponses, { model: "gpt-5" }).body["tools"]).toEqual([
      { type: "custom", custom: { name: "sh", format: nested } },
    ]);
    const fromChat = chat({ tools: [{ type: "custom", custom: { name: "sh", format: nested } }] });
    expect(openaiResponses.encodeRequest(fromChat).body["tools"]).toEqual([
      { type: "custom", name: "sh", format: flat },
    ]);
  });
  test("a body that brings foreign proofs back is recognised without parsing", () => {
    const gem = packSignature({ dialect: "anthropic", value: "x" }, "gemini");
    expect(hasForeignProof('{"signature":"gemini.abc"}')).toBe(true);
    expect(hasForeignProof('{"type":"thinking","thinking":"x","signature":""}')).toBe(true);
    expect(hasForeignProof('{"encrypted_content": "anthropic.abc"}')).toBe(true);
    expect(hasForeignProof(`{"thoughtSignature":"${gem}"}`)).toBe(true);
    expect(
      hasForeignProof('{"signature":"EqQBabc","data":"Z2VtaW5p","text":"\\"signature\\":\\"gemini.x\\""}'),
    ).toBe(false);
  });
});

describe("tools", () => {
  test("calls without ids get the same ones each time, results find their calls in order", () => {
    const contents = [
      {
        role: "model",
        parts: [
          { functionCall: { name: "f", args: { a: 1 } } },
          { functionCall: { name: "f", args: { a: 2 } } },
        ],
      },
      {
        role: "user",
        parts: [
          { functionResponse: { name: "f", response: { output: "1" } } },
          { functionResponse: { name: "f", response: { output: "2" } } },
        ],
      },
    ];
    const wire = openaiChat.encodeRequest(google({ contents })).body["messages"] as {
      tool_calls?: { id: string }[];
      tool_call_id?: string;
      content: string;
    }[];
    const ids = wire[0]?.tool_calls?.map((call) => call.id) ?? [];
    expect(new Set(ids).size).toBe(2);
    expect(wire.slice(1).map((message) => [message.tool_call_id, message.content])).toEqual([
      [ids[0], "1"],
      [ids[1], "2"],
    ] as never);
    expect(openaiChat.encodeRequest(google({ contents })).body).toEqual({ model: "m", messages: wire });
  });
  test("ids Gemini did not give are not sent to it", () => {
    const made = collect(
      decode(gemini, [
        dataFrame({
          candidates: [
            { content: { parts: [{ functionCall: { name: "f", args: {} } }] }, finishReason: "STOP" },
          ],
        }),
      ]),
    );
    const content = (
      gemini.encodeAnswer(made, { newId: (p) => p, nowSeconds: 0 }) as { candidates: { content: unknown }[] }
    ).candidates[0]?.content;
    const again = gemini.encodeRequest(google({ contents: [content] })).body["contents"];
    expect(made.blocks[0]?.callId).toMatch(/^call_g/);
    expect(made.reason).toBe("tool-calls");
    expect(JSON.stringify(again)).not.toContain("call_g");
    const foreign = openaiChat.decodeRequest({
      model: "m",
      messages: [
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: made.blocks[0]?.callId, type: "function", function: { name: "f", arguments: "{}" } },
          ],
        },
      ],
    });
    expect(JSON.stringify(gemini.encodeRequest(foreign).body)).not.toContain("call_g");
  });
  test("ids with characters Anthropic refuses are changed alike in call and result", () => {
    const messages = [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "functions.f:0", type: "function", function: { name: "f", arguments: "" } }],
      },
      { role: "tool", tool_call_id: "functions.f:0", content: "r" },
    ];
    const wire = JSON.stringify(anthropic.encodeRequest(chat({ messages })).body["messages"]);
    expect(wire.match(/functions_f_0/g)).toHaveLength(2);
    expect(wire).toContain('"input":{}');
  });
  test("broken arguments reach upstreams that want an object as its only field", () => {
    const messages = [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: '{"a":' } }],
      },
    ];
    expect(JSON.stringify(anthropic.encodeRequest(chat({ messages })).body)).toContain(
      '"input":{"input":"{\\"a\\":"}',
    );
  });
  test("web search is asked for in each upstream's own words", () => {
    const asked = [
      chat({ web_search_options: {} }),
      responses({ tools: [{ type: "web_search" }] }),
      claude({ tools: [{ type: "web_search_20250305", name: "web_search" }] }),
      google({ tools: [{ googleSearch: {} }] }),
    ];
    for (const request of asked) {
      expect(openaiChat.encodeRequest(request).body).toMatchObject({ web_search_options: {} });
      expect(openaiResponses.encodeRequest(request).body["tools"]).toMatchObject([{ type: "web_search" }]);
      expect(anthropic.encodeRequest(request).body["tools"]).toMatchObject([{ type: "web_search_20250305" }]);
      expect(gemini.encodeRequest(request).body["tools"]).toEqual([{ googleSearch: {} }]);
    }
  });
  test("Gemini's schemas become JSON Schema", () => {
    expect(
      toJsonSchema({
        type: "OBJECT",
        properties: { a: { type: "ARRAY", minItems: "1", items: { type: "STRING", nullable: true } } },
        propertyOrdering: ["a"],
      }),
    ).toEqual({
      type: "object",
      properties: { a: { type: "array", minItems: 1, items: { type: ["string", "null"] } } },
    });
  });
});

describe("media", () => {
  test("addresses that an upstream cannot read are found for fetching, and refused when nobody fetched them", () => {
    const messages = [
      { role: "user", content: [{ type: "image_url", image_url: { url: "https://example.org/a.png" } }] },
    ];
    const request = chat({ messages });
    expect(mediaToInline(request, "anthropic")).toEqual([]);
    expect(refused(() => gemini.encodeRequest(request))).toBe("image.url");
    for (const part of mediaToInline(request, "gemini"))
      part.source = { kind: "base64", mime: "image/png", data: "AAAA" };
    expect(gemini.encodeRequest(request).body["contents"]).toEqual([
      { role: "user", parts: [{ inlineData: { mimeType: "image/png", data: "AAAA" } }] },
    ]);
  });
});
