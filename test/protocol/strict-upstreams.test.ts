// Guarantees for converted requests that reach upstreams which refuse what the client's own takes.
import { describe, expect, test } from "bun:test";
import { anthropic } from "../../src/protocol/anthropic/dialect.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { openaiResponses } from "../../src/protocol/openai-responses/dialect.ts";

const PNG = "data:image/png;base64,AAAA";
const call = (id: string) => ({ type: "function_call", call_id: id, name: "f", arguments: "{}" });
const result = (id: string, output: unknown) => ({ type: "function_call_output", call_id: id, output });
const responses = (input: unknown[], more: object = {}) =>
  openaiResponses.decodeRequest({ model: "m", input, ...more });

describe("chat completions: results stand directly behind their calls", () => {
  /** Roles, and the call that each result is for. */
  const shapeOf = (input: unknown[], model: string): string[] => {
    const { body } = openaiChat.encodeRequest(responses(input), { model });
    const list = body["messages"] as { role: string; tool_call_id?: string; tool_calls?: unknown[] }[];
    return list.map(({ role, tool_call_id, tool_calls }) =>
      [role, tool_call_id, tool_calls?.length].filter((each) => each !== undefined).join(" "),
    );
  };
  const asked = { role: "user", content: "q" };
  const picture = [
    { type: "input_text", text: "x" },
    { type: "input_image", image_url: PNG },
  ];

  test("a picture in one of several results comes behind the last of them", () => {
    const input = [asked, call("c1"), call("c2"), result("c1", picture), result("c2", "y")];
    const wanted = ["user", "assistant 2", "tool c1", "tool c2", "user"];
    for (const model of ["gpt-4o", "deepseek-chat"]) expect(shapeOf(input, model)).toEqual(wanted);
    const { body } = openaiChat.encodeRequest(responses(input));
    expect((body["messages"] as { content: unknown }[]).slice(2)).toMatchObject([
      { content: "x" },
      { content: "y" },
      { content: [{ type: "image_url", image_url: { url: PNG } }] },
    ]);
  });
  test("so does what developers and users say among the results, in its order", () => {
    const says = (role: string, text: string) => ({ role, content: [{ type: "input_text", text }] });
    const input = [
      asked,
      call("c1"),
      call("c2"),
      says("user", "early"),
      result("c1", "x"),
      says("developer", "first"),
      result("c2", "y"),
      says("developer", "second"),
    ];
    const head = ["user", "assistant 2", "tool c1", "tool c2", "user"];
    expect(shapeOf(input, "gpt-4o")).toEqual([...head, "developer", "developer"]);
    expect(shapeOf(input, "deepseek-chat")).toEqual([...head, "system"]);
    const { body } = openaiChat.encodeRequest(responses(input), { model: "gpt-4o" });
    const texts = (body["messages"] as { content: unknown }[]).map(({ content }) => content);
    expect(texts.slice(2)).toEqual(["x", "y", "early", "first", "second"]);
  });
  test("calls one after the other keep their results, and what was said between stays between", () => {
    const input = [
      asked,
      call("c1"),
      result("c1", "x"),
      { role: "user", content: "go on" },
      call("c2"),
      result("c2", "y"),
    ];
    expect(shapeOf(input, "gpt-4o")).toEqual([
      "user",
      "assistant 1",
      "tool c1",
      "user",
      "assistant 1",
      "tool c2",
    ]);
  });
  test("results that a Claude client spread over messages are joined before its words", () => {
    const results = (id: string, text: string) => ({
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: id, content: "r" },
        { type: "text", text },
      ],
    });
    const request = anthropic.decodeRequest({
      model: "m",
      max_tokens: 9,
      messages: [
        { role: "user", content: "q" },
        {
          role: "assistant",
          content: ["a", "b"].map((id) => ({ type: "tool_use", id, name: "f", input: {} })),
        },
        results("a", "one"),
        results("b", "two"),
      ],
    });
    const list = openaiChat.encodeRequest(request).body["messages"] as Record<string, unknown>[];
    expect(list.slice(2).map(({ tool_call_id, content }) => tool_call_id ?? content)).toEqual([
      "a",
      "b",
      "one",
      "two",
    ]);
  });
});
