// How many choices a page brings along: enough for nearly everybody; the screen asks for the rest when there are more.
import { shortText } from "../shared/short-text.ts";

/** Groups, and models, in the boot data of a page. */
export const MOST_CHOICES = 100;
/** Characters of a group's description. */
const MOST_DESCRIPTION = 120;

interface GroupChoice {
  ratio: number;
  desc: string;
}

interface Excerpt<T> {
  first: T;
  /** There are more than these. */
  isCut: boolean;
}

/** The first groups in their order; `own` is always among them. */
export function firstGroups(
  all: Readonly<Record<string, GroupChoice>>,
  own: string | undefined,
): Excerpt<Record<string, GroupChoice>> {
  const names = Object.keys(all);
  const shown = names.slice(0, MOST_CHOICES);
  if (own !== undefined && Object.hasOwn(all, own) && !shown.includes(own)) shown.unshift(own);
  const first = Object.fromEntries(
    shown.map((name) => {
      const { ratio = 1, desc = "" } = all[name] ?? {};
      return [name, { ratio, desc: shortText(desc, MOST_DESCRIPTION) }];
    }),
  );
  return { first, isCut: shown.length < names.length };
}

export function firstNames(all: readonly string[]): Excerpt<string[]> {
  return { first: all.slice(0, MOST_CHOICES), isCut: all.length > MOST_CHOICES };
}
