// Texts that hold many things: what somebody typed over one of them, put over a newer one, so that nobody takes back what others
// stored meanwhile. Where both changed the same entry, the typed one stands; of a list's same element, both.
// Refuses to guess: a text that is not of one kind with the others stays as it was typed.

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function read(text: string, blank: unknown): unknown {
  if (text.trim() === "") return blank;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** As typed, without what others took away, and with what they added. */
function rebasedElements<T>(
  stored: readonly T[],
  typed: readonly T[],
  newer: readonly T[],
  id: (one: T) => string,
): T[] {
  const [old, mine, theirs] = [stored, typed, newer].map((list) => new Set(list.map(id)));
  return [
    ...typed.filter((one) => theirs?.has(id(one)) || !old?.has(id(one))),
    ...newer.filter((one) => !old?.has(id(one)) && !mine?.has(id(one))),
  ];
}

function rebasedEntries(
  stored: Record<string, unknown>,
  typed: Record<string, unknown>,
  newer: Record<string, unknown>,
): Record<string, unknown> {
  const entries = new Map(Object.entries(newer));
  for (const name of new Set([...Object.keys(stored), ...Object.keys(typed)])) {
    if (JSON.stringify(stored[name]) === JSON.stringify(typed[name])) continue;
    if (Object.hasOwn(typed, name)) entries.set(name, typed[name]);
    else entries.delete(name);
  }
  return Object.fromEntries(entries);
}

/** JSON objects by their names, JSON lists by their elements. */
export function rebasedJson(stored: string, typed: string, newer: string): string {
  if (stored === newer) return typed;
  const blank = [stored, typed, newer].some((text) => text.trimStart().startsWith("[")) ? [] : {};
  const [old, mine, theirs] = [stored, typed, newer].map((text) => read(text, blank));
  if (isMap(old) && isMap(mine) && isMap(theirs)) {
    const entries = rebasedEntries(old, mine, theirs);
    return Object.keys(entries).length === 0 ? typed : JSON.stringify(entries);
  }
  if (Array.isArray(old) && Array.isArray(mine) && Array.isArray(theirs))
    return JSON.stringify(rebasedElements<unknown>(old, mine, theirs, (one) => JSON.stringify(one)));
  return typed;
}

/** Lines, or names between commas. */
export function rebasedNames(separator: "\n" | ",", stored: string, typed: string, newer: string): string {
  if (stored === newer) return typed;
  const [old = [], mine = [], theirs = []] = [stored, typed, newer].map((text) =>
    text
      .split(separator)
      .map((name) => name.trim())
      .filter((name) => name !== ""),
  );
  return rebasedElements(old, mine, theirs, (name) => name).join(separator);
}
