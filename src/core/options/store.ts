// Every option of the site, typed, read from memory, written through to the database.
// Refuses unknown keys, values of the wrong kind, and switches whose prerequisites are missing.
import { eq, inArray } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { refuse } from "../../shared/failures.ts";
import type { QuotaDisplay } from "../../shared/money.ts";
import { definitionOf, isOptionKey, optionRows, switchGuards } from "./definitions.ts";
import type { OptionKey, OptionValue } from "./definitions.ts";
import type { Sealer } from "../kit/seal.ts";

export interface OptionStore {
  get<K extends OptionKey>(key: K): OptionValue<K>;
  /** The text as stored or by default; for secrets too, so never send it anywhere. */
  text(key: OptionKey): string;
  /** Validates, stores, announces. Throws a Failure and changes nothing when the value is refused. */
  set(key: string, value: string): Promise<void>;
  /**
   * What a person sent: undefined means empty, and for a secret "leave it as it is". Besides what `set` refuses it refuses to
   * empty a map of prices, ratios or groups (`option_table_empty`); `{}` is taken where the shipped map is empty too.
   */
  change(key: string, sent: string | undefined): Promise<void>;
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
    for (const key of only ?? optionRows.map((row) => row.key)) {
      const definition = definitionOf(key);
      const row = stored.get(key);
      let value = row ?? definition.default;
      if (row !== undefined && definition.secret === true) value = seal.open("option", row);
      if (texts.get(key) === value) continue;
      const isFirstLoad = !texts.has(key);
      put(key, value);
      if (!isFirstLoad) for (const listener of listeners) listener(key);
    }
  }

  /** One read at a time: an older one never replaces what a newer one brought. */
  let last: Promise<void> = Promise.resolve();
  function inTurn(only?: readonly OptionKey[]): Promise<void> {
    const next = last.then(() => read(only));
    last = next.catch(() => undefined);
    return next;
  }

  await db.onChange("options", {
    changed: (names) => void inTurn(names.filter(isOptionKey)).catch(() => undefined),
    lost: () => void inTurn().catch(() => undefined),
  });
  await inTurn();

  async function set(key: string, value: string): Promise<void> {
    if (!isOptionKey(key)) throw refuse("option_unknown", { name: key });
    const definition = definitionOf(key);
    definition.kind.parse(value);
    const guard = switchGuards.find((each) => each.key === key);
    if (guard && value === "true" && guard.needs.some((needed) => (texts.get(needed) ?? "") === "")) {
      throw refuse(guard.code);
    }
    const stored = definition.secret === true ? seal.seal("option", value) : value;
    const { options } = db.t;
    // With the announcement in the same transaction: no node goes on with what was replaced.
    await db.atomic(function* (tx) {
      yield* q(
        tx
          .insert(options)
          .values({ key, value: stored })
          .onConflictDoUpdate({ target: options.key, set: { value: stored } })
          .returning({ key: options.key }),
      );
      yield* db.announceSteps(tx, "options", [key]);
    });
    changes++;
    put(key, value);
    for (const listener of listeners) listener(key);
  }

  return {
    get: (key) => values.get(key) as never,
    text: (key) => texts.get(key) ?? "",
    set,
    async change(key, sent) {
      if (!isOptionKey(key)) throw refuse("option_unknown", { name: key });
      if (sent === undefined && definitionOf(key).secret === true) return;
      const text = sent ?? "";
      refuseEmptied(key, text);
      await set(key, text);
    },
    entries: () =>
      optionRows
        .filter((row) => row.secret !== true)
        .map(({ key }) => ({ key, value: texts.get(key) ?? "" })),
    secretsSet: () =>
      optionRows
        .filter((row) => row.secret === true && (texts.get(row.key) ?? "") !== "")
        .map(({ key }) => key),
    onChange: (listener) => {
      listeners.push(listener);
    },
    reload: () => inTurn(),
  };
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

const SESSION_SECRET_KEY = "internal:session_secret";
const SEAL_CHECK_KEY = "internal:seal_check";
const SEAL_CHECK_TEXT = "weir";

/** Thrown when the database was sealed under another key; the start prints its sentence and ends. */
export class WrongEncryptionKey extends Error {
  constructor() {
    super(
      "ENCRYPTION_KEY (or DATA_DIR/encryption.key) is not the key that this database was sealed with: " +
        "put the original key back; without it the stored API keys and channel keys cannot be read.",
    );
  }
}

/** Proves that the sealing key fits the database; the first start writes the proof. */
export async function checkSealKey(db: Database, seal: Sealer): Promise<void> {
  const { options } = db.t;
  const rows = await db.orm.select().from(options).where(eq(options.key, SEAL_CHECK_KEY));
  const row = rows[0];
  if (!row) {
    await db.orm
      .insert(options)
      .values({ key: SEAL_CHECK_KEY, value: seal.seal("check", SEAL_CHECK_TEXT) })
      .onConflictDoNothing();
    return checkSealKeyAgain(db, seal);
  }
  proveSealKey(row.value, seal);
}

/** Two nodes may start at once on an empty database with different keys: the loser must notice. */
async function checkSealKeyAgain(db: Database, seal: Sealer): Promise<void> {
  const { options } = db.t;
  const rows = await db.orm.select().from(options).where(eq(options.key, SEAL_CHECK_KEY));
  proveSealKey(rows[0]?.value ?? "", seal);
}

function proveSealKey(sealed: string, seal: Sealer): void {
  let opened: string;
  try {
    opened = seal.open("check", sealed);
  } catch {
    throw new WrongEncryptionKey();
  }
  if (opened !== SEAL_CHECK_TEXT) throw new WrongEncryptionKey();
}

/** The secret that signs sessions: the operator's, or one made once and kept sealed in the database. */
export async function sessionSecret(db: Database, seal: Sealer, fromEnv: string): Promise<string> {
  if (fromEnv !== "") return fromEnv;
  const { options } = db.t;
  const fresh = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
  await db.orm
    .insert(options)
    .values({ key: SESSION_SECRET_KEY, value: seal.seal("option", fresh) })
    .onConflictDoNothing();
  const rows = await db.orm.select().from(options).where(eq(options.key, SESSION_SECRET_KEY));
  return seal.open("option", rows[0]?.value ?? "");
}

/** How the site shows quota at this moment. */
export function quotaDisplay(options: OptionStore): QuotaDisplay {
  return { inCurrency: options.get("DisplayInCurrencyEnabled"), quotaPerUnit: options.get("QuotaPerUnit") };
}
