// Controller of /api/redemption: codes for balance, for administrators.
// Refuses changes of used codes; redeeming them is the wallet's.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import {
  changeRedemptions,
  createRedemptions,
  deleteRedemption,
  getRedemption,
  listRedemptions,
  REDEMPTION_ACTIONS,
  updateRedemption,
} from "../core/users/redemptions.ts";
import { auditActorOf } from "../http/audit-actor.ts";
import { done, ok } from "../http/envelope.ts";
import { LARGE_PAGE_SIZE, pageOf, pageQuery, rowIdOf } from "../http/paging.ts";
import { plainText } from "../http/plain-text.ts";
import { redemptionFilterOf, redemptionListFields } from "../http/queries/redemptions.ts";
import type { Sent } from "../http/queries/sent.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const integer = t.Integer({ minimum: -Number.MAX_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER });
const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
/** Unix seconds; 0: no end. */
const end = t.Optional(t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));
/** The console sends larger selections in parts. */
const MAX_IDS = 1000;
const listQuery = { ...pageQuery, ...redemptionListFields };

export function redemptions(deps: Deps, session: SessionSettings) {
  const list = async (query: Sent<typeof listQuery>) => {
    const sent = { ...query, p: query.p === "0" ? "1" : query.p };
    const { page, pageSize } = pageOf(sent, 1, LARGE_PAGE_SIZE);
    const { items, total } = await listRedemptions(deps, { ...redemptionFilterOf(query), page, pageSize });
    return ok({ items, total, page, page_size: pageSize });
  };
  return (
    new Elysia({ prefix: "/api/redemption" })
      .use(policy(session))
      .get("/", ({ query }) => list(query), { access: "admin", query: t.Object(listQuery) })
      .get("/search", ({ query }) => list(query), { access: "admin", query: t.Object(listQuery) })
      .get("/:id", async ({ params }) => ok(await getRedemption(deps, rowIdOf(params.id))), {
        access: "admin",
      })
      .post(
        "/",
        async ({ actor, session: current, request, address, body }) => {
          const by = auditActorOf({ actor, session: current, request, address });
          return ok(await createRedemptions(deps, by, body));
        },
        {
          access: "admin",
          body: t.Object({ name: plainText(255), quota: integer, count: integer, expired_time: end }),
        },
      )
      // † Many codes in one go; data is how many it changed.
      .post("/batch", async ({ body }) => ok(await changeRedemptions(deps, body.ids, body.action)), {
        access: "admin",
        body: t.Object({
          ids: t.Array(id, { minItems: 1, maxItems: MAX_IDS }),
          action: t.UnionEnum(REDEMPTION_ACTIONS),
        }),
      })
      .put(
        "/",
        async ({ actor, session: current, request, address, body, query }) => {
          const by = auditActorOf({ actor, session: current, request, address });
          return ok(await updateRedemption(deps, by, body, (query.status_only ?? "") !== ""));
        },
        {
          access: "admin",
          query: t.Object({ status_only: t.Optional(plainText(10)) }),
          body: t.Object({
            id,
            name: t.Optional(plainText(255)),
            quota: t.Optional(integer),
            expired_time: end,
            status: t.Optional(t.Integer({ minimum: 0, maximum: 9 })),
          }),
        },
      )
      .delete(
        "/:id",
        async ({ params }) => {
          await deleteRedemption(deps, rowIdOf(params.id));
          return done();
        },
        { access: "admin" },
      )
  );
}
