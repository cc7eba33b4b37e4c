// The sessions that are open: one timer looks after all of them, and there is none while there are no sessions.
import type { RealtimeSession } from "./session.ts";

export interface OpenSessions {
  add(session: RealtimeSession): void;
  remove(session: RealtimeSession): void;
  /** Its client sends faster than the upstream takes: it is looked at again soon. */
  congested(session: RealtimeSession): void;
  count(): number;
}

const CHECK_MS = 500;
const RELIEF_MS = 20;
/** A silent upstream is asked for a sign of life after the first, and given up after the second. */
const PING_MS = 30_000;
const SILENT_MS = 150_000;

export function createOpenSessions(): OpenSessions {
  const sessions = new Set<RealtimeSession>();
  const congested = new Set<RealtimeSession>();
  let checking: ReturnType<typeof setInterval> | undefined;
  let relieving: ReturnType<typeof setInterval> | undefined;

  function check(): void {
    const nowMs = performance.now();
    for (const session of sessions) void session.check(nowMs, PING_MS, SILENT_MS);
  }

  function relieve(): void {
    for (const session of congested) if (session.relieve()) congested.delete(session);
    if (congested.size > 0) return;
    clearInterval(relieving);
    relieving = undefined;
  }

  return {
    add(session) {
      sessions.add(session);
      checking ??= setInterval(check, CHECK_MS);
    },
    remove(session) {
      sessions.delete(session);
      if (sessions.size > 0) return;
      clearInterval(checking);
      checking = undefined;
    },
    congested(session) {
      congested.add(session);
      relieving ??= setInterval(relieve, RELIEF_MS);
    },
    count: () => sessions.size,
  };
}
