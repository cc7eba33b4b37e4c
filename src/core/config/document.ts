// A settings file as a value: its sections, which of them prune, and who reads each.
// Refuses another format, unknown sections, and to prune what the file does not hold.
import { judgeChannels } from "./channels.ts";
import { judgeAutoGroups, judgeGroupMap, judgeGroups } from "./groups.ts";
import { isRecord, wrong } from "./judge.ts";
import type { Judge } from "./judge.ts";
import { judgeOptions, textsAfter } from "./options.ts";
import { judgePlans } from "./plans.ts";
import { judgePrices, quotaPerUnitIn } from "./prices.ts";
import type { ConfigState } from "./state.ts";

export const FORMAT = 1;

/** In the order in which they are read: prices are of the units that the options will have. */
const SECTIONS: Readonly<Record<string, (judge: Judge, value: unknown) => void>> = {
  options: judgeOptions,
  groups: judgeGroups,
  group_overrides: (judge, value) => judgeGroupMap(judge, "group_overrides", value),
  special_usable_groups: (judge, value) => judgeGroupMap(judge, "special_usable_groups", value),
  auto_groups: judgeAutoGroups,
  prices: (judge, value) => judgePrices(judge, value, quotaPerUnitIn(textsAfter(judge))),
  channels: judgeChannels,
  plans: judgePlans,
};

const NAMES = Object.keys(SECTIONS);
const MAP_NAMES = NAMES.filter((name) => name !== "auto_groups");

function prunesOf(judge: Judge, document: Record<string, unknown>): string[] {
  const { prune = false } = document;
  const present = MAP_NAMES.filter((name) => document[name] !== undefined);
  if (typeof prune === "boolean") return prune ? present : [];
  const isListed = Array.isArray(prune) && prune.every((name) => present.some((each) => each === name));
  if (isListed) return prune as string[];
  wrong(judge, ["prune"], "config_prune", { sections: present.join(", ") || "–" });
  return [];
}

/** Reads all of the file; what is wrong with it and what it changes stands in the answer. */
export function judgeDocument(
  document: unknown,
  state: ConfigState,
  variables: ReadonlyMap<string, string>,
): Judge {
  const prunes = new Set<string>();
  const judge: Judge = {
    state,
    variables,
    prunes,
    kept: new Set<string>(),
    problems: [],
    changes: [],
    rows: [],
    prices: [],
    options: [],
    channels: [],
    plans: [],
  };
  if (!isRecord(document)) {
    wrong(judge, [], "config_not_map");
    return judge;
  }
  if (document["format"] !== FORMAT) wrong(judge, ["format"], "config_format", { format: FORMAT });
  for (const name of Object.keys(document))
    if (!NAMES.includes(name) && name !== "format" && name !== "prune")
      wrong(judge, [name], "config_unknown", { name, allowed: ["format", "prune", ...NAMES].join(", ") });
  for (const name of prunesOf(judge, document)) prunes.add(name);
  for (const [name, read] of Object.entries(SECTIONS))
    if (document[name] !== undefined) read(judge, document[name]);
  return judge;
}
