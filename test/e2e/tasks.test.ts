// A drawing that fails while the gateway is dead: after the restart its charge is given back, to the unit.
// Uses the product as a process of its own; the test waits for the poller's question, not for a time.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { startOperator } from "../support/operator.ts";
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

test("a drawing that fails over a kill -9 is paid back after the restart", async () => {
  const { port } = proxy.address() as AddressInfo;
  const { send, key } = await startOperator(server, {
    type: 2,
    base_url: `http://127.0.0.1:${port}`,
    models: "mj_imagine",
  });
  const quota = async () => ((await send("GET", "/api/user/self")) as { quota: number }).quota;
  const draw = async (path: string, body?: unknown) => {
    const answer = await fetch(server.url + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return (await answer.json()) as Record<string, unknown>;
  };
  const before = await quota();

  const submitted = await draw("/mj/submit/imagine", { prompt: "x" });
  expect(submitted).toMatchObject({ code: 1, result: "drawing-1" });
  await server.kill();
  expect(server.audit()).toMatchObject({ code: 0 });
  state = { progress: "40%", status: "FAILURE", failReason: "lost" };
  await server.restart();
  expect(await quota()).toBe(before - 50_000);

  const fetched = () => draw("/mj/task/drawing-1/fetch");
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
