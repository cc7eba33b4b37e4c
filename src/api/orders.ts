// Orders as their buyers and those who look after them see them, what root does by hand, and the statements.
// Refuses another user's order or statement to anybody below administrators, and what moves money without a fresh proof.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { allOrders, eventsOf, oneOrder, ownOrders } from "../core/payments/order-list.ts";
import { completeOrder } from "../core/payments/orders.ts";
import { refundOrder } from "../core/payments/refunds.ts";
import { statementCsv } from "../core/payments/statement-csv.ts";
import { statementOf } from "../core/payments/statement.ts";
import { requireFreshProof } from "../core/users/step-up.ts";
import { done, ok } from "../http/envelope.ts";
import { LARGE_PAGE_SIZE, pageOf, pageQuery, rowIdOf } from "../http/paging.ts";
import { plainText } from "../http/plain-text.ts";
import { orderFilterOf, orderListFields, ownOrderFields } from "../http/queries/orders.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Role } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";
import { auditActorOf } from "../http/audit-actor.ts";

const byHand = { trade_no: plainText(64), reason: plainText(255) };

export function orders(deps: Deps, session: SessionSettings) {
  return (
    new Elysia({ prefix: "/api/user" })
      .use(policy(session))
      .get(
        "/topup/self",
        async ({ actor, query }) => {
          const { page, pageSize } = pageOf(query, 1);
          const filter = { ...orderFilterOf(query), userId: actor.id };
          const { items, total } = await ownOrders(deps, { ...filter, page, pageSize });
          return ok({ items, total, page, page_size: pageSize });
        },
        { access: "user", query: t.Object({ ...pageQuery, ...ownOrderFields }) },
      )
      .get(
        "/topup",
        async ({ query }) => {
          const { page, pageSize } = pageOf(query, 1, LARGE_PAGE_SIZE);
          const list = await allOrders(deps, { ...orderFilterOf(query), page, pageSize });
          return ok({ ...list, page, page_size: pageSize });
        },
        { access: "admin", query: t.Object({ ...pageQuery, ...orderListFields }) },
      )
      .get(
        "/topup/:trade_no",
        async ({ actor, params }) => ok(await oneOrder(deps, actor, params.trade_no)),
        { access: "user" },
      )
      .get(
        "/topup/:trade_no/events",
        async ({ actor, params }) => {
          const { trade_no: tradeNo } = await oneOrder(deps, actor, params.trade_no);
          return ok(await eventsOf(deps, [tradeNo]));
        },
        { access: "root" },
      )
      // By root, who has proven themselves afresh: money that came another way.
      .post(
        "/topup/complete",
        async ({ actor, session: current, body, request, address }) => {
          await requireFreshProof(deps, { actor, session: current }, "everybody");
          const by = auditActorOf({ actor, session: current, request, address });
          const { trade_no: tradeNo, reason, pro_rata: isProRata = false } = body;
          await completeOrder(deps, by, { tradeNo, reason: reasonOf(reason), isProRata });
          return done();
        },
        { access: "root", body: t.Object({ ...byHand, pro_rata: t.Optional(t.Boolean()) }) },
      )
      .post(
        "/topup/refund",
        async ({ actor, session: current, body, request, address }) => {
          await requireFreshProof(deps, { actor, session: current }, "everybody");
          const by = auditActorOf({ actor, session: current, request, address });
          await refundOrder(deps, by, body.trade_no, reasonOf(body.reason));
          return done();
        },
        { access: "root", body: t.Object(byHand) },
      )
      .get(
        "/statement",
        async ({ actor, query, set }) => {
          const asked = query.user_id ?? "";
          const userId = asked === "" ? actor.id : rowIdOf(asked, "user_missing");
          if (userId !== actor.id && actor.role < Role.admin)
            throw new Failure("forbidden", "auth_role_too_low");
          const statement = await statementOf(deps, { userId, month: query.month });
          if (query.format !== "csv") return ok(statement);
          set.headers["content-type"] = "text/csv;charset=utf-8";
          set.headers["content-disposition"] =
            `attachment; filename="statement-${userId}-${statement.month}.csv"`;
          return statementCsv(statement);
        },
        {
          access: "user",
          query: t.Object({
            month: plainText(7),
            format: t.Optional(t.UnionEnum(["json", "csv"])),
            user_id: t.Optional(plainText(20)),
          }),
        },
      )
  );
}

function reasonOf(text: string): string {
  if (text.trim() === "") throw new Failure("client", "reason_missing", { param: "reason" });
  return text.trim();
}
