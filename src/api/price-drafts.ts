// Controller of /api/price/drafts: changes of prices that administrators prepare, and that root schedules.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { asksProof } from "../core/prices/changes.ts";
import {
  changeDraft,
  createDraft,
  discardDraft,
  DRAFT_STATES,
  draftOf,
  listDrafts,
} from "../core/prices/drafts.ts";
import type { Draft } from "../core/prices/drafts.ts";
import { requireFreshProof } from "../core/users/step-up.ts";
import { done, ok } from "../http/envelope.ts";
import { pageOf, pageQuery, rowIdOf } from "../http/paging.ts";
import { plainText } from "../http/plain-text.ts";
import { plainChanges, revisionNumber, sentChanges } from "../http/queries/price-changes.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const note = t.Optional(plainText(1000));
const title = t.Optional(plainText(200));
const announce = t.Optional(t.Boolean());

function draftJson(draft: Draft) {
  const { changes, effectiveAt, revisionId, userId, createdAt, updatedAt, ...more } = draft;
  const { schedulerId, schedulerName, ...rest } = more;
  return {
    ...rest,
    changes: plainChanges(changes),
    effective_at: effectiveAt,
    revision_id: revisionId,
    user_id: userId,
    scheduler_id: schedulerId,
    scheduler_name: schedulerName,
    created_at: createdAt,
    updated_at: updatedAt,
  };
}

export function priceDrafts(deps: Deps, session: SessionSettings) {
  return new Elysia({ prefix: "/api/price/drafts" })
    .use(policy(session))
    .get(
      "",
      async ({ query }) => {
        const { page, pageSize } = pageOf(query, 1);
        const state = DRAFT_STATES.find((each) => each === query.state);
        const { items, total } = await listDrafts(deps.db, { page, pageSize, state });
        return ok({ items: items.map(draftJson), total, page, page_size: pageSize });
      },
      { access: "admin", query: t.Object({ ...pageQuery, state: t.Optional(plainText(20)) }) },
    )
    .post(
      "",
      async ({ body, actor }) => {
        const input = { ...body, title: body.title ?? "", note: body.note ?? "" };
        return ok(draftJson(await createDraft(deps, input, actor)));
      },
      { access: "admin", body: t.Object({ title, note, changes: sentChanges, announce }) },
    )
    .put(
      "",
      async ({ body, actor, session: current }) => {
        const { effective_at: effectiveAt, ...edit } = body;
        // Scheduled is as good as applied. The version says that these are the changes that will be.
        if (effectiveAt !== undefined && effectiveAt > 0) {
          const changes = edit.changes ?? (await draftOf(deps.db, edit.id)).changes;
          if (asksProof(changes)) await requireFreshProof(deps, { actor, session: current }, "with_factor");
        }
        return ok(draftJson(await changeDraft(deps, { ...edit, effectiveAt }, actor)));
      },
      {
        access: "admin",
        body: t.Object({
          id,
          version: t.Integer({ minimum: 1, maximum: 2_147_483_647 }),
          title,
          note,
          changes: t.Optional(sentChanges),
          announce,
          effective_at: t.Optional(t.Integer({ minimum: 0, maximum: 100_000_000_000 })),
          parent: t.Optional(revisionNumber),
        }),
      },
    )
    .delete(
      "/:id",
      async ({ params, actor }) => {
        await discardDraft(deps, rowIdOf(params.id), actor);
        return done();
      },
      { access: "admin" },
    );
}
