// Texts of providers may repeat the key that they refuse: it goes before anybody reads, keeps or passes on what they said.
// Refuses to look for what is too short to tell from a word.

const SHORTEST = 4;
/**
 * Of a key that is made of several (AWS: id, secret, region) each part counts that is long enough to be a secret. A shorter key
 * may be a word that somebody's good answer has.
 */
const SHORTEST_SECRET = 12;
/** The place that a composed key names beside its secrets: a word of many answers, however long it is. */
const REGION = /^(?:af|ap|ca|cn|eu|il|me|mx|na|sa|us)(?:-[a-z]+)+(?:-\d{1,2})?$/;
/** Members of a service account's key that are no names and addresses. */
const SECRET_MEMBER = /key|secret|token|password/i;

/** The text with each of the keys, and the parts of composed ones, replaced by "***". */
export function withoutKeys(text: string, keys: readonly string[]): string {
  return withoutSecrets(
    text,
    keys.flatMap((key) => spelt([key, ...partsOf(key)].filter(({ length }) => length >= SHORTEST))),
  );
}

/** Of a key what no answer holds by chance, however good it is. */
export function secretsOf(key: string): readonly string[] {
  return spelt([key, ...partsOf(key)].filter(({ length }) => length >= SHORTEST_SECRET));
}

/** The text with each of the secrets replaced by "***". */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((clean, secret) => clean.replaceAll(secret, "***"), text);
}

/** JSON may put a stroke before a slash, as PHP's does. */
function spelt(secrets: readonly string[]): readonly string[] {
  if (!secrets.some((secret) => secret.includes("/"))) return secrets;
  return secrets.flatMap((secret) => [...new Set([secret, secret.replaceAll("/", String.raw`\/`)])]);
}

/** The secrets that a composed key is made of: `id|secret|region`, or the JSON of a service account. */
function partsOf(key: string): string[] {
  const parts = key.trimStart().startsWith("{") ? membersOf(key) : key.includes("|") ? key.split("|") : [];
  return parts
    .map((part) => part.trim())
    .filter((part) => part.length >= SHORTEST_SECRET && !REGION.test(part));
}

/** A private key is told line by line: JSON writes what parts them in its own way. */
function membersOf(key: string): string[] {
  try {
    return Object.entries(JSON.parse(key) as Record<string, unknown>)
      .filter(([name]) => SECRET_MEMBER.test(name))
      .flatMap(([, value]) => (typeof value === "string" ? value.split("\n") : []))
      .filter((line) => !line.startsWith("-----") && !line.startsWith("https://"));
  } catch {
    return [];
  }
}
