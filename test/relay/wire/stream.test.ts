// The stream relay by itself, with hands on its clock: what is held back, what keeps it alive, how it ends.
import { describe, expect, test } from "bun:test";
import { openaiChat } from "../../../src/protocol/openai-chat/dialect.ts";
import { Failure } from "../../../src/shared/failures.ts";
import { createStreamRelay } from "../../../src/relay/wire/stream.ts";
import type { StreamEnd } from "../../../src/relay/wire/stream-end.ts";
import type { StreamOptions } from "../../../src/relay/wire/stream-state.ts";
import type { Timers } from "../../../src/relay/wire/timers.ts";
import { DONE, sse } from "../../support/fake-upstream.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const text = (content: string) => sse({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
const finish = sse({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
const usage = sse({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 } });

/** Timers that fire when told. */
function handTimers() {
  let now = 0;
  let next = 1;
  const due = new Map<number, { at: number; run: () => void }>();
  const timers: Timers = {
    set(run, ms) {
      due.set(next, { at: now + ms, run });
      return next++;
    },
    clear: (handle) => void due.delete(handle as number),
    nowMs: () => now,
  };
  return {
    timers,
    async pass(ms: number) {
      now += ms;
      for (const [id, timer] of due) {
        if (timer.at > now) continue;
        due.delete(id);
        timer.run();
      }
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

const READ_ON = { countedMs: 500, countedBytes: 10_000, begin: () => 120_000, end: () => {} };

/** `settlement`: what the pipeline does when the stream has ended; here it resolves with `commit`. */
function relayOf(options: Partial<StreamOptions> = {}, settlement?: () => Promise<string>) {
  let feed!: ReadableStreamDefaultController<Uint8Array>;
  const upstream = new ReadableStream<Uint8Array>({ start: (controller) => void (feed = controller) });
  const clock = handTimers();
  const ends: StreamEnd[] = [];
  const committed = Promise.withResolvers<string>();
  let isAborted = false;
  const meter = (openaiChat.meterStream as NonNullable<typeof openaiChat.meterStream>)();
  const relay = createStreamRelay(
    {
      reader: upstream.getReader(),
      abort() {
        if (isAborted) return;
        isAborted = true;
        try {
          feed.error(new Error("aborted"));
        } catch {
          // It was closed already.
        }
      },
    },
    {
      meter,
      hidesUsage: true,
      idleMs: 1000,
      pingMs: 0,
      readOn: { ...READ_ON, keepsReasoning: () => false },
      timers: clock.timers,
      ...options,
    },
  );
  const failureFrame = (code: string) => `data: {"error":"${code}"}\n\n`;
  /** As the pipeline: settled first, then the last bytes. */
  const settled = relay.ended.then(async (end) => {
    ends.push(end);
    try {
      const frames = await (settlement ? settlement() : committed.promise);
      if (end.reason === "completed") relay.finish(frames + relay.terminalFrames());
      else relay.finish(end.failure ? failureFrame(end.failure.code) : "");
    } catch {
      relay.finish(failureFrame("relay_internal"));
    }
  });
  void settled;
  return {
    relay,
    clock,
    ends,
    meter,
    commit: () => committed.resolve(""),
    isAborted: () => isAborted,
    send: (data: string | Uint8Array) => feed.enqueue(typeof data === "string" ? encoder.encode(data) : data),
    close: () => feed.close(),
  };
}

async function open(parts: ReturnType<typeof relayOf>, signal = new AbortController().signal) {
  await parts.relay.begin();
  const reader = parts.relay.body(signal).getReader();
  return {
    reader,
    async next() {
      const { done, value } = await reader.read();
      return done ? undefined : decoder.decode(value);
    },
  };
}

const tick = () => new Promise((resolve) => setImmediate(resolve));

describe("what leaves when", () => {
  test("a read of a megabyte leaves to the byte, usage counted and the end held back, in parts the client asks for", async () => {
    const parts = relayOf({ hidesUsage: false });
    // Three bytes each: the cuts between parts run through characters and frames.
    const frames = Array.from({ length: 3000 }, (_, i) => text(`${i}${"水".repeat(100)}`)).join("") + finish;
    parts.send(encoder.encode(frames + usage + DONE));
    const { next, reader } = await open(parts);
    const received: Uint8Array[] = [];
    let size = 0;
    const wanted = encoder.encode(frames + usage);
    while (size < wanted.length) {
      const { value } = await reader.read();
      if (!value) break;
      received.push(value);
      size += value.length;
      expect(value.length).toBeLessThan(wanted.length / 4);
    }
    expect(Buffer.concat(received).equals(wanted)).toBe(true);
    const last = next();
    parts.commit();
    expect(await last).toBe(DONE);
    expect(await next()).toBeUndefined();
    expect(parts.ends).toEqual([{ reason: "completed", failure: undefined }]);
    expect(parts.meter.state.usage).not.toBeNull();
  });
  test("a chunk of whole frames leaves as it came, one chunk per demand", async () => {
    const parts = relayOf();
    const chunk = encoder.encode(text("a") + text("b"));
    parts.send(chunk);
    await parts.relay.begin();
    const { value } = await parts.relay.body(new AbortController().signal).getReader().read();
    expect(value).toBe(chunk);
  });

  test("the terminal frame waits for the commit, everything before it does not", async () => {
    const parts = relayOf();
    parts.send(text("a") + finish + usage + DONE);
    const client = await open(parts);
    expect(await client.next()).toBe(text("a") + finish);
    let hasLeft = false;
    const last = client.next().then((frame) => {
      hasLeft = true;
      return frame;
    });
    await tick();
    expect([parts.ends.map((end) => end.reason), hasLeft]).toEqual([["completed"], false]);
    parts.commit();
    expect(await last).toBe(DONE);
    expect(await client.next()).toBeUndefined();
    expect(parts.ends).toHaveLength(1);
  });

  test("an upstream that ends without [DONE] but with a finish reason is whole, and the client gets its [DONE]", async () => {
    const parts = relayOf();
    parts.commit();
    parts.send(text("a") + finish);
    parts.close();
    const client = await open(parts);
    await client.next();
    expect(await client.next()).toBe(DONE);
    expect(parts.ends[0]?.reason).toBe("completed");
  });

  test("the usage frame is held back only where nobody asked for it", async () => {
    for (const [hidesUsage, expected] of [
      [true, text("a")],
      [false, text("a") + usage],
    ] as const) {
      const parts = relayOf({ hidesUsage });
      parts.commit();
      parts.send(text("a") + usage + DONE);
      const client = await open(parts);
      expect(await client.next()).toBe(expected);
      expect(parts.meter.state.usage?.output.text).toBe(7);
    }
  });

  test("frames cut anywhere arrive whole, also inside a character", async () => {
    const bytes = encoder.encode(text("你好") + DONE);
    for (let cut = 1; cut < bytes.length; cut += 3) {
      const parts = relayOf();
      parts.commit();
      parts.send(bytes.slice(0, cut));
      parts.send(bytes.slice(cut));
      parts.close();
      const client = await open(parts);
      let all = "";
      for (let piece = await client.next(); piece !== undefined; piece = await client.next()) all += piece;
      expect(all).toBe(text("你好") + DONE);
    }
  });
});

describe("how it ends", () => {
  test("nothing but silence before the first event is a failure that another channel may make good", async () => {
    const parts = relayOf();
    const begun = parts.relay.begin().catch((error: unknown) => error);
    await parts.clock.pass(1001);
    expect(await begun).toMatchObject({ code: "upstream_timeout" });
    expect([parts.isAborted(), parts.ends]).toEqual([true, []]);
  });

  test("a slow client is not the upstream's silence", async () => {
    const parts = relayOf();
    parts.commit();
    parts.send(text("a"));
    const client = await open(parts);
    await client.next();
    await parts.clock.pass(5000);
    parts.send(text("b") + DONE);
    expect(await client.next()).toBe(text("b"));
    expect(await client.next()).toBe(DONE);
  });

  test("a commit that fails ends in an error event, never in a clean end", async () => {
    const parts = relayOf({}, () => Promise.reject(new Error("disk full")));
    parts.send(text("a") + DONE);
    const client = await open(parts);
    await client.next();
    expect(await client.next()).toBe('data: {"error":"relay_internal"}\n\n');
  });

  test("a client that left: the upstream is read on for the usage, up to the cap in time, and settled once", async () => {
    const parts = relayOf();
    parts.commit();
    const leaver = new AbortController();
    parts.send(text("a"));
    const client = await open(parts, leaver.signal);
    await client.next();
    leaver.abort();
    await tick();
    parts.send(text("b"));
    await tick();
    expect(parts.isAborted()).toBe(false);
    await parts.clock.pass(501);
    await tick();
    expect([parts.isAborted(), parts.ends.map((end) => end.reason)]).toEqual([true, ["client-gone"]]);
    await client.reader.cancel();
    await tick();
    expect(parts.ends).toHaveLength(1);
  });

  test("a client that left: what thinks unseen is read on to its end, past every cap for what can be counted", async () => {
    const readOn = { ...READ_ON, keepsReasoning: () => true };
    const parts = relayOf({ readOn, idleMs: 1_000_000 });
    parts.commit();
    const leaver = new AbortController();
    parts.send(text("a"));
    const client = await open(parts, leaver.signal);
    await client.next();
    leaver.abort();
    await tick();
    await parts.clock.pass(100_000);
    parts.send(text("x".repeat(20_000)));
    await tick();
    expect([parts.isAborted(), parts.ends]).toEqual([false, []]);
    parts.send(finish + usage + DONE);
    for (let i = 0; i < 3; i++) await tick();
    expect(parts.ends.map((end) => end.reason)).toEqual(["client-gone"]);
    expect(parts.meter.state).toMatchObject({ usageFinal: true, usage: { output: { text: 7 } } });
  });

  test("the process stops: settled at once though the client does not read, told when it does", async () => {
    const parts = relayOf();
    parts.commit();
    parts.send(text("a"));
    await parts.relay.begin();
    const reader = parts.relay.body(new AbortController().signal).getReader();
    parts.relay.endNow(new Failure("no-channel", "server_draining"));
    await tick();
    expect(parts.ends.map((end) => end.reason)).toEqual(["draining"]);
    expect(parts.isAborted()).toBe(true);
    expect(decoder.decode((await reader.read()).value)).toBe(text("a"));
    expect(decoder.decode((await reader.read()).value)).toBe('data: {"error":"server_draining"}\n\n');
    expect((await reader.read()).done).toBe(true);
    expect(parts.ends).toHaveLength(1);
  });

  test("the process stops: a stream that was whole, and whose end nobody fetched, is settled as whole", async () => {
    const parts = relayOf();
    parts.commit();
    parts.send(text("a") + DONE);
    const client = await open(parts);
    await client.next();
    parts.relay.endNow(new Failure("no-channel", "server_draining"));
    await tick();
    expect(parts.ends.map((end) => end.reason)).toEqual(["completed"]);
    expect(await client.next()).toBe(DONE);
  });

  test("the process stops: what is read on without its client is settled at once", async () => {
    const parts = relayOf();
    parts.commit();
    const leaver = new AbortController();
    parts.send(sse({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] }));
    const client = await open(parts, leaver.signal);
    await client.next();
    leaver.abort();
    await tick();
    expect(parts.ends).toEqual([]);
    parts.relay.endNow(new Failure("no-channel", "server_draining"));
    for (let i = 0; i < 3; i++) await tick();
    expect(parts.ends.map((end) => end.reason)).toEqual(["draining"]);
  });

  test("a client that left: the cap in bytes holds as well", async () => {
    const parts = relayOf();
    parts.commit();
    const leaver = new AbortController();
    parts.send(text("a"));
    const client = await open(parts, leaver.signal);
    await client.next();
    leaver.abort();
    for (let i = 0; i < 4; i++) {
      await tick();
      if (!parts.isAborted()) parts.send(text("x".repeat(6000)));
    }
    await tick();
    expect(parts.ends.map((end) => end.reason)).toEqual(["client-gone"]);
  });
});

describe("keeping it alive", () => {
  test("a comment is sent in every interval of silence, and the text behind it is not lost", async () => {
    const parts = relayOf({ pingMs: 100 });
    parts.commit();
    parts.send(text("a"));
    const client = await open(parts);
    await client.next();
    const first = client.next();
    await tick();
    await parts.clock.pass(101);
    expect(await first).toBe(": PING\n\n");
    const second = client.next();
    await tick();
    await parts.clock.pass(101);
    expect(await second).toBe(": PING\n\n");
    parts.send(text("b"));
    expect(await client.next()).toBe(text("b"));
  });

  test("an upstream's own comment is passed on as a sign of life", async () => {
    const parts = relayOf();
    parts.commit();
    parts.send(text("a"));
    const client = await open(parts);
    await client.next();
    parts.send(": OPENROUTER PROCESSING\n\n");
    expect(await client.next()).toBe(": PING\n\n");
  });
});
