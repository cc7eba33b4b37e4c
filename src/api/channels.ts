// Controller of /api/channel: lists of upstream channels and changes of one, for administrators. Keys are never answered.
// Many channels at once are channel-bulk.ts; testing, balances and model fetching are channel-ops.ts.
import { Elysia, t } from "elysia";
import { getChannel, listChannels, summarizeChannels } from "../core/channels/list.ts";
import { createChannels, deleteChannels, droppedStates, updateChannel } from "../core/channels/channels.ts";
import type { Deps } from "../core/deps.ts";
import { enabledModelNames, presetModelObjects } from "../core/channels/models.ts";
import { pricedModels } from "../core/channels/unpriced.ts";
import { done, ok } from "../http/envelope.ts";
import { asksForPage, idOf, LARGE_PAGE_SIZE, pageOf, pageQuery, rowIdOf } from "../http/paging.ts";
import { given, plainText } from "../http/plain-text.ts";
import { channelFilterOf, channelListFields, channelSearchFields } from "../http/queries/channels.ts";
import type { Sent } from "../http/queries/sent.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Role } from "../shared/enums.ts";
import { channelPriority, channelWeight } from "./channel-bulk.ts";

const jsonText = plainText(65_536);
/** 0 = none. */
const cap = t.Integer({ minimum: 0, maximum: 2_000_000_000 });

const fields = {
  type: given(t.Integer({ minimum: 1, maximum: 10_000 })),
  name: given(plainText(512)),
  key: given(plainText(1_000_000)),
  status: given(t.Integer({ minimum: 0, maximum: 3 })),
  openai_organization: given(plainText(255)),
  test_model: given(plainText(255)),
  base_url: given(plainText(2048)),
  other: given(jsonText),
  models: given(plainText(200_000)),
  group: given(plainText(8192)),
  model_mapping: given(jsonText),
  status_code_mapping: given(plainText(1024)),
  param_override: given(jsonText),
  header_override: given(jsonText),
  setting: given(jsonText),
  settings: given(jsonText),
  priority: given(channelPriority),
  weight: given(channelWeight),
  auto_ban: given(t.Integer({ minimum: 0, maximum: 1 })),
  tag: given(plainText(64)),
  max_input_tokens: given(t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  multi_key_mode: given(t.Union([t.Literal("polling"), t.Literal("random"), t.Literal("affinity")])),
  max_concurrency: given(cap),
  rpm_limit: given(cap),
  tpm_limit: given(cap),
  // What the family's consoles send back with a row, as an object or its text.
  channel_info: t.Optional(t.Unknown()),
};

/** `channel`: newer clients of the family send the fields of a new channel inside of it. */
const newFields = {
  ...fields,
  mode: given(t.Union([t.Literal("single"), t.Literal("batch"), t.Literal("multi_to_single")])),
  channel: given(t.Object(fields)),
};

const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });

/** 0 is "not given" where a channel has a type already. */
const changeFields = {
  ...fields,
  type: given(t.Integer({ minimum: 0, maximum: 10_000 })),
  key_mode: given(t.Union([t.Literal("append"), t.Literal("replace")])),
  id,
};

export function channels(deps: Deps, session: SessionSettings) {
  /** The list is a bare array; beside it stand the page that it is and `total`, so that a pager knows where it ends. */
  const list = async (query: Sent<typeof pageQuery & typeof channelSearchFields>) => {
    const { page, pageSize, offset } = pageOf(query, 0, LARGE_PAGE_SIZE);
    const { items, total } = await listChannels(deps, { ...channelFilterOf(query), offset, limit: pageSize });
    return { ...ok(items), total, page, page_size: pageSize };
  };

  return (
    new Elysia({ prefix: "/api/channel" })
      .use(policy(session))
      .get("/", ({ query }) => list(query), {
        access: "admin",
        query: t.Object({ ...pageQuery, ...channelListFields }),
      })
      .get(
        "/search",
        // A search answers all matches to clients that ask for no page, up to the largest one.
        ({ query }) => list(asksForPage(query) ? query : { ...query, page_size: String(LARGE_PAGE_SIZE) }),
        {
          access: "admin",
          query: t.Object({ ...pageQuery, ...channelSearchFields }),
        },
      )
      .get("/models", () => ({ success: true as const, data: presetModelObjects(deps) }), { access: "admin" })
      .get("/models_enabled", () => ({ success: true as const, data: enabledModelNames(deps) }), {
        access: "admin",
      })
      // † What has a price, so that an editor says beforehand which of its models are refused.
      .get("/models_priced", async ({ actor }) => ok(await pricedModels(deps, actor)), { access: "admin" })
      // † The counts of the views and the tags in use.
      .get("/summary", async () => ok(await summarizeChannels(deps)), { access: "admin" })
      .get("/:id", async ({ params }) => ok(await getChannel(deps, rowIdOf(params.id))), {
        access: "admin",
      })
      .post(
        "/",
        async ({ body: { channel, ...body } }) => {
          const input = channel ? { ...channel, ...body } : body;
          return {
            ...ok(await createChannels(deps, input)),
            channel_info_dropped: droppedStates(deps, input),
          };
        },
        { access: "admin", body: t.Object(newFields) },
      )
      .put(
        "/",
        async ({ body, actor }) => {
          const channel = await updateChannel(deps, body.id, body, actor.role >= Role.root);
          return { ...ok(channel), channel_info_dropped: droppedStates(deps, body, body.id) };
        },
        { access: "admin", body: t.Object(changeFields) },
      )
      .delete(
        "/:id",
        async ({ params }) => {
          const known = idOf(params.id);
          if (known !== undefined) await deleteChannels(deps, [known]);
          return done();
        },
        { access: "admin" },
      )
  );
}
