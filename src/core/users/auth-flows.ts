// What a guest has begun and must end: codes and reset links as rows that are hashed, counted and used once.
// Refuses to act on what was used, is over, or was guessed at too often; who asks for more letters than allowed has to wait.
import { randomInt } from "node:crypto";
import { and, desc, eq, gt, isNull, lt, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { tooMany } from "../kit/site-limits.ts";

/** Of letters. */
export type LetterKind = "email_code" | "reset" | "notice_test";
export type FlowKind =
  LetterKind | "oauth" | "telegram_seen" | "login_2fa" | "totp_setup" | "passkey" | "rescue";
type FlowDeps = Pick<Deps, "db" | "clock" | "seal">;

/** Codes and links are good for so long. */
export const FLOW_SECONDS = 600;
const MAX_WRONG = 5;
const DAY_SECONDS = 86_400;
const CODE_LENGTH = 6;

interface LetterRule {
  count: number;
  seconds: number;
}

/** Of one address, over all nodes: the rows count. */
const LETTER_RULES: Readonly<Record<LetterKind, readonly LetterRule[]>> = {
  email_code: [
    { count: 1, seconds: 30 },
    { count: 5, seconds: 3600 },
    { count: 10, seconds: DAY_SECONDS },
  ],
  reset: [
    { count: 1, seconds: 60 },
    { count: 3, seconds: 3600 },
    { count: 6, seconds: DAY_SECONDS },
  ],
  notice_test: [
    { count: 5, seconds: 3600 },
    { count: 10, seconds: DAY_SECONDS },
  ],
};

const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

/** Seconds to wait under the strictest rule; undefined: none. `sent`: when letters went, newest first. */
function waitOf(sent: readonly number[], rules: readonly LetterRule[], now: number): number | undefined {
  const waits = rules.flatMap(({ count, seconds }) => {
    const oldest = sent[count - 1];
    return oldest !== undefined && oldest + seconds > now ? [oldest + seconds - now] : [];
  });
  return waits.length === 0 ? undefined : Math.max(...waits);
}

/** Requests for one subject come one after another, whichever node they reach. */
function* subjectInTurn(tx: Orm, db: Database, kind: FlowKind, subjectKey: string): Steps<void> {
  if (db.kind !== "postgres") return;
  const lock = sql<string>`pg_advisory_xact_lock(hashtextextended(${`flow ${kind} ${subjectKey}`}, 0))::text`;
  yield* q(tx.select({ lock }).from(sql`(select 1) as one`));
}

export interface NewFlow {
  kind: LetterKind;
  subjectKey: string;
  userId?: number;
  /** Kept sealed. */
  payload?: string;
  /** Hash of the secret; called with the hashes that are taken. */
  hash: (taken: ReadonlySet<string>) => string;
}

/** Writes the row of a letter and answers its id; throws `too_many_attempts` where the subject had too many. */
export async function beginFlow(deps: FlowDeps, flow: NewFlow): Promise<number> {
  const { authFlows } = deps.db.t;
  const { kind, subjectKey, userId = 0, payload = "" } = flow;
  const now = nowSeconds(deps);
  return deps.db.atomic(function* (tx) {
    yield* subjectInTurn(tx, deps.db, kind, subjectKey);
    const rows = yield* q(
      tx
        .select({ createdAt: authFlows.createdAt, secretHash: authFlows.secretHash })
        .from(authFlows)
        .where(
          and(
            eq(authFlows.kind, kind),
            eq(authFlows.subjectKey, subjectKey),
            gt(authFlows.createdAt, now - DAY_SECONDS),
          ),
        )
        .orderBy(desc(authFlows.createdAt), desc(authFlows.id)),
    );
    const seconds = waitOf(
      rows.map((row) => row.createdAt),
      LETTER_RULES[kind],
      now,
    );
    if (seconds !== undefined) throw tooMany(seconds);
    const [made] = yield* q(
      tx
        .insert(authFlows)
        .values({
          kind,
          subjectKey,
          userId,
          payload: deps.seal.seal("flow", payload),
          secretHash: flow.hash(new Set(rows.map((row) => row.secretHash))),
          createdAt: now,
          expiresAt: now + FLOW_SECONDS,
        })
        .returning({ id: authFlows.id }),
    );
    return made?.id ?? 0;
  });
}

/** The letter did not go: neither row nor limit remain of it. */
export async function forgetFlow({ db }: Pick<Deps, "db">, id: number): Promise<void> {
  await db.orm.delete(db.t.authFlows).where(eq(db.t.authFlows.id, id));
}

/** A million plain hashes are no secret: codes are hashed under a key of the installation. */
function codeHash({ seal }: Pick<Deps, "seal">, kind: FlowKind, subjectKey: string, code: string): string {
  return seal.mac(`flow|${kind}|${subjectKey}|${code}`).toString("hex");
}

/** A new code that no row of the subject has. */
export function newCode(
  deps: Pick<Deps, "seal">,
  kind: LetterKind,
  subjectKey: string,
  taken: ReadonlySet<string>,
): { code: string; hash: string } {
  for (;;) {
    const code = String(randomInt(10 ** CODE_LENGTH)).padStart(CODE_LENGTH, "0");
    const hash = codeHash(deps, kind, subjectKey, code);
    if (!taken.has(hash)) return { code, hash };
  }
}

/** Unused, in time, not guessed at too often; the newest of its subject replaces all before it. */
function isOpen(db: Database, kind: FlowKind, subjectKey: string, now: number) {
  const { authFlows } = db.t;
  const newest = db.orm
    .select({ id: authFlows.id })
    .from(authFlows)
    .where(and(eq(authFlows.kind, kind), eq(authFlows.subjectKey, subjectKey)))
    .orderBy(desc(authFlows.createdAt), desc(authFlows.id))
    .limit(1);
  return and(
    eq(authFlows.id, sql`(${newest})`),
    isNull(authFlows.usedAt),
    gt(authFlows.expiresAt, now),
    lt(authFlows.attempts, MAX_WRONG),
  );
}

/** A code that is right, and not used yet. */
export interface ProvenCode {
  kind: FlowKind;
  subjectKey: string;
  hash: string;
  /** What was kept with it. */
  payload: string;
}

/** Compares the code; a wrong one counts in the same statement, however many come at once. Undefined: it is not right. */
export async function proveCode(
  deps: FlowDeps,
  kind: FlowKind,
  subjectKey: string,
  code: string,
): Promise<ProvenCode | undefined> {
  const { authFlows } = deps.db.t;
  const hash = codeHash(deps, kind, subjectKey, code.trim());
  const [row] = await deps.db.orm
    .update(authFlows)
    .set({
      attempts: sql`${authFlows.attempts} + case when ${authFlows.secretHash} = ${hash} then 0 else 1 end`,
    })
    .where(isOpen(deps.db, kind, subjectKey, nowSeconds(deps)))
    .returning({ secretHash: authFlows.secretHash, payload: authFlows.payload });
  if (row?.secretHash !== hash) return undefined;
  return { kind, subjectKey, hash, payload: deps.seal.open("flow", row.payload) };
}

/** Uses the code up, in the transaction of what it is for. False: somebody was quicker, or it is over. */
export function* consumeSteps(
  tx: Orm,
  { db, clock }: Pick<Deps, "db" | "clock">,
  { kind, subjectKey, hash }: Pick<ProvenCode, "kind" | "subjectKey" | "hash">,
): Steps<{ userId: number } | undefined> {
  const { authFlows } = db.t;
  const now = nowSeconds({ clock });
  const [row] = yield* q(
    tx
      .update(authFlows)
      .set({ usedAt: now })
      .where(and(isOpen(db, kind, subjectKey, now), eq(authFlows.secretHash, hash)))
      .returning({ userId: authFlows.userId }),
  );
  return row;
}

/** What an account has begun ends: after its password was reset. */
export function* endFlowsSteps(
  tx: Orm,
  { db, clock }: Pick<Deps, "db" | "clock">,
  userId: number,
): Steps<void> {
  const { authFlows } = db.t;
  yield* q(
    tx
      .update(authFlows)
      .set({ usedAt: nowSeconds({ clock }) })
      .where(and(eq(authFlows.userId, userId), isNull(authFlows.usedAt)))
      .returning({ id: authFlows.id }),
  );
}

/** Rows stay for a day, because limits count them. */
export async function purgeFlows({ db, clock }: Pick<Deps, "db" | "clock">): Promise<void> {
  const { authFlows } = db.t;
  const now = nowSeconds({ clock });
  await db.orm
    .delete(authFlows)
    .where(and(lt(authFlows.expiresAt, now), lt(authFlows.createdAt, now - DAY_SECONDS)));
}
