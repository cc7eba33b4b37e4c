// Request ids: local time to the millisecond plus random characters, as clients of this API know them; and the header that
// tells programs which failure they read.

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

export const REQUEST_ID_HEADER = "X-Oneapi-Request-Id";

/** On every refusal: the stable code of docs/error-codes.md, whatever the dialect calls it. */
export const ERROR_CODE_HEADER = "x-weir-error-code";

let second = -1;
let prefix = "";
let counter = 0;

/**
 * Clients look for statuses in the text of an error, where the id stands: OpenCode 1.18 takes 429, 500, 502, 503, 504 and 524
 * anywhere in it for a reason to try again, also after a 404. A tenth of all ids would have one.
 */
const LIKE_A_STATUS = /4(?=29)|5(?=0[0234]|24)/g;

/**
 * `YYYYMMDDHHMMSS` + nine digits (milliseconds and a counter) + eight random characters: sorts by time. Where digits would
 * read like a status that clients retry, an underline stands in between.
 */
export function newRequestId(nowMs = Date.now()): string {
  const now = Math.floor(nowMs / 1000);
  if (now !== second) {
    second = now;
    const d = new Date(nowMs);
    const two = (n: number) => String(n).padStart(2, "0");
    prefix = `${d.getFullYear()}${two(d.getMonth() + 1)}${two(d.getDate())}${two(d.getHours())}${two(d.getMinutes())}${two(d.getSeconds())}`;
  }
  counter = (counter + 1) % 1_000_000;
  let tail = "";
  for (let i = 0; i < 8; i++) tail += ALPHABET[(Math.random() * ALPHABET.length) | 0];
  const id = prefix + String(nowMs % 1000).padStart(3, "0") + String(counter).padStart(6, "0") + tail;
  return id.replace(LIKE_A_STATUS, "$&_");
}
