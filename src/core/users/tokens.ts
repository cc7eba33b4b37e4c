// API keys of a user: lists, making, changing, enabling and deleting them.
// Refuses foreign keys exactly like missing ones, groups the owner may not use, and enabling what could not be used.
import { and, desc, eq, gt, isNull, lte, not, or } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { contains, countRows, q, sumOf } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { AUTO_GROUP, autoGroupsOf, MOST_AUTO_GROUPS } from "../../shared/auto-group.ts";
import { TokenStatus } from "../../shared/enums.ts";
import { LIMIT_NUMBERS } from "../../shared/key-limits.ts";
import type { BudgetPeriod } from "../../shared/key-limits.ts";
import { charactersIn, MAX_TOKEN_NAME } from "../../shared/name-limits.ts";
import type { FailureCode } from "../../shared/failure-codes.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import { isQuota, MAX_QUOTA } from "../../shared/money.ts";
import { parseAllowIps } from "./account-rows.ts";
import type { TokenRow } from "./account-rows.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { autoGroups, groupChoices } from "./groups.ts";
import { sha256Hex } from "../kit/seal.ts";
import { namesGoneSteps } from "../logs/key-names.ts";
import { openKey, tokenWithUse } from "./token-json.ts";
import type { TokenJson } from "./token-json.ts";
import { END_CHARACTERS, newSecret } from "./token-secret.ts";

// --- lists ---------------------------------------------------------------------------------------------------------

export interface TokenQuery {
  /** Part of the name. */
  keyword?: string | undefined;
  /** The key, or its first or last characters, with or without `sk-`. */
  token?: string | undefined;
  /** One of TokenStatus as calls would find it: a key whose time or quota has run out counts as such. 0 = all. */
  status?: number | undefined;
  offset: number;
  limit: number;
}

/** A search for a key opens this many at most. */
const MOST_SEARCHED = 1000;

function owned(deps: Deps, owner: UserAccount): SQL | undefined {
  const { tokens } = deps.db.t;
  return and(eq(tokens.userId, owner.id), isNull(tokens.deletedAt));
}

/** Rows whose key may hold the term: the whole key, or a piece from its head or its tail. */
function keyFilter(deps: Deps, term: string): SQL | undefined {
  const { tokens } = deps.db.t;
  return or(
    eq(tokens.keyHash, sha256Hex(term)),
    contains(tokens.keyHead, term.slice(0, END_CHARACTERS)),
    contains(tokens.keyTail, term.slice(-END_CHARACTERS)),
  );
}

/** Keys that a call would find in this state, whatever their row still says. */
function statusFilter(deps: Deps, status: number): SQL | undefined {
  const { tokens } = deps.db.t;
  const now = nowSeconds(deps);
  const isOn = eq(tokens.status, TokenStatus.enabled);
  const inTime = or(eq(tokens.expiredTime, -1), gt(tokens.expiredTime, now));
  const hasQuota = or(eq(tokens.unlimitedQuota, true), gt(tokens.remainQuota, 0));
  switch (status) {
    case TokenStatus.enabled:
      return and(isOn, inTime, hasQuota);
    case TokenStatus.expired:
      return or(
        eq(tokens.status, TokenStatus.expired),
        and(isOn, not(eq(tokens.expiredTime, -1)), lte(tokens.expiredTime, now)),
      );
    case TokenStatus.exhausted:
      return or(
        eq(tokens.status, TokenStatus.exhausted),
        and(isOn, inTime, eq(tokens.unlimitedQuota, false), lte(tokens.remainQuota, 0)),
      );
    default:
      return eq(tokens.status, status);
  }
}

export async function listTokens(
  deps: Deps,
  owner: UserAccount,
  query: TokenQuery,
): Promise<{ items: TokenJson[]; total: number }> {
  const { tokens } = deps.db.t;
  const keyword = query.keyword?.trim() ?? "";
  const term = (query.token?.trim() ?? "").replace(/^sk-/, "");
  const where = and(
    owned(deps, owner),
    keyword === "" ? undefined : contains(tokens.name, keyword),
    term === "" ? undefined : keyFilter(deps, term),
    query.status ? statusFilter(deps, query.status) : undefined,
  );
  const rows = await deps.db.orm
    .select()
    .from(tokens)
    .where(where)
    .orderBy(desc(tokens.id))
    .limit(term === "" ? query.limit : MOST_SEARCHED)
    .offset(term === "" ? query.offset : 0);
  if (term !== "") {
    // The ends only narrow the search: the opened key decides, and pages are cut from what it leaves.
    const found = rows.filter((row) => openKey(deps, row).toLowerCase().includes(term.toLowerCase()));
    const page = found.slice(query.offset, query.offset + query.limit);
    return { items: await Promise.all(page.map((row) => tokenWithUse(deps, row))), total: found.length };
  }
  const [count] = await deps.db.orm.select({ total: countRows() }).from(tokens).where(where);
  const items = await Promise.all(rows.map((row) => tokenWithUse(deps, row)));
  return { items, total: count?.total ?? 0 };
}

async function findToken(deps: Deps, owner: UserAccount, id: number): Promise<TokenRow> {
  const { tokens } = deps.db.t;
  const [row] = await deps.db.orm
    .select()
    .from(tokens)
    .where(and(owned(deps, owner), eq(tokens.id, id)));
  if (!row) throw refuse("record_missing");
  return row;
}

export async function getToken(deps: Deps, owner: UserAccount, id: number): Promise<TokenJson> {
  return tokenWithUse(deps, await findToken(deps, owner, id));
}

// --- making and changing -------------------------------------------------------------------------------------------

/** The writable fields as the wire names them; absent and null leave a field as it is. */
export interface TokenInput {
  name?: string | null | undefined;
  /** Unix seconds, -1 = never. */
  expired_time?: number | null | undefined;
  remain_quota?: number | null | undefined;
  unlimited_quota?: boolean | null | undefined;
  model_limits_enabled?: boolean | null | undefined;
  model_limits?: string | null | undefined;
  allow_ips?: string | null | undefined;
  budget_quota?: number | null | undefined;
  budget_period?: BudgetPeriod | null | undefined;
  rpm_limit?: number | null | undefined;
  tpm_limit?: number | null | undefined;
  max_concurrency?: number | null | undefined;
  group?: string | null | undefined;
  /** Group names with commas between them, for the group `auto`. */
  auto_groups?: string | null | undefined;
  /** Units; 0 = no cap. */
  max_quota?: number | null | undefined;
}

const CONTROL = /\p{Cc}/u;
/** The end of the year 9999: milliseconds sent by mistake lie beyond. */
const MAX_SECONDS = 253_402_300_799;
/** Half the exact range, so that remaining and used quota together stay in it. */
export const MAX_TOKEN_QUOTA = Math.floor(MAX_QUOTA / 2);

function refuseField(param: string, code: FailureCode, params?: Record<string, string | number>): Failure {
  return new Failure("client", code, { param, ...(params ? { params } : {}) });
}

function nameText(text: string): string {
  const name = text.trim();
  if (name === "") throw refuseField("name", "token_name_missing");
  if (charactersIn(name) > MAX_TOKEN_NAME) throw refuseField("name", "token_name_long");
  if (CONTROL.test(name)) throw refuseField("name", "name_invalid", { max: MAX_TOKEN_NAME });
  return name;
}

function expiry(seconds: number): number {
  const isSound = seconds === -1 || (Number.isSafeInteger(seconds) && seconds > 0 && seconds <= MAX_SECONDS);
  if (!isSound) throw refuseField("expired_time", "token_expiry_invalid");
  return seconds;
}

function allowIpsText(text: string): string {
  const lines = text.split(/\r?\n/).map((line) => line.replaceAll(/[\s,]/g, ""));
  const filled = lines.filter((line) => line !== "");
  const wrong = filled.find((line) => parseAllowIps(line).length === 0);
  if (wrong !== undefined) throw refuseField("allow_ips", "token_ip_invalid", { line: wrong.slice(0, 64) });
  return filled.join("\n");
}

function modelLimitsText(text: string): string {
  const names = text.split(",").map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ""))].join(",");
}

/** A key that names a group its owner may not use would be refused at every call: it is refused here already. */
function refuseUnusable(deps: Deps, owner: UserAccount, group: string, param: string): void {
  if (!Object.hasOwn(groupChoices(deps, owner), group))
    throw refuseField(param, "token_group_unusable", { group });
}

/** What of the key says in which group its calls are served. A list of its own has a meaning for `auto` alone. */
function groupChanges(
  deps: Deps,
  owner: UserAccount,
  input: Pick<TokenInput, "group" | "auto_groups">,
  before: TokenRow | undefined,
): Pick<TokenChanges, "group" | "autoGroups"> {
  const changes: Pick<TokenChanges, "group" | "autoGroups"> = {};
  if (typeof input.group === "string") changes.group = input.group.trim();
  else if (!before && isAutoByDefault(deps, owner)) changes.group = AUTO_GROUP;
  const group = changes.group ?? before?.group ?? "";
  if (group !== AUTO_GROUP) {
    if (group !== "" && group !== before?.group) refuseUnusable(deps, owner, group, "group");
    if (before && before.autoGroups !== "" && changes.group !== undefined) changes.autoGroups = "";
    return changes;
  }
  const old = autoGroupsOf(before?.autoGroups ?? "");
  const listed = typeof input.auto_groups === "string" ? autoGroupsOf(input.auto_groups) : old;
  if (listed.length > MOST_AUTO_GROUPS)
    throw refuseField("auto_groups", "token_auto_many", { max: MOST_AUTO_GROUPS });
  for (const each of listed) if (!old.includes(each)) refuseUnusable(deps, owner, each, "auto_groups");
  const isNew = group !== before?.group || typeof input.auto_groups === "string";
  if (isNew && autoGroups(deps, owner, listed).length === 0) throw refuseField("group", "token_auto_empty");
  const text = listed.join(",");
  if (text !== (before?.autoGroups ?? "")) changes.autoGroups = text;
  return changes;
}

function isAutoByDefault(deps: Deps, owner: UserAccount): boolean {
  return deps.options.get("DefaultUseAutoGroup") && autoGroups(deps, owner).length > 0;
}

type TokenChanges = Partial<
  Pick<
    TokenRow,
    | "name"
    | "expiredTime"
    | "unlimitedQuota"
    | "modelLimitsEnabled"
    | "modelLimits"
    | "allowIps"
    | "group"
    | "autoGroups"
    | "budgetQuota"
    | "budgetPeriod"
    | "rpmLimit"
    | "tpmLimit"
    | "maxConcurrency"
    | "maxQuota"
    | "status"
  >
>;

const LIMIT_COLUMNS = {
  budget_quota: "budgetQuota",
  rpm_limit: "rpmLimit",
  tpm_limit: "tpmLimit",
  max_concurrency: "maxConcurrency",
} as const;

function limitChanges(input: TokenInput): TokenChanges {
  const changes: TokenChanges = {};
  for (const name of LIMIT_NUMBERS) {
    const value = input[name];
    if (typeof value === "number") changes[LIMIT_COLUMNS[name]] = value;
  }
  if (input.budget_period) changes.budgetPeriod = input.budget_period;
  return changes;
}

function tokenChanges(
  deps: Deps,
  owner: UserAccount,
  input: TokenInput,
  before: TokenRow | undefined,
): TokenChanges {
  const changes: TokenChanges = {};
  if (typeof input.name === "string") changes.name = nameText(input.name);
  if (typeof input.expired_time === "number") changes.expiredTime = expiry(input.expired_time);
  if (typeof input.unlimited_quota === "boolean") changes.unlimitedQuota = input.unlimited_quota;
  if (typeof input.model_limits_enabled === "boolean")
    changes.modelLimitsEnabled = input.model_limits_enabled;
  if (typeof input.model_limits === "string") changes.modelLimits = modelLimitsText(input.model_limits);
  if (typeof input.allow_ips === "string") changes.allowIps = allowIpsText(input.allow_ips);
  if (typeof input.max_quota === "number") {
    checkQuota(input.max_quota, "max_quota");
    changes.maxQuota = input.max_quota;
  }
  return Object.assign(changes, limitChanges(input), groupChanges(deps, owner, input, before));
}

function checkQuota(quota: number | null | undefined, field = "remain_quota"): void {
  if (quota === null || quota === undefined) return;
  if (!isQuota(quota) || quota < 0 || quota > MAX_TOKEN_QUOTA) {
    throw refuseField(field, "quota_out_of_range");
  }
}

const nowSeconds = (deps: Pick<Deps, "clock">): number => Math.floor(deps.clock.nowMs() / 1000);

function isOver(row: TokenRow, now: number): boolean {
  return row.expiredTime !== -1 && row.expiredTime <= now;
}

function isEmpty(row: TokenRow): boolean {
  return !row.unlimitedQuota && row.remainQuota <= 0;
}

function assertFound(row: TokenRow | undefined): asserts row is TokenRow {
  if (!row) throw refuse("record_missing");
}

type KeyDeps = Pick<Deps, "db" | "clock" | "seal">;

/** The row of a new key, whose quota is still to be set. */
function* insertSteps(tx: Orm, deps: KeyDeps, userId: number, fields: TokenChanges): Steps<{ id: number }> {
  const { tokens } = deps.db.t;
  const [made] = yield* q(
    tx
      .insert(tokens)
      .values({
        ...fields,
        userId,
        ...newSecret(deps),
        createdTime: nowSeconds(deps),
      })
      .returning({ id: tokens.id }),
  );
  if (!made) throw refuse("token_create_failed");
  return made;
}

const FIRST_TOKEN_QUOTA = 500_000;

/** The key that a site gives to new accounts where it does: unlimited, for ever. Answers its id. */
export function* firstTokenSteps(
  tx: Orm,
  deps: KeyDeps & Pick<Deps, "ledger">,
  owner: { id: number; username: string },
): Steps<number> {
  const name = `${owner.username}的初始令牌`;
  const { id } = yield* insertSteps(tx, deps, owner.id, { name, unlimitedQuota: true });
  yield* deps.ledger.setTokenQuota(tx, id, FIRST_TOKEN_QUOTA);
  return id;
}

/** Answers the new key with its text; lists show it again to its owner. */
export async function createToken(deps: Deps, owner: UserAccount, input: TokenInput): Promise<TokenJson> {
  if (!input.name) throw refuseField("name", "token_name_missing");
  const changes = tokenChanges(deps, owner, input, undefined);
  checkQuota(input.remain_quota);
  const row = await deps.db.atomic(function* (tx) {
    const made = yield* insertSteps(tx, deps, owner.id, changes);
    yield* deps.ledger.setTokenQuota(tx, made.id, input.remain_quota ?? 0);
    const row = yield* lockedRow(deps, tx, owner, made.id);
    const status = yield* statusOf(deps, tx, row);
    return status === row.status ? row : yield* save(deps, tx, made.id, { status });
  });
  await deps.accounts.tokenChanged(row.id);
  return tokenWithUse(deps, row);
}

/** The row as of this moment; a write of its own values keeps settlements away until the transaction ends. */
export function* lockedRow(deps: Deps, tx: Orm, owner: UserAccount, id: number): Steps<TokenRow> {
  const { tokens } = deps.db.t;
  const [row] = yield* q(
    tx
      .update(tokens)
      .set({ userId: owner.id })
      .where(and(owned(deps, owner), eq(tokens.id, id)))
      .returning(),
  );
  assertFound(row);
  return row;
}

function* save(deps: Deps, tx: Orm, id: number, changes: TokenChanges): Steps<TokenRow> {
  const { tokens } = deps.db.t;
  const [row] = yield* q(tx.update(tokens).set(changes).where(eq(tokens.id, id)).returning());
  assertFound(row);
  return row;
}

/**
 * The status that a row has by its own fields: a key that no call could use does not stand there as enabled, one that can be used
 * again is. A disabled key stays disabled.
 */
function* statusOf(deps: Deps, tx: Orm, row: TokenRow): Steps<number> {
  if (row.status === TokenStatus.disabled) return row.status;
  if (isOver(row, nowSeconds(deps))) return TokenStatus.expired;
  if (!isEmpty(row)) return TokenStatus.enabled;
  const { reservations } = deps.db.t;
  const [held] = yield* q(
    tx
      .select({ amount: sumOf(reservations.amount) })
      .from(reservations)
      .where(eq(reservations.tokenId, row.id)),
  );
  // What open calls give back belongs to the key: the last of them decides.
  return row.remainQuota + (held?.amount ?? 0) > 0 ? row.status : TokenStatus.exhausted;
}

/** Writes the given fields, and the status that the key has with them. */
export async function updateToken(
  deps: Deps,
  owner: UserAccount,
  id: number,
  input: TokenInput,
): Promise<TokenJson> {
  checkQuota(input.remain_quota);
  const { remain_quota: quota } = input;
  const saved = await deps.db.atomic(function* (tx) {
    const before = yield* lockedRow(deps, tx, owner, id);
    const changes = tokenChanges(deps, owner, input, before);
    if (typeof quota === "number" && quota !== before.remainQuota) {
      yield* deps.ledger.setTokenQuota(tx, id, quota);
    }
    const row = { ...before, ...changes, remainQuota: quota ?? before.remainQuota };
    const status = yield* statusOf(deps, tx, row);
    if (status !== row.status) changes.status = status;
    if (Object.keys(changes).length === 0) return row;
    if (changes.name !== undefined && changes.name !== before.name)
      yield* namesGoneSteps(deps.db, tx, nowSeconds(deps));
    return yield* save(deps, tx, id, changes);
  });
  await deps.accounts.tokenChanged(id);
  return tokenWithUse(deps, saved);
}

/** Enables (1) or disables (2) a key. */
export async function setTokenStatus(
  deps: Deps,
  owner: UserAccount,
  id: number,
  status: number,
): Promise<TokenJson> {
  if (status !== TokenStatus.enabled && status !== TokenStatus.disabled) {
    throw refuseField("status", "token_status_invalid");
  }
  const saved = await deps.db.atomic(function* (tx) {
    const row = yield* lockedRow(deps, tx, owner, id);
    if (status === TokenStatus.enabled) {
      if (isOver(row, nowSeconds(deps))) throw refuse("token_enable_expired");
      if (isEmpty(row)) throw refuse("token_enable_exhausted");
    }
    return yield* save(deps, tx, id, { status });
  });
  await deps.accounts.tokenChanged(id);
  return tokenWithUse(deps, saved);
}

/** The row stays for the tables; the key ends at once. */
export async function deleteToken(deps: Deps, owner: UserAccount, id: number): Promise<void> {
  const { tokens } = deps.db.t;
  const [row] = await deps.db.orm
    .update(tokens)
    .set({ deletedAt: nowSeconds(deps) })
    .where(and(owned(deps, owner), eq(tokens.id, id)))
    .returning({ id: tokens.id });
  if (!row) throw refuse("record_missing");
  await deps.accounts.tokenChanged(id);
}
