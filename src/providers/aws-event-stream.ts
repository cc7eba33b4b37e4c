// AWS's binary event stream (application/vnd.amazon.eventstream): length-prefixed frames with headers and checksums.
// Refuses frames whose checksums do not match, and frames larger than any event is.
import { Failure } from "../shared/failures.ts";

export interface AwsEvent {
  /** String headers such as `:event-type` and `:message-type`. */
  headers: Readonly<Record<string, string>>;
  payload: Uint8Array;
}

const PRELUDE_BYTES = 12;
const CRC_BYTES = 4;
const MAX_FRAME_BYTES = 16 * 1024 * 1024;
const STRING_TYPE = 7;
/** Bytes of a header value by its type code; -1 = a two-byte length goes before it. */
const VALUE_BYTES = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16];

function broken(what: string): Failure {
  return new Failure("broken-stream", "broken_stream", { internal: `event stream: ${what}` });
}

function headersOf(bytes: Uint8Array): Record<string, string> {
  const headers: Record<string, string> = {};
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const decoder = new TextDecoder();
  let at = 0;
  while (at < bytes.length) {
    const nameLength = view.getUint8(at);
    const name = decoder.decode(bytes.subarray(at + 1, at + 1 + nameLength));
    at += 1 + nameLength;
    const type = view.getUint8(at);
    at += 1;
    let size = VALUE_BYTES[type];
    if (size === undefined) throw broken("header type");
    if (size === -1) {
      size = view.getUint16(at);
      at += 2;
    }
    if (at + size > bytes.length) throw broken("header length");
    if (type === STRING_TYPE) headers[name] = decoder.decode(bytes.subarray(at, at + size));
    at += size;
  }
  return headers;
}

/** Takes bytes cut anywhere, gives whole events. */
export function createAwsEventReader(): { push: (chunk: Uint8Array) => AwsEvent[]; isEmpty: () => boolean } {
  let rest: Uint8Array = new Uint8Array(0);
  return {
    isEmpty: () => rest.length === 0,
    push(chunk) {
      const events: AwsEvent[] = [];
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      for (;;) {
        if (rest.length < PRELUDE_BYTES) return events;
        const view = new DataView(rest.buffer, rest.byteOffset, rest.byteLength);
        const total = view.getUint32(0);
        const headerBytes = view.getUint32(4);
        if (Bun.hash.crc32(rest.subarray(0, 8)) !== view.getUint32(8)) throw broken("prelude checksum");
        if (total > MAX_FRAME_BYTES || total < PRELUDE_BYTES + headerBytes + CRC_BYTES)
          throw broken("length");
        if (rest.length < total) return events;
        const crcAt = total - CRC_BYTES;
        if (Bun.hash.crc32(rest.subarray(0, crcAt)) !== view.getUint32(crcAt)) throw broken("checksum");
        const headerEnd = PRELUDE_BYTES + headerBytes;
        events.push({
          headers: headersOf(rest.subarray(PRELUDE_BYTES, headerEnd)),
          payload: rest.slice(headerEnd, crcAt),
        });
        rest = rest.subarray(total);
      }
    },
  };
}

/** One frame with string headers: what a provider sends; for fakes in tests and nothing else at present. */
export function encodeAwsEvent(headers: Readonly<Record<string, string>>, payload: Uint8Array): Uint8Array {
  const encoder = new TextEncoder();
  const parts: Uint8Array[] = [];
  for (const [name, value] of Object.entries(headers)) {
    const nameBytes = encoder.encode(name);
    const valueBytes = encoder.encode(value);
    parts.push(
      Uint8Array.of(nameBytes.length),
      nameBytes,
      Uint8Array.of(STRING_TYPE, valueBytes.length >> 8, valueBytes.length & 255),
      valueBytes,
    );
  }
  const head = Buffer.concat(parts);
  const total = PRELUDE_BYTES + head.length + payload.length + CRC_BYTES;
  const frame = Buffer.alloc(total);
  frame.writeUInt32BE(total, 0);
  frame.writeUInt32BE(head.length, 4);
  frame.writeUInt32BE(Bun.hash.crc32(frame.subarray(0, 8)), 8);
  frame.set(head, PRELUDE_BYTES);
  frame.set(payload, PRELUDE_BYTES + head.length);
  frame.writeUInt32BE(Bun.hash.crc32(frame.subarray(0, total - CRC_BYTES)), total - CRC_BYTES);
  return frame;
}
