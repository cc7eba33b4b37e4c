// Connections that are quiet because somebody works for them stay open; one whose client takes nothing does not.
// Refuses a short wait: each is longer than any silence that closes a connection which nobody works for.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { callPlan, MODELS, startSite } from "../attack/site.ts";
import type { Site } from "../attack/site.ts";
import { startFakeRealtime } from "../support/fake-realtime.ts";
import type { FakeRealtime } from "../support/fake-realtime.ts";
import { promptOf } from "../support/mock-upstream.ts";
import { connectRaw } from "../support/raw-client.ts";
import { attach, MODEL as REALTIME_MODEL } from "../relay/realtime/support.ts";

/** Longer than a connection is kept at the last look at it. */
const QUIET_MS = 40_000;
const LIMIT_MS = 90_000;
const SLOW_MODEL = "slow-to-test";

let site: Site;
let key = "";
let realtime: FakeRealtime;
const slow = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 255,
  async fetch() {
    await Bun.sleep(QUIET_MS);
    return Response.json({
      id: "x",
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
    });
  },
});

beforeAll(async () => {
  realtime = startFakeRealtime();
  site = await startSite();
  const allowed = { setting: JSON.stringify({ allow_networks: ["127.0.0.1"] }) };
  await site.channel({ type: 1, base_url: slow.url.origin, models: SLOW_MODEL, ...allowed });
  await site.channel({ type: 1, base_url: realtime.url, models: REALTIME_MODEL, ...allowed });
  const priced = [...Object.values(MODELS), REALTIME_MODEL];
  await site.set("ModelRatio", JSON.stringify(Object.fromEntries(priced.map((model) => [model, 1]))));
  key = await (await site.person(1_000_000_000)).key();
});
afterAll(async () => {
  await site.remove();
  realtime.stop();
  await slow.stop(true);
});

describe("a connection stays open", () => {
  test.concurrent(
    "while a plain call's upstream thinks",
    async () => {
      const { status, words } = await callPlan(site.server.url, key, {
        id: "plain",
        words: 3,
        firstMs: QUIET_MS,
      });
      expect([status, words]).toEqual([200, 3]);
    },
    LIMIT_MS,
  );

  test.concurrent(
    "while a stream's upstream has not begun",
    async () => {
      const plan = { id: "first", words: 3, firstMs: QUIET_MS };
      const { status, words, isWhole } = await callPlan(site.server.url, key, plan, { stream: true });
      expect([status, words, isWhole]).toEqual([200, 3, true]);
    },
    LIMIT_MS,
  );

  test.concurrent(
    "while a stream's upstream is silent in the middle",
    async () => {
      const plan = { id: "middle", words: 1, paceMs: QUIET_MS };
      const { status, words, isWhole } = await callPlan(site.server.url, key, plan, { stream: true });
      expect([status, words, isWhole]).toEqual([200, 1, true]);
    },
    LIMIT_MS,
  );

  test.concurrent(
    "while a console call works",
    async () => {
      const channels = (await site.root.send("GET", "/api/channel/?p=0&page_size=100")) as {
        items?: { id: number; models: string }[];
      };
      const list = Array.isArray(channels)
        ? (channels as { id: number; models: string }[])
        : (channels.items ?? []);
      const { id } = list.find(({ models }) => models === SLOW_MODEL) ?? { id: 0 };
      await site.root.send("GET", `/api/channel/test/${id}?model=${SLOW_MODEL}`);
    },
    LIMIT_MS,
  );

  test.concurrent(
    "while a realtime session says nothing",
    async () => {
      const address = `${site.server.url.replace("http", "ws")}/v1/realtime?model=${REALTIME_MODEL}`;
      const socket = new WebSocket(address, {
        headers: { authorization: `Bearer ${key}` },
      } as unknown as string[]);
      const client = attach(socket as unknown as import("bun").WebSocket);
      await client.nextOf("session.created");
      const peer = await realtime.connections.next();
      await Bun.sleep(QUIET_MS);
      peer.say({ type: "rate_limits.updated", rate_limits: [] });
      expect(await client.nextOf("rate_limits.updated")).toMatchObject({ rate_limits: [] });
      socket.close();
    },
    LIMIT_MS,
  );
});

test.concurrent(
  "a stream whose client takes nothing is closed and settled",
  async () => {
    const plan = { id: "untaken", words: 6_000_000, per: 5000 };
    const body = JSON.stringify({
      model: MODELS["openai-chat"],
      stream: true,
      messages: [{ role: "user", content: promptOf(plan) }],
    });
    const { host } = new URL(site.server.url);
    const connection = await connectRaw(site.server.url, "127.0.0.12");
    connection.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    expect(await connection.status()).toBe(200);
    connection.socket.pause();
    const requestId = /x-oneapi-request-id: (\S+)/i.exec(connection.text())?.[1] ?? "";
    const row = await site.until(async () => {
      await site.root.send("GET", "/api/log/?p=1&page_size=1");
      return (await site.books.log(2)).find((each) => each.requestId === requestId);
    }, LIMIT_MS - 10_000);
    expect(row.quota).toBeGreaterThan(0);
    connection.destroy();
  },
  LIMIT_MS,
);
