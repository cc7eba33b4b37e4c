// Saved views: a name for filters, sort and columns of a screen, kept in this browser.
// Refuses broken storage: what is not a view is dropped, the others stay.
import { OWN_KEYS, readJson, writeItem } from "./storage.ts";
import type { Query } from "./url-state.ts";

export interface SavedView {
  name: string;
  /** Parameters of the address, in the API's own names. */
  query: Record<string, string>;
  /** The column choice as it is stored; absent: the screen's own. */
  columns?: string;
}

type Stored = Record<string, SavedView[]>;

const MOST = 30;
export const MAX_VIEW_NAME = 40;

function isView(value: unknown): value is SavedView {
  if (value === null || typeof value !== "object") return false;
  const { name, query, columns } = value as Partial<SavedView>;
  return (
    typeof name === "string" &&
    name !== "" &&
    query !== null &&
    typeof query === "object" &&
    Object.values(query).every((each) => typeof each === "string") &&
    (columns === undefined || typeof columns === "string")
  );
}

function isStored(value: unknown): value is Record<string, unknown[]> {
  return value !== null && typeof value === "object" && Object.values(value).every(Array.isArray);
}

function all(): Stored {
  const stored = readJson<Record<string, unknown[]>>(OWN_KEYS.views, isStored, {});
  return Object.fromEntries(Object.entries(stored).map(([screen, list]) => [screen, list.filter(isView)]));
}

export function readViews(screen: string): SavedView[] {
  const stored = all();
  return Object.hasOwn(stored, screen) ? (stored[screen] ?? []) : [];
}

export function writeViews(screen: string, views: readonly SavedView[]): void {
  writeItem(OWN_KEYS.views, JSON.stringify({ ...all(), [screen]: views.slice(-MOST) }));
}

/** The part of an address that a view of these fields keeps. */
export function viewQuery(query: Query, fields: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    fields.flatMap((name) => ((query[name] ?? "") === "" ? [] : [[name, query[name] ?? ""]])),
  );
}

export function sameQuery(a: Record<string, string>, b: Record<string, string>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

export interface OpenedView {
  /** For setFilters: every field of the screen, those that the view does not name emptied. */
  patch: Record<string, string | undefined>;
  /** Fields of the view that this screen no longer has. */
  unknown: string[];
}

export function openView(view: SavedView, fields: readonly string[]): OpenedView {
  return {
    patch: Object.fromEntries(fields.map((name) => [name, view.query[name]])),
    unknown: Object.keys(view.query).filter((name) => !fields.includes(name)),
  };
}
