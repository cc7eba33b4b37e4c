// The control channel between the parent and its workers (Bun's IPC): what each says to the other, and the worker's end.
// Whoever wants to know something of all workers adds a message here; the channel closes when either side dies.
// Refuses anything from outside: the channel is a pair of sockets that no other process has.
import type { MetricSnapshot } from "../observe/metrics.ts";

export type FromWorker =
  /** It listens; calls may come. */
  | { kind: "serving" }
  /** What all workers have in memory is over (a site was moved in): each begins anew, one after the other. */
  | { kind: "roll" }
  /** Somebody asks it for the figures of all workers. */
  | { kind: "gather"; id: number }
  /** Its own, as it was asked under this number. */
  | { kind: "figures"; id: number; snapshot: MetricSnapshot[] };

export type ToWorker =
  /** Another one takes its place: end as on SIGTERM, but at once, since the port stays open: so many listen on it now. */
  | { kind: "retire"; among: number }
  /** The figures of this worker are wanted. */
  | { kind: "figures"; id: number }
  /** Those of all workers, and what workers counted that have ended. */
  | { kind: "gathered"; id: number; snapshots: MetricSnapshot[][] };

/** Longer than the parent waits for its workers. */
const GATHER_MS = 3000;

export interface WorkerEnd {
  tell(message: FromWorker): void;
  /** The figures of all workers; the own ones alone where the parent does not answer. */
  gather(): Promise<MetricSnapshot[][]>;
}

interface WorkerEndDeps {
  /** Also called when the parent is gone, with 0. */
  onRetire: (among: number) => void;
  snapshot: () => Promise<MetricSnapshot[]>;
}

/** Of a process that a parent has started. */
export function openWorkerEnd({ onRetire, snapshot }: WorkerEndDeps): WorkerEnd {
  const waiting = new Map<number, (snapshots: MetricSnapshot[][]) => void>();
  let asked = 0;
  const tell = (message: FromWorker): void => void process.send?.(message);

  process.on("message", (message: ToWorker) => {
    if (message.kind === "retire") onRetire(message.among);
    else if (message.kind === "gathered") waiting.get(message.id)?.(message.snapshots);
    else void snapshot().then((own) => tell({ kind: "figures", id: message.id, snapshot: own }));
  });
  process.on("disconnect", () => onRetire(0));
  return {
    tell,
    async gather() {
      const id = ++asked;
      const { promise, resolve } = Promise.withResolvers<MetricSnapshot[][] | undefined>();
      const timer = setTimeout(resolve, GATHER_MS, undefined);
      waiting.set(id, resolve);
      tell({ kind: "gather", id });
      const found = await promise;
      clearTimeout(timer);
      waiting.delete(id);
      return found ?? [await snapshot()];
    },
  };
}
