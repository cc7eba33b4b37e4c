// Books for tests: a migrated database of either kind with accounts and ledger on it, and rows to work with.
// Refuses real time: the clock stands still until a test moves it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAccounts } from "../../../src/core/users/accounts.ts";
import type { AccountLimits } from "../../../src/core/users/account-cache.ts";
import type {
  LedgerAccounts,
  Logger,
  Settlement,
  TokenAccount,
  UserAccount,
  BalanceWatch,
} from "../../../src/core/deps.ts";
import { audit } from "../../../src/core/ledger/audit.ts";
import type { Durability } from "../../../src/core/ledger/durability.ts";
import { openJournal } from "../../../src/core/ledger/journal/journal.ts";
import type { Journal } from "../../../src/core/ledger/journal/journal.ts";
import type { LedgerItem } from "../../../src/core/ledger/items.ts";
import { createLedger } from "../../../src/core/ledger/ledger.ts";
import type { LedgerService } from "../../../src/core/ledger/ledger.ts";
import { createOptions } from "../../../src/core/options/store.ts";
import type { OptionStore } from "../../../src/core/options/store.ts";
import { createSealer, sha256Hex } from "../../../src/core/kit/seal.ts";
import { connect } from "../../../src/db/connect.ts";
import { q } from "../../../src/db/database.ts";
import type { LookAround } from "../../../src/db/look-around.ts";
import type { Database } from "../../../src/db/database.ts";
import { migratePostgres } from "../../../src/db/migrate.ts";
import { openPostgres } from "../../../src/db/postgres.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import type { DatabaseKind, PostgresTemplate, TestDatabase } from "../../support/postgres.ts";
import { testClock } from "../../support/clock.ts";
import type { TestClock } from "../../support/clock.ts";

/** Of one look at the balance. */
const MAX_FLUSHES = 20;

export const MIGRATED: PostgresTemplate = {
  name: "weir",
  async build(url) {
    const client = openPostgres(url, 2);
    await migratePostgres(client);
    await client.end();
  },
};

export { testClock };

export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** One process's view of a database. */
export interface Books {
  db: Database;
  clock: TestClock;
  options: OptionStore;
  accounts: LedgerAccounts;
  ledger: LedgerService;
  dataDir: string;
  addUser(quota: number): Promise<UserAccount>;
  /** Unlimited without an amount. */
  addToken(user: UserAccount, remainQuota?: number): Promise<TokenAccount>;
  addChannel(): Promise<number>;
  /** The user as this node sees it. */
  user(id: number): Promise<UserAccount>;
  /** Everything settled is in the database, and no sum is off. */
  expectBalanced(): Promise<void>;
  close(): Promise<void>;
}

export interface OpenOptions {
  databaseUrl: string | undefined;
  dataDir: string;
  nodeId?: string;
  clock?: TestClock;
  logger?: Logger;
  limits?: Partial<AccountLimits>;
  databaseWaitMs?: number;
  durability?: Durability;
  refreshMs?: number;
  monotonicMs?: () => number;
  /** Whose timer brings the rounds of accounts. */
  around?: LookAround;
  balances?: BalanceWatch;
  /** Stands before the journal, for tests of a full disk. */
  wrapJournal?: (journal: Journal<LedgerItem>) => Journal<LedgerItem>;
  /** Stands between ledger and database, for tests of failures. */
  wrap?: (db: Database) => Database;
}

let names = 0;

export async function openBooks(open: OpenOptions): Promise<Books> {
  async function userOf(id: number): Promise<UserAccount> {
    const user = await accounts.user(id);
    if (!user) throw new Error(`no user ${id}`);
    return user;
  }

  const { dataDir } = open;
  const clock = open.clock ?? testClock();
  const logger = open.logger ?? silent;
  const real = await connect({ dataDir, databaseUrl: open.databaseUrl ?? "" });
  const db = open.wrap?.(real) ?? real;
  const options = await createOptions(db, createSealer("a secret for tests"));
  const { limits, refreshMs, databaseWaitMs, monotonicMs } = open;
  const accounts = await createAccounts({
    db,
    clock,
    logger,
    ...(limits ? { limits } : {}),
    ...(refreshMs === undefined ? {} : { refreshMs }),
    ...(open.databaseWaitMs === undefined ? {} : { databaseWaitMs: open.databaseWaitMs }),
    ...(open.around ? { around: open.around } : {}),
  });
  const nodeId = open.nodeId ?? "node-a";
  const ledger = await createLedger({
    db,
    clock,
    logger,
    options,
    accounts,
    dataDir,
    nodeId,
    ...(open.balances ? { balances: open.balances } : {}),
    ...(open.wrapJournal ? { journal: open.wrapJournal(openJournal<LedgerItem>(dataDir, logger)) } : {}),
    ...(databaseWaitMs === undefined ? {} : { databaseWaitMs }),
    ...(monotonicMs ? { monotonicMs } : {}),
    ...(open.durability ? { durability: open.durability } : {}),
  });
  const { users, tokens, channels } = db.t;
  return {
    db,
    clock,
    options,
    accounts,
    ledger,
    dataDir,
    async addUser(quota) {
      const id = await ledger.atomic(function* (tx, credit) {
        const [row] = yield* q(
          tx
            .insert(users)
            .values({ username: `user${++names}` })
            .returning({ id: users.id }),
        );
        if (!row) throw new Error("no user row");
        if (quota !== 0) yield* credit({ userId: row.id, amount: quota, kind: "import" });
        return row.id;
      });
      return userOf(id);
    },
    async addToken(user, remainQuota) {
      const key = `key${++names}`;
      const id = await db.atomic(function* (tx) {
        const [row] = yield* q(
          tx
            .insert(tokens)
            .values({
              userId: user.id,
              name: key,
              keyHash: sha256Hex(key),
              keySealed: "",
              keyHead: "abcd",
              keyTail: "wxyz",
              unlimitedQuota: remainQuota === undefined,
            })
            .returning({ id: tokens.id }),
        );
        if (!row) throw new Error("no token row");
        yield* ledger.setTokenQuota(tx, row.id, remainQuota ?? 0);
        return row.id;
      });
      await accounts.tokenChanged(id);
      const token = await accounts.tokenByKey(key);
      if (!token) throw new Error("no token account");
      return token;
    },
    async addChannel() {
      const [row] = await db.orm.insert(channels).values({ name: "channel" }).returning({ id: channels.id });
      if (!row) throw new Error("no channel row");
      return row.id;
    },
    user: userOf,
    async expectBalanced() {
      // A hold whose caller was told 503 may still be committed when the database is back; it is given back by an entry
      // of its own, which stands behind what the flush under way waits for.
      for (let flushes = 0; flushes === 0 || (ledger.backlog() > 0 && flushes < MAX_FLUSHES); flushes++)
        await ledger.flush();
      if (ledger.backlog() !== 0) throw new Error(`${ledger.backlog()} settlements are not in the database`);
      const { differences } = await audit(db);
      if (differences.length > 0) throw new Error(`books differ: ${JSON.stringify(differences)}`);
    },
    async close() {
      await ledger.close();
      accounts.close();
      await db.close();
    },
  };
}

/** Books on a database of their own; further nodes may join it. */
export interface TestBooks extends Books {
  database: TestDatabase;
  join(nodeId: string, more?: Pick<OpenOptions, "refreshMs" | "wrap" | "around">): Promise<Books>;
}

export async function startBooks(
  kind: DatabaseKind,
  options: Omit<OpenOptions, "databaseUrl" | "dataDir"> = {},
): Promise<TestBooks> {
  const database = await createTestDatabase(kind, MIGRATED);
  const { databaseUrl, dataDir } = database;
  const books = await openBooks({ ...options, databaseUrl, dataDir });
  const joined: { books: Books; dir: string }[] = [];
  return {
    ...books,
    database,
    async join(nodeId, more = {}) {
      const dir = mkdtempSync(join(tmpdir(), "weir-node-"));
      const node = await openBooks({ databaseUrl, dataDir: dir, nodeId, clock: books.clock, ...more });
      joined.push({ books: node, dir });
      return node;
    },
    async close() {
      for (const { books: node, dir } of joined) {
        await node.close();
        rmSync(dir, { recursive: true, force: true });
      }
      await books.close();
      await database.drop();
    },
  };
}

export function settlement(quota: number, fields: Partial<Settlement> = {}): Settlement {
  return {
    quota,
    promptTokens: 10,
    completionTokens: 5,
    modelName: "gpt-4o-mini",
    channelId: 1,
    group: "default",
    isStream: false,
    useTimeMs: 120,
    content: "模型倍率 1.00",
    other: { model_ratio: 1 },
    ...fields,
  };
}

let requests = 0;

export function requestId(): string {
  return `request-${++requests}`;
}
