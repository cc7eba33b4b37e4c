// What a file of accounts would do: how many are made, how many change, what money moves, and what is wrong by line.
// Refuses nothing in silence: a file with one wrong line is not begun at all (start.ts).
import { inArray } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { refuse } from "../../../shared/failures.ts";
import { charactersIn, MAX_REMARK } from "../../../shared/name-limits.ts";
import { Role } from "../../../shared/enums.ts";
import type { Deps, UserAccount } from "../../deps.ts";
import { sha256Hex } from "../../kit/seal.ts";
import { checkedDisplayName, checkedUsername, checkPassword } from "../account-rules.ts";
import { ceilingOf, checkedBalance } from "../balance-changes.ts";
import { mailKey, nameKey } from "../folding.ts";
import { mailFor } from "../mail-rules.ts";
import type { UserRow } from "../users.ts";
import { problemOf, readImport } from "./file.ts";
import type { ImportProblem, ImportRow } from "./file.ts";

type PlanDeps = Pick<Deps, "db" | "clock" | "options">;
type Actor = Pick<UserAccount, "id" | "role">;

/** Of one query. */
const LOOKED_UP_AT_ONCE = 500;
/** Problems that an answer names. */
const MOST_PROBLEMS = 1_000;

/** A line that something is done for; `userId` 0: a new account. */
export interface PlannedRow extends ImportRow {
  userId: number;
}

export interface ImportPlan {
  create: number;
  change: number;
  /** Lines that ask for what is so already. */
  unchanged: number;
  /** Quota units over all lines. */
  added: number;
  taken: number;
  /** The first thousand; `problem_count` in all. */
  problems: ImportProblem[];
  problem_count: number;
  /** What was looked at, for whoever begins it: another file, or another outcome, has another. */
  plan: string;
}

/** The accounts that the lines name, by what they name them by. */
interface Known {
  byId: Map<number, UserRow>;
  byName: Map<string, UserRow>;
  /** By the name folded, where none has it as it is written. */
  byKey: Map<string, UserRow>;
  byMail: Map<string, UserRow>;
}

async function lookUp(
  { db }: PlanDeps,
  column: PgColumn,
  values: readonly (string | number)[],
): Promise<UserRow[]> {
  const { users } = db.t;
  const wanted = [...new Set(values)];
  const found: UserRow[] = [];
  for (let at = 0; at < wanted.length; at += LOOKED_UP_AT_ONCE)
    found.push(
      ...(await db.orm
        .select()
        .from(users)
        .where(inArray(column, wanted.slice(at, at + LOOKED_UP_AT_ONCE)))),
    );
  return found;
}

async function knownOf(deps: PlanDeps, rows: readonly ImportRow[]): Promise<Known> {
  const { users } = deps.db.t;
  const ids = rows.flatMap(({ id }) => (id > 0 ? [id] : []));
  const names = rows.flatMap(({ id, username }) => (id === 0 && username !== "" ? [username] : []));
  const mails = rows.flatMap(({ email }) => (email === "" ? [] : [mailKey(email)]));
  const byIds = await lookUp(deps, users.id, ids);
  const byNames = await lookUp(deps, users.username, names);
  const byKeys = await lookUp(deps, users.usernameKey, names.map(nameKey));
  const byMails = await lookUp(deps, users.emailKey, mails);
  return {
    byId: new Map(byIds.map((row) => [row.id, row])),
    byName: new Map(byNames.map((row) => [row.username, row])),
    byKey: new Map(byKeys.map((row) => [row.usernameKey, row])),
    byMail: new Map(byMails.map((row) => [row.emailKey, row])),
  };
}

/** What a line does. Throws Failures. */
function planRow(
  deps: PlanDeps,
  { actor, known, seen }: { actor: Actor; known: Known; seen: Set<string> },
  row: ImportRow,
): PlannedRow | undefined {
  const once = (what: string) => {
    if (seen.has(what)) throw refuse("import_twice");
    seen.add(what);
  };
  if (row.group !== "" && !Object.hasOwn(deps.options.get("GroupRatio"), row.group))
    throw refuse("group_unknown", { group: row.group.slice(0, 64) });
  if (charactersIn(row.remark) > MAX_REMARK) throw refuse("import_cell_long");
  checkedBalance(row.credit);
  const user =
    row.id > 0
      ? known.byId.get(row.id)
      : (known.byName.get(row.username) ?? known.byKey.get(nameKey(row.username)));
  if (user) {
    once(`user ${user.id}`);
    if (row.password !== "") throw refuse("import_password_known");
    const isChange =
      (row.group !== "" && row.group !== user.group) ||
      (row.remark !== "" && row.remark !== user.remark) ||
      row.credit !== 0;
    // An export comes back as it is, whoever is in it.
    if (!isChange) return undefined;
    if (user.deletedAt !== null) throw refuse("user_missing");
    if (actor.role < Role.root && user.role >= actor.role) throw refuse("user_rank_update");
    if (row.credit < 0 && user.quota + row.credit < 0) throw refuse("quota_out_of_range");
    return { ...row, userId: user.id };
  }
  if (row.id > 0) throw refuse("user_missing");
  const username = checkedUsername(row.username);
  once(`name ${nameKey(username)}`);
  checkedDisplayName(row.display_name);
  if (row.password === "" && row.email === "") throw refuse("import_no_way_in");
  if (row.password !== "") checkPassword(row.password);
  if (row.email !== "") {
    const { key } = mailFor(deps, row.email);
    once(`mail ${key}`);
    if (known.byMail.has(key)) throw refuse("mail_taken");
  }
  if (row.credit < 0) throw refuse("quota_out_of_range");
  return { ...row, username, userId: 0 };
}

/** Looks at the whole file and changes nothing. Throws Failures where it is no such file. */
export async function planImport(
  deps: PlanDeps,
  actor: Actor,
  text: string,
): Promise<{ rows: PlannedRow[]; report: ImportPlan; file: string }> {
  const { rows, problems } = readImport(text, deps.options.get("QuotaPerUnit"));
  const known = await knownOf(deps, rows);
  const seen = new Set<string>();
  const planned: PlannedRow[] = [];
  let unchanged = 0;
  for (const row of rows) {
    try {
      const done = planRow(deps, { actor, known, seen }, row);
      if (done) planned.push(done);
      else unchanged += 1;
    } catch (error) {
      problems.push(problemOf(row.line, error));
    }
  }
  const added = planned.reduce((sum, { credit }) => sum + Math.max(0, credit), 0);
  const taken = planned.reduce((sum, { credit }) => sum + Math.max(0, -credit), 0);
  const { left } = await ceilingOf(deps, actor);
  if (left !== null && added + taken > left) problems.push({ line: 0, code: "import_ceiling" });
  problems.sort((a, b) => a.line - b.line);
  const create = planned.filter(({ userId }) => userId === 0).length;
  const change = planned.length - create;
  const file = sha256Hex(text);
  return {
    rows: planned,
    file,
    report: {
      create,
      change,
      unchanged,
      added,
      taken,
      problems: problems.slice(0, MOST_PROBLEMS),
      problem_count: problems.length,
      plan: sha256Hex(JSON.stringify([file, create, change, added, taken])),
    },
  };
}
