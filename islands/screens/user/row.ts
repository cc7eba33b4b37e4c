// What the user screen knows of an account, and who may do what to whom.
import type { ListPageData, UserRow } from "../../lib/wire.ts";

export interface UserPageData extends ListPageData<UserRow> {
  groups: string[];
  /** Quota units below which the site warns of a balance; 0: never. */
  lowQuota: number;
}

const Rank = { user: 1, admin: 10, root: 100 } as const;
export const ENABLED = 1;
export const DISABLED = 2;
/** A status from which nobody comes back by hand. */
const LOCKED = 3;

const RANKS: Record<number, string> = {
  [Rank.user]: "user.rank.user",
  [Rank.admin]: "user.rank.admin",
  [Rank.root]: "user.rank.root",
};

/** Key of the rank's name; whatever is no rank is unknown. */
export function rankKey(role: number): string {
  return RANKS[role] ?? "common.unknown";
}

export interface Viewer {
  id: number;
  role: number;
}

/** An administrator looks at lower ranks only; root looks at everybody. */
export function mayRead(viewer: Viewer, row: Pick<UserRow, "role">): boolean {
  return viewer.role >= Rank.root || viewer.role > row.role;
}

/** Deleted accounts stay as they are. */
export function mayTouch(viewer: Viewer, row: Pick<UserRow, "role" | "DeletedAt">): boolean {
  return row.DeletedAt === null && mayRead(viewer, row);
}

export type ManageAction = "enable" | "disable" | "promote" | "demote" | "delete";

/** What the viewer's rank allows on this row; what is not allowed is not offered. */
export function actionsFor(viewer: Viewer, row: UserRow): ManageAction[] {
  if (!mayTouch(viewer, row) || row.role >= Rank.root || row.id === viewer.id) return [];
  const actions: ManageAction[] = [];
  if (row.status === ENABLED) actions.push("disable");
  else if (row.status !== LOCKED) actions.push("enable");
  if (viewer.role >= Rank.root) actions.push(row.role >= Rank.admin ? "demote" : "promote");
  actions.push("delete");
  return actions;
}
