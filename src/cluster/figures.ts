// The figures of all workers, gathered by their parent for the one that is asked for them. Refuses to wait for a worker that does
// not answer: it is left out this once.
import type { MetricSnapshot } from "../observe/metrics.ts";
import { keepCounted } from "../observe/snapshots.ts";
import type { FromWorker, ToWorker } from "./control.ts";

const ANSWER_MS = 2000;

export interface Gathering {
  /** A message of the worker of this index. */
  heard(index: number, message: FromWorker): void;
  /** Its process has ended: what it counted, as last heard, is kept. */
  ended(index: number): void;
}

interface Round {
  asker: number;
  /** Of the asker. */
  id: number;
  waitsFor: Set<number>;
  timer: ReturnType<typeof setTimeout>;
}

export interface GatheringDeps {
  /** Indexes of the workers that run. */
  running: () => number[];
  /** False: it could not be told. */
  send: (index: number, message: ToWorker) => boolean;
}

export function createGathering({ running, send }: GatheringDeps): Gathering {
  let kept: MetricSnapshot[] = [];
  const last = new Map<number, MetricSnapshot[]>();
  const rounds = new Map<number, Round>();
  let rounded = 0;

  function end(no: number): void {
    const round = rounds.get(no);
    if (!round) return;
    rounds.delete(no);
    clearTimeout(round.timer);
    const heard = running().flatMap((index) => {
      const snapshot = round.waitsFor.has(index) ? undefined : last.get(index);
      return snapshot ? [snapshot] : [];
    });
    send(round.asker, {
      kind: "gathered",
      id: round.id,
      snapshots: kept.length > 0 ? [...heard, kept] : heard,
    });
  }

  return {
    heard(index, message) {
      if (message.kind === "gather") {
        const no = ++rounded;
        const asked = running().filter((each) => send(each, { kind: "figures", id: no }));
        const timer = setTimeout(() => end(no), ANSWER_MS);
        rounds.set(no, { asker: index, id: message.id, waitsFor: new Set(asked), timer });
        if (asked.length === 0) end(no);
      } else if (message.kind === "figures") {
        last.set(index, message.snapshot);
        const round = rounds.get(message.id);
        round?.waitsFor.delete(index);
        if (round?.waitsFor.size === 0) end(message.id);
      }
    },
    ended(index) {
      const counted = last.get(index);
      last.delete(index);
      if (counted) kept = keepCounted(kept, counted);
      for (const [no, round] of rounds)
        if (round.waitsFor.delete(index) && round.waitsFor.size === 0) end(no);
    },
  };
}
