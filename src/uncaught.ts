// What happens to the process when an error reaches nobody: a broken socket is told, anything else ends it in order.
// Refuses to go on with a state that nobody vouches for, and to end before what was delivered is settled.
import type { Logger } from "./core/deps.ts";

/**
 * What sockets say when their other end is gone. Such an error belongs to one connection (a client's, an upstream's, the
 * database driver's) whose own readers have been told or time out: nothing else was being changed when it came.
 */
const SOCKET_CODES = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "CONNECT_TIMEOUT",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTCONN",
  "EPIPE",
  "ETIMEDOUT",
  "ERR_SOCKET_CLOSED",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_PREMATURE_CLOSE",
  "ERR_STREAM_WRITE_AFTER_END",
]);

export function isOfSocket(error: unknown): boolean {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" && SOCKET_CODES.has(code);
}

export interface UncaughtDeps {
  logger: Logger;
  /** Drains: what runs may end, everything delivered is settled. */
  stop: () => Promise<void>;
  exit: (code: number) => void;
}

/** The handler of uncaught exceptions. Its exit code is 1, so that whoever supervises the process starts it again. */
export function uncaughtPolicy({ logger, stop, exit }: UncaughtDeps): (error: unknown) => void {
  let isEnding = false;
  return (error) => {
    const said = { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    if (isOfSocket(error))
      return logger.error("uncaught error of a socket: its connection is lost, the others go on", said);
    if (isEnding) return logger.error("uncaught exception while ending", said);
    isEnding = true;
    logger.error("uncaught exception: ending in order, for a fresh start", said);
    stop().then(
      () => exit(1),
      (failure: unknown) => {
        logger.error("could not end in order; the journal has what was answered", { error: String(failure) });
        exit(1);
      },
    );
  };
}
