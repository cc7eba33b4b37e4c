// Controller of the usage log's clearing: counted first, run once at a time, watched and ended.
import { Elysia, t } from "elysia";
import { createLogClearing } from "../core/logs/clearing.ts";
import type { Deps } from "../core/deps.ts";
import { auditActorOf } from "../http/audit-actor.ts";
import { done, ok } from "../http/envelope.ts";
import { positive, queryText } from "../http/queries/sent.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { refuse } from "../shared/failures.ts";

const target = t.Object({ target_timestamp: queryText(20) });

function momentOf(query: { target_timestamp?: string | undefined }): number {
  const before = positive(query.target_timestamp);
  if (before === undefined) throw refuse("log_target_missing");
  return before;
}

export function logClearing(deps: Deps, session: SessionSettings) {
  const clearing = createLogClearing(deps);
  return (
    new Elysia({ prefix: "/api" })
      .use(policy(session))
      .delete(
        "/log/",
        async ({ query, actor, session: current, request, address }) => {
          const by = auditActorOf({ actor, session: current, request, address });
          return ok(await clearing.run(momentOf(query), by));
        },
        { access: "admin", query: target },
      )
      // † What it would delete: asked before anybody confirms it.
      .get("/log/clear_count", async ({ query }) => ok(await clearing.count(momentOf(query))), {
        access: "admin",
        query: target,
      })
      // † How far the clearing is, and its end before it is through.
      .get("/log/clear_progress", () => ok(clearing.progress()), { access: "admin" })
      .post(
        "/log/clear_cancel",
        () => {
          clearing.cancel();
          return done();
        },
        { access: "admin" },
      )
  );
}
