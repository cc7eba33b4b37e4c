// Guarantees for what coding agents ask besides their calls: Codex's WebSocket, the model lists of Codex and Claude Code,
// addresses without a version, and the headers of their sessions. Nobody else's answers change.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { eq } from "drizzle-orm";
import { createSealer } from "../../src/core/kit/seal.ts";
import { openTurnState, sealTurnState } from "../../src/relay/wire/turn-state.ts";
import { answerOf, streamText, UPSTREAMS } from "../support/dialect-upstream.ts";
import { connectRaw } from "../support/raw-client.ts";
import { startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

type Wire = Record<string, unknown>;
const CODEX = UPSTREAMS["openai-responses"].model;
const CLAUDE = UPSTREAMS.anthropic.model;
const CHAT = UPSTREAMS["openai-chat"].model;

let g: Gateway;
beforeAll(async () => {
  g = await startGateway({ quota: 1_000_000_000, channel: { models: `${CODEX},text-embedding-3-small` } });
  for (const [type, models] of [
    [14, CLAUDE],
    [43, `${CHAT},gpt-6-sol`],
  ])
    await g.app.createChannel({ type, models, baseUrl: g.upstream.url });
  await g.setOption("SelfUseModeEnabled", "true");
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(g.app.url + path, { headers: { authorization: `Bearer ${g.key}`, ...headers } });

describe("Codex's WebSocket attempt", () => {
  for (const path of ["/v1/responses", "/responses"]) {
    test(`${path} answers 426 and closes, which is what sends it to HTTP at once`, async () => {
      const raw = await connectRaw(g.app.url, "127.0.0.1");
      const lines = [
        `GET ${path} HTTP/1.1`,
        "Host: localhost",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "OpenAI-Beta: responses_websockets=2026-02-06",
        `Authorization: Bearer ${g.key}`,
      ];
      raw.write(`${lines.join("\r\n")}\r\n\r\n`);
      // The server ends the connection: nobody waits for a time limit here.
      await raw.closed;
      const answer = raw.text();
      expect(answer).toStartWith("HTTP/1.1 426 ");
      expect(answer.toLowerCase()).toContain("\r\nconnection: close\r\n");
      expect(answer).toContain('"websocket_unsupported"');
    });

    test(`${path} tells a plain GET that it takes POST`, async () => {
      const response = await get(path);
      expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
      expect(await response.json()).toMatchObject({ error: { code: "method_not_allowed" } });
    });
  }
});

describe("addresses without a version", () => {
  test("a Responses call, streamed byte for byte, and the list of models", async () => {
    g.upstream.always(answerOf("openai-responses"));
    const response = await g.post("/responses", { model: CODEX, input: "hi", stream: true });
    expect(await response.text()).toBe(streamText("openai-responses"));
    expect(g.upstream.requests.map(({ url }) => url)).toEqual(["/v1/responses"]);
    expect(await (await get("/models")).json()).toEqual(await (await get("/v1/models")).json());
  });

  test("strangers get what they get elsewhere", async () => {
    const models = await fetch(`${g.app.url}/models`);
    const call = await fetch(`${g.app.url}/responses`, { method: "POST", body: "{}" });
    const got = await fetch(`${g.app.url}/responses`);
    expect([models.status, call.status, got.status]).toEqual([401, 401, 401]);
  });
});

describe("Codex's list of models", () => {
  test("has the description that it needs of every model of a conversation, beside the usual list", async () => {
    const body = (await (await get("/v1/models?client_version=0.169.0")).json()) as {
      data: Wire[];
      models: Wire[];
    };
    expect(body.models.map((model) => model["slug"]).sort()).toEqual([CLAUDE, CHAT, CODEX].sort());
    // What Codex 0.169 refuses a list without, found by leaving out one after the other.
    const needed = [
      "display_name",
      "supported_reasoning_levels",
      "shell_type",
      "visibility",
      "supported_in_api",
      "priority",
      "base_instructions",
      "support_verbosity",
      "truncation_policy",
      "experimental_supported_tools",
    ];
    for (const model of body.models) expect(Object.keys(model)).toEqual(expect.arrayContaining(needed));
    const { models: _models, ...rest } = body;
    expect(rest).toEqual((await (await get("/v1/models")).json()) as typeof rest);
  });

  test("nobody else gets it", async () => {
    for (const path of ["/v1/models", "/v1/models?x=client_version=1", "/models"])
      expect(await (await get(path)).json()).not.toHaveProperty("models");
  });
});

describe("Claude Code's list of models", () => {
  const HEADERS = { "anthropic-version": "2023-06-01", "user-agent": "claude-code/2.1.197" };
  const list = async (headers: Record<string, string>) =>
    (await (await get("/v1/models?limit=1000", headers)).json()) as { data: Wire[] };

  test("names every model of a conversation so that it is shown", async () => {
    const { data } = await list(HEADERS);
    const shown = data.map(({ id, display_name }) => [id, display_name]).sort();
    expect(shown).toEqual(
      [
        [CLAUDE, CLAUDE],
        [`anthropic/${CHAT}`, CHAT],
        [`anthropic/${CODEX}`, CODEX],
        ["anthropic/gpt-6-sol", "gpt-6-sol"],
      ].sort(),
    );
  });

  test("the alias is served as the model that it stands for, and billed and limited by its name", async () => {
    g.upstream.always(answerOf("openai-chat"));
    const body = { model: `anthropic/${CHAT}`, max_tokens: 9, messages: [{ role: "user", content: "hi" }] };
    const response = await g.post("/v1/messages", body, HEADERS);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ model: CHAT });
    expect(g.upstream.requests[0]?.json()["model"]).toBe(CHAT);
    expect(await g.lastCharge()).toMatchObject({ modelName: CHAT });
    expect((await g.post("/v1/messages/count_tokens", body, HEADERS)).status).toBe(200);
  });

  test("a model that really has such a name is that model", async () => {
    const real = `anthropic/${CHAT}`;
    const id = await g.app.createChannel({ type: 43, models: real, baseUrl: g.upstream.url });
    g.upstream.always(answerOf("openai-chat"));
    const body = { model: real, max_tokens: 9, messages: [{ role: "user", content: "hi" }] };
    expect((await g.post("/v1/messages", body)).status).toBe(200);
    expect(g.upstream.requests[0]?.json()["model"]).toBe(real);
    const { db, routing } = g.app.deps;
    await db.orm.delete(db.t.channels).where(eq(db.t.channels.id, id));
    await routing.refresh([id]);
  });

  test("other clients of this protocol get the names as they are", async () => {
    const { data } = await list({ ...HEADERS, "user-agent": "anthropic-sdk" });
    expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining([CHAT, CODEX, "text-embedding-3-small"]));
    expect(JSON.stringify(data)).not.toContain("anthropic/");
  });
});

describe("tools that agents run themselves", () => {
  test("never stop a call, and what stays behind is told in the log", async () => {
    g.upstream.always(answerOf("openai-chat"));
    const response = await g.post("/v1/messages", {
      model: CHAT,
      max_tokens: 99,
      messages: [{ role: "user", content: "hi" }],
      mcp_servers: [],
      ["unknown".repeat(1000)]: 1,
      tools: [
        { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" },
        { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" },
        { name: "f", input_schema: { type: "object" }, defer_loading: true },
      ],
    });
    expect(response.status).toBe(200);
    expect(g.upstream.requests[0]?.json()["tools"]).toMatchObject([{ function: { name: "f" } }]);
    expect((await g.lastCharge())?.other["dropped"]).toEqual(
      expect.arrayContaining([
        "tools.tool_search_tool_regex_20251119",
        "tools.tool_search_tool_bm25_20251119",
        "tools.defer_loading",
        // Of a name that a client chose the row keeps so much.
        "unknown".repeat(1000).slice(0, 256),
      ]),
    );
  });

  test("a shell without functions: its call comes back as the item that it is", async () => {
    const call = {
      id: "call_1",
      type: "function",
      function: { name: "local_shell", arguments: '{"command":["ls"]}' },
    };
    const choices = [
      { index: 0, message: { role: "assistant", tool_calls: [call] }, finish_reason: "tool_calls" },
    ];
    const headers = { "content-type": "application/json" };
    g.upstream.script({ headers, steps: [JSON.stringify({ id: "c", choices })] });
    const body = { model: CHAT, input: "hi", tools: [{ type: "local_shell" }], store: false };
    const answer = (await (await g.post("/v1/responses", body)).json()) as { output: Wire[] };
    const action = { type: "exec", command: ["ls"] };
    expect(answer.output).toMatchObject([{ type: "local_shell_call", call_id: "call_1", action }]);
  });
});

describe("the headers of a session", () => {
  const file = new URL("../fixtures/codex/gpt-5.5.json", import.meta.url);
  const { headers: recorded } = JSON.parse(readFileSync(file, "utf8")) as { headers: Record<string, string> };
  const codex = {
    ...recorded,
    thread_id: "t",
    "x-codex-parent-thread-id": "p",
    "x-openai-subagent": "review",
  };
  const ask = (headers: Record<string, string>, model = CODEX) =>
    g.post("/v1/responses", { model, input: "hi" }, headers);

  test("Codex's reach the Responses API as they are, and no other", async () => {
    g.upstream.always(answerOf("openai-responses"));
    await ask(codex);
    const { accept: _accept, "user-agent": agent, ...session }: Record<string, string> = codex;
    expect(g.upstream.requests[0]?.headers).toMatchObject(session);
    expect(g.upstream.requests[0]?.headers["user-agent"]).not.toBe(agent);
    g.upstream.reset();
    for (const [model, dialect] of [
      [CLAUDE, "anthropic"],
      [CHAT, "openai-chat"],
    ] as const) {
      g.upstream.always(answerOf(dialect));
      expect((await ask(codex, model)).status).toBe(200);
      for (const name of Object.keys(session))
        expect(g.upstream.requests.at(-1)?.headers[name]).toBeUndefined();
    }
  });

  test("Claude Code's reach Anthropic's API as they are, and no other", async () => {
    const session = { "x-claude-code-session-id": "s-1", "x-app": "cli" };
    const body = (model: string) => ({ model, max_tokens: 9, messages: [{ role: "user", content: "hi" }] });
    g.upstream.always(answerOf("anthropic"));
    await g.post("/v1/messages", body(CLAUDE), session);
    expect(g.upstream.requests[0]?.headers).toMatchObject(session);
    g.upstream.always(answerOf("openai-chat"));
    await g.post("/v1/messages", body(CHAT), session);
    for (const name of Object.keys(session)) expect(g.upstream.requests[1]?.headers[name]).toBeUndefined();
  });

  test("OpenRouter and OpenCode get the sessions that they ask for, up to 256 characters; nobody else does", async () => {
    const { sessionHeaders } = await import("../../src/providers/session-headers.ts");
    const names = (type: number, baseUrl: string) => sessionHeaders(type, { baseUrl });
    expect(names(20, "")).toEqual(["x-session-id"]);
    expect(names(1, "https://openrouter.ai/api")).toEqual(["x-session-id"]);
    expect(names(1, "https://opencode.ai/zen")).toEqual(["x-session-id", "x-opencode-session"]);
    for (const url of ["https://openrouter.ai.example.org", "https://example.org/opencode.ai", ""])
      expect(names(1, url)).toEqual([]);
    g.upstream.always(answerOf("openai-chat"));
    await g.chat({ model: CHAT }, { "x-session-id": "s", "x-opencode-session": "o" });
    expect(g.upstream.requests[0]?.headers["x-session-id"]).toBeUndefined();
  });
});

describe("the state of a turn", () => {
  const json = { "content-type": "application/json" };
  const ask = (key: string, state?: string, fields: Wire = {}) =>
    g.post(
      "/v1/responses",
      { model: CODEX, input: "hi", ...fields },
      {
        authorization: `Bearer ${key}`,
        ...(state === undefined ? {} : { "x-codex-turn-state": state }),
      },
    );
  const stateOf = (response: Response): string => response.headers.get("x-codex-turn-state") ?? "";
  const sent = (): string | undefined =>
    g.upstream.requests.at(-1)?.headers["x-codex-turn-state"] as string | undefined;

  function withState(state: string): void {
    g.upstream.always((request) => {
      const script = answerOf("openai-responses")(request);
      return { ...script, headers: { ...json, ...script.headers, "x-codex-turn-state": state } };
    });
  }

  for (const stream of [false, true]) {
    test(`goes back to who gave it, ${stream ? "streamed" : "whole"}, and never shows what it is`, async () => {
      withState("upstream-state");
      const first = await ask(g.key, undefined, { stream });
      await first.text();
      expect(sent()).toBeUndefined();
      const state = stateOf(first);
      expect([state === "", state.includes("upstream-state")]).toEqual([false, false]);
      await (await ask(g.key, state, { stream })).text();
      expect(sent()).toBe("upstream-state");
    });
  }

  test("is dropped for another user, another key of the channel, another channel, and where it is nobody's", async () => {
    withState("upstream-state");
    const first = await ask(g.key);
    const state = stateOf(first);
    const other = await g.app.createUser({ quota: 1_000_000 });
    const theirs = await g.app.createToken(other.id);
    // In the middle: the last characters of such a text carry bits that nobody reads.
    const middle = Math.floor(state.length / 2);
    const changed = `${state.slice(0, middle)}${state[middle] === "A" ? "B" : "A"}${state.slice(middle + 1)}`;
    for (const [key, text] of [
      [theirs.key, state],
      [g.key, "upstream-state"],
      [g.key, changed],
    ] as const) {
      expect((await ask(key, text)).status).toBe(200);
      expect(sent()).toBeUndefined();
    }
    await g.app.setKeys(g.channelId, "another-upstream-key");
    expect((await ask(g.key, state)).status).toBe(200);
    expect(sent()).toBeUndefined();
  });

  test("holds on every node and after a start, by the installation's key alone", () => {
    const owner = (
      secret: string,
      more: Partial<{ userId: number; channelId: number; key: string }> = {},
    ) => ({
      seal: createSealer(secret),
      userId: 1,
      channelId: 2,
      key: "k",
      ...more,
    });
    const state = sealTurnState(owner("a"), "x") ?? "";
    expect(openTurnState(owner("a"), state)).toBe("x");
    for (const stranger of [
      owner("b"),
      owner("a", { userId: 2 }),
      owner("a", { channelId: 3 }),
      owner("a", { key: "l" }),
      owner("a", { userId: 11, channelId: 2 }),
    ])
      expect(openTurnState(stranger, state)).toBeUndefined();
    expect(sealTurnState(owner("a"), "x".repeat(5000))).toBeUndefined();
  });
});

test("Groq's SDK puts /openai/v1 behind any base address: its calls are served there", async () => {
  g.upstream.always(answerOf("openai-chat"));
  const chat = await g.post("/openai/v1/chat/completions", {
    model: CHAT,
    messages: [{ role: "user", content: "hi" }],
  });
  expect([chat.status, await chat.json()]).toMatchObject([200, { object: "chat.completion" }]);
  g.upstream.always(undefined);
  const models = (await (await get("/openai/v1/models")).json()) as { data: { id: string }[] };
  expect(models.data.map(({ id }) => id)).toContain(CHAT);
});
