// A stream whose next part waits for its payment when it ends for another reason: what is not paid is neither delivered nor charged.
// Refuses timers: the payment comes when the test says, and so does the end.
import { expect, test } from "bun:test";
import { DIALECTS } from "../../../src/protocol/dialects.ts";
import { createOutputCounter } from "../../../src/relay/meter/meter.ts";
import { createStreamRelay } from "../../../src/relay/wire/stream.ts";
import { Failure } from "../../../src/shared/failures.ts";

/** A hold of ten tokens, a stream that has delivered them, and twenty more that come; `ahead`: with an event that costs nothing. */
async function begun({ ahead = false } = {}) {
  const countedBytes = ahead ? 0 : 1e6;
  const output = createOutputCounter({
    makeMeter: (options) => DIALECTS["openai-chat"].meterStream(options),
    counter: { count: () => Promise.resolve(undefined), isFullFor: () => false, close() {} },
    model: "m",
    countsDeltas: false,
    screen: undefined,
  });
  const chunk = (tokens: number): Uint8Array => {
    const choices = [{ index: 0, delta: { content: " tip".repeat(tokens) }, finish_reason: null }];
    return new TextEncoder().encode(`data: ${JSON.stringify({ id: "x", model: "m", choices })}\n\n`);
  };
  let source: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({ start: (controller) => void (source = controller) });
  const asked = Promise.withResolvers<void>();
  const paid = Promise.withResolvers<boolean>();
  const overdue = Promise.withResolvers<() => void>();
  const relay = createStreamRelay(
    { reader: body.getReader(), abort() {} },
    {
      meter: output.meter,
      hidesUsage: false,
      idleMs: 60_000,
      pingMs: 0,
      hold: {
        freeChars: 40,
        paidTokens: 10,
        shortOf: "balance",
        cover() {
          asked.resolve();
          return paid.promise;
        },
      },
      readOn: { countedMs: 7, countedBytes, begin: () => 7, end() {}, keepsReasoning: () => false },
      timers: {
        nowMs: () => 0,
        set(run, ms) {
          if (ms === 7) overdue.resolve(run);
          return undefined;
        },
        clear() {},
      },
    },
  );
  source?.enqueue(chunk(10));
  await relay.begin();
  const leaving = new AbortController();
  const reader = relay.body(leaving.signal).getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain(" tip");
  source?.enqueue(ahead ? Buffer.concat([chunk(0), chunk(20)]) : chunk(20));
  return { relay, output, reader, leaving, asked: asked.promise, paid, overdue: overdue.promise };
}

const PART = { deliveredShare: 1 / 3, paidTokens: 10 };

test("the process has to stop while the payment is asked for, and there is nothing to pay it with", async () => {
  const { relay, output, reader, asked, paid } = await begun();
  void reader.read();
  await asked;
  relay.endNow(new Failure("no-channel", "server_draining"));
  paid.resolve(false);
  expect(await relay.ended).toMatchObject({ reason: "draining", ...PART });
  expect(await output.outputTokens()).toBe(30);
});

test("what is paid in the end is counted as it came", async () => {
  const { relay, reader, asked, paid } = await begun();
  void reader.read();
  await asked;
  relay.endNow(new Failure("no-channel", "server_draining"));
  paid.resolve(true);
  expect(await relay.ended).not.toHaveProperty("deliveredShare");
});

test("the client has left, and the time to read on is over before the payment is refused", async () => {
  const { relay, reader, leaving, asked, paid, overdue } = await begun();
  reader.read().catch(() => undefined);
  await asked;
  leaving.abort();
  (await overdue)();
  paid.resolve(false);
  expect(await relay.ended).toMatchObject({ reason: "client-gone", ...PART });
});

test("the client has left, and as much was read on as may be: the payment is not asked for", async () => {
  const { relay, output, leaving } = await begun({ ahead: true });
  leaving.abort();
  expect(await relay.ended).toMatchObject({ reason: "client-gone", ...PART });
  expect(await output.outputTokens()).toBe(30);
});
