// A source on a MySQL, MariaDB or PostgreSQL server: one connection, one read-only snapshot from beginning to end.
// Refuses with the server's own words where it lets nobody in.
import { SQL } from "bun";
import { SourceRefused, sourceName } from "../dsn.ts";
import type { SourceAddress } from "../dsn.ts";
import type { SourceDriver, SourceRow } from "../source.ts";

type NetworkAddress = Exclude<SourceAddress, { engine: "sqlite" }>;

const CONNECT_SECONDS = 10;

function connectionTo(address: NetworkAddress): SQL {
  const common = { max: 1, connectionTimeout: CONNECT_SECONDS, idleTimeout: 0 } as const;
  if (address.engine === "postgres") return new SQL(address.url, common);
  const { username, password, database, host, port, socket, tls } = address;
  return new SQL({
    adapter: "mysql",
    username,
    password,
    database,
    ...(socket === undefined ? { hostname: host ?? "", port: port ?? 0 } : { path: socket }),
    ...(tls ? { tls: true } : {}),
    ...common,
  });
}

const SNAPSHOT: Readonly<Record<NetworkAddress["engine"], readonly string[]>> = {
  // What it reads is what stood there when it began, and the server itself refuses a write.
  postgres: ["begin isolation level repeatable read read only"],
  mysql: [
    "set session transaction isolation level repeatable read",
    "start transaction with consistent snapshot, read only",
  ],
};

const COLUMNS: Readonly<Record<NetworkAddress["engine"], string>> = {
  postgres:
    "select c.table_name as t, c.column_name as c from information_schema.columns c where c.table_schema = current_schema()",
  mysql:
    "select c.table_name as t, c.column_name as c from information_schema.columns c where c.table_schema = database()",
};

export async function openNetworkSource(address: NetworkAddress): Promise<SourceDriver> {
  const { engine } = address;
  const tables = new Map<string, Set<string>>();
  let sql: SQL | undefined;
  try {
    const pool = connectionTo(address);
    sql = pool;
    const connection = await pool.reserve();
    for (const statement of SNAPSHOT[engine]) await connection.unsafe(statement);
    const query = async (text: string): Promise<SourceRow[]> => [
      ...((await connection.unsafe(text)) as SourceRow[]),
    ];
    for (const row of await query(COLUMNS[engine])) {
      const table = String(row["t"]).toLowerCase();
      tables.set(table, (tables.get(table) ?? new Set()).add(String(row["c"]).toLowerCase()));
    }
    return {
      engine,
      quote: engine === "mysql" ? "`" : '"',
      tables,
      query,
      async close() {
        try {
          await connection.unsafe("rollback");
          await connection.release();
        } catch {
          // It was lost, which whoever read has heard of.
        }
        await pool.close({ timeout: 1 }).catch(() => undefined);
      },
    };
  } catch (error) {
    await sql?.close({ timeout: 1 }).catch(() => undefined);
    throw new SourceRefused(
      `${sourceName(address)} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
