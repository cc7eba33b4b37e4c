// A drawing that fails while the gateway is dead: after the restart its charge is given back, to the unit.
// Uses the product as a process of its own; the test waits for the poller's question, not for a time.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

let server: ServerProcess;
const polled = Promise.withResolvers<void>();
let state: Record<string, unknown> = { progress: "10%", status: "IN_PROGRESS" };
const proxy = createServer((request, response) => {
  request.resume().on("end", () => {
    if (state["status"] === "FAILURE") polled.resolve();
    const isList = (request.url ?? "").endsWith("list-by-condition");
    response.writeHead(200, { "content-type": "application/json" });
    response.end(
      JSON.stringify(
        isList ? [{ id: "drawing-1", ...state }] : { code: 1, description: "ok", result: "drawing-1" },
      ),
    );
  });
});

beforeAll(async () => {
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  server = await startServerProcess();
});
afterAll(async () => {
  await server.remove();
  proxy.closeAllConnections();
  proxy.close();
});

const ROOT = { username: "root", password: "password-1" };

async function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(server.url + path, {
    method,
    headers: { "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return {
    response,
    body: (await response.json()) as { success?: boolean; data?: never; [field: string]: unknown },
  };
}

test("a drawing that fails over a kill -9 is paid back after the restart", async () => {
  await send("POST", "/api/setup", {
    ...ROOT,
    confirmPassword: ROOT.password,
    SelfUseModeEnabled: false,
    DemoSiteEnabled: false,
  });
  const login = await send("POST", "/api/user/login", ROOT);
  const cookie = login.response.headers
    .getSetCookie()
    .map((each) => each.split(";")[0] ?? "")
    .join("; ");
  const headers = { cookie, "new-api-user": "1" };
  const { port } = proxy.address() as AddressInfo;
  const channel = {
    type: 2,
    name: "mj",
    key: "k",
    base_url: `http://127.0.0.1:${port}`,
    models: "mj_imagine",
    group: "default",
  };
  await send("POST", "/api/channel/", channel, headers);
  const made = await send(
    "POST",
    "/api/token/",
    { name: "t", unlimited_quota: true, expired_time: -1, remain_quota: 0 },
    headers,
  );
  const { key } = made.body["data"] as unknown as { key: string };
  const quota = async () =>
    ((await send("GET", "/api/user/self", undefined, headers)).body["data"] as unknown as { quota: number })
      .quota;
  const before = await quota();

  const submitted = await send(
    "POST",
    "/mj/submit/imagine",
    { prompt: "x" },
    { authorization: `Bearer sk-${key}` },
  );
  expect(submitted.body).toMatchObject({ code: 1, result: "drawing-1" });
  await server.kill();
  expect(server.audit()).toMatchObject({ code: 0 });
  state = { progress: "40%", status: "FAILURE", failReason: "lost" };
  await server.restart();
  expect(await quota()).toBe(before - 50_000);

  const fetched = async () =>
    (await send("GET", "/mj/task/drawing-1/fetch", undefined, { authorization: `Bearer sk-${key}` })).body;
  await polled.promise;
  let task = await fetched();
  // Its answer is in the books a moment later.
  while (task["progress"] !== "100%") task = await fetched();
  expect(task).toMatchObject({ status: "FAILURE", failReason: "lost" });
  expect(await quota()).toBe(before);
  await server.stop();
  expect(server.audit()).toMatchObject({ code: 0 });
  // Most of it is waiting: the job looks every 15 s and asks for a task that is old enough.
}, 120_000);
