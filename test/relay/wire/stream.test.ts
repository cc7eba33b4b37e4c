// The stream relay by itself, with hands on its clock: what is held back, what keeps it alive, how it ends.
import { describe, expect, test } from "bun:test";
import { SAYS_NOTHING } from "../../../src/protocol/life-cycle.ts";
import { openaiChat } from "../../../src/protocol/openai-chat/dialect.ts";
import { Failure } from "../../../src/shared/failures.ts";
import { createStreamRelay } from "../../../src/relay/wire/stream.ts";
import type { StreamEnd } from "../../../src/relay/wire/stream-end.ts";
import type { StreamOptions } from "../../../src/relay/wire/stream-state.ts";
import type { Timers } from "../../../src/relay/wire/timers.ts";
import { DONE, sse } from "../../support/fake-upstream.ts";

const PING = ": sign of life\n\n";
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
  const ping = encoder.encode(PING);

  test("a ping is sent in every interval of silence, and the text behind it is not lost", async () => {
    const parts = relayOf({ pingMs: 100, ping });
    parts.commit();
    parts.send(text("a"));
    const client = await open(parts);
    expect(await client.next()).toBe(text("a"));
    const seen: (string | undefined)[] = [];
    for (let i = 0; i < 2; i++) {
      const read = client.next();
      await tick();
      await parts.clock.pass(101);
      seen.push(await read);
    }
    expect(seen).toEqual([PING, PING]);
    parts.send(text("b"));
    expect(await client.next()).toBe(text("b"));
    parts.send(DONE);
    expect(await client.next()).toBe(DONE);
  });

  test("the silence is that towards the client: an upstream that says nothing for it is none", async () => {
    const parts = relayOf({ pingMs: 100, ping, idleMs: 10_000 });
    parts.commit();
    parts.send(text("a"));
    const client = await open(parts);
    await client.next();
    const read = client.next();
    await tick();
    await parts.clock.pass(60);
    parts.send('data: {"choices":[],');
    await tick();
    await parts.clock.pass(41);
    expect(await read).toBe(PING);
  });

  test("what the client does not fetch is not piled up", async () => {
    const parts = relayOf({ pingMs: 100, ping, idleMs: 100_000 });
    parts.commit();
    parts.send(text("a"));
    const client = await open(parts);
    await client.next();
    const read = client.next();
    await tick();
    for (let i = 0; i < 20; i++) await parts.clock.pass(101);
    expect(await read).toBe(PING);
    parts.send(text("b") + DONE);
    // One more may lie ready: the demand behind the first.
    const rest: (string | undefined)[] = [];
    for (let piece = await client.next(); piece !== undefined; piece = await client.next()) rest.push(piece);
    expect(rest.filter((piece) => piece === PING).length).toBeLessThanOrEqual(1);
    expect(rest.filter((piece) => piece !== PING)).toEqual([text("b"), DONE]);
  });

  test("nothing is put between the halves of a line end, nor into an event under way", async () => {
    const parts = relayOf({ pingMs: 100, ping, idleMs: 100_000 });
    parts.commit();
    const crlf = text("a").replace("\n\n", "\r\n\r");
    parts.send(crlf);
    const client = await open(parts);
    expect(await client.next()).toBe(crlf);
    const read = client.next();
    await tick();
    await parts.clock.pass(150);
    parts.send(`\n${text("b").slice(0, 20)}`);
    await tick();
    await parts.clock.pass(150);
    // The half event waits here, so that the client's stream stands between two frames.
    expect(await read).toBe(PING);
    parts.send(text("b").slice(20) + DONE);
    expect(await client.next()).toBe(`\n${text("b")}`);
  });

  test("an upstream's own comment is passed on as a sign of life, in the form that the client counts", async () => {
    const parts = relayOf({ ping });
    parts.commit();
    parts.send(text("a"));
    const client = await open(parts);
    await client.next();
    parts.send(": OPENROUTER PROCESSING\n\n");
    expect(await client.next()).toBe(PING);
  });

  test("without a form nothing is ever sent, whatever the upstream sends", async () => {
    const parts = relayOf({ pingMs: 100, idleMs: 100_000 });
    parts.commit();
    parts.send(text("a"));
    const client = await open(parts);
    await client.next();
    const read = client.next();
    await tick();
    await parts.clock.pass(1000);
    parts.send(": comment\n\n");
    await tick();
    await parts.clock.pass(1000);
    parts.send(text("b"));
    expect(await read).toBe(`: comment\n\n${text("b")}`);
  });
});

describe("data lines alone", () => {
  const plain = text("a").replace("\n\n", "\r\n\r\n");
  test.each([
    ["a comment before it", `: hi\n\n${plain}`],
    ["a comment in it", `data: x\n: hi\n\n`.replace("x", text("a").slice(6).trim())],
    ["an event's name", `event: message\n${plain}`],
    ["blank lines before it", `\n\n${plain}`],
    ["an id", `id: 7\n${plain}`],
  ])("%s is left out", async (_, wire) => {
    const parts = relayOf({ dataOnly: true });
    parts.commit();
    parts.send(wire);
    // Also where the last one comes without its blank line.
    parts.send(`: more\n\n${finish.trimEnd()}`);
    parts.close();
    const { next } = await open(parts);
    let all = "";
    for (let piece = await next(); piece !== undefined; piece = await next()) all += piece;
    expect(all.startsWith(plain)).toBe(true);
    for (const line of all.split(/\r\n\r\n|\n\n/)) expect(line).toMatch(/^(?:data: .*)?$/);
  });

  test.each([plain, text("a")])("what is nothing but a data line leaves as it came", async (wire) => {
    const parts = relayOf({ dataOnly: true });
    const chunk = encoder.encode(wire);
    parts.send(chunk);
    await parts.relay.begin();
    const { value } = await parts.relay.body(new AbortController().signal).getReader().read();
    expect(value).toBe(chunk);
  });
});

describe("the wait for content", () => {
  const role = sse({
    choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }],
  });
  const saysNothing = SAYS_NOTHING["openai-chat"];
  const begun = (parts: ReturnType<typeof relayOf>): Promise<unknown> =>
    parts.relay.begin().then(
      () => "begun",
      (error: unknown) => error,
    );
  /** What of it is known by now. */
  const now = async (promise: Promise<unknown>): Promise<unknown> => {
    await tick();
    await tick();
    return Promise.race([promise, Promise.resolve("waits")]);
  };

  test("frames that say nothing wait, and leave unchanged with the first that says something", async () => {
    const parts = relayOf({ saysNothing });
    parts.commit();
    const opening = begun(parts);
    parts.send(role);
    expect(await now(opening)).toBe("waits");
    parts.send(": still here\n\n");
    parts.send(role);
    expect(await now(opening)).toBe("waits");
    parts.send(text("a"));
    expect(await opening).toBe("begun");
    const reader = parts.relay.body(new AbortController().signal).getReader();
    expect(decoder.decode((await reader.read()).value)).toBe(`${role}: still here\n\n${role}${text("a")}`);
    expect(parts.relay.contentMs()).toBe(0);
  });

  test.each<[string, (parts: ReturnType<typeof relayOf>) => unknown, string]>([
    [
      "an error",
      (parts) => parts.send(sse({ error: { message: "no", type: "server_error" } })),
      "upstream_down",
    ],
    ["a cut", (parts) => parts.close(), "broken_stream"],
    ["silence", (parts) => parts.clock.pass(1001), "upstream_timeout"],
    ["an end without content", (parts) => parts.send(finish + DONE), "upstream_bad_answer"],
  ])("%s before content is a failure that another channel may make good", async (_, fail, code) => {
    const parts = relayOf({ saysNothing });
    const opening = begun(parts);
    parts.send(role);
    expect(await now(opening)).toBe("waits");
    await fail(parts);
    expect(await opening).toMatchObject({ code });
    expect([parts.isAborted(), parts.ends]).toEqual([true, []]);
  });

  test("an end without content is an answer where output was reported, or the end says why", async () => {
    const filtered = sse({ choices: [{ index: 0, delta: {}, finish_reason: "content_filter" }] });
    for (const end of [finish + usage + DONE, filtered + DONE]) {
      const parts = relayOf({ saysNothing, hidesUsage: false });
      parts.commit();
      parts.send(role + end);
      const client = await open(parts);
      expect(await client.next()).toBe(role + end.slice(0, -DONE.length));
      expect(await client.next()).toBe(DONE);
      expect(parts.ends[0]?.reason).toBe("completed");
    }
  });

  test("a release lets go what waits, and what was being read comes behind it", async () => {
    const parts = relayOf({ saysNothing });
    parts.commit();
    const opening = begun(parts);
    parts.send(role);
    expect(await now(opening)).toBe("waits");
    parts.relay.release();
    expect(await opening).toBe("begun");
    const reader = parts.relay.body(new AbortController().signal).getReader();
    const next = async () => decoder.decode((await reader.read()).value);
    expect(await next()).toBe(role);
    parts.send(role);
    expect(await next()).toBe(role);
    parts.send(text("a") + DONE);
    expect([await next(), await next()]).toEqual([text("a"), DONE]);
  });

  test("released before anything came, the first frame is enough; a failure behind it ends the stream", async () => {
    const parts = relayOf({ saysNothing });
    parts.commit();
    parts.relay.release();
    parts.send(role);
    const client = await open(parts);
    expect(await client.next()).toBe(role);
    parts.send(sse({ error: { message: "no", type: "server_error" } }));
    expect(await client.next()).toBe('data: {"error":"upstream_down"}\n\n');
    expect(parts.ends[0]?.reason).toBe("error-in-stream");
  });

  test("what waits is bounded: more than a life cycle goes on", async () => {
    const parts = relayOf({ saysNothing });
    const long = sse({ choices: [], padding: "x".repeat(300_000) });
    const opening = begun(parts);
    parts.send(long);
    expect(await now(opening)).toBe("waits");
    parts.send(long);
    expect(await opening).toBe("begun");
  });

  test("the limit of the first event is met by a life-cycle frame: thinking behind it is the stream's own silence", async () => {
    let firsts = 0;
    const parts = relayOf({ saysNothing, firstEventMs: 50, onFirstEvent: () => void firsts++ });
    const opening = begun(parts);
    await parts.clock.pass(40);
    parts.send(role);
    expect(await now(opening)).toBe("waits");
    await parts.clock.pass(500);
    expect([await now(opening), parts.isAborted(), firsts]).toEqual(["waits", false, 1]);
    parts.send(text("a"));
    expect(await opening).toBe("begun");
  });

  test("the limit of the first event holds for an upstream that says nothing", async () => {
    const parts = relayOf({ saysNothing, firstEventMs: 50 });
    const opening = begun(parts);
    await parts.clock.pass(51);
    expect(await opening).toMatchObject({ code: "upstream_timeout" });
  });
});
