// Who still names a group whose ratio is to go: without it their calls would be charged at 1, and nobody would notice.
import { and, inArray, isNull, ne } from "drizzle-orm";
import { countRows } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { autoGroupsOf } from "../../shared/auto-group.ts";
import { refuse } from "../../shared/failures.ts";
import { optionDefinitions } from "../options/definitions.ts";
import type { OptionKey } from "../options/definitions.ts";
import { differences, textOf, textsWith, writesOf } from "./changes.ts";
import type { PriceChange, PriceTexts } from "./changes.ts";

export interface GroupUse {
  group: string;
  users: number;
  keys: number;
  channels: number;
  /** Options that go on naming it; `plans` where plans do. */
  options: string[];
}

/** Options that name groups, besides their ratios. */
const NAMING = [
  "UserUsableGroups",
  "GroupGroupRatio",
  "GroupSpecialUsableGroup",
  "AutoGroups",
] as const satisfies readonly OptionKey[];

/** Told beside the options: plans on sale, and running ones. */
const PLANS = "plans";

/** Whether the option names the group: as a key at any depth, also as "+:g" and "-:g", or as an item of a list. */
function names(text: string, group: string): boolean {
  try {
    return holds(JSON.parse(text), new Set([group, `+:${group}`, `-:${group}`]));
  } catch {
    return false;
  }
}

function holds(value: unknown, wanted: ReadonlySet<string>): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some((each) => typeof each === "string" && wanted.has(each));
  return Object.entries(value).some(([key, each]) => wanted.has(key) || holds(each, wanted));
}

/** How many automatic keys list each group for themselves. */
export async function listedGroups(db: Database): Promise<ReadonlyMap<string, number>> {
  const { tokens } = db.t;
  const rows = await db.reader
    .select({ autoGroups: tokens.autoGroups, count: countRows() })
    .from(tokens)
    .where(and(ne(tokens.autoGroups, ""), isNull(tokens.deletedAt)))
    .groupBy(tokens.autoGroups);
  const keys = new Map<string, number>();
  for (const { autoGroups, count } of rows)
    for (const group of autoGroupsOf(autoGroups)) keys.set(group, (keys.get(group) ?? 0) + count);
  return keys;
}

/** The use of every group that loses its ratio by the changes, as the other options are after them. */
export async function usedGroups(
  db: Database,
  texts: PriceTexts,
  changes: readonly PriceChange[],
): Promise<GroupUse[]> {
  const groups = changes
    .filter(({ key, after }) => key === "GroupRatio" && after === null)
    .map(({ name }) => name);
  if (groups.length === 0) return [];
  const { users, tokens, abilities } = db.t;
  const [ofUsers, ofKeys, ofLists, ofChannels] = await Promise.all([
    db.reader
      .select({ group: users.group, count: countRows() })
      .from(users)
      .where(and(inArray(users.group, groups), isNull(users.deletedAt)))
      .groupBy(users.group),
    db.reader
      .select({ group: tokens.group, count: countRows() })
      .from(tokens)
      .where(and(inArray(tokens.group, groups), isNull(tokens.deletedAt)))
      .groupBy(tokens.group),
    listedGroups(db),
    db.reader
      .selectDistinct({ group: abilities.group, channelId: abilities.channelId })
      .from(abilities)
      .where(inArray(abilities.group, groups)),
  ]);
  const { plans, userPlans } = db.t;
  const named = new Set(
    (
      await Promise.all([
        db.reader
          .selectDistinct({ group: plans.group })
          .from(plans)
          .where(and(inArray(plans.group, groups), isNull(plans.deletedAt))),
        db.reader
          .selectDistinct({ group: userPlans.group })
          .from(userPlans)
          .where(and(inArray(userPlans.group, groups), inArray(userPlans.status, ["active", "waiting"]))),
      ])
    )
      .flat()
      .map(({ group }) => group),
  );
  const after = textsWith(texts, writesOf(texts, changes));
  return groups.map((group) => ({
    group,
    users: ofUsers.find((row) => row.group === group)?.count ?? 0,
    keys: (ofKeys.find((row) => row.group === group)?.count ?? 0) + (ofLists.get(group) ?? 0),
    channels: ofChannels.filter((row) => row.group === group).length,
    options: [
      ...NAMING.filter((key) => names(textOf(after, key), group)),
      ...(named.has(group) ? [PLANS] : []),
    ],
  }));
}

export const isUsed = ({ users, keys, channels, options }: GroupUse): boolean =>
  users + keys + channels + options.length > 0;

/**
 * The same for a text of group ratios that is about to be stored by itself. UserUsableGroups may name the group still:
 * consoles of old send it right after.
 */
export async function refuseUsedGroupsIn(db: Database, texts: PriceTexts, ratios: string): Promise<void> {
  const { kind } = optionDefinitions.GroupRatio;
  // An emptied map has a refusal of its own.
  if (Object.keys(kind.parse(ratios)).length === 0) return;
  const changes = differences("GroupRatio", textOf(texts, "GroupRatio"), ratios);
  const used = await usedGroups(db, texts, changes);
  const later = ({ options }: GroupUse): string[] => options.filter((key) => key !== "UserUsableGroups");
  refuseFirst(used.map((each) => ({ ...each, options: later(each) })));
}

/** Refuses, with the counts, changes that take the ratio of a group that is in use. */
export async function refuseUsedGroups(
  db: Database,
  texts: PriceTexts,
  changes: readonly PriceChange[],
): Promise<void> {
  refuseFirst(await usedGroups(db, texts, changes));
}

function refuseFirst(uses: readonly GroupUse[]): void {
  const used = uses.find(isUsed);
  if (!used) return;
  const { group, users, keys, channels, options } = used;
  throw refuse("price_group_in_use", { group, users, keys, channels, options: options.join(", ") || "–" });
}
