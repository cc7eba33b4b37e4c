// The fake provider's own promises: a test that trusts a fault must get that fault.
// Refuses the gateway: requests go to the fake directly.

import { afterAll, beforeEach, expect, test } from "bun:test";
import {
  DONE,
  answer,
  bulkStream,
  cutStream,
  gate,
  hangAfterHeaders,
  hangBeforeHeaders,
  malformedStream,
  okWithError,
  refuse,
  refuseUntil,
  splitCharacterStream,
  startFakeUpstream,
  stream,
  truncatedStream,
} from "./fake-upstream.ts";

const upstream = await startFakeUpstream();
afterAll(() => upstream.stop());
beforeEach(() => upstream.reset());

const decode = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);

function call(body: object, init: RequestInit = {}): Promise<Response> {
  const headers = { "content-type": "application/json", authorization: "Bearer sk-test" };
  return fetch(`${upstream.url}/v1/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
    ...init,
  });
}

/** The message a promise is rejected with; empty when it is kept. */
function refusalOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "",
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

test("unscripted calls get a polite answer with usage, and each request is on record", async () => {
  const whole = (await (await call({ model: "m" })).json()) as {
    model: string;
    usage: { total_tokens: number };
  };
  expect(whole).toMatchObject({ model: "m", usage: { total_tokens: 12 } });
  const plain = await (await call({ model: "m", stream: true })).text();
  expect(plain).toEndWith(DONE);
  expect(plain).not.toContain("usage");
  const counted = await (
    await call({ model: "m", stream: true, stream_options: { include_usage: true } })
  ).text();
  expect(counted).toContain('"usage":{"prompt_tokens":9');
  expect(upstream.requests.map((request) => request.json().stream)).toEqual([undefined, true, true]);
  expect(upstream.requests[0]?.headers.authorization).toBe("Bearer sk-test");
  expect(upstream.requests[0]?.aborted).toBe(false);
});

test("embeddings answer one vector per input, and the models are listed", async () => {
  const body = JSON.stringify({ model: "e", input: ["a", "b"] });
  const vectors = (await (await fetch(`${upstream.url}/v1/embeddings`, { method: "POST", body })).json()) as {
    data: [];
  };
  expect(vectors.data).toHaveLength(2);
  const models = (await (await fetch(`${upstream.url}/v1/models`)).json()) as { data: { id: string }[] };
  expect(models.data.map((model) => model.id)).toEqual(["fake-model", "fake-embedding"]);
});

test("queued scripts answer one request each, in order, and then the default is back", async () => {
  upstream.script(
    refuse(500),
    refuseUntil(7),
    okWithError("busy"),
    answer("x", { usage: { total_tokens: -5 } }),
  );
  const statuses: (number | string | null)[] = [];
  for (let i = 0; i < 2; i++) {
    const response = await call({});
    statuses.push(response.status, response.headers.get("retry-after"));
    await response.text();
  }
  expect(statuses).toEqual([500, null, 429, "7"]);
  expect(await (await call({})).json()).toMatchObject({ error: { message: "busy" } });
  expect(await (await call({})).json()).toMatchObject({ usage: { total_tokens: -5 } });
  expect((await call({})).status).toBe(200);
});

test("a hang before the headers lasts until the client leaves, and the leaving is on record", async () => {
  upstream.script(hangBeforeHeaders());
  const controller = new AbortController();
  const pending = call({}, { signal: controller.signal });
  const request = await upstream.request(0);
  controller.abort();
  expect(await refusalOf(pending)).toContain("aborted");
  await request.closed;
  expect(request.aborted).toBe(true);
});

test("a hang after the headers lets the status through and no byte of the body", async () => {
  upstream.script(hangAfterHeaders());
  const controller = new AbortController();
  const response = await call({}, { signal: controller.signal });
  expect(response.status).toBe(200);
  controller.abort();
  expect(await refusalOf(response.text())).toContain("aborted");
  expect((await upstream.request(0)).bytesSent).toBe(0);
});

test("a cut stream breaks the connection, a truncated one only lacks its end", async () => {
  upstream.script(cutStream(["one"]), truncatedStream(["two"]));
  expect(await refusalOf(call({}).then((response) => response.text()))).toContain("closed unexpectedly");
  const truncated = await (await call({})).text();
  expect(truncated).toContain("two");
  expect(truncated).not.toContain("[DONE]");
});

test("a gate holds the stream between two pieces until the test opens it", async () => {
  const door = gate();
  upstream.script(stream(["before", door, "after"]));
  const reader = (await call({})).body!.getReader();
  let seen = "";
  while (!seen.includes("before")) seen += decode((await reader.read()).value);
  expect(seen).not.toContain("after");
  door.open();
  for (let read = await reader.read(); !read.done; read = await reader.read()) seen += decode(read.value);
  expect(seen).toContain("after");
});

test("a split character arrives as two reads that are no valid text alone", async () => {
  const door = gate();
  upstream.script(splitCharacterStream("你好", door));
  const reader = (await call({})).body!.getReader();
  const parts: Uint8Array[] = [];
  const joined = () => Buffer.concat(parts);
  const splitAt = () => joined().findIndex((byte) => byte >= 0xc0);
  while (splitAt() < 0) parts.push((await reader.read()).value ?? new Uint8Array());
  expect(splitAt()).toBe(joined().length - 1);
  expect(decode(joined())).toEndWith("\uFFFD");
  door.open();
  for (let read = await reader.read(); !read.done; read = await reader.read()) parts.push(read.value);
  expect(decode(joined())).toContain("你好");
});

test("malformed chunks stand between good ones and the stream still ends", async () => {
  upstream.script(malformedStream("good", "end"));
  const text = await (await call({})).text();
  expect(text.indexOf("good")).toBeLessThan(text.indexOf("data: not json"));
  expect(text.indexOf("data: not json")).toBeLessThan(text.indexOf('"end"'));
  expect(text).toEndWith(DONE);
});

test("a bulk stream is produced only as far as it is read", async () => {
  upstream.script(bulkStream(400 * 1024 * 1024));
  const controller = new AbortController();
  const response = await call({}, { signal: controller.signal });
  const reader = response.body!.getReader();
  await reader.read();
  const request = await upstream.request(0);
  controller.abort();
  await request.closed;
  expect(request.aborted).toBe(true);
  expect(request.bytesSent).toBeGreaterThan(0);
  expect(request.bytesSent).toBeLessThan(100 * 1024 * 1024);
});
