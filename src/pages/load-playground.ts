// First state of the playground: the groups that the user may use with their ratios, and the models of each.
// Refuses groups without a ratio: their calls would be refused too.
import type { LoaderContext } from "./page.ts";

export interface PlaygroundGroup {
  name: string;
  /** The operator's description; empty for the own group where it is not open to everybody. */
  desc: string;
  ratio: number;
}

export function loadPlayground({ deps, user }: LoaderContext) {
  const usable = deps.options.get("UserUsableGroups");
  const ratios = deps.options.get("GroupRatio");
  const own = user?.group ?? "default";
  const groups: PlaygroundGroup[] = Object.entries(ratios)
    .filter(([name]) => name === own || Object.hasOwn(usable, name))
    .map(([name, ratio]) => ({ name, desc: usable[name] ?? "", ratio }));
  // The own group comes first: it is the one that a call without a group uses.
  groups.sort((a, b) => Number(b.name === own) - Number(a.name === own));
  /** Model to the positions of its groups: short on the wire although most models are in every group. */
  const models = new Map<string, number[]>();
  groups.forEach(({ name }, index) => {
    for (const model of deps.routing.modelsOf(name)) models.set(model, [...(models.get(model) ?? []), index]);
  });
  return { groups, models: [...models] };
}
