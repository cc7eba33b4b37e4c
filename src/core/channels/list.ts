// Lists of channels as the console and admin scripts read them: filters, order, pages over tags, and the counts above.
// Keys never leave: a row says how many there are.
import { and, asc, desc, eq, gt, inArray, isNotNull, ne, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { contains, countRows } from "../../db/database.ts";
import { ChannelStatus, KeyStatus } from "../../shared/enums.ts";
import type { KeyMode } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import { restingCells } from "./cells.ts";
import { channelInfoJson } from "./channel-info.ts";
import type { ChannelInfo } from "./channel-info.ts";
import type { KeyRest, KeyState } from "./key-rests.ts";
import { keyModeOf } from "./rows.ts";
import type { Channel, ChannelRow } from "./rows.ts";
import type { Deps } from "../deps.ts";
import { wallTimeOf } from "../kit/clock.ts";
import { sha256Hex } from "../kit/seal.ts";

/** A channel as the wire knows it; the key is always empty. */
export interface ChannelJson {
  id: number;
  type: number;
  key: "";
  openai_organization: string | null;
  test_model: string | null;
  status: number;
  name: string;
  weight: number;
  created_time: number;
  test_time: number;
  response_time: number;
  base_url: string;
  other: string;
  balance: number;
  balance_updated_time: number;
  models: string;
  group: string;
  used_quota: number;
  model_mapping: string;
  status_code_mapping: string;
  priority: number;
  auto_ban: number;
  other_info: string;
  tag: string | null;
  setting: string;
  /** JSON texts of the settings' second part, and of what is done to requests and their headers. */
  settings: string;
  param_override: string;
  header_override: string;
  max_input_tokens: number;
  multi_key_mode: KeyMode;
  /** † Caps over all keys; 0 = none. */
  max_concurrency: number;
  rpm_limit: number;
  tpm_limit: number;
  /** † How many keys there are, how many are on, and how many of those rest on this node. */
  key_count: number;
  keys_on: number;
  keys_resting: number;
  /** † Models of it that nobody is sent to now, on this node; a channel that rests as a whole counts as one. */
  cells_resting: number;
  channel_info: ChannelInfo;
}

export type ChannelJsonDeps = Pick<Deps, "routing" | "keyring" | "clock" | "picker">;

export function channelJson(deps: ChannelJsonDeps, row: ChannelRow): ChannelJson {
  const parsed = deps.routing.channel(row.id);
  const keyCount = parsed?.keys.filter((key) => key !== "").length ?? 0;
  const nowMs = deps.clock.monotonicMs();
  const on = parsed && keyCount > 0 ? parsed.keyRows.filter(({ status }) => status === KeyStatus.on) : [];
  const resting = parsed && keyCount > 1 ? deps.keyring.states(parsed, nowMs) : [];
  const isResting = ({ index, restsUntilMs }: KeyState): boolean =>
    restsUntilMs > nowMs && parsed?.keyRows[index]?.status === KeyStatus.on;
  return {
    id: row.id,
    type: row.type,
    key: "",
    openai_organization: row.openaiOrganization,
    test_model: row.testModel,
    status: row.status,
    name: row.name,
    weight: row.weight,
    created_time: row.createdTime,
    test_time: row.testTime,
    response_time: row.responseTime,
    base_url: row.baseUrl,
    other: row.other,
    balance: row.balance,
    balance_updated_time: row.balanceUpdatedTime,
    models: row.models,
    group: row.group,
    used_quota: row.usedQuota,
    model_mapping: row.modelMapping,
    status_code_mapping: row.statusCodeMapping,
    priority: row.priority,
    auto_ban: row.autoBan,
    other_info: row.otherInfo,
    tag: row.tag,
    setting: row.setting,
    settings: row.settings,
    param_override: row.paramOverride,
    header_override: row.headerOverride,
    max_input_tokens: row.maxInputTokens,
    multi_key_mode: keyModeOf(row.multiKeyMode),
    max_concurrency: row.maxConcurrency,
    rpm_limit: row.rpmLimit,
    tpm_limit: row.tpmLimit,
    key_count: keyCount,
    keys_on: on.length,
    keys_resting: resting.filter(isResting).length,
    cells_resting: parsed ? restingCells(deps, parsed) : 0,
    channel_info: channelInfoJson(parsed?.keyRows ?? [], keyModeOf(row.multiKeyMode)),
  };
}

export interface ChannelFilter {
  keyword?: string | undefined;
  group?: string | undefined;
  model?: string | undefined;
  /** † Only channels of this status. */
  status?: number | undefined;
  /** † Only channels that were never tested. */
  isUntested?: boolean | undefined;
  /** † Only channels of exactly this tag. */
  tag?: string | undefined;
  /** † A name of SORTS, with "-" before it for descending; other names count as none. */
  sort?: string | undefined;
  /** Newest first; otherwise by descending priority. */
  idSort: boolean;
  /** Pages over tags: the answer has every channel of the tags of this page, `total` counts tags. */
  tagMode: boolean;
}

export interface ChannelQuery extends ChannelFilter {
  offset: number;
  limit: number;
}

/** What a list can be ordered by, under the names of the wire. */
const SORTS = [
  "id",
  "name",
  "type",
  "status",
  "response_time",
  "used_quota",
  "balance",
  "priority",
  "weight",
] as const;
const COLUMNS = { response_time: "responseTime", used_quota: "usedQuota" } as const;

function orderOf(deps: Deps, query: ChannelFilter): SQL[] {
  const { channels } = deps.db.t;
  const sort = query.sort ?? "";
  const name = SORTS.find((each) => each === sort.replace(/^-/, ""));
  if (name !== undefined) {
    const column = channels[name === "response_time" || name === "used_quota" ? COLUMNS[name] : name];
    return [sort.startsWith("-") ? desc(column) : asc(column), desc(channels.id)];
  }
  return query.idSort ? [desc(channels.id)] : [desc(channels.priority), desc(channels.id)];
}

/** A group in a comma list; the list is short, the table too. */
function inGroup(deps: Deps, group: string): SQL {
  const { channels } = deps.db.t;
  const pattern = `%,${group.replace(/[\\%_]/g, (c) => `\\${c}`)},%`;
  return sql`(',' || ${channels.group} || ',') like ${pattern} escape '\\'`;
}

function filterOf(deps: Deps, query: ChannelFilter): SQL | undefined {
  const { channels, channelKeys } = deps.db.t;
  const filters: (SQL | undefined)[] = [];
  const keyword = query.keyword?.trim() ?? "";
  if (keyword !== "") {
    filters.push(
      or(
        /^\d{1,15}$/.test(keyword) ? eq(channels.id, Number(keyword)) : undefined,
        contains(channels.name, keyword),
        contains(channels.baseUrl, keyword),
        inArray(
          channels.id,
          deps.db.orm
            .select({ id: channelKeys.channelId })
            .from(channelKeys)
            .where(eq(channelKeys.keyHash, sha256Hex(keyword))),
        ),
      ),
    );
  }
  const model = query.model?.trim() ?? "";
  if (model !== "") filters.push(contains(channels.models, model));
  const group = query.group?.trim() ?? "";
  if (group !== "" && group !== "null") filters.push(inGroup(deps, group));
  return and(...filters, narrowOf(deps, query));
}

/** The filters of single channels: in tag mode they also decide which channels of a tag are shown. */
function narrowOf(deps: Deps, query: ChannelFilter): SQL | undefined {
  const { channels } = deps.db.t;
  return and(
    query.status === undefined ? undefined : eq(channels.status, query.status),
    query.isUntested ? eq(channels.testTime, 0) : undefined,
    query.tag ? eq(channels.tag, query.tag) : undefined,
  );
}

export interface ChannelList {
  items: ChannelJson[];
  total: number;
}

export async function listChannels(deps: Deps, query: ChannelQuery): Promise<ChannelList> {
  const { channels } = deps.db.t;
  const { orm } = deps.db;
  const where = filterOf(deps, query);
  const order = orderOf(deps, query);
  if (query.tagMode) {
    const tagged = and(where, isNotNull(channels.tag), ne(channels.tag, ""));
    const tags = await orm
      .selectDistinct({ tag: channels.tag })
      .from(channels)
      .where(tagged)
      .orderBy(asc(channels.tag));
    const names = tags.map(({ tag }) => tag ?? "").slice(query.offset, query.offset + query.limit);
    const rows = await orm
      .select()
      .from(channels)
      .where(and(inArray(channels.tag, names.length > 0 ? names : [""]), narrowOf(deps, query)))
      .orderBy(...order);
    return { items: rows.map((row) => channelJson(deps, row)), total: tags.length };
  }
  const rows = await orm
    .select()
    .from(channels)
    .where(where)
    .orderBy(...order)
    .limit(query.limit)
    .offset(query.offset);
  const [count] = await orm.select({ total: countRows() }).from(channels).where(where);
  return { items: rows.map((row) => channelJson(deps, row)), total: count?.total ?? 0 };
}

export async function getChannel(deps: Deps, id: number): Promise<ChannelJson> {
  const { channels } = deps.db.t;
  const [row] = await deps.db.orm.select().from(channels).where(eq(channels.id, id));
  if (!row) throw refuse("record_missing");
  return channelJson(deps, row);
}

interface TagCount {
  tag: string;
  count: number;
}

interface RestJson {
  /** Unix seconds; 0 = it takes its turn. */
  rests_until: number;
  reason: string;
  detail: string;
}

/** † A key of a channel as administrators see it: what stands in its row, and what this node knows of it. */
export interface KeyStateJson extends RestJson {
  index: number;
  key_id: number;
  /** Its last characters. */
  tail: string;
  label: string;
  /** 1 on, 2 off by hand, 3 off by itself; why and since when it is off (Unix seconds). */
  status: number;
  disabled_reason: string;
  disabled_time: number;
  max_concurrency: number;
  rpm_limit: number;
  tpm_limit: number;
  used_quota: number;
  /** Unix seconds; 0 = never. */
  last_used: number;
  /** On this node, since its start: requests, those that the provider asked patience for, and those that run. */
  requests: number;
  limited_requests: number;
  in_flight: number;
  /** Models that it rests for while it serves others, by their names at the upstream. */
  models: (RestJson & { model: string })[];
}

/** Enough to tell long keys apart; of a short one it would be too much. */
function tailOf(key: string): string {
  return key.length >= 16 ? key.slice(-4) : "";
}

/** Every key of a channel, without its text. */
export async function keyStates(
  { db, keyring, clock, caps }: Pick<Deps, "db" | "keyring" | "clock" | "caps">,
  channel: Channel,
): Promise<KeyStateJson[]> {
  const nowMs = clock.monotonicMs();
  const { channelKeys: t } = db.t;
  const used = await db.orm
    .select({ id: t.id, usedQuota: t.usedQuota, lastUsed: t.lastUsed })
    .from(t)
    .where(eq(t.channelId, channel.id));
  const byId = new Map(used.map((row) => [row.id, row]));
  const restJson = ({ restsUntilMs, reason, detail }: KeyRest): RestJson =>
    restsUntilMs <= nowMs
      ? { rests_until: 0, reason: "", detail: "" }
      : { rests_until: Math.ceil(wallTimeOf(clock, restsUntilMs) / 1000), reason, detail };
  return keyring.states(channel, nowMs).flatMap((state) => {
    const key = channel.keyRows[state.index];
    if (!key) return [];
    const use = caps.useOf(key.id);
    return {
      index: state.index,
      key_id: key.id,
      tail: tailOf(channel.keys[state.index] ?? ""),
      label: key.label,
      status: key.status,
      disabled_reason: key.reason,
      disabled_time: key.status === KeyStatus.on ? 0 : key.statusTime,
      max_concurrency: key.maxConcurrency,
      rpm_limit: key.rpmLimit,
      tpm_limit: key.tpmLimit,
      used_quota: byId.get(key.id)?.usedQuota ?? 0,
      last_used: byId.get(key.id)?.lastUsed ?? 0,
      requests: use.requests,
      limited_requests: use.limited,
      in_flight: use.inFlight,
      ...restJson(state),
      models: [...state.models].flatMap(([model, rest]) =>
        rest.restsUntilMs > nowMs && model !== "" ? [{ model, ...restJson(rest) }] : [],
      ),
    };
  });
}

/** † What stands above the list: how many channels of each kind there are, and the tags in use. */
export interface ChannelSummary {
  total: number;
  enabled: number;
  disabled: number;
  auto_disabled: number;
  untested: number;
  tags: TagCount[];
}

export async function summarizeChannels(deps: Pick<Deps, "db">): Promise<ChannelSummary> {
  const { channels } = deps.db.t;
  const { orm } = deps.db;
  const byStatus = await orm
    .select({ status: channels.status, count: countRows() })
    .from(channels)
    .groupBy(channels.status);
  const [tested] = await orm.select({ count: countRows() }).from(channels).where(gt(channels.testTime, 0));
  const byTag = await orm
    .select({ tag: channels.tag, count: countRows() })
    .from(channels)
    .where(and(isNotNull(channels.tag), ne(channels.tag, "")))
    .groupBy(channels.tag)
    .orderBy(asc(channels.tag));
  const of = (status: number) => byStatus.find((each) => each.status === status)?.count ?? 0;
  const total = byStatus.reduce((sum, { count }) => sum + count, 0);
  return {
    total,
    enabled: of(ChannelStatus.enabled),
    disabled: of(ChannelStatus.disabled),
    auto_disabled: of(ChannelStatus.autoDisabled),
    untested: total - (tested?.count ?? 0),
    tags: byTag.map(({ tag, count }) => ({ tag: tag ?? "", count })),
  };
}
