// The length of recordings, read from containers that are written here by the books of their formats.
// A length that the file is too small for is not believed, and no bytes whatever make the reader fall.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { audioSeconds } from "../../../src/relay/endpoints/audio-duration.ts";

const text = (value: string): number[] => [...Buffer.from(value, "latin1")];
const le = (value: number, size: number): number[] =>
  Array.from({ length: size }, (_, i) => Math.floor(value / 2 ** (8 * i)) % 256);
const be = (value: number, size: number): number[] => le(value, size).reverse();
const zeros = (size: number): number[] => Array.from({ length: size }, () => 0);
const bytes = (...pieces: (number[] | Uint8Array)[]): Uint8Array =>
  Buffer.concat(pieces.map((piece) => Buffer.from(piece)));

function wav(rate: number, channels: number, seconds: number, told?: number): Uint8Array {
  const size = rate * channels * 2 * seconds;
  return bytes(
    text("RIFF"), le(36 + size, 4), text("WAVE"),
    text("LIST"), le(5, 4), zeros(6),
    text("fmt "), le(16, 4), le(1, 2), le(channels, 2), le(rate, 4), le(rate * channels * 2, 4), le(channels * 2, 2), le(16, 2),
    text("data"), le(told ?? size, 4), new Uint8Array(size),
  ); // prettier-ignore
}

describe("WAV", () => {
  test("by its data", () => expect(audioSeconds(wav(16_000, 1, 3))).toBeCloseTo(3, 6));
  test("stereo", () => expect(audioSeconds(wav(44_100, 2, 2))).toBeCloseTo(2, 6));
  test("a recorder that left the length open, at zero or at its maximum", () => {
    expect(audioSeconds(wav(8000, 1, 2, 0))).toBeCloseTo(2, 6);
    expect(audioSeconds(wav(8000, 1, 2, 0xffffffff))).toBeCloseTo(2, 6);
  });
});

describe("a head that lies about what no decoder reads", () => {
  test("WAV: bytes per second, and data in two chunks", () => {
    const forged = wav(16_000, 1, 60);
    new DataView(forged.buffer, forged.byteOffset).setUint32(12 + 14 + 8 + 8, 0xffffffff, true);
    expect(audioSeconds(forged)).toBeCloseTo(60, 6);
    // By the μ-law: a byte per sample.
    new DataView(forged.buffer, forged.byteOffset).setUint16(12 + 14 + 8, 7, true);
    expect(audioSeconds(forged)).toBeCloseTo(120, 6);
    const more = bytes(wav(16_000, 1, 1), text("data"), le(32_000 * 9, 4), zeros(32_000 * 9));
    expect(audioSeconds(more)).toBeCloseTo(10, 6);
  });
  test("FLAC: samples", () => {
    // 16 kHz, one channel, 16 bits: a third of its plain size is as short as a third of it.
    const packed = be(16_000 * 2 ** 12 + 15 * 16, 4);
    const info = bytes(zeros(10), packed, be(16_000, 4), zeros(16));
    const file = bytes(text("fLaC"), [0x80], be(34, 3), info, [0xff, 0xf8, 0, 0], new Uint8Array(960_000));
    expect(audioSeconds(file)).toBeCloseTo(30, 2);
    // The frames' own rate and channels are what is heard, whatever the head says: 48 kHz, stereo, 16 bits.
    const other = bytes(
      text("fLaC"),
      [0x80],
      be(34, 3),
      info,
      [0xff, 0xf8, 0xca, 0x18],
      new Uint8Array(1_920_000),
    );
    expect(audioSeconds(other)).toBeCloseTo(10, 2);
  });
  test("AIFF: samples", () => {
    const rate = [0x40, 0x0e, 0xac, 0x44, 0, 0, 0, 0, 0, 0];
    const comm = bytes(text("COMM"), be(18, 4), be(1, 2), be(44, 4), be(16, 2), rate);
    const sound = bytes(text("SSND"), be(88_200 * 5, 4), new Uint8Array(88_200 * 5));
    expect(audioSeconds(bytes(text("FORM"), be(100, 4), text("AIFF"), comm, sound))).toBeCloseTo(5, 3);
  });
});

test("AIFF", () => {
  // 44100 as an 80-bit float: exponent 15, mantissa 0xAC44 in the upper bits.
  const rate = [0x40, 0x0e, 0xac, 0x44, 0, 0, 0, 0, 0, 0];
  const comm = bytes(text("COMM"), be(18, 4), be(1, 2), be(88_200, 4), be(16, 2), rate);
  expect(audioSeconds(bytes(text("FORM"), be(100, 4), text("AIFF"), comm, zeros(4000)))).toBeCloseTo(2, 6);
});

test("FLAC", () => {
  const packed = be((48_000 * 2 ** 12) | 0, 4);
  const info = bytes(zeros(10), packed, be(48_000 * 5, 4), zeros(16));
  expect(audioSeconds(bytes(text("fLaC"), [0x80], be(34, 3), info, zeros(9000)))).toBeCloseTo(5, 3);
});

describe("MP3", () => {
  /** Version 1 layer 3, 44.1 kHz: 1152 samples a frame. */
  const frame = (index: number, kbps: number): Uint8Array => {
    const whole = new Uint8Array(Math.floor((144 * kbps * 1000) / 44_100));
    whole.set([0xff, 0xfb, (index << 4) | 0, 0xc0]);
    return whole;
  };
  const frames = (count: number) => Array.from({ length: count }, () => frame(9, 128));
  test("constant rate", () =>
    expect(audioSeconds(bytes(...frames(100)))).toBeCloseTo((100 * 1152) / 44_100, 3));
  test("variable rate, behind a tag and before another", () => {
    const mixed = [...frames(50), ...Array.from({ length: 50 }, () => frame(14, 320))];
    const file = bytes(text("ID3"), [4, 0, 0, 0, 0, 1, 0], zeros(128), ...mixed, text("TAG"), zeros(125));
    expect(audioSeconds(file)).toBeCloseTo((100 * 1152) / 44_100, 3);
  });
  test("version 2, 22.05 kHz: half the samples", () => {
    const one = new Uint8Array(Math.floor((72 * 64 * 1000) / 22_050));
    one.set([0xff, 0xf3, (8 << 4) | 0, 0xc0]);
    expect(audioSeconds(bytes(...Array.from({ length: 40 }, () => one)))).toBeCloseTo((40 * 576) / 22_050, 3);
  });
  test("a text that happens to hold two bytes like a frame's is no recording", () => {
    expect(
      audioSeconds(bytes(text("hello "), [0xff, 0xfb, 0x90, 0xc0], text(" world ".repeat(200)))),
    ).toBeUndefined();
  });
});

test("AAC", () => {
  const size = 200;
  const one = new Uint8Array(size);
  // 44.1 kHz, low complexity.
  one.set([0xff, 0xf1, 0x50, 0x80 | ((size >> 11) & 3), (size >> 3) & 255, ((size & 7) << 5) | 0x1f, 0xfc]);
  expect(audioSeconds(bytes(...Array.from({ length: 86 }, () => one)))).toBeCloseTo((86 * 1024) / 44_100, 3);
});

describe("Ogg", () => {
  const page = (granule: number, payload: number[] | Uint8Array, serial = 7): Uint8Array =>
    bytes(
      text("OggS"),
      [0, 0],
      le(granule, 8),
      le(serial, 4),
      le(0, 8),
      [1, Math.min(255, payload.length)],
      payload,
    );
  test("Opus, its lead-in left out", () => {
    const head = bytes(text("OpusHead"), [1, 1], le(312, 2), le(48_000, 4), zeros(3));
    const file = bytes(page(0, head), page(48_000, zeros(200)), page(48_000 * 4 + 312, zeros(200)));
    expect(audioSeconds(file)).toBeCloseTo(4, 6);
  });
  test("Vorbis, whatever another stream in the file says", () => {
    const head = bytes([1], text("vorbis"), le(0, 4), [2], le(44_100, 4), zeros(14));
    const file = bytes(page(0, head), page(44_100 * 3, zeros(250)), page(9e9, zeros(250), 8));
    expect(audioSeconds(file)).toBeCloseTo(3, 6);
  });
});

describe("MP4", () => {
  const box = (name: string, ...inner: (number[] | Uint8Array)[]): Uint8Array => {
    const body = bytes(...inner);
    return bytes(be(8 + body.length, 4), text(name), body);
  };
  const header = (scale: number, length: number) => bytes(zeros(12), be(scale, 4), be(length, 4));
  const ftyp = box("ftyp", text("M4A "), zeros(4));
  test("by the movie's header, behind the sound", () => {
    const file = bytes(ftyp, box("mdat", zeros(5000)), box("moov", box("mvhd", header(1000, 7500))));
    expect(audioSeconds(file)).toBeCloseTo(7.5, 6);
  });
  test("long lengths", () => {
    const long = bytes([1, 0, 0, 0], zeros(16), be(44_100, 4), be(0, 4), be(44_100 * 6, 4));
    expect(audioSeconds(bytes(ftyp, box("moov", box("mvhd", long)), zeros(3000)))).toBeCloseTo(6, 6);
  });
  test("fragments of a live recorder", () => {
    const track = box("trak", box("tkhd", zeros(12), be(1, 4)), box("mdia", box("mdhd", header(1000, 0))));
    const moof = box(
      "moof",
      box("traf", box("tfhd", be(8, 4), be(1, 4), be(20, 4)), box("trun", zeros(4), be(50, 4))),
    );
    const file = bytes(ftyp, box("moov", box("mvhd", header(1000, 0)), track), moof, moof, moof, zeros(2000));
    expect(audioSeconds(file)).toBeCloseTo(3, 6);
  });
});

describe("WebM", () => {
  const element = (id: number[], ...inner: (number[] | Uint8Array)[]): Uint8Array => {
    const body = bytes(...inner);
    return bytes(id, be(0x10000000 + body.length, 4), body);
  };
  const ebml = element([0x1a, 0x45, 0xdf, 0xa3], zeros(4));
  const scale = element([0x2a, 0xd7, 0xb1], be(1_000_000, 3));
  const segment = [0x18, 0x53, 0x80, 0x67];
  const info = [0x15, 0x49, 0xa9, 0x66];
  test("by its duration", () => {
    const duration = Buffer.alloc(4);
    duration.writeFloatBE(4200);
    const file = bytes(
      ebml,
      element(segment, element(info, scale, element([0x44, 0x89], duration)), zeros(400)),
    );
    expect(audioSeconds(file)).toBeCloseTo(4.2, 3);
  });
  test("of a live recorder: by its last block, sizes left open", () => {
    const block = (at: number) => element([0xa3], [0x81], be(at, 2), [0x80], zeros(60));
    const cluster = (at: number) =>
      bytes(
        [0x1f, 0x43, 0xb6, 0x75, 0x01],
        Array.from({ length: 7 }, () => 0xff),
        element([0xe7], be(at, 2)),
        block(0),
        block(960),
      );
    const open = bytes(
      segment,
      [0x01],
      Array.from({ length: 7 }, () => 0xff),
    );
    expect(
      audioSeconds(bytes(ebml, open, element(info, scale), cluster(0), cluster(1000), cluster(2000))),
    ).toBeCloseTo(2.96, 3);
  });
});

describe("what cannot be true", () => {
  test("ten hours in a kilobyte count as what a kilobyte can hold", () => {
    const duration = Buffer.alloc(8);
    duration.writeDoubleBE(36_000_000);
    const head = bytes(
      [0x1a, 0x45, 0xdf, 0xa3, 0x80],
      [0x18, 0x53, 0x80, 0x67, 0x01],
      Array.from({ length: 7 }, () => 0xff),
    );
    const file = bytes(head, [0x15, 0x49, 0xa9, 0x66, 0x8b, 0x44, 0x89, 0x88], duration, zeros(1000));
    expect(audioSeconds(file)).toBeLessThan(20);
  });
  test("unknown formats and empty files", () => {
    expect(audioSeconds(new Uint8Array())).toBeUndefined();
    expect(audioSeconds(bytes(text("#!AMR\n"), zeros(500)))).toBeUndefined();
    expect(audioSeconds(bytes(text("<html>".repeat(100))))).toBeUndefined();
  });
  test("any bytes behind any magic number give a sane length or none, and quickly", () => {
    const magic = fc.constantFrom(
      text("RIFF\0\0\0\0WAVEfmt "), text("FORM\0\0\0\0AIFF"), text("fLaC\x80"), text("OggS"), [0xff, 0xfb, 0x90, 0xc0],
      [0, 0, 0, 8, ...text("ftyp"), 0, 0, 0, 40, ...text("moov")], [0x1a, 0x45, 0xdf, 0xa3], [0xff, 0xf1, 0x50, 0x80],
    ); // prettier-ignore
    fc.assert(
      fc.property(magic, fc.uint8Array({ maxLength: 400 }), (head, rest) => {
        const seconds = audioSeconds(bytes(head, rest));
        if (seconds !== undefined) expect(seconds > 0 && seconds <= 48 * 3600).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });
});
