// The plans that administrators look after, and what their editor offers.
import type { PlanPageData } from "../../islands/screens/plan.tsx";
import { openRails } from "../core/payments/rails.ts";
import { listPlans } from "../core/plans/plans.ts";
import type { LoaderContext } from "./page.ts";

export async function loadPlans({ deps }: LoaderContext): Promise<PlanPageData> {
  const currencies = openRails(deps).map((rail) => rail.currency(deps.options).toUpperCase());
  return {
    plans: await listPlans(deps),
    groups: Object.keys(deps.options.get("GroupRatio")).toSorted(),
    currencies: [...new Set(currencies)],
  };
}
