// The section `plans` of a settings file: a plan is its title, and the file says all of its terms.
// Refuses terms that the console would refuse, and groups that the site will not have; what was bought keeps its terms.
import { asc, eq, isNull } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { refuse } from "../../shared/failures.ts";
import { jsonObject } from "../../shared/json-object.ts";
import { PLAN_RESETS, PLAN_STACKS, PLAN_UNITS } from "../../shared/plan-terms.ts";
import { fieldsOf, PLAN_DEFAULTS, planColumns } from "../plans/plans.ts";
import type { PlanColumns, PlanFields } from "../plans/plans.ts";
import type { PlanRow } from "../plans/purse.ts";
import { textOf } from "../prices/changes.ts";
import { byName, checked, entriesOf, isRecord, noteFields, onlyFields, wrong } from "./judge.ts";
import type { Judge, Path } from "./judge.ts";
import type { ConfigDeps } from "./state.ts";

/** What becomes of one plan. */
export interface PlanChange {
  title: string;
  before: PlanRow | undefined;
  /** Undefined: it is taken away. */
  columns: PlanColumns | undefined;
}

type FieldName = Exclude<keyof PlanFields, "title">;
type Kind = "text" | "int" | "flag" | readonly string[];

/** In the order in which files show them. */
const FIELDS = {
  description: "text",
  price: "text",
  currency: "text",
  wallet_price: "int",
  duration_unit: PLAN_UNITS,
  duration_count: "int",
  reset: PLAN_RESETS,
  quota: "int",
  group: "text",
  overflow: "flag",
  max_per_user: "int",
  stack: PLAN_STACKS,
  enabled: "flag",
} as const satisfies Record<FieldName, Kind>;

const FIELD_ROWS = Object.entries(FIELDS) as [FieldName, Kind][];
const NEEDED: readonly FieldName[] = ["duration_unit", "quota"];
const DEFAULTS: Partial<PlanFields> = PLAN_DEFAULTS;

type Shown = Partial<Record<FieldName, unknown>>;

/** The fields that are not as they are where nobody says anything. */
function shownFields(fields: Shown): Shown {
  return Object.fromEntries(
    FIELD_ROWS.flatMap(([name]): [string, unknown][] =>
      fields[name] === undefined || fields[name] === DEFAULTS[name] ? [] : [[name, fields[name]]],
    ),
  );
}

/** Plans by title. */
export function shownPlans(rows: readonly PlanRow[]): Record<string, Shown> {
  return Object.fromEntries(
    rows.map((row): [string, Shown] => [row.title, shownFields(fieldsOf(row))]).toSorted(byName),
  );
}

/** The value as the terms have it; undefined, and a problem, where it is of another kind. Amounts may be written as numbers. */
function readField(judge: Judge, path: Path, name: FieldName, kind: Kind, value: unknown): unknown {
  if (typeof kind !== "string") {
    if (kind.some((each) => each === value)) return value;
    wrong(judge, path, "option_not_one_of", { values: kind.join(", ") });
  } else if (kind === "int") {
    if (Number.isSafeInteger(value) && Number(value) >= 0) return value;
    wrong(judge, path, "option_not_int", { min: 0, max: Number.MAX_SAFE_INTEGER });
  } else if (kind === "flag") {
    if (typeof value === "boolean") return value;
    wrong(judge, path, "config_not_bool");
  } else {
    if (name === "price" && typeof value === "number") return String(value);
    if (typeof value === "string") return value;
    wrong(judge, path, "config_not_text");
  }
  return undefined;
}

/** What the file says of a plan, with what is there where nobody says anything; undefined where a part of it is wrong. */
function readFields(judge: Judge, path: Path, sent: Record<string, unknown>): Shown | undefined {
  onlyFields(judge, path, sent, Object.keys(FIELDS));
  const found = judge.problems.length;
  const fields: Shown = { ...PLAN_DEFAULTS };
  for (const [name, kind] of FIELD_ROWS) {
    if (sent[name] !== undefined) fields[name] = readField(judge, [...path, name], name, kind, sent[name]);
    else if (NEEDED.includes(name)) wrong(judge, path, "config_field_missing", { field: name });
  }
  return judge.problems.length === found ? fields : undefined;
}

/** The groups with a ratio as the file leaves them. */
function groupsAfter(judge: Judge): ReadonlySet<string> {
  const whole = judge.options.find(({ key }) => key === "GroupRatio")?.text;
  const names = new Set(Object.keys(jsonObject(whole ?? textOf(judge.state.prices, "GroupRatio")) ?? {}));
  for (const { key, name, after } of judge.prices) {
    if (key !== "GroupRatio") continue;
    if (after === undefined || after === null) names.delete(name);
    else names.add(name);
  }
  return names;
}

export function judgePlans(judge: Judge, value: unknown): void {
  const known = new Map(judge.state.plans.map((row) => [row.title, row]));
  const groups = groupsAfter(judge);
  const named = new Set<string>();
  for (const [title, sent] of entriesOf(judge, ["plans"], value)) {
    const path = ["plans", title];
    named.add(title);
    if (!isRecord(sent)) {
      wrong(judge, path, "config_not_map");
      continue;
    }
    const before = known.get(title);
    const fields = readFields(judge, path, sent);
    if (!fields) continue;
    const was = before && shownFields(fieldsOf(before));
    // As an export says it, whatever it is: only what is written is judged.
    if (was && Bun.deepEquals(was, shownFields(fields), true)) continue;
    const columns = checked(judge, path, () =>
      planColumns((group) => groups.has(group), { ...fields, title } as PlanFields),
    );
    if (!columns) continue;
    if (columns.title !== title) {
      wrong(judge, path, "plan_title");
      continue;
    }
    const is = shownFields(fieldsOf({ ...(before ?? ({} as PlanRow)), ...columns }));
    if (was && Bun.deepEquals(was, is, true)) continue;
    noteFields(judge, { section: "plans", name: title }, was, is);
    judge.plans.push({ title, before, columns });
  }
  if (!judge.prunes.has("plans")) return;
  for (const [title, before] of [...known].toSorted(byName)) {
    if (named.has(title)) continue;
    noteFields(judge, { section: "plans", name: title }, shownFields(fieldsOf(before)), undefined);
    judge.plans.push({ title, before, columns: undefined });
  }
}

/** The plans that are on the list, by id. */
export const plansOf = ({ t: { plans } }: ConfigDeps["db"], orm: Orm) =>
  orm.select().from(plans).where(isNull(plans.deletedAt)).orderBy(asc(plans.id));

/** Inside the block that writes. Throws `config_moved` where a plan is not as it was read. */
export function* writePlans({ db, clock }: ConfigDeps, tx: Orm, judge: Judge): Steps<void> {
  if (judge.plans.length === 0) return;
  const { plans } = db.t;
  const now = yield* q(plansOf(db, tx));
  if (!Bun.deepEquals(now, [...judge.state.plans], true)) throw refuse("config_moved");
  const updatedAt = Math.floor(clock.nowMs() / 1000);
  for (const { before, columns } of judge.plans) {
    if (!before && columns)
      yield* q(
        tx
          .insert(plans)
          .values({ ...columns, createdAt: updatedAt, updatedAt })
          .returning({ id: plans.id }),
      );
    if (!before) continue;
    // Nobody buys it any more; what was bought goes on.
    const set = columns ? { ...columns, updatedAt } : { deletedAt: updatedAt, enabled: false };
    yield* q(tx.update(plans).set(set).where(eq(plans.id, before.id)).returning({ id: plans.id }));
  }
}
