// SIGTERM with answers that never end: at DRAIN_SECONDS each is settled for what it delivered, told in its dialect and
// closed, and the process exits with 0. Runs the product as people start it.
// Refuses to lose anything that was delivered: it is charged and logged, and the books agree afterwards.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readEnv } from "../../../src/env.ts";
import { connect } from "../../../src/db/connect.ts";
import { LogType } from "../../../src/shared/enums.ts";
import { UPSTREAMS } from "../../support/dialect-upstream.ts";
import { REALTIME_USAGE, responseDone, startFakeRealtime } from "../../support/fake-realtime.ts";
import { answer, gate, HANG, hangBeforeHeaders, startFakeUpstream } from "../../support/fake-upstream.ts";
import type { FakeUpstream } from "../../support/fake-upstream.ts";
import { startOperator } from "../../support/operator.ts";
import { startServerProcess } from "../../support/server.ts";
import type { ServerProcess } from "../../support/server.ts";
import { CLIENTS, FRAMES, LEAST_TOKENS, script } from "./begun-streams.ts";
import { attach, MODEL as REALTIME } from "../realtime/support.ts";
import { dataLines, until } from "../support.ts";

const SPEECH = "tts-1";

let upstream: FakeUpstream;
let server: ServerProcess;
let key: string;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  server = await startServerProcess({ DRAIN_SECONDS: "1" });
  const operator = await startOperator(server, { base_url: upstream.url, models: SPEECH });
  ({ key } = operator);
  await operator.send("PUT", "/api/option/", { key: "SelfUseModeEnabled", value: "true" });
  for (const { type, model } of Object.values(UPSTREAMS))
    await operator.send("POST", "/api/channel/", {
      type,
      name: model,
      key: "upstream",
      models: model,
      base_url: upstream.url,
    });
}, 60_000);
afterAll(async () => {
  await server.remove();
  upstream.stop();
});

interface Row {
  modelName: string;
  quota: number;
  promptTokens: number;
  completionTokens: number;
  isStream: boolean;
  other: Record<string, unknown>;
}

async function charges(): Promise<Row[]> {
  const db = await connect(readEnv({ DATA_DIR: server.dataDir }));
  const rows = await db.orm.select().from(db.t.logs);
  await db.close();
  return rows
    .filter((row) => row.type === LogType.consume)
    .map((row) => ({ ...row, other: JSON.parse(row.other) as Record<string, unknown> }));
}

function call(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  return fetch(server.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });
}

/** The rest of a stream, and whether its connection ended in order. */
async function restOf(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += decoder.decode(value, { stream: true });
  }
}

test("endless answers in every dialect are settled, told and closed at DRAIN_SECONDS; exit code 0", async () => {
  upstream.always((request) => {
    if (request.url.includes("audio/speech"))
      return { headers: { "content-type": "audio/mpeg" }, steps: ["sound", HANG] };
    const asked = request.body.toString();
    const dialect = (Object.keys(UPSTREAMS) as (keyof typeof UPSTREAMS)[]).find(
      (each) => asked.includes(UPSTREAMS[each].model) || request.url.includes(UPSTREAMS[each].model),
    );
    const isStream = asked.includes('"stream":true') || request.url.includes("streamGenerateContent");
    if (!isStream || dialect === undefined) return hangBeforeHeaders();
    return script([...FRAMES[dialect], HANG]);
  });
  const models = Object.entries(UPSTREAMS);
  const open: { client: string; model: string; reader: ReadableStreamDefaultReader<Uint8Array> }[] = [];
  for (const [client, { model }] of models) {
    const { path, body } = (CLIENTS[client] as (typeof CLIENTS)[string])(model);
    const reader = ((await call(path, body)).body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    while (!text.includes("Once upon")) text += new TextDecoder().decode((await reader.read()).value);
    open.push({ client, model, reader });
  }
  // A client that does not read, an answer of bytes, one that never comes, and one whose client has left.
  const stalled = await call("/v1/chat/completions", {
    ...(CLIENTS["openai-chat"]?.(UPSTREAMS["openai-chat"].model).body as object),
  });
  const sound = await call("/v1/audio/speech", { model: SPEECH, input: "Hello there", voice: "alloy" });
  const chat = {
    model: UPSTREAMS["openai-chat"].model,
    messages: [{ role: "user", content: "hi ".repeat(500) }],
  };
  const waiting = call("/v1/chat/completions", chat);
  const leaver = new AbortController();
  const leaving = call("/v1/chat/completions", chat, leaver.signal).catch(() => undefined);
  await upstream.request(models.length + 3);
  leaver.abort();
  await leaving;

  const stopped = server.stop();
  const texts = await Promise.all(open.map(({ reader }) => restOf(reader)));
  const refused = await waiting;
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toBe("5");
  expect(await refused.json()).toMatchObject({ error: { code: "server_draining" } });
  expect(await sound.arrayBuffer().catch(() => "broken off")).toBe("broken off");
  expect(await stopped).toBe(0);

  const told = Object.fromEntries(
    open.map(({ client }, i) => [client, dataLines(texts[i] as string).at(-1)]),
  );
  expect(told["openai-chat"]).toMatchObject({ error: { code: "server_draining", type: "new_api_error" } });
  expect(told["anthropic"]).toMatchObject({ type: "error", error: { type: "overloaded_error" } });
  expect(told["openai-responses"]).toMatchObject({ type: "error", code: "server_error" });
  expect(told["gemini"]).toMatchObject({ error: { code: 503, status: "UNAVAILABLE" } });
  for (const text of texts) expect(text).not.toContain("[DONE]");

  const rows = await charges();
  for (const row of rows) expect(row.other["end_reason"]).toBe("draining");
  const streams = rows.filter((row) => row.isStream);
  expect(streams.map((row) => row.modelName).toSorted()).toEqual(
    [...models.map(([, { model }]) => model), UPSTREAMS["openai-chat"].model].toSorted(),
  );
  for (const row of streams) {
    expect(row.promptTokens).toBe(1000);
    expect(row.completionTokens).toBeGreaterThan(LEAST_TOKENS);
    expect(row.other).toMatchObject({ estimated: true, cache_tokens: 600 });
  }
  const unstreamed = rows.filter((row) => !row.isStream);
  expect(unstreamed.map((row) => row.modelName).toSorted()).toEqual([chat.model, chat.model, SPEECH]);
  for (const row of unstreamed) {
    expect(row.quota).toBeGreaterThan(0);
    expect(row.completionTokens).toBe(0);
  }
  expect(server.audit()).toMatchObject({ code: 0 });
  await stalled.body?.cancel();
}, 60_000);

test("a realtime response that never ends is cancelled, settled, told and closed with a reason", async () => {
  const realtime = startFakeRealtime();
  const fresh = await startServerProcess({ DRAIN_SECONDS: "1" });
  try {
    const { key: own } = await startOperator(fresh, { base_url: realtime.url, models: REALTIME });
    const open = async () => {
      const address = `${fresh.url.replace("http", "ws")}/v1/realtime?model=${REALTIME}`;
      const socket = new WebSocket(address, {
        headers: { authorization: `Bearer ${own}` },
      } as unknown as string[]);
      const client = attach(socket as unknown as import("bun").WebSocket);
      const peer = await realtime.connections.next();
      await client.nextOf("session.created");
      peer.say({ type: "response.created", response: { id: "endless" } });
      peer.say({ type: "response.text.delta", delta: "Once upon a time" });
      await client.nextOf("response.text.delta");
      return { client, peer };
    };
    const [polite, silent] = [await open(), await open()];
    const stopped = fresh.stop();
    expect(await polite.peer.nextJson()).toEqual({ type: "response.cancel" });
    polite.peer.say(responseDone("endless", REALTIME_USAGE, "cancelled"));
    for (const { client } of [polite, silent]) {
      expect(await client.nextOf("error")).toMatchObject({ error: { code: "server_draining" } });
      expect(await client.closed).toEqual({ code: 1001, reason: "the gateway is restarting" });
    }
    expect(await stopped).toBe(0);
    const db = await connect(readEnv({ DATA_DIR: fresh.dataDir }));
    const rows = (await db.orm.select().from(db.t.logs)).filter((row) => row.type === LogType.consume);
    await db.close();
    expect(rows).toHaveLength(2);
    for (const row of rows) expect(row.quota).toBeGreaterThan(0);
    expect(fresh.audit()).toMatchObject({ code: 0 });
  } finally {
    await fresh.remove();
    realtime.stop();
  }
}, 60_000);

test("a call that is read on without its client is waited for like any other", async () => {
  const door = gate();
  const late = await startFakeUpstream();
  late.always({ ...answer("late"), before: door });
  const fresh = await startServerProcess({ DRAIN_SECONDS: "600", DRAIN_DELAY_SECONDS: "3" });
  try {
    const { key: own } = await startOperator(fresh, { base_url: late.url, models: "gpt-4o-mini" });
    const leaver = new AbortController();
    const leaving = fetch(`${fresh.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${own}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-4o-mini", messages: [{ role: "user", content: "hi" }] }),
      signal: leaver.signal,
    }).catch(() => undefined);
    const request = await late.request(0);
    leaver.abort();
    await leaving;
    expect((await fetch(`${fresh.url}/readyz`)).status).toBe(200);
    const stopped = fresh.stop();
    // For three seconds balancers are told, and newcomers are served as ever.
    await until(() =>
      fetch(`${fresh.url}/readyz`).then(async (told) =>
        told.status === 503 ? Promise.resolve((await told.text()) === '{"status":"draining"}') : undefined,
      ),
    );
    expect(
      (await fetch(`${fresh.url}/v1/models`, { headers: { authorization: `Bearer ${own}` } })).status,
    ).toBe(200);
    // New connections are refused: the drain has begun, and no client is left to wait for.
    await until(() =>
      fetch(fresh.url).then(
        () => undefined,
        () => Promise.resolve(true),
      ),
    );
    door.open();
    expect(await stopped).toBe(0);
    expect(request.aborted).toBe(false);
    const db = await connect(readEnv({ DATA_DIR: fresh.dataDir }));
    const rows = (await db.orm.select().from(db.t.logs)).filter((row) => row.type === LogType.consume);
    await db.close();
    expect(rows).toMatchObject([{ promptTokens: 9, completionTokens: 3 }]);
    expect(fresh.audit()).toMatchObject({ code: 0 });
  } finally {
    await fresh.remove();
    late.stop();
  }
}, 60_000);

test("DRAIN_SECONDS is a whole number of seconds; 30 where nothing is said, 0 ends everything at once", () => {
  expect(readEnv({}).drainSeconds).toBe(30);
  expect(readEnv({ DRAIN_SECONDS: "0" }).drainSeconds).toBe(0);
  for (const value of ["-1", "1.5", "soon", "3601"])
    expect(() => readEnv({ DRAIN_SECONDS: value })).toThrow("DRAIN_SECONDS");
  expect(readEnv({}).drainDelaySeconds).toBe(0);
  for (const value of ["-1", "1.5", "301"])
    expect(() => readEnv({ DRAIN_DELAY_SECONDS: value })).toThrow("DRAIN_DELAY_SECONDS");
});
