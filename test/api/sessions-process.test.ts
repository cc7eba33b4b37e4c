// Sessions and sign-in limits of the product as people start it: over restarts and kills.
// Refuses anything but the wire; the program is the binary wherever the test command built one.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

const PASSWORD = "correct horse";
let server: ServerProcess;

beforeAll(async () => {
  server = await startServerProcess();
  const body = { username: "admin", password: PASSWORD, confirmPassword: PASSWORD };
  expect((await post("/api/setup", body)).status).toBe(200);
});
afterAll(() => server.remove());

function post(path: string, body: object, cookie = ""): Promise<Response> {
  return fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", cookie },
    body: JSON.stringify(body),
  });
}

async function signIn(password: string, cookie = ""): Promise<{ status: number; cookies: string[] }> {
  const answer = await post("/api/user/login", { username: "admin", password }, cookie);
  await answer.text();
  return {
    status: answer.status,
    cookies: answer.headers.getSetCookie().map((line) => line.split(";")[0] ?? ""),
  };
}

async function selfOf(cookie: string): Promise<number> {
  const answer = await fetch(`${server.url}/api/user/self`, { headers: { cookie, "new-api-user": "1" } });
  await answer.text();
  return answer.status;
}

test("a session outlives a kill, a signed-out one stays ended after it", async () => {
  const [ended = ""] = (await signIn(PASSWORD)).cookies;
  const [stays = ""] = (await signIn(PASSWORD)).cookies;
  await (await fetch(`${server.url}/api/user/logout`, { headers: { cookie: ended } })).text();
  expect([await selfOf(ended), await selfOf(stays)]).toEqual([401, 200]);
  await server.kill();
  await server.restart();
  expect([await selfOf(ended), await selfOf(stays)]).toEqual([401, 200]);
}, 30_000);

test("a browser that signed in before gets in beside a guesser at the same address, also after a restart", async () => {
  const [, device = ""] = (await signIn(PASSWORD)).cookies;
  expect(device).toStartWith("device=");
  const statuses = [];
  for (let i = 0; i < 11; i++) statuses.push((await signIn(`wrong ${i} pass`)).status);
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
  expect((await signIn(PASSWORD)).status).toBe(429);
  expect((await signIn(PASSWORD, device)).cookies).toHaveLength(2);
  await server.stop();
  await server.restart();
  for (let i = 0; i < 10; i++) await signIn(`wrong ${i} pass`);
  expect((await signIn(PASSWORD, device)).cookies).toHaveLength(2);
}, 30_000);
