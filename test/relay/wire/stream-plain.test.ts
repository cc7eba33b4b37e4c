// Frames that are metered by their bytes: counted, passed on and cut exactly like the same frames that are read.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { anthropic } from "../../../src/protocol/anthropic/dialect.ts";
import { openaiChat } from "../../../src/protocol/openai-chat/dialect.ts";
import { openaiResponses } from "../../../src/protocol/openai-responses/dialect.ts";
import type { StreamMeter } from "../../../src/protocol/dialect.ts";
import { createStreamRelay } from "../../../src/relay/wire/stream.ts";
import type { StreamHold } from "../../../src/relay/wire/stream-allowance.ts";
import type { StreamEnd } from "../../../src/relay/wire/stream-end.ts";
import { DONE, sse } from "../../support/fake-upstream.ts";

/** So many inputs each; many more with WEIR_LONG. */
const RUNS = Bun.env["WEIR_LONG"] === "1" ? 1000 : 60;

const encoder = new TextEncoder();
const frame = (content: string, more: object = {}): string =>
  sse({ id: "c", choices: [{ index: 0, delta: { content }, finish_reason: null }], ...more });
const finish = sse({ id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
const usage = sse({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 } });

interface Relayed {
  text: string;
  end: StreamEnd;
  meter: StreamMeter;
  skimmed: number;
}

type MadeMeter = () => StreamMeter;

/** One chunk after the other through a relay; without `skims` every frame is read. */
async function relayed(
  chunks: readonly Uint8Array[],
  skims: boolean,
  { hold, makeMeter = openaiChat.meterStream }: { hold?: StreamHold | undefined; makeMeter?: MadeMeter },
): Promise<Relayed> {
  const meter = makeMeter();
  const { skim } = meter;
  let skimmed = 0;
  meter.skim = skims
    ? (bytes, mostUnits) => {
        const surplus = skim?.(bytes, mostUnits) ?? -1;
        if (surplus !== -1) skimmed++;
        return surplus;
      }
    : undefined;
  const left = [...chunks];
  const upstream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const next = left.shift();
        if (next) controller.enqueue(next);
        else controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  const relay = createStreamRelay(
    { reader: upstream.getReader(), abort: () => undefined },
    {
      meter,
      terminal: makeMeter === openaiChat.meterStream ? "done-line" : "terminal-event",
      hidesUsage: true,
      idleMs: 60_000,
      pingMs: 0,
      readOn: {
        countedMs: 1,
        countedBytes: 1,
        begin: () => 1,
        end: () => undefined,
        keepsReasoning: () => false,
      },
      ...(hold ? { hold } : {}),
    },
  );
  await relay.begin();
  const body = new Response(relay.body(new AbortController().signal)).text();
  const end = await relay.ended;
  relay.finish(relay.terminalFrames());
  return { text: await body, end, meter, skimmed };
}

/** Frames by what is read of them. */
function told({ first, last, ...end }: StreamEnd): object {
  const frames = [first, last].map((each) => each && { event: each.event, data: each.data });
  return { ...end, frames };
}

/** Both ways see, send and count the same; answers what the skimming one did. */
async function alike(
  chunks: readonly (string | Uint8Array)[],
  hold?: () => StreamHold,
  makeMeter: MadeMeter = openaiChat.meterStream,
): Promise<Relayed> {
  const bytes = chunks.map((chunk) => (typeof chunk === "string" ? encoder.encode(chunk) : chunk));
  const skimmed = await relayed(bytes, true, { hold: hold?.(), makeMeter });
  const read = await relayed(bytes, false, { hold: hold?.(), makeMeter });
  expect(read.skimmed).toBe(0);
  expect(skimmed.text).toBe(read.text);
  expect(told(skimmed.end)).toEqual(told(read.end));
  expect(skimmed.meter.state).toEqual(read.meter.state);
  return skimmed;
}

/** A little is free, and nobody covers more. */
const smallHold = (): StreamHold => ({
  freeChars: 100,
  paidTokens: 10,
  shortOf: "balance",
  cover: () => Promise.resolve(false),
});

describe("frames that differ in their text alone", () => {
  test("are not decoded from the third on, and count as if they were", async () => {
    const words = ["one", " two", " \\ three\n", "vier ✓ 四 😀", 'say \\"', "x".repeat(3000), " end"];
    const { skimmed, text } = await alike([...words.map((word) => frame(word)), finish, usage, DONE]);
    expect(text).toContain("vier ✓ 四 😀");
    expect(skimmed).toBeGreaterThanOrEqual(4);
  });

  test("several in one chunk are compared as well, and read where one of them is different", async () => {
    const head = [frame("a"), frame("b"), frame("c")];
    const pair = frame("four ✓") + frame("five 😀");
    expect((await alike([...head, pair, pair, finish, DONE])).skimmed).toBe(3);
    const odd = frame("six") + frame("seven", { usage: null }) + frame("eight");
    expect((await alike([...head, odd, pair, finish + usage + DONE])).skimmed).toBeLessThan(3);
    const longEnd = frame("six").replace('"finish_reason":null', '"finish_reason":true') + frame("seven");
    expect((await alike([...head, longEnd, finish, DONE])).skimmed).toBe(1);
    const cut = frame("nine") + frame("ten").slice(0, -1);
    await alike([...head, cut, "\n", pair, frame("x") + finish + usage + DONE]);
  });

  test("another field, an error, a name or a line end between them is read", async () => {
    await alike([frame("a"), frame("b"), frame("c", { usage: null }), frame("d"), frame("e"), finish, DONE]);
    await alike([frame("a"), frame("b"), sse({ error: { message: "broken" } })]);
    await alike([frame("a"), frame("b"), `: still there\n\n`, frame("c"), "event: x\n", frame("d"), DONE]);
    await alike([frame("a"), frame("b"), frame("c").slice(0, 30), frame("c").slice(30), frame("d"), DONE]);
    await alike([frame("a"), frame("b"), frame("c") + frame("d"), frame("e"), frame(""), finish, DONE]);
    await alike([frame("a"), frame("b"), frame("c").trimEnd()]);
  });

  test("what hides the length of words may differ, too, and nothing else of its kind", async () => {
    const hidden = (word: string, filler: string) => frame(word, { usage: null, obfuscation: filler });
    const words = ["one", " two ✓", " three", " four", " five"];
    const frames = words.map((word, at) => hidden(word, "xY9".repeat(at)));
    expect((await alike([...frames, frames.join(""), finish, usage, DONE])).skimmed).toBe(4);
    const odd = [
      hidden("a", 'x"y'),
      hidden("b", "é"),
      frame("c", { usage: null, obfuscation: 5 }),
      frame("d"),
    ];
    expect((await alike([...frames, ...odd, finish, DONE])).skimmed).toBe(3);
    for (const filler of ["é", "\\", "\n"])
      expect((await alike([...frames, hidden("a", filler), finish, DONE])).skimmed).toBe(3);
    const reused = frame("e", { usage: { total_tokens: 9 }, obfuscation: "z" });
    expect((await alike([...frames, reused, finish, DONE])).skimmed).toBe(3);
  });

  test("half characters, of upstreams that cut their words by bytes, count once and as they are read", async () => {
    const text = "a frame of bytes: ";
    const broken = (bytes: readonly number[]): Uint8Array => {
      const whole = Buffer.from(frame(`${text}${"?".repeat(bytes.length)}`), "latin1");
      whole.set(bytes, whole.indexOf("?"));
      return whole;
    };
    for (const bytes of [
      [0xf0],
      [0xff],
      [0xc3],
      [0x80],
      [0xf0, 0x9f],
      [0xe5, 0x9b],
      [0xc0, 0x80],
      [0xf0, 0x61],
    ])
      await alike([frame("a"), frame("b"), broken(bytes), broken(bytes), frame("c"), finish, DONE]);
  });

  test("what is no whole object stays back, however often it comes", async () => {
    const cut = (word: string) =>
      `data: {"choices":[{"index":0,"delta":{"content":"${word}"},"finish_reason":null\n\n`;
    const { text } = await alike([
      frame("a"),
      cut("b"),
      cut("c"),
      cut("d"),
      cut("e"),
      frame("f"),
      finish,
      DONE,
    ]);
    expect(text).not.toContain('"d"');
  });

  test("whatever texts come, in whatever chunks", async () => {
    const word = fc.string({
      unit: fc.constantFrom("a", '"', "\\", "\n", "é", "四", "😀", " ", "}"),
      maxLength: 8,
    });
    const input = fc.tuple(fc.array(word, { maxLength: 12 }), fc.array(fc.nat(400), { maxLength: 4 }));
    await fc.assert(
      fc.asyncProperty(input, async ([words, cuts]) => {
        const frames = [...words.map((each) => frame(each)), finish, usage, DONE];
        await alike(frames);
        const bytes = frames.join("");
        const places = [0, ...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length];
        await alike(places.slice(1).map((to, at) => bytes.slice(places[at], to)));
      }),
      { numRuns: RUNS },
    );
  });

  test("near the hold each is read: the one that is not paid stays back, the one before it is known", async () => {
    const hold = (): StreamHold => ({
      freeChars: 400,
      paidTokens: 10,
      shortOf: "balance",
      cover: () => Promise.resolve(false),
    });
    const frames = Array.from({ length: 30 }, (_, at) => frame(`word number ${at} of it`));
    const { skimmed, end, text } = await alike([...frames, finish, DONE], hold);
    expect(skimmed).toBeGreaterThan(3);
    expect(end.reason).toBe("balance");
    expect(text).not.toContain("number 25");
    // The hold is the whole of what is free: the last frame that went on was not read.
    const large = (): StreamHold => ({ ...hold(), freeChars: 330 });
    const longer = [...frames.slice(0, 10), frame("y".repeat(1000)), finish, DONE];
    const cut = await alike(longer, large);
    expect(cut.end.last?.data).toContain("number 9 of it");
    const paired = [...frames.slice(0, 8), frames.slice(8, 10).join(""), ...longer.slice(10)];
    expect((await alike(paired, large)).end.last?.data).toContain("number 9 of it");
  });
});

describe("deltas of Messages", () => {
  const event = (data: { type: string }): string => `event: ${data.type}\n${sse(data)}`;
  const delta = (text: string, index = 0): string =>
    event(Object.assign({ type: "content_block_delta" }, { index, delta: { type: "text_delta", text } }));
  const thought = (thinking: string): string =>
    event(
      Object.assign(
        { type: "content_block_delta" },
        { index: 0, delta: { type: "thinking_delta", thinking } },
      ),
    );
  const begin = event(
    Object.assign({ type: "message_start" }, { message: { usage: { input_tokens: 5, output_tokens: 1 } } }),
  );
  const end =
    event(
      Object.assign(
        { type: "message_delta" },
        { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } },
      ),
    ) + event({ type: "message_stop" });
  const same = (chunks: readonly string[], hold?: () => StreamHold): Promise<Relayed> =>
    alike(chunks, hold, anthropic.meterStream);

  test("are not decoded from the second on; another block, an escape and a ping are read", async () => {
    const words = ["one", " two ✓", " three 😀", ' "four"', " five\n", " six"].map((word) => delta(word));
    const { skimmed, meter } = await same([begin, ...words, event({ type: "ping" }), delta(" seven"), end]);
    expect(skimmed).toBe(4);
    expect(meter.state.usage?.input.fresh).toBe(5);
    const blocks = await same([
      begin,
      thought("a"),
      thought("b"),
      delta("c", 1),
      delta("d", 1),
      thought("e"),
      end,
    ]);
    expect(blocks.skimmed).toBe(2);
    await same([begin, delta("text"), delta("a"), delta("text_delta"), delta("0"), delta("x"), end]);
  });

  test("whatever texts come, in whatever chunks", async () => {
    const units = ["a", '"', "\\", "\n", "é", "四", "😀", " ", "}", "text"];
    const word = fc.string({ unit: fc.constantFrom(...units), maxLength: 6 });
    const input = fc.tuple(fc.array(word, { maxLength: 12 }), fc.array(fc.nat(2000), { maxLength: 4 }));
    await fc.assert(
      fc.asyncProperty(input, async ([words, cuts]) => {
        const frames = [begin, ...words.map((each, at) => delta(each, at > 6 ? 1 : 0)), end];
        await same(frames);
        const whole = frames.join("");
        const places = [0, ...cuts.map((cut) => cut % whole.length).sort((a, b) => a - b), whole.length];
        await same(places.slice(1).map((to, at) => whole.slice(places[at], to)));
      }),
      { numRuns: RUNS },
    );
  });

  test("near the hold each is read", async () => {
    const frames = Array.from({ length: 30 }, (_, at) => delta(`word number ${at} of it`));
    const { end: ended, skimmed } = await same([begin, ...frames, end], smallHold);
    expect(skimmed).toBeGreaterThan(2);
    expect(ended.reason).toBe("balance");
  });
});

describe("deltas of Responses", () => {
  const event = (data: { type: string }): string => `event: ${data.type}\n${sse(data)}`;
  let number = 0;
  const delta = (text: string, more: object = {}): string => {
    number++;
    const place = { sequence_number: number, item_id: "m", output_index: 0, content_index: 0 };
    const texts = { delta: text, logprobs: [], obfuscation: "q".repeat(number % 5), ...more };
    return event({
      type: "response.output_text.delta",
      ...place,
      ...texts,
    });
  };
  const begin = event(
    Object.assign({ type: "response.created" }, { sequence_number: 0, response: { id: "r" } }),
  );
  const response = { id: "r", usage: { input_tokens: 5, output_tokens: 9, total_tokens: 14 } };
  const end = event(Object.assign({ type: "response.completed" }, { sequence_number: 999, response }));
  const same = (chunks: readonly string[], hold?: () => StreamHold): Promise<Relayed> =>
    alike(chunks, hold, openaiResponses.meterStream);

  test("are not decoded from the second on, whatever their numbers; what says more is read", async () => {
    const words = ["one", " two ✓", " three 😀", ' "four"', " five\n", " six", "1", "q"];
    const { skimmed, meter } = await same([
      begin,
      ...words.map((word) => delta(word)),
      delta("a") + delta("b"),
      end,
    ]);
    expect(skimmed).toBe(6);
    expect(meter.state.usage?.input.fresh).toBe(5);
    const probs = { logprobs: [{ token: "x", logprob: -1 }] };
    const odd = [
      delta("c", probs),
      delta("d", { sequence_number: "7" }),
      delta("e", { delta: 5 }),
      delta("f", { item_id: "n" }),
    ];
    expect(
      (await same([begin, delta("a"), delta("b"), ...odd, delta("g", { item_id: "n" }), end])).skimmed,
    ).toBe(2);
    // Another field says the same, once.
    const noted = ["same", "longer than it", "z"].map((note) => delta("same", { note, obfuscation: "" }));
    await same([begin, ...noted, end]);
    // The words of the fields themselves, as a text.
    await same([
      begin,
      delta('"delta":"x"'),
      delta("sequence_number"),
      delta("obfuscation"),
      delta("x"),
      delta("y"),
      end,
    ]);
  });

  test("whatever texts come, and near the hold each is read", async () => {
    const word = fc.string({
      unit: fc.constantFrom("a", '"', "\\", "é", "😀", "}", "1", "delta"),
      maxLength: 6,
    });
    const input = fc.tuple(fc.array(word, { maxLength: 10 }), fc.array(fc.nat(2000), { maxLength: 4 }));
    await fc.assert(
      fc.asyncProperty(input, async ([words, cuts]) => {
        const whole = [begin, ...words.map((each) => delta(each)), end].join("");
        const places = [0, ...cuts.map((cut) => cut % whole.length).sort((a, b) => a - b), whole.length];
        await same(places.slice(1).map((to, at) => whole.slice(places[at], to)));
      }),
      { numRuns: RUNS },
    );
    const frames = Array.from({ length: 30 }, (_, at) => delta(`word number ${at} of it`));
    const { end: ended, skimmed } = await same([begin, ...frames, end], smallHold);
    expect(skimmed).toBeGreaterThan(2);
    expect(ended.reason).toBe("balance");
    expect(ended.last?.data).toContain("sequence_number");
  });
});
