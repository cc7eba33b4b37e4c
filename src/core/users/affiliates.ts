// Invitations: the code a user hands out, and moving what it earned into the balance.
// Refuses transfers below one unit and above what was earned.
import { randomInt } from "node:crypto";
import { and, eq, gte, isNull, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import { isUniqueViolation } from "../../db/sql-state.ts";
import { refuse } from "../../shared/failures.ts";
import { isQuota, logQuotaText } from "../../shared/money.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { quotaDisplay } from "../options/store.ts";

const CODE_CHARACTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789";
const CODE_LENGTH = 4;
const ATTEMPTS = 20;

function newCode(length: number): string {
  return Array.from({ length }, () => CODE_CHARACTERS[randomInt(CODE_CHARACTERS.length)]).join("");
}

/** The user's invitation code, made when it is first asked for. */
export async function affiliateCode(deps: Deps, user: UserAccount): Promise<string> {
  const { users } = deps.db.t;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const [row] = await deps.db.orm.select({ code: users.affCode }).from(users).where(eq(users.id, user.id));
    if (!row) throw refuse("user_missing");
    if (row.code !== null && row.code !== "") return row.code;
    try {
      // Codes grow when four characters run out.
      await deps.db.orm
        .update(users)
        .set({ affCode: newCode(CODE_LENGTH + Math.floor(attempt / 5)) })
        .where(and(eq(users.id, user.id), isNull(users.affCode)));
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
    }
  }
  throw refuse("internal_error");
}

/** Moves `quota` from the rewards into the balance; both change in one transaction. */
export async function transferReward(deps: Deps, user: UserAccount, quota: number): Promise<void> {
  const minimum = deps.options.get("QuotaPerUnit");
  if (!isQuota(quota) || quota < minimum)
    throw refuse("aff_transfer_low", { minimum: logQuotaText(minimum, quotaDisplay(deps.options)) });
  const { users } = deps.db.t;
  await deps.ledger.atomic(function* (tx, credit) {
    const moved = yield* q(
      tx
        .update(users)
        .set({ affQuota: sql`${users.affQuota} - ${quota}` })
        .where(and(eq(users.id, user.id), gte(users.affQuota, quota)))
        .returning({ id: users.id }),
    );
    if (moved.length === 0) throw refuse("aff_transfer_short");
    yield* credit({ userId: user.id, amount: quota, kind: "affiliate" });
  });
}
