// What stands between a fresh site and its first sold call: a channel, prices for its models, a key, the call itself.
// Refuses steps that the user may not take: ordinary users connect no providers and set no prices.
import { Role } from "../../shared/enums.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { hasUsage } from "../logs/dashboard.ts";
import { listTokens } from "../users/tokens.ts";

export interface FirstSteps {
  /** Whether an enabled channel serves a model; absent for users, who have no say in it. */
  channel?: boolean;
  /** Models that are refused for want of a price, the first 50 by name; absent where none are refused, and for users. */
  unpriced?: string[];
  /** A model that the user may call and that has a price; absent where there is none. */
  model?: string;
  key: boolean;
  /** Whether a call was made: by anybody for administrators, else by the user. */
  call: boolean;
}

const MOST_NAMED = 50;
const FAVOURITE = "gpt-4o-mini";

export async function firstSteps(deps: Deps, user: UserAccount): Promise<FirstSteps> {
  const isAdmin = user.role >= Role.admin;
  const [{ total: keys }, call] = await Promise.all([
    listTokens(deps, user, { offset: 0, limit: 1 }),
    hasUsage(deps, isAdmin ? undefined : user.id),
  ]);
  const served = deps.routing.modelsOf(user.group).filter((name) => deps.prices.pricing(name));
  const model = served.includes(FAVOURITE) ? FAVOURITE : served[0];
  const own = { key: keys > 0, call, ...(model === undefined ? {} : { model }) };
  if (!isAdmin) return own;
  const models = deps.routing.enabledModels();
  const channel = models.length > 0;
  if (deps.options.get("SelfUseModeEnabled")) return { channel, ...own };
  const unpriced = models
    .filter((model) => !deps.prices.pricing(model))
    .sort()
    .slice(0, MOST_NAMED);
  return { channel, unpriced, ...own };
}
