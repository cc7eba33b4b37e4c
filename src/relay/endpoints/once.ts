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

/** Whether a colon is what comes next, behind white space. */
const COLON = /[ \t\n\r]*:/y;

/** Whether a key may stand twice: quotes inside of texts are escaped. */
function mayRepeat(text: string, key: string): boolean {
  const quoted = `"${key}"`;
  let found = 0;
  for (let at = text.indexOf(quoted); at !== -1 && found < 2; at = text.indexOf(quoted, at)) {
    at += quoted.length;
    COLON.lastIndex = at;
    if (COLON.test(text)) found += 1;
  }
  return found === 2;
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

/** The first of `names` that stands twice: some servers take the first of two. Walks the text only where a key may. */
function repeatedName({ json, text }: RelayBody, names: ReadonlySet<string>): string | undefined {
  if (text === "") return undefined;
  // Of two that stand there one has been read.
  let stands = false;
  let walks = false;
  for (const name of names) {
    if (!Object.hasOwn(json, name)) continue;
    stands = true;
    walks ||= mayRepeat(text, name);
  }
  if (!stands || !(walks || (text.includes("\\u00") && LETTER_ESCAPE.test(text)))) return undefined;
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

/** Decides by whom the answer is waited for, and so whether it is billed at all. */
const BACKGROUND: ReadonlySet<string> = new Set(["background"]);

/** Where the texts of prompts stand: one of two would be screened, the other served. */
const SCREENED: ReadonlySet<string> = new Set([
  "messages",
  "prompt",
  "input",
  "instructions",
  "system",
  "contents",
  "systemInstruction",
  "system_instruction",
]);

/**
 * Throws a client's failure where a member that decides what the call costs could be read in two ways, or one that holds the prompt
 * where prompts are screened. What is paid by the tokens that its upstream reports costs the same whichever of two limits was read:
 * its long texts are not searched for those.
 */
export function checkOnce(
  endpoint: Pick<Endpoint, "refusalCode" | "readOnce" | "isMedia">,
  body: RelayBody,
  isScreened = false,
): void {
  const { readOnce, isMedia = false } = endpoint;
  let name = readOnce && otherSpelling(body.json, readOnce);
  if (readOnce && isMedia) name ??= repeatedName(body, readOnce);
  else if (readOnce?.has("background")) name ??= repeatedName(body, BACKGROUND);
  if (isScreened) name ??= ambiguousName(body, SCREENED);
  if (name !== undefined) throw refused(endpoint, "invalid_field", name, "must stand once, in this spelling");
}
