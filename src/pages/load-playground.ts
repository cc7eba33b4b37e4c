// First state of the playground: the groups that the user may use with their ratios, the models of each and their prices.
// Refuses what GET /api/user/self/groups and /api/user/models refuse: the same functions answer here.
import type { PlaygroundData } from "../../islands/screens/playground/use-stored.ts";
import { briefPrice } from "../core/channels/models.ts";
import { noticesInForce } from "../core/site/model-notices.ts";
import { groupChoices } from "../core/users/groups.ts";
import { firstGroups, MOST_CHOICES } from "./choices.ts";
import type { LoaderContext } from "./page.ts";

/** Chosen where somebody has chosen nothing yet: it must not be left out. */
const FAVOURITE = "gpt-4o-mini";

export function loadPlayground({ deps, user }: LoaderContext): PlaygroundData {
  const own = user?.group;
  const { first, isCut } = firstGroups(groupChoices(deps, user), own);
  const groups = Object.entries(first).map(([name, choice]) => ({ name, ...choice }));
  // The own group comes first: it is the one that a call without a group uses.
  groups.sort((a, b) => Number(b.name === own) - Number(a.name === own));
  /** Model to the positions of its groups: short on the wire although most models are in every group. */
  const models = new Map<string, number[]>();
  let isListCut = isCut;
  groups.forEach(({ name }, index) => {
    for (const model of deps.routing.modelsOf(name)) {
      const positions = models.get(model);
      if (positions) positions.push(index);
      else if (models.size < MOST_CHOICES || (model === FAVOURITE && index === 0)) models.set(model, [index]);
      else isListCut = true;
    }
  });
  return {
    groups,
    models: [...models].map(([model, positions]) => [model, positions, briefPrice(deps, model)]),
    isCut: isListCut,
    notices: noticesInForce(
      deps,
      groups.map(({ name }) => name),
    ),
    mostBodyMb: deps.options.get("relay.max_body_mb"),
  };
}
