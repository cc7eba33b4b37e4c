// The columns as the sheet takes them: what each cell says of a model, in dollars or as ratios, and how it is written.
import type { PriceRow } from "../../../../src/shared/price-row.ts";
import { MAX_DOLLARS } from "../../../../src/shared/price-row.ts";
import { completionRatio } from "../../../../src/shared/completion-rules.ts";
import type { Translate } from "../../../lib/i18n.ts";
import { formatNumber } from "../../../lib/format.ts";
import { parseNumber } from "../../sheet-number.ts";
import type { CellProblem, CellWrite, SheetColumn } from "../../sheet-types.ts";
import type { Desk, Edit } from "../desk.ts";
import { billingOf, editedRow, ratioEdits, RATIO_OF } from "./cells.ts";
import type { PriceUnit } from "./cells.ts";
import { BASE_COLUMNS, dollarsText, MORE_COLUMNS, unitOf } from "./columns.ts";
import type { ModelColumnId } from "./columns.ts";
import { ModelName } from "./first.tsx";
import type { Facts } from "./rows.ts";

const BILLINGS = ["tokens", "call"] as const;

/** What one side of the desk, stored or with the changes, says of models. */
interface Side {
  rowOf: (model: string) => PriceRow | undefined;
  valueOf: (key: string, name: string) => unknown;
}

const nowOf = (desk: Desk): Side => ({ rowOf: desk.rowOf, valueOf: desk.valueOf });
const storedOf = (desk: Desk): Side => ({ rowOf: desk.storedRowOf, valueOf: desk.storedValueOf });

/** Each row is worked out once while the sheet is drawn. */
function remembered(side: Side): Side {
  const rows = new Map<string, PriceRow | undefined>();
  return {
    ...side,
    rowOf(model) {
      if (!rows.has(model)) rows.set(model, side.rowOf(model));
      return rows.get(model);
    },
  };
}

function ratioText(side: Side, model: string, id: ModelColumnId): string {
  const row = side.rowOf(model);
  if (id === "call") return dollarsText(row, id);
  const key = RATIO_OF[id as keyof typeof RATIO_OF];
  if (key === undefined || row === undefined || row.call !== undefined) return "";
  // A price in dollars wins over a ratio.
  const rules = side.valueOf("PriceRules", model);
  if (typeof rules === "object" && rules !== null && id in rules) return "";
  const ratio = side.valueOf(key, model);
  if (typeof ratio === "number") return String(ratio);
  // Beside a free input prices are dollars: there is no ratio to nothing.
  return id === "out" && row.in !== 0 ? String(completionRatio(model, {})) : "";
}

export interface ColumnsOptions {
  t: Translate;
  desk: Desk;
  facts: Facts;
  unit: PriceUnit;
  /** Ids of further columns. */
  more: readonly string[];
}

export interface ModelColumns {
  columns: SheetColumn<string>[];
  changed: (model: string, columnId: string) => string | undefined;
}

export function modelColumns({ t, desk, facts, unit, more }: ColumnsOptions): ModelColumns {
  const now = remembered(nowOf(desk));
  const before = remembered(storedOf(desk));
  const changes = new Set(desk.changes.value.map(({ name }) => name));
  const billingText = (side: Side, model: string) => {
    const billing = billingOf(side.rowOf(model));
    return billing === undefined ? "" : t(`desk.models.billing.${billing}`);
  };
  const textOf = (side: Side, model: string, id: ModelColumnId): string =>
    id === "billing"
      ? billingText(side, model)
      : unit === "ratio"
        ? ratioText(side, model, id)
        : dollarsText(side.rowOf(model), id);
  const ruleCount = (model: string) => now.rowOf(model)?.when?.length ?? 0;
  const shown = [
    ...BASE_COLUMNS,
    ...MORE_COLUMNS.filter(({ id }) => more.includes(id) && (unit === "dollars" || id in RATIO_OF)),
  ];
  const columns = shown.map(({ id, width, isNumber }): SheetColumn<string> => {
    const common = { id, width, label: t(`desk.models.column.${id}`), isSortable: true };
    if (id === "name")
      return {
        ...common,
        kind: "text",
        read: (model) => model,
        render: (model) => <ModelName name={model} maker={facts.makerOf(model)} rules={ruleCount(model)} />,
      };
    const read = (model: string) => textOf(now, model, id);
    if (!isNumber)
      return {
        ...common,
        kind: "choice",
        choices: BILLINGS.map((each) => t(`desk.models.billing.${each}`)),
        read,
        render: (model) => <Billing text={read(model)} refused={facts.refusedOf(model)} t={t} />,
        parse: (text) => {
          const found = BILLINGS.find((each) => each === text || t(`desk.models.billing.${each}`) === text);
          return found ? { value: found } : { problem: t("desk.models.noBilling") };
        },
      };
    return {
      ...common,
      kind: "number",
      unit: unitOf(id, unit),
      read,
      ...(id === "call" && { render: (model: string) => callText(t, now.rowOf(model), read(model)) }),
      parse: (text) => parseNumber(t, text, MAX_DOLLARS),
      ...(id === "out" && {
        isMuted: (model: string) =>
          desk.valueOf("CompletionRatio", model) === null && now.rowOf(model)?.in !== 0,
      }),
    };
  });
  const changed = (model: string, columnId: string): string | undefined => {
    if (!changes.has(model)) return undefined;
    if (columnId === "name") {
      const [one, other] = [before, now].map((side) => JSON.stringify(side.valueOf("PriceRules", model)));
      const count = before.rowOf(model)?.when?.length ?? 0;
      return one === other || count === ruleCount(model) ? undefined : t("desk.models.rules", { count });
    }
    const text = textOf(before, model, columnId as ModelColumnId);
    return text === textOf(now, model, columnId as ModelColumnId) ? undefined : text;
  };
  return { columns, changed };
}

/** "0.1 / second", where it is not the call that is counted. */
function callText(t: Translate, row: PriceRow | undefined, text: string): string {
  const { unit } = row ?? {};
  return text === "" || unit === undefined || unit === "call"
    ? text
    : `${text} ${t(`desk.models.per.${unit}`)}`;
}

function Billing({ text, refused, t }: { text: string; refused: number; t: Translate }) {
  if (text !== "") return text;
  return (
    <span className="text-warning-text">
      {t("desk.models.billing.none")}
      {refused > 0 ? (
        <span className="ml-1 text-xs">
          {t("desk.models.refused", { count: refused, number: formatNumber(refused) })}
        </span>
      ) : null}
    </span>
  );
}

/** Writes cells of the sheet as one step; what of them was not taken, and why. */
export function writeCells(
  desk: Desk,
  { t, unit }: Pick<ColumnsOptions, "t" | "unit">,
  cells: readonly CellWrite[],
  label: string,
): CellProblem[] {
  const problems: CellProblem[] = [];
  const edits: Edit[] = [];
  const rows = new Map<string, PriceRow>();
  for (const [model, own] of Map.groupBy(cells, ({ rowKey }) => rowKey)) {
    const { valueOf, storedValueOf } = desk;
    const stored = desk.storedRowOf(model);
    const ofRow = unit === "ratio" ? undefined : editedRow({ row: desk.rowOf(model), stored, cells: own });
    const ofMaps = ofRow ? undefined : ratioEdits({ model, valueOf, storedValueOf, cells: own });
    const refused = (ofRow ?? ofMaps)?.refused ?? [];
    if (ofRow?.row && refused.length < own.length) rows.set(model, ofRow.row);
    edits.push(...(ofMaps?.edits ?? []));
    for (const { columnId, reason } of refused)
      problems.push({ rowKey: model, columnId, problem: t(`desk.models.problem.${reason}`) });
  }
  edits.push(...desk.editsOfRows(rows));
  if (edits.length > 0) desk.write(edits, label);
  return problems;
}
