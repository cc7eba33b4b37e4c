// The section `plans` of a settings file: a plan is its title, and the file says all of its terms.
// Refuses terms that the console would refuse, and groups that the site will not have; what was bought keeps its terms.
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { refuse } from "../../shared/failures.ts";
import { jsonObject } from "../../shared/json-object.ts";
import { fieldsOf, isOfPlanField, PLAN_DEFAULTS, PLAN_FIELDS, planColumns } from "../plans/plans.ts";
import type { PlanColumns, PlanFieldKind, PlanFields } from "../plans/plans.ts";
import type { PlanRow } from "../plans/purse.ts";
import { textOf } from "../prices/changes.ts";
import type { PriceChange } from "../prices/changes.ts";
import { plansOnSale, writePlanSteps } from "../prices/sold-plans.ts";
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

type FieldName = keyof typeof PLAN_FIELDS;

const FIELD_ROWS = Object.entries(PLAN_FIELDS) as [FieldName, PlanFieldKind][];
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
function readField(judge: Judge, path: Path, name: FieldName, kind: PlanFieldKind, value: unknown): unknown {
  if (name === "price" && typeof value === "number") return String(value);
  if (isOfPlanField(kind, value)) return value;
  if (kind === "int") wrong(judge, path, "option_not_int", { min: 0, max: Number.MAX_SAFE_INTEGER });
  else if (kind === "flag") wrong(judge, path, "config_not_bool");
  else if (kind === "text") wrong(judge, path, "config_not_text");
  else wrong(judge, path, "option_not_one_of", { values: kind.join(", ") });
  return undefined;
}

/** What the file says of a plan, with what is there where nobody says anything; undefined where a part of it is wrong. */
function readFields(judge: Judge, path: Path, sent: Record<string, unknown>): Shown | undefined {
  onlyFields(judge, path, sent, Object.keys(PLAN_FIELDS));
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

/** Inside the block that writes; answers what the history tells. Throws `config_moved` where a plan is not as it was read. */
export function* writePlans(deps: ConfigDeps, tx: Orm, judge: Judge): Steps<PriceChange[]> {
  if (judge.plans.length === 0) return [];
  const now = yield* q(plansOnSale(deps.db, tx));
  if (!Bun.deepEquals(now, [...judge.state.plans], true)) throw refuse("config_moved");
  const writes = judge.plans.map(({ before, columns }) => ({ id: before?.id ?? 0, columns }));
  return yield* writePlanSteps(deps, tx, writes);
}
