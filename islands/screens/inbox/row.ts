// What the inbox screen knows of an item: its state now, and whether the viewer may change it.
import { Role } from "../../../src/shared/enums.ts";
import { closesItself, inboxKinds } from "../../../src/shared/inbox.ts";
import type { StatusTone } from "../../ui/badges.tsx";
import type { InboxRow, ListPageData } from "../../lib/wire.ts";

export type InboxPageData = ListPageData<InboxRow>;

export type RowState = "open" | "snoozed" | "closed";

/** `nowSeconds`: a snooze ends by itself. */
export function stateOf({ closed_at, snoozed_until }: InboxRow, nowSeconds: number): RowState {
  if (closed_at > 0) return "closed";
  return snoozed_until > nowSeconds ? "snoozed" : "open";
}

export function toneOf(row: InboxRow): StatusTone {
  return row.closed_at > 0 ? "off" : inboxKinds[row.kind].tone;
}

/** What tells root of an administrator is root's. */
export function mayChange({ kind, closed_at }: InboxRow, role: number): boolean {
  return closed_at === 0 && (role >= Role.root || inboxKinds[kind].isRootsToClose !== true);
}

/** What lasts closes itself; by hand it would be back with the next look, as long as somebody looks. */
export function mayClose(row: InboxRow, role: number, nowSeconds: number): boolean {
  return mayChange(row, role) && !closesItself(row.kind, row.last_seen_at, nowSeconds);
}
