// Whether a call may begin: what it will cost must be recordable, in the files and in the tables that this process owns.
// Refuses to answer again on hope: only a write that was made durable, and files that lie where they lay, are proof.
import { join } from "node:path";
import { statSync } from "node:fs";
import { SQLITE_FILE } from "../../db/connect.ts";
import { lookEvery } from "../../db/look-around.ts";
import type { Deps } from "../deps.ts";
import type { Journal } from "./journal/journal.ts";
import type { LedgerItem } from "./items.ts";
import type { NodeLease } from "./node-lease.ts";

/** An upstream would be paid for what cannot be recorded; no more often is it tried whether it can. */
const DOWN_MS = 1000;
const LOOK_MS = 1000;
/** While nobody calls; the first call looks before it is answered. */
const REST_MS = 2500;

export interface LedgerHealth {
  /** Looked at before every call: three comparisons while all is well. */
  canRecord(): boolean;
  /** A write to the journal failed. */
  writeFailed(): void;
  /** Throws when nothing more may be promised: the entry would stand in no table. */
  assertLeaseHeld(): void;
  close(): void;
}

export interface LedgerHealthDeps extends Pick<Deps, "db" | "clock" | "logger" | "dataDir"> {
  lease: NodeLease;
  journal: Journal<LedgerItem>;
}

export function createLedgerHealth({
  db,
  clock,
  logger,
  dataDir,
  lease,
  journal,
}: LedgerHealthDeps): LedgerHealth {
  let isDown = false;
  let downUntilMs = 0;
  let isThere = true;

  // Another file under the name is another database: what this process writes goes into one that nobody will open.
  const watched = db.client ? [dataDir, join(dataDir, SQLITE_FILE)] : [dataDir];
  const known = watched.map(identityOf);
  const look = (): void => {
    const gone = watched.find((path, index) => identityOf(path) !== known[index]);
    if ((gone === undefined) !== isThere) {
      isThere = gone === undefined;
      if (isThere) logger.warn("the file is back: calls are answered again");
      else
        logger.error(
          "calls are refused: the file was deleted or replaced while the process runs. Put it back, or stop the process",
          { path: gone },
        );
    }
    if (isThere) journal.lookAfterFiles();
  };
  const stop = lookEvery(LOOK_MS, look, REST_MS);

  function recovers(): boolean {
    if (!lease.isHeld || !isThere || clock.monotonicMs() < downUntilMs) return false;
    if (journal.prove()) {
      isDown = false;
      return true;
    }
    downUntilMs = clock.monotonicMs() + DOWN_MS;
    return false;
  }

  return {
    canRecord: () => (!isDown && isThere && lease.isHeld && journal.isSound()) || recovers(),
    writeFailed() {
      isDown = true;
      downUntilMs = clock.monotonicMs() + DOWN_MS;
    },
    assertLeaseHeld() {
      if (!lease.isHeld) throw new Error("this process no longer holds its node id");
    },
    close: stop,
  };
}

/** Device and inode; empty where nothing lies. */
function identityOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  return found ? `${found.dev}:${found.ino}` : "";
}
