// Every option of the site, typed, read from memory, written through to the database.
// Refuses unknown keys, values of the wrong kind, and switches whose prerequisites are missing.
import { inArray } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { refuse } from "../../shared/failures.ts";
import type { QuotaDisplay } from "../../shared/money.ts";
import { displayBeside, isInCurrency } from "./display.ts";
import { definitionOf, isOptionKey, optionRows } from "./definitions.ts";
import type { OptionKey, OptionValue } from "./definitions.ts";
import { checkGuards } from "./guards.ts";
import { withRules } from "./price-rules.ts";
import type { Sealer } from "../kit/seal.ts";

/** One option and its new text. */
export interface OptionWrite {
  key: OptionKey;
  text: string;
}

/** What a write changes that is no option: its recorders tell of it as of options. */
export interface BesideChange {
  /** Of what it is one. */
  key: string;
  name: string;
  /** null: there was, or will be, no such thing. */
  before: unknown;
  after: unknown;
}

/** Who writes options, how and why: what the history of prices tells of them. */
export interface OptionAuthor {
  /** 0: the program itself. */
  userId: number;
  username: string;
  /** From where, for the audit trail. */
  origin?: { address: string; userAgent: string; authMethod: "session" | "access_token" | "none" };
  /** How it came about where it is more than a plain write. */
  kind?: "reset" | "plans" | "apply" | "schedule" | "undo" | "cli" | "sync" | "import";
  note?: string;
  /** The revision that is undone, and the draft that is applied. */
  undoOf?: number;
  draftId?: number;
  /** Whose prices models get, by model, where they were taken from a source (prices/taken.ts). */
  taken?: ReadonlyMap<string, string>;
}

/** Runs inside the atomic block of each write, before the rows of options change; what is `beside` them has changed already. */
export type OptionRecorder = (
  tx: Orm,
  writes: readonly OptionWrite[],
  author: OptionAuthor | undefined,
  beside?: readonly BesideChange[],
) => Steps<void>;

export interface WriteMade<T> {
  writes: readonly OptionWrite[];
  beside?: readonly BesideChange[];
  value: T;
}

export interface OptionStore {
  get<K extends OptionKey>(key: K): OptionValue<K>;
  /** The text as stored or by default; for secrets too, so never send it anywhere. */
  text(key: OptionKey): string;
  /** Validates, stores, announces. Throws a Failure and changes nothing when the value is refused. */
  set(key: string, value: string, author?: OptionAuthor): Promise<void>;
  /**
   * Several options in one atomic block, all of them or none: `body` says which, in the same block. It runs again where the
   * block does. Values are checked by their kind, and nothing else is. What the body itself has changed goes to the recorders
   * as `beside`.
   */
  write<T>(body: (tx: Orm) => Steps<WriteMade<T>>, author: OptionAuthor): Promise<T>;
  /** Hears of every write from now on, in its own atomic block. */
  recordWith(recorder: OptionRecorder): void;
  /**
   * What a person sent: undefined means empty, and for a secret "leave it as it is". Besides what `set` refuses it refuses to
   * empty a map of prices, ratios or groups (`option_table_empty`); `{}` is taken where the shipped map is empty too.
   */
  change(key: string, sent: string | undefined, author?: OptionAuthor): Promise<void>;
  /** Everything that may be shown to root: no secrets. */
  entries(): { key: string; value: string }[];
  /** Names of secret options that hold a value. */
  secretsSet(): string[];
  /** Called after each change, here or on another node. */
  onChange(listener: (key: OptionKey) => void): void;
  /** Re-reads all of them from the database. */
  reload(): Promise<void>;
}

export async function createOptions(db: Database, seal: Sealer): Promise<OptionStore> {
  const texts = new Map<OptionKey, string>();
  const values = new Map<OptionKey, unknown>();
  const listeners: ((key: OptionKey) => void)[] = [];

  function put(key: OptionKey, value: string): void {
    const definition = definitionOf(key);
    texts.set(key, value);
    try {
      values.set(key, definition.kind.parse(value));
    } catch {
      // A row that an older release stored and this one refuses must not stop the start.
      values.set(key, definition.kind.parse(definition.default));
    }
  }

  /** Changes made here: what was read before one of them must not overwrite it. */
  let changes = 0;

  async function storedRows(
    only: readonly OptionKey[] | undefined,
  ): Promise<{ key: string; value: string }[]> {
    const { options } = db.t;
    for (;;) {
      const before = changes;
      const query = db.orm.select().from(options);
      const rows = await (only ? query.where(inArray(options.key, [...only])) : query);
      if (before === changes) return rows;
    }
  }

  async function read(only?: readonly OptionKey[]): Promise<void> {
    const rows = await storedRows(only);
    const stored = new Map(rows.map((row) => [row.key, row.value]));
    const replaced: OptionKey[] = [];
    for (const key of only ?? optionRows.map((row) => row.key)) {
      const definition = definitionOf(key);
      const row = stored.get(key);
      let value = row ?? definition.default;
      if (row !== undefined && definition.secret === true) value = seal.open("option", row);
      if (texts.get(key) === value) continue;
      if (texts.has(key)) replaced.push(key);
      put(key, value);
    }
    // What was written together is in force together before anybody hears of it.
    for (const key of replaced) for (const listener of listeners) listener(key);
  }

  /** One read at a time: an older one never replaces what a newer one brought. */
  let last: Promise<void> = Promise.resolve();
  function inTurn(only?: readonly OptionKey[]): Promise<void> {
    const next = last.then(() => read(only));
    last = next.catch(() => undefined);
    return next;
  }

  await db.onChange("options", {
    changed: (names) => inTurn(names.filter(isOptionKey)),
    lost: () => inTurn(),
  });
  await inTurn();

  const recorders: OptionRecorder[] = [];

  async function write<T>(body: (tx: Orm) => Steps<WriteMade<T>>, author?: OptionAuthor): Promise<T> {
    const { writes, value } = await db.atomic(function* (tx) {
      const made = yield* body(tx);
      yield* writeSteps({ db, seal, recorders }, tx, made, author);
      return made;
    });
    if (writes.length === 0) return value;
    changes++;
    // A later write, here or on another node, may be through already: then its rows are in force, not these.
    const keys = writes.map(({ key }) => key);
    const isRead = db.kind === "postgres" && (await succeeds(inTurn(keys)));
    if (isRead) return value;
    // All of them before anybody hears of one: nobody sees half of what was written together.
    for (const { key, text } of writes) put(key, text);
    for (const key of keys) for (const listener of listeners) listener(key);
    return value;
  }

  async function set(key: string, value: string, author?: OptionAuthor): Promise<void> {
    if (!isOptionKey(key)) throw refuse("option_unknown", { name: key });
    const { kind } = definitionOf(key);
    kind.parse(value);
    kind.check?.(value);
    checkGuards(key, value, (each) => texts.get(each) ?? "");
    const valueOf = (other: OptionKey) => values.get(other);
    const writes = [...withRules(valueOf, key, value), ...displayBeside(valueOf, key, value)];
    await write(() => known(writes.map(([name, text]) => ({ key: name, text }))), author);
  }

  return {
    get: (key) => values.get(key) as never,
    text: (key) => texts.get(key) ?? "",
    set,
    write,
    recordWith: (recorder) => {
      recorders.push(recorder);
    },
    async change(key, sent, author) {
      if (!isOptionKey(key)) throw refuse("option_unknown", { name: key });
      if (sent === undefined && definitionOf(key).secret === true) return;
      const text = sent ?? "";
      refuseEmptied(key, text);
      await set(key, text, author);
    },
    entries: () => shownEntries(texts),
    secretsSet: () => secretsIn(texts),
    onChange: (listener) => {
      listeners.push(listener);
    },
    reload: () => inTurn(),
  };
}

const succeeds = (work: Promise<void>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  );

function shownEntries(texts: ReadonlyMap<OptionKey, string>): { key: string; value: string }[] {
  const shown = optionRows.filter((row) => row.secret !== true);
  return shown.map(({ key }) => ({ key, value: texts.get(key) ?? "" }));
}

function secretsIn(texts: ReadonlyMap<OptionKey, string>): string[] {
  const held = optionRows.filter((row) => row.secret === true && (texts.get(row.key) ?? "") !== "");
  return held.map(({ key }) => key);
}

/** Steps that ask nothing, for writes that are known beforehand. */
function* known(writes: readonly OptionWrite[]): Steps<WriteMade<void>> {
  yield* [];
  return { writes, value: undefined };
}

/** Checked, told to the recorders, stored and announced. */
function* writeSteps(
  { db, seal, recorders }: { db: Database; seal: Sealer; recorders: readonly OptionRecorder[] },
  tx: Orm,
  { writes, beside }: WriteMade<unknown>,
  author: OptionAuthor | undefined,
): Steps<void> {
  const { options } = db.t;
  for (const { key, text } of writes) definitionOf(key).kind.parse(text);
  for (const recorder of recorders) yield* recorder(tx, writes, author, beside);
  for (const { key, text } of writes) {
    const stored = definitionOf(key).secret === true ? seal.seal("option", text) : text;
    yield* q(
      tx
        .insert(options)
        .values({ key, value: stored })
        .onConflictDoUpdate({ target: options.key, set: { value: stored } })
        .returning({ key: options.key }),
    );
  }
  if (writes.length === 0) return;
  const keys = writes.map(({ key }) => key);
  // With the announcement in the same transaction: no node goes on with what was replaced.
  yield* db.announceSteps(tx, "options", keys);
}

/** Older consoles send a cleared field without a thought: the table behind it is what every call is charged by. */
function refuseEmptied(key: OptionKey, text: string): void {
  const { kind, default: shipped } = definitionOf(key);
  if (kind.isTable !== true) return;
  const isEmptied =
    text.trim() === "" || (holdsNothing(kind.parse(text)) && !holdsNothing(kind.parse(shipped)));
  if (isEmptied) throw refuse("option_table_empty", { name: key });
}

function holdsNothing(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** How the site shows quota at this moment. */
export function quotaDisplay(options: OptionStore): QuotaDisplay {
  return { inCurrency: isInCurrency(options), quotaPerUnit: options.get("QuotaPerUnit") };
}
