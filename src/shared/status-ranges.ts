// Lists of statuses as operators write them: "500-503, 429"; a comma may be a full-width one.

const FIRST_STATUS = 100;
const LAST_STATUS = 599;
const PART = /^(\d{3})(?:\s*-\s*(\d{3}))?$/;

/** The statuses of the list, 100 to 599; an empty text has none. Undefined for a text that is no such list. */
export function readStatusRanges(text: string): ReadonlySet<number> | undefined {
  const statuses = new Set<number>();
  if (text.trim() === "") return statuses;
  for (const part of text.split(/[,\uFF0C]/)) {
    const [, first, last = first] = PART.exec(part.trim()) ?? [];
    if (first === undefined || last === undefined) return undefined;
    const [from, to] = [Number(first), Number(last)];
    if (from < FIRST_STATUS || to > LAST_STATUS || from > to) return undefined;
    for (let status = from; status <= to; status++) statuses.add(status);
  }
  return statuses;
}
