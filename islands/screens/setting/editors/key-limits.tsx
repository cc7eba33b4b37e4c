// Budgets and limits of users as operators set them: one row for everybody, one for each group that has its own; JSON beside.
// Refuses to lose what is no number: it is written as it was typed, and the server names it.
import type { ReactNode } from "react";
import { isBudgetPeriod, LIMIT_NUMBERS, readLimitFields } from "../../../../src/shared/key-limits.ts";
import type { BudgetPeriod, LimitFields, LimitNumber } from "../../../../src/shared/key-limits.ts";
import { siteDisplay } from "../../../lib/format.ts";
import { useT } from "../../../lib/i18n.ts";
import { parseMap, writeMap } from "../../../lib/json-map.ts";
import { BUDGET_PERIODS } from "../../../ui/limit-fields.tsx";
import { amountText, quotaOf } from "../../../ui/money-field.tsx";
import type { OptionEditorProps } from "../editor-props.ts";
import { GroupRows, useGroupNames } from "./group-rows.tsx";
import type { GroupRow } from "./group-rows.tsx";
import { besideOf, JsonBeside, newId, useRowsOf } from "./json-beside.tsx";
import { isWholeBetween } from "./sentence.tsx";

const OF_GROUPS = "KeyLimitsGroup";

/** As typed: an amount as the site shows money, whole numbers; empty = not set here. */
type Typed = Record<LimitNumber, string> & { budget_period: BudgetPeriod };

/** The row for everybody has no group. */
interface LimitRow extends GroupRow {
  typed: Typed;
}

function typedOf(fields: LimitFields): Typed {
  const number = (name: LimitNumber) => String(fields[name] ?? "");
  return {
    budget_quota: fields.budget_quota === undefined ? "" : amountText(fields.budget_quota),
    budget_period: fields.budget_period ?? "month",
    rpm_limit: number("rpm_limit"),
    tpm_limit: number("tpm_limit"),
    max_concurrency: number("max_concurrency"),
  };
}

/** The number that was typed; undefined where it is none. */
function numberOf(name: LimitNumber, text: string): number | undefined {
  if (name !== "budget_quota")
    return isWholeBetween(text, 0, Number.MAX_SAFE_INTEGER) ? Number(text) : undefined;
  const units = quotaOf(text);
  return units !== undefined && Number.isFinite(units) && units >= 0 ? units : undefined;
}

function fieldsOf(typed: Typed): Record<string, unknown> {
  const set = LIMIT_NUMBERS.filter((name) => typed[name].trim() !== "");
  const fields = Object.fromEntries(
    set.map((name) => [name, numberOf(name, typed[name]) ?? typed[name]] as const),
  );
  return set.includes("budget_quota") ? { ...fields, budget_period: typed.budget_period } : fields;
}

function readOne(json: string, group: string): LimitRow | undefined {
  try {
    const fields = readLimitFields(JSON.parse(json.trim() === "" ? "{}" : json));
    return "wrong" in fields ? undefined : { id: newId(), group, typed: typedOf(fields) };
  } catch {
    return undefined;
  }
}

const EVERYBODY = {
  read(text: string) {
    const row = readOne(text, "");
    return row && [row];
  },
  write: ([row]: readonly LimitRow[]) => JSON.stringify(row ? fieldsOf(row.typed) : {}),
};

const GROUPS = {
  read(text: string): LimitRow[] | undefined {
    const { entries, problem } = parseMap(text);
    if (problem && problem.code !== "duplicate" && problem.code !== "emptyKey") return undefined;
    const rows = entries.map(({ key, json }) => readOne(json, key));
    return rows.every((row) => row !== undefined) ? rows : undefined;
  },
  write(rows: readonly LimitRow[]): string {
    const entries = rows
      .filter(({ group }) => group.trim() !== "")
      .map(({ group, typed }) => ({ key: group.trim(), json: JSON.stringify(fieldsOf(typed)) }));
    return entries.length === 0 ? "{}" : writeMap(entries);
  },
};

/** Of both options: which one, says its key. */
export default function KeyLimitsEditor(props: OptionEditorProps) {
  return props.option.key === OF_GROUPS ? <GroupLimits {...props} /> : <EverybodysLimits {...props} />;
}

function EverybodysLimits(props: OptionEditorProps) {
  const t = useT();
  const { value, onChange, option, disabled } = props;
  const { rows, setRows } = useRowsOf(value, onChange, EVERYBODY);
  const label = t(`option.title.${option.key}`);
  const [row] = rows ?? [];
  return (
    <JsonBeside {...besideOf(props)} label={label} isReadable={row !== undefined}>
      {row ? (
        <LimitInputs
          name={label}
          typed={row.typed}
          disabled={disabled}
          onChange={(typed) => setRows([{ ...row, typed }])}
        />
      ) : null}
    </JsonBeside>
  );
}

function GroupLimits(props: OptionEditorProps) {
  const t = useT();
  const groups = useGroupNames();
  const { value, onChange, option, disabled } = props;
  const { rows, setRows } = useRowsOf(value, onChange, GROUPS);
  return (
    <JsonBeside {...besideOf(props)} label={t(`option.title.${option.key}`)} isReadable={rows !== undefined}>
      <GroupRows
        rows={rows}
        setRows={setRows}
        fresh={(id) => ({ id, group: "", typed: typedOf({}) })}
        groups={groups}
        disabled={disabled}
        words={{
          none: t("editor.limits.noGroups"),
          add: t("editor.limits.add"),
          group: (row) => t("editor.limits.groupOf", { row }),
        }}
      >
        {({ row, who, group, change }) => (
          <LimitInputs
            name={who}
            typed={row.typed}
            disabled={disabled}
            onChange={(typed) => change({ typed })}
          >
            <Labelled label={t("editor.limits.group")}>{group}</Labelled>
          </LimitInputs>
        )}
      </GroupRows>
    </JsonBeside>
  );
}

/** A heading over a field that names itself. */
function Labelled({ label, children }: { label: string; children: ReactNode }) {
  return (
    <span className="flex flex-col gap-0.5">
      <span className="text-xs text-muted" aria-hidden>
        {label}
      </span>
      {children}
    </span>
  );
}

interface LimitInputsProps {
  /** Whose they are. */
  name: string;
  typed: Typed;
  onChange: (typed: Typed) => void;
  disabled: boolean | undefined;
  children?: ReactNode;
}

function LimitInputs({ name, typed, onChange, disabled, children }: LimitInputsProps) {
  const t = useT();
  const { isUnits, symbol } = siteDisplay();
  const isBad = (each: LimitNumber) =>
    typed[each].trim() !== "" && numberOf(each, typed[each]) === undefined ? true : undefined;
  const words: Record<LimitNumber, string> = {
    budget_quota: t("form.limits.budget"),
    rpm_limit: t("form.limits.rpm"),
    tpm_limit: t("form.limits.tpm"),
    max_concurrency: t("form.limits.atOnce"),
  };
  const input = (each: LimitNumber, width: string) => (
    <input
      className={`${each === "budget_quota" ? "grow" : `input input-sm ${width}`} tabular-nums`}
      inputMode={each === "budget_quota" ? "decimal" : "numeric"}
      autoComplete="off"
      aria-label={t("editor.limits.of", { field: words[each], name })}
      aria-invalid={isBad(each)}
      placeholder="–"
      disabled={disabled}
      value={typed[each]}
      onChange={(event) => onChange({ ...typed, [each]: event.target.value })}
    />
  );
  return (
    <div className="flex flex-wrap items-end gap-x-3 gap-y-2">
      {children}
      <Labelled label={words.budget_quota}>
        <span className="flex gap-1">
          <span className="input input-sm w-28" aria-invalid={isBad("budget_quota")}>
            {isUnits ? null : (
              <span className="text-muted" aria-hidden>
                {symbol}
              </span>
            )}
            {input("budget_quota", "")}
          </span>
          <select
            className="select select-sm w-auto"
            aria-label={t("editor.limits.of", { field: t("form.limits.period"), name })}
            disabled={disabled}
            value={typed.budget_period}
            onChange={({ target: { value } }) =>
              isBudgetPeriod(value) ? onChange({ ...typed, budget_period: value }) : undefined
            }
          >
            {BUDGET_PERIODS.map((each) => (
              <option key={each} value={each}>
                {t(`form.limits.per.${each}`)}
              </option>
            ))}
          </select>
        </span>
      </Labelled>
      <Labelled label={words.rpm_limit}>{input("rpm_limit", "w-28")}</Labelled>
      <Labelled label={words.tpm_limit}>{input("tpm_limit", "w-28")}</Labelled>
      <Labelled label={words.max_concurrency}>{input("max_concurrency", "w-24")}</Labelled>
    </div>
  );
}
