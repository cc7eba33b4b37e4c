// The group that is none: a key with it is served by the first of several groups that has a channel for the model.

export const AUTO_GROUP = "auto";

/** Groups that a key may list for itself. */
export const MOST_AUTO_GROUPS = 10;

/** The groups of a key's own list, which is stored and sent as a text with commas. */
export function autoGroupsOf(text: string): string[] {
  return [
    ...new Set(
      text
        .split(",")
        .map((group) => group.trim())
        .filter((group) => group !== ""),
    ),
  ];
}
