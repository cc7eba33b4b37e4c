// weir rotate: a new encryption key for everything that is sealed, or a new session secret, while no server runs.
// Refuses to begin beside a living node, and to end a change with another key than it was begun with.
import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Deps } from "../core/deps.ts";
import { KEY_FILE } from "../core/kit/seal.ts";
import { syncDirectory } from "../core/ledger/journal/files.ts";
import {
  changeSessionSecret,
  openSealer,
  RotationUnfinished,
  WrongEncryptionKey,
} from "../core/options/seal-keys.ts";
import {
  beginRotation,
  endRotation,
  livingNodes,
  rotationState,
  sealAnew,
} from "../core/options/seal-rotation.ts";

export interface RotateContext {
  db: Deps["db"];
  dataDir: string;
  /** From the environment; empty: the key file. */
  encryptionKey: string;
  newEncryptionKey: string;
  sessionSecret: string;
  nowSeconds: number;
  say: (line: string) => void;
}

/** Refused with this sentence; nothing was changed. */
export class RotateError extends Error {}

/** Sessions last so long: nobody's ends before its time. */
const SECRET_SECONDS = 30 * 86_400;
/** The new key, until everything is sealed with it. */
const DRAFT = `${KEY_FILE}.new`;
const USAGE = "usage: weir rotate [--session [--now]]";

function readKey(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8").trim() : "";
}

/** The whole text or no file, whenever the power goes. */
function writeKey(dataDir: string, secret: string): void {
  const path = join(dataDir, `${DRAFT}.draft`);
  const file = openSync(path, "w", 0o600);
  try {
    writeSync(file, `${secret}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(path, join(dataDir, DRAFT));
  syncDirectory(dataDir);
}

async function refuseBesideNodes(db: Deps["db"]): Promise<void> {
  const count = await livingNodes(db);
  if (count === 0) return;
  throw new RotateError(
    `${count} ${count === 1 ? "node uses" : "nodes use"} this database: stop every server first; ` +
      "one that was killed counts for half a minute more.",
  );
}

/** Answers the exit code. Throws RotateError, RotationUnfinished, WrongEncryptionKey. */
export async function rotateCommand(context: RotateContext, args: readonly string[]): Promise<number> {
  const known = new Set(["--session", "--now"]);
  const isSession = args.includes("--session");
  if (args.some((arg) => !known.has(arg)) || (args.includes("--now") && !isSession))
    throw new RotateError(USAGE);
  return isSession ? rotateSession(context, args.includes("--now")) : rotateKey(context);
}

async function rotateSession(context: RotateContext, isNow: boolean): Promise<number> {
  const { db, dataDir, encryptionKey, nowSeconds, say } = context;
  if (context.sessionSecret !== "")
    throw new RotateError(
      "SESSION_SECRET is set: put the new secret before the old one there, SESSION_SECRET=new,old, and take the old one " +
        "out after 30 days.",
    );
  await refuseBesideNodes(db);
  const secret = encryptionKey || readKey(join(dataDir, KEY_FILE));
  const seal = await openSealer(db, secret, nowSeconds);
  const until = isNow ? 0 : nowSeconds + SECRET_SECONDS;
  if (!(await changeSessionSecret(db, seal, until)))
    throw new RotateError("no server has run on this database yet: there is no session secret to change.");
  say(
    isNow
      ? "The next start signs with a new session secret; everybody has to sign in again."
      : "The next start signs with a new session secret; sessions of the old one go on for 30 days.",
  );
  return 0;
}

/** Which key the change leads to; `isNew`: nothing has begun yet. */
async function goalOf(context: RotateContext, current: string): Promise<{ secret: string; isNew: boolean }> {
  const { db, dataDir, encryptionKey, newEncryptionKey } = context;
  const state = await rotationState(db, current);
  const draft = readKey(join(dataDir, DRAFT));
  if (state.isUnderWay) {
    if (state.isGoal && !state.isOwn)
      throw new RotateError(
        "the change of the key has not ended: give the old key as ENCRYPTION_KEY and the new one as NEW_ENCRYPTION_KEY once more.",
      );
    for (const secret of [newEncryptionKey, draft, current])
      if (secret !== "" && (await rotationState(db, secret)).isGoal) return { secret, isNew: false };
    throw new RotateError(
      "a change to another key has begun: run this again with the NEW_ENCRYPTION_KEY of that time.",
    );
  }
  if (!state.isOwn) throw new WrongEncryptionKey();
  if (newEncryptionKey === "" && encryptionKey !== "")
    throw new RotateError(
      "ENCRYPTION_KEY is set in the environment: name the new key in NEW_ENCRYPTION_KEY.",
    );
  if (newEncryptionKey === current)
    throw new RotateError("NEW_ENCRYPTION_KEY is the key that is in force already.");
  return { secret: newEncryptionKey || randomBytes(32).toString("base64url"), isNew: true };
}

async function rotateKey(context: RotateContext): Promise<number> {
  const { db, dataDir, encryptionKey, nowSeconds, say } = context;
  const path = join(dataDir, KEY_FILE);
  const isFile = encryptionKey === "";
  const current = encryptionKey || readKey(path);
  if (current === "") throw new RotateError(`there is no key in ${path}: set DATA_DIR, or ENCRYPTION_KEY.`);
  const { secret, isNew } = await goalOf(context, current);
  if (isNew) {
    // First of all: no row is ever under a key that only this process knows.
    if (isFile) writeKey(dataDir, secret);
    await beginRotation(db, secret);
  }
  try {
    await refuseBesideNodes(db);
  } catch (error) {
    if (isNew) await endRotation(db);
    if (isNew) rmSync(join(dataDir, DRAFT), { force: true });
    throw error;
  }
  if (!(await rotationState(db, secret)).isOwn) {
    if (!(await rotationState(db, current)).isOwn) throw new RotationUnfinished();
    const { sealed, lost } = await sealAnew(db, { from: current, to: secret, nowSeconds });
    say(`Sealed with the new key: ${sealed} rows.`);
    if (lost > 0) say(`${lost} rows opened under neither key, before as now; they stay as they are.`);
  }
  // Only now: whoever is killed before this finds both keys where they were.
  if (isFile && readKey(join(dataDir, DRAFT)) === secret) {
    renameSync(join(dataDir, DRAFT), path);
    syncDirectory(dataDir);
  }
  await endRotation(db);
  say(
    isFile
      ? `The new key stands in ${path}. Other nodes need a copy of it before they start.`
      : "Set ENCRYPTION_KEY to the new key, on every node, before the next start.",
  );
  say("Copies of the database from before open with the old key only: keep it as long as you keep them.");
  return 0;
}
