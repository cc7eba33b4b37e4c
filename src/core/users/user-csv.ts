// Accounts as a CSV file: the list as it is filtered, by key pages, so that no page costs more than the first.
// Refuses secrets: what is exported stands in COLUMNS. Formulas in cells are defused by shared/csv.ts.
import { and, asc, gt } from "drizzle-orm";
import { BYTE_ORDER_MARK, csvLine } from "../../shared/csv.ts";
import type { CsvCell } from "../../shared/csv.ts";
import { Role, UserStatus } from "../../shared/enums.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { mayReadNotes, lastSeen, userWhere } from "./user-list.ts";
import type { UserFilter } from "./user-list.ts";
import type { UserRow } from "./users.ts";

const PAGE_ROWS = 500;

/** Six decimals name every unit of quota at the default price of a unit. */
const DECIMALS = 6;

interface Told {
  row: UserRow;
  /** Unix seconds; 0: never. */
  seen: number;
  perUnit: number;
  viewer: Pick<UserAccount, "id" | "role">;
}

const time = (seconds: number): string => (seconds > 0 ? new Date(seconds * 1000).toISOString() : "");

const ROLES: Record<number, string> = { [Role.user]: "user", [Role.admin]: "admin", [Role.root]: "root" };

function statusOf({ status, deletedAt }: UserRow): string {
  if (deletedAt !== null) return "deleted";
  return status === UserStatus.enabled ? "enabled" : "disabled";
}

/** By their heads; a file with these heads can come back in (import/file.ts). Times are UTC, amounts dollars. */
const COLUMNS: Record<string, (told: Told) => CsvCell> = {
  id: ({ row }) => row.id,
  username: ({ row }) => row.username,
  email: ({ row }) => row.email,
  display_name: ({ row }) => row.displayName,
  group: ({ row }) => row.group,
  role: ({ row }) => ROLES[row.role] ?? String(row.role),
  status: ({ row }) => statusOf(row),
  balance_usd: ({ row, perUnit }) => Number((row.quota / perUnit).toFixed(DECIMALS)),
  used_usd: ({ row, perUnit }) => Number((row.usedQuota / perUnit).toFixed(DECIMALS)),
  balance_quota: ({ row }) => row.quota,
  requests: ({ row }) => row.requestCount,
  invited_by: ({ row }) => (row.inviterId > 0 ? row.inviterId : ""),
  on_hold: ({ row, viewer }) => (mayReadNotes(viewer, row) && row.flagged ? "yes" : ""),
  remark: ({ row, viewer }) => (mayReadNotes(viewer, row) ? row.remark : ""),
  created_at: ({ row }) => time(row.createdAt),
  last_seen_at: ({ seen }) => time(seen),
};

/** Heads of the file, in their order. */
export const EXPORTED_HEADS: readonly string[] = Object.keys(COLUMNS);

/** The file in parts: its head with the first page, then a page at a time, in the order of the accounts' ids. */
export async function* userCsv(
  deps: Pick<Deps, "db" | "clock" | "options">,
  viewer: Pick<UserAccount, "id" | "role">,
  filter: UserFilter,
): AsyncGenerator<string, void> {
  const { users } = deps.db.t;
  const perUnit = deps.options.get("QuotaPerUnit");
  const cells = Object.values(COLUMNS);
  let head = BYTE_ORDER_MARK + csvLine(EXPORTED_HEADS);
  let last = 0;
  for (;;) {
    const page = await deps.db.reader
      .select({ row: users, seen: lastSeen(deps) })
      .from(users)
      .where(and(userWhere(deps, viewer, filter), gt(users.id, last)))
      .orderBy(asc(users.id))
      .limit(PAGE_ROWS);
    const lines = page.map(({ row, seen }) =>
      csvLine(cells.map((cell) => cell({ row, seen: Number(seen), perUnit, viewer }))),
    );
    yield head + lines.join("");
    head = "";
    const end = page.at(-1);
    if (end === undefined || page.length < PAGE_ROWS) return;
    last = end.row.id;
  }
}
