// Controller of the health of channels, for administrators: what rests, why and until when, and letting calls through again.
// Refuses to know another node's: each node learns by its own calls.
import { Elysia, t } from "elysia";
import { cellStates, closeCell } from "../core/channels/cells.ts";
import type { Channel } from "../core/channels/rows.ts";
import type { Deps } from "../core/deps.ts";
import { ok } from "../http/envelope.ts";
import { idOf } from "../http/paging.ts";
import { given, plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { refuse } from "../shared/failures.ts";

export function channelHealth(deps: Deps, session: SessionSettings) {
  const channelOf = (text: string): Channel => {
    const id = idOf(text);
    const channel = id === undefined ? undefined : deps.routing.channel(id);
    if (!channel) throw refuse("record_missing");
    return channel;
  };
  return (
    new Elysia({ prefix: "/api/channel" })
      .use(policy(session))
      // † Cells of the channel that had trouble lately.
      .get("/cells/:id", ({ params }) => ok(cellStates(deps, channelOf(params.id))), { access: "admin" })
      // † "Close now": the answer is what is left.
      .post(
        "/cells/:id/close",
        ({ params, body }) => {
          const channel = channelOf(params.id);
          closeCell(deps, channel, { model: body.model || undefined, keyIndex: body.key_index ?? undefined });
          return ok(cellStates(deps, channel));
        },
        {
          access: "admin",
          body: t.Object({
            model: given(plainText(512)),
            key_index: given(t.Integer({ minimum: 0, maximum: 100_000 })),
          }),
        },
      )
  );
}
