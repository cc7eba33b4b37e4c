// A note beside the journal of how far the database had come: whoever starts on an older state of it, without the journal's
// files that would bring the rest in again, is told what is missing. The row in the database cannot tell that: it is old, too.
// Refuses to be in anybody's way: it is written beside the calls, at most once a second, and a disk that takes no note is
// told by the journal.
import { readFileSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { join } from "node:path";
import { lookEvery } from "../../db/look-around.ts";
import type { Deps } from "../deps.ts";
import { writeAtomically } from "./journal/files.ts";
import type { Journal } from "./journal/journal.ts";
import type { StorePosition } from "./journal/recovery.ts";
import type { Fall } from "./postgres-apply.ts";
import type { LedgerStore } from "./store.ts";

const FILE = "entered.position";
const NOTE_MS = 1000;
/** While nobody calls, so that nothing new is entered. */
const REST_MS = 2500;

interface EnteredNoteDeps extends Pick<Deps, "db" | "logger"> {
  dataDir: string;
  journal: Pick<Journal<unknown>, "lastPosition">;
  lease: { position: StorePosition };
  fellBack: (fall: Fall) => void;
}

/** The highest position of this journal that the database is known to have had; 0 where nobody noted one. */
function noted(dataDir: string, history: string): number {
  try {
    const [whose, position] = readFileSync(join(dataDir, FILE), "utf8").trim().split(" ");
    return whose === history && /^\d{1,15}$/.test(position ?? "") ? Number(position) : 0;
  } catch {
    return 0;
  }
}

async function writeLater(dataDir: string, text: string): Promise<void> {
  const path = join(dataDir, FILE);
  const file = await open(`${path}.draft`, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.draft`, path);
}

/** The store, which looks at the note when it starts, and keeps it until it is closed. */
export function withEnteredNote(store: LedgerStore, deps: EnteredNoteDeps): LedgerStore {
  const { db, dataDir, logger, journal, lease } = deps;
  const { history } = lease.position;
  const entered = (): number => journal.lastPosition - store.backlog();
  const textOf = (position: number): string => `${history} ${position}\n`;
  let written = 0;
  let writing: Promise<void> | undefined;
  let stop: (() => void) | undefined;

  async function keep(): Promise<void> {
    const position = entered();
    try {
      await writeLater(dataDir, textOf(position));
      written = position;
    } catch (error) {
      logger.debug("how far the database has come could not be noted", { error: String(error) });
    }
    writing = undefined;
  }

  /** What the database had and has no more, when it is started on. */
  function compare(known: number): void {
    const { mark } = lease.position;
    if (known <= mark) return;
    const isReplayed = journal.lastPosition >= known;
    // The embedded database syncs less often than the journal: after a power cut its last commits are entered again as a rule.
    if (isReplayed && db.kind === "sqlite") return;
    const fall = { from: (isReplayed ? mark : journal.lastPosition) + 1, to: known };
    logger.error(
      isReplayed
        ? "the database is older than it was: what it lacks was entered again from the journal"
        : "the database is older than it was, and the journal does not have what it lacks: these settlements are missing. " +
            "Put a newer state of the database back, or the journal's files of that time, and start again",
      fall,
    );
    deps.fellBack({ ...fall, isReplayed, goesOn: true });
  }

  return {
    ...store,
    async start() {
      const known = noted(dataDir, history);
      await store.start();
      compare(known);
      // Told once: from here on what counts is what this process enters.
      written = known > entered() ? -1 : known;
      const note = (): void => {
        if (entered() > written) writing ??= keep();
      };
      stop = lookEvery(NOTE_MS, note, REST_MS);
    },
    close() {
      stop?.();
      const position = entered();
      store.close();
      if (stop === undefined || position <= written) return;
      try {
        writeAtomically(dataDir, FILE, textOf(position));
      } catch (error) {
        logger.debug("how far the database has come could not be noted", { error: String(error) });
      }
    },
  };
}
