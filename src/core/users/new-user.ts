// The one way in for accounts: the row, the gifts that the site gives to it and to whoever invited it, and their log rows.
// Refuses a name that is taken; the account and its gifts come together, or neither does.
import { and, eq, isNull, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import { isUniqueViolation } from "../../db/sql-state.ts";
import { LogType } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import { logQuotaText } from "../../shared/money.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import type { Deps } from "../deps.ts";
import { inviteeGift, inviterGift, newUserGift } from "../logs/sentences.ts";
import { quotaDisplay } from "../options/store.ts";

type UserValues = Schema["users"]["$inferInsert"];

export interface NewAccount extends Pick<UserValues, "username" | "displayName" | "passwordHash"> {
  /** Whose invitation code brought them; who is gone gives and gets nothing. */
  inviterId?: number | undefined;
}

/** Makes the account and answers its id. Throws a Failure `username_taken`. */
export async function addUser(deps: Deps, { inviterId, ...row }: NewAccount): Promise<number> {
  const { users } = deps.db.t;
  const gifts: Gifts = {
    own: deps.options.get("QuotaForNewUser"),
    invitee: deps.options.get("QuotaForInvitee"),
    inviter: deps.options.get("QuotaForInviter"),
  };
  const createdAt = Math.floor(deps.clock.nowMs() / 1000);
  try {
    const made = await deps.ledger.atomic(function* (tx, credit) {
      const [inviter] =
        inviterId === undefined
          ? []
          : yield* q(
              tx
                .update(users)
                .set(
                  gifts.inviter > 0
                    ? {
                        affCount: sql`${users.affCount} + 1`,
                        affQuota: sql`${users.affQuota} + ${gifts.inviter}`,
                        affHistoryQuota: sql`${users.affHistoryQuota} + ${gifts.inviter}`,
                      }
                    : // Counted only where the invitation earned something; the row says that the inviter is there.
                      { affCount: sql`${users.affCount}` },
                )
                .where(and(eq(users.id, inviterId), isNull(users.deletedAt)))
                .returning({ id: users.id, username: users.username }),
            );
      const [user] = yield* q(
        tx
          .insert(users)
          .values({ ...row, createdAt, ...(inviter ? { inviterId: inviter.id } : {}) })
          .returning({ id: users.id }),
      );
      if (!user) throw refuse("internal_error");
      const ref = String(user.id);
      if (gifts.own > 0) yield* credit({ userId: user.id, amount: gifts.own, kind: "register", ref });
      if (inviter && gifts.invitee > 0)
        yield* credit({ userId: user.id, amount: gifts.invitee, kind: "invite", ref });
      return { user: { id: user.id, username: row.username }, inviter };
    });
    await logGifts(deps, gifts, made);
    return made.user.id;
  } catch (error) {
    if (isUniqueViolation(error)) throw refuse("username_taken");
    throw error;
  }
}

/** In quota units; 0: none. */
interface Gifts {
  own: number;
  invitee: number;
  inviter: number;
}

interface Named {
  id: number;
  username: string;
}

interface Involved {
  user: Named;
  /** Undefined: nobody, or somebody who is gone. */
  inviter: Named | undefined;
}

/** Rows of the log that say where the first balance came from. */
async function logGifts(deps: Deps, gifts: Gifts, { user, inviter }: Involved): Promise<void> {
  const display = quotaDisplay(deps.options);
  const tell = async ({ id, username }: Named, quota: number, sentence: (quota: string) => string) => {
    if (quota <= 0) return;
    const content = sentence(logQuotaText(quota, display));
    await deps.ledger.log({ type: LogType.system, userId: id, username, content });
  };
  await tell(user, gifts.own, newUserGift);
  if (!inviter) return;
  await tell(user, gifts.invitee, inviteeGift);
  await tell(inviter, gifts.inviter, inviterGift);
}
