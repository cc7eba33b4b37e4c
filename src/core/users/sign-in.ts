// Signing in with a password: whose account it is, how many wrong tries it bears, and from which browser they come.
// Refuses to let strangers lock an account for the browsers its owner uses, and to tell which part of a try was wrong.
import { and, eq, or } from "drizzle-orm";
import { UserStatus } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { WrongLimit } from "../kit/attempt-limit.ts";
import { hashPassword, verifyPassword } from "./credentials.ts";
import type { Deps } from "../deps.ts";
import { noteFailedLogin } from "../logs/login-trail.ts";
import { deviceName } from "./device-name.ts";
import { isKnownDevice } from "./devices.ts";
import { mailKey, nameKey } from "./folding.ts";
import { forgivenCount } from "./forgiven.ts";
import { addressGroup, tooMany } from "../kit/site-limits.ts";
import type { SiteLimits } from "../kit/site-limits.ts";
import type { UserRow } from "./users.ts";

const MINUTE_MS = 60_000;
const PER_ADDRESS = { count: 30, windowMs: 10 * MINUTE_MS };
/** For each pair of account and address, and of account and known device. */
const PER_PAIR = { limit: 10, windowMs: 10 * MINUTE_MS };
/** Of one account, from all devices that it does not know. */
const PER_ACCOUNT = { limit: 200, windowMs: 60 * MINUTE_MS, restMs: 15 * MINUTE_MS };

/** Locked accounts whose row is remembered. */
const MAX_TOLD = 10_000;

export interface SignInAttempt {
  login: string;
  password: string;
  address: string;
  /** Random id of the browser's signed cookie; empty: it has none. */
  deviceId: string;
  userAgent: string;
}

/** The exact name, then the name as people read it, then an address: who has the name wins over who has the address. */
async function rowFor(deps: Deps, name: string): Promise<UserRow | undefined> {
  const { users } = deps.db.t;
  const key = nameKey(name);
  const mail = mailKey(name);
  const rows = await deps.db.orm
    .select()
    .from(users)
    .where(
      or(
        eq(users.username, name),
        key === "" ? undefined : eq(users.usernameKey, key),
        mail === "" ? undefined : eq(users.emailKey, mail),
      ),
    )
    .limit(3);
  return (
    rows.find((each) => each.username === name) ?? rows.find((each) => each.usernameKey === key) ?? rows[0]
  );
}

async function verified(deps: Deps, row: UserRow | undefined, password: string): Promise<UserRow> {
  const { matches, needsRehash } = await verifyPassword(password, row?.passwordHash ?? "");
  if (!row || !matches || row.deletedAt !== null || row.status !== UserStatus.enabled) {
    throw refuse("login_failed");
  }
  if (needsRehash) {
    const { users } = deps.db.t;
    const passwordHash = await hashPassword(password);
    // Unless it was changed meanwhile.
    const isSame = and(eq(users.id, row.id), eq(users.passwordHash, row.passwordHash));
    await deps.db.orm.update(users).set({ passwordHash }).where(isSame);
  }
  return row;
}

/** Answers the user's row; every mismatch is the same failure, and too many of them are `too_many_attempts`. */
export function createSignIn(deps: Deps, limits: SiteLimits): (attempt: SignInAttempt) => Promise<UserRow> {
  const monotonicMs = () => deps.clock.monotonicMs();
  const perAddress = limits.wrongPerAddress("sign-in", PER_ADDRESS);
  const perPair = limits.wrong("sign-in-pair", PER_PAIR);
  const perDevice = limits.wrong("sign-in-device", PER_PAIR);
  const perAccount = limits.wrong("sign-in-account", PER_ACCOUNT);

  /** When an account's lock was last told, by its id. */
  const told = new Map<number, number>();

  /** After the answer: how long it takes must not tell whether there is such an account. */
  function note(row: UserRow | undefined, error: unknown, { address, userAgent }: SignInAttempt): void {
    if (!row || row.deletedAt !== null || !(error instanceof Failure)) return;
    if (error.code !== "login_failed" && error.code !== "too_many_attempts") return;
    const isLocked = error.code === "too_many_attempts";
    if (isLocked) {
      const last = told.get(row.id);
      if (last !== undefined && monotonicMs() - last < PER_PAIR.windowMs) return;
      told.delete(row.id);
      told.set(row.id, monotonicMs());
      const [oldest] = told.keys();
      if (told.size > MAX_TOLD && oldest !== undefined) told.delete(oldest);
    }
    const { id, username, role } = row;
    const by = { id, username, role, address, userAgent, authMethod: "none" as const };
    setImmediate(() => {
      deviceName(userAgent)
        .then((device) => noteFailedLogin(deps, isLocked ? "login.locked" : "login.failed", by, device))
        .catch((reason: unknown) => {
          deps.logger.warn("a failed sign-in was not logged", { user: id, error: String(reason) });
        });
    });
  }

  return async (attempt) => {
    const { login, password, address, deviceId } = attempt;
    if (!deps.options.get("PasswordLoginEnabled")) throw refuse("login_password_disabled");
    const name = login.trim();
    if (name === "" || password === "") throw refuse("login_empty");
    const row = await rowFor(deps, name);
    // Name and address of one account are one; what nobody has is one in all the forms that a
    // known one is looked up by, and is limited alike, so that it tells nothing.
    // Looked up in any case: the time it takes tells nothing either.
    const forgiven = await forgivenCount(deps, row?.id ?? 0);
    const account = row ? `#${row.id}.${forgiven}` : mailKey(name) || nameKey(name);
    const isKnown = await isKnownDevice(deps, row?.id ?? 0, deviceId);
    const guarding: [WrongLimit, string][] = isKnown
      ? [[perDevice, `${account} ${deviceId}`]]
      : [
          [perAddress, address],
          [perPair, `${account} ${addressGroup(address)}`],
          [perAccount, account],
        ];
    const entered: [WrongLimit, string][] = [];
    let isWrong = false;
    try {
      for (const [limit, key] of guarding) {
        const seconds = await limit.enter(key);
        if (seconds !== undefined) throw tooMany(seconds);
        entered.push([limit, key]);
      }
      return await verified(deps, row, password);
    } catch (error) {
      isWrong = error instanceof Failure && error.code === "login_failed";
      note(row, error, attempt);
      throw error;
    } finally {
      for (const [limit, key] of entered) limit.leave(key, isWrong);
    }
  };
}
