// Administration of users.
// Refuses by rank: an administrator never touches a same or higher rank.
import { Elysia, t } from "elysia";
import type { Deps, UserAccount } from "../core/deps.ts";
import { createUser, manageUser, removeUser, updateUser } from "../core/users/users.ts";
import { requireFreshProof } from "../core/users/step-up.ts";
import { ceilingOf, MAX_REASON } from "../core/users/balance-changes.ts";
import { getUserAsAdmin, listUsers } from "../core/users/user-list.ts";
import { limitsOfUser } from "../core/users/own-limits.ts";
import { keysOfUser } from "../core/users/user-keys.ts";
import { auditActorOf } from "../http/audit-actor.ts";
import { done, ok } from "../http/envelope.ts";
import { LARGE_PAGE_SIZE, pageOf, pageQuery, rowIdOf } from "../http/paging.ts";
import { limitFields } from "../http/limit-fields.ts";
import { given, plainText } from "../http/plain-text.ts";
import { userFilterOf, userSearchFields } from "../http/queries/users.ts";
import type { Sent } from "../http/queries/sent.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const name = plainText(255);
const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });

const newUserBody = t.Object({
  username: name,
  password: name,
  display_name: t.Optional(name),
  email: t.Optional(plainText(320)),
  role: t.Optional(t.Integer({ minimum: 0, maximum: 100 })),
});

const userBody = t.Object({
  id,
  username: t.Optional(name),
  display_name: t.Optional(name),
  password: t.Optional(name),
  group: t.Optional(plainText(64)),
  // A name that is no limit is refused by the core, with its name: a schema that is closed would drop it silently.
  limits: given(t.Object(limitFields(), { additionalProperties: true })),
  quota: t.Optional(t.Integer({ minimum: -Number.MAX_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER })),
  quota_change: t.Optional(
    t.Integer({ minimum: -Number.MAX_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }),
  ),
  quota_reason: t.Optional(plainText(MAX_REASON)),
});

const manageBody = t.Object({
  id,
  // Not UnionEnum: it has a default, and a call without an action would disable the user.
  action: t.Union([
    t.Literal("disable"),
    t.Literal("enable"),
    t.Literal("delete"),
    t.Literal("promote"),
    t.Literal("demote"),
  ]),
});

export function users(deps: Deps, session: SessionSettings) {
  const list = async (actor: UserAccount, query: Sent<typeof pageQuery & typeof userSearchFields>) => {
    const { page, pageSize } = pageOf(query, 1, LARGE_PAGE_SIZE);
    const { items, total } = await listUsers(deps, actor, { ...userFilterOf(query), page, pageSize });
    return ok({ items, total, page, page_size: pageSize });
  };
  return (
    new Elysia({ prefix: "/api/user" })
      .use(policy(session))
      .get("/", ({ actor, query }) => list(actor, { p: query.p, page_size: query.page_size }), {
        access: "admin",
        query: t.Object(pageQuery),
      })
      .get("/search", ({ actor, query }) => list(actor, query), {
        access: "admin",
        query: t.Object({ ...pageQuery, ...userSearchFields }),
      })
      .post(
        "/",
        async ({ actor, body, session: current, request, address }) => {
          const by = auditActorOf({ actor, session: current, request, address });
          return ok({ id: await createUser(deps, by, body) });
        },
        { access: "admin", body: newUserBody },
      )
      // † What of balances may still be changed today.
      .get("/ceiling", async ({ actor }) => ok(await ceilingOf(deps, actor)), { access: "admin" })
      .put(
        "/",
        async ({ actor, body, session: current, request, address }) => {
          if (body.password) await requireFreshProof(deps, { actor, session: current }, "with_factor");
          await updateUser(deps, auditActorOf({ actor, session: current, request, address }), body);
          return done();
        },
        { access: "admin", body: userBody },
      )
      .post(
        "/manage",
        async ({ actor, body, session: current, request, address }) => {
          if (body.action === "promote" || body.action === "demote")
            await requireFreshProof(deps, { actor, session: current }, "with_factor");
          const by = auditActorOf({ actor, session: current, request, address });
          return ok(await manageUser(deps, by, body.id, body.action));
        },
        { access: "admin", body: manageBody },
      )
      .get(
        "/:id",
        async ({ actor, params }) =>
          ok(await getUserAsAdmin(deps, actor, rowIdOf(params.id, "user_missing"))),
        {
          access: "admin",
        },
      )
      // † Names and figures of the user's keys, never the keys.
      .get(
        "/:id/keys",
        async ({ actor, params }) => ok(await keysOfUser(deps, actor, rowIdOf(params.id, "user_missing"))),
        {
          access: "admin",
        },
      )
      // † In force for the user: their own limits, their group's or everybody's.
      .get(
        "/:id/limits",
        async ({ actor, params }) => ok(await limitsOfUser(deps, actor, rowIdOf(params.id, "user_missing"))),
        { access: "admin" },
      )
      .delete(
        "/:id",
        async ({ actor, params, session: current, request, address }) => {
          const by = auditActorOf({ actor, session: current, request, address });
          await removeUser(deps, by, rowIdOf(params.id, "user_missing"));
          return done();
        },
        { access: "admin" },
      )
  );
}
