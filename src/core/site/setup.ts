// First-run setup: creates the root user once and chooses the usage mode.
// Refuses a second run, also when two arrive at the same moment.
import { eq, gte, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import { isUniqueViolation } from "../../db/sql-state.ts";
import { Role } from "../../shared/enums.ts";
import type { FailureCode } from "../../shared/failure-codes.ts";
import type { Language } from "../../shared/enums.ts";
import { isTimeZone } from "../../shared/local-time.ts";
import { Failure } from "../../shared/failures.ts";
import { checkNewPassword } from "../users/account-rules.ts";
import { hashPassword } from "../users/credentials.ts";
import type { Deps } from "../deps.ts";
import { accountKeys } from "../users/new-user.ts";
import { isImporting } from "./import-sign.ts";

const ROOT_INITIAL_QUOTA = 100_000_000;
/** A dollar: below it users who chose nothing are warned. */
const QUOTA_REMIND_THRESHOLD = 500_000;

export interface SetupState {
  done: boolean;
  rootExists: boolean;
}

export interface SetupInput {
  username?: string | undefined;
  password?: string | undefined;
  confirmPassword?: string | undefined;
  SelfUseModeEnabled?: boolean | undefined;
  DemoSiteEnabled?: boolean | undefined;
  /** Of the browser that sets the site up, whose days the site counts from then on; "" or absent: UTC. */
  time_zone?: string | undefined;
}

/** An import of the setup screen, as anybody may follow it: there is no account yet. */
export interface SetupImportState {
  state: "none" | "running" | "failed" | "done";
  /** From where, without a password. */
  source?: string;
  /** What is being read, a table of the source. */
  step?: string;
  /** Rows so far, and of all tables. */
  done?: number;
  total?: number;
  left_seconds?: number;
  /** What a person has to hear of it, line by line. */
  report?: string[];
  /** Why it stopped; "" where the log of the process says so. */
  error?: string;
}

export interface SetupImport {
  /** Throws Failures `setup_done`, `setup_importing`, and `setup_import_refused` with the reason. */
  begin(address: string): Promise<void>;
  /** Once it is done whoever asks is the last one: the process begins anew. */
  state(language: Language): Promise<SetupImportState>;
}

/** Databases that an import fills. */
const filling = new WeakSet<object>();

/** Whether an import is under way here. */
export const isFilling = (db: Deps["db"]): boolean => filling.has(db);

/** Row of `options` in which an import (src/import) writes how far it is; it stays when it is done. */
export const IMPORT_KEY = "internal:import";

/** Half a site is there: another node brings it in, or an import ended before its end. */
async function isHalfImported({ db }: Pick<Deps, "db">): Promise<boolean> {
  const { options } = db.t;
  const [row] = await db.orm
    .select({ value: options.value })
    .from(options)
    .where(eq(options.key, IMPORT_KEY));
  return row !== undefined && (JSON.parse(row.value) as { stage?: unknown }).stage !== "done";
}

/** Nobody sets the site up by hand until this is called. */
export function holdSetup(db: Deps["db"]): () => void {
  filling.add(db);
  return () => void filling.delete(db);
}

/** Once setup is done it stays done, so later calls cost no query. */
const finished = new WeakSet<object>();

export async function setupState(deps: Pick<Deps, "db">): Promise<SetupState> {
  if (finished.has(deps.db)) return { done: true, rootExists: true };
  const { setups, users } = deps.db.t;
  const roots = await deps.db.orm
    .select({ id: users.id })
    .from(users)
    .where(gte(users.role, Role.root))
    .limit(1);
  const rows = await deps.db.orm.select({ id: setups.id }).from(setups).limit(1);
  if (rows.length > 0) finished.add(deps.db);
  return { done: rows.length > 0, rootExists: roots.length > 0 };
}

/** "3.50.4", "18.4": what the wizard shows of the database it found. */
export async function databaseVersion({ db }: Pick<Deps, "db">): Promise<string> {
  const version =
    db.kind === "sqlite" ? sql<string>`sqlite_version()` : sql<string>`current_setting('server_version')`;
  const [row] = await db.orm.select({ version }).from(sql`(select 1) as one`);
  return /^\S*/.exec(row?.version ?? "")?.[0] ?? "";
}

/** What the wizard refuses: with 400, as clients of the family expect of it. */
export function setupFailure(code: FailureCode, params?: Record<string, string>): Failure {
  return new Failure("client", code, { status: 400, ...(params ? { params } : {}) });
}

/** `language`: in which it is set up; the site speaks it from then on. */
export async function runSetup(deps: Deps, input: SetupInput, language: Language): Promise<void> {
  const state = await setupState(deps);
  if (state.done) throw setupFailure("setup_done");
  if (isFilling(deps.db) || (await isImporting(deps)) || (await isHalfImported(deps)))
    throw setupFailure("setup_importing");
  const zone = input.time_zone ?? "";
  if (zone !== "" && !isTimeZone(zone)) throw setupFailure("option_not_time_zone");
  let account: { username: string; passwordHash: string } | undefined;
  if (!state.rootExists) {
    const username = (input.username ?? "").trim();
    const password = input.password ?? "";
    if (username === "") throw setupFailure("setup_username_empty");
    if (Array.from(username).length > 12) throw setupFailure("setup_username_long");
    if (/\p{Cc}/u.test(username)) throw setupFailure("username_invalid");
    if (password !== (input.confirmPassword ?? "")) throw setupFailure("setup_passwords_differ");
    if (Array.from(password).length < 8) throw setupFailure("setup_password_short");
    checkNewPassword(password, { username, mail: "" });
    account = { username, passwordHash: await hashPassword(password) };
    // That took its time.
    if (isFilling(deps.db)) throw setupFailure("setup_importing");
  }
  const now = Math.floor(deps.clock.nowMs() / 1000);
  const { setups, users } = deps.db.t;
  try {
    await deps.ledger.atomic(function* (tx, credit) {
      // The fixed key makes the second of two simultaneous calls fail here, before it creates a user.
      yield* q(
        tx
          .insert(setups)
          .values({ id: 1, version: deps.version, initializedAt: now })
          .returning({ id: setups.id }),
      );
      if (!account) return;
      const [user] = yield* q(
        tx
          .insert(users)
          .values({
            ...account,
            ...accountKeys(account.username),
            displayName: "Root User",
            role: Role.root,
            createdAt: now,
          })
          .returning({ id: users.id }),
      );
      if (user) yield* credit({ userId: user.id, amount: ROOT_INITIAL_QUOTA, kind: "setup" });
    });
  } catch (error) {
    if (isUniqueViolation(error)) throw setupFailure("setup_done");
    throw new Failure("internal", "setup_failed", { status: 500, cause: error });
  }
  finished.add(deps.db);
  // Sites from before keep the older default, which the option still has.
  await deps.options.set("QuotaRemindThreshold", String(QUOTA_REMIND_THRESHOLD));
  await deps.options.set("site.language", language);
  if (zone !== "") await deps.options.set("site.time_zone", zone);
  await deps.options.set("SelfUseModeEnabled", String(input.SelfUseModeEnabled === true));
  await deps.options.set("DemoSiteEnabled", String(input.DemoSiteEnabled === true));
}
