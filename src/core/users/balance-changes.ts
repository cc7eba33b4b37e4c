// An administrator's change of a balance: an addition or subtraction with its reason, an entry of the books, under the daily
// ceiling that root sets. Refuses what lies above the ceiling, and a difference without a reason; root has no ceiling.
import { eq, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { Role } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import { startOfDay } from "../../shared/local-time.ts";
import { isQuota, logQuotaText, MAX_QUOTA, shortQuotaText } from "../../shared/money.ts";
import type { Credit, Deps } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { readInEnglish } from "../logs/readings.ts";
import { quotaChanged } from "../logs/sentences.ts";
import { quotaDisplay } from "../options/store.ts";

export const MAX_REASON = 200;

export interface BalanceChange {
  /** The balance shall be this: taken as the difference to what it is in the transaction. */
  quota?: number | undefined;
  /** † The balance shall change by this, whatever the user spends meanwhile. Not together with `quota`. */
  quota_change?: number | undefined;
  /** † Why; a difference needs one. */
  quota_reason?: string | undefined;
}

/** What a change did to the balance. */
export interface ChangedBalance {
  before: number;
  after: number;
}

/** What is refused whatever the balance is. */
export function checkChange({ quota, quota_change: change, quota_reason: reason }: BalanceChange): void {
  if (quota !== undefined && change !== undefined) throw refuse("params_wrong");
  checkedBalance(quota ?? change ?? 0);
  if (change !== undefined && (reason ?? "").trim() === "")
    throw new Failure("client", "quota_reason_missing", { param: "quota_reason" });
}

export function checkedBalance(quota: number): number {
  if (!isQuota(quota) || Math.abs(quota) > MAX_QUOTA / 2) throw refuse("quota_out_of_range");
  return quota;
}

type Crediting = Pick<Deps, "db" | "clock" | "ledger" | "options">;

interface Changing {
  deps: Crediting;
  credit: (entry: Credit) => Steps<void>;
  by: AuditActor;
  /** Of the entry: a second one with the same ref fails the transaction. */
  ref?: string;
}

/** The change with its entry, its log row and its share of the ceiling; undefined where nothing changes. */
export function* balanceSteps(
  tx: Orm,
  crediting: Changing,
  row: { id: number; username: string },
  { quota, quota_change: change, quota_reason: reason = "" }: BalanceChange,
): Steps<ChangedBalance | undefined> {
  if (quota === undefined && change === undefined) return undefined;
  const { deps, by } = crediting;
  const { users } = deps.db.t;
  // Locked: two administrators' absolute balances are two differences, one after another.
  const current = tx.select({ quota: users.quota }).from(users).where(eq(users.id, row.id));
  const [found] = yield* q(deps.db.kind === "postgres" ? current.for("no key update") : current);
  const before = found?.quota ?? 0;
  const after = quota ?? before + (change ?? 0);
  if (before === after) return undefined;
  checkResult({ before, after });
  const ceiling = yield* openCeilingSteps(tx, deps, by);
  ceiling.take(Math.abs(after - before));
  yield* ceiling.keepSteps();
  yield* bookSteps(tx, crediting, row, { before, after, reason });
  return { before, after };
}

/** Whether a balance may be set to that. Throws `quota_out_of_range`. */
export function checkResult({ before, after }: ChangedBalance): void {
  // Only calls bring a balance below zero; whoever is there may stay there while other fields are edited.
  if (after < 0 && after < before) throw refuse("quota_out_of_range");
  checkedBalance(after);
}

/** The entry and its log row, of a change that nothing refuses. */
export function* bookSteps(
  tx: Orm,
  { deps, credit, by, ref = "" }: Changing,
  row: { id: number; username: string },
  { before, after, reason: sent }: ChangedBalance & { reason: string },
): Steps<void> {
  yield* credit({ userId: row.id, amount: after - before, kind: "admin", ref });
  const display = quotaDisplay(deps.options);
  const reason = sent.trim().slice(0, MAX_REASON);
  yield* auditSteps(tx, deps, {
    user: row,
    action: "user.quota",
    params: { change: after - before, reason },
    by,
    content: quotaChanged(logQuotaText(before, display), logQuotaText(after, display), reason),
    more: { before, after },
  });
}

// --- the ceiling ---------------------------------------------------------------------------------------------------

const dayMark = (id: number): string => `admin_balance:${id}:day`;
const sumMark = (id: number): string => `admin_balance:${id}:sum`;

/** Unix seconds at which the site's day began. */
function today({ clock, options }: Pick<Deps, "clock" | "options">): number {
  return Math.floor(startOfDay(clock.nowMs(), options.get("site.time_zone")) / 1000);
}

/** What an administrator has left of the day, locked until the transaction ends. */
export interface Ceiling {
  /** Counts a change, whichever way it goes: taking from one account pays for no addition to another. Throws `quota_ceiling`. */
  take(amount: number): void;
  /** Writes down what was taken; nothing where nothing was. */
  keepSteps(): Steps<void>;
}

/** The mark of the day is locked first, so that changes over several nodes count one after another. */
export function* openCeilingSteps(
  tx: Orm,
  deps: Pick<Deps, "db" | "clock" | "options">,
  by: AuditActor,
): Steps<Ceiling> {
  const { marks } = deps.db.t;
  const day = today(deps);
  const [held] = yield* q(
    tx
      .insert(marks)
      .values({ key: dayMark(by.id), value: day })
      .onConflictDoUpdate({ target: marks.key, set: { value: sql`${marks.value}` } })
      .returning({ value: marks.value }),
  );
  const sums = yield* q(
    tx
      .select()
      .from(marks)
      .where(eq(marks.key, sumMark(by.id))),
  );
  const before = held?.value === day ? (sums[0]?.value ?? 0) : 0;
  const ceiling = by.role < Role.root ? deps.options.get("AdminBalanceDailyCeiling") : null;
  let used = before;
  return {
    take(amount) {
      if (ceiling !== null && used + amount > ceiling) {
        const left = logQuotaText(Math.max(0, ceiling - used), quotaDisplay(deps.options));
        throw refuse("quota_ceiling", {
          left: left.replace(" 额度", "").replace(" 点额度", "").replace("＄", "$"),
        });
      }
      used += amount;
    },
    *keepSteps() {
      if (used === before) return;
      yield* q(
        tx
          .update(marks)
          .set({ value: day })
          .where(eq(marks.key, dayMark(by.id)))
          .returning({ key: marks.key }),
      );
      const value = Math.min(MAX_QUOTA, used);
      yield* q(
        tx
          .insert(marks)
          .values({ key: sumMark(by.id), value })
          .onConflictDoUpdate({ target: marks.key, set: { value } })
          .returning({ key: marks.key }),
      );
    },
  };
}

/** † What an administrator may still change today; null: no ceiling. */
export async function ceilingOf(
  deps: Pick<Deps, "db" | "clock" | "options">,
  { id, role }: Pick<AuditActor, "id" | "role">,
): Promise<{ ceiling: number | null; left: number | null }> {
  const ceiling = role >= Role.root ? null : deps.options.get("AdminBalanceDailyCeiling");
  if (ceiling === null) return { ceiling, left: null };
  const { marks } = deps.db.t;
  const rows = await deps.db.orm
    .select()
    .from(marks)
    .where(sql`${marks.key} in (${dayMark(id)}, ${sumMark(id)})`);
  const values = new Map(rows.map(({ key, value }) => [key, value]));
  const used = values.get(dayMark(id)) === today(deps) ? (values.get(sumMark(id)) ?? 0) : 0;
  return { ceiling, left: Math.max(0, ceiling - used) };
}

/** Root hears of it, unless it was root. */
export function tellRoot(
  { inbox, options }: Pick<Deps, "inbox" | "options">,
  by: AuditActor,
  user: { id: number; username: string },
  { before, after }: ChangedBalance,
): void {
  if (by.role >= Role.root) return;
  const display = quotaDisplay(options);
  const said = quotaChanged(logQuotaText(before, display), logQuotaText(after, display));
  const params = {
    admin: by.username,
    admin_id: by.id,
    user: user.username,
    user_id: user.id,
    what: said,
    what_en: readInEnglish(said) ?? said,
  };
  inbox.raise({ kind: "balance", subject: `${by.id}:${user.id}`, params });
}

/** The same of a run over many accounts: one item, with how many it was. */
export function tellRootOfRun(
  { inbox, options }: Pick<Deps, "inbox" | "options">,
  by: AuditActor,
  run: number,
  amount: number,
  accounts: number,
): void {
  if (by.role >= Role.root) return;
  const sum = shortQuotaText(Math.abs(amount), quotaDisplay(options)).replace("＄", "$");
  const params = { admin: by.username, admin_id: by.id, what: `${amount < 0 ? "-" : "+"}${sum}` };
  inbox.raise({ kind: "balance_run", subject: String(run), params }, accounts);
}

/** The same of codes: what was put into them, together. `first`: the row of one of them, so that each act is an item of its own. */
export function tellRootOfCodes(
  { inbox, options }: Pick<Deps, "inbox" | "options">,
  by: AuditActor,
  { first, name }: { first: number; name: string },
  worth: number,
): void {
  if (by.role >= Role.root) return;
  const what = shortQuotaText(worth, quotaDisplay(options)).replace("＄", "$");
  inbox.raise({
    kind: "codes",
    subject: `${by.id}:${first}:${name}`,
    params: { admin: by.username, admin_id: by.id, name, what },
  });
}
