// The relay's wire under hostile clients: huge bodies, bombs, half bodies, heaps of headers; and what polite ones send.
// Refuses to slow anybody else down: after each case an ordinary call is answered.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { audit } from "../../src/core/ledger/audit.ts";
import { MODEL, startGateway } from "../relay/support.ts";
import type { Gateway } from "../relay/support.ts";

const MIB = 1024 * 1024;

describe("the relay's wire", () => {
  let g: Gateway;
  beforeAll(async () => {
    g = await startGateway();
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  const chatBody = (content: string) =>
    JSON.stringify({ model: MODEL, messages: [{ role: "user", content }] });

  test("a prompt of 10 MB passes unchanged", async () => {
    const content = "汉字 and words. ".repeat((10 * MIB) / 15);
    expect(Buffer.byteLength(content)).toBeGreaterThan(10 * MIB);
    const response = await g.post("/v1/chat/completions", chatBody(content), {});
    expect(response.status).toBe(200);
    expect(g.upstream.requests[0]?.json()["messages"]).toEqual([{ role: "user", content }]);
    await g.app.deps.ledger.flush();
  }, 60_000);

  test("bodies beyond the limit, and small ones that unpack beyond it, are refused with 413 in the caller's dialect", async () => {
    await g.setOption("relay.max_body_mb", "1");
    const before = await g.balance();
    const bomb = gzipSync(Buffer.alloc(100 * MIB, 0x20));
    const nested = gzipSync(bomb);
    expect(bomb.length).toBeLessThan(MIB);
    const cases: [BodyInit, Record<string, string>][] = [
      [chatBody("x".repeat(MIB)), {}],
      [new Blob([chatBody("x".repeat(MIB))]).stream(), {}],
      [new Uint8Array(bomb), { "content-encoding": "gzip" }],
      [new Uint8Array(nested), { "content-encoding": "gzip, gzip" }],
    ];
    for (const [body, headers] of cases) {
      const response = await fetch(`${g.app.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${g.key}`, "content-type": "application/json", ...headers },
        body,
      });
      expect(response.status).toBe(413);
      expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error" } });
    }
    expect(g.upstream.requests).toEqual([]);
    expect(await g.balance()).toEqual(before);
    await g.setOption("relay.max_body_mb", "100");
  });

  test("two hundred clients that stop in the middle of their bodies do not hold up others", async () => {
    const { port, host } = new URL(g.app.url);
    const lines = [
      "POST /v1/chat/completions HTTP/1.1",
      `Host: ${host}`,
      `Authorization: Bearer ${g.key}`,
      "Content-Type: application/json",
      "Content-Length: 5000",
    ];
    const sockets = await Promise.all(
      Array.from({ length: 200 }, () =>
        Bun.connect({
          hostname: "127.0.0.1",
          port: Number(port),
          socket: {
            data() {},
            open: (socket) => void socket.write(`${lines.join("\r\n")}\r\n\r\n{"model":`),
          },
        }),
      ),
    );
    const answers = await Promise.all(Array.from({ length: 20 }, () => g.chat()));
    expect(answers.map((answer) => answer.status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(g.upstream.requests).toHaveLength(20);
    for (const socket of sockets) socket.terminate();
    expect((await g.chat()).status).toBe(200);
  });

  test("thousands of headers end with a refusal of that connection only", async () => {
    const { port, host } = new URL(g.app.url);
    const many = Array.from({ length: 5000 }, (_, number) => `X-Header-${number}: ${number}`);
    const { promise, resolve } = Promise.withResolvers<string>();
    let text = "";
    await Bun.connect({
      hostname: "127.0.0.1",
      port: Number(port),
      socket: {
        open: (socket) =>
          void socket.write(["GET /v1/models HTTP/1.1", `Host: ${host}`, ...many].join("\r\n") + "\r\n\r\n"),
        data: (_, data) => void (text += data.toString()),
        close: () => resolve(text),
        error: () => resolve(text),
      },
    });
    expect(await promise).toMatch(/^HTTP\/1\.1 4\d\d|^$/);
    expect((await g.chat()).status).toBe(200);
  });

  test("what official clients and proxies send along is tolerated, and none of it reaches the upstream", async () => {
    const headers = {
      "user-agent": "OpenAI/Python 1.99.0",
      "x-stainless-lang": "python",
      "x-stainless-package-version": "1.99.0",
      "x-stainless-os": "Linux",
      "x-stainless-arch": "x64",
      "x-stainless-runtime": "CPython",
      "x-stainless-runtime-version": "3.13.1",
      "x-stainless-async": "false",
      "x-stainless-retry-count": "0",
      "x-stainless-read-timeout": "600",
      "openai-beta": "assistants=v2",
      "openai-organization": "org-client",
      "openai-project": "proj-client",
      "anthropic-version": "2023-06-01",
      "anthropic-beta": "prompt-caching-2024-07-31",
      "anthropic-dangerous-direct-browser-access": "true",
      "x-goog-api-client": "genai-js/1.0",
      "http-referer": "https://example.com",
      "x-title": "A client",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      tracestate: "a=b",
      baggage: "k=v",
      cookie: "session=garbage; other=1",
      "idempotency-key": "stainless-node-retry-1",
      "accept-encoding": "gzip, br, zstd",
      "accept-language": "xx;q=9, *",
      "x-forwarded-for": "1.2.3.4",
      "x-real-ip": "1.2.3.4",
      "cf-connecting-ip": "1.2.3.4",
      "sec-fetch-mode": "cors",
      priority: "u=1, i",
    };
    for (const stream of [false, true]) {
      const response = await g.chat({ stream }, headers);
      expect(response.status).toBe(200);
      expect(await response.text()).toContain("Hello");
    }
    for (const request of g.upstream.requests) {
      for (const name of [
        "cookie",
        "x-forwarded-for",
        "x-real-ip",
        "cf-connecting-ip",
        "openai-organization",
      ]) {
        expect(request.headers).not.toHaveProperty(name);
      }
      expect(request.headers.authorization).toBe("Bearer upstream-key");
    }
  });

  test("the books agree after all of it", async () => {
    await g.app.deps.ledger.flush();
    expect((await audit(g.app.deps.db)).differences).toEqual([]);
  });
});
