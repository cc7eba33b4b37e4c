// Models whose calls are refused because nobody has set a price for them, told before the first call is made.
import { asc, gte } from "drizzle-orm";
import { Role } from "../../shared/enums.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { modelsForUser } from "./models.ts";

/** The user's models that are refused; none where models without a price are accepted, by the site or by the user. */
export function unpricedForUser(
  deps: Pick<Deps, "options" | "routing" | "prices">,
  user: UserAccount,
): string[] {
  const isAccepted =
    deps.options.get("SelfUseModeEnabled") || user.setting.accept_unset_model_ratio_model === true;
  return isAccepted ? [] : modelsForUser(deps, user).filter((model) => !deps.prices.pricing(model));
}

export interface PricedModels {
  /** Whether calls to other models are refused: not on sites in self-use mode. */
  isRefusing: boolean;
  /** Names with a price, as `priceName` makes them. */
  names: string[];
  /** Who may set prices, where the administrator who asks may not; else "". */
  ask: string;
}

export async function pricedModels(
  deps: Pick<Deps, "db" | "options" | "prices">,
  user: UserAccount,
): Promise<PricedModels> {
  const { modelRatio, modelPrice } = deps.prices.tables();
  return {
    isRefusing: !deps.options.get("SelfUseModeEnabled"),
    names: [...new Set([...Object.keys(modelRatio), ...Object.keys(modelPrice)])],
    ask: user.role >= Role.root ? "" : await rootName(deps),
  };
}

async function rootName({ db }: Pick<Deps, "db">): Promise<string> {
  const { users } = db.t;
  const [root] = await db.reader
    .select({ username: users.username })
    .from(users)
    .where(gte(users.role, Role.root))
    .orderBy(asc(users.id))
    .limit(1);
  return root?.username ?? "";
}
