// The plans that administrators see, and what root's editor offers.
import type { PlanPageData } from "../../islands/screens/plan.tsx";
import { openRails } from "../core/payments/rails.ts";
import { listPlans } from "../core/plans/plans.ts";
import { Role } from "../shared/enums.ts";
import type { LoaderContext } from "./page.ts";

export async function loadPlans({ deps, user }: LoaderContext): Promise<PlanPageData> {
  const currencies = openRails(deps).map((rail) => rail.currency(deps.options).toUpperCase());
  return {
    plans: await listPlans(deps),
    groups: Object.keys(deps.options.get("GroupRatio")).toSorted(),
    currencies: [...new Set(currencies)],
    mayChange: (user?.role ?? 0) >= Role.root,
  };
}
