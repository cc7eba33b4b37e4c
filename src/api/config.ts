// Controller of /api/config: the site's settings as one document, for root's programs (`weir export`, `plan`, `apply`).
// Refuses nothing by itself: what is wrong with a document, or in its way, stands in the answer with its place.
import { Elysia, t } from "elysia";
import { applyConfig, planConfig } from "../core/config/apply.ts";
import { exportConfig } from "../core/config/export.ts";
import { requireFreshProof } from "../core/users/step-up.ts";
import type { Deps } from "../core/deps.ts";
import { authorOf } from "../http/audit-actor.ts";
import { configAnswer } from "../http/config-answer.ts";
import { ok } from "../http/envelope.ts";
import { plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const fields = {
  document: t.Record(t.String(), t.Unknown()),
  /** What ${NAME} stands for; kept nowhere but in what it is for. */
  variables: t.Optional(t.Record(t.String(), t.String({ maxLength: 1_000_000 }))),
  accept_guards: t.Optional(t.Boolean()),
};

const requestOf = (body: {
  document: Record<string, unknown>;
  variables?: Record<string, string>;
  accept_guards?: boolean;
}) => ({
  document: body.document,
  variables: new Map(Object.entries(body.variables ?? {})),
  acceptsGuards: body.accept_guards ?? false,
});

export function config(deps: Deps, session: SessionSettings) {
  return new Elysia({ prefix: "/api/config" })
    .use(policy(session))
    .get("", async () => ok(await exportConfig(deps)), { access: "root" })
    .post(
      "/plan",
      async ({ body, language }) => ok(configAnswer(await planConfig(deps, requestOf(body)), language)),
      { access: "root", body: t.Object(fields) },
    )
    .post(
      "/apply",
      async ({ body, actor, language, session: current, request, address }) => {
        const author = {
          ...authorOf({ actor, session: current, request, address }),
          kind: "cli" as const,
          note: body.note ?? "",
        };
        await requireFreshProof(deps, { actor, session: current }, "with_factor");
        const asked = { ...requestOf(body), planHash: body.plan_hash };
        return ok(configAnswer(await applyConfig(deps, asked, author), language));
      },
      {
        access: "root",
        body: t.Object({
          ...fields,
          plan_hash: t.Optional(plainText(128)),
          note: t.Optional(plainText(1000)),
        }),
      },
    );
}
