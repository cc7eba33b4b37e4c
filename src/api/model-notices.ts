// Controller of /api/model_notice: what administrators tell users about models or channels, until when.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { addNotice, changeNotice, listNotices, removeNotice } from "../core/site/model-notices.ts";
import { done, ok } from "../http/envelope.ts";
import { plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const noticeBody = t.Object({
  /** Exact names. */
  models: t.Array(plainText(255), { maxItems: 200 }),
  /** Ids. */
  channels: t.Array(id, { maxItems: 200 }),
  text: plainText(300),
  /** Unix seconds; 0: until it is taken back. */
  until: t.Integer({ minimum: 0, maximum: 100_000_000_000 }),
});

export function modelNotices(deps: Deps, session: SessionSettings) {
  return new Elysia({ prefix: "/api/model_notice" })
    .use(policy(session))
    .get("/", () => ok(listNotices(deps)), { access: "admin" })
    .post("/", async ({ body }) => ok(await addNotice(deps, body)), { access: "admin", body: noticeBody })
    .put("/:id", async ({ params, body }) => ok(await changeNotice(deps, params.id, body)), {
      access: "admin",
      body: noticeBody,
    })
    .delete(
      "/:id",
      async ({ params }) => {
        await removeNotice(deps, params.id);
        return done();
      },
      { access: "admin" },
    );
}
