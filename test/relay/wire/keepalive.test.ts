// Keep-alive before the upstream has answered: the status line goes first, a late failure becomes an error event.
import { expect, test } from "bun:test";
import { inTime } from "../../../src/relay/wire/early-response.ts";
import type { EarlyAnswer } from "../../../src/relay/wire/early-response.ts";

const PING = ": sign of life\n\n";
const events = (text: string): Response =>
  new Response(text, { headers: { "content-type": "text/event-stream" } });

function early(answered: Promise<Response>, everyMs: number): EarlyAnswer & { begun: number } {
  const made = {
    answered,
    everyMs,
    begun: 0,
    ping: new TextEncoder().encode(PING),
    begin(body: ReadableStream<Uint8Array>) {
      made.begun++;
      return new Response(body, { headers: { "x-early": "yes" } });
    },
    failureFrame: (error: unknown) => `data: ${String(error)}\n\n`,
  };
  return made;
}

test("an answer in time is the answer itself, and nothing else was begun", async () => {
  const answer = new Response("quick");
  const parts = early(Promise.resolve(answer), 1000);
  expect(await inTime(parts)).toBe(answer);
  expect(parts.begun).toBe(0);
});

test("a failure in time keeps its status: it is thrown", async () => {
  const failing = inTime(early(Promise.reject(new Error("no")), 1000));
  expect(await failing.catch((error: unknown) => error)).toEqual(new Error("no"));
});

test("a late answer comes behind signs of life, and the begin is told once", async () => {
  const { promise, resolve } = Promise.withResolvers<Response>();
  const parts = early(promise, 1);
  const response = await inTime(parts);
  expect([response.headers.get("x-early"), parts.begun]).toEqual(["yes", 1]);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const read = async () => new TextDecoder().decode((await reader.read()).value);
  expect(await read()).toBe(PING);
  expect(await read()).toBe(PING);
  resolve(events("data: late\n\n"));
  let text = await read();
  while (text === PING) text = await read();
  expect(text).toBe("data: late\n\n");
  expect((await reader.read()).done).toBe(true);
});

test("a late failure is an error event", async () => {
  const { promise, reject } = Promise.withResolvers<Response>();
  const response = await inTime(early(promise, 1));
  reject(new Error("too late"));
  expect(await response.text()).toBe(`${PING}data: Error: too late\n\n`);
});

test("a late answer that is no stream is one event of it", async () => {
  const { promise, resolve } = Promise.withResolvers<Response>();
  const response = await inTime(early(promise, 1));
  resolve(Response.json({ whole: "answer" }));
  expect(await response.text()).toMatch(/^(: sign of life\n\n)+data: \{"whole":"answer"\}\n\n$/);
});
