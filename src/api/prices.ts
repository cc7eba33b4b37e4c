// Controller of /api/price: plans of price changes, the history, and its undo.
// Administrators read and plan; root applies and undoes, and with a second factor proves itself before what the site is paid.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { asksProof } from "../core/prices/changes.ts";
import { deskPrices } from "../core/prices/desk.ts";
import { planPrices } from "../core/prices/plan.ts";
import {
  applyPlan,
  listRevisions,
  previewUndo,
  revisionDetail,
  undoRevision,
} from "../core/prices/revisions.ts";
import type { Revision } from "../core/prices/revisions.ts";
import type { Sums, WhatIf } from "../core/prices/what-if.ts";
import { requireFreshProof } from "../core/users/step-up.ts";
import { authorOf } from "../http/audit-actor.ts";
import { ok } from "../http/envelope.ts";
import { idOf, pageOf, pageQuery, rowIdOf } from "../http/paging.ts";
import { plainText } from "../http/plain-text.ts";
import { changePlace, plainChanges, revisionNumber, sentChanges } from "../http/queries/price-changes.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { priceMissing } from "./price-missing.ts";

const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const note = t.Optional(plainText(1000));

function revisionJson({ userId, createdAt, changeCount, undoOf, undoneBy, draftId, ...rest }: Revision) {
  return {
    ...rest,
    user_id: userId,
    created_at: createdAt,
    change_count: changeCount,
    undo_of: undoOf,
    undone_by: undoneBy,
    draft_id: draftId,
  };
}

function ofUser<T extends Sums & { userId: number }>({ userId, ...rest }: T) {
  return { ...rest, user_id: userId };
}

function effectJson({
  everyHours,
  lostCalls,
  refusedCalls,
  byModel,
  byGroup,
  byUser,
  cells,
  ...rest
}: WhatIf) {
  return {
    ...rest,
    every_hours: everyHours,
    lost_calls: lostCalls,
    refused_calls: refusedCalls,
    by_model: byModel,
    by_group: byGroup,
    by_user: byUser.map(ofUser),
    cells: cells.map(ofUser),
  };
}

/** Everything below /api/price but the drafts. */
export function prices(deps: Deps, session: SessionSettings) {
  return new Elysia().use(priceMissing(deps, session)).use(priceChanges(deps, session));
}

function priceChanges(deps: Deps, session: SessionSettings) {
  return (
    new Elysia({ prefix: "/api/price" })
      .use(policy(session))
      .get("/desk", async () => ok(await deskPrices(deps)), { access: "admin" })
      .get(
        "/revisions",
        async ({ query }) => {
          const { page, pageSize } = pageOf(query, 1);
          const after = idOf(query.after ?? "");
          const name = query.name === "" ? undefined : query.name;
          const { items, total, revision } = await listRevisions(deps.db, { page, pageSize, after, name });
          return ok({ items: items.map(revisionJson), total, page, page_size: pageSize, revision });
        },
        {
          access: "admin",
          query: t.Object({
            ...pageQuery,
            after: t.Optional(plainText(20)),
            name: t.Optional(plainText(255)),
          }),
        },
      )
      .get(
        "/revisions/:id",
        async ({ params }) => {
          const { changes: all, ...row } = await revisionDetail(deps.db, rowIdOf(params.id));
          return ok({ ...revisionJson(row), changes: plainChanges(all) });
        },
        { access: "admin" },
      )
      // What an undo would do, for whoever looks before.
      .get(
        "/revisions/:id/undo",
        async ({ params }) => {
          const undo = await previewUndo(deps.db, rowIdOf(params.id));
          return ok({ ...undo, changes: plainChanges(undo.changes), skipped: plainChanges(undo.skipped) });
        },
        { access: "admin" },
      )
      .post(
        "/revisions/:id/undo",
        async ({ params, body, actor, session: current, request, address }) => {
          const undo = { id: rowIdOf(params.id), note: body.note ?? "", include: body.include ?? [] };
          if (asksProof((await revisionDetail(deps.db, undo.id)).changes))
            await requireFreshProof(deps, { actor, session: current }, "with_factor");
          const undone = await undoRevision(
            deps,
            undo,
            authorOf({ actor, session: current, request, address }),
          );
          return ok({ ...undone, skipped: plainChanges(undone.skipped) });
        },
        {
          access: "root",
          body: t.Object({ note, include: t.Optional(t.Array(t.Object(changePlace), { maxItems: 50_000 })) }),
        },
      )
      .post(
        "/plan",
        async ({ body, request, language }) => {
          const { parent, changes: sent, days = 7 } = body;
          const plan = await planPrices(deps, { parent, changes: sent, days, signal: request.signal });
          return ok({
            parent: plan.parent,
            plan_hash: plan.planHash,
            changes: plainChanges(plan.changes),
            diff: plan.models.map((each) => ({
              ...each,
              vendor: deps.vendors.title(deps.vendors.of(each.model), language),
            })),
            diff_count: plan.modelCount,
            warnings: plan.warnings.map(({ isBlocking, ...each }) => ({ ...each, blocking: isBlocking })),
            effect: plan.effect === null ? null : effectJson(plan.effect),
          });
        },
        {
          access: "admin",
          body: t.Object({
            parent: t.Optional(revisionNumber),
            changes: sentChanges,
            days: t.Optional(t.Union([t.Literal(0), t.Literal(1), t.Literal(7), t.Literal(30)])),
          }),
        },
      )
      .post(
        "/apply",
        async ({ body, actor, session: current, request, address }) => {
          if (asksProof(body.changes))
            await requireFreshProof(deps, { actor, session: current }, "with_factor");
          const plan = {
            planHash: body.plan_hash,
            parent: body.parent,
            changes: body.changes,
            note: body.note ?? "",
            draftId: body.draft_id,
            draftVersion: body.draft_version,
          };
          return ok(await applyPlan(deps, plan, authorOf({ actor, session: current, request, address })));
        },
        {
          access: "root",
          body: t.Object({
            plan_hash: plainText(128),
            parent: revisionNumber,
            changes: sentChanges,
            note,
            draft_id: t.Optional(id),
            draft_version: t.Optional(t.Integer({ minimum: 1, maximum: 2_147_483_647 })),
          }),
        },
      )
  );
}
