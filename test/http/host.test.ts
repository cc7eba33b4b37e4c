// The Host header: routing reads paths behind it, so that a mutilated one must not lead anywhere.
// Refuses the fetch client for this: it would repair the header; the lines go over a bare socket.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { refuseShortHost } from "../../src/http/host.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** What a bare socket gets back for these lines, until the server closes it. */
function send(lines: string[]): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let text = "";
  void Bun.connect({
    hostname: "127.0.0.1",
    port: Number(new URL(app.url).port),
    socket: {
      open: (socket) => void socket.write(`${lines.join("\r\n")}\r\n\r\n`),
      data: (_, data) => void (text += data.toString()),
      close: () => resolve(text),
      error: () => resolve(text),
    },
  });
  return promise;
}

test.each(["", "a", "ab", "abc", "a/b/c", "x y"])(
  "the host %j is refused with 400 on console, relay and pages",
  async (host) => {
    for (const line of [
      "GET /api/status",
      "POST /v1/chat/completions",
      "GET /login",
      "DELETE /api/token/5",
    ]) {
      const answer = await send([`${line} HTTP/1.1`, `Host: ${host}`, "Connection: close"]);
      expect(answer).toStartWith("HTTP/1.1 400");
      expect(answer).toContain("host_invalid");
      expect(answer).toContain("no-store");
    }
  },
);

test("a request without a host is refused with 400", async () => {
  for (const version of ["1.0", "1.1"]) {
    expect(await send([`GET /api/status HTTP/${version}`, "Connection: close"])).toStartWith("HTTP/1.1 400");
  }
});

test.each(["abcd", "localhost", "[::1]:3000", "a.io"])("the host %j is served", async (host) => {
  const answer = await send(["GET /api/status HTTP/1.1", `Host: ${host}`, "Connection: close"]);
  expect(answer).toStartWith("HTTP/1.1 200");
});

test("the check lets addresses with TLS pass", () => {
  expect(refuseShortHost({ request: new Request("https://weir/x") })).toBeUndefined();
});
