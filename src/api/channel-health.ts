// Controller of the health of channels, for administrators: what rests, why and until when, letting calls through again, and
// who would serve a call now.
// Refuses to know another node's: each node learns by its own calls.
import { Elysia, t } from "elysia";
import { cellStates, closeCell } from "../core/channels/cells.ts";
import type { RouteReport } from "../core/channels/route-report.ts";
import type { Channel } from "../core/channels/rows.ts";
import type { ChannelProbe } from "../core/channels/watch.ts";
import type { Deps } from "../core/deps.ts";
import { ok } from "../http/envelope.ts";
import { failureText } from "../http/messages.ts";
import { idOf } from "../http/paging.ts";
import { given, plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import type { Language } from "../shared/enums.ts";
import { refuse } from "../shared/failures.ts";

const question = t.Object({
  user_id: t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  token_id: given(t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  group: given(plainText(64)),
  model: plainText(255),
  path: given(plainText(512)),
  tokens: given(t.Integer({ minimum: 0, maximum: 1_000_000_000 })),
  session: given(plainText(1024)),
});

/** The report with what a client would read, in the reader's language. */
function routeJson({ refused, groups, session, candidates }: RouteReport, language: Language) {
  return {
    groups,
    refused: refused
      ? { status: refused.status, code: refused.code, message: failureText(refused, language) }
      : null,
    session: session ? { state: session.state, channel_id: session.channelId, reason: session.reason } : null,
    candidates: candidates.map(({ keyMode, keyIndex, ...rest }) => ({
      ...rest,
      multi_key_mode: keyMode,
      key_index: keyIndex,
    })),
  };
}

export function channelHealth(deps: Deps, session: SessionSettings, probe: ChannelProbe) {
  const channelOf = (text: string): Channel => {
    const id = idOf(text);
    const channel = id === undefined ? undefined : deps.routing.channel(id);
    if (!channel) throw refuse("record_missing");
    return channel;
  };
  return (
    new Elysia({ prefix: "/api/channel" })
      .use(policy(session))
      // † Who would serve such a call now, and why not the others.
      .post(
        "/route",
        async ({ body, language }) => {
          const user = await deps.accounts.user(body.user_id);
          if (!user) throw refuse("user_missing");
          const report = await probe.route({
            user,
            tokenId: body.token_id ?? 0,
            group: body.group ?? "",
            model: body.model,
            path: body.path || "/v1/chat/completions",
            tokens: body.tokens ?? 0,
            session: body.session?.trim() ?? "",
          });
          return ok(routeJson(report, language));
        },
        { access: "admin", body: question },
      )
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
