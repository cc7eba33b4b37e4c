// DURABILITY=database: an answer's last bytes wait for PostgreSQL's commit of its settlement, and no call begins while that
// could not be had. Refuses such a call with 503 before an upstream is asked; whatever was answered stands in the journal.
import { Failure } from "../../shared/failures.ts";
import { within } from "../kit/deadline.ts";
import type { Logger } from "../deps.ts";
import type { OutageWatch } from "./outage.ts";
import type { CommittingStore } from "./store.ts";

/** When the last bytes of an answer may leave: with its settlement in this node's journal, or in the database. */
export type Durability = "journal" | "database";

/** Of the database's last word, and of the oldest settlement that it has not got: above either it is asked first. */
const SURE_MS = 2000;
/** So long a call waits for the answer to that question before it is refused. */
const ASK_MS = 2000;
/** After a refusal nobody asks again for this long: an outage makes no storm of connections. */
const REFUSED_MS = 500;
/** What a refused caller is told to wait. */
const RETRY_SECONDS = 2;

export interface CommitGate {
  /**
   * Before a call begins: undefined while the database takes settlements; else it is asked, and the promise rejects with
   * `database_down` (503, Retry-After) where it does not take them within two seconds.
   */
  ready(): Promise<void> | undefined;
  /**
   * Resolves once PostgreSQL has what is in the journal now. A call that an outage met on its way waits for it until the
   * outage is `waitMs` old, then it is answered: it is charged, and the journal brings it in later. Never rejects.
   */
  committed(): Promise<void>;
  /** Answers since the start that left before their commit. */
  early(): number;
}

export interface CommitGateDeps {
  store: CommittingStore;
  outage: OutageWatch;
  logger: Logger;
  /** Milliseconds. */
  waitMs: number;
  monotonicMs: () => number;
  /** Position of the last durable entry. */
  lastPosition: () => number;
  /** For how many milliseconds the oldest entry has been waiting for the tables. */
  oldestMs: () => number;
}

/** The gate of a node on PostgreSQL; SQLite needs none: its journal lies on the same disk. */
export function createCommitGate(deps: CommitGateDeps): CommitGate {
  const { store, outage, logger, waitMs, monotonicMs, lastPosition, oldestMs } = deps;
  let asking: Promise<void> | undefined;
  let refusedAtMs = -Infinity;
  let early = 0;
  let isTold = false;

  const isSure = (): boolean =>
    !store.isFailing() && outage.silentMs() < SURE_MS && (store.backlog() === 0 || oldestMs() < SURE_MS);

  async function ask(): Promise<void> {
    let cause: unknown;
    if (monotonicMs() - refusedAtMs >= REFUSED_MS) {
      // What waits is brought in by the same word: a database that answers and takes nothing is none.
      const asked = store.backlog() > 0 ? store.drain() : outage.ask();
      await within(ASK_MS, asked).catch((error: unknown) => (cause = error));
      if (cause === undefined && isSure()) return;
      refusedAtMs = monotonicMs();
    }
    throw new Failure("internal", "database_down", {
      status: 503,
      retryAfterSeconds: RETRY_SECONDS,
      cause,
    });
  }

  return {
    ready() {
      if (isSure()) {
        isTold = false;
        return undefined;
      }
      return (asking ??= ask().finally(() => {
        asking = undefined;
      }));
    },
    async committed() {
      // All of the outage counts: it is waited out once, not by every call anew.
      const leftMs = waitMs - outage.silentMs();
      const position = lastPosition();
      if (leftMs > 0) {
        const isThere = await within(leftMs, store.whenApplied(position)).catch(() => false);
        if (isThere) return;
      }
      early++;
      if (isTold) return;
      isTold = true;
      logger.warn("answers leave before the database has their settlements: the journal keeps them", {
        waiting: store.backlog(),
      });
    },
    early: () => early,
  };
}
