// How many choices a page brings along: enough for nearly everybody; the screen asks for the rest when there are more.
// Refuses to let twenty thousand models travel with every page.
import { shortText } from "../shared/short-text.ts";

/** Groups, and models, in the boot data of a page. */
export const MOST_CHOICES = 100;
/** Characters of a group's description. */
const MOST_DESCRIPTION = 120;

export interface GroupChoice {
  ratio: number;
  desc: string;
}

export interface Few<T> {
  few: T;
  /** There are more than these. */
  isCut: boolean;
}

/** The first groups in their order; `own` is always among them. */
export function fewGroups(
  all: Readonly<Record<string, GroupChoice>>,
  own: string | undefined,
): Few<Record<string, GroupChoice>> {
  const names = Object.keys(all);
  const shown = names.slice(0, MOST_CHOICES);
  if (own !== undefined && Object.hasOwn(all, own) && !shown.includes(own)) shown.unshift(own);
  const few = Object.fromEntries(
    shown.map((name) => {
      const { ratio = 1, desc = "" } = all[name] ?? {};
      return [name, { ratio, desc: shortText(desc, MOST_DESCRIPTION) }];
    }),
  );
  return { few, isCut: shown.length < names.length };
}

export function fewNames(all: readonly string[]): Few<string[]> {
  return { few: all.slice(0, MOST_CHOICES), isCut: all.length > MOST_CHOICES };
}
