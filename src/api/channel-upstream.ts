// Controller of /api/channel/upstream_updates: what upstreams' lists of models propose for channels, and taking it over.
// Refuses to change anything by asking: a look proposes, `apply` decides.
import { Elysia, t } from "elysia";
import type { Channel } from "../core/channels/rows.ts";
import { applyModels, detectModels, undoModels } from "../core/channels/upstream-models.ts";
import type { ModelProposal } from "../core/channels/upstream-models.ts";
import type { ChannelProbe, ChannelWatch } from "../core/channels/watch.ts";
import type { Deps } from "../core/deps.ts";
import { ok } from "../http/envelope.ts";
import { adminFailureText } from "../http/messages.ts";
import { given, plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import type { Language } from "../shared/enums.ts";
import { refuse } from "../shared/failures.ts";

const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const names = given(t.Array(plainText(255), { maxItems: 5000 }));

/** A proposal with what its upstream failed with, in the reader's language; "" where it did not. */
function proposalJson({ failure, ...proposal }: ModelProposal, language: Language) {
  return { ...proposal, problem: failure ? adminFailureText(failure, language) : "" };
}

export function channelUpstream(
  deps: Deps,
  session: SessionSettings,
  { watch, probe }: { watch: ChannelWatch; probe: ChannelProbe },
) {
  const channelOf = (channelId: number): Channel => {
    const channel = deps.routing.channel(channelId);
    if (!channel) throw refuse("record_missing");
    return channel;
  };
  const { upstreamModels } = watch;
  return (
    new Elysia({ prefix: "/api/channel/upstream_updates" })
      .use(policy(session))
      .post(
        "/detect",
        async ({ body, language }) =>
          ok(proposalJson(await detectModels(deps, probe, channelOf(body.id)), language)),
        { access: "admin", body: t.Object({ id }) },
      )
      .post(
        "/detect_all",
        async ({ language }) =>
          ok((await upstreamModels.detectAll()).map((proposal) => proposalJson(proposal, language))),
        { access: "admin" },
      )
      .post(
        "/apply",
        async ({ body, language }) => {
          const { add_models: add, remove_models: remove, ignore_models: ignore } = body;
          const wanted = { add: add ?? [], remove: remove ?? [], ignore: ignore ?? [] };
          return ok(proposalJson(await applyModels(deps, body.id, wanted), language));
        },
        {
          access: "admin",
          body: t.Object({ id, add_models: names, remove_models: names, ignore_models: names }),
        },
      )
      .post(
        "/apply_all",
        async ({ language }) =>
          ok((await upstreamModels.applyAll()).map((proposal) => proposalJson(proposal, language))),
        { access: "admin" },
      )
      // † The models as they were before the last change from here.
      .post(
        "/undo",
        async ({ body, language }) => ok(proposalJson(await undoModels(deps, body.id), language)),
        {
          access: "admin",
          body: t.Object({ id }),
        },
      )
  );
}
