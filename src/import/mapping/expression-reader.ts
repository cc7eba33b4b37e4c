// The text of a price expression, read from left to right: what all of its parts are read by.
// Refuses what is not there with the place where it should be.

export class Unreadable extends Error {}

export interface Reader {
  text: string;
  at: number;
  /** A condition counts prompt tokens in place of all input. */
  readsP: boolean;
}

const PLACE_CHARACTERS = 24;

function skip(reader: Reader): void {
  while (/\s/.test(reader.text[reader.at] ?? "")) reader.at++;
}

/** What stands next, where it is this. */
export function take(reader: Reader, pattern: RegExp): string | undefined {
  skip(reader);
  const sticky = new RegExp(pattern.source, "y");
  sticky.lastIndex = reader.at;
  const found = sticky.exec(reader.text)?.[0];
  if (found !== undefined) reader.at += found.length;
  return found;
}

/** The same; throws Unreadable where it is something else. */
export function need(reader: Reader, pattern: RegExp): string {
  const found = take(reader, pattern);
  if (found === undefined) throw new Unreadable(rest(reader));
  return found;
}

/** The place that is reached and what stands there; "" at the end. */
export function rest(reader: Reader): string {
  skip(reader);
  const text = reader.text.slice(reader.at, reader.at + PLACE_CHARACTERS);
  return text === "" ? "" : `${reader.at}: ${text}`;
}

export const NUMBER = /\d+(?:\.\d+)?(?:e[+-]?\d+)?/;
