// Rows of users and keys as accounts are read from them: a user's repeated while a write overtakes it, and waited for while
// PostgreSQL is away.
import { and, eq, isNull, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import { READ_WAIT_MS, readOrRefuse } from "../kit/database-failure.ts";
import type { InSilence } from "../kit/database-failure.ts";
import { within } from "../kit/deadline.ts";
import type { ReadsInFlight } from "./account-reads.ts";
import type { TokenRow, UserRow } from "./account-rows.ts";

/** A row that is written at every one of them is taken as it was read last. */
export const MAX_READS = 5;

export interface AccountQueries {
  user(id: number, inSilence?: InSilence): Promise<UserRow | undefined>;
  /** By the hash of the key, or of the one before it; as its row stands when it is asked for: whoever reads it looks for writes meanwhile. */
  token(keyHash: string): Promise<TokenRow | undefined>;
  tokenById(id: number): Promise<TokenRow | undefined>;
  userIdByAccessToken(hash: string): Promise<number | undefined>;
  /** Both lists in one go, as they stand now. */
  many(userIds: readonly number[], tokenIds: readonly number[]): Promise<[UserRow[], TokenRow[]]>;
}

/** `databaseWaitMs` is the longest wait for a database that is away. */
export function createAccountQueries(
  db: Database,
  reads: ReadsInFlight,
  databaseWaitMs: number,
): AccountQueries {
  const { users, tokens } = db.t;
  const isShared = db.kind === "postgres";

  /** A query that never comes back must not block its key for ever. */
  function once<T>(query: PromiseLike<T>): PromiseLike<T> {
    return isShared ? within(READ_WAIT_MS, Promise.resolve(query)) : query;
  }

  /** For what no memory knows: waits for the database, then its caller gets 503. */
  function answer<T>(query: () => PromiseLike<T>, inSilence?: InSilence): Promise<T> {
    return readOrRefuse(db, databaseWaitMs, query, inSilence);
  }

  /** One text parameter, so that the statement stays the same whatever the number of ids. */
  function idList(ids: readonly number[]): SQL {
    return isShared
      ? sql`(select value::bigint from json_array_elements_text(${JSON.stringify(ids)}::json))`
      : sql`(select value from json_each(${JSON.stringify(ids)}))`;
  }

  async function readToken(where: SQL | undefined): Promise<TokenRow | undefined> {
    const [row] = await answer(() => db.orm.select().from(tokens).where(where));
    return row;
  }

  return {
    async user(id, inSilence) {
      for (let tries = 1; ; tries++) {
        const { row, isOld } = await reads.track(async (overtaken) => {
          const rows = await answer(() => db.orm.select().from(users).where(eq(users.id, id)), inSilence);
          return { row: rows[0], isOld: overtaken.user(id) };
        });
        if (!isOld || tries >= MAX_READS) return row;
      }
    },
    token: (keyHash) => readToken(or(eq(tokens.keyHash, keyHash), eq(tokens.previousKeyHash, keyHash))),
    tokenById: (id) => readToken(eq(tokens.id, id)),
    async userIdByAccessToken(hash) {
      const [row] = await db.orm
        .select({ id: users.id })
        .from(users)
        .where(and(eq(users.accessTokenHash, hash), isNull(users.deletedAt)));
      return row?.id;
    },
    async many(userIds, tokenIds) {
      const readUsers = db.orm
        .select()
        .from(users)
        .where(sql`${users.id} in ${idList(userIds)}`);
      const readTokens = db.orm
        .select()
        .from(tokens)
        .where(sql`${tokens.id} in ${idList(tokenIds)}`);
      return once(Promise.all([readUsers, readTokens]));
    },
  };
}
