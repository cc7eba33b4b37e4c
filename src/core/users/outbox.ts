// The outbox: letters that must arrive, kept until the mail server took them, with growing pauses while it does not.
// Refuses to lose one: what cannot be delivered in two days, or has no receiver, is given up and told in the operator's inbox.
// On a quiet site all of them wait, and no time runs.
import { and, asc, eq, exists, isNull, lt, lte, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { sendMail } from "../../net/mail.ts";
import type { Letter } from "../../net/mail.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Deps, Inbox } from "../deps.ts";
import { NOW } from "../../db/moments.ts";
import type { Moment } from "../../db/moments.ts";
import { within } from "../kit/deadline.ts";
import { isQuiet, refuseWhenQuiet } from "../options/quiet.ts";
import { mailServer } from "./mail-server.ts";

export type OutboxDeps = Pick<Deps, "db" | "clock" | "seal" | "options" | "logger"> & {
  inbox: Pick<Inbox, "raise" | "gone">;
};

const MINUTE = 60;
const HOUR = 3600;
/** Before each further try, in seconds; after the last one a letter is given up. */
export const PAUSES = [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR];
/** A node that is sending has the letter to itself so long. */
const CLAIM_SECONDS = 120;
const KEPT_SECONDS = 30 * 24 * HOUR;
/** Of one look. */
const MOST_AT_ONCE = 100;

const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

export interface Posting {
  userId: number;
  /** What it is about, for the log. */
  kind: string;
  letter: Letter;
}

type OutboxRow = OutboxDeps["db"]["t"]["outbox"]["$inferSelect"];

/** Puts a letter in, in the transaction of what it tells about. */
export function* postSteps(
  tx: Orm,
  deps: Pick<Deps, "db" | "clock" | "seal">,
  { userId, kind, letter }: Posting,
): Steps<OutboxRow | undefined> {
  const { outbox } = deps.db.t;
  const now = nowSeconds(deps);
  const [row] = yield* q(
    tx
      .insert(outbox)
      .values({
        userId,
        kind,
        letterSealed: deps.seal.seal("letter", JSON.stringify(letter)),
        createdAt: now,
        nextAt: now,
      })
      .returning(),
  );
  return row;
}

/** `a***@mail.example`: enough for an operator to see whose it was. */
export function maskedMail(address: string): string {
  const at = address.lastIndexOf("@");
  return at < 1 ? "***" : `${address.slice(0, 1)}***${address.slice(at)}`;
}

/** The letter is ours to send: no other node has it, and it is still due. */
async function claim(deps: OutboxDeps, { id }: OutboxRow, now: number): Promise<boolean> {
  const { outbox } = deps.db.t;
  const rows = await deps.db.orm
    .update(outbox)
    .set({ nextAt: now + CLAIM_SECONDS })
    .where(and(eq(outbox.id, id), lte(outbox.nextAt, now), isNull(outbox.deadAt)))
    .returning({ id: outbox.id });
  return rows.length > 0;
}

/** Whether the server said that this receiver will never take it. */
function isForGood(error: unknown): boolean {
  const cause = (error instanceof Failure ? error.cause : error) as
    { command?: unknown; responseCode?: unknown } | undefined;
  return cause?.command === "RCPT TO" && Number(cause.responseCode) >= 550;
}

function opened(deps: OutboxDeps, row: OutboxRow): Letter | undefined {
  try {
    return JSON.parse(deps.seal.open("letter", row.letterSealed)) as Letter;
  } catch {
    return undefined;
  }
}

async function giveUp(deps: OutboxDeps, row: OutboxRow, to: string): Promise<void> {
  const { outbox } = deps.db.t;
  const set = { deadAt: nowSeconds(deps), attempts: row.attempts + 1 };
  await deps.db.orm.update(outbox).set(set).where(eq(outbox.id, row.id));
  deps.inbox.raise({ kind: "letter", params: { to: maskedMail(to) } });
}

/** True: it went. */
async function sendOne(deps: OutboxDeps, row: OutboxRow): Promise<boolean> {
  const { outbox } = deps.db.t;
  const letter = opened(deps, row);
  if (!letter) {
    await giveUp(deps, row, "");
    return false;
  }
  try {
    const server = mailServer(deps);
    if (!server) throw refuse("smtp_missing");
    await sendMail(server, letter);
  } catch (error) {
    const pause = PAUSES[row.attempts];
    const fields = { kind: row.kind, attempts: row.attempts + 1, error: String(error) };
    deps.logger.warn("a letter did not go", fields);
    if (pause === undefined || isForGood(error)) {
      await giveUp(deps, row, letter.to);
      return false;
    }
    if (!isForGood(error)) deps.inbox.raise({ kind: "mail" });
    const set = { attempts: row.attempts + 1, nextAt: nowSeconds(deps) + pause };
    await deps.db.orm.update(outbox).set(set).where(eq(outbox.id, row.id));
    return false;
  }
  await deps.db.orm.delete(outbox).where(eq(outbox.id, row.id));
  deps.inbox.gone("mail");
  return true;
}

const isDue = ({ db }: Pick<Deps, "db">, now: Moment): SQL | undefined =>
  and(isNull(db.t.outbox.deadAt), lte(db.t.outbox.nextAt, now));

const isKeptLongEnough = ({ db }: Pick<Deps, "db">, now: Moment): SQL =>
  lt(sql`${db.t.outbox.deadAt} + ${sql.raw(String(KEPT_SECONDS))}`, now);

/** Condition: `sendDue` would find a letter to send, or one to forget. */
export function lettersWait(deps: Pick<Deps, "db">): SQL {
  const { outbox } = deps.db.t;
  const some = deps.db.orm.select({ one: sql`1` }).from(outbox);
  return exists(some.where(or(isDue(deps, NOW), isKeptLongEnough(deps, NOW))));
}

/** Sends what is due, one after another, oldest first; answers how many went. Several nodes may do so at once. */
export async function sendDue(deps: OutboxDeps): Promise<number> {
  if (isQuiet(deps.options)) return 0;
  const { outbox } = deps.db.t;
  const due = await deps.db.orm
    .select()
    .from(outbox)
    .where(isDue(deps, nowSeconds(deps)))
    .orderBy(asc(outbox.nextAt), asc(outbox.id))
    .limit(MOST_AT_ONCE);
  let sent = 0;
  for (const row of due)
    if ((await claim(deps, row, nowSeconds(deps))) && (await sendOne(deps, row))) sent += 1;
  await deps.db.orm.delete(outbox).where(isKeptLongEnough(deps, nowSeconds(deps)));
  return sent;
}

/** So long a letter waits for a database that shall keep it. */
const KEEP_WAIT_MS = 5000;

/**
 * Keeps the letter, then tries at once; whatever comes of that is the outbox's. Where the database cannot keep it, it goes
 * directly, for it may be the letter that says so: then this throws what refuses it.
 */
export async function postNow(deps: OutboxDeps, posting: Posting): Promise<void> {
  let row: OutboxRow | undefined;
  try {
    const kept = deps.db.atomic((tx) => postSteps(tx, deps, posting));
    row = await within(KEEP_WAIT_MS, kept);
  } catch (error) {
    deps.logger.warn("a letter could not be kept", { kind: posting.kind, error: String(error) });
  }
  if (row) {
    if (!isQuiet(deps.options) && (await claim(deps, row, nowSeconds(deps)))) await sendOne(deps, row);
    return;
  }
  refuseWhenQuiet(deps.options);
  const server = mailServer(deps);
  if (!server) throw refuse("smtp_missing");
  await sendMail(server, posting.letter);
}

/** For whoever has just put one in: goes now where it can, and with the next look where it cannot. Never throws. */
export function sendSoon(deps: OutboxDeps): void {
  sendDue(deps).catch((error: unknown) =>
    deps.logger.warn("letters could not be sent", { error: String(error) }),
  );
}
