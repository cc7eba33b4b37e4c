// The groups that the price desk knows of, read out of its store, and edits of their maps as the store takes them.
// Refuses to call changed what says the same in another order, and to forget a group that only somebody's key still names.
import { AUTO_GROUP } from "../../../src/shared/auto-group.ts";
import { choicesOf, effectiveRatio } from "../../../src/shared/group-rules.ts";
import type { GroupMaps, SpecialGroups, UserChoices } from "../../../src/shared/group-rules.ts";
import type { Desk } from "../../ui/price-sheet/desk.ts";

export const RATIO = "GroupRatio";
export const USABLE = "UserUsableGroups";
export const TOPUP = "TopupGroupRatio";
export const OVERRIDES = "GroupGroupRatio";
export const SPECIAL = "GroupSpecialUsableGroup";
const AUTO = "AutoGroups";

type Edit = Parameters<Desk["write"]>[0][number];

/** One entry of what is special for a group of users. */
export interface SpecialEntry {
  /** As it stands in the map: "+:vip", "vip" or "-:vip". */
  key: string;
  group: string;
  isRemoval: boolean;
  /** What its users read; a removal needs none. */
  text: string;
}

/** Sheets that name a group beside its own row. */
type GroupPlace = "overrides" | "special" | "auto";

export interface GroupUses {
  users: number;
  keys: number;
  channels: number;
  /** Those that serve it now. */
  enabledChannels: number;
  places: GroupPlace[];
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The same whatever the order of the names. */
function sorted(value: unknown): unknown {
  if (!isMap(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}

const saysTheSame = (one: unknown, other: unknown): boolean =>
  JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));

/** An entry that is a map; an empty one goes, and one that says what is stored is what is stored. */
function mapEdit(desk: Desk, key: string, name: string, map: Readonly<Record<string, unknown>>): Edit {
  const stored = desk.storedValueOf(key, name);
  if (saysTheSame(map, stored)) return { key, name, after: stored };
  return { key, name, after: Object.keys(map).length === 0 ? null : map };
}

const numberAt = (desk: Desk, key: string, name: string): number | undefined => {
  const value = desk.valueOf(key, name);
  return typeof value === "number" ? value : undefined;
};

export const ratioOf = (desk: Desk, group: string): number | undefined => numberAt(desk, RATIO, group);
export const topupOf = (desk: Desk, group: string): number | undefined => numberAt(desk, TOPUP, group);

const wordsIn = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** What users read of a group that all of them may choose; undefined: they may not. */
export const descriptionOf = (desk: Desk, group: string): string | undefined =>
  wordsIn(desk.valueOf(USABLE, group));
export const storedDescriptionOf = (desk: Desk, group: string): string | undefined =>
  wordsIn(desk.storedValueOf(USABLE, group));

function ratiosIn(value: unknown): ReadonlyMap<string, number> {
  const entries = isMap(value) ? Object.entries(value) : [];
  return new Map(entries.flatMap(([group, ratio]) => (typeof ratio === "number" ? [[group, ratio]] : [])));
}

/** Used group -> ratio, of the users of one group. */
export const overridesOf = (desk: Desk, userGroup: string): ReadonlyMap<string, number> =>
  ratiosIn(desk.valueOf(OVERRIDES, userGroup));
export const storedOverridesOf = (desk: Desk, userGroup: string): ReadonlyMap<string, number> =>
  ratiosIn(desk.storedValueOf(OVERRIDES, userGroup));

function entriesIn(value: unknown): SpecialEntry[] {
  return (isMap(value) ? Object.entries(value) : []).map(([key, text]) => ({
    key,
    group: /^[+-]:/.test(key) ? key.slice(2) : key,
    isRemoval: key.startsWith("-:"),
    text: typeof text === "string" ? text : "",
  }));
}

/** What is special for the users of a group, in its order. */
export const specialOf = (desk: Desk, userGroup: string): SpecialEntry[] =>
  entriesIn(desk.valueOf(SPECIAL, userGroup));
export const storedSpecialOf = (desk: Desk, userGroup: string): SpecialEntry[] =>
  entriesIn(desk.storedValueOf(SPECIAL, userGroup));

function listIn(text: unknown): string[] {
  if (typeof text !== "string") return [];
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? list.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

/** The groups of the automatic choice, in their order. */
export const autoList = (desk: Desk): string[] => listIn(desk.valueOf(AUTO, ""));
export const storedAutoList = (desk: Desk): string[] => listIn(desk.storedValueOf(AUTO, ""));

/** Groups that are known for certain: those with a ratio, in the order of their map. */
export const pricedGroups = (desk: Desk): string[] =>
  desk.namesOf(RATIO).filter((name) => name !== AUTO_GROUP);

/** Every group that anything names: those with a ratio first, the rest by name. */
export function knownGroups(desk: Desk): string[] {
  const names = new Set(pricedGroups(desk));
  const others = new Set([...desk.namesOf(USABLE), ...desk.namesOf(TOPUP), ...autoList(desk)]);
  for (const { name } of desk.prices.value?.groups ?? []) others.add(name);
  for (const userGroup of desk.namesOf(OVERRIDES)) {
    others.add(userGroup);
    for (const group of overridesOf(desk, userGroup).keys()) others.add(group);
  }
  for (const userGroup of desk.namesOf(SPECIAL)) {
    others.add(userGroup);
    for (const { group } of specialOf(desk, userGroup)) others.add(group);
  }
  others.delete(AUTO_GROUP);
  return [...names, ...[...others].filter((name) => !names.has(name)).sort()];
}

/** Whether any account, key, channel or map of groups names it: else its name was a slip. */
export const isKnown = (desk: Desk, group: string): boolean =>
  ratioOf(desk, group) !== undefined ||
  (desk.prices.value?.groups ?? []).some(
    ({ name, users, channels }) => name === group && users + channels > 0,
  );

/** Who names a group besides its own row. */
export function usesOf(desk: Desk, group: string): GroupUses {
  const of = desk.prices.value?.groups.find(({ name }) => name === group);
  const places: GroupPlace[] = [];
  const names = (key: string, isIn: (userGroup: string) => boolean) =>
    desk.namesOf(key).some((userGroup) => userGroup === group || isIn(userGroup));
  if (names(OVERRIDES, (each) => overridesOf(desk, each).has(group))) places.push("overrides");
  if (names(SPECIAL, (each) => specialOf(desk, each).some((entry) => entry.group === group)))
    places.push("special");
  if (autoList(desk).includes(group)) places.push("auto");
  return {
    users: of?.users ?? 0,
    keys: of?.keys ?? 0,
    channels: of?.channels ?? 0,
    enabledChannels: of?.enabledChannels ?? 0,
    places,
  };
}

export const isUsed = ({ users, keys, channels, places }: GroupUses): boolean =>
  users + keys + channels + places.length > 0;

const mapOf = <T>(desk: Desk, key: string, read: (name: string) => T | undefined): Record<string, T> =>
  Object.fromEntries(
    desk.namesOf(key).flatMap((name) => {
      const value = read(name);
      return value === undefined ? [] : [[name, value]];
    }),
  );

function specialGroups(entries: readonly SpecialEntry[]): SpecialGroups {
  const added = entries.filter(({ isRemoval }) => !isRemoval).map(({ group, text }) => [group, text]);
  const removed = entries.filter(({ isRemoval }) => isRemoval).map(({ group }) => group);
  return { added: Object.fromEntries(added) as Record<string, string>, removed: new Set(removed) };
}

/** The maps as the gateway would read them with the changes. */
function mapsOf(desk: Desk): GroupMaps {
  return {
    usable: mapOf(desk, USABLE, (name) => descriptionOf(desk, name)),
    special: mapOf(desk, SPECIAL, (name) => specialGroups(specialOf(desk, name))),
    auto: autoList(desk),
    ratios: mapOf(desk, RATIO, (name) => ratioOf(desk, name)),
  };
}

/** What the users of a group may choose for their keys, and where an automatic key of theirs is tried. */
export const userChoices = (desk: Desk, userGroup: string): UserChoices => choicesOf(mapsOf(desk), userGroup);

/** What users of one group pay in another, times the model's price; without `isOverridden` as if nothing replaced it. */
export function ratioWith(desk: Desk, userGroup: string, group: string, isOverridden = true): number {
  const ratio = ratioOf(desk, group);
  const ratios = ratio === undefined ? {} : { [group]: ratio };
  const overrides = isOverridden ? { [userGroup]: Object.fromEntries(overridesOf(desk, userGroup)) } : {};
  return effectiveRatio({ ratios, overrides }, group, userGroup);
}

/** Groups whose users there are, or for whom something is special: those whose choices may differ. */
export function userGroupsOf(desk: Desk): string[] {
  const names = new Set(
    (desk.prices.value?.groups ?? []).filter(({ users }) => users > 0).map(({ name }) => name),
  );
  for (const name of [...desk.namesOf(SPECIAL), ...desk.namesOf(OVERRIDES)]) names.add(name);
  return [...names];
}

export type AutoProblem = "unpriced" | "unusable" | "noChannel";

/** Why the automatic choice passes over a group whoever asks; undefined: it does not. */
export function autoProblemOf(desk: Desk, group: string): AutoProblem | undefined {
  if (ratioOf(desk, group) === undefined) return "unpriced";
  const maps = mapsOf(desk);
  const { users, enabledChannels } = usesOf(desk, group);
  const userGroups = new Set([...pricedGroups(desk), ...userGroupsOf(desk)]);
  // Its own users may always use it; a group without users has none.
  if (users === 0) userGroups.delete(group);
  if (![...userGroups].some((each) => choicesOf(maps, each).usable.has(group))) return "unusable";
  return enabledChannels === 0 ? "noChannel" : undefined;
}

/** Ratios of cells of the matrix; null: the group's own counts again. */
export function overrideEdits(
  desk: Desk,
  cells: readonly { userGroup: string; group: string; ratio: number | null }[],
): Edit[] {
  return [...Map.groupBy(cells, ({ userGroup }) => userGroup)].map(([userGroup, ofUsers]) => {
    const value = desk.valueOf(OVERRIDES, userGroup);
    const map = new Map(isMap(value) ? Object.entries(value) : []);
    for (const { group, ratio } of ofUsers) {
      if (ratio === null) map.delete(group);
      else map.set(group, ratio);
    }
    return mapEdit(desk, OVERRIDES, userGroup, Object.fromEntries(map));
  });
}

/** What is special for the users of a group from now on. */
export function specialEdit(desk: Desk, userGroup: string, entries: readonly SpecialEntry[]): Edit {
  const map = Object.fromEntries(entries.map(({ key, text }) => [key, text]));
  return mapEdit(desk, SPECIAL, userGroup, map);
}

/** The groups of the automatic choice from now on. */
export function autoEdit(desk: Desk, groups: readonly string[]): Edit {
  const stored = desk.storedValueOf(AUTO, "");
  const isStored = saysTheSame(groups, storedAutoList(desk));
  return { key: AUTO, name: "", after: isStored && stored !== null ? stored : JSON.stringify(groups) };
}

/** Takes everything that makes a group one. */
export const removalEdits = (name: string): Edit[] =>
  [RATIO, USABLE, TOPUP].map((key) => ({ key, name, after: null }));

/** Longest name of a group. */
export const MAX_GROUP_NAME = 64;

export type NameProblem = "nameEmpty" | "nameLong" | "nameComma" | "nameAuto" | "nameTaken";

/** Why a group cannot be made under a name; channels keep theirs as one text with commas. */
export function nameProblem(desk: Desk, typed: string): NameProblem | undefined {
  const name = typed.trim();
  if (name === "" || name === "__proto__") return "nameEmpty";
  if (Array.from(name).length > MAX_GROUP_NAME) return "nameLong";
  if (name.includes(",")) return "nameComma";
  if (name === AUTO_GROUP) return "nameAuto";
  return ratioOf(desk, name) === undefined ? undefined : "nameTaken";
}
