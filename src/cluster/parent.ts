// The parent of the workers: starts them on one port, starts again what crashed, replaces one after the other on SIGHUP, and
// ends with all of them. It serves nothing itself, so that it stays small and has nothing to crash on.
// Refuses to go on without a worker that ever served: a wrong setting is no crash.
import type { FromWorker, ToWorker } from "./control.ts";
import { createGathering } from "./figures.ts";
import type { Gathering } from "./figures.ts";

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 30_000;
/** Whoever lived so long did not crash at its start: the pauses begin anew. */
const STEADY_MS = 60_000;

interface ParentLogger {
  info(text: string, fields?: Record<string, unknown>): void;
  warn(text: string, fields?: Record<string, unknown>): void;
  error(text: string, fields?: Record<string, unknown>): void;
}

export interface ParentDeps {
  workers: number;
  /** The program and its arguments. */
  command: readonly string[];
  /** The environment of the worker of this index. */
  environmentOf(index: number): Record<string, string | undefined>;
  /**
   * How long a worker that was told to end may take, in milliseconds: its drain, and what it needs to record everything. A
   * worker whose event loop hangs hears nothing; it is killed then, and its journal is entered by the next start.
   */
  endLimitMs: number;
  logger: ParentLogger;
}

export interface Parent {
  /** Resolves when all workers serve; false when one of them could not, and then all have ended. */
  start(): Promise<boolean>;
  /** One worker after the other is replaced; calls meanwhile are answered by the others. Never rejects. */
  roll(): Promise<void>;
  /** SIGTERM to all; resolves with the exit code when all have ended. */
  stop(): Promise<number>;
}

/** A process of a worker's, from its start to its end. */
interface Child {
  readonly process: Bun.Subprocess<"ignore", "inherit", "inherit">;
  isServing: boolean;
  /** Ends as it was told to. */
  isRetiring: boolean;
  /** Resolves with the exit code when it has ended and the worker is rid of it. */
  readonly gone: Promise<number>;
}

interface Worker {
  readonly index: number;
  child: Child | undefined;
  /** In a row, each soon after its start. */
  crashes: number;
  retry: ReturnType<typeof setTimeout> | undefined;
  /** How it ended after it had served, while others were starting: another takes its place when all have served. */
  endedEarly: WorkerEnd | undefined;
}

interface WorkerEnd {
  code: number | null;
  signal: number | string | null;
  livedMs: number;
}

interface State extends ParentDeps {
  readonly all: readonly Worker[];
  /** What each counts, for the one that is asked. */
  readonly gathering: Gathering;
  /** All have served once. */
  hasServed: boolean;
  isStopping: boolean;
  /** A worker asks for what SIGHUP asks for. */
  roll(): Promise<void>;
}

export function createParent(deps: ParentDeps): Parent {
  const all: Worker[] = Array.from({ length: deps.workers }, (_, index) => ({
    index,
    child: undefined,
    crashes: 0,
    retry: undefined,
    endedEarly: undefined,
  }));
  const gathering = createGathering({
    running: () => all.filter(({ child }) => child !== undefined).map(({ index }) => index),
    send: (index, message) => isTold(all[index]?.child, message),
  });
  const state: State = { ...deps, all, gathering, hasServed: false, isStopping: false, roll };
  /** All serve, or one of them could not. */
  const started = Promise.withResolvers<boolean>();
  let rolling: Promise<void> | undefined;
  let isAskedAgain = false;

  function roll(): Promise<void> {
    isAskedAgain = true;
    rolling ??= rolls().finally(() => (rolling = undefined));
    return rolling;
  }

  async function rolls(): Promise<void> {
    // What is asked for during the start comes after it.
    if (!(await started.promise)) return;
    do {
      isAskedAgain = false;
      await rollOnce(state);
    } while (isAskedAgain && !state.isStopping);
  }

  return {
    async start() {
      const served = await Promise.all(all.map((worker) => startWorker(state, worker)));
      state.hasServed = served.every(Boolean);
      started.resolve(state.hasServed);
      if (!state.hasServed) await stopAll(state);
      for (const worker of all) if (worker.endedEarly) ended(state, worker, worker.endedEarly);
      return state.hasServed;
    },
    roll,
    stop: () => stopAll(state),
  };
}

/** Resolves when it serves, or false when it ended before that. */
function startWorker(state: State, worker: Worker): Promise<boolean> {
  const serving = Promise.withResolvers<boolean>();
  const gone = Promise.withResolvers<number>();
  const startedMs = performance.now();
  const process = Bun.spawn([...state.command], {
    env: state.environmentOf(worker.index),
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
    serialization: "json",
    ipc(message: FromWorker) {
      if (message.kind === "roll") void state.roll();
      else if (message.kind === "serving") {
        child.isServing = true;
        serving.resolve(true);
      } else state.gathering.heard(worker.index, message);
    },
    onExit(_, code, signal) {
      worker.child = undefined;
      state.gathering.ended(worker.index);
      serving.resolve(false);
      gone.resolve(code ?? 1);
      if (!child.isRetiring) ended(state, worker, { code, signal, livedMs: performance.now() - startedMs });
    },
  });
  const child: Child = { process, isServing: false, isRetiring: false, gone: gone.promise };
  worker.child = child;
  return serving.promise;
}

/** A worker has ended that nobody told to: another takes its place, after a pause that grows. */
function ended(state: State, worker: Worker, end: WorkerEnd): void {
  worker.endedEarly = state.hasServed ? undefined : end;
  if (state.isStopping || !state.hasServed) return;
  if (end.livedMs >= STEADY_MS) worker.crashes = 0;
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** worker.crashes++, MAX_PAUSE_MS);
  state.logger.error("a worker ended; another takes its place", {
    worker: worker.index,
    code: end.code,
    signal: end.signal,
    inMs: pauseMs,
  });
  worker.retry = setTimeout(() => {
    worker.retry = undefined;
    void startWorker(state, worker);
  }, pauseMs);
}

async function rollOnce(state: State): Promise<void> {
  const { logger } = state;
  logger.info("replacing the workers one after the other");
  for (const worker of state.all) {
    if (state.isStopping) return;
    await retire(state, worker);
    if (state.isStopping) return;
    if (await startWorker(state, worker)) continue;
    // Those that serve go on as they are: a program that cannot start must not take their place as well.
    logger.error("a worker could not be replaced: the others stay as they are", { worker: worker.index });
    return;
  }
  logger.info("all workers were replaced");
}

async function retire(state: State, worker: Worker): Promise<void> {
  const { all } = state;
  clearTimeout(worker.retry);
  worker.retry = undefined;
  const { child } = worker;
  if (!child) return;
  child.isRetiring = true;
  const among = all.filter((each) => each.child?.isServing).length;
  // One that is still starting has nothing to end in order, and hears nothing yet.
  if (!child.isServing || !isTold(child, { kind: "retire", among })) child.process.kill("SIGTERM");
  await goneInTime(state, worker.index, child);
}

/** Resolves with the exit code of a worker that was told to end, or with 1 for one that had to be killed. */
async function goneInTime({ endLimitMs, logger }: State, index: number, child: Child): Promise<number> {
  const timer = setTimeout(() => {
    logger.error("a worker did not end in time and is killed; its journal has what it answered", {
      worker: index,
      afterMs: endLimitMs,
    });
    child.process.kill("SIGKILL");
  }, endLimitMs);
  try {
    return await child.gone;
  } finally {
    clearTimeout(timer);
  }
}

/** False: there is nobody, or its channel is closed. */
function isTold(child: Child | undefined, message: ToWorker): boolean {
  try {
    child?.process.send(message);
    return child !== undefined;
  } catch {
    return false;
  }
}

async function stopAll(state: State): Promise<number> {
  state.isStopping = true;
  const codes = await Promise.all(
    state.all.map(async ({ index, child, retry }) => {
      clearTimeout(retry);
      child?.process.kill("SIGTERM");
      return child ? await goneInTime(state, index, child) : 0;
    }),
  );
  return codes.some((code) => code !== 0) ? 1 : 0;
}
