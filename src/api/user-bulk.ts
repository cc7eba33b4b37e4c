// Administration of many users at once, and what administrators note about one.
// Refuses by rank, account for account: core/users/bulk-run.ts.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { createBulk, getBulk, listBulks } from "../core/users/bulk.ts";
import type { BulkAct } from "../core/users/bulk.ts";
import { runSoon } from "../core/users/bulk-run.ts";
import { MAX_REASON } from "../core/users/balance-changes.ts";
import { MOST_CHARACTERS } from "../core/users/import/file.ts";
import { lookAtImport, startImport } from "../core/users/import/start.ts";
import { userCsv } from "../core/users/user-csv.ts";
import { writeNotes } from "../core/users/user-notes.ts";
import { auditActorOf } from "../http/audit-actor.ts";
import { done, ok } from "../http/envelope.ts";
import { fileStream } from "../http/file-stream.ts";
import { rowIdOf } from "../http/paging.ts";
import { plainText } from "../http/plain-text.ts";
import { userFilterOf, userSearchFields } from "../http/queries/users.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { refuse } from "../shared/failures.ts";
import { MAX_REMARK } from "../shared/name-limits.ts";

const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const letter = t.Optional(t.Object({ subject: plainText(200), text: plainText(20_000) }));

const bulkBody = t.Object({
  action: t.Union([
    t.Literal("group"),
    t.Literal("credit"),
    t.Literal("disable"),
    t.Literal("enable"),
    t.Literal("flag"),
    t.Literal("letter"),
  ]),
  ids: t.Optional(t.Array(id, { maxItems: 10_000 })),
  filter: t.Optional(t.Object(userSearchFields)),
  count: t.Optional(id),
  reason: t.Optional(plainText(500)),
  group: t.Optional(plainText(64)),
  amount: t.Optional(t.Integer({ minimum: -Number.MAX_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER })),
  flagged: t.Optional(t.Boolean()),
  letters: t.Optional(t.Object({ zh: letter, en: letter })),
});

const importBody = t.Object({
  csv: t.String({ maxLength: MOST_CHARACTERS }),
  /** Absent: only looked at. */
  plan: t.Optional(plainText(64)),
  reason: t.Optional(plainText(MAX_REASON)),
});

function actOf(body: typeof bulkBody.static): BulkAct {
  const { action } = body;
  if (action === "group") return { action, group: body.group ?? "" };
  if (action === "credit") return { action, amount: body.amount ?? 0 };
  if (action === "flag") return { action, flagged: body.flagged ?? true };
  if (action !== "letter") return { action };
  const { zh, en } = body.letters ?? {};
  return { action, letters: { ...(zh ? { zh } : {}), ...(en ? { en } : {}) } };
}

function whomOf({ ids, filter, count }: typeof bulkBody.static) {
  if (ids !== undefined && filter === undefined) return { ids };
  if (ids === undefined && filter !== undefined && count !== undefined)
    return { filter: userFilterOf(filter), count };
  throw refuse("params_wrong");
}

export function userBulk(deps: Deps, session: SessionSettings) {
  return (
    new Elysia({ prefix: "/api/user" })
      .use(policy(session))
      .post(
        "/bulk",
        async ({ actor, body, request, address, session: current }) => {
          const by = auditActorOf({ actor, request, address, session: current });
          const bulk = await createBulk(deps, by, {
            act: actOf(body),
            reason: (body.reason ?? "").trim(),
            whom: whomOf(body),
          });
          runSoon(deps, bulk);
          return ok({ id: bulk });
        },
        { access: "admin", body: bulkBody },
      )
      .get("/bulk", async ({ actor }) => ok(await listBulks(deps, actor)), { access: "admin" })
      .get("/bulk/:id", async ({ actor, params }) => ok(await getBulk(deps, actor, rowIdOf(params.id))), {
        access: "admin",
      })
      // † Accounts by a file: looked at without `plan`, begun with the `plan` that was looked at.
      .post(
        "/import",
        async ({ actor, body, request, address, session: current }) => {
          const by = auditActorOf({ actor, request, address, session: current });
          const { csv: text, plan, reason = "" } = body;
          if (plan === undefined) return ok({ report: await lookAtImport(deps, by, text) });
          const id = await startImport(deps, by, { text, plan, reason: reason.trim() });
          runSoon(deps, id);
          return ok({ id });
        },
        { access: "admin", body: importBody },
      )
      .get(
        "/export",
        ({ actor, query, request }) => {
          const day = new Date(deps.clock.nowMs()).toISOString().slice(0, 10);
          const parts = userCsv(deps, actor, userFilterOf(query));
          const file = { name: `users-${day}.csv`, type: "text/csv; charset=utf-8", parts };
          return fileStream(deps, { visitors: session.visitors, request }, file);
        },
        { access: "admin", query: t.Object(userSearchFields) },
      )
      .put(
        "/:id/notes",
        async ({ actor, body, params, request, address, session: current }) => {
          const by = auditActorOf({ actor, request, address, session: current });
          await writeNotes(deps, by, rowIdOf(params.id, "user_missing"), body);
          return done();
        },
        {
          access: "admin",
          body: t.Object({ remark: t.Optional(plainText(MAX_REMARK)), flagged: t.Optional(t.Boolean()) }),
        },
      )
  );
}
