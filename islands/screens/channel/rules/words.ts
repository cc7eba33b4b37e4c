// Request rules as sentences, and as texts that people type: what a list shows of each, and what a form reads back.
// Refuses to show what is no operation as if it were one: such a row is named by its JSON.
import { jsonObject } from "../../../../src/shared/json-object.ts";
import { MATCH_MODES, RULE_MODES } from "../../../../src/shared/request-rules.ts";
import type { MatchMode, RuleMode } from "../../../../src/shared/request-rules.ts";
import { t } from "../../../lib/i18n.ts";

export type Stored = Readonly<Record<string, unknown>>;

/** A text that holds rules: members that are set, operations in their order; undefined where it is no object. */
export interface RuleTexts {
  fields: Stored;
  operations: readonly Stored[];
}

function isRecord(value: unknown): value is Stored {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function rulesIn(text: string): RuleTexts | undefined {
  const stored = jsonObject(text);
  if (!stored) return undefined;
  const { operations = [], ...fields } = stored;
  if (!Array.isArray(operations) || !operations.every(isRecord)) return undefined;
  return { fields, operations };
}

/** As it is stored: operations only where there are some. */
export function rulesText({ fields, operations }: RuleTexts): string {
  const stored = operations.length === 0 ? fields : { ...fields, operations };
  return Object.keys(stored).length === 0 ? "" : JSON.stringify(stored, null, 2);
}

/** A value as it is typed: texts without quotes, unless they would be read as something else. */
function typedText(value: unknown): string {
  if (value === undefined) return "";
  if (typeof value !== "string") return JSON.stringify(value);
  return isJson(value) ? JSON.stringify(value) : value;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** What a typed text means: JSON where it is some, otherwise the text itself. */
function typedValue(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

const MAX_SHOWN = 60;

function short(value: unknown): string {
  const text = typedText(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

function conditionsOf({ conditions }: Stored): Stored[] {
  if (Array.isArray(conditions)) return conditions.filter(isRecord);
  return isRecord(conditions) ? Object.entries(conditions).map(([path, value]) => ({ path, value })) : [];
}

function conditionWords(condition: Stored): string {
  const named = condition["mode"] ?? "full";
  const mode = MATCH_MODES.find((each) => each === named) ?? "full";
  const name = condition["invert"] === true ? `not.${mode}` : mode;
  return t(`channel.rule.when.${name}`, { path: short(condition["path"]), value: short(condition["value"]) });
}

/** Conditions are alternatives where nothing is said. */
function logicOf(operation: Stored | undefined): "AND" | "OR" {
  const logic = operation?.["logic"];
  return typeof logic === "string" && logic.toUpperCase() === "AND" ? "AND" : "OR";
}

/** "Set temperature to 0 when model starts with gpt-". */
export function operationWords(operation: Stored): string {
  const mode = RULE_MODES.find((each) => each === operation["mode"]);
  if (!mode) return short(operation);
  const { value } = operation;
  const message = isRecord(value) ? value["message"] : value;
  const said = t(`channel.rule.say.${mode}`, {
    path: short(operation["path"] ?? ""),
    from: short(operation["from"] ?? ""),
    to: short(operation["to"] ?? ""),
    value: short(mode === "return_error" ? message : value),
  });
  const conditions = conditionsOf(operation).map(conditionWords);
  if (conditions.length === 0) return said;
  const isAnd = logicOf(operation) === "AND";
  return t("channel.rule.sayWhen", {
    rule: said,
    conditions: conditions.join(t(isAnd ? "channel.rule.and" : "channel.rule.or")),
  });
}

export function fieldWords(name: string, value: unknown): string {
  return t("channel.rule.say.set", { path: name, value: short(value) });
}

/** One condition as the form holds it. */
export interface ConditionDraft {
  path: string;
  mode: MatchMode;
  value: string;
  invert: boolean;
  passMissing: boolean;
}

/** An operation as the form holds it; members that the form does not know stay in `rest`. */
export interface OperationDraft {
  mode: RuleMode;
  path: string;
  from: string;
  to: string;
  value: string;
  status: string;
  code: string;
  skipRetry: boolean;
  keepOrigin: boolean;
  logic: "AND" | "OR";
  conditions: readonly ConditionDraft[];
}

export const NEW_CONDITION: ConditionDraft = {
  path: "model",
  mode: "full",
  value: "",
  invert: false,
  passMissing: false,
};

const text = (value: unknown): string => (typeof value === "string" ? value : "");

export function draftOf(operation: Stored | undefined): OperationDraft {
  const mode = RULE_MODES.find((each) => each === operation?.["mode"]) ?? "set";
  const value = operation?.["value"];
  const refusal: Stored = mode !== "return_error" ? {} : isRecord(value) ? value : { message: value };
  return {
    mode,
    path: text(operation?.["path"]),
    from: text(operation?.["from"]),
    to: text(operation?.["to"]),
    value: mode === "return_error" ? text(refusal["message"]) : typedText(value),
    status: typedText(refusal["status_code"] ?? refusal["status"] ?? 400),
    code: text(refusal["code"]),
    skipRetry: refusal["skip_retry"] !== false,
    keepOrigin: operation?.["keep_origin"] === true,
    logic: logicOf(operation),
    conditions: conditionsOf(operation ?? {}).map((each) => ({
      path: text(each["path"]),
      mode: MATCH_MODES.find((mode) => mode === each["mode"]) ?? "full",
      value: typedText(each["value"]),
      invert: each["invert"] === true,
      passMissing: each["pass_missing_key"] === true,
    })),
  };
}

/** Whether what is typed is always a text, whatever it looks like. */
const TEXT_MODES: ReadonlySet<RuleMode> = new Set([
  "trim_prefix",
  "trim_suffix",
  "ensure_prefix",
  "ensure_suffix",
]);

/** As it is stored, with the logic always said. `shows`: which of its parts the mode has. */
export function operationOf(
  draft: OperationDraft,
  shows: { path: boolean; from: boolean; to: boolean; value: boolean },
): Stored {
  const { mode, status, code, skipRetry } = draft;
  const value =
    mode === "return_error"
      ? {
          message: draft.value,
          status_code: typedValue(status),
          ...(code ? { code } : {}),
          skip_retry: skipRetry,
        }
      : TEXT_MODES.has(mode)
        ? draft.value
        : typedValue(draft.value);
  return {
    mode,
    ...(shows.path && draft.path.trim() !== "" ? { path: draft.path.trim() } : {}),
    ...(shows.from ? { from: draft.from } : {}),
    ...(shows.to ? { to: draft.to } : {}),
    ...(shows.value ? { value } : {}),
    ...(draft.keepOrigin ? { keep_origin: true } : {}),
    logic: draft.logic,
    ...(draft.conditions.length === 0
      ? {}
      : {
          conditions: draft.conditions.map((each) => ({
            path: each.path.trim(),
            mode: each.mode,
            value: typedValue(each.value),
            ...(each.invert ? { invert: true } : {}),
            ...(each.passMissing ? { pass_missing_key: true } : {}),
          })),
        }),
  };
}
