// The books as they stand in either database, read from outside: rows of the log, balances, what is held.
// Refuses to write, and to ask the product.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import postgres from "postgres";

export interface BookRow {
  id: number;
  type: number;
  userId: number;
  tokenId: number;
  requestId: string;
  model: string;
  quota: number;
  input: number;
  output: number;
  content: string;
  other: Record<string, unknown>;
}

interface Balance {
  id: number;
  quota: number;
  used: number;
  requests: number;
}

export interface Books {
  /** Rows of the log, oldest first. */
  log(type?: number): Promise<BookRow[]>;
  balance(userId: number): Promise<Balance>;
  balances(): Promise<Balance[]>;
  /** Any question, rows as objects. */
  ask(sql: string): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

export function openBooks(place: { dataDir: string; databaseUrl?: string | undefined }): Books {
  const { databaseUrl } = place;
  const sql = databaseUrl
    ? postgres(databaseUrl, { max: 1, onnotice: () => {}, idle_timeout: 2 })
    : undefined;

  async function ask(text: string): Promise<Record<string, unknown>[]> {
    if (sql) return [...(await sql.unsafe(text))];
    // Opened anew each time: a file that was exchanged or deleted is met as it is now.
    const file = new Database(join(place.dataDir, "weir.sqlite"), { readonly: true });
    try {
      return file.query(text).all() as Record<string, unknown>[];
    } finally {
      file.close();
    }
  }
  const balanceOf = (row: Record<string, unknown>): Balance => ({
    id: Number(row["id"]),
    quota: Number(row["quota"]),
    used: Number(row["used_quota"]),
    requests: Number(row["request_count"]),
  });
  const balances = async () =>
    (await ask("select id, quota, used_quota, request_count from users order by id")).map(balanceOf);
  return {
    ask,
    balances,
    async log(type) {
      const where = type === undefined ? "" : `where type = ${type}`;
      const rows = await ask(`select * from logs ${where} order by id`);
      return rows.map((row) => ({
        id: Number(row["id"]),
        type: Number(row["type"]),
        userId: Number(row["user_id"]),
        tokenId: Number(row["token_id"]),
        requestId: String(row["request_id"]),
        model: String(row["model_name"]),
        quota: Number(row["quota"]),
        input: Number(row["prompt_tokens"]),
        output: Number(row["completion_tokens"]),
        content: String(row["content"]),
        other: JSON.parse((row["other"] as string) || "{}") as Record<string, unknown>,
      }));
    },
    async balance(userId) {
      const found = (await balances()).find(({ id }) => id === userId);
      if (!found) throw new Error(`no user ${userId}`);
      return found;
    },
    async close() {
      await sql?.end();
    },
  };
}
