// The usage log: lists for administrators and for users, searching, and clearing.
// Refuses users what belongs to administrators: channels, internal details, other people's rows.
import { and, desc, eq, gt, gte, inArray, lt, lte, max, notInArray, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { contains, q, startsWith } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import { LogType } from "../../shared/enums.ts";
import { inTurns, nextTurn } from "../kit/turns.ts";
import type { Deps, TokenAccount, UserAccount } from "../deps.ts";
import { bounded, MOST_READ } from "./bounds.ts";
import { END_OF_TIME, isSparse, isSummed, rareWhere, rawWhere } from "./filter.ts";
import type { LogFilter } from "./filter.ts";
import { segmentsOf } from "./segments.ts";
import { CLEARED_MARK, countLogs, MOST_COUNTED } from "./statistics.ts";

type LogRow = Schema["logs"]["$inferSelect"];

/** Of a body that was no error object: pages of proxies are long. */
const MAX_INTERNAL_CHARACTERS = 500;

/** A log row as the wire knows it. */
export interface LogJson {
  id: number;
  user_id: number;
  created_at: number;
  type: number;
  /** In the words that clients of this API know. */
  content: string;
  /** The same in the reader's language, where that is another. */
  text?: string;
  username: string;
  token_name: string;
  model_name: string;
  quota: number;
  prompt_tokens: number;
  completion_tokens: number;
  /** Whole seconds, as clients of this API know it. */
  use_time: number;
  use_time_ms: number;
  is_stream: boolean;
  channel: number;
  channel_name: string;
  token_id: number;
  group: string;
  /** JSON text, or empty. */
  other: string;
  request_id: string;
}

/** The content for administrators: what the upstream of a failed attempt said, else the public text with what is behind it. */
function adminContent({ type, content, other }: LogRow): string {
  if (type !== LogType.error || !other.includes('"admin_info"')) return content;
  try {
    const { admin_info: admin } = JSON.parse(other) as {
      admin_info?: { upstream_text?: string; internal?: string };
    };
    if (admin?.upstream_text) return admin.upstream_text;
    return admin?.internal ? `${content}: ${admin.internal.slice(0, MAX_INTERNAL_CHARACTERS)}` : content;
  } catch {
    return content;
  }
}

/** The row as it stands, which its owner reads. */
function rowJson(row: LogRow, channelName: string): LogJson {
  return {
    id: row.id,
    user_id: row.userId,
    created_at: row.createdAt,
    type: row.type,
    content: row.content,
    username: row.username,
    token_name: row.tokenName,
    model_name: row.modelName,
    quota: row.quota,
    prompt_tokens: row.promptTokens,
    completion_tokens: row.completionTokens,
    use_time: Math.round(row.useTimeMs / 1000),
    use_time_ms: row.useTimeMs,
    is_stream: row.isStream,
    channel: row.channelId,
    channel_name: channelName,
    token_id: row.tokenId,
    group: row.group,
    other: row.other,
    request_id: row.requestId,
  };
}

/** Administrators read the provider's own words in the place of the public text. */
function adminJson(row: LogRow, channelName: string): LogJson {
  return { ...rowJson(row, channelName), content: adminContent(row) };
}

/** Fields of `other` that say which channels and upstreams were used, or what only administrators may read. */
const ADMIN_FIELDS = [
  "admin_info",
  "attempts",
  "channel_id",
  "channel_name",
  "channel_type",
  "upstream_dialect",
] as const;

const ORIGIN_FIELDS = ["ip", "ua", "auth_method"] as const;

function publicOther(text: string): string {
  if (text === "") return "";
  try {
    const other = JSON.parse(text) as Record<string, unknown>;
    // From where an administrator acted is theirs.
    if (other["op"] !== undefined && other["admin_info"] !== undefined)
      for (const field of ORIGIN_FIELDS) delete other[field];
    for (const field of ADMIN_FIELDS) delete other[field];
    return JSON.stringify(other);
  } catch {
    return "";
  }
}

/** Users learn the channel's number, never its name, and not how many rows the whole site has. */
export function userJson(row: LogRow): LogJson {
  return { ...rowJson(row, ""), id: row.id % 1024, other: publicOther(row.other) };
}

// --- lists ---------------------------------------------------------------------------------------------------------

/** Beyond this many skipped rows the hourly sums find the place. */
const WALK_AT_MOST = 2000;

/** The one query behind every list; a test holds its plan against the indexes. */
export function rowsQuery(orm: Orm, db: Database, where: SQL | undefined, limit: number, offset: number) {
  const { logs } = db.t;
  return orm
    .select()
    .from(logs)
    .where(where)
    .orderBy(desc(logs.createdAt), desc(logs.id))
    .limit(limit)
    .offset(offset);
}

async function fetchRows(
  { db }: Deps,
  where: SQL | undefined,
  limit: number,
  offset: number,
): Promise<LogRow[]> {
  return rowsQuery(db.reader, db, where, limit, offset);
}

/** Rows newest first. Deep pages and rare matches jump over hours that hold nothing of the page. */
async function listRows(deps: Deps, filter: LogFilter, limit: number, offset: number): Promise<LogRow[]> {
  if (!isSummed(filter) || (!isSparse(filter) && offset <= WALK_AT_MOST)) {
    return fetchRows(deps, rawWhere(deps.db, filter, filter.from, filter.to), limit, offset);
  }
  const rows: LogRow[] = [];
  for await (const { from, to, skip, isRare } of segmentsOf(deps, filter, offset)) {
    const where = (isRare ? rareWhere : rawWhere)(deps.db, filter, from, to);
    rows.push(...(await fetchRows(deps, where, limit - rows.length, skip)));
    if (rows.length >= limit) break;
  }
  return rows;
}

export function adminRows(deps: Deps, rows: readonly LogRow[]): LogJson[] {
  return rows.map((row) => adminJson(row, deps.routing.channel(row.channelId)?.name ?? ""));
}

export interface LogPage {
  items: LogJson[];
  total: number;
  /** `total` is where the count ended: there are more rows. */
  isMore: boolean;
  /** Older rows of the range were not looked at: no sum knows what was asked. */
  isCut: boolean;
}

export interface LogPaging {
  limit: number;
  offset: number;
}

/**
 * A page and its count in one walk, where no sum knows the filter: walking twice would take twice as long. Undefined for a
 * page behind those that are counted.
 */
async function walkedPage(
  { db }: Deps,
  filter: LogFilter,
  { limit, offset }: LogPaging,
): Promise<{ rows: LogRow[]; total: number; isMore: boolean } | undefined> {
  if (offset + limit > MOST_COUNTED) return undefined;
  const { logs } = db.t;
  const found = await db.reader
    .select({ id: logs.id, at: logs.createdAt })
    .from(logs)
    .where(rawWhere(db, filter, filter.from, filter.to))
    .orderBy(desc(logs.createdAt), desc(logs.id))
    .limit(MOST_COUNTED + 1);
  const page = found.slice(offset, offset + limit);
  const [newest, oldest] = [page[0], page.at(-1)];
  const count = { total: Math.min(found.length, MOST_COUNTED), isMore: found.length > MOST_COUNTED };
  if (!newest || !oldest) return { rows: [], ...count };
  // The times say in which parts of the table PostgreSQL looks.
  const ids = inArray(
    logs.id,
    page.map(({ id }) => id),
  );
  const where = and(ids, gte(logs.createdAt, oldest.at), lte(logs.createdAt, newest.at));
  const rows = await db.reader.select().from(logs).where(where);
  return { rows: rows.sort((a, b) => b.createdAt - a.createdAt || b.id - a.id), ...count };
}

async function pageOf(
  deps: Deps,
  asked: LogFilter,
  paging: LogPaging,
  read: (rows: readonly LogRow[]) => LogJson[],
): Promise<LogPage> {
  const { filter, isCut } = await bounded(deps, asked);
  const walked =
    filter.tokenName === undefined || filter.requestId !== undefined
      ? undefined
      : await walkedPage(deps, filter, paging);
  if (walked) {
    const { rows, ...count } = walked;
    return { items: read(rows), ...count, isCut };
  }
  const { limit, offset } = paging;
  const [rows, count] = await inTurns(
    () => listRows(deps, filter, limit, offset),
    () => countLogs(deps, filter),
  );
  return { items: read(rows), ...count, isCut };
}

/** For administrators: every row of the filter. */
export async function listLogs(deps: Deps, filter: LogFilter, paging: LogPaging): Promise<LogPage> {
  return pageOf(deps, filter, paging, (rows) => adminRows(deps, rows));
}

/** For users: their own rows only, whatever the filter says of users and channels. */
export async function listOwnLogs(
  deps: Deps,
  user: UserAccount,
  filter: LogFilter,
  paging: LogPaging,
): Promise<LogPage> {
  const { channelId: _, ...rest } = filter;
  return pageOf(deps, { ...rest, userId: user.id }, paging, (rows) => rows.map(userJson));
}

/** For whoever presents the key. */
export async function listTokenLogs(deps: Deps, token: TokenAccount, paging: LogPaging): Promise<LogJson[]> {
  const filter: LogFilter = {
    type: 0,
    userId: token.userId,
    tokenId: token.id,
    from: 0,
    to: END_OF_TIME,
  };
  return (await listRows(deps, filter, paging.limit, paging.offset)).map(userJson);
}

/** The id behind a user name; undefined for a name that nobody has. */
export async function userIdOf(deps: Deps, username: string): Promise<number | undefined> {
  const { users } = deps.db.t;
  const [user] = await deps.db.orm.select({ id: users.id }).from(users).where(eq(users.username, username));
  return user?.id;
}

// --- searching -----------------------------------------------------------------------------------------------------

/** What a search answers where no number of rows is asked for. */
export const USUAL_MATCHES = 100;

function typeOf(keyword: string): number | undefined {
  return /^\d{1,3}$/.test(keyword) ? Number(keyword) : undefined;
}

function byType(deps: Deps, type: number, userId: number | undefined, limit: number): Promise<LogRow[]> {
  const filter: LogFilter = { type, from: 0, to: END_OF_TIME };
  if (userId !== undefined) filter.userId = userId;
  // Type 0 means "all" in a filter but itself in a search.
  const where =
    type === LogType.unknown
      ? and(rareWhere(deps.db, filter, 0, END_OF_TIME), eq(deps.db.t.logs.type, LogType.unknown))
      : rawWhere(deps.db, filter, 0, END_OF_TIME);
  return fetchRows(deps, where, limit, 0);
}

/** Error rows whose upstream's words begin so: they are the content that administrators see. */
function sayUpstream({ db }: Deps, term: string): SQL | undefined {
  const { logs } = db.t;
  const words = `"upstream_text":${JSON.stringify(term).slice(0, -1)}`;
  return and(eq(logs.type, LogType.error), contains(logs.other, words));
}

export interface LogMatches {
  items: LogJson[];
  /** Older rows were not looked at. */
  isCut: boolean;
}

/** The newest rows whose type is the keyword, or whose content begins with it: of the MOST_READ newest. */
export async function searchLogs(deps: Deps, keyword: string, limit = USUAL_MATCHES): Promise<LogMatches> {
  const term = keyword.trim();
  if (term === "") {
    const rows = await listRows(deps, { type: 0, from: 0, to: END_OF_TIME }, limit, 0);
    return { items: adminRows(deps, rows), isCut: false };
  }
  const { logs } = deps.db.t;
  const [newest] = await deps.db.reader.select({ id: max(logs.id) }).from(logs);
  const floor = Number(newest?.id ?? 0) - MOST_READ;
  const [older] = await deps.db.reader.select({ id: logs.id }).from(logs).where(lte(logs.id, floor)).limit(1);
  const found = await deps.db.reader
    .select()
    .from(logs)
    .where(and(gt(logs.id, floor), or(startsWith(logs.content, term), sayUpstream(deps, term))))
    .orderBy(desc(logs.id))
    .limit(limit);
  const type = typeOf(term);
  if (type !== undefined) found.push(...(await byType(deps, type, undefined, limit)));
  const unique = [...new Map(found.map((row) => [row.id, row])).values()];
  const rows = unique.sort((a, b) => b.createdAt - a.createdAt || b.id - a.id).slice(0, limit);
  return { items: adminRows(deps, rows), isCut: older !== undefined && found.length < limit };
}

/** The newest of the user's rows whose type is the keyword. */
export async function searchOwnLogs(
  deps: Deps,
  user: UserAccount,
  keyword: string,
  limit = USUAL_MATCHES,
): Promise<LogJson[]> {
  const type = typeOf(keyword.trim());
  if (type === undefined) return [];
  return (await byType(deps, type, user.id, limit)).map(userJson);
}

// --- clearing ------------------------------------------------------------------------------------------------------

const ROWS_PER_DELETE = 1000;

interface Clearing {
  onBatch?: (deleted: number) => boolean;
  /** Written with the mark, before anything is deleted. */
  also?: (tx: Orm) => Steps<void>;
}

/** What a clearing spares while it is young: where balances came from, and who did what. */
const SPARED_TYPES = [LogType.topUp, LogType.manage, LogType.system, LogType.login];

/** The rows between two moments that a clearing deletes. */
export function clearWhere({ db, clock, options }: Deps, from: number, before: number): SQL | undefined {
  const { logs } = db.t;
  const keptFrom = Math.floor(clock.nowMs() / 1000) - options.get("AuditRetentionDays") * 86_400;
  return and(
    gte(logs.createdAt, from),
    lt(logs.createdAt, before),
    or(lt(logs.createdAt, keptFrom), notInArray(logs.type, SPARED_TYPES)),
  );
}

/** From now on figures of the list leave out what is older (Unix seconds); never moved back. */
export function* clearedSteps(db: Database, tx: Orm, moment: number): Steps<void> {
  const { marks } = db.t;
  yield* q(
    tx
      .insert(marks)
      .values({ key: CLEARED_MARK, value: moment })
      .onConflictDoUpdate({
        target: marks.key,
        set: { value: sql`case when ${marks.value} > ${moment} then ${marks.value} else ${moment} end` },
      })
      .returning({ key: marks.key }),
  );
}

/**
 * Deletes rows older than the moment (Unix seconds, itself not included) and answers how many. Hourly sums stay. The
 * mark is set first, so that an audit in the middle compares no hour that is being cleared. `onBatch` hears how many are
 * gone; false ends it there.
 */
export async function clearLogs(
  deps: Deps,
  before: number,
  { onBatch = () => true, also }: Clearing = {},
): Promise<number> {
  const { logs } = deps.db.t;
  // A moment to come would also hide rows that are still to be written.
  const moment = Math.min(before, Math.floor(deps.clock.nowMs() / 1000));
  await deps.db.atomic(function* (tx) {
    yield* clearedSteps(deps.db, tx, moment);
    if (also) yield* also(tx);
  });
  let deleted = 0;
  /** What is spared before it is not looked at again. */
  let from = 0;
  for (;;) {
    const batch = await deps.db.orm
      .select({ id: logs.id, createdAt: logs.createdAt })
      .from(logs)
      .where(clearWhere(deps, from, moment))
      .orderBy(logs.createdAt)
      .limit(ROWS_PER_DELETE);
    if (batch.length === 0) return deleted;
    from = batch.at(-1)?.createdAt ?? from;
    const ids = batch.map((row) => row.id);
    const gone = await deps.db.orm.delete(logs).where(inArray(logs.id, ids)).returning({ id: logs.id });
    deleted += gone.length;
    if (!onBatch(deleted)) return deleted;
    await nextTurn();
  }
}
