// Who of an identity server's people may come in: conditions over its claims, joined by and or or, in groups.
// Refuses whoever lacks a field that a condition names: nothing is true of what is not there, except that it is not.
import { parsePath, valueAt } from "./field-paths.ts";

export const POLICY_OPS = [
  "eq",
  "ne",
  "gt",
  "gte",
  "lt",
  "lte",
  "in",
  "not_in",
  "contains",
  "not_contains",
  "exists",
  "not_exists",
] as const;
type PolicyOp = (typeof POLICY_OPS)[number];
type Scalar = string | number | boolean;

interface PolicyCondition {
  field: string;
  op: PolicyOp;
  /** Absent for exists and not_exists; a list for in and not_in. */
  value?: Scalar | Scalar[];
}

export interface AccessPolicy {
  logic: "and" | "or";
  conditions: PolicyCondition[];
  groups: AccessPolicy[];
}

const MAX_DEPTH = 5;
const MAX_CONDITIONS = 50;
const MAX_LIST = 100;
const MAX_TEXT = 200;

/** What is wrong with a policy, and where, as `groups.0.conditions.1.op`. */
export interface PolicyProblem {
  code: "shape" | "unknown" | "logic" | "field" | "op" | "value" | "empty" | "depth" | "many";
  at: string;
}

type Parsed<T> = { value: T } | { problem: PolicyProblem };

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isScalar(value: unknown): value is Scalar {
  if (typeof value === "string") return value.length <= MAX_TEXT;
  return typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value));
}

/** Whether the operator takes such a value. */
function takes(op: PolicyOp, value: unknown): boolean {
  switch (op) {
    case "exists":
    case "not_exists":
      return value === undefined || value === null;
    case "in":
    case "not_in":
      return (
        Array.isArray(value) &&
        value.length > 0 &&
        value.length <= MAX_LIST &&
        (value as unknown[]).every(isScalar)
      );
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return isScalar(value) && typeof value !== "boolean";
    default:
      return isScalar(value);
  }
}

function unknownKey(object: Record<string, unknown>, known: readonly string[]): string | undefined {
  return Object.keys(object).find((key) => !known.includes(key));
}

function conditionOf(value: unknown, at: string): Parsed<PolicyCondition> {
  const wrong = (code: PolicyProblem["code"], field?: string) => ({
    problem: { code, at: field === undefined ? at : `${at}.${field}` },
  });
  if (!isRecord(value)) return wrong("shape");
  const foreign = unknownKey(value, ["field", "op", "value"]);
  if (foreign !== undefined) return wrong("unknown", foreign.slice(0, 40));
  const { field, op } = value;
  if (typeof field !== "string" || !parsePath(field)) return wrong("field", "field");
  const known = POLICY_OPS.find((each) => each === op);
  if (!known) return wrong("op", "op");
  if (!takes(known, value.value)) return wrong("value", "value");
  const given = value.value as Scalar | Scalar[] | null | undefined;
  return { value: { field, op: known, ...(given === undefined || given === null ? {} : { value: given }) } };
}

interface Count {
  left: number;
}

function groupOf(value: unknown, at: string, depth: number, count: Count): Parsed<AccessPolicy> {
  const inner = (name: string) => (at === "" ? name : `${at}.${name}`);
  const wrong = (code: PolicyProblem["code"], name?: string) => ({
    problem: { code, at: name === undefined ? at : inner(name) },
  });
  if (!isRecord(value)) return wrong("shape");
  // Before anything below is looked at: a policy of ten thousand groups is not walked to its end.
  if (depth > MAX_DEPTH) return wrong("depth");
  const foreign = unknownKey(value, ["logic", "conditions", "groups"]);
  if (foreign !== undefined) return wrong("unknown", foreign.slice(0, 40));
  const { logic = "and", conditions = [], groups = [] } = value;
  if (logic !== "and" && logic !== "or") return wrong("logic", "logic");
  if (!Array.isArray(conditions)) return wrong("shape", "conditions");
  if (!Array.isArray(groups)) return wrong("shape", "groups");
  if (conditions.length + groups.length === 0) return wrong("empty");
  // A group counts like a condition: it has at least one.
  count.left -= conditions.length;
  if (count.left < 0 || groups.length > MAX_CONDITIONS) return wrong("many");
  const policy: AccessPolicy = { logic, conditions: [], groups: [] };
  for (const [index, each] of (conditions as unknown[]).entries()) {
    const parsed = conditionOf(each, inner(`conditions.${index}`));
    if ("problem" in parsed) return parsed;
    policy.conditions.push(parsed.value);
  }
  for (const [index, each] of (groups as unknown[]).entries()) {
    const parsed = groupOf(each, inner(`groups.${index}`), depth + 1, count);
    if ("problem" in parsed) return parsed;
    policy.groups.push(parsed.value);
  }
  return { value: policy };
}

/** The policy that a JSON value is; undefined: everybody may come in; else what is wrong with it. */
export function parsePolicy(
  value: unknown,
): { policy: AccessPolicy | undefined } | { problem: PolicyProblem } {
  if (value === undefined || value === null) return { policy: undefined };
  if (isRecord(value) && Object.keys(value).length === 0) return { policy: undefined };
  const parsed = groupOf(value, "", 1, { left: MAX_CONDITIONS });
  return "problem" in parsed ? parsed : { policy: parsed.value };
}

/** The same for a text; an empty one is no policy. */
export function parsePolicyText(text: string): ReturnType<typeof parsePolicy> {
  if (text.trim() === "") return { policy: undefined };
  try {
    return parsePolicy(JSON.parse(text) as unknown);
  } catch {
    return { problem: { code: "shape", at: "" } };
  }
}

const DECIMAL = /^-?\d{1,15}(\.\d{1,9})?$/;

/** Numbers, and texts that are nothing else. */
function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "string" && DECIMAL.test(value) ? Number(value) : undefined;
}

/** As numbers when both are; undefined where the two cannot be compared. */
function compare(current: unknown, required: Scalar): number | undefined {
  const numbers = [numberOf(current), numberOf(required)] as const;
  if (numbers[0] !== undefined && numbers[1] !== undefined) return numbers[0] - numbers[1];
  if (typeof current !== "string" || typeof required !== "string") return undefined;
  return current === required ? 0 : current < required ? -1 : 1;
}

function isEqual(current: unknown, required: Scalar): boolean {
  if (typeof current === "string" && typeof required === "string") return current === required;
  if (typeof current === "boolean" || typeof required === "boolean")
    return String(current) === String(required);
  return compare(current, required) === 0;
}

function holdsValue(current: unknown, required: Scalar): boolean | undefined {
  if (Array.isArray(current)) return (current as unknown[]).some((each) => isEqual(each, required));
  return typeof current === "string" ? current.includes(String(required)) : undefined;
}

const isComparable = (value: unknown): boolean => typeof value !== "object";

function isMet({ field, op, value }: PolicyCondition, claims: unknown): boolean {
  const current = valueAt(claims, field);
  if (op === "not_exists") return current === undefined;
  if (current === undefined) return false;
  if (op === "exists") return true;
  if (op === "in" || op === "not_in") {
    if (!Array.isArray(value) || !isComparable(current)) return false;
    return value.some((each) => isEqual(current, each)) === (op === "in");
  }
  if (value === undefined || Array.isArray(value)) return false;
  switch (op) {
    case "eq":
      return isComparable(current) && isEqual(current, value);
    case "ne":
      return isComparable(current) && !isEqual(current, value);
    case "contains":
      return holdsValue(current, value) === true;
    case "not_contains":
      return holdsValue(current, value) === false;
    default: {
      const difference = compare(current, value);
      if (difference === undefined) return false;
      if (op === "gt") return difference > 0;
      if (op === "gte") return difference >= 0;
      return op === "lt" ? difference < 0 : difference <= 0;
    }
  }
}

/** The condition that kept somebody out, with what was there in its place. */
export interface Refusal {
  field: string;
  op: PolicyOp;
  required: string;
  current: string;
}

function shown(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Undefined: may come in. Otherwise the first condition that was not met. */
export function refusedBy(policy: AccessPolicy | undefined, claims: unknown): Refusal | undefined {
  if (!policy) return undefined;
  let first: Refusal | undefined;
  for (const condition of policy.conditions) {
    const isFine = isMet(condition, claims);
    if (isFine && policy.logic === "or") return undefined;
    if (isFine) continue;
    first ??= {
      field: condition.field,
      op: condition.op,
      required: shown(condition.value),
      current: shown(valueAt(claims, condition.field)),
    };
    if (policy.logic === "and") return first;
  }
  for (const group of policy.groups) {
    const refusal = refusedBy(group, claims);
    if (!refusal && policy.logic === "or") return undefined;
    if (!refusal) continue;
    first ??= refusal;
    if (policy.logic === "and") return first;
  }
  return first;
}

const MAX_VALUE = 60;
const MAX_MESSAGE = 300;

/** A value on one line, cut. */
function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex
  const line = text.toWellFormed().replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ");
  const signs = Array.from(line.trim());
  return signs.length > MAX_VALUE ? `${signs.slice(0, MAX_VALUE - 1).join("")}…` : signs.join("");
}

/**
 * The operator's text for whoever was refused: `{{provider}} {{field}} {{op}} {{required}} {{current}} {{current.path}}`.
 * Values are put in once, so that none of them is read as a placeholder.
 */
export function refusalText(
  template: string,
  { provider, refusal, claims }: { provider: string; refusal: Refusal; claims: unknown },
): string {
  const text = template.replace(/\{\{\s*([^{}]{1,220}?)\s*\}\}/g, (_, name: string) => {
    if (name === "provider") return plain(provider);
    if (name === "field" || name === "op" || name === "required" || name === "current")
      return plain(refusal[name]);
    return name.startsWith("current.") ? plain(shown(valueAt(claims, name.slice("current.".length)))) : "";
  });
  return Array.from(text.trim()).slice(0, MAX_MESSAGE).join("");
}
