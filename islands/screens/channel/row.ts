// What the channel screen knows of a channel, the heads of tag mode, and the small readings of a row.
// Refuses to carry keys: they go to the server and never come back.
import { siteDisplay } from "../../lib/format.ts";
import type { Language } from "../../../src/shared/enums.ts";
import type { ChannelRow, ChannelSummary, ListPageData } from "../../lib/wire.ts";

/** Head of the channels of one tag in tag mode. */
export interface TagRow {
  isTag: true;
  tag: string;
  channels: readonly ChannelRow[];
  isOpen: boolean;
  /** Mean over the tested ones; 0: none was. */
  response_time: number;
  used_quota: number;
  /** Undefined: they differ. */
  priority: number | undefined;
  weight: number | undefined;
}

export type ListRow = ChannelRow | TagRow;

/** By type: its name, or the Chinese and the English one. */
export type TypeNames = Record<string, string | readonly string[]>;

export interface ChannelPageData extends ListPageData<ChannelRow> {
  summary: ChannelSummary;
  groups: string[];
  types: TypeNames;
  /** Parameters that this browser remembers, where the address had none. */
  remembered: Record<string, string>;
}

export const STATUS_ENABLED = 1;
export const STATUS_DISABLED = 2;
export const STATUS_AUTO_DISABLED = 3;

/** The specification's thresholds of a test's time: up to one second, up to three, up to five, above. */
export const RESPONSE_MS = [1001, 3001, 5001] as const;

/** Filters and order of a view; the rest of the address is page and open drawer. */
export const VIEW_FIELDS = [
  "keyword",
  "group",
  "model",
  "tag",
  "status",
  "untested",
  "tag_mode",
  "sort",
] as const;

/** Whether a search is for a key: such a text must not end up in the address and the browser's history. */
export function isKeyLike(text: string): boolean {
  return /^(sk-|AIza|AKIA)\S{8,}$|^[\w|+=-]{32,}$/.test(text.trim());
}

export function isTagRow(row: ListRow): row is TagRow {
  return "isTag" in row;
}

export function typeName(types: TypeNames, type: number, to: Language): string {
  const name = types[type];
  if (name === undefined) return `#${type}`;
  return typeof name === "string" ? name : (name[to === "zh" ? 0 : 1] ?? `#${type}`);
}

/** A comma list, or lines; each name once. Blanks inside a name belong to it. */
export function namesOf(text: string): string[] {
  const names = text.split(/[,，\n]+/).map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ""))];
}

/** Why and when a channel was switched off by itself. */
export function reasonOf(row: ChannelRow): { reason: string; time: number } | undefined {
  try {
    const info = JSON.parse(row.other_info || "{}") as { status_reason?: unknown; status_time?: unknown };
    return typeof info.status_reason === "string" && info.status_reason !== ""
      ? { reason: info.status_reason, time: typeof info.status_time === "number" ? info.status_time : 0 }
      : undefined;
  } catch {
    return undefined;
  }
}

function common(channels: readonly ChannelRow[], name: "priority" | "weight"): number | undefined {
  const first = channels[0]?.[name];
  return channels.every((each) => each[name] === first) ? first : undefined;
}

/** Channels under heads of their tags, in the order in which the tags come; those of closed heads are left out. */
export function groupByTag(rows: readonly ChannelRow[], closed: ReadonlySet<string>): ListRow[] {
  const byTag = new Map<string, ChannelRow[]>();
  for (const row of rows) byTag.set(row.tag ?? "", [...(byTag.get(row.tag ?? "") ?? []), row]);
  const tags = [...byTag.keys()].sort((a, b) => (a < b ? -1 : 1));
  return tags.flatMap((tag): ListRow[] => {
    const channels = byTag.get(tag) ?? [];
    const tested = channels.filter((each) => each.response_time > 0);
    const isOpen = !closed.has(tag);
    const head: TagRow = {
      isTag: true,
      tag,
      channels,
      isOpen,
      response_time:
        tested.length === 0
          ? 0
          : Math.round(tested.reduce((sum, each) => sum + each.response_time, 0) / tested.length),
      used_quota: channels.reduce((sum, each) => sum + each.used_quota, 0),
      priority: common(channels, "priority"),
      weight: common(channels, "weight"),
    };
    return [head, ...(isOpen ? channels : [])];
  });
}

/** What came of a test of a row in this page: it is shown until the page is left. */
export type TestState =
  | { phase: "waiting" | "running" }
  | { phase: "passed"; ms: number }
  | { phase: "failed"; ms: number; message: string }
  | { phase: "skipped"; message: string };

/** Dollars as providers report them, in the currency of the site; there as here in dollars where it shows units. */
export function dollarsText(balance: number): string {
  const { symbol, rate } = siteDisplay();
  return `${balance < 0 ? "-" : ""}${symbol}${Math.abs(balance * rate).toFixed(2)}`;
}
