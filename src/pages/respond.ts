// The finished page as an answer: compressed once, in the best encoding the client takes.
// Refuses to compress what is small, and a signed-in visitor's page that another site opened: beside what that site put
// into the address, the length would tell of the keys on it.
import { gzipSync } from "node:zlib";
import { bestEncoding, SMALL_BYTES, varyByEncoding } from "../http/encodings.ts";
import { isForeignSite } from "../http/session.ts";
import type { Rendered } from "./render.tsx";

/** Good enough and quick: 65 KB of HTML in about half a millisecond. */
const ZSTD_LEVEL = 6;
const GZIP_LEVEL = 6;

/** `isSignedIn`: the page holds what is its visitor's alone. */
export function pageResponse(
  { html, headers, statusCode }: Rendered,
  request: Request,
  isSignedIn: boolean,
): Response {
  const bytes = new TextEncoder().encode(html);
  const vary = { ...headers, vary: varyByEncoding(headers["vary"]) };
  const isPlain = bytes.byteLength < SMALL_BYTES || (isSignedIn && isForeignSite(request));
  const encoding = isPlain
    ? undefined
    : bestEncoding(request.headers.get("accept-encoding"), ["zstd", "gzip"]);
  if (encoding === undefined) return new Response(bytes, { status: statusCode, headers: vary });
  const body =
    encoding === "zstd"
      ? Bun.zstdCompressSync(bytes, { level: ZSTD_LEVEL })
      : gzipSync(bytes, { level: GZIP_LEVEL });
  return new Response(new Uint8Array(body), {
    status: statusCode,
    headers: { ...vary, "content-encoding": encoding },
  });
}
