// One-time codes by time (RFC 6238: SHA-1, six digits, thirty seconds) and the backup codes beside them.
// Refuses a code whose step was used before, and locks an account's codes after ten wrong ones within an hour.
import { randomInt } from "node:crypto";
import { and, eq, gt, isNull, like, lt, lte, sql } from "drizzle-orm";
import { Secret, TOTP } from "otpauth";
import { q } from "../../../db/database.ts";
import type { Orm, Steps } from "../../../db/database.ts";
import { refuse } from "../../../shared/failures.ts";
import type { Deps, UserAccount } from "../../deps.ts";
import { tooMany } from "../../kit/site-limits.ts";
import { verifyPassword } from "../credentials.ts";
import { findTokenFlow, openTokenFlow, useTokenFlowSteps } from "../token-flows.ts";
import { lockUserSteps, markFactorSteps } from "./factor-rows.ts";
import type { FactorTold } from "./factor-rows.ts";

export type TotpDeps = Pick<Deps, "db" | "clock" | "seal" | "options" | "accounts">;

const PERIOD_SECONDS = 30;
const SECRET_BYTES = 20;
const SETUP_SECONDS = 600;
const WINDOW_SECONDS = 3600;
const MOST_WRONG = 10;
const LOCK_SECONDS = 900;
const LONGEST_LOCK_SECONDS = 4 * 3600;
const BACKUP_CODES = 10;
const HALF = 5;
/** 32 letters and digits that nobody mistakes for each other. */
const LETTERS = "abcdefghijkmnpqrstuvwxyz23456789";

const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

function totpOf(secret: Secret, issuer: string, label: string): TOTP {
  return new TOTP({ issuer, label, algorithm: "SHA1", digits: 6, period: PERIOD_SECONDS, secret });
}

/** Of the address that authenticators read: a colon would end the issuer there. */
const issuerOf = ({ options }: Pick<Deps, "options">): string =>
  options.get("SystemName").replaceAll(":", " ").trim() || "Weir";

/** The step whose code this is, one before and one after now included; undefined: none. */
function stepOf({ clock }: Pick<Deps, "clock">, secret: string, code: string): number | undefined {
  const timestamp = clock.nowMs();
  const delta = totpOf(Secret.fromBase32(secret), "", "").validate({ token: code, timestamp, window: 1 });
  return delta === null ? undefined : Math.floor(timestamp / 1000 / PERIOD_SECONDS) + delta;
}

interface Setup {
  secret: string;
}

/** What an authenticator reads, kept in a flow until a code proves that it was read. Throws `totp_on`. */
export async function beginTotp(
  deps: TotpDeps,
  actor: UserAccount,
): Promise<{ secret: string; uri: string; flow_token: string }> {
  const { totps } = deps.db.t;
  const [row] = await deps.db.orm.select({ id: totps.userId }).from(totps).where(eq(totps.userId, actor.id));
  if (row) throw refuse("totp_on");
  const secret = new Secret({ size: SECRET_BYTES });
  const flowToken = await openTokenFlow(deps, {
    kind: "totp_setup",
    userId: actor.id,
    payload: { secret: secret.base32 } satisfies Setup,
    seconds: SETUP_SECONDS,
  });
  return {
    secret: secret.base32,
    uri: totpOf(secret, issuerOf(deps), actor.username).toString(),
    flow_token: flowToken,
  };
}

function newBackupCode(): string {
  const half = () => Array.from({ length: HALF }, () => LETTERS[randomInt(LETTERS.length)]).join("");
  return `${half()}-${half()}`;
}

const backupHash = ({ seal }: Pick<Deps, "seal">, userId: number, code: string): string =>
  seal.mac(`backup|${userId}|${code.toLowerCase().replaceAll(/[^a-z0-9]/g, "")}`).toString("hex");

/** New codes in place of all that there were; they are shown once. */
function* newCodesSteps(tx: Orm, deps: TotpDeps, userId: number): Steps<string[]> {
  const { backupCodes } = deps.db.t;
  const codes = Array.from({ length: BACKUP_CODES }, newBackupCode);
  yield* q(tx.delete(backupCodes).where(eq(backupCodes.userId, userId)).returning({ id: backupCodes.id }));
  yield* q(
    tx
      .insert(backupCodes)
      .values(codes.map((code) => ({ userId, hash: backupHash(deps, userId, code) })))
      .returning({ id: backupCodes.id }),
  );
  return codes;
}

/** Puts the factor in force and answers the backup codes. Throws `flow_over`, `second_factor_wrong`, `totp_on`. */
export async function enableTotp(
  deps: TotpDeps,
  actor: UserAccount,
  { code, flowToken, told }: { code: string; flowToken: string; told: FactorTold },
): Promise<string[]> {
  const flow = await findTokenFlow<Setup>(deps, "totp_setup", flowToken);
  if (!flow || flow.userId !== actor.id) throw refuse("flow_over");
  const step = stepOf(deps, flow.payload.secret, code.trim());
  if (step === undefined) throw refuse("second_factor_wrong");
  const { totps } = deps.db.t;
  const codes = await deps.db.atomic(function* (tx) {
    yield* lockUserSteps(tx, deps, actor.id);
    if (!(yield* useTokenFlowSteps(tx, deps, "totp_setup", flowToken))) throw refuse("flow_over");
    const [row] = yield* q(
      tx
        .insert(totps)
        .values({
          userId: actor.id,
          secretSealed: deps.seal.seal("user", flow.payload.secret),
          lastStep: step,
          createdAt: nowSeconds(deps),
        })
        .onConflictDoNothing()
        .returning({ id: totps.userId }),
    );
    if (!row) throw refuse("totp_on");
    yield* markFactorSteps(tx, deps, actor.id);
    yield* told(tx);
    return yield* newCodesSteps(tx, deps, actor.id);
  });
  await deps.accounts.userChanged(actor.id);
  return codes;
}

/** Throws `totp_off`. */
export async function renewBackupCodes(
  deps: TotpDeps,
  actor: UserAccount,
  told: FactorTold,
): Promise<string[]> {
  const { totps } = deps.db.t;
  return deps.db.atomic(function* (tx) {
    yield* lockUserSteps(tx, deps, actor.id);
    const [row] = yield* q(tx.select({ id: totps.userId }).from(totps).where(eq(totps.userId, actor.id)));
    if (!row) throw refuse("totp_off");
    yield* told(tx);
    return yield* newCodesSteps(tx, deps, actor.id);
  });
}

export interface TotpState {
  enabled: boolean;
  locked_until: number;
  created_at: number;
  backup_codes_left: number;
}

type TotpRow = TotpDeps["db"]["t"]["totps"]["$inferSelect"];

/**
 * Counts a code as wrong before it is looked at, so that many at once are no more than ten; the tenth within an hour locks,
 * each time for twice as long. A right one takes it back. Throws `too_many_attempts` while the codes are locked; undefined:
 * the account has none.
 */
async function admitCode(deps: TotpDeps, userId: number): Promise<TotpRow | undefined> {
  const { totps } = deps.db.t;
  const now = nowSeconds(deps);
  return deps.db.atomic(function* (tx) {
    const [row] = yield* q(
      tx
        .update(totps)
        .set({
          wrong: sql`case when ${totps.wrongSince} < ${now - WINDOW_SECONDS} then 1 else ${totps.wrong} + 1 end`,
          wrongSince: sql`case when ${totps.wrongSince} < ${now - WINDOW_SECONDS} then ${now} else ${totps.wrongSince} end`,
        })
        .where(and(eq(totps.userId, userId), lte(totps.lockedUntil, now)))
        .returning(),
    );
    if (!row) {
      const [locked] = yield* q(
        tx.select({ until: totps.lockedUntil }).from(totps).where(eq(totps.userId, userId)),
      );
      if (locked) throw tooMany(Math.max(1, locked.until - now));
      return undefined;
    }
    if (row.wrong < MOST_WRONG) return row;
    const seconds = Math.min(LOCK_SECONDS * 2 ** row.locks, LONGEST_LOCK_SECONDS);
    yield* q(
      tx
        .update(totps)
        .set({ wrong: 0, wrongSince: 0, locks: row.locks + 1, lockedUntil: now + seconds })
        .where(eq(totps.userId, userId))
        .returning({ id: totps.userId }),
    );
    return row;
  });
}

/** After a right one. */
const NOTHING_WRONG = { wrong: 0, wrongSince: 0, locks: 0, lockedUntil: 0 };

/** Uses the step up: it counts only where it is later than the last one, also on two nodes at once. */
async function useStep(deps: TotpDeps, userId: number, step: number): Promise<boolean> {
  const { totps } = deps.db.t;
  const rows = await deps.db.orm
    .update(totps)
    .set({ lastStep: step, ...NOTHING_WRONG })
    .where(and(eq(totps.userId, userId), lt(totps.lastStep, step)))
    .returning({ id: totps.userId });
  return rows.length > 0;
}

async function useBackupCode(deps: TotpDeps, userId: number, code: string): Promise<boolean> {
  const { backupCodes } = deps.db.t;
  const use = async (hash: string): Promise<boolean> => {
    const rows = await deps.db.orm
      .update(backupCodes)
      .set({ usedAt: nowSeconds(deps) })
      .where(and(eq(backupCodes.userId, userId), eq(backupCodes.hash, hash), isNull(backupCodes.usedAt)))
      .returning({ id: backupCodes.id });
    return rows.length > 0;
  };
  if (await use(backupHash(deps, userId, code))) return true;
  const hash = await importedHash(deps, userId, code);
  return hash !== undefined && use(hash);
}

/** Eight letters and digits, in two halves or not: a code of the products that sites are imported from. */
const IMPORTED_CODE = /^([0-9A-Z]{4})-?([0-9A-Z]{4})$/;

/**
 * Of an unused code that an import brought, which is the bcrypt hash of `XXXX-XXXX`: found by trying, for its salt is in it.
 * Undefined for codes of another form, and where none is right.
 */
async function importedHash(deps: TotpDeps, userId: number, code: string): Promise<string | undefined> {
  const [, head, tail] = IMPORTED_CODE.exec(code.toUpperCase()) ?? [];
  if (head === undefined) return undefined;
  const { backupCodes } = deps.db.t;
  const rows = await deps.db.orm
    .select({ hash: backupCodes.hash })
    .from(backupCodes)
    .where(and(eq(backupCodes.userId, userId), like(backupCodes.hash, "$2%"), isNull(backupCodes.usedAt)));
  for (const { hash } of rows) if ((await verifyPassword(`${head}-${tail}`, hash)).matches) return hash;
  return undefined;
}

/**
 * Whether the code, of the authenticator or a backup code, is right; it is used up then. Throws `too_many_attempts` while
 * the account's codes are locked.
 */
export async function proveSecondCode(
  deps: TotpDeps,
  userId: number,
  typed: string,
): Promise<"totp" | "backup" | undefined> {
  const row = await admitCode(deps, userId);
  if (!row) return undefined;
  const code = typed.trim();
  if (/^\d{6}$/.test(code)) {
    const step = stepOf(deps, deps.seal.open("user", row.secretSealed), code);
    if (step !== undefined && (await useStep(deps, userId, step))) return "totp";
  } else if (await useBackupCode(deps, userId, code)) {
    const { totps } = deps.db.t;
    await deps.db.orm.update(totps).set(NOTHING_WRONG).where(eq(totps.userId, userId));
    return "backup";
  }
  return undefined;
}

export async function totpState(deps: Pick<Deps, "db" | "clock">, userId: number): Promise<TotpState> {
  const { totps, backupCodes } = deps.db.t;
  const [row] = await deps.db.orm.select().from(totps).where(eq(totps.userId, userId));
  if (!row) return { enabled: false, locked_until: 0, created_at: 0, backup_codes_left: 0 };
  const left = await deps.db.orm
    .select({ id: backupCodes.id })
    .from(backupCodes)
    .where(and(eq(backupCodes.userId, userId), isNull(backupCodes.usedAt), gt(backupCodes.id, 0)));
  return {
    enabled: true,
    locked_until: row.lockedUntil > nowSeconds(deps) ? row.lockedUntil : 0,
    created_at: row.createdAt,
    backup_codes_left: left.length,
  };
}
