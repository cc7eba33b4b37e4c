// Guarantees for the coding agents: what Claude Code, Codex and Gemini CLI put on the wire works against the upstream
// they were made for and against the others, and what they get back they can send again.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { scopedValue } from "../../src/relay/wire/passed-headers.ts";
import { eq } from "drizzle-orm";
import { sse } from "../support/fake-upstream.ts";
import type { Script } from "../support/fake-upstream.ts";
import { answerOf, streamText, UPSTREAMS } from "../support/dialect-upstream.ts";
import { dataLines, startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

const CLAUDE = UPSTREAMS.anthropic.model;
const GEMINI = UPSTREAMS.gemini.model;
const CODEX = UPSTREAMS["openai-responses"].model;
const CHAT = UPSTREAMS["openai-chat"].model;

let g: Gateway;
beforeAll(async () => {
  g = await startGateway({ quota: 1_000_000_000, channel: { models: CODEX } });
  for (const [type, models] of [
    [14, CLAUDE],
    [24, GEMINI],
    [43, CHAT],
  ])
    await g.app.createChannel({ type, models, baseUrl: g.upstream.url });
  await g.setOption("SelfUseModeEnabled", "true");
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

type Wire = Record<string, unknown>;
const lastBody = (): Wire => g.upstream.requests.at(-1)?.json() ?? {};
const streamed = (...frames: unknown[]): Script => ({
  status: 200,
  headers: { "content-type": "text/event-stream" },
  steps: frames.map(sse),
});

/** An Anthropic stream of these blocks; text-like ones come in two deltas. */
function claudeStream(...blocks: Wire[]): Script {
  const usage = { input_tokens: 40, output_tokens: 1, cache_read_input_tokens: 60 };
  const message = { id: "msg_1", type: "message", role: "assistant", model: CLAUDE, content: [], usage };
  const frames: unknown[] = [{ type: "message_start", message }];
  blocks.forEach(({ start, deltas }, index) => {
    frames.push({ type: "content_block_start", index, content_block: start });
    for (const delta of deltas as Wire[]) frames.push({ type: "content_block_delta", index, delta });
    frames.push({ type: "content_block_stop", index });
  });
  const stop_reason = "tool_use";
  frames.push({ type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 30 } });
  return streamed(...frames, { type: "message_stop" });
}

const thinking = (text: string, signature: string): Wire => ({
  start: { type: "thinking", thinking: "", signature: "" },
  deltas: [
    { type: "thinking_delta", thinking: text },
    { type: "signature_delta", signature },
  ],
});
const toolUse = (id: string, name: string, ...pieces: string[]): Wire => ({
  start: { type: "tool_use", id, name, input: {} },
  deltas: pieces.map((partial_json) => ({ type: "input_json_delta", partial_json })),
});

describe("Codex", () => {
  const patch = {
    type: "custom",
    name: "apply_patch",
    description: "Edits files.",
    format: { type: "grammar", syntax: "lark", definition: "start: begin end" },
  };
  const shell = {
    type: "function",
    name: "shell",
    description: "Runs a command.",
    strict: false,
    parameters: { type: "object", properties: { command: { type: "array", items: { type: "string" } } } },
  };
  const said = (role: string, text: string): Wire => ({
    type: "message",
    role,
    content: [{ type: "input_text", text }],
  });
  const turn = (model: string, input: unknown[]): Wire => ({
    model,
    instructions: "You are Codex.",
    input: [said("developer", "Sandboxed."), said("user", "Fix the bug."), ...input],
    tools: [shell, patch],
    tool_choice: "auto",
    parallel_tool_calls: false,
    reasoning: { effort: "medium", summary: "auto" },
    store: false,
    stream: true,
    include: ["reasoning.encrypted_content"],
    prompt_cache_key: "session-1",
    text: { verbosity: "low" },
  });
  const HEADERS = {
    accept: "text/event-stream",
    originator: "codex_cli_rs",
    session_id: "session-1",
    conversation_id: "session-1",
    "openai-beta": "responses=experimental",
  };

  test("a Responses upstream gets its bytes and the session's headers, and its stream passes as it is", async () => {
    g.upstream.always(answerOf("openai-responses"));
    const body = JSON.stringify(turn(CODEX, []));
    const response = await g.post("/v1/responses", body, HEADERS);
    expect(await response.text()).toBe(streamText("openai-responses"));
    const { body: sent, headers, url } = g.upstream.requests[0] ?? {};
    expect([url, sent?.toString()]).toEqual(["/v1/responses", body]);
    const session = scopedValue(g.app.deps.seal, g.user.id, "session-1");
    expect(headers).toMatchObject({
      session_id: session,
      conversation_id: session,
      "openai-beta": "responses=experimental",
    });
  });

  for (const model of [CLAUDE, GEMINI]) {
    test(`works over ${model}: its free-text tool, its reasoning, and the whole turn sent back`, async () => {
      const text = '*** Begin Patch\n+ "x"\n*** End Patch';
      const args = JSON.stringify({ input: text });
      const proof = model === GEMINI ? "c2lnbmVk" : "signed-by-claude";
      g.upstream.script(
        model === CLAUDE
          ? claudeStream(
              thinking("Look first.", proof),
              toolUse("toolu_1", "shell", '{"command":', '["ls"]}'),
              toolUse("toolu_2", "apply_patch", args.slice(0, 15), args.slice(15)),
            )
          : streamed({
              candidates: [
                {
                  content: {
                    role: "model",
                    parts: [
                      { text: "Look first.", thought: true },
                      {
                        functionCall: { name: "shell", args: { command: ["ls"] } },
                        thoughtSignature: proof,
                      },
                      { functionCall: { name: "apply_patch", args: { input: text } } },
                    ],
                  },
                  finishReason: "STOP",
                  index: 0,
                },
              ],
              usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 30, totalTokenCount: 130 },
            }),
      );
      const response = await g.post("/v1/responses", turn(model, []), HEADERS);
      const events = dataLines(await response.text());
      expect(events.map((event) => event["sequence_number"])).toEqual(events.map((_, index) => index));
      const done = events.at(-1) as { type: string; response: { output: Wire[]; usage: Wire } };
      expect(done.type).toBe("response.completed");
      expect(done.response.usage).toMatchObject({ input_tokens: 100, output_tokens: 30 });
      // What the items say, they said while they came.
      const items = events.filter((event) => event["type"] === "response.output_item.done");
      expect(items.map((event) => event["item"])).toEqual(done.response.output);
      const calls = done.response.output.filter((item) => item["type"] !== "reasoning");
      expect(calls).toMatchObject([
        { type: "function_call", name: "shell", arguments: '{"command":["ls"]}' },
        { type: "custom_tool_call", name: "apply_patch", input: text },
      ]);
      const deltas = events.filter((event) => event["type"] === "response.custom_tool_call_input.delta");
      expect(deltas.map((event) => event["delta"]).join("")).toBe(text);

      // The next turn brings everything back: every proof to where it came from.
      g.upstream.script(model === CLAUDE ? claudeStream() : answerOf("gemini")(fakeStreamRequest));
      const results = calls.map((call) => ({
        type: `${String(call["type"])}_output`,
        call_id: call["call_id"],
        output: "ok",
      }));
      const next = await g.post("/v1/responses", turn(model, [...done.response.output, ...results]), HEADERS);
      expect(next.status).toBe(200);
      await next.text();
      const text2 = JSON.stringify(lastBody());
      expect(text2.split(proof)).toHaveLength(2);
      if (model === CLAUDE) {
        const { messages } = lastBody() as { messages: { role: string; content: Wire[] }[] };
        expect(messages.at(-2)?.content).toEqual([
          { type: "thinking", thinking: "Look first.", signature: proof },
          { type: "tool_use", id: "toolu_1", name: "shell", input: { command: ["ls"] } },
          { type: "tool_use", id: "toolu_2", name: "apply_patch", input: { input: text } },
        ]);
        expect(messages.at(-1)?.content).toMatchObject([
          { type: "tool_result", tool_use_id: "toolu_1" },
          { type: "tool_result", tool_use_id: "toolu_2" },
        ]);
      } else {
        const { contents } = lastBody() as { contents: { parts: Wire[] }[] };
        expect(contents.at(-2)?.parts).toMatchObject([
          { functionCall: { name: "shell" }, thoughtSignature: proof },
          { functionCall: { name: "apply_patch", args: { input: text } } },
        ]);
        expect(contents.at(-1)?.parts).toMatchObject([
          { functionResponse: { name: "shell" } },
          { functionResponse: { name: "apply_patch" } },
        ]);
      }
      // What this upstream has no word for is in the log, by name.
      const lost = ["include", "prompt_cache_key", "store", "tools.apply_patch.format"];
      expect((await g.lastCharge())?.other["dropped"]).toEqual(expect.arrayContaining(lost));
    });
  }

  test("a whole answer makes free text of the call, too", async () => {
    const content = [{ type: "tool_use", id: "t", name: "apply_patch", input: { input: "a\nb" } }];
    const usage = { input_tokens: 3, output_tokens: 4 };
    const message = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      content,
      stop_reason: "tool_use",
      usage,
    };
    const headers = { "content-type": "application/json" };
    g.upstream.script({ headers, steps: [JSON.stringify(message)] });
    const response = await g.post("/v1/responses", { ...turn(CLAUDE, []), stream: false });
    const { output } = (await response.json()) as { output: Wire[] };
    expect(output).toMatchObject([{ type: "custom_tool_call", call_id: "t", input: "a\nb" }]);
  });

  test("goes on from a stored response at the channel that holds it, whoever's turn it is, or not at all", async () => {
    const model = "gpt-5.1-codex";
    const second = await g.app.createChannel({ type: 1, models: model, key: "two", baseUrl: g.upstream.url });
    await g.app.createChannel({ type: 1, models: model, key: "one", baseUrl: g.upstream.url });
    const keys = () => g.upstream.requests.map(({ headers }) => String(headers["authorization"]).slice(7));
    const answered = (id: string): Script => {
      const output = [{ type: "message", content: [{ type: "output_text", text: "ok" }] }];
      const response = { id, object: "response", status: "completed", model, output, usage: {} };
      return streamed({ type: "response.completed", response });
    };
    const ask = async (more: Wire) => {
      const response = await g.post("/v1/responses", { model, input: "hi", stream: true, ...more });
      expect(await response.text()).toContain("response.completed");
    };
    g.upstream.script(answered("resp_a"), answered("resp_b"));
    await ask({});
    await ask({});
    const [first, other] = keys();
    expect([first, other].toSorted()).toEqual(["one", "two"]);
    g.upstream.always(() => answered("resp_c"));
    for (const [id, key] of [
      ["resp_b", other],
      ["resp_b", other],
      ["resp_a", first],
      ["resp_a", first],
    ]) {
      await ask({ previous_response_id: id });
      expect(keys().at(-1)).toBe(key);
    }
    // One that nobody knows, and an account that is off, are no reason to ask another one (stored-responses.test.ts).
    const asked = keys().length;
    const goOn = (id: string) => g.post("/v1/responses", { model, input: "hi", previous_response_id: id });
    expect((await goOn("resp_unknown")).status).toBe(404);
    const { db, routing } = g.app.deps;
    await db.orm.update(db.t.channels).set({ status: 2 }).where(eq(db.t.channels.id, second));
    await routing.refresh([second]);
    expect((await goOn(first === "two" ? "resp_a" : "resp_b")).status).toBe(503);
    expect(keys()).toHaveLength(asked);
  });

  test("works over other models that speak chat completions, streamed with its free-text tool", async () => {
    const text = "*** Begin Patch";
    const pieces = JSON.stringify({ input: text }).match(/.{1,7}/g) ?? [];
    const chunk = (delta: Wire, finish_reason: string | null = null) => ({
      id: "c",
      choices: [{ index: 0, delta, finish_reason }],
    });
    const named = {
      index: 0,
      id: "call_1",
      type: "function",
      function: { name: "apply_patch", arguments: "" },
    };
    g.upstream.script(
      streamed(
        chunk({ role: "assistant", tool_calls: [named] }),
        ...pieces.map((piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
        chunk({}, "tool_calls"),
      ),
    );
    const response = await g.post("/v1/responses", turn(CHAT, []), HEADERS);
    const events = dataLines(await response.text());
    const told = [{ type: "custom_tool_call", call_id: "call_1", input: text }];
    expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { output: told } });
    const { tools } = lastBody() as { tools: Wire[] };
    expect(tools.map((tool) => tool["type"])).toEqual(["function", "function"]);
  });

  test("a conversation is compacted by its own provider, byte for byte and paid, and by no other", async () => {
    const answered = `{"id":"resp_1", "object":"response.compaction","output":[{"type":"compaction","id":"cmp_1","encrypted_content":"x"}],"usage":{"input_tokens":900,"output_tokens":50,"total_tokens":950}}`;
    g.upstream.script({ headers: { "content-type": "application/json" }, steps: [answered] });
    const sent = JSON.stringify({
      model: CODEX,
      instructions: "You are Codex.",
      input: [said("user", "hi")],
    });
    const response = await g.post("/v1/responses/compact", sent, HEADERS);
    expect([response.status, await response.text()]).toEqual([200, answered]);
    const [request] = g.upstream.requests;
    expect([request?.url, request?.body.toString()]).toEqual(["/v1/responses/compact", sent]);
    expect(await g.lastCharge()).toMatchObject({ modelName: CODEX, promptTokens: 900, completionTokens: 50 });
    const refused = await g.post("/v1/responses/compact", { model: CLAUDE, input: "hi" });
    expect([refused.status, g.upstream.requests.length]).toEqual([503, 1]);
  });

  test("state at the provider is refused by name where it cannot be", async () => {
    const body = { ...turn(CLAUDE, []), prompt: { id: "pmpt_0" } };
    const response = await g.post("/v1/responses", body);
    expect([response.status, g.upstream.requests.length]).toEqual([400, 0]);
    expect(await response.json()).toMatchObject({ error: { param: "prompt" } });
  });
});

/** A request that asks the fake Gemini for its stream. */
const fakeStreamRequest = { url: ":streamGenerateContent" } as Parameters<ReturnType<typeof answerOf>>[0];

describe("Claude Code", () => {
  const cached = { cache_control: { type: "ephemeral" } };
  const body = (model: string): Wire => ({
    model,
    max_tokens: 32_000,
    system: [
      { type: "text", text: "You are Claude Code.", ...cached },
      { type: "text", text: "Be short.", ...cached },
    ],
    messages: [
      { role: "user", content: [{ type: "text", text: "Fix the bug.", ...cached }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Look first.", signature: "signed-by-claude" },
          { type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "ls" } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: "a.ts", is_error: false, ...cached },
        ],
      },
    ],
    tools: [{ name: "Bash", description: "Runs a command.", input_schema: { type: "object" } }],
    thinking: { type: "enabled", budget_tokens: 31_999 },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    metadata: { user_id: "user_1_account__session_1" },
    temperature: 1,
    stream: true,
  });
  const HEADERS = {
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219,context-management-2025-06-27,interleaved-thinking-2025-05-14",
    "anthropic-dangerous-direct-browser-access": "true",
    "x-app": "cli",
  };

  test("its own upstream gets the body byte for byte, with beta header and query", async () => {
    g.upstream.always(answerOf("anthropic"));
    const sent = JSON.stringify(body(CLAUDE));
    const response = await g.post("/v1/messages?beta=true", sent, HEADERS);
    expect(await response.text()).toBe(streamText("anthropic"));
    const [request] = g.upstream.requests;
    expect([request?.url, request?.body.toString()]).toEqual(["/v1/messages?beta=true", sent]);
    expect(request?.headers["anthropic-beta"]).toBe(HEADERS["anthropic-beta"]);
  });

  for (const [dialect, model] of [
    ["openai-chat", CHAT],
    ["openai-responses", CODEX],
    ["gemini", GEMINI],
  ] as const) {
    test(`works over ${dialect}: blocks in order, the context's size from the start, losses listed`, async () => {
      g.upstream.always(answerOf(dialect));
      const response = await g.post("/v1/messages?beta=true", body(model), HEADERS);
      const events = dataLines(await response.text());
      expect([response.status, events.at(-1)]).toEqual([200, { type: "message_stop" }]);
      const [start] = events as { message: { usage: { input_tokens: number } } }[];
      expect(start?.message.usage.input_tokens).toBeGreaterThan(0);
      const starts = events.filter((event) => event["type"] === "content_block_start");
      expect(starts.map((event) => event["index"])).toEqual(starts.map((_, index) => index));
      // Claude's proof stays with Claude.
      expect(g.upstream.requests[0]?.body.toString()).not.toContain("signed-by-claude");
      const dropped = (await g.lastCharge())?.other["dropped"];
      expect(dropped).toEqual(expect.arrayContaining(["cache_control", "context_management", "thinking"]));
    });
  }

  test("counts tokens before it sends", async () => {
    const { stream: _stream, max_tokens: _limit, ...rest } = body(GEMINI);
    const response = await g.post("/v1/messages/count_tokens?beta=true", rest, HEADERS);
    const { input_tokens: tokens } = (await response.json()) as { input_tokens: number };
    expect([response.status, Number.isInteger(tokens), tokens > 20]).toEqual([200, true, true]);
  });
});

describe("Gemini CLI", () => {
  const body = {
    contents: [
      { role: "user", parts: [{ text: "Fix the bug." }] },
      {
        role: "model",
        parts: [
          { functionCall: { id: "ls-1", name: "ls", args: { path: "." } }, thoughtSignature: "c2lnbmVk" },
        ],
      },
      {
        role: "user",
        parts: [{ functionResponse: { id: "ls-1", name: "ls", response: { output: "a.ts" } } }],
      },
    ],
    systemInstruction: { role: "user", parts: [{ text: "You are Gemini CLI." }] },
    tools: [
      {
        functionDeclarations: [
          {
            name: "ls",
            description: "Lists files.",
            parametersJsonSchema: { type: "object", properties: { path: { type: "string" } } },
          },
        ],
      },
    ],
    generationConfig: {
      temperature: 0,
      topP: 1,
      thinkingConfig: { includeThoughts: true, thinkingBudget: -1 },
    },
    labels: { session: "1" },
  };
  const KEY = () => ({ "x-goog-api-key": g.key, authorization: "" });

  test("its own upstream gets the body byte for byte", async () => {
    g.upstream.always(answerOf("gemini"));
    const sent = JSON.stringify(body);
    const path = `/v1beta/models/${GEMINI}:streamGenerateContent?alt=sse`;
    const response = await g.post(path, sent, KEY());
    expect(await response.text()).toBe(streamText("gemini"));
    expect(g.upstream.requests[0]?.body.toString()).toBe(sent);
  });

  test("works over Anthropic: calls whole, Google's proof stays behind, the end is STOP", async () => {
    g.upstream.script(
      claudeStream(
        thinking("Hm.", "signed"),
        toolUse("toolu_1", "ls", '{"pa', 'th":"b"}'),
        toolUse("toolu_2", "ls"),
      ),
    );
    const path = `/v1beta/models/${CLAUDE}:streamGenerateContent?alt=sse`;
    const response = await g.post(path, body, KEY());
    const chunks = dataLines((await response.text()).replaceAll("\r", "")) as {
      candidates: { content: { parts: Wire[] }; finishReason?: string }[];
    }[];
    const parts = chunks.flatMap((chunk) => chunk.candidates[0]?.content.parts ?? []);
    expect(parts.filter((part) => "functionCall" in part)).toEqual([
      { functionCall: { id: "toolu_1", name: "ls", args: { path: "b" } } },
      { functionCall: { id: "toolu_2", name: "ls", args: {} } },
    ]);
    expect(chunks.at(-1)?.candidates[0]?.finishReason).toBe("STOP");
    expect(chunks.at(-1)).toMatchObject({
      usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 30 },
    });
    const { messages, system } = lastBody() as { messages: Wire[]; system: string };
    expect(system).toBe("You are Gemini CLI.");
    expect(messages.slice(1)).toEqual([
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "ls-1", name: "ls", input: { path: "." } }],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "ls-1", content: [{ type: "text", text: "a.ts" }] }],
      },
    ]);
    expect(JSON.stringify(messages)).not.toContain("c2lnbmVk");
    expect((await g.lastCharge())?.other["dropped"]).toEqual(expect.arrayContaining(["labels"]));
  });

  test("counts tokens of the request that it is about to make", async () => {
    const response = await g.post(
      `/v1beta/models/${CLAUDE}:countTokens`,
      { generateContentRequest: body },
      KEY(),
    );
    const { totalTokens } = (await response.json()) as { totalTokens: number };
    expect([response.status, totalTokens > 10]).toEqual([200, true]);
  });
});
