// Controller of /api/channel's changes of many channels at once: chosen ones, those of a tag, disabled ones, the index.
import { Elysia, t } from "elysia";
import {
  deleteChannels,
  deleteDisabledChannels,
  editTag,
  fixAbilities,
  setTagStatus,
  tagChannels,
} from "../core/channels/channels.ts";
import type { Deps } from "../core/deps.ts";
import { done, ok } from "../http/envelope.ts";
import { given, plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { refuse } from "../shared/failures.ts";

export const channelPriority = t.Integer({ minimum: -999, maximum: 2_000_000_000 });
export const channelWeight = t.Integer({ minimum: 0, maximum: 1_000_000 });

const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const ids = t.Optional(t.Array(id, { maxItems: 10_000 }));
const tag = given(plainText(64));

const tagEdit = t.Object({
  tag,
  new_tag: tag,
  priority: given(channelPriority),
  weight: given(channelWeight),
  model_mapping: given(plainText(65_536)),
  models: given(plainText(200_000)),
  groups: given(plainText(8192)),
});

/** Each id once; refuses a choice of nothing. */
function chosenIds(sent: readonly number[] | undefined): number[] {
  const chosen = [...new Set(sent)];
  if (chosen.length === 0) throw refuse("params_wrong");
  return chosen;
}

function requireTag(sent: string | null | undefined): string {
  if (!sent) throw refuse("params_wrong");
  return sent;
}

export function channelBulk(deps: Deps, session: SessionSettings) {
  return new Elysia({ prefix: "/api/channel" })
    .use(policy(session))
    .post(
      "/batch",
      async ({ body }) => {
        const chosen = chosenIds(body.ids);
        await deleteChannels(deps, chosen);
        return ok(chosen.length);
      },
      { access: "admin", body: t.Object({ ids }) },
    )
    .post(
      "/batch/tag",
      async ({ body }) => {
        const chosen = chosenIds(body.ids);
        await tagChannels(deps, chosen, body.tag ?? null);
        return ok(chosen.length);
      },
      { access: "admin", body: t.Object({ ids, tag }) },
    )
    .put(
      "/tag",
      async ({ body }) => {
        await editTag(deps, { ...body, tag: body.tag ?? "" });
        return done();
      },
      { access: "admin", body: tagEdit },
    )
    .post(
      "/tag/enabled",
      async ({ body }) => {
        await setTagStatus(deps, requireTag(body.tag), true);
        return done();
      },
      { access: "admin", body: t.Object({ tag }) },
    )
    .post(
      "/tag/disabled",
      async ({ body }) => {
        await setTagStatus(deps, requireTag(body.tag), false);
        return done();
      },
      { access: "admin", body: t.Object({ tag }) },
    )
    .delete("/disabled", async () => ok(await deleteDisabledChannels(deps)), { access: "admin" })
    .post("/fix", async () => ok(await fixAbilities(deps)), { access: "admin" });
}
