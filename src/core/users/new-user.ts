// The one way in for accounts: the row, what the site gives to it and to whoever invited it, their log rows and the first key.
// Refuses a name or an address that is taken; the account and all that comes with it come together, or nothing does.
import { randomBytes } from "node:crypto";
import { and, eq, isNull, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { isUniqueViolation } from "../../db/sql-state.ts";
import { LogType, Role, UserStatus } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import { logQuotaText } from "../../shared/money.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import type { Credit, Deps } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor, Origin } from "../logs/audit.ts";
import { inviteeGift, inviterGift, newUserGift } from "../logs/sentences.ts";
import { quotaDisplay } from "../options/store.ts";
import { nameKey } from "./folding.ts";
import type { MailAddress } from "./folding.ts";
import { firstTokenSteps } from "./tokens.ts";

type UserValues = Schema["users"]["$inferInsert"];
type UserDeps = Pick<Deps, "db" | "clock" | "ledger" | "options" | "seal" | "accounts">;

export interface NewAccount extends Pick<UserValues, "username" | "displayName"> {
  /** Absent: the account has no password. */
  passwordHash?: string | undefined;
  /** Proven; undefined: none. */
  mail?: MailAddress | undefined;
  /** Whose invitation code brought them; who is gone or banned gives and gets nothing. */
  inviterId?: number | undefined;
  /** JSON text of the account's own settings. */
  setting?: string | undefined;
  /** Version of the terms that were accepted; undefined: nobody asked. */
  termsVersion?: string | undefined;
  /** The administrator who makes it; absent: they come by themselves. */
  by?: AuditActor | undefined;
  /** From where they come. */
  origin?: Origin | undefined;
  /** Runs first in the transaction: what it throws undoes everything. */
  before?: ((tx: Orm) => Steps<void>) | undefined;
  /** Runs last, with the new account's id: what it throws undoes everything too. */
  after?: ((tx: Orm, userId: number, credit: (entry: Credit) => Steps<void>) => Steps<void>) | undefined;
}

/** What a name and an account without one begin with. */
export function accountKeys(username: string): Pick<UserValues, "usernameKey" | "passkeyHandle"> {
  return { usernameKey: nameKey(username), passkeyHandle: randomBytes(32).toString("base64url") };
}

/** In quota units; 0: none. */
interface Gifts {
  own: number;
  invitee: number;
  inviter: number;
  /** What whoever invited gets with the first paid order in place of now. */
  promised: number;
}

interface Named {
  id: number;
  username: string;
}

/** Makes the account and answers its id. Throws a Failure `username_taken`, and what `before` throws. */
export async function addUser(deps: UserDeps, account: NewAccount): Promise<number> {
  const reward = deps.options.get("QuotaForInviter");
  const isPromised = deps.options.get("InviteRewardAfterFirstOrder");
  const gifts: Gifts = {
    own: deps.options.get("QuotaForNewUser"),
    invitee: deps.options.get("QuotaForInvitee"),
    inviter: isPromised ? 0 : reward,
    promised: isPromised ? reward : 0,
  };
  try {
    const made = await deps.ledger.atomic(function* (tx, credit) {
      if (account.before) yield* account.before(tx);
      const inviter = yield* inviterSteps(tx, deps, account.inviterId, gifts.inviter);
      const user = yield* insertSteps(tx, deps, account, inviter && { ...inviter, promised: gifts.promised });
      yield* cameSteps(tx, deps, account, user);
      yield* giftSteps(tx, { deps, gifts, credit }, user, inviter);
      const tokenId = deps.options.get("GenerateDefaultToken")
        ? yield* firstTokenSteps(tx, deps, user)
        : undefined;
      if (account.after) yield* account.after(tx, user.id, credit);
      return { user, inviter, tokenId };
    });
    if (made.tokenId !== undefined) await deps.accounts.tokenChanged(made.tokenId);
    return made.user.id;
  } catch (error) {
    if (isUniqueViolation(error)) throw new Failure("client", "username_taken", { param: "username" });
    throw error;
  }
}

/** The row that says how the account came. */
function* cameSteps(
  tx: Orm,
  { ledger }: Pick<Deps, "ledger">,
  { by, origin }: NewAccount,
  user: Named,
): Steps<void> {
  if (by) {
    yield* auditSteps(tx, { ledger }, { user, action: "user.create", params: { name: user.username }, by });
  } else if (origin) {
    const self = { ...origin, ...user, role: Role.user };
    yield* auditSteps(tx, { ledger }, { user, action: "account.registered", by: self });
  }
}

function* inviterSteps(
  tx: Orm,
  { db }: Pick<Deps, "db">,
  inviterId: number | undefined,
  gift: number,
): Steps<Named | undefined> {
  if (inviterId === undefined) return undefined;
  const { users } = db.t;
  const counters =
    gift > 0
      ? {
          affCount: sql`${users.affCount} + 1`,
          affQuota: sql`${users.affQuota} + ${gift}`,
          affHistoryQuota: sql`${users.affHistoryQuota} + ${gift}`,
        }
      : // Counted only where the invitation earned something; the row says that the inviter is there.
        { affCount: sql`${users.affCount}` };
  const [inviter] = yield* q(
    tx
      .update(users)
      .set(counters)
      .where(and(eq(users.id, inviterId), isNull(users.deletedAt), eq(users.status, UserStatus.enabled)))
      .returning({ id: users.id, username: users.username }),
  );
  return inviter;
}

function* insertSteps(
  tx: Orm,
  { db, clock }: Pick<Deps, "db" | "clock">,
  { username, displayName, passwordHash, mail, setting, termsVersion }: NewAccount,
  inviter: { id: number; promised: number } | undefined,
): Steps<Named> {
  const { users } = db.t;
  const createdAt = Math.floor(clock.nowMs() / 1000);
  const [user] = yield* q(
    tx
      .insert(users)
      .values({
        username,
        displayName,
        ...(passwordHash === undefined ? {} : { passwordHash }),
        ...accountKeys(username),
        createdAt,
        ...(mail ? { email: mail.address, emailKey: mail.key } : {}),
        ...(setting === undefined ? {} : { setting }),
        ...(termsVersion === undefined ? {} : { termsVersion, termsAcceptedAt: createdAt }),
        ...(inviter ? { inviterId: inviter.id, inviteReward: inviter.promised } : {}),
      })
      .returning({ id: users.id }),
  );
  if (!user) throw refuse("internal_error");
  return { id: user.id, username };
}

interface Giving {
  deps: Pick<Deps, "ledger" | "options">;
  gifts: Gifts;
  credit: (entry: Credit) => Steps<void>;
}

/** The credits, and the rows of the log that say where the first balance came from. */
function* giftSteps(
  tx: Orm,
  { deps, gifts, credit }: Giving,
  user: Named,
  inviter: Named | undefined,
): Steps<void> {
  const ref = String(user.id);
  const display = quotaDisplay(deps.options);
  function* tell({ id, username }: Named, quota: number, sentence: (quota: string) => string): Steps<void> {
    const content = sentence(logQuotaText(quota, display));
    yield* deps.ledger.logSteps(tx, { type: LogType.system, userId: id, username, content });
  }
  if (gifts.own > 0) {
    yield* credit({ userId: user.id, amount: gifts.own, kind: "register", ref });
    yield* tell(user, gifts.own, newUserGift);
  }
  if (!inviter) return;
  if (gifts.invitee > 0) {
    yield* credit({ userId: user.id, amount: gifts.invitee, kind: "invite", ref });
    yield* tell(user, gifts.invitee, inviteeGift);
  }
  if (gifts.inviter > 0) yield* tell(inviter, gifts.inviter, inviterGift);
}
