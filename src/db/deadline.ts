// Bounds the wait for the database: the PostgreSQL driver may leave a query unanswered when connections break.
// Cancels nothing: what comes after the deadline is ignored, so callers must survive a late success.

export class DeadlineExceeded extends Error {
  readonly code = "DATABASE_SILENT";

  constructor(ms: number) {
    super(`the database did not answer within ${ms} ms`);
  }
}

/** Nobody answers where the database should be; nothing was written. */
export class DatabaseSilent extends Error {
  readonly code = "DATABASE_SILENT";

  constructor() {
    super("the database has gone silent");
  }
}

/** Somebody has knocked, and nobody is there: no answer of one query that is late (presence.ts). */
export function isSilent(error: unknown): boolean {
  for (let e: unknown = error; e instanceof Error; e = e.cause) if (e instanceof DatabaseSilent) return true;
  return false;
}

/** Settles like the promise, or rejects after the time. */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new DeadlineExceeded(ms)), ms);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
