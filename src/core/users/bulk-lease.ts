// Who works on a run over many accounts: one node at a time, and with what rank whoever asked for it has now.
import { and, eq, lt, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { Role, UserStatus } from "../../shared/enums.ts";
import type { Deps } from "../deps.ts";
import type { Moment } from "../../db/moments.ts";
import type { AuditActor } from "../logs/audit.ts";
import type { BulkAct } from "./bulk.ts";

export type BulkDeps = Pick<
  Deps,
  "db" | "clock" | "logger" | "options" | "ledger" | "seal" | "accounts" | "sessions" | "inbox"
>;

const LEASE_SECONDS = 60;

export interface BulkRun {
  id: number;
  act: BulkAct;
  reason: string;
  by: AuditActor;
}

/** What a run is made of: what waits, by number, and how some of it is done. */
export interface BulkWork {
  waiting(count: number): Promise<number[]>;
  /** Throws where the database is away; what is refused is written down. */
  some(run: BulkRun, items: readonly number[]): Promise<void>;
}

export const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

/** By which leases begin and end: the database's clock where nodes share one, so that no node takes another's too early. */
export const leaseNow = ({ db }: Pick<Deps, "db">, now: Moment): SQL =>
  db.kind === "postgres" ? sql`floor(extract(epoch from now()))::bigint` : sql`${now}`;

/** The lease is this node's for another while; false: another node works on it, or it is over. */
export async function takeLease(deps: BulkDeps, id: number, isHeld: boolean): Promise<boolean> {
  const { userBulks } = deps.db.t;
  const now = leaseNow(deps, nowSeconds(deps));
  const rows = await deps.db.orm
    .update(userBulks)
    .set({ leaseUntil: sql`${now} + ${LEASE_SECONDS}` })
    .where(
      and(
        eq(userBulks.id, id),
        eq(userBulks.finishedAt, 0),
        isHeld ? undefined : lt(userBulks.leaseUntil, now),
      ),
    )
    .returning({ id: userBulks.id });
  return rows.length > 0;
}

/** The rank of whoever asked as it is now; 0 where they may do nothing any more. */
export async function roleNow(deps: BulkDeps, by: AuditActor): Promise<number> {
  const account = await deps.accounts.user(by.id);
  const isThere = account !== undefined && !account.deleted && account.status === UserStatus.enabled;
  return isThere && account.role >= Role.admin ? account.role : 0;
}
