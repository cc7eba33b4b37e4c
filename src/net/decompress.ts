// Unpacks a compressed answer as it is read: asked for plain, an upstream may pack all the same.
// Refuses Bun's own unpacking, which takes whatever has arrived apart at once: 1.5 MB of gzip were 1.5 GB in memory.
import { Readable, pipeline } from "node:stream";
import type { Duplex } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";

/** Each gives some kilobytes at a time, and no more while nobody reads. */
const UNPACKERS: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

/** For fetch: the body comes as it was sent, and no compression is asked for. */
export const AS_SENT = { decompress: false } as const;

/** The same answer with a plain body. An encoding that nobody knows stays: its bytes are no answer. */
export function unpacked(response: Response): Response {
  const encoding = response.headers.get("content-encoding");
  if (encoding === null || !response.body) return response;
  const unpacker = UNPACKERS[encoding.trim().toLowerCase()];
  if (!unpacker) return response;
  const source = Readable.fromWeb(response.body as unknown as NodeStream<Uint8Array>);
  // A break on either side ends both; the reader is told by its own stream.
  const plain = pipeline(source, unpacker(), () => undefined);
  const { status, statusText } = response;
  const headers = new Headers(response.headers);
  headers.delete("content-encoding");
  headers.delete("content-length");
  return new Response(Readable.toWeb(plain) as unknown as ReadableStream<Uint8Array>, {
    status,
    statusText,
    headers,
  });
}
