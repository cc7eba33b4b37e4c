// The control channel between the parent and its workers (Bun's IPC): what each says to the other, and the worker's end.
// Whoever wants to know something of all workers adds a message here; the channel closes when either side dies.
// Refuses anything from outside: the channel is a pair of sockets that no other process has.

export type FromWorker =
  /** It listens; calls may come. */
  | { kind: "serving" }
  /** What all workers have in memory is over (a site was moved in): each begins anew, one after the other. */
  | { kind: "roll" };

export type ToWorker =
  /** Another one takes its place: end as on SIGTERM, but at once, since the port stays open: so many listen on it now. */
  { kind: "retire"; among: number };

export interface WorkerEnd {
  tell(message: FromWorker): void;
}

/** Of a process that a parent has started; `onRetire` is also called when the parent is gone, with 0. */
export function openWorkerEnd(onRetire: (among: number) => void): WorkerEnd {
  process.on("message", (message: ToWorker) => {
    if (message.kind === "retire") onRetire(message.among);
  });
  process.on("disconnect", () => onRetire(0));
  return { tell: (message) => void process.send?.(message) };
}
