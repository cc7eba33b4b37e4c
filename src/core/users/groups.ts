// Groups: which of them a user may choose for a key, at which ratio, and in which ones an automatic key is served.
// Worked out once per group of users and change of an option, not once per call.
import { choicesOf, effectiveRatio, GUEST_GROUP, OWN_GROUP_DESCRIPTION } from "../../shared/group-rules.ts";
import type { GroupMaps, UserChoices } from "../../shared/group-rules.ts";
import type { Deps, UserAccount } from "../deps.ts";

export { GUEST_GROUP, OWN_GROUP_DESCRIPTION };

type OptionDeps = Pick<Deps, "options">;

/** By which options the choices were worked out: each is another object once it has changed. */
interface Known extends GroupMaps {
  /** undefined: guests. */
  byUserGroup: Map<string | undefined, UserChoices>;
}

const knownOf = new WeakMap<OptionDeps["options"], Known>();

function choicesFor({ options }: OptionDeps, userGroup: string | undefined): UserChoices {
  const usable = options.get("UserUsableGroups");
  const special = options.get("GroupSpecialUsableGroup");
  const auto = options.get("AutoGroups");
  const ratios = options.get("GroupRatio");
  let known = knownOf.get(options);
  if (
    !known ||
    known.usable !== usable ||
    known.special !== special ||
    known.auto !== auto ||
    known.ratios !== ratios
  )
    knownOf.set(options, (known = { usable, special, auto, ratios, byUserGroup: new Map() }));
  let choices = known.byUserGroup.get(userGroup);
  if (!choices) known.byUserGroup.set(userGroup, (choices = choicesOf(known, userGroup)));
  return choices;
}

/** Groups that the user may choose for a key, with their descriptions. */
export function usableGroups(deps: OptionDeps, user: UserAccount | undefined): Record<string, string> {
  return Object.fromEntries(choicesFor(deps, user?.group).usable);
}

/** Whether the user's calls may use the group: asked when a key is made or changed, and at each of its calls. */
export function mayUseGroup(deps: OptionDeps, user: UserAccount, group: string): boolean {
  return group === user.group || choicesFor(deps, user.group).usable.has(group);
}

/**
 * The groups that an automatic key of the user is served in, in their order: those of the option, or the key's own list
 * where it has one, as far as they may be used and have a ratio.
 */
export function autoGroups(
  deps: OptionDeps,
  user: Pick<UserAccount, "group">,
  own: readonly string[] = [],
): readonly string[] {
  const { usable, auto } = choicesFor(deps, user.group);
  if (own.length === 0) return auto;
  const ratios = deps.options.get("GroupRatio");
  return own.filter((group) => usable.has(group) && Object.hasOwn(ratios, group));
}

/** Usable groups that have a ratio, as the console shows them: at the ratio that this user pays. */
export function groupChoices(
  deps: OptionDeps,
  user: UserAccount | undefined,
): Record<string, { ratio: number; desc: string }> {
  const ratios = deps.options.get("GroupRatio");
  const maps = { ratios, overrides: deps.options.get("GroupGroupRatio") };
  const userGroup = user?.group ?? GUEST_GROUP;
  const choices: Record<string, { ratio: number; desc: string }> = {};
  for (const [group, desc] of Object.entries(usableGroups(deps, user)))
    if (Object.hasOwn(ratios, group))
      choices[group] = { ratio: effectiveRatio(maps, group, userGroup), desc };
  return choices;
}

/** Names of all groups that have a ratio. */
export function groupNames(deps: OptionDeps): string[] {
  return Object.keys(deps.options.get("GroupRatio"));
}
