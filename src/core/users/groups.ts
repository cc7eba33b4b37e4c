// Groups: which of them a user may choose for a key, with their ratios and descriptions.
import type { Deps, UserAccount } from "../deps.ts";

export const OWN_GROUP_DESCRIPTION = "用户分组";

type OptionDeps = Pick<Deps, "options">;

/** Groups that the user may choose for a key, with their descriptions: what the operator opened, and the own group. */
export function usableGroups(deps: OptionDeps, user: UserAccount | undefined): Record<string, string> {
  const groups = { ...deps.options.get("UserUsableGroups") };
  if (user && !Object.hasOwn(groups, user.group)) groups[user.group] = OWN_GROUP_DESCRIPTION;
  return groups;
}

/** Usable groups that have a ratio, as the console shows them. */
export function groupChoices(
  deps: OptionDeps,
  user: UserAccount | undefined,
): Record<string, { ratio: number; desc: string }> {
  const ratios = deps.options.get("GroupRatio");
  const choices: Record<string, { ratio: number; desc: string }> = {};
  for (const [group, desc] of Object.entries(usableGroups(deps, user))) {
    const ratio = Object.hasOwn(ratios, group) ? ratios[group] : undefined;
    if (ratio !== undefined) choices[group] = { ratio, desc };
  }
  return choices;
}

/** Names of all groups that have a ratio. */
export function groupNames(deps: OptionDeps): string[] {
  return Object.keys(deps.options.get("GroupRatio"));
}
