// Texts of providers may repeat the key that they refuse: it goes before anybody reads, keeps or passes on what they said.
// Refuses to look for what is too short to tell from a word.

const SHORTEST = 4;
/** Of a key that is made of several (AWS: id, secret, region) each part counts that is long enough to be a secret. */
const SHORTEST_PART = 12;

/** The text with each of the keys, and the parts of composed ones, replaced by "***". */
export function withoutKeys(text: string, keys: readonly string[]): string {
  let clean = text;
  for (const key of keys) {
    if (key.length < SHORTEST) continue;
    clean = clean.replaceAll(key, "***");
    if (!key.includes("|")) continue;
    for (const part of key.split("|"))
      if (part.length >= SHORTEST_PART) clean = clean.replaceAll(part, "***");
  }
  return clean;
}
