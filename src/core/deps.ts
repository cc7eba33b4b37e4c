// What core, relay and api work with: one bundle of services, built once in src/app.ts and passed down.
// Holds types only, so that any room may name a service without importing its implementation.
import type { Database, Orm, Steps } from "../db/database.ts";
import type { Valkey } from "../db/valkey.ts";
import type { Language } from "../shared/enums.ts";
import type { InboxKind, InboxParams, InboxTone, SaidItem } from "../shared/inbox.ts";
import type { Guard } from "../net/guard.ts";
import type { Reach } from "../net/reach.ts";
import type { AffinityStore } from "./channels/affinity.ts";
import type { Catalogue } from "./channels/catalogue.ts";
import type { CapState } from "./channels/caps.ts";
import type { NodePlace } from "./kit/node-share.ts";
import type { RateClaim } from "./limits/shared-rates.ts";
import type { LimitBook } from "./limits/limits.ts";
import type { KeyLimits, LimitFields } from "../shared/key-limits.ts";
import type { CostBook } from "./costs/book.ts";
import type { Keyring } from "./channels/keyring.ts";
import type { Picker } from "./channels/picker.ts";
import type { PaymentRail } from "./payments/rail.ts";
import type { OptionStore } from "./options/store.ts";
import type { PriceBook } from "./prices/price-book.ts";
import type { Routing } from "./channels/routing.ts";
import type { Sealer } from "./kit/seal.ts";
import type { Maintenance } from "./site/maintenance.ts";
import type { NodeFigures } from "./site/node-figures.ts";
import type { Sessions } from "./users/sessions.ts";
import type { Observer } from "../observe/observer.ts";

/** Passed in, so that tests never sleep. */
export interface Clock {
  /** The time of day in Unix milliseconds, for what is stored or shown: an operator or a time server may set it. */
  nowMs(): number;
  /** Milliseconds since some moment, for every duration in memory: nobody can set it, it never goes back. */
  monotonicMs(): number;
}

export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** A user's own settings, parsed from the JSON text of the row. */
export interface UserSetting {
  notify_type?: "email" | "webhook";
  quota_warning_threshold?: number;
  webhook_url?: string;
  /** Sealed; webhook-secret.ts alone opens it. */
  webhook_secret_sealed?: string;
  notification_email?: string;
  accept_unset_model_ratio_model?: boolean;
  /** † Of notices; absent: Chinese. */
  language?: Language;
}

/** A user as the hot path sees it. One object per user and process; fields are updated in place. */
export interface UserAccount {
  readonly id: number;
  username: string;
  displayName: string;
  email: string;
  role: number;
  status: number;
  /** In force: of a running plan, else the account's own. */
  group: string;
  /** Budget and limits of their own; undefined: those of the group. */
  limits: LimitFields | undefined;
  setting: UserSetting;
  sessionVersion: number;
  deleted: boolean;
  /** A payment is disputed, or an administrator marked it: its keys are refused. */
  flagged: boolean;
  /** Has one-time codes or a passkey. */
  secondFactor: boolean;
  /** Durable balance as last known here. */
  quota: number;
  /** Of `quota` what calls must leave alone: the wallet, while a plan without overflow runs. */
  planFloor: number;
  /** When a plan's period ends or begins next, Unix seconds; 0: no plan. */
  planUntil: number;
  usedQuota: number;
  requestCount: number;
  /** What this process holds back beside `quota`: open holds in memory, and charges beyond what left it durably. */
  reserved: number;
  /** Charges that are settled but not yet part of `quota`. */
  pending: number;
  /** What durable holds give back once their settlement reaches the tables; `quota` lacks it until then. */
  returning: number;
  /** Calls of this process that hold something, in memory or durably. */
  openCalls: number;
}

/** An API key as the hot path sees it. */
export interface TokenAccount {
  readonly id: number;
  readonly userId: number;
  readonly user: UserAccount;
  name: string;
  /** `abc***xyz`, for messages that name the key. */
  masked: string;
  status: number;
  /** Unix seconds, -1 = never. */
  expiredTime: number;
  unlimitedQuota: boolean;
  remainQuota: number;
  usedQuota: number;
  /** The three as in UserAccount, beside `remainQuota`. */
  reserved: number;
  pending: number;
  returning: number;
  /** Undefined: neither budget nor limits. */
  keyLimits: KeyLimits | undefined;
  /** Undefined: no model limits. */
  modelLimits: ReadonlySet<string> | undefined;
  /** Empty: no restriction. Valid addresses or CIDR ranges only. */
  allowIps: readonly string[];
  group: string;
  /** The groups that the automatic choice of this key tries; empty: the site's. */
  autoGroups: readonly string[];
  /** The most that one call may cost, in units; 0 = as much as it takes. */
  maxQuota: number;
}

/** In-memory accounts: filled on first use, corrected by each write and by other nodes' announcements. */
export interface Accounts {
  /** Key without `sk-`. Undefined for unknown, deleted and foreign keys alike. A known key answers at once. */
  tokenByKey(key: string): TokenAccount | undefined | Promise<TokenAccount | undefined>;
  /** Includes disabled users; undefined for unknown and deleted ones. */
  user(id: number): UserAccount | undefined | Promise<UserAccount | undefined>;
  /** As memory has it, which may be old, or does not: no use of the process. */
  cachedUser(id: number): UserAccount | undefined;
  /** Undefined for unknown tokens, users without it, and deleted users. */
  userByAccessToken(accessToken: string): Promise<UserAccount | undefined>;
  /** Call after each committed change of a user row (also of several); re-reads and tells other nodes. */
  userChanged(id: number): Promise<void>;
  /** The same for many of one transaction, in one announcement. */
  usersChanged(ids: readonly number[]): Promise<void>;
  /** Call after each committed change of a token row. */
  tokenChanged(id: number): Promise<void>;
  /**
   * Call after a commit that moved nothing but balances and counters: re-reads here. Other nodes hear of it by what the tables
   * note, within a second; where the database is away before it was read, memory goes on with the figures before.
   */
  usersCharged(ids: readonly number[]): Promise<void>;
  /** The same of a key. */
  tokenCharged(id: number): Promise<void>;
}

/** What the ledger needs beyond the public face: it changes balances in place. */
export interface LedgerAccounts extends Accounts {
  /** The one object of this user in the process; a user that was evicted meanwhile is put back. */
  keepUser(user: UserAccount): UserAccount;
  keepToken(token: TokenAccount): TokenAccount;
  cachedToken(id: number): TokenAccount | undefined;
  /** Until the returned function is called, reads of these rows that are under way are not trusted. */
  beginWrite(userIds: Iterable<number>, tokenIds: Iterable<number>): () => void;
  /** False while the order of several overlapping writes leaves the figures in doubt, until the next clean read. */
  isCertain(userId: number): boolean;
  /** Who knows how long the database has been silent, and for how long no other node can have lived (0: one does), in milliseconds. */
  hearBy(lastHeard: () => { silentMs: number; aloneMs: number }): void;
  /** Called, and waited for, where an account is asked for whose plans have a moment behind them. */
  onPlanDue(renew: (userId: number) => Promise<void>): void;
  /** Re-reads every active account: the safety net beside announcements, run each second on PostgreSQL. */
  refresh(): Promise<void>;
  close(): void;
}

/** A balance after a charge, as the tables have it. */
export interface ChargedBalance {
  id: number;
  quota: number;
  /** What this batch took. */
  charge: number;
}

/** Told by the ledger after each commit. Neither call throws or waits. */
export interface BalanceWatch {
  charged(balances: readonly ChargedBalance[]): void;
  credited(userIds: Iterable<number>): void;
}

/** What a provider keeps for a user under an id of its own (drizzle/schema.ts, remote_objects). */
export type RemoteObject = Database["t"]["remoteObjects"]["$inferSelect"];

/** Everything that is recorded of one finished call. */
/** What an upstream charges for a call, or for an attempt that failed. */
export interface UpstreamCost {
  /** Billionths of a dollar: whole, at least 0. */
  nanos: number;
  /** Nobody pays for it, though its group pays. */
  isLost: boolean;
}

/** What caches of prompts did for a call. */
export interface CacheUse {
  /** Prompt tokens that a cache could hold, and those that came from one. */
  input: number;
  read: number;
  /** What it would have cost without, less what it cost; whole units, below 0 where writing cost more. */
  saved: number;
  /** Of affinity: the rule that named its session, and where it was served. Absent: none did. */
  rule?: string;
  state?: "new" | "kept" | "switched";
}

export interface Settlement {
  /** Whole units, >= 0. */
  quota: number;
  promptTokens: number;
  completionTokens: number;
  modelName: string;
  channelId: number;
  /** Of the channel's key that served it; absent or 0: it was asked without one. */
  keyId?: number | undefined;
  group: string;
  isStream: boolean;
  useTimeMs: number;
  /** Sentence of the log row. */
  content: string;
  /** Serialised into the log row's `other`. */
  other: Record<string, unknown>;
  /** Overrides the token's name: `playground-<group>`, `模型测试`. */
  tokenName?: string;
  /** What the provider keeps of the call: its row comes to the tables with the charge, or neither does. */
  object?: RemoteObject | undefined;
  /** Absent: unknown. */
  cost?: UpstreamCost | undefined;
  /** Absent: it had no prompt that a cache could hold. */
  cache?: CacheUse | undefined;
  /** The moment that it counts at, Unix milliseconds, where the caller keeps it to find it again; else now. */
  atMs?: number;
}

/** An amount held back for one call. Exactly one of settle and release takes effect; repeats do nothing. */
export interface Reservation {
  readonly requestId: string;
  /** Held back so far: the first hold and every step that lengthened it. */
  readonly amount: number;
  /**
   * Lengthens the hold by up to `more` whole units (> 0) and answers how many were added: `more` where user and key can
   * pay it, what they can where it is less, 0 at nothing and once the call is closed. At once where memory decides; never
   * rejects. `tokens`: so many more may be delivered with it, for limits of tokens a minute.
   */
  grow(more: number, tokens?: number): number | Promise<number>;
  /** Charges, logs and rolls up, all of it or nothing. Resolves when that is durable in the journal; the tables follow.
   * With DURABILITY=database it resolves when PostgreSQL has it, or the wait for that is over.
   * Rejects with `ledger_down`, and charges nothing, when it cannot be written. Never rejects for
   * lack of balance: what was delivered is charged, the balance may go below zero once. */
  settle(settlement: Settlement): Promise<void>;
  release(): Promise<void>;
}

export interface ReserveRequest {
  requestId: string;
  user: UserAccount;
  /** Undefined for the playground: only the user's balance is charged. */
  token: TokenAccount | undefined;
  amount: number;
  /** Where less than `amount` is available, that is held back in its place, as long as it is not below this. */
  least?: number;
  /** Units of `amount` that are held for the case that the prompt is longer than it seems: how near zero is goes by the rest. */
  unsure?: number;
  /** Tokens that it reads, and with an answer of the usual length: what limits of tokens a minute count at first. */
  promptTokens?: number;
  tokens?: number;
  /** Belongs to a call that has entered: it is no request and no call of its own, and budgets alone are looked at. */
  isPart?: boolean;
  /** Under the rate of the site, which all processes are asked about together with its other limits. */
  rate?: RateClaim | undefined;
}

type CreditKind =
  | "setup"
  | "register"
  | "invite"
  | "redeem"
  | "payment"
  | "admin"
  | "affiliate"
  | "refund"
  | "import"
  | "plan"
  | "plan_end"
  | "plan_buy";

export interface Credit {
  userId: number;
  /** Signed whole units. */
  amount: number;
  kind: CreditKind;
  /** Unique per kind where not empty: a second credit with the same ref fails the transaction. */
  ref?: string;
}

/** A log row that is not a settled call: top-up, manage, system, error. */
export interface LogEntry {
  type: number;
  userId: number;
  username: string;
  content: string;
  quota?: number;
  channelId?: number;
  tokenId?: number;
  tokenName?: string;
  modelName?: string;
  group?: string;
  isStream?: boolean;
  useTimeMs?: number;
  requestId?: string;
  other?: Record<string, unknown>;
}

/** The only writer of quota columns. */
export interface Ledger {
  /** Reads what budgets of these payers need; undefined where nothing has to be read. Call before `available`. */
  ready(request: Pick<ReserveRequest, "user" | "token">): Promise<void> | undefined;
  /** What user and key can still pay beside all open holds, as this process knows it; may be negative. */
  available(request: Pick<ReserveRequest, "user" | "token">): number;
  /**
   * Holds the amount back from user and token, or throws a Failure of kind quota (codes `user_quota_empty`,
   * `user_quota_short`, `token_quota_short`; params have A and B as formatted quota), or of kind limit (`quota_held`, 429
   * with Retry-After) where only open holds are in the way.
   */
  reserve(request: ReserveRequest): Reservation | Promise<Reservation>;
  /**
   * Runs the body as one transaction in which balances may be credited; in-memory balances follow after the commit.
   * Use it whenever a row change and a credit belong together (redeem a code, finish a payment).
   */
  atomic<T>(body: (tx: Orm, credit: (entry: Credit) => Steps<void>) => Steps<T>): Promise<T>;
  /**
   * Call in the body of `atomic` for a user whose row changes by more than balances and counters: from the commit on memory decides
   * nothing by what it knew of them, also where the database is away by then, and other nodes are told.
   */
  changed(tx: Orm, userId: number): void;
  /** Sets a limited or unlimited token's remaining quota (create and edit), keeping the audit base. */
  setTokenQuota(tx: Orm, tokenId: number, remainQuota: number): Steps<void>;
  /** Queues a log row without money; written with the next batch. Resolves when durable. */
  log(entry: LogEntry): Promise<void>;
  /** Enters a cost that nobody pays for into the sums: of a failed attempt, which leaves its row by itself. */
  bear(entry: LogEntry, cost: UpstreamCost): Promise<void>;
  /** Log row inside a transaction of the caller. */
  logSteps(tx: Orm, entry: LogEntry): Steps<void>;
  /** Call when a key is met whose time is over: its status becomes expired, durably and at once in memory. */
  tokenExpired(token: TokenAccount): Promise<void>;
  /** This node among those that live now, as last heard. */
  place(): NodePlace;
  /**
   * Resolves when the tables have what was settled so far, for whoever may be asked for it on another node next; without
   * it where PostgreSQL does not take it within a few seconds (the journal has it, and it follows). At once on the
   * embedded database, whose every query brings in first what is settled. Never rejects.
   */
  entered(): Promise<void>;
  /** Waits until everything queued is durable (drain at SIGTERM, tests). */
  flush(): Promise<void>;
  /** Flushes and stops timers. */
  close(): Promise<void>;
}

/** What needs a person: a kind of shared/inbox.ts, what of it, and what its sentence names. */
export interface InboxCause {
  kind: InboxKind;
  /** A channel's id, a model's name, a node; absent where the site has only one. */
  subject?: string;
  params?: InboxParams;
}

/** What is open and not put off, as the bell shows it. */
export interface InboxSummary {
  count: number;
  tone: InboxTone;
  newest: (SaidItem & { id: number })[];
}

/** The operator's inbox. Reports return at once and never throw: they are written soon, or once the database is back. */
export interface Inbox {
  /** It happened, so many times: opens the item or counts on. */
  raise(cause: InboxCause, times?: number): void;
  /** It lasts: opens the item where it is not open; nothing is counted. */
  keep(cause: InboxCause): void;
  /** The cause is gone; nothing happens where nothing is open. `tellsBack` false: root need not hear of it. */
  gone(kind: InboxKind, subject?: string, tellsBack?: boolean): void;
  /** What of the kind is open, as this node knows it. */
  subjects(kind: InboxKind): string[];
  /** What the open items of the kind say. */
  params(kind: InboxKind): InboxParams[];
  summary(): InboxSummary;
  /** Call after each committed change of these rows by hand. */
  changed(ids: readonly number[]): Promise<void>;
}

/** The models that ship with the providers' catalogue: data, so that core and api need not know providers. */
interface ModelPresets {
  /** By channel type; null where the type chooses its own model. */
  byType: Readonly<Record<string, readonly string[] | null>>;
  /** Each model once. */
  all: readonly { id: string; owner: string }[];
}

/** Who makes a model, from the providers' tables: data, for the same reason. */
interface Vendors {
  /** The maker's id; "" where the name says nothing. */
  of(model: string): string;
  title(id: string, language: Language): string;
}

/** The services every room may use. */
export interface Deps {
  db: Database;
  /** What processes of the site share beside the database; undefined: there is none, and nothing but exactness is missing. */
  valkey: Valkey | undefined;
  clock: Clock;
  logger: Logger;
  seal: Sealer;
  options: OptionStore;
  accounts: Accounts;
  /** Budgets and limits of keys and users. */
  limits: LimitBook;
  sessions: Sessions;
  ledger: Ledger;
  routing: Routing;
  maintenance: Maintenance;
  inbox: Inbox;
  prices: PriceBook;
  /** What upstreams charge. */
  costs: CostBook;
  /** The ways that money comes in by; open or not. */
  rails: readonly PaymentRail[];
  catalogue: Catalogue;
  vendors: Vendors;
  presets?: ModelPresets;
  /** The only way out to addresses that people typed. */
  guard: Guard;
  /** Where channels may connect. */
  reach: Reach;
  /** Which channel serves, and how the channels are. */
  picker: Picker;
  /** Turns and rests of channels with several keys. */
  keyring: Keyring;
  /** Which channel and key sessions and stored responses belong to. */
  affinity: AffinityStore;
  /** Places under the caps of channels and keys. */
  caps: CapState;
  /** What is told to those who watch the product. */
  observer: Observer;
  /** How this node is; undefined as long as it starts, and where the system does not say. Never rejects. */
  ownFigures: () => Promise<NodeFigures | undefined>;
  /** Unix seconds of the start of the process. */
  startedAt: number;
  version: string;
  dataDir: string;
  /** Random name of this process's data directory, kept in it. */
  nodeId: string;
  trustedProxies: readonly string[];
}
