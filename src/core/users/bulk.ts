// Something done to many accounts at once: who asks, for what, to whom. The accounts are frozen when it is asked for.
// Refuses a number that is not the one the person confirmed, and texts or groups that nothing could be done with.
import { and, asc, desc, eq, gt, inArray, lt, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { countRows, q } from "../../db/database.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { FailureParams } from "../../shared/failures.ts";
import { LANGUAGES, Role } from "../../shared/enums.ts";
import type { Language } from "../../shared/enums.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import type { Deps, UserAccount } from "../deps.ts";
import type { AuditActor } from "../logs/audit.ts";
import { checkedBalance } from "./balance-changes.ts";
import { userWhere } from "./user-list.ts";
import type { UserFilter } from "./user-list.ts";

interface BulkLetter {
  subject: string;
  text: string;
}

/** What is done, with what it needs. */
export type BulkAct =
  | { action: "group"; group: string }
  | { action: "credit"; amount: number }
  | { action: "disable" | "enable" }
  | { action: "flag"; flagged: boolean }
  | { action: "letter"; letters: Partial<Record<Language, BulkLetter>> }
  /** `file`: SHA-256 (hex) of what was brought in (import/start.ts). */
  | { action: "import"; file: string };

type BulkRow = Schema["userBulks"]["$inferSelect"];

export interface BulkRequest {
  act: BulkAct;
  reason: string;
  /** Either these, or everybody of the filter as long as they are so many. */
  whom: { ids: readonly number[] } | { filter: UserFilter; count: number };
}

export const BulkState = { waiting: 0, done: 1, refused: 2 } as const;
/** More in one run would not be looked at by anybody. */
const MOST_ACCOUNTS = 200_000;
/** Of one statement. */
const ROWS_AT_ONCE = 500;
const MOST_LISTED = 20;
/** Refusals that an answer names. */
const MOST_FAILURES = 1_000;

/** What is kept of a refusal: its code, and the values of its sentence as JSON text. */
export function refusalOf(error: unknown): { code: string; params: string } {
  if (!(error instanceof Failure)) return { code: "internal_error", params: "" };
  const hasValues = Object.keys(error.params).length > 0;
  return { code: error.code, params: hasValues ? JSON.stringify(error.params) : "" };
}

const paramsOf = (text: string): { params?: FailureParams } =>
  text === "" ? {} : { params: JSON.parse(text) as FailureParams };

function checked(deps: Pick<Deps, "options">, { act, reason }: BulkRequest): void {
  if (act.action === "group" && !Object.hasOwn(deps.options.get("GroupRatio"), act.group))
    throw refuse("group_unknown", { group: act.group });
  if (act.action === "credit") {
    if (checkedBalance(act.amount) === 0) throw refuse("params_wrong");
    // As for a single account: the books say why.
    if (reason.trim() === "") throw new Failure("client", "quota_reason_missing", { param: "reason" });
  }
  if (act.action === "letter") {
    const letters = LANGUAGES.flatMap((language) => act.letters[language] ?? []);
    const isWhole = ({ subject, text }: BulkLetter) => subject.trim() !== "" && text.trim() !== "";
    if (letters.length === 0 || !letters.every(isWhole)) throw refuse("bulk_letter_empty");
  }
}

function idList({ db }: Pick<Deps, "db">, ids: readonly number[]): SQL {
  const list = JSON.stringify(ids);
  return db.kind === "postgres"
    ? sql`(select value::bigint from json_array_elements_text(${list}::json))`
    : sql`(select value from json_each(${list}))`;
}

/** Writes down what is to be done and answers the run's id; nothing is done yet (bulk-run.ts). */
export async function createBulk(
  deps: Pick<Deps, "db" | "clock" | "options">,
  by: AuditActor,
  request: BulkRequest,
): Promise<number> {
  const { act, reason, whom } = request;
  checked(deps, request);
  const { users, userBulks, userBulkItems } = deps.db.t;
  const ids = "ids" in whom ? [...new Set(whom.ids)] : undefined;
  const expected = "ids" in whom ? (ids?.length ?? 0) : whom.count;
  if (expected === 0 || expected > MOST_ACCOUNTS) throw refuse("params_wrong");
  const where =
    "ids" in whom ? sql`${users.id} in ${idList(deps, ids ?? [])}` : userWhere(deps, by, whom.filter);
  return deps.db.atomic(function* (tx) {
    const [bulk] = yield* q(
      tx
        .insert(userBulks)
        .values({
          action: act.action,
          params: JSON.stringify(act),
          reason,
          actor: JSON.stringify(by),
          actorId: by.id,
          total: expected,
          createdAt: Math.floor(deps.clock.nowMs() / 1000),
        })
        .returning({ id: userBulks.id }),
    );
    if (!bulk) throw refuse("internal_error");
    const found = yield* q(tx.select({ userId: users.id }).from(users).where(where));
    // Who has gone meanwhile, or come, was not confirmed.
    if (found.length !== expected) throw refuse("bulk_changed", { count: found.length });
    for (let at = 0; at < found.length; at += ROWS_AT_ONCE) {
      const rows = found.slice(at, at + ROWS_AT_ONCE).map(({ userId }) => ({ bulkId: bulk.id, userId }));
      yield* q(tx.insert(userBulkItems).values(rows).returning({ userId: userBulkItems.userId }));
    }
    return bulk.id;
  });
}

export interface BulkJson {
  id: number;
  action: string;
  /** What the action was given, as far as it is no letter. */
  group?: string;
  amount?: number;
  flagged?: boolean;
  reason: string;
  /** Who asked for it. */
  username: string;
  total: number;
  done: number;
  failed: number;
  finished: boolean;
  created_at: number;
  /** The first thousand that were refused. */
  failures: {
    user_id: number;
    username: string;
    code: string;
    /** Values of the code's sentence. */
    params?: FailureParams;
    /** Of a file. */
    line?: number;
  }[];
}

/** One of many in a list: without its counts. */
export type BulkHead = Omit<BulkJson, "done" | "failed" | "failures">;

function toldOf(bulk: BulkRow): BulkHead {
  const act = JSON.parse(bulk.params) as BulkAct;
  const { username } = JSON.parse(bulk.actor) as AuditActor;
  return {
    id: bulk.id,
    action: bulk.action,
    ...(act.action === "group" ? { group: act.group } : {}),
    ...(act.action === "credit" ? { amount: act.amount } : {}),
    ...(act.action === "flag" ? { flagged: act.flagged } : {}),
    reason: bulk.reason,
    username,
    total: bulk.total,
    finished: bulk.finishedAt > 0,
    created_at: bulk.createdAt,
  };
}

/** The latest runs, newest first: one's own, and everybody's for root. */
export async function listBulks(deps: Pick<Deps, "db">, actor: UserAccount): Promise<BulkHead[]> {
  const { userBulks } = deps.db.t;
  const rows = await deps.db.orm
    .select()
    .from(userBulks)
    .where(actor.role < Role.root ? eq(userBulks.actorId, actor.id) : undefined)
    .orderBy(desc(userBulks.id))
    .limit(MOST_LISTED);
  return rows.map(toldOf);
}

/** How many of a run's items are in which state, and the first that were refused. */
interface BulkOutcome {
  counts: { state: number; count: number }[];
  failures: () => Promise<BulkJson["failures"]>;
}

async function accountsOutcome({ db }: Pick<Deps, "db">, id: number): Promise<BulkOutcome> {
  const { users, userBulkItems } = db.t;
  const ofRun = eq(userBulkItems.bulkId, id);
  return {
    counts: await db.orm
      .select({ state: userBulkItems.state, count: countRows() })
      .from(userBulkItems)
      .where(and(ofRun, inArray(userBulkItems.state, [BulkState.done, BulkState.refused])))
      .groupBy(userBulkItems.state),
    async failures() {
      const rows = await db.orm
        .select({
          user_id: userBulkItems.userId,
          username: users.username,
          code: userBulkItems.code,
          params: userBulkItems.params,
        })
        .from(userBulkItems)
        .leftJoin(users, eq(users.id, userBulkItems.userId))
        .where(and(ofRun, eq(userBulkItems.state, BulkState.refused)))
        .orderBy(asc(userBulkItems.userId))
        .limit(MOST_FAILURES);
      return rows.map(({ params, ...each }) => ({
        ...each,
        username: each.username ?? "",
        ...paramsOf(params),
      }));
    },
  };
}

async function importOutcome({ db }: Pick<Deps, "db">, id: number): Promise<BulkOutcome> {
  const { userImportRows: lines } = db.t;
  const ofRun = eq(lines.bulkId, id);
  return {
    counts: await db.orm
      .select({ state: lines.state, count: countRows() })
      .from(lines)
      .where(and(ofRun, inArray(lines.state, [BulkState.done, BulkState.refused])))
      .groupBy(lines.state),
    async failures() {
      const rows = await db.orm
        .select({
          user_id: lines.userId,
          username: lines.username,
          code: lines.code,
          params: lines.params,
          line: lines.line,
        })
        .from(lines)
        .where(and(ofRun, eq(lines.state, BulkState.refused)))
        .orderBy(asc(lines.line))
        .limit(MOST_FAILURES);
      return rows.map(({ params, ...each }) => ({ ...each, ...paramsOf(params) }));
    },
  };
}

/** How far a run is. Another administrator's counts as missing; root sees all. */
export async function getBulk(deps: Pick<Deps, "db">, actor: UserAccount, id: number): Promise<BulkJson> {
  const { userBulks } = deps.db.t;
  const [bulk] = await deps.db.orm.select().from(userBulks).where(eq(userBulks.id, id));
  if (!bulk || (bulk.actorId !== actor.id && actor.role < Role.root)) throw refuse("record_missing");
  const { counts, failures } = await (bulk.action === "import" ? importOutcome : accountsOutcome)(deps, id);
  const countOf = (state: number) => counts.find((each) => each.state === state)?.count ?? 0;
  const failed = countOf(BulkState.refused);
  return {
    ...toldOf(bulk),
    done: countOf(BulkState.done),
    failed,
    failures: failed === 0 ? [] : await failures(),
  };
}

const KEPT_SECONDS = 90 * 86_400;

/** Forgets runs that were over so long ago, with what they did to whom: the trail has it. */
export async function purgeBulks({ db, clock }: Pick<Deps, "db" | "clock">): Promise<void> {
  const { userBulks, userBulkItems, userImportRows } = db.t;
  const before = Math.floor(clock.nowMs() / 1000) - KEPT_SECONDS;
  const old = await db.orm
    .select({ id: userBulks.id })
    .from(userBulks)
    .where(and(gt(userBulks.finishedAt, 0), lt(userBulks.finishedAt, before)));
  for (const { id } of old)
    await db.atomic(function* (tx) {
      yield* q(
        tx
          .delete(userBulkItems)
          .where(eq(userBulkItems.bulkId, id))
          .returning({ userId: userBulkItems.userId }),
      );
      yield* q(
        tx.delete(userImportRows).where(eq(userImportRows.bulkId, id)).returning({ id: userImportRows.id }),
      );
      yield* q(tx.delete(userBulks).where(eq(userBulks.id, id)).returning({ id: userBulks.id }));
    });
}
