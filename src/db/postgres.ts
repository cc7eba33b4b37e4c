// PostgreSQL through postgres.js and drizzle, for installations of several nodes.
// Refuses to hide a deadlock: atomic blocks are retried a few times, then the error is thrown.
import { like, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import type { Sql } from "postgres";
import { schema } from "../../drizzle/postgres.ts";
import type { Database, Orm, Steps } from "./database.ts";
import { sqlState } from "./sql-state.ts";

const CHANNEL = "weir";
const RETRYABLE = new Set(["40P01", "40001"]);
const MAX_TRIES = 6;
const VERSION_PREFIX = "version:";
const POLL_MS = 1000;

export function openPostgres(url: string, max = 10): Sql {
  return namedStatements(
    postgres(url, {
      max,
      onnotice: () => {},
      connection: { application_name: "weir" },
      idle_timeout: 0,
      connect_timeout: 5,
      // The driver's own pauses grow to 20 s, during which every call that needs the database would hang.
      backoff: (retries: number) => Math.min(0.02 * 2 ** retries, 0.5),
    }),
  );
}

/** drizzle does not name its statements on postgres.js, so each would be planned anew: measured 2 to 3 times slower. */
function namedStatements(client: Sql): Sql {
  const unsafe = client.unsafe.bind(client);
  const named: Sql["unsafe"] = (text, parameters, options) =>
    unsafe(text, parameters, { prepare: true, ...options });
  client.unsafe = named;
  const begin = client.begin.bind(client) as unknown as (
    body: (tx: Sql) => Promise<unknown>,
  ) => Promise<unknown>;
  client.begin = ((first: unknown, second?: unknown) => {
    const body = (second ?? first) as (tx: Sql) => Promise<unknown>;
    return begin((tx) => {
      const inner = tx.unsafe.bind(tx);
      tx.unsafe = (text, parameters, options) => inner(text, parameters, { prepare: true, ...options });
      return body(tx);
    });
  }) as unknown as Sql["begin"];
  return client;
}

export function postgresDatabase(client: Sql): Database {
  const orm = drizzle(client, { casing: "snake_case" });
  const listeners: ((what: string) => void)[] = [];
  let listening: Promise<unknown> | undefined;
  let poller: ReturnType<typeof setInterval> | undefined;
  const versions = new Map<string, number>();

  /** Reads the version marks every second; the first round only learns them. */
  function startPolling(): ReturnType<typeof setInterval> {
    let isRunning = false;
    const round = async (isFirst: boolean) => {
      if (isRunning) return;
      isRunning = true;
      try {
        const { marks } = schema;
        const rows = await orm
          .select()
          .from(marks)
          .where(like(marks.key, `${VERSION_PREFIX}%`));
        for (const { key, value } of rows) {
          const known = versions.get(key);
          versions.set(key, value);
          if (isFirst || known === value) continue;
          for (const each of listeners) each(key.slice(VERSION_PREFIX.length));
        }
      } catch {
        // The database is away for a moment: the next round catches up.
      } finally {
        isRunning = false;
      }
    };
    void round(true);
    const timer = setInterval(() => void round(false), POLL_MS);
    timer.unref();
    return timer;
  }

  async function run<T>(body: (tx: Orm) => Steps<T>): Promise<T> {
    return orm.transaction(async (tx) => {
      const steps = body(tx as unknown as Orm);
      let state = steps.next();
      while (!state.done) state = steps.next(await state.value);
      return state.value;
    });
  }

  return {
    kind: "postgres",
    client: undefined,
    t: schema,
    orm: orm as unknown as Orm,
    reader: orm as unknown as Orm,
    async atomic(body) {
      for (let tries = 1; ; tries++) {
        try {
          return await run(body);
        } catch (error) {
          if (tries >= MAX_TRIES || !RETRYABLE.has(sqlState(error))) throw error;
        }
      }
    },
    async announce(what) {
      if (!what.includes(":")) {
        const key = VERSION_PREFIX + what;
        const [mark] = await orm
          .insert(schema.marks)
          .values({ key, value: 1 })
          .onConflictDoUpdate({ target: schema.marks.key, set: { value: sql`${schema.marks.value} + 1` } })
          .returning({ value: schema.marks.value });
        if (mark) versions.set(key, mark.value);
      }
      await client.notify(CHANNEL, what);
    },
    beforeQuery: () => {},
    onAnnounce(listener) {
      listeners.push(listener);
      poller ??= startPolling();
      listening ??= client
        .listen(CHANNEL, (payload) => {
          for (const each of listeners) each(payload);
        })
        // The version marks are polled as well, so a lost subscription costs a second, not correctness.
        .catch(() => {
          listening = undefined;
        });
    },
    async ping() {
      await client`select 1`;
      return true;
    },
    async close() {
      clearInterval(poller);
      await client.end({ timeout: 2 });
    },
  };
}
