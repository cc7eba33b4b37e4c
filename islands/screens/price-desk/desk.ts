// The price desk while it is open: prices as they are stored, what was changed on top of them, and the way back step by step.
// Refuses to keep a change that puts a value back to what is stored: what counts as changed would be a lie.
import { computed, signal } from "@preact/signals-react";
import type { ReadonlySignal } from "@preact/signals-react";
import { completionRatio } from "../../../src/shared/completion-rules.ts";
import { emptyMaps, PRICE_MAPS, putRow, rowOf } from "../../../src/shared/row-maps.ts";
import type { PriceMaps } from "../../../src/shared/row-maps.ts";
import type { DeskPrices } from "../../../src/shared/price-desk.ts";
import type { PriceRow } from "../../../src/shared/price-row.ts";

/** One entry of an option that holds prices; `name` is empty where the option is one value. */
export interface Edit {
  key: string;
  name: string;
  /** null: the entry goes. */
  after: unknown;
}

/** As a plan is sent. */
interface DeskChange extends Edit {
  /** null: there was no such entry. */
  before: unknown;
}

type Maps = ReadonlyMap<string, ReadonlyMap<string, unknown>>;
type Edits = ReadonlyMap<string, Edit>;

interface Step {
  edits: Edits;
  /** What the step did, as a sentence in the visitor's language. */
  label: string;
}

export interface Desk {
  /** Undefined until `open`. */
  prices: ReadonlySignal<DeskPrices | undefined>;
  /** Stored entries by option, then by name; an option that is one value has the name "". */
  stored: ReadonlySignal<Maps>;
  changes: ReadonlySignal<readonly DeskChange[]>;
  /** Label of the step that `undo` would take back, of the one that `redo` would do again. */
  undoable: ReadonlySignal<string | undefined>;
  redoable: ReadonlySignal<string | undefined>;
  /** Takes what the server says now as stored; changes stay where they still are ones. */
  open: (prices: DeskPrices) => void;
  /** What an entry is with the changes; null where there is none. */
  valueOf: (key: string, name: string) => unknown;
  storedValueOf: (key: string, name: string) => unknown;
  /** Names of an option's entries with the changes. */
  namesOf: (key: string) => string[];
  /** A model's price in dollars with the changes; undefined: it has none. */
  rowOf: (model: string) => PriceRow | undefined;
  storedRowOf: (model: string) => PriceRow | undefined;
  /** The price that a model would have after further edits. */
  rowAfter: (model: string, edits: readonly Edit[]) => PriceRow | undefined;
  /** Several edits as one step. */
  write: (edits: readonly Edit[], label: string) => void;
  /** Whole prices of models as one step; undefined takes a price away. */
  writeRows: (rows: ReadonlyMap<string, PriceRow | undefined>, label: string) => void;
  /** The edits that this would be. */
  editsOfRows: (rows: ReadonlyMap<string, PriceRow | undefined>) => Edit[];
  undo: () => void;
  redo: () => void;
  /** Back to what is stored, as one step. */
  discard: (label: string) => void;
}

const placeOf = (key: string, name: string): string => `${key}\n${name}`;

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Options whose text is one value, whatever it looks like. */
const SINGLE = new Set(["AutoGroups", "Price", "QuotaPerUnit"]);

function entriesOf(key: string, text: string): Map<string, unknown> {
  if (SINGLE.has(key)) return new Map([["", text]]);
  try {
    const value: unknown = JSON.parse(text);
    return new Map(isMap(value) ? Object.entries(value) : []);
  } catch {
    return new Map();
  }
}

/** Whether two entries say the same: numbers by their value, the rest as JSON. */
function isSameEntry(one: unknown, other: unknown): boolean {
  return Object.is(one, other) || JSON.stringify(one) === JSON.stringify(other);
}

/** The maps of one model, as far as they say something of it. */
function mapsOf(model: string, valueOf: (key: string, name: string) => unknown): PriceMaps {
  const maps = emptyMaps();
  for (const key of PRICE_MAPS) {
    const value = valueOf(key, model);
    if (value !== null) (maps[key] as Record<string, unknown>)[model] = value;
  }
  return maps;
}

/** Doubles differ by this when they are divided and multiplied back; a price that somebody meant differs by more. */
const DRIFT = 1e-9;

function isNear(one: unknown, other: unknown): boolean {
  return (
    typeof one === "number" && typeof other === "number" && Math.abs(one - other) <= DRIFT * Math.abs(other)
  );
}

const NO_EDITS: Edits = new Map();

export function createDesk(): Desk {
  const prices = signal<DeskPrices>();
  const stored = signal<Maps>(new Map());
  const edits = signal<Edits>(NO_EDITS);
  const past = signal<readonly Step[]>([]);
  const future = signal<readonly Step[]>([]);

  const storedValueOf = (key: string, name: string): unknown => stored.value.get(key)?.get(name) ?? null;
  const valueOf = (key: string, name: string): unknown => {
    const edit = edits.value.get(placeOf(key, name));
    return edit ? edit.after : storedValueOf(key, name);
  };
  const quotaPerUnit = (): number => Number(valueOf("QuotaPerUnit", "")) || 500_000;
  const isChange = ({ key, name, after }: Edit): boolean => !isSameEntry(after, storedValueOf(key, name));

  const step = (next: Edits, label: string): void => {
    past.value = [...past.peek(), { edits: edits.peek(), label }];
    future.value = [];
    edits.value = next;
  };
  const write = (list: readonly Edit[], label: string): void => {
    const next = new Map(edits.peek());
    for (const edit of list) {
      const place = placeOf(edit.key, edit.name);
      if (isChange(edit)) next.set(place, edit);
      else next.delete(place);
    }
    step(next, label);
  };
  const editsOfRows = (rows: ReadonlyMap<string, PriceRow | undefined>): Edit[] => {
    const maps = emptyMaps();
    const list: Edit[] = [];
    for (const [model, row] of rows) {
      putRow(maps, model, row, quotaPerUnit());
      for (const key of PRICE_MAPS) {
        const before = valueOf(key, model);
        const fresh = maps[key][model] ?? null;
        // What nobody touched keeps the very number that is stored.
        const after = isNear(fresh, before) ? before : fresh;
        // Output that costs what the model's name says needs no entry that says so.
        const isDerived =
          key === "CompletionRatio" && before === null && isNear(after, completionRatio(model, {}));
        list.push({ key, name: model, after: isDerived ? null : after });
      }
    }
    return list;
  };
  const changes = computed(() =>
    [...edits.value.values()].map((edit): DeskChange => ({
      ...edit,
      before: storedValueOf(edit.key, edit.name),
    })),
  );

  return {
    prices,
    stored,
    changes,
    undoable: computed(() => past.value.at(-1)?.label),
    redoable: computed(() => future.value.at(-1)?.label),
    open(fresh) {
      prices.value = fresh;
      stored.value = new Map(
        Object.entries(fresh.texts).map(([key, text]) => [key, entriesOf(key, text)] as const),
      );
      edits.value = new Map([...edits.peek()].filter(([, edit]) => isChange(edit)));
    },
    valueOf,
    storedValueOf,
    namesOf(key) {
      const names = new Set(stored.value.get(key)?.keys());
      for (const edit of edits.value.values()) {
        if (edit.key !== key) continue;
        if (edit.after === null) names.delete(edit.name);
        else names.add(edit.name);
      }
      return [...names];
    },
    rowOf: (model) => rowOf(mapsOf(model, valueOf), model, quotaPerUnit()),
    storedRowOf: (model) =>
      rowOf(mapsOf(model, storedValueOf), model, Number(storedValueOf("QuotaPerUnit", "")) || quotaPerUnit()),
    write,
    rowAfter(model, list) {
      const after = new Map(list.map((edit) => [placeOf(edit.key, edit.name), edit.after]));
      const value = (key: string, name: string): unknown => {
        const place = placeOf(key, name);
        return after.has(place) ? after.get(place) : valueOf(key, name);
      };
      return rowOf(mapsOf(model, value), model, quotaPerUnit());
    },
    editsOfRows,
    writeRows: (rows, label) => write(editsOfRows(rows), label),
    undo() {
      const last = past.peek().at(-1);
      if (!last) return;
      past.value = past.peek().slice(0, -1);
      future.value = [...future.peek(), { edits: edits.peek(), label: last.label }];
      edits.value = last.edits;
    },
    redo() {
      const next = future.peek().at(-1);
      if (!next) return;
      future.value = future.peek().slice(0, -1);
      past.value = [...past.peek(), { edits: edits.peek(), label: next.label }];
      edits.value = next.edits;
    },
    discard: (label) => step(NO_EDITS, label),
  };
}
