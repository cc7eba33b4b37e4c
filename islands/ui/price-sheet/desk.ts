// The price desk while it is open: prices as they are stored, what was changed on top of them, and the way back step by step.
// Refuses to keep a change that puts a value back to what is stored: what counts as changed would be a lie.
import { computed, signal } from "@preact/signals-react";
import type { ReadonlySignal, Signal } from "@preact/signals-react";
import type { DeskPrices } from "../../../src/shared/price-desk.ts";
import type { PriceRow } from "../../../src/shared/price-row.ts";
import { entriesOf, isSameEntry } from "../../lib/price-entries.ts";
import { priceRows } from "./price-rows.ts";
import type { PriceRows } from "./price-rows.ts";
import { createSteps } from "./steps.ts";

/** One entry of an option that holds prices; `name` is empty where the option is one value. */
export interface Edit {
  key: string;
  name: string;
  /** null: the entry goes. */
  after: unknown;
  /** Whose price it is where it was taken from a source; the server checks it when a plan is applied. */
  taken?: string | undefined;
}

/** As a plan is sent. */
export interface DeskChange extends Edit {
  /** What stood there when the change was made; null: no such entry. A plan tells where that is no longer so. */
  before: unknown;
}

/** The draft that the changes are those of. */
export interface OpenDraft {
  id: number;
  version: number;
  title: string;
  note: string;
  announce: boolean;
  /** Its changes as they were last loaded or saved. */
  changes: readonly DeskChange[];
}

type Maps = ReadonlyMap<string, ReadonlyMap<string, unknown>>;
type Edits = ReadonlyMap<string, Edit>;

export interface Desk extends PriceRows {
  /** Undefined until `open`. */
  prices: ReadonlySignal<DeskPrices | undefined>;
  /** Stored entries by option, then by name; an option that is one value has the name "". */
  stored: ReadonlySignal<Maps>;
  changes: ReadonlySignal<readonly DeskChange[]>;
  draft: Signal<OpenDraft | undefined>;
  /** There are changes that no draft has. */
  isUnsaved: ReadonlySignal<boolean>;
  /** Puts changes that were made elsewhere in place of those at hand; there is no way back from it. */
  take: (edits: readonly Edit[]) => void;
  /** Puts the draft's changes in place of those at hand, as one step. */
  openDraft: (draft: OpenDraft, label: string) => void;
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
  /** Several edits as one step. */
  write: (edits: readonly Edit[], label: string) => void;
  /** Whole prices of models as one step; undefined takes a price away. `taken`: whose they are, by model. */
  writeRows: (
    rows: ReadonlyMap<string, PriceRow | undefined>,
    label: string,
    taken?: ReadonlyMap<string, string>,
  ) => void;
  undo: () => void;
  redo: () => void;
  /** Back to what is stored, as one step. */
  discard: (label: string) => void;
}

const placeOf = (key: string, name: string): string => `${key}\n${name}`;

const NO_EDITS: Edits = new Map();

function isSameSet(one: readonly DeskChange[], other: readonly DeskChange[]): boolean {
  if (one.length !== other.length) return false;
  const known = new Map(other.map((each) => [placeOf(each.key, each.name), each]));
  return one.every((each) => {
    const found = known.get(placeOf(each.key, each.name));
    return found !== undefined && isSameEntry(found.after, each.after);
  });
}

export function createDesk(): Desk {
  const prices = signal<DeskPrices>();
  const stored = signal<Maps>(new Map());
  const steps = createSteps(NO_EDITS);
  const edits = steps.now;
  const draft = signal<OpenDraft>();
  // What stood at a place when it was changed, where something else stands there by now.
  const bases = signal<ReadonlyMap<string, unknown>>(new Map());

  const storedValueOf = (key: string, name: string): unknown => stored.value.get(key)?.get(name) ?? null;
  const valueOf = (key: string, name: string): unknown => {
    const edit = edits.value.get(placeOf(key, name));
    return edit ? edit.after : storedValueOf(key, name);
  };
  const isChange = ({ key, name, after }: Edit): boolean => !isSameEntry(after, storedValueOf(key, name));
  const onlyChanges = (all: Edits): Edits => new Map([...all].filter(([, edit]) => isChange(edit)));
  const baseOf = ({ key, name }: Omit<Edit, "after">): unknown => {
    const known = bases.value.get(placeOf(key, name));
    return known === undefined ? storedValueOf(key, name) : known;
  };
  const write = (list: readonly Edit[], label: string): void => {
    const next = new Map(edits.peek());
    for (const edit of list) {
      const place = placeOf(edit.key, edit.name);
      if (isChange(edit)) next.set(place, edit);
      else next.delete(place);
    }
    // Whoever changes it again has seen what stands there now.
    const places = new Set(list.map(({ key, name }) => placeOf(key, name)));
    bases.value = new Map([...bases.peek()].filter(([place]) => !places.has(place)));
    steps.step(next, label);
  };
  const rows = priceRows({ valueOf, storedValueOf });
  const changes = computed(() =>
    [...edits.value.values()].map((edit): DeskChange => ({ ...edit, before: baseOf(edit) })),
  );
  const open = (fresh: DeskPrices): void => {
    const seen = new Map([...edits.peek()].map(([place, edit]) => [place, baseOf(edit)] as const));
    prices.value = fresh;
    stored.value = new Map(
      Object.entries(fresh.texts).map(([key, text]) => [key, entriesOf(key, text) ?? new Map()] as const),
    );
    steps.revise(onlyChanges);
    bases.value = new Map([...seen].filter(([place]) => edits.peek().has(place)));
    if (edits.peek().size > 0) return;
    // Applied: what led there must not come back as steps.
    steps.forget();
    draft.value = undefined;
  };

  return {
    prices,
    stored,
    changes,
    draft,
    isUnsaved: computed(
      () =>
        changes.value.length > 0 &&
        !(draft.value && isSameSet(changes.value, draft.value.changes.filter(isChange))),
    ),
    undoable: steps.undoable,
    redoable: steps.redoable,
    open,
    take(list) {
      steps.revise(() => onlyChanges(new Map(list.map((edit) => [placeOf(edit.key, edit.name), edit]))));
      steps.forget();
      bases.value = new Map();
    },
    openDraft(fresh, label) {
      const all = fresh.changes.map(({ before: _before, ...edit }): Edit => edit);
      steps.step(onlyChanges(new Map(all.map((edit) => [placeOf(edit.key, edit.name), edit]))), label);
      bases.value = new Map(fresh.changes.map(({ key, name, before }) => [placeOf(key, name), before]));
      draft.value = fresh;
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
    ...rows,
    write,
    writeRows: (all, label, taken) => write(rows.editsOfRows(all, taken), label),
    undo: steps.undo,
    redo: steps.redo,
    discard(label) {
      steps.step(NO_EDITS, label);
      bases.value = new Map();
      draft.value = undefined;
    },
  };
}
