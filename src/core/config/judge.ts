// What reading a settings file gathers: what is wrong with it and where, what it would change, and what is to be written.
// Texts are not here: a problem is a failure code, its parameters and a place in the file.
import type { FailureCode } from "../../shared/failure-codes.ts";
import { Failure } from "../../shared/failures.ts";
import type { FailureParams } from "../../shared/failures.ts";
import type { PriceRow } from "../../shared/price-row.ts";
import type { SentChange } from "../prices/changes.ts";
import type { OptionWrite } from "../options/store.ts";
import type { ChannelPlan } from "./channels.ts";
import type { PlanChange } from "./plans.ts";
import type { ConfigState } from "./state.ts";

/** A place in the file: names of maps and numbers of list items. */
export type Path = readonly string[];

export interface ConfigProblem {
  path: Path;
  code: FailureCode;
  params: FailureParams;
}

/** One field of one name; null: it has no value there. What is secret has no value here at all. */
export interface ConfigChange {
  section: string;
  name: string;
  /** Empty where the name has no fields. */
  field: string;
  action: "add" | "change" | "remove";
  before: unknown;
  after: unknown;
}

export interface Judge {
  readonly state: ConfigState;
  /** Values of the variables that the file names, by whoever sent it. */
  readonly variables: ReadonlyMap<string, string>;
  /** Sections whose names are all that there is to be. */
  readonly prunes: ReadonlySet<string>;
  /** Sections in which the file names something. */
  readonly kept: Set<string>;
  readonly problems: ConfigProblem[];
  readonly changes: ConfigChange[];
  /** Models whose price changes, in dollars. */
  readonly rows: { name: string; before: PriceRow | undefined; after: PriceRow | undefined }[];
  /** Of options that hold prices, ratios or groups. */
  readonly prices: SentChange[];
  /** Of all other options. */
  readonly options: OptionWrite[];
  readonly channels: ChannelPlan[];
  readonly plans: PlanChange[];
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function wrong(judge: Judge, path: Path, code: FailureCode, params: FailureParams = {}): void {
  judge.problems.push({ path, code, params });
}

/** Runs a check; its refusal becomes a problem of the place, or of the field below it that the refusal names. */
export function checked<T>(judge: Judge, path: Path, check: () => T): T | undefined {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const at = error.param === undefined ? path : [...path, error.param];
    wrong(judge, at, error.code, error.params);
    return undefined;
  }
}

/** The entries of a section; none, and a problem, where it is no map. */
export function entriesOf(judge: Judge, path: Path, value: unknown): [string, unknown][] {
  if (isRecord(value)) {
    const entries = Object.entries(value);
    if (entries.length > 0) judge.kept.add(path[0] ?? "");
    return entries;
  }
  wrong(judge, path, "config_not_map");
  return [];
}

/** Names no field but the allowed ones. */
export function onlyFields(
  judge: Judge,
  path: Path,
  value: Record<string, unknown>,
  allowed: readonly string[],
): void {
  for (const name of Object.keys(value))
    if (!allowed.includes(name))
      wrong(judge, [...path, name], "config_unknown", { name, allowed: allowed.join(", ") });
}

const isSame = (a: unknown, b: unknown): boolean => Object.is(a, b) || Bun.deepEquals(a, b, true);

/** The fields that differ, in the order of the list and then of their names. */
export function noteFields(
  judge: Judge,
  place: { section: string; name: string },
  before: Readonly<Record<string, unknown>> | undefined,
  after: Readonly<Record<string, unknown>> | undefined,
): void {
  const action = before === undefined ? "add" : after === undefined ? "remove" : "change";
  const fields = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  for (const field of fields) {
    const [was, is] = [before?.[field] ?? null, after?.[field] ?? null];
    if (!isSame(was, is)) judge.changes.push({ ...place, field, action, before: was, after: is });
  }
}

export const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number =>
  a < b ? -1 : a > b ? 1 : 0;
