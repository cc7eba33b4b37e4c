// Options that hold prices as their entries: what a typed text changes of a stored one, and the same change on a newer one.
// Refuses texts that are no maps: nothing is known of them.

/** One entry of an option, before and after; `name` is empty where the option is one value. null: no such entry. */
export interface EntryChange {
  key: string;
  name: string;
  before: unknown;
  after: unknown;
}

/** Options whose text is one value, whatever it looks like. */
const SINGLE = new Set(["AutoGroups", "Price", "QuotaPerUnit"]);

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The option's entries by name; undefined where the text is no map. */
export function entriesOf(key: string, text: string): Map<string, unknown> | undefined {
  if (SINGLE.has(key)) return new Map([["", text]]);
  try {
    const value: unknown = JSON.parse(text.trim() === "" ? "{}" : text);
    return isMap(value) ? new Map(Object.entries(value)) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether two entries say the same: numbers by their value, the rest as JSON. */
export function isSameEntry(one: unknown, other: unknown): boolean {
  return Object.is(one, other) || JSON.stringify(one) === JSON.stringify(other);
}

/** What the typed text changes; undefined where one of the two is no map. */
export function entryChanges(key: string, stored: string, typed: string): EntryChange[] | undefined {
  const [old, fresh] = [entriesOf(key, stored), entriesOf(key, typed)];
  if (!old || !fresh) return undefined;
  return [...new Set([...old.keys(), ...fresh.keys()])].flatMap((name): EntryChange[] => {
    const [before, after] = [old.get(name) ?? null, fresh.get(name) ?? null];
    return isSameEntry(before, after) ? [] : [{ key, name, before, after }];
  });
}

/** What was typed over one text, over another: names that nobody typed follow the newer one. */
export function rebased(key: string, stored: string, typed: string, newer: string): string {
  const changes = entryChanges(key, stored, typed);
  const entries = entriesOf(key, newer);
  if (!changes || !entries || SINGLE.has(key) || stored === newer) return typed;
  for (const { name, after } of changes) {
    if (after === null) entries.delete(name);
    else entries.set(name, after);
  }
  return JSON.stringify(Object.fromEntries(entries));
}
