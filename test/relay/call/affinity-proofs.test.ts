// What only the account that made it can read (encrypted reasoning, signatures, the state of a turn) leaves with a session that goes
// elsewhere, or that its account no longer reads: the turn itself stays, and no client sees an error.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { ChannelStatus } from "../../../src/shared/enums.ts";
import { answer, json } from "../../support/fake-upstream.ts";
import type { RecordedRequest, Script } from "../../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const SESSION = { "session-id": "session" };
const STATE = "x-codex-turn-state";

const reasoning = (encrypted: string) => ({
  type: "reasoning",
  id: "rs_1",
  summary: [],
  encrypted_content: encrypted,
});
const said = (role: string, text: string) => ({
  type: "message",
  role,
  content: [{ type: role === "user" ? "input_text" : "output_text", text }],
});

/** An OpenAI account's answer, with the state that it gives for the turn. */
function response(request: RecordedRequest): Script {
  const body = {
    id: "resp_1",
    object: "response",
    status: "completed",
    model: "gpt-5.1",
    output: [
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "hi", annotations: [] }],
      },
    ],
    usage: { input_tokens: 20, output_tokens: 5, total_tokens: 25 },
  };
  return json(body, 200, { [STATE]: `state of ${keyOf(request)}` });
}

const keyOf = ({ headers }: RecordedRequest): string =>
  String(headers["authorization"] ?? headers["x-api-key"]).replace("Bearer ", "");

describe.each(DATABASE_KINDS)("proofs on %s", (database) => {
  let g: Gateway;
  let serial = 0;
  beforeAll(async () => {
    // One of its channels has the name of a provider.
    g = await startGateway({ database, lookup: () => Promise.resolve(["127.0.0.1"]) });
    await g.setOption("SelfUseModeEnabled", "true");
  });
  afterAll(() => g.close());
  beforeEach(() => {
    g.upstream.reset();
    g.upstream.always(response);
  });

  async function twoChannels(type: number) {
    const model = `${type === 14 ? "claude" : "gpt"}-proof-${++serial}`;
    const ids: number[] = [];
    for (const key of ["a", "b"])
      ids.push(
        await g.app.createChannel({ type, baseUrl: g.upstream.url, models: model, key: `${model}-${key}` }),
      );
    return { model, ids };
  }
  async function turnOff(id: number): Promise<void> {
    const { db, routing } = g.app.deps;
    await db.orm
      .update(db.t.channels)
      .set({ status: ChannelStatus.disabled })
      .where(eq(db.t.channels.id, id));
    await routing.refresh([id]);
  }
  const sent = (at: number): Record<string, unknown> => g.upstream.requests[at]?.json() ?? {};
  const stateSent = (at: number) => g.upstream.requests[at]?.headers[STATE];

  test("turn state and encrypted reasoning go back to who made them, after a restart too, and to nobody else", async () => {
    const { model, ids } = await twoChannels(1);
    const first = await g.post("/v1/responses", { model, input: "one", store: false }, SESSION);
    const state = first.headers.get(STATE) ?? "";
    expect(state).not.toContain("state of");
    const turn = {
      model,
      input: [said("user", "one"), reasoning("secret"), said("user", "two")],
      store: false,
    };
    const headers = { ...SESSION, [STATE]: state };
    // As after a restart: nothing is bound any more, and the state alone says where it came from.
    for (const isForgotten of [false, true, true]) {
      if (isForgotten) await g.app.deps.affinity.clear();
      expect((await g.post("/v1/responses", turn, headers)).status).toBe(200);
    }
    const [home = ""] = g.upstream.requests.map(keyOf);
    expect(new Set(g.upstream.requests.map(keyOf)).size).toBe(1);
    for (const at of [1, 2, 3]) {
      expect(stateSent(at)).toBe(`state of ${home}`);
      expect(JSON.stringify(sent(at)["input"])).toContain("secret");
    }
    await turnOff(ids[home.endsWith("a") ? 0 : 1] ?? 0);
    expect((await g.post("/v1/responses", turn, headers)).status).toBe(200);
    expect(keyOf(g.upstream.requests[4] as RecordedRequest)).not.toBe(home);
    expect(stateSent(4)).toBeUndefined();
    const input = JSON.stringify(sent(4)["input"]);
    expect(input).not.toContain("secret");
    expect(input).toContain("two");
    expect((await g.lastCharge())?.other).toMatchObject({
      dropped: expect.arrayContaining(["reasoning.encrypted_content"]),
      admin_info: { channel_affinity: { strength: "own", state: "switched", reason: "off" } },
    });
  });

  test("a signature that its upstream rejects: the same channel gets the turn without it, once, and knows from then on", async () => {
    const { model } = await twoChannels(14);
    const answer = json({
      id: "msg_1",
      type: "message",
      role: "assistant",
      model,
      content: [{ type: "text", text: "done" }],
      stop_reason: "end_turn",
      usage: { input_tokens: 10, output_tokens: 2 },
    });
    const refusal = json(
      {
        type: "error",
        error: {
          type: "invalid_request_error",
          message: "messages.1.content.0: Invalid `signature` in `thinking` block",
        },
      },
      400,
    );
    g.upstream.always((request) => (request.body.toString().includes("stale") ? refusal : answer));
    const body = {
      model,
      max_tokens: 100,
      messages: [
        { role: "user", content: "one" },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm", signature: "stale" },
            { type: "text", text: "first" },
          ],
        },
        { role: "user", content: "two" },
      ],
    };
    const headers = { "x-claude-code-session-id": "s" };
    const row = await g.charged(async () => {
      expect((await g.post("/v1/messages", body, headers)).status).toBe(200);
    });
    expect(g.upstream.requests).toHaveLength(2);
    expect(new Set(g.upstream.requests.map(keyOf)).size).toBe(1);
    expect(JSON.stringify(sent(0))).toContain("stale");
    expect(JSON.stringify(sent(1)["messages"])).toContain("first");
    expect(row.other["dropped"]).toContain("thinking.signature");
    expect((await g.post("/v1/messages", body, headers)).status).toBe(200);
    expect(g.upstream.requests).toHaveLength(3);
    expect(JSON.stringify(sent(2))).not.toContain("stale");
    // Any other refusal is the client's to read, and asked once.
    g.upstream.always(json({ type: "error", error: { type: "invalid_request_error", message: "no" } }, 400));
    expect((await g.post("/v1/messages", body, { "session-id": "another" })).status).toBe(400);
  });

  test("what goes on from a stored response goes to its account, and its session comes along", async () => {
    const { model } = await twoChannels(1);
    await g.post("/v1/responses", { model, input: "one" }, {});
    const next = { model, input: "two", previous_response_id: "resp_1" };
    const [home] = g.upstream.requests.map(keyOf);
    const row = await g.charged(async () => {
      expect((await g.post("/v1/responses", next, { "session-id": "stored" })).status).toBe(200);
    });
    expect(row.other["admin_info"]).toMatchObject({
      channel_affinity: { rule_name: "stored-response", strength: "must", state: "kept" },
    });
    for (let turn = 0; turn < 3; turn++)
      await g.post("/v1/responses", { model, input: "three", store: false }, { "session-id": "stored" });
    expect(new Set(g.upstream.requests.map(keyOf))).toEqual(new Set([home ?? ""]));
  });

  test("a channel that wants it is told a session by a hash of user and name, where the client told no key of its own", async () => {
    const model = `gpt-hint-${++serial}`;
    const fields = { baseUrl: g.upstream.url, models: model, settings: '{"session_hint":true}' };
    await g.app.createChannel(fields);
    const other = await g.app.createUser({ quota: 1_000_000 });
    const { key } = await g.app.createToken(other.id);
    const ask = (more: object, headers: Record<string, string>) =>
      g.post("/v1/responses", { model, input: "hi", ...more }, headers);
    await ask({}, SESSION);
    await ask({}, SESSION);
    await ask({}, { ...SESSION, authorization: `Bearer ${key}` });
    await ask({ prompt_cache_key: "mine" }, SESSION);
    await ask({}, {});
    const keys = g.upstream.requests.map((request) => request.json()["prompt_cache_key"]);
    expect(keys[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).toMatch(/^[0-9a-f]{64}$/);
    expect(keys[2]).not.toBe(keys[0]);
    expect(keys.slice(3)).toEqual(["mine", undefined]);
  });

  test("who reads a header for it gets that one in the body's place, and no other's session", async () => {
    const model = `hint-${++serial}`;
    const baseUrl = g.upstream.url.replace("127.0.0.1", "openrouter.ai");
    await g.app.createChannel({ type: 20, baseUrl, models: model, settings: '{"session_hint":true}' });
    const other = await g.app.createUser({ quota: 1_000_000 });
    const { key } = await g.app.createToken(other.id);
    g.upstream.always(answer("hi"));
    const ask = (headers: Record<string, string>) => g.chat({ model }, headers);
    await ask(SESSION);
    await ask(SESSION);
    await ask({ ...SESSION, authorization: `Bearer ${key}` });
    await ask({ "x-session-id": "the client's own" });
    await ask({});
    const told = g.upstream.requests.map(({ headers }) => headers["x-session-id"]);
    expect(told[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(told[1]).toBe(told[0] ?? "");
    expect(told[2]).toMatch(/^[0-9a-f]{64}$/);
    expect(told[2]).not.toBe(told[0]);
    expect(told.slice(3)).toEqual(["the client's own", undefined]);
    for (const request of g.upstream.requests) expect(request.json()).not.toHaveProperty("prompt_cache_key");
  });
});
