// A new encryption key: everything that is sealed, sealed anew, a few rows at a time, so that it may be killed anywhere.
// Refuses to touch what opens under neither key: it was lost before, and is counted.
import { asc, eq, gt, ne, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { q } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import { createSealer, macKeyOf, SEAL_PURPOSES, sealKeyOf } from "../kit/seal.ts";
import type { Sealer } from "../kit/seal.ts";
import {
  CARRIED_KEY,
  internalRow,
  MAC_KEY,
  macKeyRow,
  opensCheck,
  ROTATION_KEY,
  SEAL_CHECK_KEY,
  sealCheck,
} from "./seal-keys.ts";

interface SealedColumn {
  table: PgTable;
  /** By which its rows are walked. */
  id: PgColumn;
  column: PgColumn;
  /** The column's name in the schema. */
  name: string;
  /** Field of a JSON text, where the column holds one. */
  field?: string;
}

/** Every column that holds sealed text. `test/core/options/seal-rotation.test.ts` holds it against the schema. */
export function sealedColumns(t: Schema): SealedColumn[] {
  const {
    tokens,
    channelKeys,
    options,
    sessionSecrets,
    redemptions,
    users,
    authFlows,
    totps,
    customProviders,
    outbox,
    userImportRows,
  } = t;
  return [
    { table: tokens, id: tokens.id, column: tokens.keySealed, name: "keySealed" },
    { table: channelKeys, id: channelKeys.id, column: channelKeys.keySealed, name: "keySealed" },
    { table: options, id: options.key, column: options.value, name: "value" },
    {
      table: sessionSecrets,
      id: sessionSecrets.key,
      column: sessionSecrets.valueSealed,
      name: "valueSealed",
    },
    { table: redemptions, id: redemptions.id, column: redemptions.keySealed, name: "keySealed" },
    { table: users, id: users.id, column: users.setting, name: "setting", field: "webhook_secret_sealed" },
    { table: authFlows, id: authFlows.id, column: authFlows.payload, name: "payload" },
    { table: totps, id: totps.userId, column: totps.secretSealed, name: "secretSealed" },
    {
      table: customProviders,
      id: customProviders.id,
      column: customProviders.clientSecretSealed,
      name: "clientSecretSealed",
    },
    { table: outbox, id: outbox.id, column: outbox.letterSealed, name: "letterSealed" },
    { table: userImportRows, id: userImportRows.id, column: userImportRows.rowSealed, name: "rowSealed" },
  ];
}

const BATCH = 200;
/** Clients bring back what they carry for so long. */
const CARRIED_SECONDS = 30 * 86_400;
/** The proof changes last, the marks not at all. */
const KEPT_ROWS: ReadonlySet<string> = new Set([SEAL_CHECK_KEY, ROTATION_KEY, CARRIED_KEY]);
const SEALED = /^s\d+\./;

interface Keys {
  from: Sealer;
  to: Sealer;
}

/** Undefined: it opens under neither. Whatever opens was sealed for that purpose, and is sealed for it again. */
function resealed({ from, to }: Keys, sealed: string): string | undefined {
  for (const purpose of SEAL_PURPOSES) {
    try {
      to.open(purpose, sealed);
      return sealed;
    } catch {
      // Under the old key, or for another purpose.
    }
    try {
      return to.seal(purpose, from.open(purpose, sealed));
    } catch {
      // The next purpose.
    }
  }
  return undefined;
}

function resealedField(keys: Keys, text: string, field: string): string | undefined {
  let setting: Record<string, unknown>;
  try {
    setting = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return text;
  }
  const sealed = setting[field];
  if (typeof sealed !== "string" || sealed === "") return text;
  const next = resealed(keys, sealed);
  return next === undefined ? undefined : JSON.stringify({ ...setting, [field]: next });
}

interface Tally {
  sealed: number;
  /** Opened under neither key, before this as after it. */
  lost: number;
}

async function rotateColumn(db: Database, keys: Keys, of: SealedColumn, tally: Tally): Promise<void> {
  const { table, id, column, name, field } = of;
  for (let last: number | string | undefined; ;) {
    const after = last;
    const read = await db.atomic(function* (tx) {
      const rows = yield* q(
        tx
          .select({ id, value: column })
          .from(table)
          .where(after === undefined ? ne(column, "") : sql`${ne(column, "")} and ${gt(id, after)}`)
          .orderBy(asc(id))
          .limit(BATCH),
      );
      const counted = { sealed: 0, lost: 0 };
      for (const row of rows as { id: number | string; value: string }[]) {
        if (table === db.t.options && (KEPT_ROWS.has(String(row.id)) || !SEALED.test(row.value))) continue;
        const next = field === undefined ? resealed(keys, row.value) : resealedField(keys, row.value, field);
        if (next === undefined) counted.lost += 1;
        else if (next !== row.value) {
          yield* q(
            tx
              .update(table)
              .set({ [name]: next })
              .where(eq(id, row.id)),
          );
          counted.sealed += 1;
        }
      }
      return { last: rows.at(-1)?.["id"] as number | string | undefined, count: rows.length, ...counted };
    });
    tally.sealed += read.sealed;
    tally.lost += read.lost;
    if (read.count < BATCH) return;
    last = read.last;
  }
}

/** Begins: from here on no server starts on this database. */
export async function beginRotation(db: Database, secret: string): Promise<void> {
  const { options } = db.t;
  await db.orm.insert(options).values({ key: ROTATION_KEY, value: sealCheck(createSealer(secret)) });
}

/** Also where it was given up before anything was sealed anew. */
export async function endRotation(db: Database): Promise<void> {
  await db.orm.delete(db.t.options).where(eq(db.t.options.key, ROTATION_KEY));
}

/** How many stored secrets open with a key, and how many do not. Reads only. */
export async function countSecrets(db: Database, seal: Sealer): Promise<{ opened: number; lost: number }> {
  const count = { opened: 0, lost: 0 };
  for (const { table, id, column, field } of sealedColumns(db.t))
    for (let last: number | string | undefined; ;) {
      const rows = (await db.orm
        .select({ id, value: column })
        .from(table)
        .where(last === undefined ? ne(column, "") : sql`${ne(column, "")} and ${gt(id, last)}`)
        .orderBy(asc(id))
        .limit(BATCH)) as { id: number | string; value: string }[];
      for (const { value } of rows) {
        const sealed = field === undefined ? value : sealedField(value, field);
        if (SEALED.test(sealed)) count[opensAs(seal, sealed) ? "opened" : "lost"] += 1;
      }
      if (rows.length < BATCH) break;
      last = rows.at(-1)?.id;
    }
  return count;
}

function opensAs(seal: Sealer, sealed: string): boolean {
  return SEAL_PURPOSES.some((purpose) => {
    try {
      seal.open(purpose, sealed);
      return true;
    } catch {
      return false;
    }
  });
}

function sealedField(text: string, field: string): string {
  try {
    const value = (JSON.parse(text) as Record<string, unknown>)[field];
    return typeof value === "string" ? value : "";
  } catch {
    return "";
  }
}

/** How far a change of the key has come, as seen with a key. */
export interface RotationState {
  isUnderWay: boolean;
  /** The database is under this key: its proof opens. */
  isOwn: boolean;
  /** The change that is under way leads to this key. */
  isGoal: boolean;
}

export async function rotationState(db: Database, secret: string): Promise<RotationState> {
  const seal = createSealer(secret);
  const goal = await internalRow(db, ROTATION_KEY);
  return {
    isUnderWay: goal !== undefined,
    isOwn: opensCheck(seal, (await internalRow(db, SEAL_CHECK_KEY)) ?? ""),
    isGoal: goal !== undefined && opensCheck(seal, goal),
  };
}

/** Seals everything anew, whatever an earlier try has done of it; the proof of the key changes with the last transaction. */
export async function sealAnew(
  db: Database,
  secrets: { from: string; to: string; nowSeconds: number },
): Promise<Tally> {
  const keys: Keys = { from: createSealer(secrets.from), to: createSealer(secrets.to) };
  const tally: Tally = { sealed: 0, lost: 0 };
  for (const column of sealedColumns(db.t)) await rotateColumn(db, keys, column, tally);
  // Of the first change: the walk has sealed it anew at later ones.
  const macKey = (await macKeyRow(db, keys.to)) ?? macKeyOf(secrets.from);
  const until = secrets.nowSeconds + CARRIED_SECONDS;
  const carried = `${sealKeyOf(secrets.from).toString("base64url")} ${until}`;
  const rows = [
    { key: MAC_KEY, value: keys.to.seal("check", macKey.toString("base64url")) },
    { key: CARRIED_KEY, value: keys.to.seal("check", carried) },
    { key: SEAL_CHECK_KEY, value: sealCheck(keys.to) },
  ];
  const { options } = db.t;
  await db.atomic(function* (tx) {
    for (const row of rows)
      yield* q(
        tx
          .insert(options)
          .values(row)
          .onConflictDoUpdate({ target: options.key, set: { value: row.value } }),
      );
  });
  return tally;
}

/** Nodes whose lease has not ended, by the database's clock; on SQLite the lock of the data directory tells. */
export async function livingNodes(db: Database): Promise<number> {
  if (db.kind !== "postgres") return 0;
  const { nodes } = db.t;
  const rows = await db.orm
    .select({ id: nodes.nodeId })
    .from(nodes)
    .where(gt(nodes.leaseUntil, sql`floor(extract(epoch from now()))`));
  return rows.length;
}
