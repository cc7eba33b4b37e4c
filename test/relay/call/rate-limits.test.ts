// A user's request limit as programs meet it: simultaneous calls cannot slip through it, answers tell where the caller stands in
// the words of its dialect, and nothing of the upstream's own limits gets out.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { answer, gate } from "../../support/fake-upstream.ts";
import { MODEL, HI, startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";

let g: Gateway;
/** Of the steady clock; every test has a window of its own. */
let nowMs = 5_000_000;
const WALL_MS = Date.UTC(2026, 10, 23, 12, 0, 0);

beforeAll(async () => {
  g = await startGateway({
    clock: { nowMs: () => WALL_MS, monotonicMs: () => nowMs },
  });
  await g.setOption("ModelRequestRateLimitDurationMinutes", "6");
  await g.setOption("ModelRequestRateLimitEnabled", "true");
});
afterAll(() => g.close());
beforeEach(() => {
  nowMs += 3_600_000;
});

async function limit(total: number, success: number): Promise<void> {
  await g.setOption("ModelRequestRateLimitCount", String(total));
  await g.setOption("ModelRequestRateLimitSuccessCount", String(success));
}

const messages = (fields = {}): Promise<Response> =>
  g.post("/v1/messages", { model: MODEL, max_tokens: 20, messages: HI, ...fields });

function limitHeaders(response: Response): Record<string, string> {
  const all = Object.fromEntries(response.headers);
  return Object.fromEntries(Object.entries(all).filter(([name]) => name.includes("ratelimit")));
}

test("of twelve simultaneous calls three pass where three may succeed, streamed or not", async () => {
  await limit(0, 3);
  for (const stream of [false, true]) {
    nowMs += 3_600_000;
    const door = gate();
    g.upstream.always({ ...answer("hello"), before: door });
    const before = g.upstream.requests.length;
    let answered = 0;
    const calls = Array.from({ length: 12 }, async () => {
      const { status } = await g.chat({ stream });
      answered++;
      return status;
    });
    // Every one has either been refused or stands before the upstream's door.
    await until(() => Promise.resolve(g.upstream.requests.length - before + answered === 12 || undefined));
    door.open();
    const statuses = (await Promise.all(calls)).sort();
    expect(statuses).toEqual([200, 200, 200, ...Array.from({ length: 9 }, () => 429)]);
    g.upstream.always(undefined);
  }
});

test("a call that fails gives its place back", async () => {
  await limit(0, 1);
  for (let i = 0; i < 3; i++) expect((await g.chat({ model: "nobody" })).ok).toBe(false);
  expect((await g.chat()).status).toBe(200);
  expect((await g.chat()).status).toBe(429);
});

test("OpenAI's clients read their narrowest limit, and its refusal when to come back", async () => {
  await limit(5, 2);
  const first = await g.chat();
  expect(limitHeaders(first)).toEqual({
    "x-ratelimit-limit-requests": "2",
    "x-ratelimit-remaining-requests": "1",
    "x-ratelimit-reset-requests": "6m0s",
  });
  nowMs += 348_000;
  for (let i = 0; i < 3; i++) await g.chat({ model: "nobody" });
  const stream = await g.chat({ stream: true });
  expect(limitHeaders(stream)).toMatchObject({
    "x-ratelimit-limit-requests": "5",
    "x-ratelimit-remaining-requests": "0",
  });
  await stream.text();
  const refused = await g.chat();
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get("retry-after"))).toBe(12);
  expect(limitHeaders(refused)).toEqual({
    "x-ratelimit-limit-requests": "5",
    "x-ratelimit-remaining-requests": "0",
    "x-ratelimit-reset-requests": "6m0s",
  });
});

test("Responses' too; Anthropic's clients read theirs as a moment, Google's none", async () => {
  await limit(0, 10);
  const item = { type: "message", id: "msg_1", role: "assistant", status: "completed" };
  const output = [{ ...item, content: [{ type: "output_text", text: "hello", annotations: [] }] }];
  const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };
  const body = { id: "resp_1", object: "response", status: "completed", model: MODEL, output, usage };
  g.upstream.script({ headers: { "content-type": "application/json" }, steps: [JSON.stringify(body)] });
  const responses = await g.post("/v1/responses", { model: MODEL, input: "hi" });
  expect(responses.headers.get("x-ratelimit-remaining-requests")).toBe("9");
  expect(limitHeaders(await messages())).toEqual({
    "anthropic-ratelimit-requests-limit": "10",
    "anthropic-ratelimit-requests-remaining": "8",
    "anthropic-ratelimit-requests-reset": "2026-11-23T12:06:00Z",
  });
  const contents = [{ parts: [{ text: "hi" }] }];
  const google = await g.post(`/v1beta/models/${MODEL}:generateContent`, { contents });
  expect([google.status, limitHeaders(google)]).toEqual([200, {}]);
});

test("without a limit there are no such headers, and the upstream's never pass", async () => {
  const theirs = {
    "x-ratelimit-limit-requests": "500",
    "x-ratelimit-remaining-tokens": "149984",
    "anthropic-ratelimit-requests-limit": "50",
  };
  const plain = answer("hello");
  g.upstream.always({ ...plain, headers: { ...plain.headers, ...theirs } });
  try {
    await limit(0, 10);
    expect(limitHeaders(await g.chat())).toMatchObject({ "x-ratelimit-limit-requests": "10" });
    await g.setOption("ModelRequestRateLimitEnabled", "false");
    expect(limitHeaders(await g.chat())).toEqual({});
    expect(limitHeaders(await messages())).toEqual({});
  } finally {
    g.upstream.always(undefined);
    await g.setOption("ModelRequestRateLimitEnabled", "true");
  }
});

test("every 429 says how long to wait, also an upstream's that says nothing", async () => {
  await limit(0, 100);
  g.upstream.always({ status: 429, headers: {}, steps: ["{}"] });
  const [openai, anthropic] = [await g.chat(), await messages()];
  g.upstream.always(undefined);
  for (const response of [openai, anthropic]) {
    expect(response.status).toBe(429);
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
  }
});
