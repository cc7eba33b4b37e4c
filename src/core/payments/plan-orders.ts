// Plans for money: which are on sale and how they are paid, and the order of one. The plan begins with the order's credit.
// Refuses a rail of another currency: a plan has one price, and nobody turns it into another.
import { and, asc, eq, isNull, ne } from "drizzle-orm";
import { countRows } from "../../db/database.ts";
import { refuse } from "../../shared/failures.ts";
import { minorText } from "../../shared/currencies.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { plansOf } from "../plans/own-plans.ts";
import { fieldsOf } from "../plans/plans.ts";
import { arePlansSold, soldPlan, termsOf } from "../plans/purchases.ts";
import type { PlanRow } from "../plans/purse.ts";
import { createOrder } from "./orders.ts";
import type { PaymentRail, PaymentStart, RailDeps } from "./rail.ts";
import { methodOf, openRails } from "./rails.ts";

type SaleDeps = Pick<Deps, "db" | "options" | "rails">;

function takesPlan({ options }: Pick<Deps, "options">, rail: PaymentRail, plan: PlanRow): boolean {
  return plan.priceMinor > 0 && rail.currency(options).toUpperCase() === plan.currency;
}

async function boughtBy({ db }: Pick<Deps, "db">, userId: number): Promise<Map<number, number>> {
  const { userPlans } = db.t;
  const rows = await db.orm
    .select({ planId: userPlans.planId, count: countRows() })
    .from(userPlans)
    .where(and(eq(userPlans.userId, userId), ne(userPlans.status, "refunded")))
    .groupBy(userPlans.planId);
  return new Map(rows.map(({ planId, count }) => [planId, count]));
}

/** What the account may buy and how; what it cannot pay here in any way is left out. */
async function plansOnSale(deps: SaleDeps, actor: UserAccount) {
  const { db, options } = deps;
  if (!arePlansSold(deps)) return [];
  const { plans } = db.t;
  const rows = await db.orm
    .select()
    .from(plans)
    .where(and(isNull(plans.deletedAt), eq(plans.enabled, true)))
    .orderBy(asc(plans.id));
  const bought = await boughtBy(deps, actor.id);
  const open = openRails(deps);
  return rows
    .map((plan) => {
      const { enabled: _, ...fields } = fieldsOf(plan);
      const count = bought.get(plan.id) ?? 0;
      return {
        id: plan.id,
        ...fields,
        bought: count,
        /** It may be bought once more. */
        is_open: plan.maxPerUser === 0 || count < plan.maxPerUser,
        methods: open
          .filter((rail) => takesPlan(deps, rail, plan))
          .flatMap((rail) =>
            rail.methods(options).map(({ type, name }) => ({ rail: rail.name, type, name })),
          ),
      };
    })
    .filter(({ methods, wallet_price: price }) => methods.length > 0 || price > 0);
}

/** The plans of the wallet's page: on sale, running, over. */
export async function ownPlans(deps: SaleDeps, actor: UserAccount) {
  return { on_sale: await plansOnSale(deps, actor), ...(await plansOf(deps, actor.id)) };
}

export type OwnPlans = Awaited<ReturnType<typeof ownPlans>>;

/**
 * Makes the order of a plan and tells the rail of it. Throws `plan_missing`, `plan_not_sold`, `plan_no_money` where the rail
 * does not take it, `plan_limit`, and what `createOrder` and the rail throw.
 */
export async function payPlan(
  deps: RailDeps & Pick<Deps, "rails">,
  actor: UserAccount,
  wish: { planId: number; rail: string; method: string | undefined },
): Promise<PaymentStart & { tradeNo: string }> {
  const plan = await soldPlan(deps, wish.planId);
  const { rail, method } = methodOf(deps, wish);
  if (!takesPlan(deps, rail, plan)) throw refuse("plan_no_money");
  const count = (await boughtBy(deps, actor.id)).get(plan.id) ?? 0;
  if (plan.maxPerUser > 0 && count >= plan.maxPerUser) throw refuse("plan_limit");
  const { name, seconds } = rail;
  const money = minorText(plan.priceMinor, plan.currency);
  const order = await createOrder(deps, actor, {
    rail: name,
    method: method.type,
    seconds,
    planId: plan.id,
    offer: {
      amount: 1,
      unit: "quota",
      quota: plan.quota,
      moneyMinor: plan.priceMinor,
      currency: rail.currency(deps.options),
      snapshot: {
        amount: 1,
        unit: "plan",
        plan: plan.title,
        price: money,
        group: actor.group,
        terms: JSON.stringify(termsOf(deps, plan)),
      },
    },
  });
  return { tradeNo: order.tradeNo, ...(await rail.start(deps, order)) };
}
