// Which encoding a client takes, and large answers of the console written in turns and put into it beside the event loop.
// Refuses what carries secrets and what another site's page asked for: the length of compressed text tells of its content.
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { nextTurn } from "../core/kit/turns.ts";

export type Encoding = "br" | "zstd" | "gzip";

/** Below this an answer is a packet either way. */
export const SMALL_BYTES = 1400;

/**
 * Quick levels: 2.7 MB of rows take a thread of the pool 11 and 24 ms and become a quarter of their size; the usual
 * level 6 takes twice to four times as long and saves another hundredth.
 */
const ZSTD_LEVEL = 3;
const GZIP_LEVEL = 4;

/** Names that mean the same (RFC 9110, 8.4.1.3). */
const ALIASES: Readonly<Record<string, string>> = { "x-gzip": "gzip" };

/** Weights by name, as Accept-Encoding says them; a weight that is no number counts as none. */
function weightsOf(header: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const part of header.toLowerCase().split(",")) {
    const [token = "", ...params] = part.split(";").map((each) => each.trim());
    if (token === "") continue;
    const weight = params.find((each) => each.startsWith("q="))?.slice(2);
    const q = weight === undefined ? 1 : Number(weight);
    weights.set(ALIASES[token] ?? token, Number.isFinite(q) ? q : 0);
  }
  return weights;
}

/**
 * The encoding that the client likes best of those offered; of equals the one that is offered first. Undefined: none, or
 * it likes the plain text more.
 */
export function bestEncoding<Offered extends Encoding>(
  header: string | null,
  offered: readonly Offered[],
): Offered | undefined {
  if (header === null || header === "") return undefined;
  const weights = weightsOf(header);
  const others = weights.get("*") ?? 0;
  let best: Offered | undefined;
  let bestWeight = 0;
  for (const encoding of offered) {
    const weight = weights.get(encoding) ?? others;
    if (weight > bestWeight) [best, bestWeight] = [encoding, weight];
  }
  // Plain text that is not named is taken, but nobody prefers it.
  return (weights.get("identity") ?? 0) > bestWeight ? undefined : best;
}

/** `vary` with Accept-Encoding, whatever stood there. */
export function varyByEncoding(vary: string | null | undefined): string {
  if (!vary) return "Accept-Encoding";
  const names = vary.split(",").map((name) => name.trim().toLowerCase());
  return names.includes("accept-encoding") || names.includes("*") ? vary : `${vary}, Accept-Encoding`;
}

/**
 * Answers with an owner's keys, codes or access token: sent as they are. Elsewhere nothing secret goes out (secrets are
 * sealed and do not come back); `test/http/encodings.test.ts` looks for secrets in every compressed answer.
 */
const SECRET_PATHS = ["/api/token", "/api/redemption", "/api/user/token"];

function carriesSecrets(request: Request): boolean {
  const { pathname } = new URL(request.url);
  return SECRET_PATHS.some((path) => pathname === path || pathname.startsWith(`${path}/`));
}

const gzipped = promisify(gzip);

async function encode(bytes: Uint8Array, encoding: "zstd" | "gzip"): Promise<Uint8Array<ArrayBuffer>> {
  const encoded =
    encoding === "zstd"
      ? await Bun.zstdCompress(bytes, { level: ZSTD_LEVEL })
      : await gzipped(bytes, { level: GZIP_LEVEL });
  return new Uint8Array(encoded.buffer as ArrayBuffer, encoded.byteOffset, encoded.byteLength);
}

/** Rows whose text takes a millisecond or two: a hundred thousand would hold up every call of the process for thirty. */
const ROWS_A_TURN = 4000;

/** Whether the text of an answer is written in several turns of the event loop. */
const isLong = (value: object): boolean =>
  Object.values(value).some((each) => Array.isArray(each) && each.length > ROWS_A_TURN);

/** The bytes of `JSON.stringify`; long lists of an answer are written piece by piece, and others come to their turn between two. */
async function writtenInTurns(value: object): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  const add = (text: string) => pieces.push(new TextEncoder().encode(text));
  add("{");
  let isFirst = true;
  for (const [name, each] of Object.entries(value) as [string, unknown][]) {
    // As JSON.stringify does: what has no text is left out.
    const text = Array.isArray(each) ? "" : JSON.stringify(each);
    if (text === undefined) continue;
    add(`${isFirst ? "" : ","}${JSON.stringify(name)}:${text}`);
    isFirst = false;
    if (!Array.isArray(each)) continue;
    add("[");
    for (let at = 0; at < each.length; at += ROWS_A_TURN) {
      if (at > 0) await nextTurn();
      add(`${at > 0 ? "," : ""}${JSON.stringify(each.slice(at, at + ROWS_A_TURN)).slice(1, -1)}`);
    }
    add("]");
  }
  add("}");
  return Buffer.concat(pieces) as Uint8Array<ArrayBuffer>;
}

interface Answer {
  request: Request;
  /** What the route's handler answered. */
  value: unknown;
  /** Headers so far; `vary` is added here, the rest is the framework's to merge. */
  headers: Record<string, string | number | string[] | undefined>;
  /** A page of another site made the browser ask: it may have put its guess into the address. */
  isForeign: boolean;
}

/**
 * A console answer in the client's encoding, or undefined where it goes out as it is: streams, files, finished answers
 * and whatever is small. Status and cookies stay with the framework, which merges them into what is returned here.
 */
export async function compressed({
  request,
  value,
  headers,
  isForeign,
}: Answer): Promise<Response | undefined> {
  const isJson = Array.isArray(value) || value?.constructor === Object;
  if (!isJson || carriesSecrets(request)) return undefined;
  const { vary } = headers;
  headers["vary"] = varyByEncoding(typeof vary === "string" ? vary : undefined);
  const encoding = bestEncoding(request.headers.get("accept-encoding"), ["zstd", "gzip"]);
  const type = { "content-type": "application/json;charset=utf-8" };
  const isInTurns = !Array.isArray(value) && isLong(value as object);
  const isPlain = encoding === undefined || isForeign;
  if (isPlain && !isInTurns) return undefined;
  const bytes = isInTurns
    ? await writtenInTurns(value as object)
    : new TextEncoder().encode(JSON.stringify(value));
  if (isPlain) return new Response(bytes, { headers: type });
  // Written once: the framework would write it again.
  if (bytes.byteLength < SMALL_BYTES) return new Response(bytes, { headers: type });
  const body = await encode(bytes, encoding);
  return new Response(body, { headers: { ...type, "content-encoding": encoding } });
}
