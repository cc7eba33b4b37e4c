// Who the visitors are to the program as it ships: minifying must not make one of all of them, nor believe what they say.
// Refuses the source where the binary is there: what reads handlers' source reads other text in it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createApp } from "../../src/app.ts";
import { accessOf } from "../../src/http/session.ts";
import { startTestApp } from "../support/app.ts";
import { startFakeUpstream } from "../support/fake-upstream.ts";
import { startOperator } from "../support/operator.ts";
import type { Operator } from "../support/operator.ts";
import { callFrom } from "../support/raw-client.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

const MODEL = "gpt-4o-mini";
const PROXY = "127.0.0.9";
/** Wrong sign-ins that one address has. */
const TRIES = 30;

let server: ServerProcess;
let operator: Operator;
const upstream = await startFakeUpstream();

beforeAll(async () => {
  server = await startServerProcess({ TRUSTED_PROXIES: PROXY });
  operator = await startOperator(server, { base_url: upstream.url, models: MODEL });
});
afterAll(async () => {
  await server.remove();
  upstream.stop();
});

let names = 0;
async function wrongSignIn(from: string, headers: Record<string, string> = {}): Promise<number> {
  const body = JSON.stringify({ username: `nobody${names++}`, password: "not the password" });
  const { status } = await callFrom(server.url, from, {
    method: "POST",
    path: "/api/user/login",
    headers,
    body,
  });
  return status;
}

async function exhaust(from: string, headersOf: (i: number) => Record<string, string> = () => ({})) {
  const statuses: number[] = [];
  for (let i = 0; i <= TRIES; i++) statuses.push(await wrongSignIn(from, headersOf(i)));
  return statuses;
}

describe("sign-ins", () => {
  test("that fail at one address lock out that address alone", async () => {
    const statuses = await exhaust("127.0.0.2");
    expect(statuses.slice(0, TRIES)).toEqual(Array(TRIES).fill(200));
    expect(statuses.at(-1)).toBe(429);
    expect(await wrongSignIn("127.0.0.3")).toBe(200);
  });

  test("are counted at the socket's address, whatever a direct caller writes into its headers", async () => {
    const statuses = await exhaust("127.0.0.4", (i) => ({
      "x-forwarded-for": `203.0.113.${i}`,
      "x-real-ip": `203.0.113.${i}`,
    }));
    expect(statuses.at(-1)).toBe(429);
    expect(await wrongSignIn("127.0.0.5", { "x-forwarded-for": "127.0.0.4" })).toBe(200);
  });

  test("behind a trusted proxy are counted at the visitor's address", async () => {
    const visitor = { "x-forwarded-for": "198.51.100.1" };
    const statuses = await exhaust(PROXY, () => visitor);
    expect(statuses.at(-1)).toBe(429);
    expect(await wrongSignIn(PROXY, { "x-forwarded-for": "198.51.100.2" })).toBe(200);
  });
});

test("a key that only one address may use is refused elsewhere, and opened by no header", async () => {
  const made = await operator.send("POST", "/api/token/", {
    name: "bound",
    unlimited_quota: true,
    allow_ips: "127.0.0.6",
  });
  const headers = { authorization: `Bearer sk-${(made as { key: string }).key}` };
  const body = JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "hi" }] });
  const call = { method: "POST", path: "/v1/chat/completions", body };
  const from = async (address: string, more: Record<string, string> = {}) =>
    (await callFrom(server.url, address, { ...call, headers: { ...headers, ...more } })).status;
  expect(await from("127.0.0.6")).toBe(200);
  expect(await from("127.0.0.7")).toBe(403);
  expect(await from("127.0.0.7", { "x-forwarded-for": "127.0.0.6" })).toBe(403);
  expect(await from(PROXY, { "x-forwarded-for": "127.0.0.6" })).toBe(200);
});

/** What the framework reads out of the source of handlers and hooks: `set`, bodies, queries, and what to wait for. */
describe("every route of the binary", () => {
  test("knows its caller, and its refusal carries the headers of every answer", async () => {
    const app = await startTestApp();
    const { routes } = await createApp(app.services);
    await app.close();
    const wrong: unknown[] = [];
    let seen = 0;
    for (const route of routes) {
      const access = accessOf(route);
      const isApi = /^\/(api|v1|v1beta|v2|pg|mj|suno|dashboard)\b/.test(route.path);
      if (!isApi || route.method === "OPTIONS" || access === "public") continue;
      if (access.startsWith("nobody")) continue;
      const path = route.path.replace(/:\w+/g, "1").replace("*", "m:generateContent");
      const { method } = route;
      const answer = await callFrom(server.url, "127.0.0.8", {
        method,
        path,
        ...(method === "GET" || method === "DELETE" ? {} : { body: "{}" }),
      });
      seen += 1;
      const { headers } = answer;
      const isGood =
        answer.status === 401 &&
        headers.get("x-content-type-options") === "nosniff" &&
        headers.has("x-oneapi-request-id");
      if (!isGood) wrong.push([method, path, access, answer.status, answer.text.slice(0, 80)]);
    }
    expect(wrong).toEqual([]);
    expect(seen).toBeGreaterThan(120);
  });

  test.each([
    "/api/status",
    "/api/notice",
    "/api/about",
    "/api/setup",
    "/api/home_page_content",
    "/api/pricing",
    "/api/user/groups",
    "/api/user/logout",
  ])("%s sets what every console answer carries", async (path) => {
    const { status, headers } = await callFrom(server.url, "127.0.0.8", { path });
    expect([status, headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual([
      200,
      "no-store",
      "nosniff",
    ]);
    expect(headers.get("x-oneapi-request-id")).toBeTruthy();
  });

  test("reads queries with and without a schema, bodies, and sets cookies", async () => {
    await operator.send("POST", "/api/token/", { name: "second", unlimited_quota: true });
    expect(await operator.send("GET", "/api/token/?p=0&size=1")).toHaveLength(1);
    expect(await operator.send("GET", "/api/token/search?keyword=second")).toMatchObject([
      { name: "second" },
    ]);
    const out = await callFrom(server.url, "127.0.0.8", { path: "/api/user/logout" });
    expect(out.headers.get("set-cookie")).toContain("Max-Age=0");
  });
});

describe("nosniff", () => {
  const ask = (path: string, body?: unknown, key = operator.key) =>
    callFrom(server.url, "127.0.0.8", {
      method: body === undefined ? "GET" : "POST",
      path,
      headers: { authorization: `Bearer ${key}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const chat = { model: MODEL, messages: [{ role: "user", content: "hi" }] };

  test.each<[string, number, () => ReturnType<typeof ask>]>([
    ["a relayed answer", 200, () => ask("/v1/chat/completions", chat)],
    ["a relayed stream", 200, () => ask("/v1/chat/completions", { ...chat, stream: true })],
    ["a converted answer", 200, () => ask("/v1/messages", { ...chat, max_tokens: 9 })],
    ["a count", 200, () => ask("/v1/messages/count_tokens", chat)],
    ["the model list", 200, () => ask("/v1/models")],
    ["the balance", 200, () => ask("/v1/dashboard/billing/usage")],
    ["a wrong key", 401, () => ask("/v1/chat/completions", chat, "sk-wrong")],
    ["a wrong body", 400, () => ask("/v1/chat/completions", [])],
    ["an unknown path", 404, () => ask("/v1/nothing/here")],
    ["an unknown console path", 404, () => ask("/api/nothing/here")],
    ["the list of all calls", 200, () => ask("/openapi.json")],
  ])("stands on %s", async (_, status, call) => {
    const answer = await call();
    expect([answer.status, answer.headers.get("x-content-type-options")]).toEqual([status, "nosniff"]);
  });
});
