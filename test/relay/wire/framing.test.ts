// Guarantees of the event-stream reader and writer in relay/wire/framing.ts.
// Compares with eventsource-parser at every possible cut.
import { describe, expect, test } from "bun:test";
import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { Failure } from "../../../src/shared/failures.ts";
import { createSseReader, sseComment, sseFrame } from "../../../src/relay/wire/framing.ts";
import type { SseEvent } from "../../../src/relay/wire/framing.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function read(chunks: Uint8Array[], withEnd = true): SseEvent[] {
  const reader = createSseReader();
  const events = chunks.flatMap((chunk) => reader.push(chunk));
  return withEnd ? [...events, ...reader.end()] : events;
}

function reference(text: string): SseEvent[] {
  const events: SseEvent[] = [];
  const parser = createParser({
    onEvent: (event) => events.push({ event: event.event ?? "", data: event.data }),
  });
  parser.feed(text);
  return events;
}

const STREAMS: Record<string, string> = {
  "LF line ends": 'data: {"a":1}\n\nevent: delta\ndata: {"b":"ä"}\n\ndata: [DONE]\n\n',
  "CR LF line ends": 'event: x\r\ndata: {"a":"汉字"}\r\n\r\ndata: second\r\n\r\n',
  "CR line ends": "data: one\r\rdata: two\rdata: three\r\r",
  "mixed line ends": "data: one\n\r\ndata: two\r\n\ndata: three\r\r\n",
  "several data lines": "data: one\ndata: two\ndata:\ndata:three\n\n",
  comments: ": keep-alive\n\n: PING\ndata: after\n:\n\n",
  "ids, retries and unknown fields": "id: 7\nretry: 10\nfoo: bar\ndata: x\n\n",
  "fields without a colon": "data\n\ndata\ndata\n\nevent\ndata: y\n\n",
  "fields that only begin like data": "database: no\ndata : no\neventful: no\ndata: yes\n\n",
  "spaces in the value": "data:  two\ndata:none\n\n",
  "an event line without data": "event: lonely\n\ndata: z\n\n",
  "emoji and combining characters": "data: 👩‍👩‍👧 é 漢\n\ndata: 🚀\n\n",
};

describe("reading", () => {
  for (const [name, text] of Object.entries(STREAMS)) {
    test(`${name}: equals eventsource-parser with a cut at every byte`, () => {
      const expected = reference(text);
      expect(expected.length).toBeGreaterThan(0);
      const bytes = bytesOf(text);
      for (let cut = 0; cut <= bytes.length; cut++) {
        expect(read([bytes.slice(0, cut), bytes.slice(cut)], false)).toEqual(expected);
      }
      expect(
        read(
          Array.from(bytes, (_, at) => bytes.slice(at, at + 1)),
          false,
        ),
      ).toEqual(expected);
    });
  }

  test("random streams, randomly cut, equal eventsource-parser", () => {
    const piece = fc.constantFrom(
      "data: ",
      "data:",
      "event: e",
      "x",
      "ü",
      "🚀",
      ":",
      " ",
      "\n",
      "\n\n",
      "\r\n",
      "\r",
      "id: 1",
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 40 }),
        fc.array(fc.nat(60), { maxLength: 6 }),
        (pieces, cuts) => {
          const text = `${pieces.join("")}\n\n`;
          const bytes = bytesOf(text);
          const places = [
            0,
            ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b),
            bytes.length,
          ];
          const chunks = places.slice(1).map((to, index) => bytes.slice(places[index], to));
          expect(read(chunks, false)).toEqual(reference(text));
        },
      ),
      { numRuns: 500 },
    );
  });

  test("a byte order mark is skipped wherever it is cut", () => {
    const bytes = new Uint8Array([0xef, 0xbb, 0xbf, ...bytesOf("data: x\n\n")]);
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(read([bytes.slice(0, cut), bytes.slice(cut)])).toEqual([{ event: "", data: "x" }]);
    }
  });

  test("an event without its last blank line counts when the stream ends", () => {
    for (const text of ["event: a\ndata: x", "event: a\ndata: x\n", "event: a\r\ndata: x\r"]) {
      expect(read([bytesOf(text)])).toEqual([{ event: "a", data: "x" }]);
    }
    expect(read([bytesOf("data: x\n\n")])).toHaveLength(1);
  });

  test("a reused chunk buffer does not change what was read before", () => {
    const reader = createSseReader();
    const chunk = bytesOf("data: abc");
    expect(reader.push(chunk)).toEqual([]);
    chunk.fill(0);
    const second = bytesOf("def");
    expect(reader.push(second)).toEqual([]);
    second.fill(0);
    expect(reader.push(bytesOf("ghi\n\n"))).toEqual([{ event: "", data: "abcdefghi" }]);
  });

  test("a line above the cap fails the stream, in one chunk or in many", () => {
    const one = createSseReader({ maxLineBytes: 100 });
    expect(() => one.push(bytesOf(`data: ${"x".repeat(200)}`))).toThrow(Failure);
    const whole = createSseReader({ maxLineBytes: 100 });
    expect(() => whole.push(bytesOf(`: ${"x".repeat(200)}\n\n`))).toThrow(Failure);
    const many = createSseReader({ maxLineBytes: 100 });
    expect(() => {
      for (let i = 0; i < 50; i++) many.push(bytesOf("xxxxxxxx"));
    }).toThrow(Failure);
    const lines = createSseReader({ maxLineBytes: 100 });
    expect(() => {
      for (let i = 0; i < 50; i++) lines.push(bytesOf("data: xxxxxxxx\n"));
    }).toThrow(Failure);
  });

  test("a line of nine megabytes in small chunks is read whole", () => {
    const reader = createSseReader();
    const chunk = bytesOf("y".repeat(64 * 1024));
    reader.push(bytesOf("data: "));
    for (let i = 0; i < 144; i++) reader.push(chunk);
    const [event] = reader.push(bytesOf("\n\n"));
    expect(event?.data.length).toBe(144 * 64 * 1024);
  });

  test("what is kept beside events has an end: comments alone are no stream", () => {
    const reader = createSseReader({ keepBytes: true, maxLineBytes: 1000 });
    const comment = bytesOf(`: ${"x".repeat(200)}\n\n`);
    expect(() => {
      for (let i = 0; i < 100; i++) reader.push(comment);
    }).toThrow("stream_line_too_long");
    // An event as large as one may be, with comments before it, is none of that.
    const other = createSseReader({ keepBytes: true, maxLineBytes: 1000 });
    for (let i = 0; i < 3; i++) {
      other.push(comment);
      expect(other.push(bytesOf(`data: ${"y".repeat(990)}\n\n`))).toHaveLength(1);
    }
  });

  test("a chunk that is one event is handed out as it came, and reads as it does among others", () => {
    for (const text of Object.values(STREAMS)) {
      const whole = read([bytesOf(text)]);
      const reader = createSseReader({ keepBytes: true });
      const events = text.split(/(?<=\n\n)/).flatMap((part) => {
        const chunk = bytesOf(part);
        const found = reader.push(chunk);
        for (const { data, dataBytes, bytes } of found) {
          if (dataBytes === undefined) continue;
          expect([dataBytes, bytes]).toEqual([Buffer.byteLength(data), chunk]);
        }
        return found;
      });
      expect([...events, ...reader.end()].map(({ event, data }) => ({ event, data }))).toEqual(whole);
    }
    const [lone] = createSseReader({ keepBytes: true }).push(bytesOf('data: {"b":"ä"}\n\n'));
    expect(lone?.dataBytes).toBe(10);
  });

  test("kept bytes join to the stream, byte for byte, whatever the cuts", () => {
    for (const text of Object.values(STREAMS)) {
      const bytes = bytesOf(`${text}: tail\n`);
      for (let cut = 0; cut <= bytes.length; cut++) {
        const reader = createSseReader({ keepBytes: true });
        const events = [...reader.push(bytes.slice(0, cut)), ...reader.push(bytes.slice(cut))];
        const joined = Buffer.concat([
          ...events.map((event) => event.bytes ?? new Uint8Array()),
          reader.rest(),
        ]);
        expect(joined.equals(Buffer.from(bytes))).toBe(true);
      }
    }
  });
});

describe("writing", () => {
  test("what is written is read back, line breaks in data included", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const data = text.replace(/\r\n|\r/g, "\n").toWellFormed();
        expect(read([bytesOf(sseFrame(data, "named"))], false)).toEqual([{ event: "named", data }]);
      }),
    );
  });
  test("a comment is no event and cannot smuggle one in", () => {
    expect(read([bytesOf(sseComment("PING\n\ndata: forged"))])).toEqual([]);
  });
});
