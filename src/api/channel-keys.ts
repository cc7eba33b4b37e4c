// Controller of the keys of one channel, for administrators: the family's `multi_key/manage` call, with what it lacks.
// Refuses to answer any key.
import { Elysia, t } from "elysia";
import {
  editKey,
  keyPage,
  keyPlace,
  removeKeys,
  restByHand,
  switchKeys,
} from "../core/channels/key-manage.ts";
import { keyStates } from "../core/channels/list.ts";
import type { Channel } from "../core/channels/rows.ts";
import type { ChannelWatch, ProbeResult } from "../core/channels/watch.ts";
import type { Deps } from "../core/deps.ts";
import { ok } from "../http/envelope.ts";
import { adminFailureText } from "../http/messages.ts";
import { idOf } from "../http/paging.ts";
import { given, plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import type { Language } from "../shared/enums.ts";
import { refuse } from "../shared/failures.ts";

const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const cap = t.Integer({ minimum: 0, maximum: 2_000_000_000 });
const ACTIONS = t.Union([
  t.Literal("get_key_status"),
  t.Literal("enable_key"),
  t.Literal("disable_key"),
  t.Literal("enable_all_keys"),
  t.Literal("disable_all_keys"),
  t.Literal("delete_key"),
  t.Literal("delete_disabled_keys"),
  // † What the family's call lacks.
  t.Literal("test_key"),
  t.Literal("test_all_keys"),
  t.Literal("rest_key"),
  t.Literal("edit_key"),
]);

const manageBody = t.Object({
  channel_id: id,
  action: ACTIONS,
  key_id: given(id),
  key_index: given(t.Integer({ minimum: 0, maximum: 100_000 })),
  page: given(t.Integer({ minimum: 0, maximum: 100_000 })),
  page_size: given(t.Integer({ minimum: 0, maximum: 1000 })),
  status: given(t.Integer({ minimum: 0, maximum: 3 })),
  minutes: given(t.Integer({ minimum: 0, maximum: 1440 })),
  label: given(plainText(64)),
  max_concurrency: given(cap),
  rpm_limit: given(cap),
  tpm_limit: given(cap),
});

/** At most so many of a channel's keys are tested at once. */
const TESTS_AT_ONCE = 4;

function testJson(channel: Channel, index: number, { ms, failure }: ProbeResult, language: Language) {
  const time = Math.round(ms) / 1000;
  const key = { index, key_id: channel.keyRows[index]?.id ?? 0 };
  return failure
    ? {
        ...key,
        success: false as const,
        message: adminFailureText(failure, language),
        code: failure.code,
        time,
      }
    : { ...key, success: true as const, message: "", time };
}

async function testAll(watch: ChannelWatch, channel: Channel, language: Language) {
  const places = channel.keyRows.map((_, index) => index);
  const tests: ReturnType<typeof testJson>[] = [];
  const worker = async (): Promise<void> => {
    for (let index = places.shift(); index !== undefined; index = places.shift())
      tests.push(testJson(channel, index, await watch.testKey(channel, index), language));
  };
  await Promise.all(Array.from({ length: TESTS_AT_ONCE }, worker));
  return tests.sort((a, b) => a.index - b.index);
}

export function channelKeys(deps: Deps, session: SessionSettings, watch: ChannelWatch) {
  const channelOf = (channelId: number | undefined): Channel => {
    const channel = channelId === undefined ? undefined : deps.routing.channel(channelId);
    if (!channel) throw refuse("record_missing");
    return channel;
  };

  async function manage(body: typeof manageBody.static, language: Language) {
    const channel = channelOf(body.channel_id);
    const { action } = body;
    let changed = 0;
    let tests: ReturnType<typeof testJson>[] = [];
    if (action === "enable_key") changed = await switchKeys(deps, channel, body, true);
    else if (action === "disable_key") changed = await switchKeys(deps, channel, body, false);
    else if (action === "enable_all_keys") changed = await switchKeys(deps, channel, undefined, true);
    else if (action === "disable_all_keys") changed = await switchKeys(deps, channel, undefined, false);
    else if (action === "delete_key") changed = await removeKeys(deps, channel, body);
    else if (action === "delete_disabled_keys") changed = await removeKeys(deps, channel, undefined);
    else if (action === "rest_key") restByHand(deps, channel, body, body.minutes ?? 10);
    else if (action === "edit_key") await editKey(deps, channel, body, body);
    else if (action === "test_all_keys") tests = await testAll(watch, channel, language);
    else if (action === "test_key") {
      const index = keyPlace(channel, body);
      tests = [testJson(channel, index, await watch.testKey(channel, index), language)];
    }
    return { changed, tests, ...(await keyPage(deps, channelOf(channel.id), body)) };
  }

  return (
    new Elysia({ prefix: "/api/channel" })
      .use(policy(session))
      // † Every key of a channel: state, reason, since when, caps, use; never the key.
      .get("/keys/:id", async ({ params }) => ok(await keyStates(deps, channelOf(idOf(params.id)))), {
        access: "admin",
      })
      .post("/multi_key/manage", async ({ body, language }) => ok(await manage(body, language)), {
        access: "admin",
        body: manageBody,
      })
  );
}
