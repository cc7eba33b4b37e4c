// AWS's binary event stream (application/vnd.amazon.eventstream): messages with headers, guarded by two checksums.
// Refuses messages whose checksums do not fit, and lengths beyond 16 MB, which the format itself forbids.
import { brokenStream } from "../../protocol/assemble.ts";
import type { ByteDecoder } from "./answers.ts";

export interface AwsMessage {
  /** Text headers by name, ":event-type" among them; headers of other types are read over. */
  headers: Readonly<Record<string, string>>;
  payload: Uint8Array;
}

const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const TEXT_TYPE = 7;
/** Sizes of header values by type; 6 and 7 carry their own length. */
const VALUE_BYTES: Readonly<Record<number, number>> = { 0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16 };

function crc32(bytes: Uint8Array): number {
  return Bun.hash.crc32(bytes) >>> 0;
}

function readHeaders(bytes: Buffer): Record<string, string> {
  const headers: Record<string, string> = {};
  let at = 0;
  const need = (count: number): void => {
    if (at + count > bytes.length) throw brokenStream("event stream: header beyond its block");
  };
  while (at < bytes.length) {
    const nameBytes = bytes.readUInt8(at++);
    need(nameBytes + 1);
    const name = bytes.toString("utf8", at, at + nameBytes);
    at += nameBytes;
    const type = bytes.readUInt8(at++);
    let size = VALUE_BYTES[type];
    if (size === undefined) {
      if (type !== 6 && type !== TEXT_TYPE) throw brokenStream(`event stream: header type ${type}`);
      need(2);
      size = bytes.readUInt16BE(at);
      at += 2;
    }
    need(size);
    if (type === TEXT_TYPE) headers[name] = bytes.toString("utf8", at, at + size);
    at += size;
  }
  return headers;
}

/** Messages as their last byte arrives; chunks may be cut anywhere. Throws a broken stream for damaged ones. */
export function createAwsEventReader(): ByteDecoder<AwsMessage> {
  let pieces: Uint8Array[] = [];
  let held = 0;
  /** Bytes needed before there is anything to read. */
  let wanted = PRELUDE_BYTES;

  const take = (buffer: Buffer, out: AwsMessage[]): Buffer => {
    let at = 0;
    wanted = PRELUDE_BYTES;
    while (buffer.length - at >= PRELUDE_BYTES) {
      const total = buffer.readUInt32BE(at);
      const headerBytes = buffer.readUInt32BE(at + 4);
      if (crc32(buffer.subarray(at, at + 8)) !== buffer.readUInt32BE(at + 8))
        throw brokenStream("event stream: prelude checksum");
      if (total > MAX_MESSAGE_BYTES || total < PRELUDE_BYTES + headerBytes + CHECKSUM_BYTES)
        throw brokenStream("event stream: message length");
      if (buffer.length - at < total) {
        wanted = total;
        break;
      }
      const end = at + total - CHECKSUM_BYTES;
      if (crc32(buffer.subarray(at, end)) !== buffer.readUInt32BE(end))
        throw brokenStream("event stream: message checksum");
      const payloadAt = at + PRELUDE_BYTES + headerBytes;
      out.push({
        headers: readHeaders(buffer.subarray(at + PRELUDE_BYTES, payloadAt)),
        payload: buffer.subarray(payloadAt, end),
      });
      at += total;
    }
    return buffer.subarray(at);
  };

  return {
    push(chunk) {
      const out: AwsMessage[] = [];
      pieces.push(chunk);
      held += chunk.length;
      if (held < wanted) return out;
      const rest = take(Buffer.concat(pieces), out);
      pieces = rest.length > 0 ? [rest] : [];
      held = rest.length;
      return out;
    },
    end() {
      if (held > 0) throw brokenStream("event stream: cut inside a message");
      return [];
    },
  };
}
