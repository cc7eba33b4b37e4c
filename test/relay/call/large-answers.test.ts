// Upstreams' whole answers: how large one may be, however it says its length, in every dialect; and what large ones cost.
// Refuses sleeps and guesses at memory; the process under attack is measured in test/attack/memory.test.ts.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { gzipSync } from "node:zlib";
import { cappedAnswer, fullBody } from "../../../src/relay/wire/full-body.ts";
import { Failure } from "../../../src/shared/failures.ts";
import type { Script } from "../../support/fake-upstream.ts";
import { HI, MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const MIB = 1024 * 1024;
const JSON_TYPE = { "content-type": "application/json" };

const ANSWER = JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
});
const RESPONSE = JSON.stringify({
  id: "resp_1",
  object: "response",
  status: "completed",
  model: MODEL,
  output: [
    {
      type: "message",
      id: "msg_1",
      role: "assistant",
      content: [{ type: "output_text", text: "hello", annotations: [] }],
    },
  ],
  usage: { input_tokens: 3, output_tokens: 1, total_tokens: 4 },
});
const large = (bytes: number): string => ANSWER.replace("hello", "x".repeat(bytes));

let g: Gateway;
beforeAll(async () => {
  g = await startGateway();
  await g.setOption("relay.max_answer_mb", "1");
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

const DIALECTS: [string, string, Record<string, unknown>, string[]][] = [
  ["chat", "/v1/chat/completions", { model: MODEL, messages: HI }, ["message", "type", "param", "code"]],
  ["responses", "/v1/responses", { model: MODEL, input: "hi" }, ["message", "type", "param", "code"]],
  ["messages", "/v1/messages", { model: MODEL, max_tokens: 9, messages: HI }, ["type", "message"]],
  [
    "gemini",
    `/v1beta/models/${MODEL}:generateContent`,
    { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
    ["code", "message", "status"],
  ],
];

const TOO_LARGE: [string, () => Script][] = [
  [
    "announced",
    () => ({ headers: { ...JSON_TYPE, "content-length": String(64 * MIB) }, steps: [large(1000)] }),
  ],
  ["in chunks", () => ({ headers: JSON_TYPE, steps: [ANSWER.slice(0, 20), " ".repeat(2 * MIB), "}"] })],
  [
    "packed",
    () => ({
      headers: { ...JSON_TYPE, "content-encoding": "gzip" },
      steps: [new Uint8Array(gzipSync(large(8 * MIB)))],
    }),
  ],
  [
    "as a stream nobody asked for",
    () => ({
      headers: { "content-type": "text/event-stream" },
      steps: [
        {
          bulkBytes: 2 * MIB,
          unit: `data: {"choices":[{"index":0,"delta":{"content":"${"x".repeat(1000)}"}}]}\n\n`,
        },
      ],
    }),
  ],
];

describe.each(DIALECTS)("%s", (_, path, body, members) => {
  test.each(TOO_LARGE)(
    "an answer above the cap, %s, is no answer, and costs nothing",
    async (_way, script) => {
      const before = await g.balance();
      g.upstream.always(script());
      const response = await g.post(path, body);
      const { error } = (await response.json()) as { error: Record<string, unknown> };
      expect([response.status, Object.keys(error)]).toEqual([502, expect.arrayContaining(members)]);
      expect(JSON.stringify(error)).toContain("上游的回答超过本网关可转发的大小");
      const after = await g.balance();
      expect([after.quota, after.used]).toEqual([before.quota, before.used]);
      g.upstream.always(undefined);
    },
  );

  test("a packed answer below the cap is read", async () => {
    const text = "x".repeat(200_000);
    g.upstream.always(({ url }) => ({
      headers: { ...JSON_TYPE, "content-encoding": "gzip" },
      steps: [
        new Uint8Array(gzipSync((url.endsWith("/responses") ? RESPONSE : ANSWER).replace("hello", text))),
      ],
    }));
    const response = await g.post(path, body);
    expect([response.status, (await response.text()).includes(text)]).toEqual([200, true]);
    g.upstream.always(undefined);
  });
});

test("another channel is asked", async () => {
  await g.app.createChannel({ baseUrl: g.upstream.url, models: MODEL });
  await g.setOption("RetryTimes", "1");
  try {
    g.upstream.script({ headers: JSON_TYPE, steps: [large(2 * MIB)] });
    const response = await g.chat();
    expect([response.status, g.upstream.requests.length]).toEqual([200, 2]);
  } finally {
    await g.setOption("RetryTimes", "0");
  }
});

describe("providers with a protocol of their own", () => {
  const ADAPTED = "command-r";
  beforeAll(() => g.app.createChannel({ type: 34, baseUrl: g.upstream.url, models: ADAPTED }));

  test.each<[string, number, number]>([
    ["an answer", 200, 502],
    ["a refusal", 400, 400],
  ])("%s above the cap does not fill the memory", async (_, status, told) => {
    const before = await g.balance();
    g.upstream.script({
      status,
      headers: JSON_TYPE,
      steps: [{ bulkBytes: 64 * MIB, unit: "x".repeat(64 * 1024) }],
    });
    const response = await g.post("/v1/chat/completions", { model: ADAPTED, messages: HI });
    expect(response.status).toBe(told);
    const [asked] = g.upstream.requests;
    await asked?.closed;
    expect(asked?.aborted).toBe(true);
    expect((await g.balance()).quota).toBe(before.quota);
  });
});

describe("lengths that lie", () => {
  let server: Server;
  let url = "";
  beforeAll(async () => {
    server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\ntransfer-encoding: chunked\r\n\r\n");
        const part = `10000\r\n${"x".repeat(0x10000)}\r\n`;
        for (let sent = 0; sent < 32; sent++) socket.write(part);
        socket.end("0\r\n\r\n");
      });
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  afterAll(() => void server.close());

  async function codeOf(work: Promise<unknown>): Promise<string> {
    try {
      await work;
    } catch (error) {
      return error instanceof Failure ? error.code : String(error);
    }
    return "none";
  }

  test("a short length beside chunks is not believed", async () => {
    expect(await codeOf(fullBody(await fetch(url), MIB))).toBe("upstream_answer_too_large");
    expect((await fullBody(await fetch(url), 4 * MIB)).length).toBe(2 * MIB);
  });
  test("an adapter's reader is stopped at the cap, whichever way it reads", async () => {
    for (const read of ["text", "bytes", "json", "arrayBuffer"] as const)
      expect(await codeOf(cappedAnswer(await fetch(url), MIB)[read]())).toBe("upstream_answer_too_large");
    expect((await cappedAnswer(await fetch(url), 4 * MIB).text()).length).toBe(2 * MIB);
  });
});

describe("what a large answer may hold", () => {
  beforeAll(() => g.setOption("relay.max_answer_mb", "32"));
  afterAll(() => g.setOption("relay.max_answer_mb", "1"));

  test("millions of empty lists are no answer: parsing them would hold everybody up", async () => {
    g.upstream.script({
      headers: JSON_TYPE,
      steps: [ANSWER.slice(0, -1), ',"more":[', { bulkBytes: 6 * MIB, unit: "[]," }, "1]}"],
    });
    const response = await g.chat();
    expect(response.status).toBe(502);
    expect(await response.text()).toContain("bad_answer");
  });

  test("pictures of many megabytes go through byte by byte, with the usage that stands behind them", async () => {
    const picture = Buffer.alloc(12 * MIB, "iVBORw0KGgo").toString("base64");
    const told = `{"created":1, "data":[{"b64_json":"${picture}","revised_prompt":"a \\"cat\\""}],
      "usage":{"input_tokens":7,"output_tokens":4160,"total_tokens":4167}}`;
    g.upstream.script({ headers: JSON_TYPE, steps: [told] });
    const charge = await g.charged(async () => {
      const response = await g.post("/v1/images/generations", { model: MODEL, prompt: "a cat" });
      expect([response.status, (await response.text()) === told]).toEqual([200, true]);
    });
    expect([charge.promptTokens, charge.completionTokens]).toEqual([7, 4160]);
  });
});
