// Which keys open this database, and which secrets sign: proven at the start, kept as rows that are sealed themselves.
// Refuses a key that the database was not sealed with, and a database whose key is just being changed.
import { eq, inArray } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import { createSealer } from "../kit/seal.ts";
import type { Sealer, SealHeritage } from "../kit/seal.ts";

export const SEAL_CHECK_KEY = "internal:seal_check";
/** The key of hashes, once the encryption key has changed: they go on under the first one's. */
export const MAC_KEY = "internal:mac_key";
/** The sealing key before, for what clients carry. */
export const CARRIED_KEY = "internal:carried_key";
/** Stands here while `weir rotate` is at work: the check text under the new key. */
export const ROTATION_KEY = "internal:rotation";
const SEAL_CHECK_TEXT = "weir";

/** Thrown when the database was sealed under another key; the start prints its sentence and ends. */
export class WrongEncryptionKey extends Error {
  constructor() {
    super(
      "ENCRYPTION_KEY (or DATA_DIR/encryption.key) is not the key that this database was sealed with: " +
        "put the original key back; without it the stored API keys and channel keys cannot be read.",
    );
  }
}

/** Thrown where a change of the key has begun and not ended; the start prints its sentence and ends. */
export class RotationUnfinished extends Error {
  constructor() {
    super(
      "the encryption key is being changed, and not everything is under the new one yet: " +
        "run `weir rotate` again with the same settings; it goes on where it stopped.",
    );
  }
}

/** The stored text of an internal row. */
export async function internalRow(db: Database, key: string): Promise<string | undefined> {
  const { options } = db.t;
  const [row] = await db.orm.select().from(options).where(eq(options.key, key));
  return row?.value;
}

/** What proves that a key is the right one. */
export function sealCheck(seal: Sealer): string {
  return seal.seal("check", SEAL_CHECK_TEXT);
}

export function opensCheck(seal: Sealer, sealed: string): boolean {
  try {
    return seal.open("check", sealed) === SEAL_CHECK_TEXT;
  } catch {
    return false;
  }
}

/** Throws RotationUnfinished. Asked once more after the node took its lease: the two commands look at each other. */
export async function refuseInRotation(db: Database): Promise<void> {
  if ((await internalRow(db, ROTATION_KEY)) !== undefined) throw new RotationUnfinished();
}

/** Proves that the key fits the database (the first start writes the proof); answers what seals and opens from here on. */
export async function openSealer(db: Database, secret: string, nowSeconds: number): Promise<Sealer> {
  await refuseInRotation(db);
  const bare = createSealer(secret);
  if ((await internalRow(db, SEAL_CHECK_KEY)) === undefined)
    await db.orm
      .insert(db.t.options)
      .values({ key: SEAL_CHECK_KEY, value: sealCheck(bare) })
      .onConflictDoNothing();
  // Two nodes may start at once on an empty database with different keys: the loser must notice.
  if (!opensCheck(bare, (await internalRow(db, SEAL_CHECK_KEY)) ?? "")) throw new WrongEncryptionKey();
  return createSealer(secret, await heritageOf(db, bare, nowSeconds));
}

async function heritageOf(db: Database, seal: Sealer, nowSeconds: number): Promise<SealHeritage> {
  const { options } = db.t;
  const rows = await db.orm
    .select()
    .from(options)
    .where(inArray(options.key, [MAC_KEY, CARRIED_KEY]));
  const heritage: SealHeritage = {};
  for (const { key, value } of rows) {
    const [text = "", until = ""] = seal.open("check", value).split(" ");
    const bytes = Buffer.from(text, "base64url");
    if (key === MAC_KEY) heritage.macKey = bytes;
    else if (Number(until) > nowSeconds) heritage.carriedKey = bytes;
  }
  return heritage;
}

/** The key of hashes in force, which the first key gave. */
export async function macKeyRow(db: Database, seal: Sealer): Promise<Buffer | undefined> {
  const value = await internalRow(db, MAC_KEY);
  return value === undefined ? undefined : Buffer.from(seal.open("check", value), "base64url");
}

/** A session secret that was changed, as its row keeps it. */
interface ChangedSecret {
  secret: string;
  /** Still taken, until then (Unix seconds). */
  before: string;
  until: number;
}

function readSecret(text: string): ChangedSecret {
  // One that was never changed stands there as it is, and never begins like this.
  if (!text.startsWith("{")) return { secret: text, before: "", until: 0 };
  return JSON.parse(text) as ChangedSecret;
}

/** The only row of its table. */
const SESSION_ROW = "current";

async function sealedSecret({ orm, t: { sessionSecrets } }: Database): Promise<string | undefined> {
  const [row] = await orm.select().from(sessionSecrets).where(eq(sessionSecrets.key, SESSION_ROW));
  return row?.valueSealed;
}

const newSecret = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");

/**
 * What signs sessions: the operator's, or one made once and kept sealed in the database. `new,old` where it was changed: the
 * first signs, each of them is taken.
 */
export async function sessionSecret(
  db: Database,
  seal: Sealer,
  { fromEnv, nowSeconds }: { fromEnv: string; nowSeconds: number },
): Promise<string> {
  if (fromEnv !== "") return fromEnv;
  await db.orm
    .insert(db.t.sessionSecrets)
    .values({ key: SESSION_ROW, valueSealed: seal.seal("option", newSecret()) })
    .onConflictDoNothing();
  const sealed = (await sealedSecret(db)) ?? "";
  const { secret, before, until } = readSecret(seal.open("option", sealed));
  return before !== "" && until > nowSeconds ? `${secret},${before}` : secret;
}

/** A new one signs from the next start on; the one before is taken until then. False: none was ever made. */
export async function changeSessionSecret(db: Database, seal: Sealer, until: number): Promise<boolean> {
  const sealed = await sealedSecret(db);
  if (sealed === undefined) return false;
  const { secret: before } = readSecret(seal.open("option", sealed));
  const changed: ChangedSecret = { secret: newSecret(), before, until };
  await db.orm
    .update(db.t.sessionSecrets)
    .set({ valueSealed: seal.seal("option", JSON.stringify(changed)) })
    .where(eq(db.t.sessionSecrets.key, SESSION_ROW));
  return true;
}
