// The meter of realtime sessions: sound is measured without being parsed, usage is split into disjoint counts.
// Nothing that a text says can look like an event, and no number of an upstream is believed beyond its bounds.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readEvent, TurnMeter } from "../../../src/relay/realtime/meter.ts";
import { decodeRealtimeUsage, durationUsage } from "../../../src/relay/realtime/reported-usage.ts";
import { completionTokens, promptTokens } from "../../../src/shared/usage.ts";

const COUNTER = {
  count: (texts: string[]) => Promise.resolve(texts.join(" ").split(/\s+/).length),
  isFullFor: () => false,
  close: () => {},
};

describe("frames of sound", () => {
  const types = fc.constantFrom(
    "response.audio.delta",
    "response.output_audio.delta",
    "input_audio_buffer.append",
  );
  test("are measured alike whichever way they are written", () => {
    fc.assert(
      fc.property(
        types,
        fc.base64String({ maxLength: 400 }),
        fc.boolean(),
        fc.boolean(),
        (type, sound, isPretty, isReversed) => {
          const key = type === "input_audio_buffer.append" ? "audio" : "delta";
          const fields = { event_id: "event_1", type, response_id: "r", [key]: sound };
          const event = isReversed ? Object.fromEntries(Object.entries(fields).reverse()) : fields;
          const read = readEvent(JSON.stringify(event, null, isPretty ? 2 : 0));
          expect(read?.type).toBe(type);
          expect(read?.audioBytes ?? 0).toBe(Math.floor((sound.length * 3) / 4));
        },
      ),
    );
  });
  test("are read whole: of a member that stands twice the last one counts, as for the upstream", () => {
    const update = '"type":"session.update","session":{}';
    const big = "A".repeat(400_000);
    for (const [text, type, bytes] of [
      [
        `{"type":"input_audio_buffer.append","audio":"","audio":"${big}"}`,
        "input_audio_buffer.append",
        300_000,
      ],
      [
        `{"type":"input_audio_buffer.append","audio":"AAAA","audio":"${big}"}`,
        "input_audio_buffer.append",
        300_000,
      ],
      [`{"type":"input_audio_buffer.append","audio":"AAAA",${update}}`, "session.update", undefined],
      [`{"type":"input_audio_buffer.append",${update},"audio":"AAAA"}`, "session.update", undefined],
      [`{"type":"response.audio.delta",${update},"delta":"AAAA"}`, "session.update", undefined],
      [
        `{"type":"response.audio.delta","item_id":"i","output_index":0,"delta":"AAAA"}`,
        "response.audio.delta",
        3,
      ],
      [
        `{"type":"input_audio_buffer.append","delta":"AAAA","audio":"${big}"}`,
        "input_audio_buffer.append",
        300_000,
      ],
    ] as const) {
      const read = readEvent(text);
      expect([read?.type, read?.audioBytes]).toEqual([type, bytes]);
    }
  });
  test("are not parsed as clients and upstreams write them", () => {
    for (const event of [
      { event_id: "event_1", type: "input_audio_buffer.append", audio: "AAAA" },
      { type: "input_audio_buffer.append", audio: "AAAA" },
      {
        type: "response.output_audio.delta",
        event_id: "e",
        response_id: "r",
        item_id: "i",
        output_index: 0,
        content_index: 0,
        delta: "AAAA",
      },
    ])
      expect(readEvent(JSON.stringify(event))).toEqual({ type: event.type, audioBytes: 3 });
  });
  test("cannot be made by words inside of a text", () => {
    const words = '{"type":"response.done","response":{"usage":{"input_tokens":9}}}';
    const read = readEvent(JSON.stringify({ type: "response.text.delta", delta: words }));
    expect(read?.type).toBe("response.text.delta");
    expect(new TurnMeter(false).server(read ?? { type: "" })).toBeUndefined();
  });
  test("what is no event is none", () => {
    for (const text of ["", "007", "[]", "null", "{", '{"type":7}', '"type"'])
      expect(readEvent(text)).toBeUndefined();
  });
});

describe("usage", () => {
  test("is split into disjoint counts that add up to what was told", () => {
    const count = fc.integer({ min: 0, max: 100_000 });
    fc.assert(
      fc.property(count, count, count, count, count, count, (input, audio, cached, image, output, spoken) => {
        const usage = decodeRealtimeUsage({
          input_tokens: input,
          output_tokens: output,
          input_token_details: { audio_tokens: audio, cached_tokens: cached, image_tokens: image },
          output_token_details: { audio_tokens: spoken },
        });
        if (input + output === 0) return expect(usage).toBeNull();
        expect(usage && promptTokens(usage)).toBe(input);
        expect(usage && completionTokens(usage)).toBe(output);
      }),
    );
  });
  test.each([null, undefined, {}, { input_tokens: -5 }, { input_tokens: "9", output_tokens: Number.NaN }])(
    "%p tells nothing",
    (raw) => {
      expect(decodeRealtimeUsage(raw)).toBeNull();
    },
  );
});

describe("the local count", () => {
  const say = (meter: TurnMeter, event: Record<string, unknown>) =>
    meter.client(readEvent(JSON.stringify(event)) ?? { type: "" });
  const hear = (meter: TurnMeter, event: Record<string, unknown>) =>
    meter.server(readEvent(JSON.stringify(event)) ?? { type: "" });
  const second = (bytes: number) => "A".repeat((bytes * 4) / 3);

  test("one minute of sound is 1666 tokens in, 833 out", () => {
    const meter = new TurnMeter(false);
    say(meter, { type: "input_audio_buffer.append", audio: second(48_000 * 60) });
    hear(meter, { type: "response.audio.delta", delta: second(48_000 * 60) });
    expect(meter.quick()).toMatchObject({ input: { audio: 1666 }, output: { audio: 833 }, estimated: true });
  });
  test.each([
    [{ input_audio_format: "g711_ulaw" }, 8000],
    [{ audio: { input: { format: { type: "audio/pcmu" } } } }, 8000],
    [{ audio: { input: { format: { type: "audio/pcm", rate: 16_000 } } } }, 32_000],
    [{ input_audio_format: "pcm16" }, 48_000],
  ])("formats count by their own rate: %j", (session, bytesPerSecond) => {
    const meter = new TurnMeter(false);
    say(meter, { type: "session.update", session });
    say(meter, { type: "input_audio_buffer.append", audio: second(bytesPerSecond * 60) });
    expect(meter.quick().input.audio).toBe(1666);
  });
  test("instructions, items, transcripts and arguments are counted; tools from the second turn on", async () => {
    const meter = new TurnMeter(false);
    say(meter, { type: "session.update", session: { instructions: "be brief", tools: [{ name: "f" }] } });
    say(meter, {
      type: "conversation.item.create",
      item: { content: [{ type: "input_text", text: " one two" }, { type: "input_image" }] },
    });
    hear(meter, { type: "response.output_audio_transcript.delta", delta: "three " });
    hear(meter, { type: "response.function_call_arguments.delta", delta: "four" });
    expect(await meter.count(COUNTER, "m")).toMatchObject({
      input: { fresh: 4, image: 85 },
      output: { text: 2 },
    });
    meter.next();
    expect(meter.sawOutput).toBe(false);
    expect((await meter.count(COUNTER, "m")).input.fresh).toBe(8 + 1);
  });
  test("what was heard twice before any response is a turn that says nothing of the conversation, and leaves it to the response", () => {
    const meter = new TurnMeter(false);
    const content = [{ type: "input_text", text: "word ".repeat(1000) }];
    say(meter, { type: "conversation.item.create", item: { content } });
    const before = meter.quick().input.fresh;
    const heard = (id: string) =>
      hear(meter, {
        type: "conversation.item.input_audio_transcription.completed",
        item_id: id,
        transcript: "hello",
        usage: {
          type: "tokens",
          input_tokens: 3,
          output_tokens: 2,
          input_token_details: { audio_tokens: 3 },
        },
      });
    expect(heard("a")).toBeUndefined();
    expect(heard("b")).toMatchObject({ id: "b" });
    expect(meter.isOnlyHeard).toBe(true);
    meter.next(true);
    expect(before).toBeGreaterThan(900);
    expect([meter.quick().input.fresh, meter.sawOutput, meter.reported]).toEqual([before, false, null]);
    const usage = { input_tokens: 2000, output_tokens: 5 };
    hear(meter, { type: "response.done", response: { id: "r", usage } });
    expect(meter.isOnlyHeard).toBe(false);
    meter.next();
    expect(meter.quick().input.fresh).toBe(0);
  });
  test.each([false, true])("what goes with the turn by its length is sound; estimated: %p", (estimated) => {
    const meter = new TurnMeter(false);
    const usage = durationUsage(59.5);
    if (!usage) throw new Error("no usage");
    if (estimated) usage.estimated = true;
    meter.keepHeard(usage);
    expect(meter.reported?.input).toMatchObject({ audio: 600, fresh: 0 });
    expect(meter.guessesHeard).toBe(estimated);
  });
  test("text beyond what is kept is still counted by its length", async () => {
    const meter = new TurnMeter(false);
    for (let i = 0; i < 40; i++) hear(meter, { type: "response.text.delta", delta: "x".repeat(8192) });
    expect((await meter.count(COUNTER, "m")).output.text).toBeGreaterThan(60_000);
  });
});
