// Values from upstreams and clients, made fit for a column of either database.
// Refuses NUL and halves of characters, which PostgreSQL cannot hold, texts without end, and numbers that are no integers.

/** Longer than any prompt that a provider takes. */
const MAX_CHARACTERS = 100_000;
/** Lists of songs and buttons as their upstream sent them. */
const MAX_JSON_CHARACTERS = 2_000_000;

/** Text that both databases can store: PostgreSQL refuses NUL, JSON parameters refuse lone surrogates. */
export function storableText(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed();
  return wellFormed.includes("\0") ? wellFormed.replaceAll("\0", "") : wellFormed;
}

/** Whether a row can have this text: what no column can hold need not be looked for. */
export function isStorable(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}

/** Columns that keep an upstream's own JSON: cut anywhere it would be none, so that too long ones are left out. */
const JSON_COLUMNS: ReadonlySet<string> = new Set(["buttons", "properties", "data"]);

/** The row with its texts made storable; numbers that no integer column holds are left as they were. */
export function storableRow<Row extends object>(row: Row): Row {
  const entries = Object.entries(row).flatMap(([name, value]: [string, unknown]): [string, unknown][] => {
    if (typeof value === "number") return Number.isSafeInteger(value) ? [[name, value]] : [];
    if (typeof value !== "string") return [[name, value]];
    if (!JSON_COLUMNS.has(name)) return [[name, storableText(value.slice(0, MAX_CHARACTERS))]];
    return value.length > MAX_JSON_CHARACTERS ? [] : [[name, value]];
  });
  return Object.fromEntries(entries) as Row;
}
