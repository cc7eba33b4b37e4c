// How long an uploaded recording is, read from its container: WAV, AIFF, FLAC, MP3, AAC, Ogg, MP4/M4A, WebM/Matroska.
// Refuses to decode sound, to believe a length that the file is too small or too large for, and any number of a head that
// decoders pass over; unknown formats read as undefined.
//
// Why by hand: this length is money, and any bytes may come. music-metadata 12.1 takes an MP3 of variable rate for one of
// its first frames' rate (4.57 s for 2.61) and finds no length in what live recorders write (open WAV, WebM, MP4
// fragments); mediabunny 1.61 counts frames as this does, but 25 MB of the smallest hold the event loop for 6.1 s (0.4 s
// here), a FLAC head without frames holds it for ever, and AIFF is unknown to it.

type Bytes = Uint8Array;

/** No codec in use goes below: a recording cannot be longer than its bytes at this rate. */
const MIN_BITS_PER_SECOND = 500;
const MAX_SECONDS = 48 * 3600;

/** Seconds, or undefined when the format is unknown or its head is broken. */
export function audioSeconds(bytes: Bytes): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let seconds: number | undefined;
  try {
    seconds = readDuration(bytes, view);
  } catch {
    // A head that points behind the end of the file.
    return undefined;
  }
  if (seconds === undefined || !Number.isFinite(seconds) || seconds <= 0) return undefined;
  return Math.min(seconds, MAX_SECONDS, Math.max(1, (bytes.length * 8) / MIN_BITS_PER_SECOND));
}

function readDuration(bytes: Bytes, view: DataView): number | undefined {
  if (bytes.length < 12) return undefined;
  const four = tag(bytes, 0);
  if (four === "RIFF" && tag(bytes, 8) === "WAVE") return wav(bytes, view);
  if (four === "FORM") return aiff(bytes, view);
  if (four === "fLaC") return flac(bytes, view, 4);
  if (four === "OggS") return ogg(bytes, view);
  if (tag(bytes, 4) === "ftyp") return mp4(bytes, view);
  if (view.getUint32(0) === 0x1a45dfa3) return matroska(bytes, view);
  return frames(bytes, view);
}

function tag(bytes: Bytes, at: number): string {
  return String.fromCharCode(bytes[at] ?? 0, bytes[at + 1] ?? 0, bytes[at + 2] ?? 0, bytes[at + 3] ?? 0);
}

/** Samples as they are: integers, floats, and the form that names either behind its head. */
const PLAIN_WAVES: ReadonlySet<number> = new Set([1, 3, 0xfffe]);
const MP3_WAVE = 0x55;
/** Bytes that compressed sound needs at most for a sample: as the two laws do, which no decoder asks how much. */
const MOST_COMPRESSED = 1;

/**
 * The data chunk's own length is not believed beyond the file: streams leave it at 0 or at its maximum. Nor is the head's
 * bytes per second, which no decoder of plain samples reads. Decoders take the first head and all data.
 */
function wav(bytes: Bytes, view: DataView): number | undefined {
  let format: number | undefined;
  let byteRate = 0;
  let data = 0;
  let first = 0;
  for (let at = 12; at + 8 <= bytes.length;) {
    const name = tag(bytes, at);
    const size = view.getUint32(at + 4, true);
    if (name === "fmt " && format === undefined) {
      format = view.getUint16(at + 8, true);
      byteRate = waveRate(view, at, format);
    }
    const isOpen = name === "data" && size === 0;
    if (name === "data") {
      const left = bytes.length - at - 8;
      data += isOpen ? left : Math.min(size, left);
      if (first === 0) first = at + 8;
    }
    if (isOpen) break;
    at += 8 + size + (size % 2);
  }
  if (format === MP3_WAVE && first > 0) return frames(bytes.subarray(first), offsetView(view, first));
  return byteRate > 0 && data > 0 ? data / byteRate : undefined;
}

function waveRate(view: DataView, at: number, format: number): number {
  const perSecond = view.getUint16(at + 10, true) * view.getUint32(at + 12, true);
  if (PLAIN_WAVES.has(format)) return perSecond * Math.ceil(view.getUint16(at + 22, true) / 8);
  return Math.min(view.getUint32(at + 16, true), perSecond * MOST_COMPRESSED);
}

const offsetView = (view: DataView, from: number): DataView =>
  new DataView(view.buffer, view.byteOffset + from, view.byteLength - from);

/** By the head's number of samples, no less than the sound's own bytes make as plain samples. */
function aiff(bytes: Bytes, view: DataView): number | undefined {
  let told: number | undefined;
  let byteRate = 0;
  let data = 0;
  for (let at = 12; at + 8 <= bytes.length;) {
    const name = tag(bytes, at);
    const size = view.getUint32(at + 4);
    if (name === "COMM" && told === undefined) {
      // An 80-bit float: whole sample rates need its exponent and the upper half of its mantissa only.
      const exponent = (view.getUint16(at + 16) & 0x7fff) - 16383;
      const rate = view.getUint32(at + 18) * 2 ** (exponent - 31);
      told = view.getUint32(at + 10) / rate;
      byteRate = rate * view.getUint16(at + 8) * Math.ceil(view.getUint16(at + 14) / 8);
    }
    if (name === "SSND") data += Math.min(size, bytes.length - at - 8);
    at += 8 + size + (size % 2);
  }
  return told === undefined ? undefined : Math.max(told, byteRate > 0 ? data / byteRate : 0);
}

/** Codes of a frame's head; undefined: as the stream's head says. */
const FLAC_RATES = [undefined, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000];
const FLAC_BITS = [undefined, 8, 12, undefined, 16, 20, 24, 32];

/**
 * By the head's number of samples, which decoders do not read, so that it counts no less than the sound would be long
 * uncompressed: by the first frame's own rate, channels and bits.
 */
function flac(bytes: Bytes, view: DataView, start: number): number | undefined {
  if (((bytes[start] ?? 0) & 0x7f) !== 0) return undefined;
  const info = start + 4;
  const packed = view.getUint32(info + 10);
  const rate = packed >>> 12;
  const samples = ((bytes[info + 13] ?? 0) & 0x0f) * 2 ** 32 + view.getUint32(info + 14);
  if (rate === 0 || samples === 0) return undefined;
  let at = start;
  for (let isLast = false; !isLast && at + 4 <= bytes.length;) {
    isLast = (view.getUint8(at) & 0x80) !== 0;
    at += 4 + (view.getUint32(at) & 0xffffff);
  }
  const isFrame = at + 4 <= bytes.length && view.getUint16(at) >>> 2 === 0x3ffe;
  const [codes, more] = isFrame ? [view.getUint8(at + 2) & 15, view.getUint8(at + 3)] : [0, 0];
  const assigned = more >>> 4;
  const channels = isFrame ? (assigned < 8 ? assigned + 1 : 2) : ((packed >>> 9) & 7) + 1;
  const bits = FLAC_BITS[(more >>> 1) & 7] ?? ((packed >>> 4) & 31) + 1;
  const bitRate = (FLAC_RATES[codes] ?? rate) * channels * bits;
  return Math.max(samples / rate, ((bytes.length - at) * 8) / bitRate);
}

// --- MP3 and AAC: counted frame by frame, because variable rates make every shortcut a guess ---------------------------

const MP3_RATES: readonly (readonly number[])[] = [
  [11025, 12000, 8000],
  [],
  [22050, 24000, 16000],
  [44100, 48000, 32000],
];
/** Kilobits per second by layer: version 1, then versions 2 and 2.5. */
const MP3_KBPS: Readonly<Record<string, readonly number[]>> = {
  "1-1": [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  "1-2": [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  "1-3": [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  "2-1": [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  "2-2": [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};
const AAC_RATES = [96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350];
const AAC_SAMPLES = 1024;
/** Bytes that are no frames before the rest is given up. */
const MAX_MISSES = 256 * 1024;

interface Frame {
  bytes: number;
  seconds: number;
}

function mp3Frame(head: number): Frame | undefined {
  const version = (head >>> 19) & 3;
  const layer = 4 - ((head >>> 17) & 3);
  const rate = MP3_RATES[version]?.[(head >>> 10) & 3];
  const generation = version === 3 ? 1 : 2;
  const table = MP3_KBPS[`${generation}-${generation === 2 && layer === 3 ? 2 : layer}`];
  const kbps = table?.[(head >>> 12) & 15];
  if (layer === 4 || !rate || !kbps) return undefined;
  const padding = (head >>> 9) & 1;
  const samples = layer === 1 ? 384 : layer === 2 || generation === 1 ? 1152 : 576;
  const size =
    layer === 1
      ? (Math.floor((12 * kbps * 1000) / rate) + padding) * 4
      : Math.floor(((samples / 8) * kbps * 1000) / rate) + padding;
  return { bytes: size, seconds: samples / rate };
}

function aacFrame(view: DataView, at: number): Frame | undefined {
  const rate = AAC_RATES[(view.getUint8(at + 2) >>> 2) & 15];
  const size =
    ((view.getUint8(at + 3) & 3) << 11) | (view.getUint8(at + 4) << 3) | (view.getUint8(at + 5) >>> 5);
  if (!rate || size < 7) return undefined;
  return { bytes: size, seconds: AAC_SAMPLES / rate };
}

function frames(bytes: Bytes, view: DataView): number | undefined {
  let at = 0;
  while (tag(bytes, at).startsWith("ID3")) {
    const size =
      ((bytes[at + 6] ?? 0) << 21) |
      ((bytes[at + 7] ?? 0) << 14) |
      ((bytes[at + 8] ?? 0) << 7) |
      (bytes[at + 9] ?? 0);
    at += 10 + size;
  }
  const frameAt = (place: number): Frame | undefined => {
    if (place + 7 > bytes.length) return undefined;
    const head = view.getUint32(place);
    if (head >>> 21 !== 0x7ff) return undefined;
    // ADTS has no layer.
    const isAac = head >>> 20 === 0xfff && ((head >>> 17) & 3) === 0;
    return isAac ? aacFrame(view, place) : mp3Frame(head);
  };
  let seconds = 0;
  let misses = 0;
  let isInStep = false;
  while (at + 7 <= bytes.length && misses < MAX_MISSES) {
    const frame = frameAt(at);
    const next = frame ? at + frame.bytes : 0;
    // Two bytes of anything may look like a frame; one behind the other they are frames.
    if (frame && (isInStep || next + 7 > bytes.length || frameAt(next))) {
      seconds += frame.seconds;
      at = next;
      isInStep = true;
      continue;
    }
    // A tag at the end, or a damaged place: look for the next frame.
    isInStep = false;
    at += 1;
    misses += 1;
  }
  return seconds > 0 ? seconds : undefined;
}

// --- Ogg ----------------------------------------------------------------------------------------------------------------

const OPUS_RATE = 48_000;

function ogg(bytes: Bytes, view: DataView): number | undefined {
  const segments = bytes[26] ?? 0;
  const packet = 27 + segments;
  let rate: number | undefined;
  let skipped = 0;
  if (tag(bytes, packet) === "Opus") {
    rate = OPUS_RATE;
    skipped = view.getUint16(packet + 10, true);
  } else if (tag(bytes, packet + 1) === "vorb") rate = view.getUint32(packet + 12, true);
  else if (tag(bytes, packet) === "Spee") rate = view.getUint32(packet + 36, true);
  else if (tag(bytes, packet + 1) === "FLAC") rate = view.getUint32(packet + 27) >>> 12;
  if (!rate) return undefined;
  const serial = view.getUint32(14, true);
  // The last page of the stream says where it ends.
  for (let at = bytes.length - 27; at >= 0; at--) {
    if (bytes[at] !== 0x4f || tag(bytes, at) !== "OggS" || view.getUint32(at + 14, true) !== serial) continue;
    const high = view.getUint32(at + 10, true);
    const low = view.getUint32(at + 6, true);
    if (high === 0xffffffff) continue;
    return Math.max(0, high * 2 ** 32 + low - skipped) / rate;
  }
  return undefined;
}

// --- MP4 ----------------------------------------------------------------------------------------------------------------

interface Box {
  name: string;
  from: number;
  to: number;
}

function* boxes(bytes: Bytes, view: DataView, from: number, to: number): Generator<Box> {
  for (let at = from; at + 8 <= to;) {
    let size = view.getUint32(at);
    let head = 8;
    if (size === 1) {
      size = view.getUint32(at + 8) * 2 ** 32 + view.getUint32(at + 12);
      head = 16;
    } else if (size === 0) size = to - at;
    if (size < head) return;
    yield { name: tag(bytes, at + 4), from: at + head, to: Math.min(at + size, to) };
    at += size;
  }
}

/** Time scale and duration, which stand alike in `mvhd` and `mdhd`. */
function headerSeconds(view: DataView, at: number): number {
  const isLong = view.getUint8(at) === 1;
  const scale = view.getUint32(at + (isLong ? 20 : 12));
  const length = isLong
    ? view.getUint32(at + 24) * 2 ** 32 + view.getUint32(at + 28)
    : view.getUint32(at + 16);
  // All bits set: unknown.
  return scale > 0 && length < (isLong ? 2 ** 63 : 0xffffffff) ? length / scale : 0;
}

function mp4(bytes: Bytes, view: DataView): number | undefined {
  let seconds = 0;
  let fragments = 0;
  const scales = new Map<number, number>();
  for (const box of boxes(bytes, view, 0, bytes.length)) {
    if (box.name === "moov") {
      for (const inner of boxes(bytes, view, box.from, box.to)) {
        if (inner.name === "mvhd") seconds = Math.max(seconds, headerSeconds(view, inner.from));
        if (inner.name === "trak")
          readTrack(bytes, view, inner, scales, (each) => (seconds = Math.max(seconds, each)));
        if (inner.name === "mvex")
          for (const ext of boxes(bytes, view, inner.from, inner.to))
            if (ext.name === "mehd") fragments = Math.max(fragments, view.getUint32(ext.from + 4));
      }
    }
    if (box.name === "moof") seconds += fragmentSeconds(bytes, view, box, scales);
  }
  return seconds > 0 ? seconds : undefined;
}

function readTrack(
  bytes: Bytes,
  view: DataView,
  track: Box,
  scales: Map<number, number>,
  found: (seconds: number) => void,
): void {
  let id = 0;
  for (const box of boxes(bytes, view, track.from, track.to)) {
    if (box.name === "tkhd") id = view.getUint32(box.from + (view.getUint8(box.from) === 1 ? 20 : 12));
    if (box.name !== "mdia") continue;
    for (const inner of boxes(bytes, view, box.from, box.to)) {
      if (inner.name !== "mdhd") continue;
      found(headerSeconds(view, inner.from));
      scales.set(id, view.getUint32(inner.from + (view.getUint8(inner.from) === 1 ? 20 : 12)));
    }
  }
}

/** Recorders that write as they record leave the length out and put samples into fragments. */
function fragmentSeconds(bytes: Bytes, view: DataView, moof: Box, scales: Map<number, number>): number {
  for (const track of boxes(bytes, view, moof.from, moof.to)) {
    if (track.name !== "traf") continue;
    let perSample = 0;
    let scale = 0;
    let ticks = 0;
    for (const box of boxes(bytes, view, track.from, track.to)) {
      const flags = view.getUint32(box.from) & 0xffffff;
      if (box.name === "tfhd") {
        scale = scales.get(view.getUint32(box.from + 4)) ?? 0;
        const at = box.from + 8 + ((flags & 1) !== 0 ? 8 : 0) + ((flags & 2) !== 0 ? 4 : 0);
        if ((flags & 8) !== 0) perSample = view.getUint32(at);
      }
      if (box.name === "trun") ticks += runTicks(view, box, flags, perSample);
    }
    if (scale > 0 && ticks > 0) return ticks / scale;
  }
  return 0;
}

function runTicks(view: DataView, box: Box, flags: number, perSample: number): number {
  const count = view.getUint32(box.from + 4);
  if ((flags & 0x100) === 0) return count * perSample;
  let at = box.from + 8 + ((flags & 1) !== 0 ? 4 : 0) + ((flags & 4) !== 0 ? 4 : 0);
  const step = 4 * [0x100, 0x200, 0x400, 0x800].filter((flag) => (flags & flag) !== 0).length;
  let ticks = 0;
  for (let i = 0; i < count && at + 4 <= box.to; i++, at += step) ticks += view.getUint32(at);
  return ticks;
}

// --- WebM and Matroska ---------------------------------------------------------------------------------------------------

const SEGMENT = 0x18538067;
const INFO = 0x1549a966;
const TIMECODE_SCALE = 0x2ad7b1;
const DURATION = 0x4489;
const CLUSTER = 0x1f43b675;
const TIMECODE = 0xe7;
const SIMPLE_BLOCK = 0xa3;
const BLOCK_GROUP = 0xa0;
const BLOCK = 0xa1;

/** A number of variable length: the first byte's leading zeros say how long it is. */
function vint(
  bytes: Bytes,
  at: number,
  keepsMark: boolean,
): { value: number; next: number; isUnknown: boolean } {
  const first = bytes[at] ?? 0;
  const length = Math.clz32(first) - 23;
  if (length > 8) throw new RangeError("no such number");
  let value = keepsMark ? first : first & (0xff >>> length);
  let isUnknown = !keepsMark && value === 0xff >>> length;
  for (let i = 1; i < length; i++) {
    const byte = bytes[at + i] ?? 0;
    value = value * 256 + byte;
    isUnknown &&= byte === 0xff;
  }
  return { value, next: at + length, isUnknown };
}

function matroska(bytes: Bytes, view: DataView): number | undefined {
  let scaleNs = 1_000_000;
  let duration: number | undefined;
  let cluster = 0;
  let last = 0;
  const whole = (from: number, to: number): number => {
    let value = 0;
    for (let i = from; i < to; i++) value = value * 256 + (bytes[i] ?? 0);
    return value;
  };
  const block = (from: number): void => {
    const track = vint(bytes, from, false);
    last = Math.max(last, cluster + view.getInt16(track.next));
  };
  const walk = (from: number, to: number): void => {
    for (let at = from; at < to;) {
      // No number begins with a zero: what follows is damaged, what was read stands.
      if (bytes[at] === 0 || bytes[at + 1] === undefined) return;
      const id = vint(bytes, at, true);
      if (bytes[id.next] === 0) return;
      const size = vint(bytes, id.next, false);
      const end = size.isUnknown ? to : Math.min(size.next + size.value, to);
      if (id.value === TIMECODE_SCALE) scaleNs = whole(size.next, end);
      else if (id.value === DURATION)
        duration = end - size.next === 8 ? view.getFloat64(size.next) : view.getFloat32(size.next);
      else if (id.value === TIMECODE) cluster = whole(size.next, end);
      else if (id.value === SIMPLE_BLOCK || id.value === BLOCK) block(size.next);
      // Live recorders leave sizes open: what is inside is read as if it stood beside.
      if ([SEGMENT, INFO, CLUSTER, BLOCK_GROUP].includes(id.value)) at = size.next;
      else at = end;
      if (duration !== undefined && id.value === CLUSTER) return;
    }
  };
  walk(0, bytes.length);
  const ticks = duration !== undefined && duration > 0 ? duration : last;
  return (ticks * scaleNs) / 1e9;
}
