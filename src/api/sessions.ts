// Controller of devices: where an account is signed in, and signing out there.
// Refuses access tokens for the own devices: only who is signed in decides who else is.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { listSessions, revokeAllOf, revokeOthers, revokeSession } from "../core/users/session-list.ts";
import { requireFreshProof } from "../core/users/step-up.ts";
import { auditActorOf } from "../http/audit-actor.ts";
import { deviceOf } from "../http/device.ts";
import { done, ok } from "../http/envelope.ts";
import { rowIdOf } from "../http/paging.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

export function sessions(deps: Deps, settings: SessionSettings) {
  return (
    new Elysia({ prefix: "/api/user" })
      .use(policy(settings))
      // † All of it.
      .get("/sessions", async ({ actor, session }) => ok(await listSessions(deps, actor, session?.id)), {
        access: "session",
      })
      .delete(
        "/sessions/:id",
        async ({ actor, session, request, address, params }) => {
          await revokeSession(deps, actor, auditActorOf({ actor, session, request, address }), params.id);
          return done();
        },
        { access: "session", params: t.Object({ id: t.String({ maxLength: 64 }) }) },
      )
      .post(
        "/sessions/revoke-others",
        async ({ actor, session, request, address }) => {
          await requireFreshProof(deps, { actor, session }, "with_factor");
          const by = auditActorOf({ actor, session, request, address });
          const here = { sessionId: session?.id ?? "", deviceId: deviceOf(request, settings.secret) };
          await revokeOthers(deps, actor, by, here);
          return done();
        },
        { access: "session" },
      )
      .post(
        "/:id/sessions/revoke",
        async ({ actor, session, request, address, params }) => {
          const by = auditActorOf({ actor, session, request, address });
          await revokeAllOf(deps, by, rowIdOf(params.id, "user_missing"));
          return done();
        },
        { access: "admin" },
      )
  );
}
