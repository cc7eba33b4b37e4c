// Controller of /api/channel: lists, single and bulk changes of upstream channels, for administrators.
// Refuses to answer any key; testing, balances and model fetching live in channel-ops.ts.
import { Elysia, t } from "elysia";
import { getChannel, listChannels, summarizeChannels } from "../core/channels/list.ts";
import type { ChannelQuery } from "../core/channels/list.ts";
import {
  createChannels,
  deleteChannels,
  deleteDisabledChannels,
  editTag,
  fixAbilities,
  setTagStatus,
  tagChannels,
  updateChannel,
} from "../core/channels/channels.ts";
import type { Deps } from "../core/deps.ts";
import { enabledModelNames, presetModelObjects } from "../core/channels/models.ts";
import { done, ok } from "../http/envelope.ts";
import { idOf, pageOf, pageQuery } from "../http/paging.ts";
import { given, plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Role } from "../shared/enums.ts";
import { refuse } from "../shared/failures.ts";

/** A search answers all matches, as its clients expect, up to this many. */
const MAX_MATCHES = 1000;

const priority = t.Integer({ minimum: -999, maximum: 2_000_000_000 });
const weight = t.Integer({ minimum: 0, maximum: 1_000_000 });
const jsonText = plainText(65_536);
const modelList = plainText(200_000);

const fields = {
  type: given(t.Integer({ minimum: 1, maximum: 10_000 })),
  name: given(plainText(512)),
  key: given(plainText(1_000_000)),
  status: given(t.Integer({ minimum: 0, maximum: 3 })),
  openai_organization: given(plainText(255)),
  test_model: given(plainText(255)),
  base_url: given(plainText(2048)),
  other: given(jsonText),
  models: given(modelList),
  group: given(plainText(8192)),
  model_mapping: given(jsonText),
  status_code_mapping: given(plainText(1024)),
  param_override: given(jsonText),
  setting: given(jsonText),
  priority: given(priority),
  weight: given(weight),
  auto_ban: given(t.Integer({ minimum: 0, maximum: 1 })),
  tag: given(plainText(64)),
  max_input_tokens: given(t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
};

const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const ids = t.Optional(t.Array(id, { maxItems: 10_000 }));

const listQuery = {
  ...pageQuery,
  id_sort: t.Optional(plainText(10)),
  tag_mode: t.Optional(plainText(10)),
  // † Narrower lists for the console's views, and an order by other columns.
  status: t.Optional(plainText(4)),
  untested: t.Optional(plainText(10)),
  tag: t.Optional(plainText(64)),
  sort: t.Optional(plainText(32)),
};

interface SentQuery {
  p?: string | undefined;
  page_size?: string | undefined;
  keyword?: string | undefined;
  group?: string | undefined;
  model?: string | undefined;
  id_sort?: string | undefined;
  tag_mode?: string | undefined;
  status?: string | undefined;
  untested?: string | undefined;
  tag?: string | undefined;
  sort?: string | undefined;
}

function queryOf(sent: SentQuery, offset: number, limit: number): ChannelQuery {
  return {
    keyword: sent.keyword,
    group: sent.group,
    model: sent.model,
    idSort: sent.id_sort === "true",
    tagMode: sent.tag_mode === "true",
    status: /^[123]$/.test(sent.status ?? "") ? Number(sent.status) : undefined,
    isUntested: sent.untested === "true",
    tag: sent.tag?.trim() || undefined,
    sort: sent.sort,
    offset,
    limit,
  };
}

function tagOf(body: { tag?: string | null | undefined }): string {
  if (!body.tag) throw refuse("params_wrong");
  return body.tag;
}

export function channels(deps: Deps, session: SessionSettings) {
  /** The list is a bare array; `total` beside it lets a pager know where it ends. */
  const list = async (query: ChannelQuery) => {
    const { items, total } = await listChannels(deps, query);
    return { ...ok(items), total };
  };

  return (
    new Elysia({ prefix: "/api/channel" })
      .use(policy(session))
      .get(
        "/",
        ({ query }) => {
          const { offset, pageSize } = pageOf(query, 0);
          const { p: _p, page_size: _size, ...rest } = query;
          return list(queryOf(rest, offset, pageSize));
        },
        { access: "admin", query: t.Object(listQuery) },
      )
      .get(
        "/search",
        ({ query }) => {
          if (query.p === undefined && query.page_size === undefined)
            return list(queryOf(query, 0, MAX_MATCHES));
          const { offset, pageSize } = pageOf(query, 0);
          return list(queryOf(query, offset, pageSize));
        },
        {
          access: "admin",
          query: t.Object({
            ...listQuery,
            keyword: t.Optional(plainText(1024)),
            group: t.Optional(plainText(64)),
            model: t.Optional(plainText(255)),
          }),
        },
      )
      .get("/models", () => ({ success: true as const, data: presetModelObjects(deps) }), { access: "admin" })
      .get("/models_enabled", () => ({ success: true as const, data: enabledModelNames(deps) }), {
        access: "admin",
      })
      // † The counts of the views and the tags in use.
      .get("/summary", async () => ok(await summarizeChannels(deps)), { access: "admin" })
      .get("/:id", async ({ params }) => ok(await getChannel(deps, requireId(params.id))), {
        access: "admin",
      })
      .post("/", async ({ body }) => ok(await createChannels(deps, body)), {
        access: "admin",
        body: t.Object(fields),
      })
      .put(
        "/",
        async ({ body, actor }) => ok(await updateChannel(deps, body.id, body, actor.role >= Role.root)),
        { access: "admin", body: t.Object({ ...fields, id }) },
      )
      .delete("/disabled", async () => ok(await deleteDisabledChannels(deps)), { access: "admin" })
      .delete(
        "/:id",
        async ({ params }) => {
          const known = idOf(params.id);
          if (known !== undefined) await deleteChannels(deps, [known]);
          return done();
        },
        { access: "admin" },
      )
      .post(
        "/batch",
        async ({ body }) => {
          const chosen = [...new Set(body.ids)];
          if (chosen.length === 0) throw refuse("params_wrong");
          await deleteChannels(deps, chosen);
          return ok(chosen.length);
        },
        { access: "admin", body: t.Object({ ids }) },
      )
      .post(
        "/batch/tag",
        async ({ body }) => {
          const chosen = [...new Set(body.ids)];
          if (chosen.length === 0) throw refuse("params_wrong");
          await tagChannels(deps, chosen, body.tag ?? null);
          return ok(chosen.length);
        },
        { access: "admin", body: t.Object({ ids, tag: given(plainText(64)) }) },
      )
      .put(
        "/tag",
        async ({ body }) => {
          await editTag(deps, { ...body, tag: body.tag ?? "" });
          return done();
        },
        {
          access: "admin",
          body: t.Object({
            tag: given(plainText(64)),
            new_tag: given(plainText(64)),
            priority: given(priority),
            weight: given(weight),
            model_mapping: given(jsonText),
            models: given(modelList),
            groups: given(plainText(8192)),
          }),
        },
      )
      .post(
        "/tag/enabled",
        async ({ body }) => {
          await setTagStatus(deps, tagOf(body), true);
          return done();
        },
        { access: "admin", body: t.Object({ tag: given(plainText(64)) }) },
      )
      .post(
        "/tag/disabled",
        async ({ body }) => {
          await setTagStatus(deps, tagOf(body), false);
          return done();
        },
        { access: "admin", body: t.Object({ tag: given(plainText(64)) }) },
      )
      .post("/fix", async () => ok(await fixAbilities(deps)), { access: "admin" })
  );
}

function requireId(text: string): number {
  const known = idOf(text);
  if (known === undefined) throw refuse("record_missing");
  return known;
}
