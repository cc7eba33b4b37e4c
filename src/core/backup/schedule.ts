// Backups by themselves: when one is due, on one node, in a process of its own, and what the inbox hears of it.
// Refuses to hold up the server: the copy is made elsewhere, and a stop of the server ends it.
import { and, eq } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import { addDays, offsetSeconds, startOfDay } from "../../shared/local-time.ts";
import type { Deps } from "../deps.ts";
import { BackupRefused, isRefusal, refusalText } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";
import { backupState, noteFailedBackup } from "./state.ts";

/** When this or another node last began one, Unix seconds. */
const TRIED_KEY = "backup:tried";
/** One that failed, or was killed, is tried again so much later. */
const AGAIN_SECONDS = 3600;

export interface BackupPlan {
  /** BACKUP_AT, minutes since midnight in the site's zone. */
  atMinutes: number;
  /**
   * Runs `weir backup --prune=ZONE --json` into BACKUP_DIR, in a process of its own; answers what it printed. Rejects when it
   * cannot be started; the signal ends it.
   */
  run: (zone: string, signal: AbortSignal) => Promise<string>;
}

export interface Backups {
  /** Makes one if it is due and no node has begun it. Never rejects for a backup that failed: the inbox hears of it. */
  makeDue(): Promise<void>;
  /** Ends what runs. */
  stop(): void;
}

type BackupDeps = Pick<Deps, "db" | "clock" | "options" | "inbox" | "logger">;

/** The last moment of the day at which one was to begin, Unix seconds. */
export function lastDue(nowSeconds: number, atMinutes: number, zone: string): number {
  const midnight = startOfDay(nowSeconds * 1000, zone);
  const today = atTime(midnight, atMinutes, zone);
  return today <= nowSeconds ? today : atTime(addDays(midnight, -1, zone), atMinutes, zone);
}

/** What the clock shows counts, also on days of 23 and 25 hours. */
function atTime(midnight: number, minutes: number, zone: string): number {
  const moment = midnight + minutes * 60;
  return moment - (offsetSeconds(zone, moment * 1000) - offsetSeconds(zone, midnight * 1000));
}

export function createBackups(deps: BackupDeps, plan: BackupPlan): Backups {
  const { db, clock, options, inbox, logger } = deps;
  const stopping = new AbortController();

  async function makeDue(): Promise<void> {
    const now = Math.floor(clock.nowMs() / 1000);
    const zone = options.get("site.time_zone");
    const { lastAt } = await backupState(db);
    const tried = await triedAt(db);
    const due = lastDue(now, plan.atMinutes, zone);
    if (lastAt >= due || (tried >= due && now - tried < AGAIN_SECONDS)) return;
    if (!(await claims(db, tried, now))) return;
    const refusal = await outcome(plan, zone, stopping.signal);
    if (stopping.signal.aborted) return;
    if (!refusal) return inbox.gone("backup_failed");
    // A process that was killed could not say so itself.
    await noteFailedBackup(db, Math.floor(clock.nowMs() / 1000));
    const reasons = { reason: refusalText(refusal, "zh"), reason_en: refusalText(refusal, "en") };
    logger.error("the backup failed", { reason: reasons.reason_en });
    inbox.raise({ kind: "backup_failed", params: reasons });
  }

  return { makeDue, stop: () => stopping.abort() };
}

/** What a person has to hear of it; undefined: a whole copy, in which nothing is wrong. */
async function outcome(plan: BackupPlan, zone: string, signal: AbortSignal): Promise<Refusal | undefined> {
  try {
    const told = JSON.parse(await plan.run(zone, signal)) as {
      ok?: boolean;
      refused?: unknown;
      findings?: unknown;
    };
    if (told.ok === true) return undefined;
    const found = told.refused ?? (Array.isArray(told.findings) ? (told.findings[0] as unknown) : undefined);
    return isRefusal(found) ? found : new BackupRefused("ended", { reason: "no report" });
  } catch (error) {
    return new BackupRefused("ended", { reason: error instanceof Error ? error.message : String(error) });
  }
}

/** 0 where there was none: the first is made at once, so that whoever asked for backups sees one. */
async function triedAt(db: Database): Promise<number> {
  const { marks } = db.t;
  await db.orm.insert(marks).values({ key: TRIED_KEY, value: 0 }).onConflictDoNothing();
  const [row] = await db.orm.select({ value: marks.value }).from(marks).where(eq(marks.key, TRIED_KEY));
  return row?.value ?? 0;
}

/** True for the one node that moves the mark. */
async function claims(db: Database, tried: number, now: number): Promise<boolean> {
  const { marks } = db.t;
  const moved = await db.orm
    .update(marks)
    .set({ value: now })
    .where(and(eq(marks.key, TRIED_KEY), eq(marks.value, tried)))
    .returning({ value: marks.value });
  return moved.length === 1;
}
