// What groups mean, in one place for calls, screens and plans: which ratio users of one group pay in another, which groups
// they may use, and which of them an automatic key tries.
import { AUTO_GROUP } from "./auto-group.ts";

export const OWN_GROUP_DESCRIPTION = "用户分组";

/** Larger ones of older releases count as this. */
const MOST_RATIO = 1e6;

export interface RatioMaps {
  /** group -> its ratio. */
  readonly ratios: Readonly<Record<string, number>>;
  /** group of users -> group that they use -> what replaces its ratio for them. */
  readonly overrides: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

function numberIn(map: Readonly<Record<string, number>> | undefined, name: string): number | undefined {
  const value = map && Object.hasOwn(map, name) ? map[name] : undefined;
  return value !== undefined && Number.isFinite(value) && value >= 0
    ? Math.min(value, MOST_RATIO)
    : undefined;
}

/** What users of the group pay instead of another group's own ratio; undefined: that one is theirs, too. */
export function overrideOf(
  { overrides }: Pick<RatioMaps, "overrides">,
  group: string,
  userGroup: string,
): number | undefined {
  return Object.hasOwn(overrides, userGroup) ? numberIn(overrides[userGroup], group) : undefined;
}

/** The ratio that users of one group pay in another: 0 is free, a group without a ratio costs 1. */
export function effectiveRatio(maps: RatioMaps, group: string, userGroup: string): number {
  return overrideOf(maps, group, userGroup) ?? numberIn(maps.ratios, group) ?? 1;
}

/** What the users of one group may choose beyond or short of the others. */
export interface SpecialGroups {
  /** group -> its description for them. */
  readonly added: Readonly<Record<string, string>>;
  readonly removed: ReadonlySet<string>;
}

export interface GroupMaps {
  /** Open to all: group -> its description. */
  readonly usable: Readonly<Record<string, string>>;
  /** By group of users. */
  readonly special: Readonly<Record<string, SpecialGroups>>;
  /** In their order. */
  readonly auto: readonly string[];
  /** Groups that exist. */
  readonly ratios: Readonly<Record<string, number>>;
}

/** Whose choices and prices a visitor sees who has not signed in. */
export const GUEST_GROUP = "default";

/** What the users of one group may choose. */
export interface UserChoices {
  /** group -> its description; a user's own one is always among them. */
  readonly usable: ReadonlyMap<string, string>;
  /** Of the automatic choice the groups that they may use and that exist, in its order. */
  readonly auto: readonly string[];
}

/** What was opened to all, with what is special for the group, and the group itself; undefined: a guest, who has none. */
export function choicesOf(maps: GroupMaps, userGroup: string | undefined): UserChoices {
  const { usable: open, special, auto, ratios } = maps;
  const name = userGroup ?? GUEST_GROUP;
  const usable = new Map(Object.entries(open));
  const own = Object.hasOwn(special, name) ? special[name] : undefined;
  for (const group of own?.removed ?? []) usable.delete(group);
  for (const [group, description] of Object.entries(own?.added ?? {})) usable.set(group, description);
  // No group: other databases of the family describe the automatic choice here.
  usable.delete(AUTO_GROUP);
  if (userGroup !== undefined && !usable.has(userGroup)) usable.set(userGroup, OWN_GROUP_DESCRIPTION);
  return { usable, auto: auto.filter((group) => usable.has(group) && Object.hasOwn(ratios, group)) };
}
