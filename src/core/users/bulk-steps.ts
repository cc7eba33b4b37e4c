// What a run does to some of its accounts: all of them in one transaction, each with its row of the trail.
// Refuses to do anything twice: an account is marked in the transaction of what is done to it. Whoever is refused is refused
// before anything is written, so the others stand; where writing itself fails, the round is tried again one by one.
import { and, asc, eq, inArray, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { LANGUAGES, Role, UserStatus } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Credit } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import { bookSteps, checkResult, openCeilingSteps, tellRootOfRun } from "./balance-changes.ts";
import type { Ceiling } from "./balance-changes.ts";
import type { BulkDeps, BulkRun } from "./bulk-lease.ts";
import { BulkState, refusalOf } from "./bulk.ts";
import type { BulkAct } from "./bulk.ts";
import { forgetDevices } from "./devices.ts";
import { letterLanguage, letterOf } from "./letter-form.ts";
import { postSteps } from "./outbox.ts";
import { noteSteps } from "./user-notes.ts";
import type { UserRow } from "./users.ts";

/** A changed mark is told by `noteSteps`. */
const ACTIONS = {
  group: "user.group",
  disable: "user.disable",
  enable: "user.enable",
  letter: "user.letter",
} as const;

interface Round {
  deps: BulkDeps;
  run: BulkRun;
  credit: (entry: Credit) => Steps<void>;
  /** Of credits. */
  ceiling: Ceiling | undefined;
}

/** What would be done to an account. Throws a Failure where it may not; writes nothing. */
function judged({ deps, run, ceiling }: Round, row: UserRow | undefined): UserRow {
  if (!row || row.deletedAt !== null) throw refuse("user_missing");
  if (run.by.role < Role.root && row.role >= run.by.role) throw refuse("user_rank_update");
  const { act } = run;
  if (act.action === "credit") {
    checkResult({ before: row.quota, after: row.quota + act.amount });
    ceiling?.take(Math.abs(act.amount));
  }
  if (act.action === "letter") wordsFor(deps, row, act.letters);
  if (act.action === "flag" && !act.flagged && row.flagged && run.by.role < Role.root)
    throw refuse("user_flag_root");
  if (act.action === "disable" && row.role >= Role.root) throw refuse("user_root_undisableable");
  // A locked account is nobody's to enable.
  if (act.action === "enable" && row.status !== UserStatus.disabled && row.status !== UserStatus.enabled)
    throw refuse("user_rank_update");
  return row;
}

type Letters = Extract<BulkAct, { action: "letter" }>["letters"];

/** The letter in the account's language, or in the other one. Throws `bulk_no_mail`, `bulk_letter_empty`. */
function wordsFor(deps: BulkDeps, row: UserRow, letters: Letters) {
  if (row.email === "") throw refuse("bulk_no_mail");
  const language = letterLanguage(deps, row.setting);
  const words = letters[language] ?? LANGUAGES.map((each) => letters[each]).find((each) => each);
  if (!words) throw refuse("bulk_letter_empty");
  return { language, words };
}

function* letterSteps(tx: Orm, deps: BulkDeps, row: UserRow, letters: Letters): Steps<void> {
  const { language, words } = wordsFor(deps, row, letters);
  const lines = words.text.split(/\n{2,}|\r\n\r\n/).filter((line) => line.trim() !== "");
  const subject = words.subject.replaceAll(/\p{C}/gu, " ");
  const letter = letterOf(deps, row.email, language, { subject, lines });
  yield* postSteps(tx, deps, { userId: row.id, kind: "operator", letter });
}

/** Writes what was judged. */
function* writeSteps(tx: Orm, { deps, run, credit }: Round, row: UserRow): Steps<void> {
  const { users } = deps.db.t;
  const { act, by, reason } = run;
  const set = (values: Record<string, unknown>) =>
    q(tx.update(users).set(values).where(eq(users.id, row.id)).returning({ id: users.id }));
  if (act.action === "import") return;
  if (act.action === "credit") {
    const booking = { deps, credit, by, ref: `bulk:${run.id}:${row.id}` };
    const change = { before: row.quota, after: row.quota + act.amount, reason };
    return yield* bookSteps(tx, booking, row, change);
  }
  if (act.action === "letter") yield* letterSteps(tx, deps, row, act.letters);
  else if (act.action === "group") yield* set({ group: act.group });
  else if (act.action === "flag") yield* set({ flagged: act.flagged });
  else {
    const status = act.action === "disable" ? UserStatus.disabled : UserStatus.enabled;
    if (row.status === status) return;
    yield* set({ status, sessionVersion: sql`${users.sessionVersion} + 1` });
  }
  // What administrators note stays between them, the reason too: the owner reads this row, and the run has both.
  if (act.action === "flag") return yield* noteSteps(tx, deps, row, by);
  const params = {
    ...(reason === "" ? {} : { reason }),
    ...(act.action === "group" ? { before: row.group, group: act.group } : {}),
  };
  yield* auditSteps(tx, deps, { user: row, action: ACTIONS[act.action], params, by });
}

/** Answers whom it was done to. Accounts that another node has done are left out. */
function* roundSteps(
  tx: Orm,
  credit: (entry: Credit) => Steps<void>,
  { deps, run }: Pick<Round, "deps" | "run">,
  ids: readonly number[],
): Steps<number[]> {
  const { users, userBulkItems } = deps.db.t;
  const waiting = (of: readonly number[]) =>
    and(
      eq(userBulkItems.bulkId, run.id),
      inArray(userBulkItems.userId, [...of]),
      eq(userBulkItems.state, BulkState.waiting),
    );
  const claimed = yield* q(
    tx
      .update(userBulkItems)
      .set({ state: BulkState.done })
      .where(waiting(ids))
      .returning({ userId: userBulkItems.userId }),
  );
  if (claimed.length === 0) return [];
  const mine = claimed.map(({ userId }) => userId).toSorted((a, b) => a - b);
  const found = tx.select().from(users).where(inArray(users.id, mine)).orderBy(asc(users.id));
  // Locked, in one order: a balance is not changed by others between its reading and its entry.
  const rows = yield* q(deps.db.kind === "postgres" ? found.for("no key update") : found);
  const ceiling = run.act.action === "credit" ? yield* openCeilingSteps(tx, deps, run.by) : undefined;
  const round = { deps, run, credit, ceiling };
  const done: number[] = [];
  for (const id of mine) {
    let row: UserRow;
    try {
      row = judged(
        round,
        rows.find((each) => each.id === id),
      );
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      yield* q(
        tx
          .update(userBulkItems)
          .set({ state: BulkState.refused, ...refusalOf(error) })
          .where(and(eq(userBulkItems.bulkId, run.id), eq(userBulkItems.userId, id)))
          .returning({ userId: userBulkItems.userId }),
      );
      continue;
    }
    yield* writeSteps(tx, round, row);
    done.push(id);
  }
  if (ceiling) yield* ceiling.keepSteps();
  return done;
}

/** What follows the commit, on this node and the others. */
async function after(deps: BulkDeps, run: BulkRun, done: readonly number[]): Promise<void> {
  const { act } = run;
  if (act.action === "letter" || done.length === 0) return;
  // Whoever books has told of the new balances.
  if (act.action === "credit") return tellRootOfRun(deps, run.by, run.id, act.amount, done.length);
  const told = await Promise.allSettled([deps.accounts.usersChanged(done)]);
  // Whoever could not be told or read again is marked all the same, and ends with the others.
  const ended = await Promise.allSettled(done.map((userId) => endSessions(deps, act.action, userId)));
  const failed = [...told, ...ended].find((each) => each.status === "rejected");
  if (failed) throw failed.reason;
}

async function endSessions(deps: BulkDeps, action: BulkAct["action"], userId: number): Promise<void> {
  if (action === "disable") {
    await deps.sessions.endAll(userId, "banned");
    await forgetDevices(deps, userId);
  } else if (action === "enable") await deps.sessions.endAll(userId, "enabled");
}

/** Does what the run asks for to these accounts. Throws where the database is away. */
export async function doAccounts(deps: BulkDeps, run: BulkRun, ids: readonly number[]): Promise<void> {
  const { userBulkItems } = deps.db.t;
  let done: readonly number[];
  try {
    done = await deps.ledger.atomic((tx, credit) => roundSteps(tx, credit, { deps, run }, ids));
  } catch (error) {
    // A database that is away is no refusal: the run goes on later.
    if (!(error instanceof Failure) && !(await deps.db.ping())) throw error;
    if (ids.length > 1) {
      for (const id of ids) await doAccounts(deps, run, [id]);
      return;
    }
    if (!(error instanceof Failure))
      deps.logger.error("a bulk action failed", { bulk: run.id, user: ids[0] ?? 0, error: String(error) });
    await deps.db.orm
      .update(userBulkItems)
      .set({ state: BulkState.refused, ...refusalOf(error) })
      .where(
        and(
          eq(userBulkItems.bulkId, run.id),
          inArray(userBulkItems.userId, [...ids]),
          eq(userBulkItems.state, BulkState.waiting),
        ),
      );
    return;
  }
  await after(deps, run, done);
}
