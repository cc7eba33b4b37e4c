// PostgreSQL through postgres.js and drizzle, for installations of several nodes.
// Refuses to hide a deadlock: atomic blocks are retried a few times, then the error is thrown.
import { drizzle } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import type { Sql } from "postgres";
import { schema } from "../../drizzle/postgres.ts";
import { sendAtOnce } from "./at-once.ts";
import { createChangeFeed, FED_KINDS, VERSION_PREFIX } from "./changes.ts";
import type { Database, Flight, Orm, Steps } from "./database.ts";
import { lookAround } from "./look-around.ts";
import { createRowChanges } from "./row-changes.ts";
import { createPresence } from "./presence.ts";
import type { Presence } from "./presence.ts";
import { createSilenceWatch } from "./silent-sockets.ts";
import type { Inquiry } from "./silent-sockets.ts";
import { sqlState } from "./sql-state.ts";

/** Deadlocks, serialization, and a server that has forgotten the name of a statement: the transaction was rolled back. */
const RETRYABLE = new Set(["40P01", "40001", "26000"]);
const MAX_TRIES = 6;

interface Ways {
  /**
   * Statements are prepared under names, once for each connection. Not through a pooler in transaction mode, whose server
   * processes do not know each other's names: every statement is planned anew there, and travels twice.
   */
  isNamed?: boolean;
  /** A connection that nobody uses is closed after so long; 0 = never. */
  idleSeconds?: number;
  /** PostgreSQL gives up on sessions whose process has vanished. Not through a pooler, which refuses to be told. */
  isGuarded?: boolean;
  /** Connections are given up when none of them has heard anything for so long and none is worked for; 0 = never. */
  silentMs?: number;
  /** Reads are refused when they have waited for so long, none was answered, and nobody answers at the door; 0 = never. */
  quietMs?: number;
}

/**
 * A process that stands still, or whose machine or network is gone, in the middle of a transaction holds the rows of its
 * accounts. Every other node waits for them, near zero for ten seconds at most; PostgreSQL itself for two hours, until TCP
 * notices. No transaction of this program waits for anything but the database.
 */
const GUARD = {
  idle_in_transaction_session_timeout: 8000,
  tcp_keepalives_idle: 20,
  tcp_keepalives_interval: 10,
  tcp_keepalives_count: 3,
  // Compiling a statement takes PostgreSQL 50 to 100 ms of a processor each time, more than what it saves of a sum of months.
  jit: "off",
} as const;

/**
 * The driver carries patches/postgres@3.4.9.patch, which `bun install` applies. As released it writes the statements of a
 * transaction that outlived its connection to no socket at all, which ends the process, and takes half-sent text, half-read
 * rows and stale errors of a lost connection into the next one, where queries stay silent or get wrong rows. All of it is
 * state inside the driver's closures: a wrapper around its sockets cannot reach it, and Bun's own client has no LISTEN.
 * test/db/postgres-lost.test.ts fails without the patch.
 */
export function openPostgres(
  url: string,
  max = 10,
  { isNamed = true, idleSeconds = 0, isGuarded = false, silentMs = 0, quietMs = 0 }: Ways = {},
): Sql {
  const client = namedStatements(
    postgres(url, {
      max,
      prepare: isNamed,
      onnotice: () => {},
      connection: { application_name: "weir", ...(isGuarded ? GUARD : {}) },
      idle_timeout: idleSeconds,
      connect_timeout: 5,
      ...(silentMs > 0 ? { socket: createSilenceWatch(silentMs, inquiryAt(url)) } : {}),
      // The driver's own pauses grow to 20 s, during which every call that needs the database would hang.
      backoff: (retries: number) => Math.min(0.02 * 2 ** retries, 0.5),
    }),
  );
  return quietMs > 0 ? attended(client, createPresence(client.options, quietMs)) : client;
}

/** Longest for a fresh connection and its answer. */
const INQUIRY_SECONDS = 5;

/** Only this machine's: behind an address that is translated the server knows other ports. Who waits for the client does not work. */
const WORKING = `select client_port as port, state = 'active' and wait_event_type is distinct from 'Client' as works
  from pg_stat_activity
  where client_addr = inet_client_addr() and client_port = any(string_to_array($1, ',')::int[])`;

function inquiryAt(url: string): Inquiry {
  const nobody: ReadonlySet<number> = new Set();
  return async (ports) => {
    const client = postgres(url, {
      max: 1,
      prepare: false,
      fetch_types: false,
      onnotice: () => {},
      connection: { application_name: "weir" },
      connect_timeout: INQUIRY_SECONDS,
    });
    const silence = Promise.withResolvers<undefined>();
    const timer = setTimeout(silence.resolve, INQUIRY_SECONDS * 1000);
    try {
      const rows = await Promise.race([client.unsafe(WORKING, [ports.join(",")]), silence.promise]);
      if (!rows) return { outcome: "silent", known: nobody, working: nobody };
      const portsOf = (of: readonly postgres.Row[]) => new Set(of.map((row) => Number(row["port"])));
      const working = portsOf(rows.filter((row) => row["works"]));
      return { outcome: "answered", known: portsOf(rows), working };
    } catch (error) {
      const outcome = sqlState(error) === "CONNECT_TIMEOUT" ? "silent" : "refused";
      return { outcome, known: nobody, working: nobody };
    } finally {
      clearTimeout(timer);
      void client.end({ timeout: 0 });
    }
  };
}

/** drizzle does not name its statements on postgres.js, so each would be planned anew: measured 2 to 3 times slower. */
function namedStatements(client: Sql): Sql {
  const unsafe = client.unsafe.bind(client);
  client.unsafe = (text, parameters, options) => unsafe(text, parameters, { prepare: true, ...options });
  const begin = beginOf(client);
  client.begin = ((first: unknown, second?: unknown) => {
    const body = (second ?? first) as TransactionBody;
    return begin((tx) => {
      const inner = tx.unsafe.bind(tx);
      tx.unsafe = (text, parameters, options) => inner(text, parameters, { prepare: true, ...options });
      return body(tx);
    });
  }) as unknown as Sql["begin"];
  return client;
}

type TransactionBody = (tx: Sql) => Promise<unknown>;

const beginOf = (client: Sql) =>
  client.begin.bind(client) as unknown as (body: TransactionBody) => Promise<unknown>;

/**
 * Refuses reads, and transactions that have not begun, while nobody is there. What else the server answers is heard, too: a
 * transaction, a reserved connection. Who reads behind a commit must not be refused for what was silent before it.
 */
function attended(client: Sql, presence: Presence): Sql {
  const listening =
    (unsafe: Sql["unsafe"]): Sql["unsafe"] =>
    (...statement) => {
      const query = unsafe(...statement);
      presence.listenTo(query);
      return query as never;
    };
  const [unsafe, begin] = [client.unsafe.bind(client), beginOf(client)];
  client.unsafe = (...statement) => {
    const query = unsafe(...statement);
    presence.attend(query, statement[0]);
    return query as never;
  };
  client.begin = ((body: TransactionBody) =>
    presence.transact((begins) =>
      begin((tx) => {
        begins();
        tx.unsafe = listening(tx.unsafe.bind(tx));
        return body(tx);
      }),
    )) as unknown as Sql["begin"];
  const [reserve, end] = [client.reserve.bind(client), client.end.bind(client)];
  client.reserve = async () => {
    const reserved = await reserve();
    reserved.unsafe = listening(reserved.unsafe.bind(reserved));
    return reserved;
  };
  client.end = (options) => {
    presence.close();
    return end(options);
  };
  return client;
}

/** Of one caller so many queries run side by side at most; an export's thousand pages come one after another. */
const MOST_AT_ONCE = 32;

/** The client for somebody who may leave: PostgreSQL is told to end what it still runs for them. */
function cancelledBy(client: Sql, signal: AbortSignal): Sql {
  const running: { cancel(): void }[] = [];
  signal.addEventListener("abort", () => running.forEach((query) => query.cancel()), { once: true });
  const unsafe = (...query: Parameters<Sql["unsafe"]>) => {
    signal.throwIfAborted();
    const sent = client.unsafe(...query);
    if (running.push(sent) > MOST_AT_ONCE) running.shift();
    return sent;
  };
  return new Proxy(client, {
    get: (target, name) => (name === "unsafe" ? unsafe : Reflect.get(target, name)),
  });
}

/**
 * `session`: whose connections keep their server process, where those of `client` may not; the change feed listens there, and looks
 * as often as `around` says.
 */
export function postgresDatabase(client: Sql, session = client, around = lookAround): Database {
  const orm = drizzle(client, { casing: "snake_case" });
  let heard = () => {};
  const rows = createRowChanges(orm as unknown as Orm, FED_KINDS, () => performance.now(), VERSION_PREFIX);
  const changes = createChangeFeed({ client, session, rows, answered: () => heard(), around });

  async function run<T>(body: (tx: Orm) => Steps<T>): Promise<T> {
    let own: Orm | undefined;
    const result = await orm.transaction(async (tx) => {
      own = tx as unknown as Orm;
      const steps = body(own);
      let state = steps.next();
      while (!state.done) state = steps.next(await state.value);
      return state.value;
    });
    if (own) changes.committed(own);
    return result;
  }

  async function runAtOnce<T>(body: (tx: Orm) => Steps<T>): Promise<T> {
    const steps = body(orm as unknown as Orm);
    const first = steps.next();
    if (first.done) return first.value;
    const end = steps.next(await sendAtOnce(client, (first.value as Flight).parts));
    if (!end.done) throw new Error("what is sent at once is one flight");
    return end.value;
  }

  return {
    kind: "postgres",
    client: undefined,
    t: schema,
    orm: orm as unknown as Orm,
    reader: orm as unknown as Orm,
    bulkReader: orm as unknown as Orm,
    readerUntil: (signal) => drizzle(cancelledBy(client, signal), { casing: "snake_case" }) as unknown as Orm,
    giveBack: async () => 0,
    async atomic(body, way) {
      for (let tries = 1; ; tries++) {
        try {
          return await (way === "at once" ? runAtOnce(body) : run(body));
        } catch (error) {
          if (tries >= MAX_TRIES || !RETRYABLE.has(sqlState(error))) throw error;
        }
      }
    },
    announce: (kind, ids) => changes.announce(kind, ids),
    announceSteps: (tx, kind, ids) => changes.announceSteps(tx, kind, ids),
    carryChanges: (carrier) => changes.carryBy(carrier),
    onChange: (kind, listener) => changes.onChange(kind, listener),
    beforeQuery: () => {},
    onAnswer(listener) {
      heard = listener;
    },
    use() {
      around.use();
      return changes.catchingUp();
    },
    async ping() {
      await client.unsafe("select 1");
      return true;
    },
    async close() {
      changes.close();
      await Promise.all([
        client.end({ timeout: 2 }),
        ...(session === client ? [] : [session.end({ timeout: 2 })]),
      ]);
    },
  };
}
