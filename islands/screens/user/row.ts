// What the user screen knows of an account, who may do what to whom, and the drawer's values.
// Refuses nothing; the server holds the same rank rules.

export interface UserRow {
  id: number;
  username: string;
  display_name: string;
  role: number;
  status: number;
  email: string;
  group: string;
  quota: number;
  used_quota: number;
  request_count: number;
  inviter_id: number;
  aff_count: number;
  aff_history_quota: number;
  github_id: string;
  oidc_id: string;
  wechat_id: string;
  telegram_id: string;
  linux_do_id: string;
  DeletedAt: string | null;
}

export interface UserPageData {
  rows: UserRow[];
  total: number;
  pageSize: number;
  groups: string[];
}

export const Rank = { user: 1, admin: 10, root: 100 } as const;
export const ENABLED = 1;
export const DISABLED = 2;

export interface Viewer {
  id: number;
  role: number;
}

/** An administrator touches lower ranks only; root touches everybody. */
export function mayTouch(viewer: Viewer, row: Pick<UserRow, "role" | "DeletedAt">): boolean {
  return row.DeletedAt === null && (viewer.role >= Rank.root || viewer.role > row.role);
}

export type ManageAction = "enable" | "disable" | "promote" | "demote" | "delete";

/** What the viewer's rank allows on this row; what is not allowed is not offered. */
export function actionsFor(viewer: Viewer, row: UserRow): ManageAction[] {
  if (!mayTouch(viewer, row) || row.role >= Rank.root || row.id === viewer.id) return [];
  const actions: ManageAction[] = [row.status === ENABLED ? "disable" : "enable"];
  if (viewer.role >= Rank.root) actions.push(row.role >= Rank.admin ? "demote" : "promote");
  actions.push("delete");
  return actions;
}

export interface UserValues extends Record<string, unknown> {
  username: string;
  display_name: string;
  password: string;
  group: string;
  quota: number | undefined;
}

export function valuesOf(row: UserRow | undefined): UserValues {
  return {
    username: row?.username ?? "",
    display_name: row?.display_name ?? "",
    password: "",
    group: row?.group ?? "default",
    quota: row?.quota,
  };
}
