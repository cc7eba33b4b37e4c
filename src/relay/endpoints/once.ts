// Members of a body that a price, a hold or a screen reads: each of them stands once, in its own spelling.
// Refuses bodies in which two readers could see two values, because one would be priced and the other served.
import { topLevelKeys } from "../wire/patch-json.ts";
import type { RelayBody } from "../wire/read-body.ts";
import { refused } from "./endpoint.ts";
import type { Endpoint } from "./endpoint.ts";

/** What another spelling of a plain key has: capitals, or letters that fold to plain ones. */
const FOLDING = /[A-Z\u0080-\uffff]/;

/** A plain letter or underscore behind an escape, by which a key could stand a second time. */
const LETTER_ESCAPE = /\\u00(?:[67]|5f)/i;

/** As readers that fold letters compare keys (Go's, by which many upstreams are written): the long s and the Kelvin sign too. */
function folded(key: string): string {
  return key.toUpperCase().toLowerCase();
}

/** Whether a key may stand twice: quotes inside of texts are escaped. */
function mayRepeat(text: string, key: string): boolean {
  const quoted = `"${key}"`;
  const first = text.indexOf(quoted);
  return first !== -1 && text.indexOf(quoted, first + quoted.length) !== -1;
}

/** The first of `names` that the body has in a second spelling: some servers match keys without regard to case. */
function otherSpelling(json: RelayBody["json"], names: ReadonlySet<string>): string | undefined {
  for (const key in json) {
    if (!FOLDING.test(key)) continue;
    const name = folded(key);
    if (names.has(name)) return name;
  }
  return undefined;
}

/** The first of `names` that stands twice: some servers take the first of two. Searches the whole text. */
function repeatedName({ json, text }: RelayBody, names: ReadonlySet<string>): string | undefined {
  if (text === "") return undefined;
  let walks = text.includes("\\u00") && LETTER_ESCAPE.test(text);
  for (const name of names) walks ||= name in json && mayRepeat(text, name);
  if (!walks) return undefined;
  const seen = new Set<string>();
  for (const key of topLevelKeys(text)) {
    if (names.has(key) && seen.has(key)) return key;
    seen.add(key);
  }
  return undefined;
}

/** The first of `names` that two readers of the body could read differently; undefined where there is none. */
export function ambiguousName(body: RelayBody, names: ReadonlySet<string>): string | undefined {
  return otherSpelling(body.json, names) ?? repeatedName(body, names);
}

/**
 * Throws a client's failure where a member that decides what the call costs could be read in two ways. What is paid by the
 * tokens that its upstream reports costs the same whichever of two limits was read: its long texts are not searched.
 */
export function checkOnce(
  endpoint: Pick<Endpoint, "refusalCode" | "readOnce" | "isMedia">,
  body: RelayBody,
): void {
  const { readOnce, isMedia = false } = endpoint;
  if (!readOnce) return;
  const name = isMedia ? ambiguousName(body, readOnce) : otherSpelling(body.json, readOnce);
  if (name !== undefined) throw refused(endpoint, "invalid_field", name, "must stand once, in this spelling");
}
