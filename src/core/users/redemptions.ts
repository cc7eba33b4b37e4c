// Redemption codes: made in batches, listed for administrators, turned into balance exactly once.
// Refuses a used code every change but deletion, more worth than an administrator's day has left, and tells a wrong code apart from a used one only to who holds it.
import { randomBytes } from "node:crypto";
import { and, desc, eq, gt, inArray, isNull, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { countRows, q, startsWith } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { LogType, RedemptionStatus } from "../../shared/enums.ts";
import { charactersIn, MAX_CODE_NAME } from "../../shared/name-limits.ts";
import { refuse } from "../../shared/failures.ts";
import { isQuota, logQuotaText } from "../../shared/money.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { quotaDisplay } from "../options/store.ts";
import { openCeilingSteps, tellRootOfCodes } from "./balance-changes.ts";
import { sha256Hex } from "../kit/seal.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import { redeemed } from "../logs/sentences.ts";

type RedemptionRow = Schema["redemptions"]["$inferSelect"];

/** A code as the wire knows it. */
export interface RedemptionJson {
  id: number;
  user_id: number;
  key: string;
  status: number;
  name: string;
  quota: number;
  created_time: number;
  redeemed_time: number;
  /** † From this Unix second on nobody redeems it; 0: no end. */
  expired_time: number;
  count: 0;
  used_user_id: number;
  /** † Who redeemed it. */
  used_username: string;
  DeletedAt: null;
}

const MAX_CODES_AT_ONCE = 100;
/** One code is worth at most this: 2,000 million dollars at the default price of a unit. */
const MAX_CODE_QUOTA = 1e15;

const seconds = (deps: Pick<Deps, "clock">): number => Math.floor(deps.clock.nowMs() / 1000);

async function withNames(deps: Deps, rows: readonly RedemptionRow[]): Promise<RedemptionJson[]> {
  const { users } = deps.db.t;
  const ids = [...new Set(rows.map((row) => row.usedUserId).filter((id) => id > 0))];
  const names = new Map<number, string>();
  if (ids.length > 0) {
    const found = await deps.db.orm
      .select({ id: users.id, username: users.username })
      .from(users)
      .where(inArray(users.id, ids));
    for (const { id, username } of found) names.set(id, username);
  }
  return rows.map((row) => ({
    id: row.id,
    user_id: row.userId,
    key: deps.seal.open("redemption", row.keySealed),
    status: row.status,
    name: row.name,
    quota: row.quota,
    created_time: row.createdTime,
    redeemed_time: row.redeemedTime,
    expired_time: row.expiresAt,
    count: 0,
    used_user_id: row.usedUserId,
    used_username: names.get(row.usedUserId) ?? "",
    DeletedAt: null,
  }));
}

export interface RedemptionQuery {
  /** The beginning of the name, an id, or a whole code. */
  keyword?: string | undefined;
  status?: number | undefined;
  page: number;
  pageSize: number;
}

export async function listRedemptions(
  deps: Deps,
  query: RedemptionQuery,
): Promise<{ items: RedemptionJson[]; total: number }> {
  const { redemptions } = deps.db.t;
  const keyword = query.keyword?.trim() ?? "";
  const filters: (SQL | undefined)[] = [isNull(redemptions.deletedAt)];
  if (keyword !== "")
    filters.push(
      or(
        startsWith(redemptions.name, keyword),
        /^\d{1,15}$/.test(keyword) ? eq(redemptions.id, Number(keyword)) : undefined,
        eq(redemptions.keyHash, sha256Hex(keyword)),
      ),
    );
  if (query.status !== undefined) filters.push(eq(redemptions.status, query.status));
  const where = and(...filters);
  const rows = await deps.db.orm
    .select()
    .from(redemptions)
    .where(where)
    .orderBy(desc(redemptions.id))
    .limit(query.pageSize)
    .offset((query.page - 1) * query.pageSize);
  const [count] = await deps.db.orm.select({ total: countRows() }).from(redemptions).where(where);
  return { items: await withNames(deps, rows), total: count?.total ?? 0 };
}

async function found(deps: Deps, id: number): Promise<RedemptionRow> {
  const { redemptions } = deps.db.t;
  const [row] = await deps.db.orm
    .select()
    .from(redemptions)
    .where(and(eq(redemptions.id, id), isNull(redemptions.deletedAt)));
  if (!row) throw refuse("record_missing");
  return row;
}

export async function getRedemption(deps: Deps, id: number): Promise<RedemptionJson> {
  const [json] = await withNames(deps, [await found(deps, id)]);
  if (!json) throw refuse("record_missing");
  return json;
}

function checkedName(name: string): string {
  const text = name.trim();
  const length = charactersIn(text);
  if (length === 0 || length > MAX_CODE_NAME) throw refuse("redemption_name");
  return text;
}

function checkedQuota(quota: number): number {
  if (!isQuota(quota) || quota <= 0 || quota > MAX_CODE_QUOTA) throw refuse("quota_out_of_range");
  return quota;
}

/** Throws `redemption_end_past`: nobody could redeem it. */
function checkedEnd(deps: Pick<Deps, "clock">, end: number): number {
  if (end !== 0 && end <= seconds(deps)) throw refuse("redemption_end_past");
  return end;
}

export interface NewRedemptions {
  name: string;
  quota: number;
  count: number;
  /** Unix seconds; 0 or absent: no end. */
  expired_time?: number | undefined;
}

/**
 * All codes or none; answers them in clear. What they are worth together counts against the administrator's day, as an
 * addition to a balance does. Throws `redemption_*`, `quota_out_of_range`, `quota_ceiling`.
 */
export async function createRedemptions(
  deps: Deps,
  by: AuditActor,
  input: NewRedemptions,
): Promise<string[]> {
  const name = checkedName(input.name);
  if (input.count <= 0) throw refuse("redemption_count_low");
  if (input.count > MAX_CODES_AT_ONCE) throw refuse("redemption_count_high");
  const quota = checkedQuota(input.quota);
  const expiresAt = checkedEnd(deps, input.expired_time ?? 0);
  const keys = Array.from({ length: input.count }, () => randomBytes(16).toString("hex"));
  const createdTime = seconds(deps);
  const values = keys.map((key) => ({
    userId: by.id,
    keyHash: sha256Hex(key),
    keySealed: deps.seal.seal("redemption", key),
    name,
    quota,
    createdTime,
    expiresAt,
  }));
  const worth = quota * input.count;
  const first = await deps.db.atomic(function* (tx) {
    yield* countSteps(tx, deps, by, worth);
    const { redemptions } = deps.db.t;
    const [row] = yield* q(tx.insert(redemptions).values(values).returning({ id: redemptions.id }));
    const params = { name, count: input.count, quota };
    yield* auditSteps(tx, deps, { user: by, action: "redemption.create", params, by });
    return row?.id ?? 0;
  });
  tellRootOfCodes(deps, by, { first, name }, worth);
  return keys;
}

/** Throws `quota_ceiling`. */
function* countSteps(tx: Orm, deps: Deps, by: AuditActor, worth: number): Steps<void> {
  const ceiling = yield* openCeilingSteps(tx, deps, by);
  ceiling.take(worth);
  yield* ceiling.keepSteps();
}

export interface RedemptionUpdate {
  id: number;
  name?: string | undefined;
  quota?: number | undefined;
  status?: number | undefined;
  /** Unix seconds; 0: no end. */
  expired_time?: number | undefined;
}

/** What an update writes of a code. Throws `redemption_is_used` and what the fields are refused for. */
function changesOf(
  deps: Deps,
  row: RedemptionRow,
  input: RedemptionUpdate,
  statusOnly: boolean,
): Partial<RedemptionRow> {
  if (row.status === RedemptionStatus.used) throw refuse("redemption_is_used");
  if (statusOnly) {
    const { unused, disabled } = RedemptionStatus;
    if (input.status !== unused && input.status !== disabled) throw refuse("params_wrong");
    return { status: input.status };
  }
  if (row.status !== RedemptionStatus.unused) throw refuse("redemption_not_editable");
  return {
    name: checkedName(input.name ?? row.name),
    quota: checkedQuota(input.quota ?? row.quota),
    // The end that it has already is no news, also where it is over.
    expiresAt:
      input.expired_time === undefined || input.expired_time === row.expiresAt
        ? row.expiresAt
        : checkedEnd(deps, input.expired_time),
  };
}

/**
 * `statusOnly`: unused and disabled change places. Otherwise name and value of an unused code; a raised value counts against
 * the administrator's day by what it gains. Throws `record_missing`, `redemption_*`, `quota_out_of_range`, `quota_ceiling`.
 */
export async function updateRedemption(
  deps: Deps,
  by: AuditActor,
  input: RedemptionUpdate,
  statusOnly: boolean,
): Promise<RedemptionJson> {
  const { redemptions } = deps.db.t;
  const { saved, gain } = await deps.db.atomic(function* (tx) {
    const query = tx
      .select()
      .from(redemptions)
      .where(and(eq(redemptions.id, input.id), isNull(redemptions.deletedAt)));
    // Locked: what a raised value gains is counted from what stands there, one change after another.
    const [row] = yield* q(deps.db.kind === "postgres" ? query.for("no key update") : query);
    if (!row) throw refuse("record_missing");
    const changes = changesOf(deps, row, input, statusOnly);
    const [after] = yield* q(
      tx.update(redemptions).set(changes).where(eq(redemptions.id, row.id)).returning(),
    );
    if (!after) throw refuse("record_missing");
    const raised = Math.max(0, after.quota - row.quota);
    if (raised > 0) yield* countSteps(tx, deps, by, raised);
    if (after.quota !== row.quota) {
      const params = { name: after.name, before: row.quota, quota: after.quota };
      yield* auditSteps(tx, deps, { user: by, action: "redemption.update", params, by });
    }
    return { saved: after, gain: raised };
  });
  if (gain > 0) tellRootOfCodes(deps, by, { first: saved.id, name: saved.name }, gain);
  const [json] = await withNames(deps, [saved]);
  if (!json) throw refuse("record_missing");
  return json;
}

export const REDEMPTION_ACTIONS = ["enable", "disable", "delete"] as const;
export type RedemptionAction = (typeof REDEMPTION_ACTIONS)[number];

/**
 * One statement for many codes; answers how many it changed. Switching passes over used codes and over those that have
 * the status already, deleting takes them all. Whoever redeems a code in this moment wins.
 */
export async function changeRedemptions(
  deps: Deps,
  ids: readonly number[],
  action: RedemptionAction,
): Promise<number> {
  const { redemptions } = deps.db.t;
  const { unused, disabled } = RedemptionStatus;
  const isChosen = and(inArray(redemptions.id, [...ids]), isNull(redemptions.deletedAt));
  const changed =
    action === "delete"
      ? await deps.db.orm
          .update(redemptions)
          .set({ deletedAt: seconds(deps) })
          .where(isChosen)
          .returning({ id: redemptions.id })
      : await deps.db.orm
          .update(redemptions)
          .set({ status: action === "disable" ? disabled : unused })
          .where(and(isChosen, eq(redemptions.status, action === "disable" ? unused : disabled)))
          .returning({ id: redemptions.id });
  return changed.length;
}

/** Soft deletion; what was redeemed stays credited. */
export async function deleteRedemption(deps: Deps, id: number): Promise<void> {
  const { redemptions } = deps.db.t;
  await found(deps, id);
  await deps.db.orm
    .update(redemptions)
    .set({ deletedAt: seconds(deps) })
    .where(eq(redemptions.id, id));
}

/** By the clock of the database that several nodes share: theirs may differ. */
function isBeforeEnd({ db, clock }: Pick<Deps, "db" | "clock">): SQL | undefined {
  const { redemptions } = db.t;
  const now = db.kind === "postgres" ? sql`floor(extract(epoch from clock_timestamp()))` : seconds({ clock });
  return or(eq(redemptions.expiresAt, 0), gt(redemptions.expiresAt, now));
}

/**
 * Turns a code into balance and answers its value. The code's change of status and the credit are one transaction, so
 * that of any number of simultaneous attempts exactly one succeeds.
 */
export async function redeem(deps: Deps, user: UserAccount, text: string): Promise<number> {
  const key = text.trim();
  if (key === "") throw refuse("redemption_missing");
  const { redemptions } = deps.db.t;
  const keyHash = sha256Hex(key);
  return deps.ledger.atomic(function* (tx, credit) {
    const [row] = yield* q(
      tx
        .update(redemptions)
        .set({ status: RedemptionStatus.used, redeemedTime: seconds(deps), usedUserId: user.id })
        .where(
          and(
            eq(redemptions.keyHash, keyHash),
            eq(redemptions.status, RedemptionStatus.unused),
            isNull(redemptions.deletedAt),
            isBeforeEnd(deps),
          ),
        )
        .returning(),
    );
    if (!row) {
      const [known] = yield* q(
        tx
          .select({ status: redemptions.status })
          .from(redemptions)
          .where(and(eq(redemptions.keyHash, keyHash), isNull(redemptions.deletedAt))),
      );
      if (known?.status === RedemptionStatus.unused) throw refuse("redemption_expired");
      throw refuse(known ? "redemption_used" : "redemption_invalid");
    }
    yield* credit({ userId: user.id, amount: row.quota, kind: "redeem", ref: String(row.id) });
    yield* deps.ledger.logSteps(tx, {
      type: LogType.topUp,
      userId: user.id,
      username: user.username,
      content: redeemed(logQuotaText(row.quota, quotaDisplay(deps.options)), row.id),
      quota: row.quota,
      // Lets the console say the same in the reader's language.
      other: { redemption_id: row.id },
    });
    return row.quota;
  });
}
