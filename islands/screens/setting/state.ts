// The settings while they are open: what is stored, what was typed, what was refused, and how changes are saved.
// Refuses to send what did not change, and to lose what could not be saved: it stays typed, with the reason beside it.
import { signal } from "@preact/signals-react";
import type { ReadonlySignal, Signal } from "@preact/signals-react";
import type { OptionRow, SettingPageData } from "../../../src/shared/setting-rows.ts";
import { mayTakeWaysIn } from "../../../src/shared/ways-in.ts";
import { loadAllTexts } from "../../lib/all-texts.ts";
import { api, call, failureMessage } from "../../lib/api.ts";
import { readBoot, status } from "../../lib/boot.ts";
import { replaceParts } from "../../lib/fresh-parts.ts";
import { t } from "../../lib/i18n.ts";
import { entryChanges } from "../../lib/price-entries.ts";
import type { EntryChange } from "../../lib/price-entries.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import type { PricePlan } from "../../lib/wire.ts";
import { titleOf } from "./names.ts";
import { isOfMany, isPriceMap, overNewer } from "./over-newer.ts";
import { problemOf } from "./problems.ts";

type Texts = ReadonlyMap<string, string>;

/** Prices that were typed, and what storing them would do. */
export interface PlannedPrices {
  /** By key, as they were typed when it was planned. */
  texts: Texts;
  changes: EntryChange[];
  plan: PricePlan;
}

export interface Settings {
  /** By key, in the order of the screens; only those of the first tab until `loadAll`. */
  rows: ReadonlySignal<ReadonlyMap<string, OptionRow>>;
  /** Every tab's options are there, in full. */
  isWhole: ReadonlySignal<boolean>;
  /** What was typed and is not saved, by key. A secret's "" empties it. */
  drafts: ReadonlySignal<Texts>;
  failures: ReadonlySignal<Texts>;
  isSaving: ReadonlySignal<boolean>;
  /** What was typed, else what is stored. */
  value: (key: string) => string;
  set: (key: string, value: string) => void;
  /** The control has lost the focus: what is wrong with it is said. */
  leave: (key: string) => void;
  revert: (key: string) => void;
  discard: () => void;
  /** Saves a switch at once, with a way back. */
  flip: (key: string, isOn: boolean) => Promise<void>;
  /** One by one, switches first; prices become a plan that is looked at before anything of it is stored. */
  save: () => Promise<void>;
  /** The plan that waits for somebody's word. */
  pricePlan: Signal<PlannedPrices | undefined>;
  /** It was applied: reads what is stored anew. */
  priced: () => Promise<void>;
  planAgain: () => Promise<void>;
  loadAll: () => Promise<void>;
  /** Reads all of them anew; what was typed stays typed. */
  refresh: () => Promise<void>;
}

function without(texts: Texts, key: string): Texts {
  return new Map([...texts].filter(([each]) => each !== key));
}

/** Name, flags and footer stand in the frame too. */
async function refreshFrame(): Promise<void> {
  if (document.querySelector("[data-shell]") === null) return;
  const fresh = readBoot(await replaceParts());
  if (fresh) status.value = fresh.status;
}

/** A saved option as its row says it from then on. */
function stored(row: OptionRow, value: string): OptionRow {
  if (row.secret) return { ...row, isSet: value !== "", changed: value !== "" };
  return { ...row, value, changed: value !== row.default };
}

/** As specified: whatever ends in `Enabled` is saved before the rest. */
function inSavingOrder(keys: readonly string[]): string[] {
  const isFirst = (key: string) => Number(!key.endsWith("Enabled"));
  return keys.toSorted((a, b) => isFirst(a) - isFirst(b));
}

/** What the pieces below share: the signals, and how one of them changes. */
function createStore(data: SettingPageData) {
  const rows = signal<ReadonlyMap<string, OptionRow>>(new Map(data.rows.map((row) => [row.key, row])));
  const drafts = signal<Texts>(new Map());
  const failures = signal<Texts>(new Map());
  let last: Promise<unknown> = Promise.resolve();
  /** One call at a time: of two clicks on a switch the second one counts, and what is read is no older than what was saved. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
  return {
    rows,
    drafts,
    failures,
    isWhole: signal(false),
    isSaving: signal(false),
    pricePlan: signal<PlannedPrices>(),
    value: (key: string): string => drafts.peek().get(key) ?? rows.peek().get(key)?.value ?? "",
    fail: (key: string, text: string): void => {
      failures.value = new Map([...failures.peek(), [key, text]]);
    },
    forgive: (key: string): void => {
      if (failures.peek().has(key)) failures.value = without(failures.peek(), key);
    },
    put: (key: string, value: string): void => {
      const row = rows.peek().get(key);
      if (row) rows.value = new Map(rows.peek()).set(key, stored(row, value));
    },
    send: (key: string, value: string) => inTurn(() => call(api.option.put({ key, value }))),
    read: () => inTurn(() => call(api.option.rows.get({ query: { full: "true" } }))),
  };
}

type Store = ReturnType<typeof createStore>;

/** False: somebody would be left outside, and root thought better of it, or the server refused. */
async function mayTake({ rows, fail }: Store, key: string, text: string): Promise<boolean> {
  const row = rows.peek().get(key);
  if (!row || !mayTakeWaysIn(key, text)) return true;
  try {
    const [ways] = await Promise.all([import("./ways-in.ts"), loadAllTexts()]);
    return await ways.mayWrite(key, text, titleOf(row));
  } catch (error) {
    fail(key, failureMessage(error));
    return false;
  }
}

async function flipSwitch(store: Store, key: string, isOn: boolean, isUndo = false): Promise<void> {
  const row = store.rows.peek().get(key);
  if (!row) return;
  store.forgive(key);
  if (!(await mayTake(store, key, String(isOn)))) return;
  store.put(key, String(isOn));
  try {
    await store.send(key, String(isOn));
    store.put(key, String(isOn));
  } catch (error) {
    store.put(key, row.value);
    store.fail(key, failureMessage(error));
    return;
  }
  toast({
    key: `setting ${key}`,
    text: t(isOn ? "setting.turnedOn" : "setting.turnedOff", { name: titleOf(row) }),
    ...(isUndo ? {} : { undo: () => flipSwitch(store, key, !isOn, true) }),
  });
  await refreshFrame().catch(() => undefined);
}

/** As typed where its tab is open, else as saved. */
const serverAddress = ({ rows, value }: Store): string | undefined =>
  rows.peek().has("ServerAddress") ? value("ServerAddress") : status.peek().server_address;

/** False: it was refused, and stays typed. */
async function saveOne(store: Store, key: string): Promise<boolean> {
  const row = store.rows.peek().get(key);
  const text = store.value(key);
  const problem = row && problemOf(row, text, serverAddress(store));
  if (problem !== undefined) {
    store.fail(key, problem);
    return false;
  }
  if (!(await mayTake(store, key, text))) {
    if (!store.failures.peek().has(key)) store.fail(key, t("setting.waysKept"));
    return false;
  }
  try {
    await store.send(key, text);
  } catch (error) {
    store.fail(key, failureMessage(error));
    return false;
  }
  store.put(key, text);
  // What was typed meanwhile is a change of its own.
  if (store.drafts.peek().get(key) === text) store.drafts.value = without(store.drafts.peek(), key);
  store.forgive(key);
  return true;
}

const changesOf = ({ rows, value }: Store, key: string) =>
  entryChanges(key, rows.peek().get(key)?.value ?? "", value(key));

/** What is no map goes to the option itself, which says why. */
const isPlanned = (store: Store, key: string): boolean => {
  const row = store.rows.peek().get(key);
  return row !== undefined && isPriceMap(row) && changesOf(store, key) !== undefined;
};

type PlanBody = Parameters<typeof api.price.plan.post>[0];

/** Plans the typed maps, and leaves the plan to be looked at; a refusal stands at its map. */
async function planPrices(store: Store, keys: readonly string[]): Promise<void> {
  const texts = new Map(keys.map((key) => [key, store.value(key)]));
  const changesBy = new Map(keys.map((key) => [key, changesOf(store, key) ?? []]));
  const plan = (of: readonly string[]) =>
    call(
      api.price.plan.post({ changes: of.flatMap((key) => changesBy.get(key) ?? []), days: 0 } as PlanBody),
    );
  if ([...changesBy.values()].every((changes) => changes.length === 0)) {
    // Another way of writing the same prices.
    for (const key of keys) store.drafts.value = without(store.drafts.peek(), key);
    toast({ key: "settings", tone: "info", text: t("form.unchanged") });
    return;
  }
  try {
    store.pricePlan.value = { texts, changes: [...changesBy.values()].flat(), plan: await plan(keys) };
    for (const key of keys) store.forgive(key);
  } catch (error) {
    const refused = await Promise.all(
      keys.map((key) =>
        plan([key]).then(
          () => undefined,
          (own: unknown) => [key, failureMessage(own)] as const,
        ),
      ),
    );
    const [first = ""] = keys;
    const found = refused.filter((each) => each !== undefined);
    for (const [key, text] of found.length > 0 ? found : [[first, failureMessage(error)] as const])
      store.fail(key, text);
  }
}

const holdsMany = ({ rows, drafts }: Store): boolean =>
  [...drafts.peek().keys()].some((key) => {
    const row = rows.peek().get(key);
    return row !== undefined && isOfMany(row);
  });

async function saveAll(store: Store): Promise<void> {
  if (store.isSaving.peek()) return;
  if (holdsMany(store)) {
    store.isSaving.value = true;
    try {
      await load(store);
    } catch (error) {
      toastFailure(error, "settings");
      return;
    } finally {
      store.isSaving.value = false;
    }
  }
  const typed = inSavingOrder([...store.drafts.peek().keys()]);
  const planned = typed.filter((key) => isPlanned(store, key));
  const keys = typed.filter((key) => !planned.includes(key));
  if (typed.length === 0) {
    toast({ key: "settings", tone: "info", text: t("form.unchanged") });
    return;
  }
  store.isSaving.value = true;
  let saved = 0;
  for (const key of keys) if (await saveOne(store, key)) saved++;
  if (planned.length > 0) await planPrices(store, planned);
  store.isSaving.value = false;
  if (keys.length === 0) return;
  if (saved === keys.length) toast({ key: "settings", text: t("setting.saved", { count: saved }) });
  else {
    const text = t(saved === 0 ? "setting.saveFailed" : "setting.partlySaved");
    toast({ key: "settings", tone: "error", text });
  }
  if (saved > 0) await refreshFrame().catch(() => undefined);
}

async function load({ rows, drafts, isWhole, read }: Store): Promise<void> {
  const [all, words] = await Promise.all([read(), import("../../lib/setting-words.ts"), loadAllTexts()]);
  words.addOptionTexts();
  const known = rows.peek();
  // Texts hold whole maps: what somebody typed in one must not take back what was stored of it meanwhile.
  drafts.value = new Map(
    [...drafts.peek()].map(([key, typed]) => {
      const [before, now] = [known.get(key), all.find((row) => row.key === key)];
      return [key, overNewer(typed, before, now)] as const;
    }),
  );
  rows.value = new Map(all.map((row) => [row.key, row]));
  isWhole.value = true;
}

export function createSettings(data: SettingPageData): Settings {
  const store = createStore(data);
  const { rows, drafts, failures, value, fail, forgive } = store;
  let loading: Promise<void> | undefined;
  return {
    ...store,
    async priced() {
      const { texts } = store.pricePlan.peek() ?? {};
      store.pricePlan.value = undefined;
      for (const [key, text] of texts ?? [])
        if (drafts.peek().get(key) === text) drafts.value = without(drafts.peek(), key);
      await load(store).catch((error: unknown) => toastFailure(error, "settings"));
    },
    planAgain: () => planPrices(store, [...(store.pricePlan.peek()?.texts.keys() ?? [])]),
    set(key, text) {
      const row = rows.peek().get(key);
      const isSame = row?.secret ? text === "" && row.isSet !== true : text === row?.value;
      drafts.value = isSame ? without(drafts.peek(), key) : new Map(drafts.peek()).set(key, text);
      forgive(key);
    },
    leave(key) {
      const row = rows.peek().get(key);
      const problem = row && drafts.peek().has(key) ? problemOf(row, value(key)) : undefined;
      if (problem !== undefined) fail(key, problem);
    },
    revert(key) {
      drafts.value = without(drafts.peek(), key);
      forgive(key);
    },
    discard() {
      drafts.value = new Map();
      failures.value = new Map();
    },
    flip: (key, isOn) => flipSwitch(store, key, isOn),
    save: () => saveAll(store),
    refresh: () => load(store).catch((error: unknown) => toastFailure(error, "settings")),
    loadAll: () =>
      (loading ??= load(store).catch((error: unknown) => {
        loading = undefined;
        toastFailure(error, "settings");
      })),
  };
}
