// Users: the own account, and their administration by rank.
// Refuses to touch a same or higher rank (root passes), and to disable, delete or demote root.
import { eq, inArray, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { isUniqueViolation } from "../../db/sql-state.ts";
import { Role, UserStatus } from "../../shared/enums.ts";
import type { AuditAction } from "../../shared/audit-actions.ts";
import { isLimitName, LIMIT_NAMES, parseLimitFields } from "../../shared/key-limits.ts";
import type { LimitFields } from "../../shared/key-limits.ts";
import { refuse } from "../../shared/failures.ts";
import { balanceSteps, checkChange, tellRoot } from "./balance-changes.ts";
import type { BalanceChange } from "./balance-changes.ts";
import {
  checkedDisplayName,
  checkedOwnUsername,
  checkedUsername,
  checkNewPassword,
  checkPassword,
} from "./account-rules.ts";
import { hashPassword, newAccessToken, verifyPassword } from "./credentials.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { removeFactorSteps } from "./factors/factor-rows.ts";
import { eraseSoon, eraseSteps } from "./erasure.ts";
import { forgetDevices } from "./devices.ts";
import { nameKey } from "./folding.ts";
import { mailFor, refuseTakenMail } from "./mail-rules.ts";
import { addUser } from "./new-user.ts";
import { sendSoon } from "./outbox.ts";
import { assertOutranks } from "./rank.ts";
import { removeOwnSteps } from "./removal.ts";
import { publicSetting } from "./webhook-secret.ts";
import { passwordLetterSteps } from "./password-letter.ts";
import { sha256Hex } from "../kit/seal.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor, AuditEntry } from "../logs/audit.ts";

export type UserRow = Schema["users"]["$inferSelect"];

/** A user as the wire knows it; secrets are always empty. */
export interface UserJson {
  id: number;
  username: string;
  password: string;
  original_password: string;
  display_name: string;
  role: number;
  status: number;
  email: string;
  github_id: string;
  oidc_id: string;
  wechat_id: string;
  telegram_id: string;
  linux_do_id: string;
  verification_code: string;
  access_token: null;
  quota: number;
  used_quota: number;
  request_count: number;
  group: string;
  aff_code: string;
  aff_count: number;
  aff_quota: number;
  aff_history_quota: number;
  inviter_id: number;
  DeletedAt: string | null;
  setting: string;
  /** † Budget and limits of the user's own; null: those of the group. */
  limits: LimitFields | null;
}

/** Rows as the wire knows them, with what is bound to each. */
export async function withIdentities(deps: Deps, rows: UserRow[]): Promise<UserJson[]> {
  const { identities } = deps.db.t;
  const bound = new Map<number, Record<string, string>>();
  if (rows.length > 0) {
    const found = await deps.db.orm
      .select()
      .from(identities)
      .where(
        inArray(
          identities.userId,
          rows.map((row) => row.id),
        ),
      );
    for (const identity of found) {
      const entry = bound.get(identity.userId) ?? {};
      entry[identity.provider] = identity.subject;
      bound.set(identity.userId, entry);
    }
  }
  return rows.map((row) => userJson(row, bound.get(row.id) ?? {}));
}

function userJson(row: UserRow, identities: Record<string, string>): UserJson {
  return {
    id: row.id,
    username: row.username,
    password: "",
    original_password: "",
    display_name: row.displayName,
    role: row.role,
    status: row.status,
    email: row.email,
    github_id: identities.github ?? "",
    oidc_id: identities.oidc ?? "",
    wechat_id: identities.wechat ?? "",
    telegram_id: identities.telegram ?? "",
    linux_do_id: identities.linuxdo ?? "",
    verification_code: "",
    access_token: null,
    quota: row.quota,
    used_quota: row.usedQuota,
    request_count: row.requestCount,
    group: row.group,
    aff_code: row.affCode ?? "",
    aff_count: row.affCount,
    aff_quota: row.affQuota,
    aff_history_quota: row.affHistoryQuota,
    inviter_id: row.inviterId,
    DeletedAt: row.deletedAt === null ? null : new Date(row.deletedAt * 1000).toISOString(),
    setting: publicSetting(row.setting),
    limits: parseLimitFields(row.limits) ?? null,
  };
}

const now = (deps: Deps) => Math.floor(deps.clock.nowMs() / 1000);

async function findUser(deps: Deps, id: number): Promise<UserRow> {
  const { users } = deps.db.t;
  const rows = await deps.db.orm.select().from(users).where(eq(users.id, id)).limit(1);
  if (!rows[0]) throw refuse("user_missing");
  return rows[0];
}

// --- own account ---------------------------------------------------------------------------------------------------

export async function getUser(deps: Deps, id: number): Promise<UserJson> {
  const [user] = await withIdentities(deps, [await findUser(deps, id)]);
  if (!user) throw refuse("user_missing");
  return user;
}

export interface SelfUpdate {
  username?: string | undefined;
  display_name?: string | undefined;
  password?: string | undefined;
  original_password?: string | undefined;
}

/** The browser and the session that a change comes from: they survive it. */
export interface Here {
  sessionId: string | undefined;
  deviceId: string;
}

/**
 * Changes the own name, display name or password; empty fields stay as they are. A new password needs the old one,
 * ends every other session and forgets every other device: the caller gives this session a new token.
 */
export async function updateSelf(
  deps: Deps,
  actor: AuditActor,
  input: SelfUpdate,
  { sessionId, deviceId }: Here,
): Promise<UserRow> {
  const row = await findUser(deps, actor.id);
  const changes: Partial<UserRow> = {
    ...nameChanges(row, input.username ?? "", actor.role < Role.root ? checkedOwnUsername : checkedUsername),
    ...(input.display_name ? displayNameChanges(row, input.display_name) : {}),
  };
  if (input.password) {
    checkNewPassword(input.password, { username: row.username, mail: row.email });
    const { matches } = await verifyPassword(input.original_password ?? "", row.passwordHash);
    // An account that came from a third party has no password yet and may set its first one.
    if (!matches && row.passwordHash !== "") throw refuse("password_old_wrong");
    changes.passwordHash = await hashPassword(input.password);
  }
  const saved = await saveUser(deps, {
    changes,
    row,
    endsSessions: changes.passwordHash !== undefined,
    entries: changeEntries(row, changes, actor, ["account.names", "password.changed"]),
    *also(tx, changed) {
      if (changes.passwordHash !== undefined) yield* passwordLetterSteps(tx, deps, changed);
    },
  });
  if (changes.passwordHash !== undefined) {
    sendSoon(deps);
    const { sessionVersion } = saved;
    await deps.sessions.endAll(
      actor.id,
      "password",
      sessionId === undefined ? undefined : { id: sessionId, sessionVersion },
    );
    await forgetDevices(deps, actor.id, deviceId);
  }
  return saved;
}

/** Names are checked only where they change: those of other ways in may be longer, and whose one is reserved may write it otherwise. */
function nameChanges(row: UserRow, typed: string, check = checkedUsername): Partial<UserRow> {
  if (typed.trim() === "" || typed.trim() === row.username) return {};
  const username = nameKey(typed) === row.usernameKey ? checkedUsername(typed) : check(typed);
  return { username, usernameKey: nameKey(username) };
}

function displayNameChanges(row: UserRow, typed: string): Partial<UserRow> {
  return typed.trim() === row.displayName ? {} : { displayName: checkedDisplayName(typed) };
}

/** Ends every session at once: whoever read the row before this gets no session with the version it had then. */
const nextVersion = (deps: Deps): SQL => sql`${deps.db.t.users.sessionVersion} + 1`;

interface Save {
  changes: Partial<UserRow>;
  row: UserRow;
  endsSessions: boolean;
  /** Rows of the audit trail that go with it. */
  entries: readonly AuditEntry[];
  /** What else belongs to the change. */
  also?: (tx: Orm, saved: UserRow) => Steps<void>;
}

/** What of a change the audit trail tells: the fields by their names, and that there is a new password. */
function changeEntries(
  user: UserRow,
  changes: Partial<UserRow>,
  by: AuditActor,
  [names, password]: readonly [AuditAction, AuditAction],
): AuditEntry[] {
  const { passwordHash, usernameKey: _, ...fields } = changes;
  const changed = Object.keys(fields).join(", ");
  return [
    ...(changed === "" ? [] : [{ user, action: names, params: { fields: changed }, by }]),
    ...(passwordHash === undefined ? [] : [{ user, action: password, by }]),
  ];
}

async function saveUser(deps: Deps, { changes, row, endsSessions, entries, also }: Save): Promise<UserRow> {
  if (Object.keys(changes).length === 0) return row;
  const { users } = deps.db.t;
  try {
    const set = endsSessions ? { ...changes, sessionVersion: nextVersion(deps) } : changes;
    const saved = await deps.db.atomic(function* (tx) {
      const [found] = yield* q(tx.update(users).set(set).where(eq(users.id, row.id)).returning());
      if (!found) throw refuse("user_missing");
      for (const entry of entries) yield* auditSteps(tx, deps, entry);
      if (also) yield* also(tx, found);
      return found;
    });
    await deps.accounts.userChanged(row.id);
    return saved;
  } catch (error) {
    if (isUniqueViolation(error)) throw refuse("username_taken");
    throw error;
  }
}

/** Makes a new system access token; the old one ends at once. Only its hash is kept. */
export async function renewAccessToken(deps: Deps, actor: AuditActor): Promise<string> {
  const token = newAccessToken();
  const { users } = deps.db.t;
  await deps.db.atomic(function* (tx) {
    const accessTokenHash = sha256Hex(token);
    yield* q(
      tx.update(users).set({ accessTokenHash }).where(eq(users.id, actor.id)).returning({ id: users.id }),
    );
    yield* auditSteps(tx, deps, { user: actor, action: "token.renewed", by: actor });
  });
  await deps.accounts.userChanged(actor.id);
  return token;
}

/** Which secrets the account has; never what they are. */
export async function ownSecrets(
  deps: Deps,
  actor: UserAccount,
): Promise<{ hasPassword: boolean; hasAccessToken: boolean }> {
  const { passwordHash, accessTokenHash } = await findUser(deps, actor.id);
  return { hasPassword: passwordHash !== "", hasAccessToken: accessTokenHash !== null };
}

/** `erase`: name, address and texts go too; the books stay (erasure.ts). */
export async function deleteSelf(
  deps: Deps,
  actor: AuditActor,
  { erase }: { erase: boolean } = { erase: false },
): Promise<void> {
  if (actor.role >= Role.root) throw refuse("user_root_self_undeletable");
  await softDelete(deps, await findUser(deps, actor.id), actor, erase);
  if (erase) eraseSoon(deps, actor.id);
}

async function softDelete(deps: Deps, row: UserRow, by: AuditActor, erases = false): Promise<void> {
  const { identities, remoteObjects, users } = deps.db.t;
  const isOwn = by.id === row.id;
  const action: AuditAction = isOwn ? "account.deleted" : "user.delete";
  await deps.db.atomic(function* (tx) {
    const set = { deletedAt: now(deps), sessionVersion: nextVersion(deps), accessTokenHash: null };
    yield* q(tx.update(users).set(set).where(eq(users.id, row.id)).returning({ id: users.id }));
    yield* q(
      tx
        .delete(remoteObjects)
        .where(eq(remoteObjects.userId, row.id))
        .returning({ id: remoteObjects.userId }),
    );
    yield* removeFactorSteps(tx, deps, row.id, { totp: true, passkeys: true });
    // Whoever leaves may come anew; whom an administrator deleted meets "deleted" when their provider vouches for them.
    if (isOwn)
      yield* q(tx.delete(identities).where(eq(identities.userId, row.id)).returning({ id: identities.id }));
    if (erases) yield* eraseSteps(tx, deps, row.id);
    // Of whom is forgotten the row says that it was, and neither name nor address.
    const nobody = { ...by, username: "", address: "", userAgent: "" };
    yield* auditSteps(
      tx,
      deps,
      erases
        ? { user: { id: row.id, username: "" }, action: "account.erased", by: nobody }
        : { user: row, action, by },
    );
  });
  await deps.accounts.userChanged(row.id);
  await endEverywhere(deps, row.id, "deleted");
}

/** After the version was raised: the rows say why their sessions ended, and no browser is known any more. */
async function endEverywhere(deps: Deps, userId: number, reason: string): Promise<void> {
  await deps.sessions.endAll(userId, reason);
  await forgetDevices(deps, userId);
}

// --- administration ------------------------------------------------------------------------------------------------

export async function getUserFor(deps: Deps, actor: UserAccount, id: number): Promise<UserJson> {
  const row = await findUser(deps, id);
  if (actor.id !== id) assertOutranks(actor, row, "user_rank_read");
  const [user] = await withIdentities(deps, [row]);
  if (!user) throw refuse("user_missing");
  return user;
}

export interface NewUser {
  username: string;
  password: string;
  display_name?: string | undefined;
  /** † */
  email?: string | undefined;
  role?: number | undefined;
}

export async function createUser(deps: Deps, actor: AuditActor, input: NewUser): Promise<number> {
  if (input.username.trim() === "" || input.password === "") throw refuse("user_fields_empty");
  const username = checkedUsername(input.username);
  const displayName = checkedDisplayName(input.display_name ?? "") || username;
  checkPassword(input.password);
  // What an administrator writes counts as proven.
  const mail = input.email?.trim() ? mailFor(deps, input.email) : undefined;
  if ((input.role ?? Role.user) >= actor.role) throw refuse("user_rank_create");
  if (mail) await refuseTakenMail(deps, mail);
  const passwordHash = await hashPassword(input.password);
  return addUser(deps, { username, displayName, passwordHash, mail, by: actor });
}

/** What is sent over what is stored; throws `limit_unknown` for a name that is none. "" = none of the user's own. */
function limitsText(stored: string, sent: SentLimits | null): string {
  if (sent === null) return "";
  const unknown = Object.keys(sent).find((name) => !isLimitName(name));
  if (unknown !== undefined)
    throw refuse("limit_unknown", { name: unknown.slice(0, 100), allowed: [...LIMIT_NAMES].join(", ") });
  const fields = Object.entries({ ...parseLimitFields(stored), ...sent });
  const given = fields.filter(([, value]) => value !== null && value !== undefined);
  return given.length > 0 ? JSON.stringify(Object.fromEntries(given)) : "";
}

export interface UserUpdate extends BalanceChange {
  id: number;
  username?: string | undefined;
  display_name?: string | undefined;
  password?: string | undefined;
  group?: string | undefined;
  /** What is absent stays, null in a field follows the group's again; null in place of all: every field does. */
  limits?: SentLimits | null | undefined;
}

/** As the wire may have them; may carry names that are no limits. */
type SentLimits = { [Name in keyof LimitFields]: LimitFields[Name] | null };

/** Writes what is present; a change of the balance is logged for the user it belongs to. */
export async function updateUser(deps: Deps, actor: AuditActor, input: UserUpdate): Promise<void> {
  const row = await findUser(deps, input.id);
  // The own row too: an administrator's own balance and group are a higher rank's business.
  assertOutranks(actor, row, "user_rank_update");
  const changes: Partial<UserRow> = {
    ...nameChanges(row, input.username ?? ""),
    ...(input.display_name === undefined ? {} : displayNameChanges(row, input.display_name)),
  };
  if (input.group !== undefined && input.group !== "") {
    if (!Object.hasOwn(deps.options.get("GroupRatio"), input.group))
      throw refuse("group_unknown", { group: input.group });
    changes.group = input.group;
  }
  if (input.limits !== undefined) changes.limits = limitsText(row.limits, input.limits);
  if (input.password) {
    checkPassword(input.password);
    changes.passwordHash = await hashPassword(input.password);
  }
  checkChange(input);
  const entries = changeEntries(row, changes, actor, ["user.update", "user.password"]);
  const { users } = deps.db.t;
  try {
    const changed = await deps.ledger.atomic(function* (tx, credit) {
      if (Object.keys(changes).length > 0) {
        // A password is reset where somebody else may have had the old one: what they made with it ends, too.
        const set =
          changes.passwordHash === undefined
            ? changes
            : { ...changes, sessionVersion: nextVersion(deps), accessTokenHash: null };
        yield* q(tx.update(users).set(set).where(eq(users.id, row.id)).returning({ id: users.id }));
        deps.ledger.changed(tx, row.id);
      }
      for (const entry of entries) yield* auditSteps(tx, deps, entry);
      return yield* balanceSteps(tx, { deps, credit, by: actor }, row, input);
    });
    if (changed) tellRoot(deps, actor, row, changed);
  } catch (error) {
    if (isUniqueViolation(error)) throw refuse("username_taken");
    throw error;
  }
  if (changes.passwordHash !== undefined) await endEverywhere(deps, row.id, "password");
}

export type ManageAction = "disable" | "enable" | "delete" | "promote" | "demote";

/** Promotes, demotes, disables, enables or deletes; answers the user's new role and status. */
export async function manageUser(
  deps: Deps,
  actor: AuditActor,
  id: number,
  action: ManageAction,
): Promise<{ role: number; status: number }> {
  const row = await findUser(deps, id);
  const isRoot = row.role >= Role.root;
  if (action === "disable" && isRoot) throw refuse("user_root_undisableable");
  if (action === "delete" && isRoot) throw refuse("user_root_undeletable");
  if (action === "demote" && isRoot) throw refuse("user_root_undemotable");
  assertOutranks(actor, row, "user_rank_update");
  if (action === "delete") {
    await softDelete(deps, row, actor);
    return { role: row.role, status: row.status };
  }
  const changes: Partial<UserRow> = {};
  if (action === "disable") changes.status = UserStatus.disabled;
  if (action === "enable") changes.status = UserStatus.enabled;
  if (action === "promote") {
    if (actor.role < Role.root) throw refuse("user_promote_root_only");
    if (row.role >= Role.admin) throw refuse("user_already_admin");
    changes.role = Role.admin;
  }
  if (action === "demote") {
    if (row.role <= Role.user) throw refuse("user_already_ordinary");
    changes.role = Role.user;
  }
  const entries: AuditEntry[] = [{ user: row, action: `user.${action}`, by: actor }];
  const saved = await saveUser(deps, { changes, row, endsSessions: true, entries });
  // Who was banned comes back as a stranger; a changed rank leaves the browsers known.
  if (action === "disable") await endEverywhere(deps, id, "banned");
  else await deps.sessions.endAll(id, action === "enable" ? "enabled" : "role");
  return { role: saved.role, status: saved.status };
}

/** Removes the row itself; its log rows and credits stay as the record of what happened. */
export async function removeUser(deps: Deps, actor: AuditActor, id: number): Promise<void> {
  const row = await findUser(deps, id);
  if (row.role >= Role.root) throw refuse("user_root_undeletable");
  assertOutranks(actor, row, "user_rank_delete");
  const { tokens, users } = deps.db.t;
  const owned = await deps.db.orm.select({ id: tokens.id }).from(tokens).where(eq(tokens.userId, id));
  await deps.db.atomic(function* (tx) {
    yield* removeOwnSteps(tx, deps, id);
    yield* removeFactorSteps(tx, deps, id, { totp: true, passkeys: true });
    yield* q(tx.delete(users).where(eq(users.id, id)).returning({ id: users.id }));
    const params = { name: row.username };
    yield* auditSteps(tx, deps, { user: row, action: "user.remove", params, by: actor });
  });
  // First: whatever fails behind it, memory lets neither the account nor its keys in.
  await deps.accounts.userChanged(id);
  await deps.sessions.remove(id);
  for (const token of owned) await deps.accounts.tokenChanged(token.id);
}
