// Reads a relay request's body once: the client's own bytes, unpacked when compressed, and the JSON object in them.
// Refuses bodies above the cap before and after unpacking, broken compression, broken JSON and absurd nesting.
import { brotliDecompress, gunzip, inflate, zstdDecompress } from "node:zlib";
import type { InputType } from "node:zlib";
import { receive } from "../../http/receive.ts";
import { isTooDense } from "../../shared/json-size.ts";
import type { JsonBounds } from "../../shared/json-size.ts";
import { Failure } from "../../shared/failures.ts";
import type { BodyWatch } from "./body-budget.ts";
import { formFields, parseForm } from "./multipart.ts";
import type { Form } from "./multipart.ts";

export interface RelayBody {
  /** The request as sent upstream when nothing has to change. */
  bytes: Uint8Array<ArrayBuffer>;
  text: string;
  json: Record<string, unknown>;
  /** Multipart bodies only; `json` then holds the form's text fields, and `text` is empty. */
  form?: Form;
}

/** Deeper nesting than any client builds, shallow enough for every recursive reader. */
const MAX_DEPTH = 512;
/** Smaller bodies cannot nest deep enough to hurt. */
const DEPTH_CHECK_CHARS = 4 * MAX_DEPTH;

/** Smaller bodies are parsed in a moment, whatever is in them. */
const LARGE_BYTES = 1024 * 1024;
/** Far more than any conversation has, less than a second of parsing: 64 MiB of empty lists took five, and 1.7 GB. */
const BODY_BOUNDS: JsonBounds = { members: 250_000, containers: 500_000, values: 4_000_000 };

const tooLarge = (maxBytes: number): Failure =>
  new Failure("client", "body_too_large", {
    status: 413,
    params: { limit: `${Math.floor(maxBytes / 1024 / 1024)} MiB` },
    type: "invalid_request_error",
  });

function invalidJson(reason: string): Failure {
  return new Failure("client", "invalid_json", { params: { reason }, type: "invalid_request_error" });
}

/** Bun reads so much by itself, and closes a connection on which it does not come in time. */
const SMALL_BODY_BYTES = 64 * 1024;
/** The largest body over a slow line. */
const TOTAL_MS = 30 * 60_000;

/** What a compressed body may unpack to: no text of a conversation packs better, and a bomb is worth little. */
const MAX_RATIO = 64;
const UNPACKED_FLOOR_BYTES = 4 * 1024 * 1024;

type Unpack = (
  data: InputType,
  options: { maxOutputLength: number; finishFlush?: number },
  done: (error: Error | null, result: Buffer) => void,
) => void;

const UNPACKERS: Record<string, Unpack> = {
  gzip: gunzip as Unpack,
  "x-gzip": gunzip as Unpack,
  deflate: inflate as Unpack,
  br: brotliDecompress as Unpack,
  zstd: zstdDecompress as Unpack,
};

function unpack(
  bytes: Uint8Array<ArrayBuffer>,
  encoding: string,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const maxOutputLength = Math.min(maxBytes, Math.max(UNPACKED_FLOOR_BYTES, MAX_RATIO * bytes.length));
  const run = UNPACKERS[encoding];
  if (!run) {
    throw new Failure("client", "encoding_unsupported", {
      status: 415,
      params: { encoding },
      type: "invalid_request_error",
    });
  }
  return new Promise((resolve, reject) => {
    // Counted while it unpacks, on a thread of its own.
    run(bytes, { maxOutputLength }, (error, result) => {
      if (!error)
        return resolve(new Uint8Array(result.buffer as ArrayBuffer, result.byteOffset, result.length));
      const isTooLarge = (error as { code?: string }).code === "ERR_BUFFER_TOO_LARGE";
      reject(
        isTooLarge
          ? maxOutputLength === maxBytes
            ? tooLarge(maxBytes)
            : new Failure("client", "body_unpacks_too_large", { status: 413, type: "invalid_request_error" })
          : new Failure("client", "encoding_broken", {
              params: { encoding },
              type: "invalid_request_error",
            }),
      );
    });
  });
}

/** The body's bytes, unpacked, at most `maxBytes` long; `owner` is the account that sends it. */
export async function readBytes(
  request: Request,
  maxBytes: number,
  watch: BodyWatch,
  owner: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const { headers } = request;
  const announced = headers.get("content-length");
  const length = Number(announced);
  if (announced !== null && length > maxBytes) throw tooLarge(maxBytes);
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    if ((announced !== null && length <= SMALL_BODY_BYTES) || request.body === null)
      bytes = await request.bytes();
    else
      bytes = await receive(request.body, {
        maxBytes,
        totalMs: TOTAL_MS,
        arrived(piece) {
          watch.grow(request, owner, piece);
          watch.alive(request);
        },
        tooLarge: () => tooLarge(maxBytes),
      });
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("client", "body_unreadable", { cause: error, type: "invalid_request_error" });
  }
  const encoding = headers.get("content-encoding")?.trim().toLowerCase();
  if (encoding === undefined || encoding === "" || encoding === "identity") return bytes;
  for (const layer of encoding.split(",").reverse()) {
    const name = layer.trim();
    if (name === "identity") continue;
    bytes = await unpack(bytes, name, maxBytes);
    watch.grow(request, owner, bytes.length);
  }
  return bytes;
}

/** Whether the text nests deeper than MAX_DEPTH; hops over strings, so prompts cost nothing. */
function isTooDeep(text: string): boolean {
  const marks = /["[\]{}]/g;
  let depth = 0;
  for (let found = marks.exec(text); found; found = marks.exec(text)) {
    const mark = found[0];
    if (mark === '"') {
      marks.lastIndex = endOfString(text, found.index);
    } else if (mark === "[" || mark === "{") {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else depth -= 1;
  }
  return false;
}

/** Index behind the closing quote of the string that begins at `from`. */
export function endOfString(text: string, from: number): number {
  let at = from + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote === -1) return text.length;
    let slashes = 0;
    while (text.charCodeAt(quote - 1 - slashes) === 0x5c) slashes += 1;
    at = quote + 1;
    if (slashes % 2 === 0) return at;
  }
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** UTF-8 as text, a byte order mark included; broken sequences become U+FFFD. */
export function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** The body as a JSON object. The content type does not matter: proxies lose it, and nothing else would be understood. */
export function parseBody(bytes: Uint8Array<ArrayBuffer>): RelayBody {
  if (bytes.length > LARGE_BYTES && isTooDense(bytes, BODY_BOUNDS)) throw invalidJson("too many values");
  const text = textOf(bytes);
  let json: unknown;
  try {
    json = JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  } catch (error) {
    throw invalidJson(error instanceof Error ? error.message : "syntax");
  }
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw invalidJson("not a JSON object");
  if (text.length > DEPTH_CHECK_CHARS && isTooDeep(text)) throw invalidJson("nested too deeply");
  return { bytes, text, json: json as Record<string, unknown> };
}

export async function readBody(
  request: Request,
  maxBytes: number,
  watch: BodyWatch,
  owner: number,
): Promise<RelayBody> {
  const bytes = await readBytes(request, maxBytes, watch, owner);
  return parseBody(bytes);
}

/** A multipart body. `stream` is the one field that means the same as in JSON: true or false. */
export async function readForm(
  request: Request,
  maxBytes: number,
  refusalCode: string,
  watch: BodyWatch,
  owner: number,
): Promise<RelayBody> {
  const bytes = await readBytes(request, maxBytes, watch, owner);
  let form: Form;
  let json: Record<string, unknown>;
  try {
    form = parseForm(bytes, request.headers.get("content-type"));
    json = formFields(form);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { code, params, param } = error;
    throw new Failure("client", code, {
      params,
      wireCode: refusalCode,
      ...(param === undefined ? {} : { param }),
    });
  }
  if (json["stream"] === "true") json["stream"] = true;
  else if (json["stream"] === "false") json["stream"] = false;
  return { bytes, text: "", json, form };
}
