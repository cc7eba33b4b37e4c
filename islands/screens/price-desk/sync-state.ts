// What a comparison with a source of prices is while the desk is open: the question, its answer, and the ticks.
// Refuses to write prices: what is taken becomes changes of the desk, and goes the way of all changes.
import { computed, signal } from "@preact/signals-react";
import type { ReadonlySignal, Signal } from "@preact/signals-react";
import { MAX_PLAN_BYTES, MAX_PLAN_CHANGES } from "../../../src/shared/price-desk.ts";
import { isSameRow } from "../../../src/shared/price-row.ts";
import type { PriceRow } from "../../../src/shared/price-row.ts";
import { MAX_SYNC_TEXT_MB, SYNC_ADDRESSES } from "../../../src/shared/price-sync.ts";
import type { SyncSource } from "../../../src/shared/price-sync.ts";
import { api, call, failureMessage } from "../../lib/api.ts";
import { t } from "../../lib/i18n.ts";
import { announce } from "../../lib/toasts.ts";
import type { KeptPriceSource, PriceComparison } from "../../lib/wire.ts";
import { isSameEntry } from "../../lib/price-entries.ts";
import type { Desk, Edit } from "../../ui/price-sheet/desk.ts";
import { filterCounts, isBulk, isTakeable, passes } from "./sync-rows.ts";
import type { SyncFilter, SyncLine } from "./sync-rows.ts";

/** By what way the list comes: only root makes the server fetch. */
type SyncWay = "address" | "channel" | "text";

/** A channel whose upstream may be another site like this one. */
interface SyncChannel {
  id: number;
  name: string;
}

const BYTES_PER_MB = 1024 * 1024;

export interface SyncState {
  source: Signal<SyncSource>;
  /** Sources that the site keeps, and the name of the chosen one; empty: none of them. */
  kept: Signal<readonly KeptPriceSource[]>;
  keptName: Signal<string>;
  way: Signal<SyncWay>;
  url: Signal<string>;
  channels: Signal<readonly SyncChannel[]>;
  channelId: Signal<number | undefined>;
  text: Signal<string>;
  /** Name of the file that the text came from. */
  fileName: Signal<string>;
  /** Beginnings that names lose, as typed. */
  strip: Signal<string>;
  isBusy: ReadonlySignal<boolean>;
  failure: Signal<string>;
  result: ReadonlySignal<PriceComparison | undefined>;
  filter: Signal<SyncFilter>;
  search: Signal<string>;
  isServedOnly: Signal<boolean>;
  page: Signal<number>;
  pageSize: Signal<number>;
  ticked: ReadonlySignal<ReadonlySet<string>>;
  /** Rows that the filters show, all pages of them. */
  shown: ReadonlySignal<readonly SyncLine[]>;
  /** Names of those that are ticked together. */
  bulk: ReadonlySignal<readonly string[]>;
  counts: ReadonlySignal<Record<SyncFilter, number>>;
  /** How many prices the last press has put among the changes; 0: none yet. */
  takenCount: Signal<number>;
  /** How many of the ticked ones did not fit into one plan, and stay ticked. */
  leftCount: Signal<number>;
  chooseSource: (source: SyncSource) => void;
  readFile: (file: File) => Promise<void>;
  compare: () => Promise<void>;
  tick: (names: readonly string[], isOn: boolean) => void;
  /** Puts the ticked rows among the changes of the desk. */
  take: () => void;
}

/** Beginnings by commas, spaces or lines. */
export const prefixesOf = (text: string): string[] => text.split(/[\s,，、]+/).filter((each) => each !== "");

const NONE: ReadonlySet<string> = new Set();

const known = new WeakMap<Desk, SyncState>();

/** One for each desk: it stays as it is while other sections are open. */
export function syncStateOf(desk: Desk, canFetch: boolean): SyncState {
  let state = known.get(desk);
  if (!state) known.set(desk, (state = createSync(desk, canFetch)));
  return state;
}

/** What is asked, and how it is typed. */
function createQuestion(canFetch: boolean) {
  const source = signal<SyncSource>("shipped");
  const kept = signal<readonly KeptPriceSource[]>([]);
  const keptName = signal("");
  const way = signal<SyncWay>(canFetch ? "address" : "text");
  const url = signal("");
  const channels = signal<readonly SyncChannel[]>([]);
  const channelId = signal<number>();
  const text = signal("");
  const fileName = signal("");
  const strip = signal("");
  const failure = signal("");
  return {
    source,
    kept,
    keptName,
    way,
    url,
    channels,
    channelId,
    text,
    fileName,
    strip,
    failure,
    chooseSource(next: SyncSource) {
      const usual = SYNC_ADDRESSES[source.peek()] ?? "";
      // What somebody typed stays; an address that was only the usual one gives way.
      if (url.peek().trim() === usual) url.value = SYNC_ADDRESSES[next] ?? "";
      source.value = next;
      // Only a site like this one is asked by its channel.
      if (next !== "instance" && way.peek() === "channel") way.value = "address";
      keptName.value = "";
      failure.value = "";
    },
    async readFile(file: File) {
      failure.value = "";
      if (file.size > MAX_SYNC_TEXT_MB * BYTES_PER_MB) {
        failure.value = t("sync.fileLarge", { name: file.name, limit: MAX_SYNC_TEXT_MB });
        return;
      }
      text.value = await file.text();
      fileName.value = file.name;
    },
  };
}

type Question = ReturnType<typeof createQuestion>;

function requestOf({ source, keptName, way, url, channelId, text, strip }: Question) {
  if (keptName.peek() !== "") return { source: "detect" as const, kept: keptName.peek() };
  const strips = prefixesOf(strip.peek());
  const more = strips.length === 0 ? {} : { strip: strips };
  const asked = source.peek();
  if (asked === "shipped") return { source: asked };
  const id = channelId.peek();
  if (way.peek() === "channel" && id !== undefined) return { source: asked, channel_id: id, ...more };
  return way.peek() === "text"
    ? { source: asked, text: text.peek(), ...more }
    : { source: asked, url: url.peek().trim(), ...more };
}

/** Which rows are shown, and which of them are ticked. */
function createView(result: ReadonlySignal<PriceComparison | undefined>) {
  const filter = signal<SyncFilter>("all");
  const search = signal("");
  const isServedOnly = signal(false);
  const page = signal(1);
  const pageSize = signal(50);
  const ticked = signal<ReadonlySet<string>>(NONE);
  const matching = computed(() => {
    const wanted = search.value.trim().toLowerCase();
    const lines = result.value?.rows ?? [];
    return lines.filter(
      ({ name, served }) =>
        (wanted === "" || name.toLowerCase().includes(wanted)) && (served || !isServedOnly.value),
    );
  });
  const plainCounts = computed(() => filterCounts(matching.value));
  const shown = computed(() => {
    const wanted = filter.value;
    // Only where it matters: otherwise every tick would sort thousands of rows anew.
    const ticks = wanted === "ticked" ? ticked.value : NONE;
    return matching.value.filter((line) => passes(line, wanted, ticks));
  });
  return {
    filter,
    search,
    isServedOnly,
    page,
    pageSize,
    ticked,
    shown,
    bulk: computed(() => shown.value.filter((line) => isBulk(line, filter.value)).map(({ name }) => name)),
    counts: computed(() => ({
      ...plainCounts.value,
      ticked: matching.value.reduce((sum, { name }) => sum + (ticked.value.has(name) ? 1 : 0), 0),
    })),
    tick(names: readonly string[], isOn: boolean) {
      const next = new Set(ticked.peek());
      const takeable = new Set((result.peek()?.rows ?? []).filter(isTakeable).map(({ name }) => name));
      for (const name of names) {
        if (isOn && takeable.has(name)) next.add(name);
        else next.delete(name);
      }
      ticked.value = next;
    },
  };
}

/** What still fits into one plan beside the changes at hand. */
function roomOf(desk: Desk) {
  const bytesOf = (change: object): number => JSON.stringify(change).length + 1;
  const changes = desk.changes.peek();
  let count = changes.length;
  let bytes = changes.reduce((sum, change) => sum + bytesOf(change), 0);
  return {
    /** Counts them in, where there is room for all. */
    takes(edits: readonly Edit[]): boolean {
      const fresh = edits.filter(
        ({ key, name, after }) => !isSameEntry(after, desk.storedValueOf(key, name)),
      );
      const more = fresh.reduce(
        (sum, edit) => sum + bytesOf({ ...edit, before: desk.storedValueOf(edit.key, edit.name) }),
        0,
      );
      if (count + fresh.length > MAX_PLAN_CHANGES || bytes + more > MAX_PLAN_BYTES) return false;
      count += fresh.length;
      bytes += more;
      return true;
    },
  };
}

function createSync(desk: Desk, canFetch: boolean): SyncState {
  const question = createQuestion(canFetch);
  const isBusy = signal(false);
  const result = signal<PriceComparison>();
  const takenCount = signal(0);
  const leftCount = signal(0);
  const view = createView(result);
  const { failure } = question;
  return {
    ...question,
    ...view,
    isBusy,
    result,
    takenCount,
    leftCount,
    async compare() {
      if (isBusy.peek()) return;
      if (question.way.peek() === "channel" && question.channelId.peek() === undefined) {
        failure.value = t("sync.noChannel");
        return;
      }
      isBusy.value = true;
      failure.value = "";
      try {
        const found = await call(api.price.sync.post(requestOf(question)));
        result.value = found;
        view.ticked.value = new Set(found.rows.filter((row) => row.ticked).map(({ name }) => name));
        view.filter.value = "all";
        view.search.value = "";
        view.page.value = 1;
        takenCount.value = 0;
        leftCount.value = 0;
        announce("sync.compared", { count: found.rows.length });
      } catch (error) {
        failure.value = failureMessage(error);
      } finally {
        isBusy.value = false;
      }
    },
    take() {
      const rows = new Map<string, PriceRow>();
      const marks = new Map<string, string>();
      const left = new Set<string>();
      const room = roomOf(desk);
      for (const { name, theirs, taken } of result.peek()?.rows ?? []) {
        if (!theirs || !view.ticked.peek().has(name) || isSameRow(desk.rowOf(name), theirs)) continue;
        if (
          left.size > 0 ||
          !room.takes(desk.editsOfRows(new Map([[name, theirs]]), new Map([[name, taken]])))
        ) {
          left.add(name);
          continue;
        }
        rows.set(name, theirs);
        marks.set(name, taken);
      }
      const label = t("sync.step", { count: rows.size, source: result.peek()?.source ?? "" });
      if (rows.size > 0) desk.writeRows(rows, label, marks);
      view.ticked.value = left;
      takenCount.value = rows.size;
      leftCount.value = left.size;
      announce("sync.taken", { count: rows.size });
    },
  };
}
