// Whether calls should come to this process, for probes of balancers and supervisors.
// Refuses to be unready for what every process has at the same time: without its database a site still serves, and a probe
// that fails everywhere at once would take all of it away.

/** So long the database has been silent before that is told. */
const AWAY_MS = 5000;

/** What the ledger says of itself. */
interface Condition {
  canRecord: boolean;
  silentMs: number;
  /** Why the process answers no calls until it is started again; undefined: it does. */
  stoppedBy: string | undefined;
}

interface ReadinessReport {
  isReady: boolean;
  /**
   * `draining`: this process ends, with or without calls; `journal`: what a call costs could not be recorded, so that calls
   * are refused; `stopped`: its node id is another process's, or the database fell back further than its journal reaches,
   * and a person has to decide; `degraded`: the database is away, settlements wait in the journal.
   */
  status: "ready" | "degraded" | "journal" | "stopped" | "draining";
  /** Whether the Valkey of REDIS_URL is asked; absent without one. Away it makes nothing unready. */
  valkey?: "up" | "away";
}

export interface Readiness {
  look(): ReadinessReport;
  /** From here on not ready: this process is about to end. */
  drain(): void;
}

export function createReadiness(condition: () => Condition, valkey?: { isUp(): boolean }): Readiness {
  let isDraining = false;
  function statusOf(): ReadinessReport["status"] {
    if (isDraining) return "draining";
    const { canRecord, silentMs, stoppedBy } = condition();
    if (stoppedBy) return "stopped";
    if (!canRecord) return "journal";
    return silentMs >= AWAY_MS ? "degraded" : "ready";
  }
  return {
    look() {
      const status = statusOf();
      const isReady = status === "ready" || status === "degraded";
      return { isReady, status, ...(valkey ? { valkey: valkey.isUp() ? "up" : "away" } : {}) };
    },
    drain() {
      isDraining = true;
    },
  };
}
