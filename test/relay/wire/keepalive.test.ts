// Keep-alive before the upstream has answered: the status line goes first, a late failure becomes an error event.
import { expect, test } from "bun:test";
import { awaitedStream } from "../../../src/relay/wire/early-response.ts";

const wrap = (body: ReadableStream<Uint8Array>) => new Response(body, { headers: { "x-early": "yes" } });
const frame = (error: unknown) => `data: ${String(error)}\n\n`;

test("an answer in time is the answer itself", async () => {
  const answer = new Response("quick");
  expect(await awaitedStream(Promise.resolve(answer), 1000, frame).first(wrap)).toBe(answer);
});

test("a failure in time keeps its status: it is thrown", async () => {
  const failing = awaitedStream(Promise.reject(new Error("no")), 1000, frame).first(wrap);
  expect(await failing.catch((error: unknown) => error)).toEqual(new Error("no"));
});

test("a late answer comes behind comments", async () => {
  const { promise, resolve } = Promise.withResolvers<Response>();
  const response = await awaitedStream(promise, 1, frame).first(wrap);
  expect(response.headers.get("x-early")).toBe("yes");
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const read = async () => new TextDecoder().decode((await reader.read()).value);
  expect(await read()).toBe(": PING\n\n");
  expect(await read()).toBe(": PING\n\n");
  resolve(new Response("data: x\n\n"));
  let text = await read();
  while (text === ": PING\n\n") text = await read();
  expect(text).toBe("data: x\n\n");
});

test("a late failure is an error event", async () => {
  const { promise, reject } = Promise.withResolvers<Response>();
  const response = await awaitedStream(promise, 1, frame).first(wrap);
  reject("too late");
  expect(await response.text()).toMatch(/^(: PING\n\n)+data: too late\n\n$/);
});
