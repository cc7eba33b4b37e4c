// What the processes of a site that share a PostgreSQL hear of an import that one of them makes: whichever is asked tells of it.
// Refuses to outlive the process that gives it: a sign that is not renewed counts for half a minute.
import { eq } from "drizzle-orm";
import { lookEvery } from "../../db/look-around.ts";
import type { Deps } from "../deps.ts";

/** How far it is, without a password; with `error` it has stopped. */
export interface ImportSign {
  source: string;
  step?: string;
  done?: number;
  total?: number;
  left_seconds?: number;
  error?: string;
}

type SignDeps = Pick<Deps, "db" | "clock">;

const SIGN_KEY = "internal:import-sign";
const RENEW_MS = 2000;
const ALIVE_SECONDS = 30;

async function give({ db, clock }: SignDeps, sign: ImportSign): Promise<void> {
  const value = JSON.stringify({ ...sign, at: Math.floor(clock.nowMs() / 1000) });
  const { options } = db.t;
  await db.orm
    .insert(options)
    .values({ key: SIGN_KEY, value })
    .onConflictDoUpdate({ target: options.key, set: { value } });
}

/** Renews what `look` answers until it is ended, with an error where it failed. The embedded database has one process alone. */
export async function giveSigns(
  deps: SignDeps,
  look: () => ImportSign,
): Promise<(error?: string) => Promise<void>> {
  if (deps.db.kind !== "postgres") return () => Promise.resolve();
  await give(deps, look());
  const stop = lookEvery(RENEW_MS, () => void give(deps, look()).catch(() => undefined));
  return async (error) => {
    stop();
    if (error !== undefined) return give(deps, { ...look(), error });
    await deps.db.orm.delete(deps.db.t.options).where(eq(deps.db.t.options.key, SIGN_KEY));
  };
}

/** Undefined: nobody imports, or whoever did is gone. */
export async function importSign({ db, clock }: SignDeps): Promise<ImportSign | undefined> {
  if (db.kind !== "postgres") return undefined;
  const { options } = db.t;
  const [row] = await db.orm.select({ value: options.value }).from(options).where(eq(options.key, SIGN_KEY));
  if (!row) return undefined;
  const { at, ...sign } = JSON.parse(row.value) as ImportSign & { at: number };
  return Math.abs(clock.nowMs() / 1000 - at) <= ALIVE_SECONDS ? sign : undefined;
}

/** Whether another process, or this one, is at it right now. */
export async function isImporting(deps: SignDeps): Promise<boolean> {
  const sign = await importSign(deps);
  return sign !== undefined && sign.error === undefined;
}
