// The language of request rules: what `param_override` may hold, read once when a channel is saved or its row is loaded.
// Refuses modes that nobody knows, operations without what they need, and patterns that may never end; each by its place.
import { headerTargetProblem } from "./header-rules.ts";
import { isSafePattern } from "./safe-pattern.ts";

/** What an operation does; the names are those that gateways of this family write. */
export const RULE_MODES = [
  "set",
  "delete",
  "copy",
  "move",
  "append",
  "prepend",
  "trim_prefix",
  "trim_suffix",
  "ensure_prefix",
  "ensure_suffix",
  "trim_space",
  "to_lower",
  "to_upper",
  "replace",
  "regex_replace",
  "prune_objects",
  "sync_fields",
  "return_error",
  "set_header",
  "delete_header",
  "copy_header",
  "move_header",
  "pass_headers",
] as const;
export type RuleMode = (typeof RULE_MODES)[number];

export const MATCH_MODES = ["full", "prefix", "suffix", "contains", "gt", "gte", "lt", "lte"] as const;
export type MatchMode = (typeof MATCH_MODES)[number];

export const MAX_OPERATIONS = 64;
const MAX_CONDITIONS = 16;
const MAX_PATH_CHARACTERS = 256;

/** Parts of an operation that a mode cannot do without. */
type Part = "path" | "from" | "to" | "value" | "text" | "pattern" | "names" | "error" | "sync";

/** What each mode needs; the rest of an operation is left unread. */
export const MODE_PARTS: Readonly<Record<RuleMode, readonly Part[]>> = {
  set: ["path", "value"],
  delete: ["path"],
  copy: ["from", "to"],
  move: ["from", "to"],
  append: ["path", "value"],
  prepend: ["path", "value"],
  trim_prefix: ["path", "text"],
  trim_suffix: ["path", "text"],
  ensure_prefix: ["path", "text"],
  ensure_suffix: ["path", "text"],
  trim_space: ["path"],
  to_lower: ["path"],
  to_upper: ["path"],
  replace: ["path", "from"],
  regex_replace: ["path", "pattern"],
  prune_objects: ["value"],
  sync_fields: ["sync"],
  return_error: ["error"],
  set_header: ["path", "value"],
  delete_header: ["path"],
  copy_header: ["from", "to"],
  move_header: ["from", "to"],
  pass_headers: ["names"],
};

/** Modes whose names are those of headers. */
const HEADER_MODES: ReadonlySet<RuleMode> = new Set([
  "set_header",
  "delete_header",
  "copy_header",
  "move_header",
  "pass_headers",
]);

function isHeaderMode(mode: RuleMode): boolean {
  return HEADER_MODES.has(mode);
}

export interface RuleCondition {
  /** In the body, else among the facts of the call. */
  readonly path: string;
  readonly mode: MatchMode;
  readonly value: unknown;
  readonly invert: boolean;
  /** What a path that leads nowhere counts as. */
  readonly passMissingKey: boolean;
}

/** What the client reads in place of an answer. */
export interface RuleRefusal {
  readonly message: string;
  readonly status: number;
  readonly code: string;
  readonly type: string;
  /** No other channel is asked either. */
  readonly skipRetry: boolean;
}

export interface RuleOperation {
  readonly mode: RuleMode;
  readonly path: string;
  readonly from: string;
  readonly to: string;
  readonly value: unknown;
  /** What is there already stays. */
  readonly keepOrigin: boolean;
  readonly conditions: readonly RuleCondition[];
  readonly logic: "AND" | "OR";
  /** Of `return_error`. */
  readonly refusal?: RuleRefusal;
}

/** A channel's `param_override`: members that replace those of the body, then operations in their order. */
export interface RequestRules {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly operations: readonly RuleOperation[];
}

type RuleProblemCode =
  | "rules_not_list"
  | "rules_many"
  | "rule_mode_unknown"
  | "rule_field_invalid"
  | "rule_pattern_unsafe"
  | "rule_header_forbidden";

/** Why a text is no set of rules, and where in it. */
export interface RuleProblem {
  code: RuleProblemCode;
  params: Record<string, string | number>;
}

type Stored = Readonly<Record<string, unknown>>;

function isRecord(value: unknown): value is Stored {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

class Unreadable extends Error {
  constructor(readonly problem: RuleProblem) {
    super(problem.code);
  }
}

function refuse(code: RuleProblemCode, params: Record<string, string | number>): Unreadable {
  return new Unreadable({ code, params });
}

const invalid = (place: string, field: string): Unreadable => refuse("rule_field_invalid", { place, field });

/** Names by which an object would reach what is no member of it. */
const UNSAFE_SEGMENTS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Segments of a path: dots part them, `\.` is a dot inside of a name. */
export function segmentsOf(path: string): string[] {
  if (!path.includes("\\")) return path.split(".");
  const segments = [""];
  for (let at = 0; at < path.length; at++) {
    const char = path[at] ?? "";
    if (char === "\\" && at + 1 < path.length) segments[segments.length - 1] += path[++at] ?? "";
    else if (char === ".") segments.push("");
    else segments[segments.length - 1] += char;
  }
  return segments;
}

function isPath(path: string): boolean {
  if (path === "" || path.length > MAX_PATH_CHARACTERS) return false;
  return segmentsOf(path).every((segment) => segment !== "" && !UNSAFE_SEGMENTS.has(segment));
}

function pathIn(stored: Stored, field: "path" | "from" | "to", place: string): string {
  const path = textIn(stored, field, place).trim();
  if (!isPath(path)) throw invalid(place, field);
  return path;
}

function textIn(stored: Stored, field: string, place: string): string {
  const value = stored[field];
  if (typeof value !== "string" || value === "") throw invalid(place, field);
  return value;
}

function headerIn(stored: Stored, field: "path" | "from" | "to", place: string): string {
  const name = textIn(stored, field, place).trim().toLowerCase();
  const problem = headerTargetProblem(name);
  if (problem === "invalid") throw invalid(place, field);
  if (problem === "forbidden") throw refuse("rule_header_forbidden", { place, name });
  return name;
}

/** `json:path` or `header:name`, as `sync_fields` names its two sides. */
export function syncSide(text: string): { kind: "json" | "header"; name: string } | undefined {
  const colon = text.indexOf(":");
  const kind = text.slice(0, colon).trim();
  const name = text.slice(colon + 1).trim();
  if (kind === "json") return isPath(name) ? { kind, name } : undefined;
  if (kind !== "header" || headerTargetProblem(name.toLowerCase()) !== undefined) return undefined;
  return { kind, name: name.toLowerCase() };
}

/** Names of headers: a list, a text with commas, or an object that holds one of these as `names` or `headers`. */
export function headerNames(value: unknown): string[] | undefined {
  if (typeof value === "string") return headerNames(value.split(","));
  if (isRecord(value)) return headerNames(value["names"] ?? value["headers"]);
  if (!Array.isArray(value)) return undefined;
  const names = value.map((each: unknown) => (typeof each === "string" ? each.trim().toLowerCase() : ""));
  return names.length > 0 && names.every((name) => headerTargetProblem(name) !== "invalid")
    ? names
    : undefined;
}

function refusalIn(value: unknown, place: string): RuleRefusal {
  const stored: Stored = typeof value === "string" ? { message: value } : isRecord(value) ? value : {};
  const { message, code = "", type = "", skip_retry: skip = true } = stored;
  const status = stored["status_code"] ?? stored["status"] ?? 400;
  if (typeof message !== "string" || message.trim() === "") throw invalid(place, "value.message");
  if (!Number.isInteger(status) || Number(status) < 400 || Number(status) > 599)
    throw invalid(place, "value.status_code");
  if (typeof code !== "string" || code.length > 64) throw invalid(place, "value.code");
  if (typeof type !== "string" || type.length > 64) throw invalid(place, "value.type");
  if (typeof skip !== "boolean") throw invalid(place, "value.skip_retry");
  return { message: message.trim(), status: Number(status), code, type, skipRetry: skip };
}

function conditionIn(stored: unknown, place: string): RuleCondition {
  if (!isRecord(stored)) throw refuse("rules_not_list", { place });
  const mode = MATCH_MODES.find((each) => each === (stored["mode"] ?? "full"));
  if (!mode) throw refuse("rule_mode_unknown", { place, mode: shown(stored["mode"]) });
  if (!("value" in stored)) throw invalid(place, "value");
  if (/^[gl]te?$/.test(mode) && typeof stored["value"] !== "number") throw invalid(place, "value");
  return {
    path: pathIn(stored, "path", place),
    mode,
    value: stored["value"],
    invert: stored["invert"] === true,
    passMissingKey: stored["pass_missing_key"] === true,
  };
}

/** A list; or, shorter, an object of paths and the values that they have to have. */
function conditionsIn(stored: unknown, place: string): RuleCondition[] {
  if (stored === undefined || stored === null) return [];
  const list: unknown[] | undefined = Array.isArray(stored)
    ? stored
    : isRecord(stored)
      ? Object.entries(stored).map(([path, value]) => ({ path, mode: "full", value }))
      : undefined;
  if (!list) throw refuse("rules_not_list", { place });
  if (list.length > MAX_CONDITIONS) throw refuse("rules_many", { place, max: MAX_CONDITIONS });
  return list.map((each, index) => conditionIn(each, `${place}[${index}]`));
}

function shown(value: unknown): string {
  return typeof value === "string" ? value.slice(0, 64) : String(JSON.stringify(value)).slice(0, 64);
}

/** What `prune_objects` takes out: objects of a type, or those that its conditions fit. */
export interface PruneWish {
  readonly conditions: readonly RuleCondition[];
  readonly logic: "AND" | "OR";
  readonly recursive: boolean;
}

export function pruneWish(value: unknown, place = ""): PruneWish {
  if (typeof value === "string" && value !== "")
    return { conditions: conditionsIn({ type: value }, place), logic: "AND", recursive: true };
  if (!isRecord(value)) throw invalid(place, "value");
  const { type, where, logic, recursive = true } = value;
  const conditions = [
    ...(typeof type === "string" ? conditionsIn({ type }, place) : []),
    ...conditionsIn(where, `${place}.value.where`),
    ...conditionsIn(value["conditions"], `${place}.value.conditions`),
  ];
  if (conditions.length === 0) throw invalid(place, "value");
  return { conditions, logic: logic === "OR" ? "OR" : "AND", recursive: recursive === true };
}

type Draft = { -readonly [Key in keyof RuleOperation]: RuleOperation[Key] };

/** Reads one part of an operation into it; throws where it is missing or makes no sense. */
function readPart(operation: Draft, stored: Stored, part: Part, place: string): void {
  const { mode } = operation;
  const isHeader = isHeaderMode(mode);
  switch (part) {
    case "path":
      operation.path = isHeader ? headerIn(stored, "path", place) : pathIn(stored, "path", place);
      return;
    case "from":
      if (mode === "replace") operation.from = textIn(stored, "from", place);
      else operation.from = isHeader ? sourceIn(stored, place) : pathIn(stored, "from", place);
      return;
    case "to":
      operation.to = isHeader ? headerIn(stored, "to", place) : pathIn(stored, "to", place);
      return;
    case "value":
      if (!("value" in stored)) throw invalid(place, "value");
      if (mode === "prune_objects") pruneWish(stored["value"], place);
      return;
    case "text":
      textIn(stored, "value", place);
      return;
    case "pattern":
      operation.from = textIn(stored, "from", place);
      if (!isSafePattern(operation.from))
        throw refuse("rule_pattern_unsafe", { place, pattern: shown(operation.from) });
      return;
    case "names":
      if (!headerNames(stored["value"])) throw invalid(place, "value");
      return;
    case "error":
      operation.refusal = refusalIn(stored["value"], place);
      return;
    case "sync":
      operation.from = textIn(stored, "from", place);
      operation.to = textIn(stored, "to", place);
      for (const side of ["from", "to"] as const) if (!syncSide(operation[side])) throw invalid(place, side);
  }
}

/** The name of a header that a value is taken from: any but what would be no name. */
function sourceIn(stored: Stored, place: string): string {
  const name = textIn(stored, "from", place).trim().toLowerCase();
  if (headerTargetProblem(name) === "invalid") throw invalid(place, "from");
  return name;
}

function operationIn(stored: unknown, index: number): RuleOperation {
  const place = `operations[${index}]`;
  if (!isRecord(stored)) throw refuse("rules_not_list", { place });
  const mode = RULE_MODES.find((each) => each === stored["mode"]);
  if (!mode) throw refuse("rule_mode_unknown", { place, mode: shown(stored["mode"]) });
  const { path, to, logic = "OR" } = stored;
  if (typeof logic !== "string" || !/^(?:and|or)$/i.test(logic)) throw invalid(place, "logic");
  const operation: Draft = {
    mode,
    path:
      mode === "prune_objects" && typeof path === "string" && path !== ""
        ? pathIn(stored, "path", place)
        : "",
    from: "",
    // What replaces may be nothing at all.
    to: (mode === "replace" || mode === "regex_replace") && typeof to === "string" ? to : "",
    value: stored["value"],
    keepOrigin: stored["keep_origin"] === true,
    conditions: conditionsIn(stored["conditions"], `${place}.conditions`),
    logic: logic.toUpperCase() === "AND" ? "AND" : "OR",
  };
  for (const part of MODE_PARTS[mode]) readPart(operation, stored, part, place);
  return operation;
}

/** Reads a channel's `param_override`, or says what is wrong with it. */
export function readRequestRules(
  stored: Stored,
): { rules: RequestRules; problem?: undefined } | { rules?: undefined; problem: RuleProblem } {
  const { operations, ...fields } = stored;
  try {
    for (const name of Object.keys(fields)) if (UNSAFE_SEGMENTS.has(name)) throw invalid("", name);
    if (operations === undefined || operations === null) return { rules: { fields, operations: [] } };
    if (!Array.isArray(operations)) throw refuse("rules_not_list", { place: "operations" });
    if (operations.length > MAX_OPERATIONS)
      throw refuse("rules_many", { place: "operations", max: MAX_OPERATIONS });
    return { rules: { fields, operations: operations.map(operationIn) } };
  } catch (error) {
    if (error instanceof Unreadable) return { problem: error.problem };
    throw error;
  }
}
