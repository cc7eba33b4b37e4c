// A request's Host is anybody's word: no answer that others read or that is kept names the site by it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** The whole answer to a request under another name. */
function ask(path: string, headers: Record<string, string> = {}): Promise<string> {
  const { port } = new URL(app.url);
  const lines = Object.entries({ host: "evil.example", connection: "close", ...headers }).map((pair) =>
    pair.join(": "),
  );
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), "127.0.0.1");
    let text = "";
    socket.on("data", (part) => (text += part.toString()));
    socket.on("end", () => resolve(text));
    socket.on("error", reject);
    socket.write(`GET ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
  });
}

const forwarded = { "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" };

test("the status says the operator's address, or nothing", async () => {
  const address = (text: string) => /"server_address":"([^"]*)"/.exec(text)?.[1];
  expect(address(await ask("/api/status"))).toBe("");
  expect(address(await ask("/api/status", forwarded))).toBe("");
  await app.deps.options.set("ServerAddress", "https://gate.example");
  expect(address(await ask("/api/status"))).toBe("https://gate.example");
  await app.deps.options.set("ServerAddress", "");
});

test("pages that people sign in on carry none in their data; what is shown is never kept", async () => {
  for (const path of ["/login", "/"]) {
    const text = await ask(path, forwarded);
    expect([path, text.includes('"server_address":"http')]).toEqual([path, false]);
    expect(text.toLowerCase()).toContain("cache-control: no-store");
  }
});
