// Guarantees for tools that clients run themselves: no form of them stops a conversation, none is left out in silence,
// and a call comes back as what the client declared.
import { describe, expect, test } from "bun:test";
import { collect, explode, newBlock } from "../../src/protocol/assemble.ts";
import { clientNames, createUnwrapper, unwrapAnswer } from "../../src/protocol/client-tools.ts";
import { anthropic } from "../../src/protocol/anthropic/dialect.ts";
import { gemini } from "../../src/protocol/gemini/dialect.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { openaiResponses } from "../../src/protocol/openai-responses/dialect.ts";
import { emptyUsage } from "../../src/shared/usage.ts";
import { frames } from "./support.ts";

const user = { role: "user", content: "hi" };
const claude = (fields: Record<string, unknown>) =>
  anthropic.decodeRequest({ model: "m", max_tokens: 9, messages: [user], ...fields });
const responses = (fields: Record<string, unknown>) =>
  openaiResponses.decodeRequest({ model: "m", input: [user], ...fields });

const OTHERS = [openaiChat, anthropic, gemini] as const;
const parameters = { type: "object", properties: {} };
const fn = (name: string) => ({ type: "function", name, parameters, strict: false });
const space = (name: string, ...tools: unknown[]) => ({
  type: "namespace",
  name,
  description: "About.",
  tools,
});

function offered(body: Record<string, unknown>): string[] {
  const text = JSON.stringify(body["tools"] ?? []);
  return (text.match(/"name":"[^"]+"/g) ?? []).map((each) => each.slice(8, -1));
}

describe("namespaces", () => {
  const long = "a".repeat(60);
  const request = responses({
    tools: [
      fn("git__log"),
      space("git", fn("log"), { type: "custom", name: "note" }),
      space("mcp__git__", fn("log")),
      space(long, fn("log"), fn("loh")),
      space("日本", fn("log")),
    ],
  });

  test("every tool has a name of its own that all providers take, and the same one each time", () => {
    for (const other of OTHERS) {
      const names = offered(other.encodeRequest(request).body);
      expect(new Set(names).size).toBe(7);
      for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      expect(names).toContain("git__log");
      expect(names).toContain("mcp__git__log");
      expect(offered(other.encodeRequest({ ...request }).body)).toEqual(names);
    }
  });

  test("each comes back under its own namespace", () => {
    const names = clientNames(request, false) ?? new Map();
    const back = [...names.values()].map(({ namespace, name }) => [namespace, name]);
    const declared = [
      ["git", "log"],
      ["git", "note"],
      ["mcp__git__", "log"],
      [long, "log"],
      [long, "loh"],
      ["日本", "log"],
    ];
    expect(back).toEqual(declared);
  });

  test("a choice of one goes to the name that is offered", () => {
    const tools = [space("git", fn("log"))];
    const asked = responses({ tools, tool_choice: { type: "function", name: "log" } });
    expect(anthropic.encodeRequest(asked).body["tool_choice"]).toEqual({ type: "tool", name: "git__log" });
  });

  test("the provider that knows them gets them as they are", () => {
    const { tools } = openaiResponses.encodeRequest(request).body;
    expect(tools).toEqual([
      fn("git__log"),
      space("git", fn("log"), { type: "custom", name: "note" }),
      space("mcp__git__", fn("log")),
      space(long, fn("log"), fn("loh")),
      space("日本", fn("log")),
    ]);
  });
});

describe("tools whose calls are items of their own", () => {
  const FORMS = [
    [
      { type: "local_shell" },
      "local_shell_call",
      { action: { type: "exec", env: {}, command: ["ls"] } },
      { command: ["ls"] },
    ],
    [
      { type: "shell", environment: { type: "local" } },
      "shell_call",
      { action: { commands: ["ls"] } },
      { commands: ["ls"] },
    ],
    [
      { type: "apply_patch" },
      "apply_patch_call",
      { operation: { type: "delete_file", path: "a" } },
      { type: "delete_file", path: "a" },
    ],
    [
      { type: "tool_search", execution: "client", parameters, description: "Finds." },
      "tool_search_call",
      { arguments: { query: "x" }, execution: "client" },
      { query: "x" },
    ],
  ] as const;

  for (const [tool, type, fields, args] of FORMS) {
    test(`${tool.type} is a function elsewhere, and its call ${type} again`, () => {
      const request = responses({ tools: [tool] });
      for (const other of OTHERS) expect(offered(other.encodeRequest(request).body)).toContain(tool.type);
      const names = clientNames(request, false) ?? new Map();
      const answer = () => ({
        blocks: [newBlock("tool-call", { callId: "c1", name: tool.type, text: JSON.stringify(args) })],
        usage: emptyUsage(),
        reason: "tool-calls" as const,
        rawReason: null,
        opaque: [],
      });
      const context = { newId: (prefix: string) => `${prefix}1`, nowSeconds: 1, request };
      const item = { id: "fc_1", type, call_id: "c1", status: "completed", ...fields };
      const whole = openaiResponses.encodeAnswer(unwrapAnswer(answer(), names), context);
      expect(whole["output"]).toEqual([item]);
      const events = explode(answer()).flatMap(createUnwrapper(names));
      expect(openaiResponses.encodeAnswer(collect(events), context)["output"]).toEqual([item]);
      const encoder = openaiResponses.encodeStream(context);
      const wire = events.map((event) => encoder.push(event)).join("");
      expect(wire).not.toContain(".delta");
      const done = frames(wire).find(({ event }) => event === "response.output_item.done");
      expect(JSON.parse(done?.data ?? "")).toMatchObject({ item });
    });

    test(`a call of ${tool.type} and its result go up again as call and result`, () => {
      const call = { id: "x_1", type, call_id: "c1", status: "completed", ...fields };
      const result = {
        type: tool.type === "tool_search" ? "tool_search_output" : `${type}_output`,
        call_id: "c1",
        ...(tool.type === "tool_search" ? { tools: [space("git", fn("log"))] } : { output: "done" }),
      };
      const request = responses({ tools: [tool], input: [user, call, result] });
      const { messages } = anthropic.encodeRequest(request).body as { messages: { content: unknown }[] };
      expect(messages.slice(1).map((message) => message.content)).toMatchObject([
        [{ type: "tool_use", id: "c1", name: tool.type, input: args }],
        [{ type: "tool_result", tool_use_id: "c1" }],
      ]);
      // What a search found can be called.
      if (tool.type === "tool_search") {
        expect(offered(anthropic.encodeRequest(request).body)).toContain("git__log");
        expect(JSON.stringify(messages)).toContain("git__log");
      }
    });
  }

  test("the provider's own search over tools is left out and told; its own shell is refused by name", () => {
    const request = responses({ tools: [{ type: "tool_search" }, { ...fn("f"), defer_loading: true }] });
    for (const other of OTHERS) {
      const { body, dropped } = other.encodeRequest(request);
      expect(offered(body)).toEqual(["f"]);
      expect(dropped).toEqual(["tools.tool_search", "tools.defer_loading"]);
      const hosted = responses({ tools: [{ type: "shell", environment: { type: "container_auto" } }] });
      expect(() => other.encodeRequest(hosted)).toThrow(expect.objectContaining({ param: "tools.shell" }));
    }
  });
});

describe("Anthropic's own kinds", () => {
  test("shell, editor and memory are functions elsewhere; a search over tools is left out and told", () => {
    const request = claude({
      tools: [
        { type: "bash_20250124", name: "bash" },
        { type: "text_editor_20250728", name: "str_replace_based_edit_tool", max_characters: 9 },
        { type: "memory_20250818", name: "memory" },
        { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" },
        { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" },
        { name: "f", input_schema: parameters, defer_loading: true },
      ],
      messages: [
        user,
        {
          role: "assistant",
          content: [
            { type: "server_tool_use", id: "s1", name: "tool_search_tool_regex", input: { query: "f" } },
            {
              type: "tool_search_tool_result",
              tool_use_id: "s1",
              content: { type: "tool_search_tool_search_result", tool_references: [] },
            },
            { type: "tool_use", id: "t1", name: "find", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t1", content: [{ type: "tool_reference", tool_name: "f" }] },
          ],
        },
      ],
    });
    for (const other of [openaiChat, openaiResponses, gemini]) {
      const { body, dropped } = other.encodeRequest(request);
      expect(offered(body)).toEqual(["bash", "str_replace_based_edit_tool", "memory", "f"]);
      for (const name of ["tool_search_tool_regex_20251119", "tool_search_tool_bm25_20251119"])
        expect(dropped).toContain(`tools.${name}`);
      expect(dropped).toEqual(expect.arrayContaining(["tools.max_characters", "server_tool_use"]));
    }
    expect(anthropic.encodeRequest(request).body["tools"]).toHaveLength(6);
  });

  test("servers for tools stay with their provider, refused by name elsewhere; empty lists ask for nothing", () => {
    const server = { type: "url", url: "https://example.org", name: "s" };
    for (const other of [openaiChat, openaiResponses, gemini]) {
      for (const [fields, name] of [
        [{ mcp_servers: [server] }, "mcp_servers"],
        [{ tools: [{ type: "mcp_toolset", mcp_server_name: "s" }] }, "tools.mcp_toolset"],
        [{ container: { skills: [{ type: "anthropic", skill_id: "pdf" }] } }, "container"],
      ] as const) {
        const request = claude(fields);
        expect(() => other.encodeRequest(request)).toThrow(expect.objectContaining({ param: name }));
        expect(anthropic.encodeRequest(request).body).toMatchObject(fields as Record<string, unknown>);
      }
      expect(other.encodeRequest(claude({ mcp_servers: [], container: { skills: [] } })).body).toBeDefined();
    }
    for (const other of OTHERS) {
      const request = responses({ tools: [{ type: "mcp", server_label: "s", server_url: "https://x" }] });
      expect(() => other.encodeRequest(request)).toThrow(expect.objectContaining({ param: "tools.mcp" }));
    }
  });
});
