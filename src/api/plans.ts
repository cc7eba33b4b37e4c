// Controller of /api/plan: what the site sells by the month, and the plans of single accounts.
// Refuses a buyer everything but their own, and administrators the terms: prices are root's. What was bought keeps its terms.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { ownPlans, payPlan } from "../core/payments/plan-orders.ts";
import { plansFor } from "../core/plans/own-plans.ts";
import { listPlans, PLAN_DEFAULTS } from "../core/plans/plans.ts";
import { buyFromWallet, cancelPlan, grantPlan } from "../core/plans/purchases.ts";
import { createPlan, removePlan, updatePlan } from "../core/prices/sold-plans.ts";
import { requireFreshProof } from "../core/users/step-up.ts";
import { auditActorOf, authorOf } from "../http/audit-actor.ts";
import { done, ok } from "../http/envelope.ts";
import { rowIdOf } from "../http/paging.ts";
import { plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure } from "../shared/failures.ts";

const integer = t.Integer({ minimum: -Number.MAX_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER });
const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const terms = {
  title: plainText(200),
  description: plainText(2000),
  price: plainText(20),
  currency: plainText(8),
  wallet_price: integer,
  // No UnionEnum: it has a default, and what is not named stays.
  duration_unit: t.Union([t.Literal("day"), t.Literal("week"), t.Literal("month"), t.Literal("year")]),
  duration_count: integer,
  reset: t.Union([t.Literal("none"), t.Literal("day"), t.Literal("week"), t.Literal("month")]),
  quota: integer,
  group: plainText(64),
  overflow: t.Boolean(),
  max_per_user: integer,
  stack: t.Union([t.Literal("extend"), t.Literal("parallel")]),
  enabled: t.Boolean(),
};
/** Why, for the history of prices. */
const reason = t.Optional(plainText(1000));
const { title, quota, duration_unit: unit, ...optional } = terms;
const createBody = t.Composite([
  t.Object({ title, quota, duration_unit: unit }),
  t.Partial(t.Object(optional)),
  t.Object({ reason }),
]);
const changeBody = t.Partial(t.Object({ ...terms, reason }));

/** How a plan is paid that is bought with the balance. */
const WALLET = "wallet";

export function plans(deps: Deps, session: SessionSettings) {
  return (
    new Elysia({ prefix: "/api/plan" })
      .use(policy(session))
      .get("/", async () => ok(await listPlans(deps)), { access: "admin" })
      .post(
        "/",
        async ({ actor, session: current, request, address, body: { reason: why, ...fields } }) => {
          await requireFreshProof(deps, { actor, session: current }, "with_factor");
          const by = { ...authorOf({ actor, session: current, request, address }), note: why ?? "" };
          return ok({ id: await createPlan(deps, by, { ...PLAN_DEFAULTS, ...fields }) });
        },
        { access: "root", body: createBody },
      )
      .put(
        "/:id",
        async ({ actor, session: current, request, address, params, body: { reason: why, ...fields } }) => {
          await requireFreshProof(deps, { actor, session: current }, "with_factor");
          const by = { ...authorOf({ actor, session: current, request, address }), note: why ?? "" };
          await updatePlan(deps, by, rowIdOf(params.id, "plan_missing"), fields);
          return done();
        },
        { access: "root", body: changeBody },
      )
      .delete(
        "/:id",
        async ({ actor, session: current, request, address, params, query }) => {
          await requireFreshProof(deps, { actor, session: current }, "with_factor");
          const by = { ...authorOf({ actor, session: current, request, address }), note: query.reason ?? "" };
          await removePlan(deps, by, rowIdOf(params.id, "plan_missing"));
          return done();
        },
        { access: "root", query: t.Object({ reason }) },
      )
      // What the wallet's page shows: on sale, running, over.
      .get("/self", async ({ actor }) => ok(await ownPlans(deps, actor)), { access: "user" })
      .post(
        "/:id/buy",
        async ({ actor, params, body: { rail = "", method } }) => {
          const planId = rowIdOf(params.id, "plan_missing");
          if (rail === "" && method === WALLET) {
            const bought = await buyFromWallet(deps, actor, planId);
            return ok({ id: bought.id, trade_no: "", url: "", fields: null });
          }
          const { tradeNo, url, fields } = await payPlan(deps, actor, { planId, rail, method });
          return ok({ id: 0, trade_no: tradeNo, url, fields: fields ?? null });
        },
        {
          access: "user",
          body: t.Object({ method: t.Optional(plainText(32)), rail: t.Optional(plainText(32)) }),
        },
      )
      .post(
        "/self/:id/cancel",
        async ({ actor, params }) => {
          const userPlanId = rowIdOf(params.id, "plan_missing");
          await cancelPlan(deps, { userId: actor.id, userPlanId });
          return done();
        },
        { access: "user" },
      )
      // † The plans of one account, in administration.
      .get(
        "/user/:id",
        async ({ actor, params }) => ok(await plansFor(deps, actor, rowIdOf(params.id, "user_missing"))),
        { access: "admin" },
      )
      .post(
        "/user/:id",
        async ({ actor, session: current, request, address, params, body }) => {
          const by = auditActorOf({ actor, session: current, request, address });
          const userId = rowIdOf(params.id, "user_missing");
          const reason = reasonOf(body.reason);
          const given = await grantPlan(deps, by, { userId, planId: body.plan_id, reason });
          return ok({ id: given.id });
        },
        { access: "admin", body: t.Object({ plan_id: id, reason: plainText(255) }) },
      )
      .post(
        "/user/:id/cancel",
        async ({ actor, session: current, request, address, params, body }) => {
          const by = auditActorOf({ actor, session: current, request, address });
          const userId = rowIdOf(params.id, "user_missing");
          const { user_plan_id: userPlanId, refund: isRefund = false } = body;
          await cancelPlan(deps, { userId, userPlanId, by, reason: reasonOf(body.reason), isRefund });
          return done();
        },
        {
          access: "admin",
          body: t.Object({ user_plan_id: id, reason: plainText(255), refund: t.Optional(t.Boolean()) }),
        },
      )
  );
}

function reasonOf(text: string): string {
  if (text.trim() === "") throw new Failure("client", "reason_missing", { param: "reason" });
  return text.trim();
}
