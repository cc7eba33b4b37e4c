// What stands between this process and PostgreSQL: nothing, or a pooler (pgbouncer) and how it hands out server connections.
// Refuses to guess from names and ports: the numbers of the server processes that answer tell it.
import postgres from "postgres";
import type { Sql } from "postgres";

/**
 * `session`: a connection keeps its server process, so that everything works as without a pooler. `transaction`: each
 * transaction may meet another one: no LISTEN, no named statements, no session locks. `statement`: not even transactions.
 */
export type PoolerMode = "none" | "session" | "transaction" | "statement";

/** What one question tells of an address. */
export interface Reached {
  /** The process number that was announced when the connection began is not the one that answers. */
  hasPooler: boolean;
  /** Of a server and one of its databases alone, until it is started again. */
  server: string;
}

const ANSWER_MS = 5000;
const SERVER =
  "select pg_backend_pid() as pid, current_database() || ' ' || extract(epoch from pg_postmaster_start_time())::text as server";

/** Rejects with the driver's error where nobody answers. */
export async function reach(client: Sql): Promise<Reached> {
  const found = await client.unsafe<{ pid: number; server: string }[]>(SERVER);
  // A pooler announces a number of its own, by which it finds what somebody wants to cancel.
  return { hasPooler: found[0]?.pid !== found.state.pid, server: found[0]?.server ?? "" };
}

/** `reach` by a connection of its own. */
export async function reachOnce(url: string): Promise<Reached> {
  const client = open(url, 1);
  try {
    return await reach(client);
  } finally {
    await client.end({ timeout: 0.1 });
  }
}

function open(url: string, max: number): Sql {
  return postgres(url, { max, onnotice: () => {}, connect_timeout: 5, prepare: false });
}

/** A pooler that keeps a connection waiting for a server process of its own. */
class PoolerExhausted extends Error {
  constructor() {
    super(
      `the pooler gave two connections no server within ${ANSWER_MS / 1000} seconds: ` +
        "its pool_size must be at least DATABASE_POOL + 1 for each process of each node",
    );
  }
}

/** Asks by two connections of its own. Throws PoolerExhausted, and the driver's error where nobody answers. */
export async function poolerMode(url: string): Promise<PoolerMode> {
  const client = open(url, 2);
  const limit = Promise.withResolvers<never>();
  const timer = setTimeout(() => limit.reject(new PoolerExhausted()), ANSWER_MS);
  try {
    return await Promise.race([modeOf(client), limit.promise]);
  } finally {
    clearTimeout(timer);
    await client.end({ timeout: 0.1 });
  }
}

async function modeOf(client: Sql): Promise<PoolerMode> {
  if (!(await reach(client)).hasPooler) return "none";
  const [one, two] = await Promise.all([client.reserve(), client.reserve()]);
  const asked = new Map([one, two].map((connection) => [connection, new Set<number>()]));
  const ask = async (connection: typeof one): Promise<void> => {
    const [row] = await connection<{ pid: number }[]>`select pg_backend_pid() as pid, pg_sleep(0.02)`;
    if (row) asked.get(connection)?.add(row.pid);
  };
  // One after the other they share a server process where they may, at the same time they cannot.
  await ask(one);
  await ask(two);
  await Promise.all([ask(one), ask(two)]);
  const seen = [...asked.values()];
  const processes = new Set(seen.flatMap((pids) => [...pids]));
  const isSession = seen.every((pids) => pids.size === 1) && processes.size === 2;
  if (isSession) return "session";
  return (await takesTransactions(one)) ? "transaction" : "statement";
}

async function takesTransactions(connection: Sql): Promise<boolean> {
  try {
    await connection.unsafe("begin");
    await connection.unsafe("rollback");
    return true;
  } catch {
    return false;
  }
}
