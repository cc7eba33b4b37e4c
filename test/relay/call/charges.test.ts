// Who pays for what when a call does not end as it should: each cell of the table of cases, over the wire.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  answer,
  CUT,
  gate,
  HANG,
  malformedStream,
  splitCharacterStream,
  sse,
  stream,
  truncatedStream,
} from "../../support/fake-upstream.ts";
import type { Gate, Script } from "../../support/fake-upstream.ts";
import { correctedAnswer } from "../../../src/providers/corrected-usage.ts";
import { dataLines, HI, MODEL, startGateway, until } from "../support.ts";
import type { Gateway, LogLine } from "../support.ts";

let g: Gateway;
beforeAll(async () => {
  g = await startGateway();
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

/** A limit of the client's own, as most clients send one. */
const LIMIT = { max_tokens: 1000 };

/** `door` opens when the client has received `until`: what is on the wire when a socket breaks may be lost. */
async function streamed(
  script: Script,
  door?: { gate: Gate; until: string },
): Promise<{ text: string; charge: LogLine; spent: number }> {
  const before = await g.balance();
  g.upstream.script(script);
  const response = await g.chat({ stream: true, ...LIMIT });
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    if (door && text.includes(door.until)) door.gate.open();
  }
  const after = await g.balance();
  return { text, charge: (await g.lastCharge()) as LogLine, spent: before.quota - after.quota };
}

const usageFrame = (usage: Record<string, unknown>) =>
  sse({ id: "x", object: "chat.completion.chunk", choices: [], usage });

describe("streams", () => {
  test("cut after text: the text arrives, then an error event, and what was delivered is estimated", async () => {
    const door = gate();
    const { text, charge, spent } = await streamed(stream(["Hello", " world", door, CUT]), {
      gate: door,
      until: " world",
    });
    expect(text).toContain(" world");
    expect(text).not.toContain("[DONE]");
    expect(dataLines(text).at(-1)?.["error"]).toMatchObject({ code: "broken_stream" });
    expect(charge.other).toMatchObject({ end_reason: "upstream-cut", estimated: true });
    expect(charge.quota).toBe(spent);
    expect(spent).toBeGreaterThan(0);
  });

  test("closed without a terminal event: an error event, never a clean end", async () => {
    const { text, charge } = await streamed(truncatedStream(["Hello"]));
    expect(dataLines(text).at(-1)).toHaveProperty("error");
    expect(text).not.toContain("[DONE]");
    expect(charge.other["end_reason"]).toBe("upstream-cut");
  });

  test("cut after its usage: the upstream's numbers are charged", async () => {
    const door = gate();
    const usage = usageFrame({ prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 });
    const bytes = (frame: string) => new TextEncoder().encode(frame);
    const script = stream(["Hi", bytes(usage), bytes(sse({ choices: [], x: "last" })), door, CUT]);
    const { charge } = await streamed(script, { gate: door, until: '"last"' });
    expect(charge).toMatchObject({ promptTokens: 100, completionTokens: 50, quota: 23 });
    expect(charge.other["estimated"]).toBeUndefined();
  });

  test("silent in the middle: ended after the idle limit with an error event", async () => {
    await g.setOption("relay.stream_idle_timeout_seconds", "1");
    const { text, charge } = await streamed(stream(["Hello", HANG]));
    await g.setOption("relay.stream_idle_timeout_seconds", "60");
    expect(dataLines(text).at(-1)?.["error"]).toMatchObject({ code: "upstream_timeout" });
    expect(charge.other).toMatchObject({ end_reason: "upstream-stall", note: "note_upstream_timeout" });
  });

  test("an error object in the middle: replaced by ours, without the upstream's secrets", async () => {
    const secret = { error: { message: "host db7.internal key sk-abcdefghijklmnop", type: "server_error" } };
    const { text, charge } = await streamed(
      stream(["Hello", new TextEncoder().encode(sse(secret)), " more"]),
    );
    expect(text).toContain("Hello");
    expect(text).not.toContain("db7");
    expect(dataLines(text).at(-1)?.["error"]).toMatchObject({ type: "upstream_error" });
    expect(charge.other["end_reason"]).toBe("error-in-stream");
  });

  test("garbage between good events: the text arrives and every data line is JSON", async () => {
    const { text, charge } = await streamed(malformedStream("before", "after"));
    const content = dataLines(text).map(
      (chunk) => (chunk["choices"] as { delta: { content?: string } }[])[0]?.delta.content ?? "",
    );
    expect(content.join("")).toBe("beforeafter");
    expect(text).not.toContain("not json");
    expect(charge).toMatchObject({ promptTokens: 9, completionTokens: 3 });
  });

  test("no usage: estimated, and said so", async () => {
    const { charge, text } = await streamed(stream(["a few words of text"], { usage: null }));
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    expect(charge.other).toMatchObject({ estimated: true, note: "note_usage_estimated" });
    expect(charge.completionTokens).toBeGreaterThan(0);
    expect(charge.promptTokens).toBeGreaterThan(0);
  });

  test("a character cut in two by the network arrives whole", async () => {
    const between = gate();
    g.upstream.script(splitCharacterStream("你好，世界", between));
    const response = await g.chat({ stream: true });
    between.open();
    expect(await response.text()).toContain("你好，世界");
  });
});

describe("numbers that cannot be true", () => {
  test.each<[string, Record<string, unknown>]>([
    ["huge", { prompt_tokens: 9, completion_tokens: 1e15, total_tokens: 1e15 }],
    ["negative", { prompt_tokens: -5, completion_tokens: -1_000_000, total_tokens: -5 }],
    ["half negative", { prompt_tokens: 9, completion_tokens: -1_000_000, total_tokens: 9 }],
  ])(
    "%s usage is not believed: what was delivered is estimated, and the balance never rises",
    async (_, usage) => {
      for (const script of [answer("some text", { usage }), stream(["some text"], { usage })]) {
        const before = await g.balance();
        g.upstream.script(script);
        const isStream = script.headers?.["content-type"] === "text/event-stream";
        await (await g.chat({ ...LIMIT, stream: isStream })).text();
        const charge = (await g.lastCharge()) as LogLine;
        const spent = before.quota - (await g.balance()).quota;
        expect(charge.other["estimated"]).toBe(true);
        expect(spent).toBe(charge.quota);
        expect(spent).toBeGreaterThan(0);
        // A few words, whatever the upstream claims.
        expect(spent).toBeLessThanOrEqual(80);
      }
    },
  );
});

test("usage beyond what doubles hold is not believed either", async () => {
  const body =
    '{"choices":[{"message":{"content":"some text"}}],"usage":{"prompt_tokens":1e999,"completion_tokens":3}}';
  g.upstream.script({ headers: { "content-type": "application/json" }, steps: [body] });
  await (await g.chat(LIMIT)).text();
  expect(await g.lastCharge()).toMatchObject({ other: { estimated: true, note: "note_usage_absurd" } });
});

describe("whole answers", () => {
  test("without usage are counted by the encoder", async () => {
    // The encoder is loaded on first need, and a busy machine takes longer for that than a call waits.
    const charge = await until(async () => {
      g.upstream.script(answer("Hello there, how are you today?", { usage: null }));
      await (await g.chat(LIMIT)).text();
      const last = await g.lastCharge();
      return last?.completionTokens === 8 ? last : undefined;
    });
    expect(charge.other).toMatchObject({ estimated: true });
  });

  test("an answer is charged by its length, however little was held back for it", async () => {
    const shipped = g.app.deps.options.text("ModelRatio");
    await g.setOption("ModelRatio", JSON.stringify({ [MODEL]: 10 }));
    g.upstream.script(answer("many more words than agreed ".repeat(100), { usage: null }));
    await (await g.chat({ max_tokens: 1 })).text();
    const charge = await g.lastCharge();
    await g.setOption("ModelRatio", shipped);
    expect(charge?.completionTokens).toBeGreaterThan(100);
    // Every token at ratio 10, output at four times that.
    expect(charge?.quota).toBe(((charge?.promptTokens ?? 0) + (charge?.completionTokens ?? 0) * 4) * 10);
  });

  test("an answered request is a recorded request: the body leaves after the commit", async () => {
    for (let i = 0; i < 5; i++) {
      await (await g.chat()).text();
      const rows = await g.app.deps.db.orm.select().from(g.app.deps.db.t.logs);
      expect(rows.filter((row) => row.type === 2).length).toBeGreaterThanOrEqual(i + 1);
    }
  });
});

describe("a client that leaves", () => {
  let seen = 0;
  /** The next charge of an abandoned call. */
  const gone = () =>
    until(async () => {
      const rows = (await g.logs()).filter((row) => row.other["end_reason"] === "client-gone");
      if (rows.length === seen) return undefined;
      seen = rows.length;
      return rows.at(-1);
    });

  /** Whoever leaves before the first word of a stream is another case: leaving.test.ts. */
  async function firstWord(response: Response): Promise<void> {
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const decoder = new TextDecoder();
    for (let text = ""; !text.includes("Hello");) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`the stream ended before its first word: ${text}`);
      text += decoder.decode(value, { stream: true });
    }
  }

  test("in a stream: the upstream is hung up on, what was delivered is charged once, an estimate marked as such", async () => {
    const before = await g.balance();
    g.upstream.script(stream(["Hello", " world", HANG]));
    const leaver = new AbortController();
    const response = await fetch(`${g.app.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${g.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, messages: HI, stream: true, ...LIMIT }),
      signal: leaver.signal,
    });
    await firstWord(response);
    leaver.abort();
    const request = await g.upstream.request(0);
    await request.closed;
    expect(request.aborted).toBe(true);
    const charge = await gone();
    const after = await g.balance();
    expect(after.requests - before.requests).toBe(1);
    expect(before.quota - after.quota).toBe(charge.quota);
  });

  test("shortly before the end: the usage that still comes is what is charged", async () => {
    const door = gate();
    g.upstream.script(stream(["Hello", door, " world"]));
    const leaver = new AbortController();
    const response = await fetch(`${g.app.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${g.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, messages: HI, stream: true, ...LIMIT }),
      signal: leaver.signal,
    });
    await firstWord(response);
    leaver.abort();
    door.open();
    const charge = await gone();
    expect(charge).toMatchObject({ promptTokens: 9, completionTokens: 3, quota: 2 });
    expect(charge.other["estimated"]).toBeUndefined();
  });
});

test("what xAI counts under other names stays as it is", async () => {
  const text = JSON.stringify({ data: [], usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 } });
  expect(await (await correctedAnswer(new Response(text))).text()).toBe(text);
});

test("reasoning that xAI counts in the total alone is charged, and what clients read is what is charged", async () => {
  const model = "grok-3-mini-beta";
  await g.app.createChannel({ type: 48, baseUrl: g.upstream.url, models: model });
  const reported = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 1015 };
  const detailed = { ...reported, completion_tokens_details: { reasoning_tokens: 1000 } };
  for (const usage of [reported, detailed])
    for (const streams of [false, true]) {
      g.upstream.script(streams ? stream(["Hi"], { usage }) : answer("Hi", { usage }));
      let text = "";
      const charge = await g.charged(async () => {
        const body = {
          model,
          stream: streams,
          ...(streams ? { stream_options: { include_usage: true } } : {}),
        };
        text = await (await g.chat(body)).text();
      });
      expect(charge).toMatchObject({ promptTokens: 10, completionTokens: 1005 });
      expect([
        streams,
        text.includes('"completion_tokens":1005'),
        text.includes('"completion_tokens":5,'),
      ]).toEqual([streams, true, false]);
    }
});
