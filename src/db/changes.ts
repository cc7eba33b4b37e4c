// The change feed between nodes on one PostgreSQL: what changed is announced by its id, each time with the next version
// of its kind; and of tables whose writers announce only behind their commit, what was written is asked for as well, so that
// a writer who is killed in between is no gap.
// Refuses to re-read everything unless a version is missing or a re-reading failed: then, and only then, listeners hear that
// something was lost.
import { sql } from "drizzle-orm";
import type { Sql } from "postgres";
import { randomBytes } from "node:crypto";
import { schema } from "../../drizzle/postgres.ts";
import { EVERYTHING, q } from "./database.ts";
import { DeadlineExceeded, within } from "./deadline.ts";
import { lookAround } from "./look-around.ts";
import type { Look, LookAround } from "./look-around.ts";
import type { ChangeKind, ChangeListener, Orm, Steps } from "./database.ts";
import type { RowChanges } from "./row-changes.ts";

const CHANNEL = "weir";
/** Of the carrier, which puts the site's prefix before it. */
const CARRIED_CHANNEL = "changes";
export const VERSION_PREFIX = "version:";
/**
 * A version that the table has, and that no announcement has brought in the time that one may be on its way, was lost: a
 * round, that time and the reading anew stay within a second.
 */
const POLL_MS = 500;
const ON_ITS_WAY_MS = 250;
/**
 * While the process rests: announcements are heard as quickly as ever, and what nobody announced matters to nobody until
 * somebody wakes it, who waits for a round. An answer within two seconds comes
 * before the five after which the database counts as away.
 */
const REST_MS = 2500;
/** A connection that is open and silent is given up then: the next round asks again. */
const ANSWER_MS = 5000;
/** PostgreSQL carries 8000 bytes; a longer list of ids is announced in several parts, each with a version of its own. */
const MAX_PAYLOAD_CHARS = 7000;

/**
 * A second, quicker way for announcements (src/db/valkey.ts), which may lose them, or bring them twice or out of order: the
 * versions in the table stay what counts.
 */
export interface ChangeCarrier {
  publish(channel: string, text: string): void;
  /** `onGap`: announcements may have passed unheard. Returns what ends it. */
  subscribe(channel: string, heard: (text: string) => void, onGap: () => void): () => void;
}

export interface ChangeFeed {
  announce(kind: ChangeKind, ids: readonly (string | number)[]): Promise<void>;
  announceSteps(tx: Orm, kind: ChangeKind, ids: readonly (string | number)[]): Steps<void>;
  /** The transaction is committed: what it announced goes out by the carrier too. */
  committed(tx: Orm): void;
  /** From now on announcements also go, and are heard, this way. */
  carryBy(carrier: ChangeCarrier): void;
  onChange(kind: ChangeKind, listener: ChangeListener): Promise<void>;
  /**
   * While the first round after a rest is under way, what resolves once whatever was committed before it is in force here, or
   * the database has not answered in time; never rejects.
   */
  catchingUp(): Promise<void> | undefined;
  close(): void;
}

interface Known {
  /** Last version whose change is in force here. */
  version: number;
  /** What the table said in the round before. */
  seen: number;
}

/** Which version of each kind is in force here, and who hears of the changes. */
interface Versions {
  readonly listeners: Map<ChangeKind, ChangeListener[]>;
  readonly known: Map<string, Known>;
  /** The table's versions are known; before that nothing can be called consecutive. */
  hasMarks: boolean;
  /** Kinds of which something could not be re-read: their version is heard, and not in force. */
  readonly failed: Set<string>;
  /** What listeners are at. */
  readonly rereading: Set<Promise<void>>;
}

/** Has every listener of the kind do its work; what it rejects with is its own to tell. */
function tell(
  { listeners, failed, rereading }: Versions,
  kind: string,
  work: (listener: ChangeListener) => void | Promise<void>,
): void {
  for (const listener of listeners.get(kind as ChangeKind) ?? []) {
    const done = work(listener);
    if (!done) continue;
    rereading.add(done);
    void done.catch(() => void failed.add(kind)).finally(() => rereading.delete(done));
  }
}

const lost = (versions: Versions, kind: string): void => tell(versions, kind, (listener) => listener.lost());

/** Kinds that are noted by triggers (drizzle/row-changes.ts); accounts and keys are asked for by who keeps them. */
export const FED_KINDS = ["channels", "costs", "inbox"] as const;

/**
 * One question for both: which versions the table has, and what was written of the tables that are noted, whether or not anybody
 * announces it. The first time it only learns where they stand. True where a version has not been heard of yet.
 */
async function look(
  versions: Versions,
  { rows, answerMs = ANSWER_MS }: ChangeFeedDeps,
  isFirst: boolean,
): Promise<boolean> {
  const before = new Map([...versions.known].map(([kind, { version }]) => [kind, version]));
  const { told, marks } = await within(answerMs, rows.look()).catch((error: unknown) => {
    // What an answer told that came too late is told to nobody.
    if (error instanceof DeadlineExceeded) FED_KINDS.forEach((kind) => versions.failed.add(kind));
    throw error;
  });
  const isBehind = compare(versions, before, marks);
  if (!isFirst) tellOfRows(versions, told);
  return isBehind;
}

function tellOfRows(
  versions: Versions,
  told: Readonly<Record<(typeof FED_KINDS)[number], number[]>> | undefined,
): void {
  for (const kind of FED_KINDS) {
    const ids = told?.[kind];
    if (!ids) lost(versions, kind);
    else if (ids.length > 0) tell(versions, kind, (listener) => listener.changed(ids.map(String)));
  }
}

interface Hearing {
  /** The name of this very process, whose writers have re-read already. */
  self: string;
  /**
   * PostgreSQL tells in the order of the commits, so that one who misses a version has lost it. On any other way a later one
   * may overtake it: then its ids are re-read, and the version waits until PostgreSQL tells it, or the table.
   */
  isInOrder: boolean;
}

/** Takes in an announcement. */
function hear(versions: Versions, { self, isInOrder }: Hearing, payload: string): void {
  const { known } = versions;
  const [kind = "", version = "", by = "", list = ""] = payload.split(" ");
  const value = Number(version);
  const state = known.get(kind);
  // What is not of this form was announced by somebody else.
  if (!Number.isSafeInteger(value) || value < 1 || (state && value <= state.version)) return;
  // A kind without a mark began with version 0.
  const isNext = state ? value === state.version + 1 : versions.hasMarks && value === 1;
  if (isNext || isInOrder) known.set(kind, { version: value, seen: Math.max(value, state?.seen ?? 0) });
  if ((!isNext && isInOrder) || list === EVERYTHING) return lost(versions, kind);
  if (by === self) return;
  const ids = list.split(",");
  tell(versions, kind, (listener) => listener.changed(ids));
}

/**
 * Compares the versions in the table with those that were heard, `before` the table was asked; the first time it only learns
 * them. True where one has not been heard of yet.
 */
function compare(
  versions: Versions,
  before: ReadonlyMap<string, number>,
  marks: ReadonlyMap<string, number>,
): boolean {
  const { known, hasMarks } = versions;
  let isBehind = false;
  for (const [key, value] of marks) {
    const kind = key.slice(VERSION_PREFIX.length);
    const state = known.get(kind);
    if (!state) {
      known.set(kind, { version: hasMarks ? 0 : value, seen: value });
      isBehind ||= hasMarks;
    } else if (state.version < state.seen || value < (before.get(kind) ?? 0)) {
      // Announcements may be on their way for one look, not for two. A table that knows less than was heard before it was
      // asked is an older one: the database was set back, and with it what is kept here.
      known.set(kind, { version: value, seen: value });
      lost(versions, kind);
    } else {
      state.seen = value;
      isBehind ||= state.version < value;
    }
  }
  versions.hasMarks = true;
  return isBehind;
}

/**
 * Begins to listen, once; what the answer takes beyond the deadline, rounds do not wait for. `again`: a lost connection has been
 * replaced, and what was announced meanwhile was not heard.
 */
function createEar(
  { session, answerMs = ANSWER_MS }: ChangeFeedDeps,
  heard: (payload: string) => void,
  again: () => void,
) {
  let isListening = false;
  let asked: Promise<unknown> | undefined;
  return async function listen(): Promise<void> {
    if (isListening) return;
    asked ??= session.listen(CHANNEL, heard, () => {
      if (isListening) again();
    });
    try {
      await within(answerMs, asked);
      isListening = true;
    } catch (error) {
      if (error instanceof DeadlineExceeded) return;
      asked = undefined;
      throw error;
    }
  };
}

/** Lists of ids, each short enough for one payload; an id that is too long by itself is told as everything of its kind. */
function partsOf(ids: readonly (string | number)[]): string[] {
  const parts: string[] = [];
  for (const each of ids) {
    const id = String(each).length > MAX_PAYLOAD_CHARS ? EVERYTHING : String(each);
    if (id === EVERYTHING) return [EVERYTHING];
    const last = parts.at(-1);
    if (last === undefined || last.length + 1 + id.length > MAX_PAYLOAD_CHARS) parts.push(id);
    else parts[parts.length - 1] = `${last},${id}`;
  }
  return parts;
}

export interface ChangeFeedDeps {
  client: Sql;
  /** Whose connections keep their server process: through a pooler in transaction mode LISTEN hears nothing. */
  session: Sql;
  rows: RowChanges<(typeof FED_KINDS)[number]>;
  /** Told of every round that the database answered. */
  answered: () => void;
  /** How long each answer is waited for; some seconds when absent. */
  answerMs?: number;
  /** Whose timers bring the rounds; the process's own when absent. */
  around?: Pick<LookAround, "lookEvery">;
}

/** Rounds in which the table's versions are compared with what was heard, as often as the process is used. */
function createRounds(versions: Versions, deps: ChangeFeedDeps, listen: () => Promise<void>) {
  const { answered, answerMs = ANSWER_MS, around = lookAround } = deps;
  let stopPolling: (() => void) | undefined;
  let second: ReturnType<typeof setTimeout> | undefined;
  let isClosed = false;
  let comparing: Promise<boolean> | undefined;
  let catching: Promise<void> | undefined;

  /** Never rejects; true where a version has not been heard of yet, and is looked at again. */
  async function compareOnce(): Promise<boolean> {
    try {
      await listen();
      const isBehind = await look(versions, deps, false);
      const failed = [...versions.failed];
      versions.failed.clear();
      failed.forEach((kind) => lost(versions, kind));
      answered();
      if (!isBehind || isClosed) return false;
      clearTimeout(second);
      second = setTimeout(() => void round(), ON_ITS_WAY_MS);
      second.unref();
      return true;
    } catch {
      // The database is away for a moment: the next round catches up.
      return false;
    }
  }

  /** One at a time: who comes while one is under way shares it. */
  function round(): Promise<boolean> {
    return (comparing ??= compareOnce().finally(() => {
      comparing = undefined;
    }));
  }

  /** A version that is behind was announced while the process rested, or is on its way: the next round knows. */
  async function catchUp(): Promise<void> {
    // One that is under way may have asked before what the caller must know was committed.
    if (comparing) await comparing;
    if (await round()) {
      await Bun.sleep(ON_ITS_WAY_MS);
      await round();
    }
    await within(answerMs, Promise.allSettled(versions.rereading)).catch(() => undefined);
    catching = undefined;
  }

  return {
    round,
    async start(): Promise<void> {
      await look(versions, deps, true);
      if (isClosed) return;
      const comeRound = ({ isWaking }: Look): void => {
        if (isWaking) catching ??= catchUp();
        else void round();
      };
      stopPolling = around.lookEvery(POLL_MS, comeRound, REST_MS);
      await round();
    },
    catchingUp: () => catching,
    close(): void {
      isClosed = true;
      stopPolling?.();
      clearTimeout(second);
    },
  };
}

export function createChangeFeed(deps: ChangeFeedDeps): ChangeFeed {
  const { client } = deps;
  /** Stands in the announcements of this very process that its writers have re-read already. */
  const self = randomBytes(6).toString("hex");
  /** In those of its transactions: it hears them as any other process does, since the answer of a commit that stands may be lost. */
  const selfUnsure = `${self}?`;
  const versions: Versions = {
    listeners: new Map(),
    known: new Map(),
    hasMarks: false,
    failed: new Set(),
    rereading: new Set(),
  };
  let started: Promise<void> | undefined;
  let carrier: ChangeCarrier | undefined;
  let stopCarrying: (() => void) | undefined;
  // The driver subscribes anew after a lost connection; what was announced meanwhile is found by a round.
  const listen = createEar(
    deps,
    (payload) => hear(versions, { self, isInOrder: true }, payload),
    () => void rounds.round(),
  );
  const rounds = createRounds(versions, deps, listen);
  /** What transactions that are not committed yet have announced. */
  const uncommitted = new WeakMap<Orm, string[]>();

  /** Parts of one announcement, as the payloads of versions that follow each other up to this one. */
  function payloadsOf(
    kind: ChangeKind,
    { version, by, parts }: { version: number; by: string; parts: readonly string[] },
  ): string[] {
    return parts.map((part, nth) => `${kind} ${version - parts.length + 1 + nth} ${by} ${part}`);
  }

  return {
    async announce(kind, ids) {
      if (ids.length === 0) return;
      const parts = partsOf(ids);
      // One statement, so that versions are heard in their order: the row's lock is held until the commit that notifies.
      const rows = await client.unsafe<{ version: string }[]>(
        `with raised as (
           insert into marks (key, value) values ($1, $5::int)
           on conflict (key) do update set value = marks.value + $5::int returning value
         )
         select raised.value::text as version,
           pg_notify($2, concat_ws(' ', $3::text, raised.value - $5::int + nth, $6::text, part))
         from raised, unnest(string_to_array($4::text, ' ')) with ordinality as list (part, nth)`,
        [VERSION_PREFIX + kind, CHANNEL, kind, parts.join(" "), parts.length, self],
      );
      for (const payload of payloadsOf(kind, { version: Number(rows[0]?.version ?? 0), by: self, parts }))
        carrier?.publish(CARRIED_CHANNEL, payload);
    },
    *announceSteps(tx, kind, ids) {
      if (ids.length === 0) return;
      const { marks } = schema;
      const parts = partsOf(ids);
      const [raised] = yield* q(
        tx
          .insert(marks)
          .values({ key: VERSION_PREFIX + kind, value: parts.length })
          .onConflictDoUpdate({ target: marks.key, set: { value: sql`${marks.value} + ${parts.length}` } })
          .returning({ value: marks.value }),
      );
      const payloads = payloadsOf(kind, { version: raised?.value ?? 0, by: selfUnsure, parts });
      for (const payload of payloads)
        yield* q(
          tx.select({ notified: sql`pg_notify(${CHANNEL}, ${payload})::text` }).from(sql`(select 1) as once`),
        );
      uncommitted.set(tx, [...(uncommitted.get(tx) ?? []), ...payloads]);
    },
    committed(tx) {
      for (const payload of uncommitted.get(tx) ?? []) carrier?.publish(CARRIED_CHANNEL, payload);
    },
    carryBy(way) {
      carrier = way;
      stopCarrying = way.subscribe(
        CARRIED_CHANNEL,
        (payload) => hear(versions, { self, isInOrder: false }, payload),
        () => {
          if (started) void rounds.round();
        },
      );
    },
    onChange(kind, listener) {
      const { listeners } = versions;
      listeners.set(kind, [...(listeners.get(kind) ?? []), listener]);
      return (started ??= rounds.start());
    },
    catchingUp: rounds.catchingUp,
    close() {
      stopCarrying?.();
      rounds.close();
    },
  };
}
