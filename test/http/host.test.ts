// The Host header: routing reads paths behind it, so that a mutilated one must not lead anywhere.
// Refuses the fetch client for this: it would repair the header; the lines go over a bare socket.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { refuseBadHost } from "../../src/http/host.ts";
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

test.each(["", "a/b/c", "x y", "abcd/b/c", "a?b", "a#b", "a@b"])(
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

test.each(["a:b", "a:99999", "[::1", "[zz]", "a%zz", "xn--", "999.1.1.1", "::1", "a%00b"])(
  "the host %j, which is none, is refused with 400 by whoever reads the address, never with 500",
  async (host) => {
    for (const line of ["GET /api/status", "GET /api/user/self?x=1", "GET /login", "PUT /api/option/"]) {
      const answer = await send([`${line} HTTP/1.1`, `Host: ${host}`, "Connection: close"]);
      expect([line, answer.slice(0, 12)]).not.toEqual([line, "HTTP/1.1 500"]);
    }
    expect(await send(["GET /login HTTP/1.1", `Host: ${host}`, "Connection: close"])).toContain(
      "host_invalid",
    );
  },
);

test("a path that looks like an address stands in for no host", async () => {
  for (const path of ["/abc://weir.example/api/status", "/http://weir.example/", "/ab://x/y"])
    expect(await send([`GET ${path} HTTP/1.1`, "Host: ", "Connection: close"])).toStartWith("HTTP/1.1 400");
});

test.each(["a", "gw", "abc", "a:80", "gw:3000", "abcd", "localhost", "[::1]:3000", "a.io"])(
  "the host %j is served on console, relay and pages: path, rest of a path and query arrive whole",
  async (host) => {
    const ask = (line: string, headers: string[] = [], body = "") =>
      send([
        `${line} HTTP/1.1`,
        `Host: ${host}`,
        "Connection: close",
        ...headers,
        ...(body === "" ? [] : ["", body]),
      ]);
    const status = await ask("GET /api/status");
    expect(status).toStartWith("HTTP/1.1 200");
    expect(status).toContain('"success":true');
    // A query that decides, and a rest of a path that names.
    const admin = await app.createUser({ role: 10 });
    const signed = [`Cookie: ${admin.headers["cookie"]}`, `New-Api-User: ${admin.id}`];
    const users = await ask(`GET /api/user/search?keyword=${admin.username}&page_size=7`, signed);
    expect(users).toContain('"total":1,"page":1,"page_size":7');
    expect(await ask(`GET /api/user/${admin.id}`, signed)).toContain(`"username":"${admin.username}"`);
    const token = await app.createToken(admin.id);
    await app.createChannel({ models: "org/model-x" });
    const key = [`Authorization: Bearer ${token.key}`];
    expect(await ask("GET /v1/models/org/model-x", key)).toContain('"id":"org/model-x"');
    expect(await ask("GET /v1beta/models/nothing?key=x", key)).not.toContain("Invalid URL");
    const chat = await ask(
      "POST /v1/chat/completions",
      [...key, "Content-Type: application/json", "Content-Length: 2"],
      "{}",
    );
    expect(chat).toStartWith("HTTP/1.1 400");
    expect(chat).not.toContain("host_invalid");
    // What there is not is told by its whole path.
    expect(await ask("GET /api/none/of/it?x=1")).toContain("Invalid URL (GET /api/none/of/it)");
    const page = await ask("GET /login?next=%2Ftoken");
    expect(page).toMatch(/^HTTP\/1\.1 (200|302)/);
    expect(page).not.toContain("host_invalid");
  },
);

test("the check lets addresses with TLS pass", () => {
  expect(refuseBadHost({ request: new Request("https://weir/x") })).toBeUndefined();
});
