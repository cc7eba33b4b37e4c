// Changes single top-level members of a JSON object in its text: every other byte stays as the client wrote it.
// The text must already have been parsed as an object.
import { endOfString } from "./read-body.ts";
import type { RelayBody } from "./read-body.ts";

/** New values by key; undefined removes the member. */
export type Changes = Readonly<Record<string, unknown>>;

interface Member {
  key: string;
  /** Index of the key's opening quote. */
  from: number;
  valueFrom: number;
  valueTo: number;
}

const SPACE = /[ \t\n\r]*/y;

function skipSpace(text: string, at: number): number {
  SPACE.lastIndex = at;
  SPACE.exec(text);
  return SPACE.lastIndex;
}

/** Index behind the value that begins at `from`. */
function endOfValue(text: string, from: number): number {
  const first = text[from];
  if (first === '"') return endOfString(text, from);
  if (first !== "{" && first !== "[") {
    const end = /[,}\] \t\n\r]/g;
    end.lastIndex = from;
    return end.exec(text)?.index ?? text.length;
  }
  const marks = /["[\]{}]/g;
  marks.lastIndex = from;
  let depth = 0;
  for (let found = marks.exec(text); found; found = marks.exec(text)) {
    const mark = found[0];
    if (mark === '"') marks.lastIndex = endOfString(text, found.index);
    else if (mark === "[" || mark === "{") depth += 1;
    else if (--depth === 0) return found.index + 1;
  }
  return text.length;
}

function members(text: string): { list: Member[]; openAt: number } {
  const openAt = text.indexOf("{");
  const list: Member[] = [];
  let at = skipSpace(text, openAt + 1);
  while (at < text.length && text[at] === '"') {
    const keyTo = endOfString(text, at);
    const key = JSON.parse(text.slice(at, keyTo)) as string;
    const valueFrom = skipSpace(text, skipSpace(text, keyTo) + 1);
    const valueTo = endOfValue(text, valueFrom);
    list.push({ key, from: at, valueFrom, valueTo });
    const comma = skipSpace(text, valueTo);
    if (text[comma] !== ",") break;
    at = skipSpace(text, comma + 1);
  }
  return { list, openAt };
}

/**
 * The text with these top-level members replaced, removed or added (at the front). A key that stands several times is
 * changed everywhere. Numbers beyond 2^53 and unknown members keep their spelling.
 */
export function patchTopLevel(
  text: string,
  changes: Changes,
  present: Readonly<Record<string, unknown>>,
): string {
  const added: string[] = [];
  let touchesPresent = false;
  for (const [key, value] of Object.entries(changes)) {
    if (Object.hasOwn(present, key)) touchesPresent = true;
    else if (value !== undefined) added.push(`${JSON.stringify(key)}:${JSON.stringify(value)}`);
  }
  if (!touchesPresent) {
    if (added.length === 0) return text;
    const openAt = text.indexOf("{") + 1;
    const isEmpty = Object.keys(present).length === 0;
    return `${text.slice(0, openAt)}${added.join(",")}${isEmpty ? "" : ","}${text.slice(openAt)}`;
  }
  const { list, openAt } = members(text);
  const parts = [...added];
  // Whole members are joined anew: what lies inside each stays untouched.
  for (const member of list) {
    if (Object.hasOwn(changes, member.key)) {
      const value = changes[member.key];
      if (value === undefined) continue;
      parts.push(`${text.slice(member.from, member.valueFrom)}${JSON.stringify(value)}`);
    } else parts.push(text.slice(member.from, member.valueTo));
  }
  return `${text.slice(0, openAt + 1)}${parts.join(",")}}`;
}

/** The body with these top-level members changed: its text, its bytes and what was read from them. */
export function patchedBody({ json, text: before }: RelayBody, changes: Changes): RelayBody {
  const text = patchTopLevel(before, changes, json);
  const changed: Record<string, unknown> = { ...json, ...changes };
  for (const key of Object.keys(changes)) if (changes[key] === undefined) delete changed[key];
  return { json: changed, text, bytes: new TextEncoder().encode(text) };
}

/** Top-level keys as often as they stand there. */
export function topLevelKeys(text: string): string[] {
  return members(text).list.map((member) => member.key);
}
