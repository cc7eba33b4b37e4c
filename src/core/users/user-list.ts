// Accounts as administrators list them: filters, order, and when each was last seen, in the console or by a key.
// Refuses nothing: who may ask is the route's business. Secrets are never among the fields.
import { and, asc, desc, eq, gte, isNull, lt, lte, ne, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { contains, countRows } from "../../db/database.ts";
import { Role } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { getUserFor, withIdentities } from "./users.ts";
import type { UserJson, UserRow } from "./users.ts";

export const USER_SORTS = ["id", "quota", "used", "requests", "seen"] as const;
type UserSort = (typeof USER_SORTS)[number];

const DAY_SECONDS = 86_400;

/** What narrows a list of accounts. */
export interface UserFilter {
  keyword?: string | undefined;
  group?: string | undefined;
  /** In quota units, both included. */
  quotaMin?: number | undefined;
  quotaMax?: number | undefined;
  /** Not seen for so many days, neither in the console nor by a key; younger accounts do not count. */
  unseenDays?: number | undefined;
  flagged?: boolean | undefined;
  /** 1 or 2; deleted accounts have none. */
  status?: number | undefined;
}

export interface UserQuery extends UserFilter {
  sort?: UserSort | undefined;
  isDescending?: boolean | undefined;
  page: number;
  pageSize: number;
}

/** What administrators see beside what the owner sees. */
export interface AdminUserJson extends UserJson {
  remark: string;
  flagged: boolean;
  /** Unix seconds; 0: never. */
  last_seen_at: number;
  created_at: number;
}

/** The latest use of any key; `tokens_user` has it at hand for each account. */
function keySeen({ db }: Pick<Deps, "db">): SQL<number> {
  const { tokens, users } = db.t;
  return sql<number>`coalesce((select max(${tokens.accessedTime}) from ${tokens} where ${tokens.userId} = ${users.id}), 0)`;
}

/** In the console or by a key, whichever was later. */
export function lastSeen(deps: Pick<Deps, "db">): SQL<number> {
  const { users } = deps.db.t;
  const greatest = sql.raw(deps.db.kind === "postgres" ? "greatest" : "max");
  return sql`${greatest}(${users.lastSeenAt}, ${keySeen(deps)})`.mapWith(Number) as SQL<number>;
}

type Viewer = Pick<UserAccount, "id" | "role">;

/** `mayReadNotes` as a condition. */
function isNoteReadable({ db }: Pick<Deps, "db">, viewer: Viewer): SQL | undefined {
  const { users } = db.t;
  return and(ne(users.id, viewer.id), viewer.role >= Role.root ? undefined : lt(users.role, viewer.role));
}

/** The condition of a filter; undefined: everybody. What the viewer may not read of an account does not find it either. */
export function userWhere(
  deps: Pick<Deps, "db" | "clock">,
  viewer: Viewer,
  filter: UserFilter,
): SQL | undefined {
  const { tokens, users } = deps.db.t;
  const filters: (SQL | undefined)[] = [];
  const keyword = filter.keyword?.trim() ?? "";
  if (keyword !== "") {
    const id = /^\d{1,15}$/.test(keyword) ? eq(users.id, Number(keyword)) : undefined;
    filters.push(
      or(
        contains(users.username, keyword),
        contains(users.email, keyword),
        contains(users.displayName, keyword),
        and(contains(users.remark, keyword), isNoteReadable(deps, viewer)),
        id,
      ),
    );
  }
  if (filter.group) filters.push(eq(users.group, filter.group));
  if (filter.quotaMin !== undefined) filters.push(gte(users.quota, filter.quotaMin));
  if (filter.quotaMax !== undefined) filters.push(lte(users.quota, filter.quotaMax));
  if (filter.flagged) filters.push(eq(users.flagged, true), isNoteReadable(deps, viewer));
  if (filter.status !== undefined)
    filters.push(and(eq(users.status, filter.status), isNull(users.deletedAt)));
  if (filter.unseenDays !== undefined) {
    const since = Math.floor(deps.clock.nowMs() / 1000) - filter.unseenDays * DAY_SECONDS;
    filters.push(
      lt(users.lastSeenAt, since),
      lt(users.createdAt, since),
      isNull(users.deletedAt),
      sql`not exists (select 1 from ${tokens} where ${tokens.userId} = ${users.id} and ${tokens.accessedTime} >= ${since})`,
    );
  }
  return and(...filters);
}

/** As `getUserFor` has it: of the same and higher ranks nobody reads what only the owner typed. */
function mayReadSetting(viewer: Viewer, row: UserRow): boolean {
  return viewer.id === row.id || viewer.role >= Role.root || row.role < viewer.role;
}

/** What is noted about an administrator is for higher ranks, never for that administrator. */
export function mayReadNotes(viewer: Viewer, row: UserRow): boolean {
  if (viewer.id === row.id) return false;
  return viewer.role >= Role.root || row.role < viewer.role;
}

interface Shown {
  row: UserRow;
  /** Unix seconds. */
  seen: number;
  viewer: Viewer;
}

function adminJson(json: UserJson, { row, seen, viewer }: Shown): AdminUserJson {
  const isNoted = mayReadNotes(viewer, row);
  return {
    ...json,
    // The address of a webhook is often a secret itself.
    setting: mayReadSetting(viewer, row) ? json.setting : "",
    remark: isNoted ? row.remark : "",
    flagged: isNoted && row.flagged,
    last_seen_at: seen,
    created_at: row.createdAt,
  };
}

export async function listUsers(
  deps: Deps,
  viewer: Viewer,
  query: UserQuery,
): Promise<{ items: AdminUserJson[]; total: number }> {
  const { users } = deps.db.t;
  const where = userWhere(deps, viewer, query);
  const columns = {
    id: users.id,
    quota: users.quota,
    used: users.usedQuota,
    requests: users.requestCount,
    seen: lastSeen(deps),
  };
  const direction = query.isDescending === false ? asc : desc;
  const sort = query.sort ?? "id";
  const found = await deps.db.reader
    .select({ row: users, seen: lastSeen(deps) })
    .from(users)
    .where(where)
    .orderBy(direction(columns[sort]), ...(sort === "id" ? [] : [desc(users.id)]))
    .limit(query.pageSize)
    .offset((query.page - 1) * query.pageSize);
  const [count] = await deps.db.reader.select({ total: countRows() }).from(users).where(where);
  const shown = await withIdentities(
    deps,
    found.map(({ row }) => row),
  );
  const items = found.flatMap(({ row, seen }, at) => {
    const json = shown[at];
    return json ? [adminJson(json, { row, seen: Number(seen), viewer })] : [];
  });
  return { items, total: count?.total ?? 0 };
}

/** One account as administrators see it; refuses as getUserFor does. */
export async function getUserAsAdmin(deps: Deps, actor: UserAccount, id: number): Promise<AdminUserJson> {
  const { users } = deps.db.t;
  const json = await getUserFor(deps, actor, id);
  const [found] = await deps.db.orm
    .select({ row: users, seen: lastSeen(deps) })
    .from(users)
    .where(eq(users.id, id));
  if (!found) throw refuse("user_missing");
  return adminJson(json, { row: found.row, seen: Number(found.seen), viewer: actor });
}
