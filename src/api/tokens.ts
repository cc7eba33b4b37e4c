// Controller of /api/token: the caller's own API keys.
// Refuses foreign ids like missing ones; nobody, not even root, reads another user's keys here.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { rotateToken } from "../core/users/token-rotation.ts";
import {
  createToken,
  deleteToken,
  getToken,
  listTokens,
  MAX_TOKEN_QUOTA,
  setTokenStatus,
  updateToken,
} from "../core/users/tokens.ts";
import { auditActorOf } from "../http/audit-actor.ts";
import { done, ok } from "../http/envelope.ts";
import { LARGE_PAGE_SIZE, pageOf, pageQuery, rowIdOf } from "../http/paging.ts";
import { given, plainText } from "../http/plain-text.ts";
import { limitFields } from "../http/limit-fields.ts";
import { tokenFilterOf, tokenListFields, tokenSearchFields } from "../http/queries/tokens.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const fields = {
  name: given(plainText(255)),
  expired_time: given(t.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER })),
  remain_quota: given(t.Integer({ minimum: 0, maximum: MAX_TOKEN_QUOTA })),
  unlimited_quota: given(t.Boolean()),
  model_limits_enabled: given(t.Boolean()),
  model_limits: given(plainText(65_536)),
  allow_ips: given(plainText(65_536)),
  ...limitFields(),
  group: given(plainText(64)),
  auto_groups: given(plainText(1024)),
  max_quota: given(t.Integer({ minimum: 0, maximum: MAX_TOKEN_QUOTA })),
};

/** So long the secret before may be taken beside a new one: thirty days. */
const MAX_GRACE_SECONDS = 30 * 86_400;

export function tokens(deps: Deps, session: SessionSettings) {
  return new Elysia({ prefix: "/api/token" })
    .use(policy(session))
    .get(
      "/",
      async ({ actor, query }) => {
        const { page, offset, pageSize } = pageOf(
          { p: query.p, page_size: query.size ?? query.page_size },
          0,
        );
        const filter = tokenFilterOf({ status: query.status });
        const { items, total } = await listTokens(deps, actor, { ...filter, offset, limit: pageSize });
        return { ...ok(items), total, page, page_size: pageSize };
      },
      { access: "user", query: t.Object({ ...pageQuery, ...tokenListFields }) },
    )
    .get(
      "/search",
      async ({ actor, query }) => {
        const { size, page_size } = query;
        // Clients of old ask for no page and expect every match.
        const isPaged = size !== undefined || page_size !== undefined;
        const at = isPaged
          ? pageOf({ p: query.p, page_size: size ?? page_size }, 0)
          : { page: 0, offset: 0, pageSize: LARGE_PAGE_SIZE };
        const { items, total } = await listTokens(deps, actor, {
          ...tokenFilterOf(query),
          offset: at.offset,
          limit: at.pageSize,
        });
        return { ...ok(items), total, page: at.page, page_size: at.pageSize };
      },
      {
        access: "user",
        query: t.Object({ ...pageQuery, ...tokenSearchFields }),
      },
    )
    .get("/:id", async ({ actor, params }) => ok(await getToken(deps, actor, rowIdOf(params.id))), {
      access: "user",
    })
    .post("/", async ({ actor, body }) => ok(await createToken(deps, actor, body)), {
      access: "user",
      body: t.Object(fields),
    })
    .put(
      "/",
      async ({ actor, body, query }) =>
        ok(
          query.status_only
            ? await setTokenStatus(deps, actor, body.id, body.status ?? 0)
            : await updateToken(deps, actor, body.id, body),
        ),
      {
        access: "user",
        query: t.Object({ status_only: t.Optional(plainText(20)) }),
        body: t.Object({
          ...fields,
          id: t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
          status: given(t.Integer({ minimum: 0, maximum: 100 })),
        }),
      },
    )
    .post(
      "/:id/rotate",
      async ({ actor, params, body, request, address, session: current }) => {
        const by = auditActorOf({ actor, request, address, session: current });
        const graceSeconds = body.grace_seconds;
        const { key, previous_until } = await rotateToken(deps, actor, {
          id: rowIdOf(params.id),
          graceSeconds,
          by,
        });
        return ok({ key, previous_until });
      },
      {
        access: "user",
        body: t.Object({ grace_seconds: t.Integer({ minimum: 0, maximum: MAX_GRACE_SECONDS }) }),
      },
    )
    .delete(
      "/:id",
      async ({ actor, params }) => {
        await deleteToken(deps, actor, rowIdOf(params.id));
        return done();
      },
      { access: "user" },
    );
}
