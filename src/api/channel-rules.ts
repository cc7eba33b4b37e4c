// Controller of /api/channel/try_rules: what a channel's rules make of a request, without saving them and without asking anybody.
// Refuses texts that saving would refuse; the key never takes part.
import { Elysia, t } from "elysia";
import { draftChannel } from "../core/channels/draft.ts";
import type { ChannelProbe } from "../core/channels/watch.ts";
import type { Deps } from "../core/deps.ts";
import { ok } from "../http/envelope.ts";
import { failureText } from "../http/messages.ts";
import { given, plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure } from "../shared/failures.ts";

const jsonText = plainText(65_536);

/** A tried request is a sample: what is larger belongs in no form. */
const MAX_BODY = 262_144;
const MAX_HEADERS = 64;

const tried = t.Object({
  /** Absent: of a channel that is not saved yet. */
  id: t.Optional(t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  type: given(t.Integer({ minimum: 1, maximum: 10_000 })),
  base_url: given(plainText(2048)),
  other: given(jsonText),
  model_mapping: given(jsonText),
  param_override: given(jsonText),
  header_override: given(jsonText),
  setting: given(jsonText),
  settings: given(jsonText),
  request: t.Object({
    path: plainText(512),
    headers: t.Optional(t.Record(plainText(128), plainText(4096), { maxProperties: MAX_HEADERS })),
    body: plainText(MAX_BODY),
    /** Status of an attempt before, for rules about retries. */
    last_status: given(t.Integer({ minimum: 100, maximum: 599 })),
  }),
});

export function channelRules(deps: Deps, session: SessionSettings, probe: ChannelProbe) {
  return new Elysia({ prefix: "/api/channel" }).use(policy(session)).post(
    "/try_rules",
    async ({ body, actor, language }) => {
      const { id, request, ...fields } = body;
      const channel = await draftChannel(deps, id, fields);
      const { path, headers = {}, body: text, last_status: lastStatus } = request;
      try {
        const asked = { path, headers, body: text, lastStatus: lastStatus ?? undefined };
        return ok({ sent: await probe.dryRun(actor, channel, asked), refused: null });
      } catch (error) {
        if (!(error instanceof Failure) || error.kind === "internal") throw error;
        const { status, code, wireCode } = error;
        const message = error.text ?? failureText(error, language);
        return ok({ sent: null, refused: { status, code: String(wireCode ?? code), message } });
      }
    },
    { access: "admin", body: tried },
  );
}
