// The operator's inbox: takes in what needs a person, writes it down, tells root of it, closes what is over.
// Refuses to disturb whoever reports: what is raised waits in memory until the database takes it.
import type { Deps, Inbox, InboxCause, InboxSummary, UserAccount } from "../deps.ts";
import { inboxKinds } from "../../shared/inbox.ts";
import type { InboxKind, InboxParams } from "../../shared/inbox.ts";
import { isQueryAway } from "../../db/away.ts";
import { DatabaseBusy } from "../../db/database.ts";
import { within } from "../kit/deadline.ts";
import { keptRoot, rootAccount } from "../users/notify.ts";
import type { DeliverDeps } from "../users/notify.ts";
import {
  claimLetter,
  closeSteps,
  dropLetter,
  giveBackLetter,
  isDue,
  meetSteps,
  MOST_OPEN,
  openItems,
  TOLD_SECONDS,
} from "./items.ts";
import type { InboxItem, MetCause } from "./items.ts";
import { sendLetters, wantsLetter } from "./letters.ts";

export type InboxDeps = Omit<DeliverDeps, "inbox"> & Pick<Deps, "db" | "accounts" | "logger">;

export interface InboxService extends Inbox {
  /** Writes what waits and sends what is due; resolves when that is done or has to wait on. Never rejects. */
  settle(): Promise<void>;
  /** Reads from the table what is open, after others than the inbox wrote to it. */
  read(): Promise<void>;
  /** Writes what waits, once more; nothing is taken in after it, and no letter is begun. */
  close(): Promise<void>;
}

/** Reports that come together are written together. */
const GATHER_MS = 20;
/** The driver may leave a query unanswered when connections break. */
const WRITE_WAIT_MS = 5000;
/** A letter that did not arrive is tried again after this time. */
const RETRY_SECONDS = 600;
/** While the database is away. */
const AWAY_RETRY_MS = 2000;
const ROOT_READ_MS = 60_000;
/** Of letters under way when the process stops. */
const LAST_LETTERS_MS = 2000;
/** What merely lasts is written down again this seldom. */
const SEEN_STEP_SECONDS = 600;
const MOST_SUBJECT = 255;
/** Open items of one kind that one administrator's acts make. */
const MOST_OF_ONE = 50;
/** Open items of any other kind: a thousand models without a price must not leave a dispute out. */
const MOST_OF_KIND = 150;
/** What the bell lists; it stands on every page. */
const NEWEST = 8;

/** What waits for the database. */
interface Waiting extends Omit<MetCause, "toldAt"> {
  /** It was met, or lasts. */
  isMet: boolean;
  /** What came last: it is over. */
  isOver: boolean;
  /** Root hears that it is over. */
  tellsBack: boolean;
}

const keyOf = (kind: InboxKind, subject: string): string => `${kind} ${subject}`;

/** Reads what is open, and starts to listen for what other nodes change. */
export async function createInbox(deps: InboxDeps): Promise<InboxService> {
  const state = new InboxState(deps);
  const reread = () => state.read();
  await deps.db.onChange("inbox", { changed: reread, lost: reread });
  await state.read();
  return state;
}

class InboxState implements InboxService {
  readonly #deps: InboxDeps;
  #open: readonly InboxItem[] = [];
  #byKey: ReadonlyMap<string, InboxItem> = new Map();
  #waiting = new Map<string, Waiting>();
  /** When root was told of a cause straight from memory, Unix seconds, because the database was away. */
  readonly #toldFromMemory = new Map<string, number>();
  /** A receiver that failed then is left alone until this time, Unix seconds. */
  #memoryRestsUntil = 0;
  /** As last read: a database that is away must not keep what it is about from being told. */
  #root: UserAccount | undefined;
  #rootReadMs = -Infinity;
  #reading: Promise<void> = Promise.resolve();
  #writing: Promise<void> = Promise.resolve();
  #telling: Promise<void> = Promise.resolve();
  /** A cause of the kind was left out since the last one that was not. */
  readonly #full = new Set<InboxKind>();
  /** Closed by this node, and root does not know yet. */
  #over: InboxItem[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(deps: InboxDeps) {
    this.#deps = deps;
  }

  #now(): number {
    return Math.floor(this.#deps.clock.nowMs() / 1000);
  }

  raise(cause: InboxCause, times = 1): void {
    this.#meet(cause, Math.max(1, times));
  }

  keep(cause: InboxCause): void {
    const known = this.#byKey.get(keyOf(cause.kind, cause.subject ?? ""));
    const isFresh = known !== undefined && known.lastSeenAt > this.#now() - SEEN_STEP_SECONDS;
    const waits = this.#waiting.has(keyOf(cause.kind, cause.subject ?? ""));
    if (isFresh && !waits && Bun.deepEquals(known.params, cause.params ?? {})) return;
    this.#meet(cause, 0);
  }

  /**
   * What tells root of an administrator is an item an act, but not without end: a thousand small acts must not leave the next large
   * one, or anything else, out of the inbox. Those beyond share one item, which counts them.
   */
  #subjectOf(kind: InboxKind, subject: string, params: InboxCause["params"]): string {
    const admin = params?.["admin"];
    if (inboxKinds[kind].isRootsToClose !== true || this.#byKey.has(keyOf(kind, subject))) return subject;
    const isTheirs = (each: Pick<InboxItem, "kind" | "params">) =>
      each.kind === kind && each.params["admin"] === admin;
    const theirs = this.#open.filter(isTheirs).length + [...this.#waiting.values()].filter(isTheirs).length;
    if (theirs < MOST_OF_ONE) return subject;
    const [actor = ""] = subject.split(":");
    // A run's subject is the run; a name in a subject would outlive its account.
    return subject.includes(":") ? `${actor}:` : `${params?.["admin_id"] ?? ""}:`;
  }

  /** What puts calls or money at stake is never left out; there is one of a kind, or one a node. */
  #hasRoom(kind: InboxKind): boolean {
    const { tone, isRootsToClose, letters } = inboxKinds[kind];
    if (tone === "broken") return true;
    if (this.#open.length + this.#waiting.size >= MOST_OPEN) return false;
    // What a provider said of a payment it says once.
    if (isRootsToClose === true || letters === "payment") return true;
    return this.subjects(kind).length < MOST_OF_KIND;
  }

  #leaveOut(kind: InboxKind, subject: string): void {
    if (this.#full.has(kind)) return;
    this.#full.add(kind);
    this.#deps.logger.warn("the inbox is full: causes of a kind are left out", { kind, subject });
  }

  #meet({ kind, subject: whole = "", params = {} }: InboxCause, count: number): void {
    if (this.#isClosed) return;
    const subject = this.#subjectOf(kind, whole, params).slice(0, MOST_SUBJECT);
    const key = keyOf(kind, subject);
    const lastAt = this.#now();
    const waiting = this.#waiting.get(key);
    if (waiting)
      Object.assign(waiting, { params, count: waiting.count + count, lastAt, isMet: true, isOver: false });
    else if (this.#byKey.has(key) || this.#hasRoom(kind)) {
      if (!this.#byKey.has(key)) this.#full.delete(kind);
      this.#waiting.set(key, {
        kind,
        subject,
        params,
        count,
        firstAt: lastAt,
        lastAt,
        isMet: true,
        isOver: false,
        tellsBack: false,
      });
    } else return this.#leaveOut(kind, subject);
    this.#settleSoon();
  }

  gone(kind: InboxKind, subject = "", tellsBack = true): void {
    const key = keyOf(kind, subject.slice(0, MOST_SUBJECT));
    const waiting = this.#waiting.get(key);
    if (waiting) Object.assign(waiting, { isOver: true, tellsBack });
    else {
      const item = this.#byKey.get(key);
      if (!item || this.#isClosed) return;
      const { params, openedAt: firstAt } = item;
      const none = { count: 0, firstAt, lastAt: this.#now() };
      this.#waiting.set(key, { kind, subject, params, ...none, isMet: false, isOver: true, tellsBack });
    }
    this.#settleSoon();
  }

  subjects(kind: InboxKind): string[] {
    const waiting = [...this.#waiting.values()].filter(
      (each) => each.kind === kind && each.isMet && !each.isOver,
    );
    const open = this.#open.filter((each) => each.kind === kind);
    return [...new Set([...open, ...waiting].map(({ subject }) => subject))];
  }

  params(kind: InboxKind): InboxParams[] {
    return this.#open.filter((each) => each.kind === kind).map(({ params }) => params);
  }

  summary(): InboxSummary {
    const now = this.#now();
    const items = this.#open.filter(({ snoozedUntil }) => snoozedUntil <= now);
    return {
      count: items.length,
      tone: items.some(({ kind }) => inboxKinds[kind].tone === "broken") ? "broken" : "attention",
      newest: items.slice(0, NEWEST).map(({ id, kind, subject, params }) => ({ id, kind, subject, params })),
    };
  }

  /** Reads that were asked for while one is under way share the next. */
  read(): Promise<void> {
    this.#reading = this.#reading
      .catch(() => undefined)
      .then(async () => {
        this.#open = await openItems(this.#deps.db);
        this.#byKey = new Map(this.#open.map((item) => [keyOf(item.kind, item.subject), item]));
      });
    return this.#reading;
  }

  async changed(ids: readonly number[]): Promise<void> {
    await this.#deps.db.announce("inbox", ids);
    await this.read();
  }

  #settleSoon(afterMs = GATHER_MS): void {
    if (this.#timer || this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.settle();
    }, afterMs);
    this.#timer.unref();
  }

  settle(): Promise<void> {
    let isAway = false;
    this.#writing = this.#writing.then(async () => {
      try {
        await this.#write();
        if (!this.#isClosed) await this.#readRoot();
      } catch (error) {
        isAway = isQueryAway(error) || error instanceof DatabaseBusy;
        this.#deps.logger[isAway ? "debug" : "error"]("the inbox waits", { error: String(error) });
        if (this.#waiting.size > 0) this.#settleSoon(AWAY_RETRY_MS);
      }
    });
    // A mail server that does not answer holds up letters, and nothing else.
    this.#telling = Promise.all([this.#writing, this.#telling]).then(async () => {
      if (this.#isClosed) return;
      try {
        await (isAway ? this.#tellFromMemory() : this.#tell());
      } catch (error) {
        this.#deps.logger.warn("the inbox could not be told of", { error: String(error) });
      }
    });
    return this.#telling;
  }

  /** Brings what waits into the table. */
  async #write(): Promise<void> {
    const ids: number[] = [];
    for (const [key, waiting] of this.#waiting) {
      this.#waiting.delete(key);
      try {
        const cause = { ...waiting, toldAt: this.#lastToldFromMemory(key) };
        const { met, closed } = await within(WRITE_WAIT_MS, this.#writeOne(cause));
        ids.push(...[met, closed].flatMap((item) => item?.id ?? []));
        if (
          closed &&
          waiting.tellsBack &&
          inboxKinds[closed.kind].tellsBack &&
          closed.toldAt >= closed.openedAt
        )
          this.#over.push(closed);
      } catch (error) {
        this.#putBack(key, waiting);
        if (ids.length > 0) await this.read().catch(() => undefined);
        throw error;
      }
    }
    if (ids.length > 0) await within(WRITE_WAIT_MS, this.read());
  }

  #writeOne(
    cause: Waiting & MetCause,
  ): Promise<{ met: InboxItem | undefined; closed: InboxItem | undefined }> {
    const { db } = this.#deps;
    const { kind, subject, isMet, isOver, lastAt } = cause;
    return db.atomic(function* (tx) {
      const met = isMet ? yield* meetSteps(tx, db.t, cause) : undefined;
      const closed = isOver ? yield* closeSteps(tx, db.t, { kind, subject, atSeconds: lastAt }) : undefined;
      const ids = [met, closed].flatMap((item) => item?.id ?? []);
      if (ids.length > 0) yield* db.announceSteps(tx, "inbox", ids);
      return { met, closed };
    });
  }

  /** What came meanwhile is later than what could not be written. */
  #putBack(key: string, older: Waiting): void {
    const newer = this.#waiting.get(key);
    if (!newer) this.#waiting.set(key, older);
    else {
      const { count, firstAt, isMet } = older;
      Object.assign(newer, { count: count + newer.count, firstAt, isMet: isMet || newer.isMet });
    }
  }

  /** Who is told while the database is away. */
  async #readRoot(): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#root && nowMs - this.#rootReadMs < ROOT_READ_MS) return;
    this.#root = await within(WRITE_WAIT_MS, keptRoot(this.#deps));
    this.#rootReadMs = nowMs;
  }

  async #tell(): Promise<void> {
    const { db } = this.#deps;
    const now = this.#now();
    const due = this.#open.filter((item) => isDue(item, now));
    if (due.length + this.#over.length === 0) return;
    const root = await within(WRITE_WAIT_MS, rootAccount(this.#deps));
    const letters: { item: InboxItem; isBack: boolean }[] = [];
    for (const item of due) {
      if (!root || !wantsLetter(this.#deps, root, item.kind)) await dropLetter(db, item);
      else if (await claimLetter(db, item, now)) letters.push({ item, isBack: false });
    }
    // Not before: where the database could not be asked until here, the next time tells of them.
    const over = this.#over.splice(0);
    if (root)
      letters.push(
        ...over
          .filter(({ kind }) => wantsLetter(this.#deps, root, kind))
          .map((item) => ({ item, isBack: true })),
      );
    if (root && letters.length > 0) {
      const failed = await sendLetters({ ...this.#deps, inbox: this }, root, letters);
      for (const { item, isBack } of failed)
        if (!isBack) await giveBackLetter(db, { item, claimedAt: now, afterSeconds: RETRY_SECONDS });
    }
    if (due.length > 0) await this.read();
  }

  /** While the database is away nobody can be asked who tells: each node tells what it met itself, once an hour. */
  async #tellFromMemory(): Promise<void> {
    const root = this.#root;
    const now = this.#now();
    if (!root || now < this.#memoryRestsUntil) return;
    const letters = [...this.#waiting].flatMap(([key, item]) => {
      const toldAt = Math.max(this.#lastToldFromMemory(key), this.#byKey.get(key)?.toldAt ?? 0);
      const isSnoozed = (this.#byKey.get(key)?.snoozedUntil ?? 0) > now;
      const isWanted =
        item.isMet && !isSnoozed && now - toldAt >= TOLD_SECONDS && wantsLetter(this.#deps, root, item.kind);
      return isWanted ? [{ key, item, isBack: false }] : [];
    });
    if (letters.length === 0) return;
    for (const { key } of letters) this.#toldFromMemory.set(key, now);
    const failed = await sendLetters({ ...this.#deps, inbox: this }, root, letters);
    for (const { key } of failed) this.#toldFromMemory.delete(key);
    if (failed.length > 0) this.#memoryRestsUntil = now + RETRY_SECONDS;
  }

  /** Unix seconds of the last hour, or 0. */
  #lastToldFromMemory(key: string): number {
    const toldAt = this.#toldFromMemory.get(key) ?? 0;
    if (toldAt > 0 && this.#now() - toldAt >= TOLD_SECONDS) this.#toldFromMemory.delete(key);
    return this.#toldFromMemory.get(key) ?? 0;
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    const written = this.settle();
    this.#isClosed = true;
    await this.#writing;
    clearTimeout(this.#timer);
    await within(LAST_LETTERS_MS, written).catch(() => undefined);
    await this.#reading.catch(() => undefined);
  }
}
