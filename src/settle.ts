// `weir settle`, and what comes before a start with workers: whatever journals of a data directory, and of workers that it has
// or had, hold is entered into the database. A directory is opened as the process that it belonged to would open it.
// Refuses to touch a directory whose process still runs: workers that have lost their parent end by themselves, and are
// waited for.
import { createServices } from "./app.ts";
import { workerDirsIn } from "./cluster/directories.ts";
import { createLogger } from "./core/kit/logger.ts";
import { encryptionSecret } from "./core/kit/seal.ts";
import { findNodeId, settleIn } from "./core/ledger/installation.ts";
import { countWaiting } from "./core/ledger/journal/journal.ts";
import { findStorePosition } from "./core/ledger/node-lease.ts";
import { openSealer } from "./core/options/seal-keys.ts";
import { connect } from "./db/connect.ts";
import { DataDirInUse, lockDataDir, prepareDataDir } from "./db/data-dir-lock.ts";
import type { Database } from "./db/database.ts";
import type { Env } from "./env.ts";

const LOOK_MS = 200;
/** Beyond the drain a worker has so long to record everything (serve.ts). */
const RECORD_SECONDS = 25;

/** What a data directory has accepted and the tables do not have yet. */
async function waitingIn(db: Database, dataDir: string): Promise<number> {
  const nodeId = findNodeId(dataDir);
  const books = nodeId === undefined ? undefined : await findStorePosition(db, nodeId);
  return books ? countWaiting(dataDir, books) : 0;
}

/** The same of a directory and its workers'. */
export async function waitingCalls(db: Database, dataDir: string): Promise<number> {
  const counts = await Promise.all([dataDir, ...workerDirsIn(dataDir)].map((each) => waitingIn(db, each)));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Throws DataDirInUse when its process runs longer than a drain may take. */
async function waitUntilFree(env: Env, dataDir: string, tell: () => void): Promise<void> {
  const untilMs = performance.now() + (env.drainSeconds + RECORD_SECONDS) * 1000;
  for (let isTold = false; ; isTold = true) {
    try {
      return lockDataDir(dataDir).release();
    } catch (error) {
      if (!(error instanceof DataDirInUse) || performance.now() > untilMs) throw error;
    }
    if (!isTold) tell();
    await Bun.sleep(LOOK_MS);
  }
}

/**
 * Enters what waits in workers' directories, and with `isWhole` in the data directory itself, whose key file and tie to the
 * database are seen to as well: workers that begin at the same time find them.
 */
export async function settleJournals(env: Env, isWhole: boolean): Promise<void> {
  const directories = workerDirsIn(env.dataDir);
  if (directories.length === 0 && !isWhole) return;
  const logger = createLogger(env.logLevel);
  prepareDataDir(env.dataDir);
  if (isWhole) lockDataDir(env.dataDir).release();
  for (const directory of directories)
    await waitUntilFree(env, directory, () =>
      logger.warn("waiting for a worker of an earlier run to end", { directory }),
    );
  const db = await connect(env, undefined, {
    waitSeconds: env.databaseWaitSeconds,
    waiting: (reason, leftSeconds) => logger.warn("waiting for the database", { reason, leftSeconds }),
  });
  const found: { directory: string; waiting: number }[] = [];
  try {
    if (isWhole) {
      await settleIn(db, env.dataDir, env.startsNew);
      const secret = encryptionSecret(env.encryptionKey, env.keyDir);
      await openSealer(db, secret, Math.floor(Date.now() / 1000));
    }
    for (const directory of isWhole ? [env.dataDir, ...directories] : directories)
      found.push({ directory, waiting: await waitingIn(db, directory) });
  } finally {
    await db.close();
  }
  for (const { directory, waiting } of found) {
    if (waiting === 0) continue;
    // Taking the ledger up enters what waits; closing it makes sure.
    const services = await createServices({ ...env, dataDir: directory });
    await services.close();
    logger.info("entered what a journal held", { directory, entries: waiting });
  }
}
