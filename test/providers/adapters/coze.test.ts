// Coze: streams, chats that are asked after until they are complete, pictures, errors under status 200.
// The pause between two questions is the test's own.
import { afterAll, beforeEach, expect, test } from "bun:test";
import { createCoze } from "../../../src/providers/adapters/coze.ts";
import type { Failure } from "../../../src/shared/failures.ts";
import { BOT, createCozeFake, KEY } from "./fakes/coze.ts";
import {
  adapterCall,
  codeOf,
  failureOf,
  HI,
  perform,
  PNG,
  serve,
  streamed,
  text,
  WEATHER_TOOL,
  whole,
  requestOf,
} from "./support.ts";
import type { CallOptions } from "./support.ts";

const fake = createCozeFake();
const upstream = serve(fake.handler);
afterAll(() => upstream.stop());
beforeEach(() => {
  fake.busyFor = 0;
  fake.ending = "completed";
});

function coze(body: Record<string, unknown> = {}, more: Partial<CallOptions> = {}): CallOptions {
  const channel = { other: BOT };
  const all = { messages: HI, user: "u-1", ...body };
  return { type: 49, key: KEY, model: "deepseek-v3", baseUrl: upstream.url, channel, body: all, ...more };
}

const said = (content: string) => ({ messages: [{ role: "user", content }] });
const last = () => requestOf(upstream);

test("an agent answers, whole and streamed, with thoughts and usage and without its small talk", async () => {
  for (const answer of [await whole(coze()), await streamed(coze())]) {
    expect([text(answer), text(answer, "thinking"), answer.reason]).toEqual(["Hello world", "Hm.", "stop"]);
    expect([answer.usage.input.fresh, answer.usage.output.text]).toEqual([11, 7]);
  }
  expect([last().path, last().json()]).toEqual([
    "/v3/chat",
    {
      bot_id: BOT,
      user_id: "u-1",
      additional_messages: [{ role: "user", content: "hi", content_type: "text" }],
      stream: true,
    },
  ]);
});

test("a chat under way is asked after until it is complete", async () => {
  fake.busyFor = 3;
  const pauses: number[] = [];
  const adapter = createCoze((ms) => {
    pauses.push(ms);
    return Promise.resolve();
  });
  const response = await adapter(adapterCall(coze()));
  expect(response.status).toBe(200);
  expect(pauses).toEqual([250, 1000, 1000]);
  expect(last().path).toBe("/v3/chat/message/list?conversation_id=conv-1&chat_id=chat-1");
});

test("a call that is given up stops asking", async () => {
  fake.busyFor = Infinity;
  const controller = new AbortController();
  const adapter = createCoze((_ms, signal) => {
    controller.abort();
    return Promise.reject(signal.reason as Error);
  });
  const before = upstream.requests.length;
  const gone = await adapter(adapterCall(coze({}, { signal: controller.signal }))).catch(
    (error: unknown) => error,
  );
  expect((gone as Error).name).toBe("AbortError");
  expect(upstream.requests.length).toBe(before + 1);
});

test("a chat that fails, or wants a tool's answer, is an error", async () => {
  fake.ending = "failed";
  expect((await failureOf(await perform(coze()))).kind).toBe("upstream-limit");
  fake.ending = "requires_action";
  expect((await failureOf(await perform(coze()))).kind).toBe("upstream-down");
});

test("history and system text reach the agent", async () => {
  await whole(
    coze({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "one" },
        { role: "assistant", content: "two" },
        { role: "user", content: "three" },
      ],
    }),
  );
  expect(requestOf(upstream, 1).json()["additional_messages"]).toEqual([
    { role: "user", content: "Be brief.\none", content_type: "text" },
    { role: "assistant", type: "answer", content: "two", content_type: "text" },
    { role: "user", content: "three", content_type: "text" },
  ]);
});

test("pictures travel as objects, uploaded where they are inline", async () => {
  const content = [
    { type: "text", text: "Look" },
    { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
    { type: "image_url", image_url: { url: "https://x.example/a.png" } },
  ];
  await streamed(coze({ messages: [{ role: "user", content }] }));
  const [message] = last().json()["additional_messages"] as { content: string; content_type: string }[];
  expect(message?.content_type).toBe("object_string");
  expect(JSON.parse(message?.content ?? "")).toEqual([
    { type: "text", text: "Look" },
    { type: "image", file_id: `file-${Buffer.from(PNG, "base64").length}` },
    { type: "image", file_url: "https://x.example/a.png" },
  ]);
});

test("errors under status 200 keep their kind", async () => {
  const refused = await failureOf(await perform(coze(said("refuse"))));
  expect([refused.kind, refused.text]).toEqual(["upstream-request", "The field is not a valid json"]);
  expect((await failureOf(await perform({ ...coze(said("throttle")), isStream: true }))).kind).toBe(
    "upstream-limit",
  );
  expect((await failureOf(await perform(coze({}, { key: "wrong" })))).kind).toBe("upstream-auth");
  expect((await perform(coze({}, { channel: { other: "1" } }))).status).toBe(404);
  const inside = (await streamed(coze(said("exception"))).catch((error: unknown) => error)) as Failure;
  expect(inside.kind).toBe("upstream-limit");
  const cut = await perform({ ...coze(said("cut")), isStream: true });
  expect(await codeOf(() => cut.text())).toBe("broken_stream");
});

test("an agent is needed; tools and formats are refused by name", async () => {
  const before = upstream.requests.length;
  expect(await codeOf(() => perform(coze({}, { channel: {} })))).toBe("channel_other_missing");
  for (const body of [{ tools: [WEATHER_TOOL] }, { response_format: { type: "json_object" } }])
    expect(await codeOf(() => perform(coze(body)))).toBe("unsupported_field");
  expect(upstream.requests.length).toBe(before);
});
