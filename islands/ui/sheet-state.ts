// A sheet's state and acts: the current cell and range, the editor, the clipboard, and what was said of the last act.
// Refuses to drop in silence what was typed and cannot be taken: the cell is named, with the reason.
import { useRef, useState } from "react";
import { useT } from "../lib/i18n.ts";
import type { Translate } from "../lib/i18n.ts";
import { blockText, readBlock } from "../../src/shared/tsv.ts";
import { clearRange, fillDown, fillRange, pasteBlock, setCell, textsOf } from "./sheet-edits.ts";
import type { EditPlan, SheetCells } from "./sheet-edits.ts";
import { cellAt, cellCount, rangeOf, START } from "./sheet-moves.ts";
import type { Selected } from "./sheet-moves.ts";
import type { CellProblem, SheetColumn, SheetProps } from "./sheet-types.ts";

interface Editor {
  text: string;
  /** Began by typing over the cell: arrows then leave it instead of moving in the text. */
  isTyped: boolean;
  problem?: string | undefined;
}

/** What came of the last act. */
interface Told {
  text: string;
  isProblem: boolean;
}

const NOTHING_TOLD: Told = { text: "", isProblem: false };

/** The current cell follows its row when rows are sorted, filtered or come anew. */
function useSelected<Row>({ rows, keyOf, columns }: SheetProps<Row>) {
  const [kept, setKept] = useState({ rows, selected: START });
  let { selected } = kept;
  if (kept.rows !== rows) {
    const keyAt = (list: readonly Row[], at: number) => {
      const row = list[at];
      return row === undefined ? undefined : keyOf(row);
    };
    const isSame = [selected.row, selected.anchorRow].every((at) => keyAt(rows, at) === keyAt(kept.rows, at));
    if (!isSame && selected.row >= 0) {
      const key = keyAt(kept.rows, selected.row);
      const found = key === undefined ? -1 : rows.findIndex((row) => keyOf(row) === key);
      const row = found >= 0 ? found : Math.max(0, Math.min(selected.row, rows.length - 1));
      selected = cellAt(row, selected.column);
    }
    setKept({ rows, selected });
  }
  const last = columns.length - 1;
  if (selected.column > last || selected.anchorColumn > last)
    selected = cellAt(selected.row, Math.min(selected.column, last));
  return { selected, place: (next: Selected) => setKept({ rows, selected: next }) };
}

/** A cell in a sentence. */
function nameOf<Row>(props: SheetProps<Row>, { rowKey, columnId }: CellProblem) {
  const row = props.rows.find((each) => props.keyOf(each) === rowKey);
  return {
    row: (row === undefined ? undefined : props.columns[0]?.read(row)) ?? rowKey,
    column: props.columns.find(({ id }) => id === columnId)?.label ?? columnId,
  };
}

type Act = "paste" | "fill" | "clear";

interface Outcome {
  act: Act;
  taken: number;
  problems: readonly CellProblem[];
  lost: number;
}

/** What is said after an act on several cells: how many, and of those that were not taken how many, the first and why. */
function toldOf<Row>(t: Translate, props: SheetProps<Row>, { act, taken, problems, lost }: Outcome): Told {
  const [first] = problems;
  const sentences = [t(`sheet.done.${act}`, { count: taken })];
  if (first)
    sentences.push(
      t("sheet.refused", { count: problems.length, ...nameOf(props, first), problem: first.problem }),
    );
  if (lost > 0) sentences.push(t("sheet.lost", { count: lost }));
  return { text: sentences.join(" "), isProblem: problems.length > 0 || lost > 0 };
}

/** What the editor begins with: a choice that begins like what was typed, else the text that stands there. */
function startText<Row>(column: SheetColumn<Row>, row: Row, typed: string | undefined): string {
  if (typed === undefined || !column.choices) return typed ?? column.read(row);
  const begins = (choice: string) => choice.toLowerCase().startsWith(typed.toLowerCase());
  return column.choices.find(begins) ?? column.read(row);
}

export function useSheet<Row>(props: SheetProps<Row>) {
  const t = useT();
  const { rows, columns, keyOf, write } = props;
  const { selected, place } = useSelected(props);
  const [editor, setEditor] = useState<Editor>();
  // What is open right now: the focus leaves a field in the middle of an act, before anything is rendered.
  const open = useRef<Editor>(undefined);
  const [told, setTold] = useState(NOTHING_TOLD);
  const range = rangeOf(selected);
  const row = rows[selected.row];
  const column = columns[selected.column];
  const cells: SheetCells<Row> = { rows, columns, keyOf, readOnly: t("sheet.readOnly") };
  const canWrite = row !== undefined && column?.parse !== undefined && !column.isReadOnly?.(row);

  const show = (next: Editor | undefined) => {
    open.current = next;
    setEditor(next);
  };
  /** Writes what the plan could read, and tells the rest. */
  const run = (act: Act, plan: EditPlan): void => {
    const label = t(`sheet.step.${act}`, { count: plan.writes.length });
    const refused = plan.writes.length === 0 ? [] : (write(plan.writes, label) ?? []);
    const taken = plan.writes.length - refused.length;
    setTold(toldOf(t, props, { act, taken, problems: [...plan.problems, ...refused], lost: plan.lost }));
  };
  const nameOfRow = row === undefined ? "" : (columns[0]?.read(row) ?? "");
  /** Takes the open editor's text into its cell; what is wrong with it. */
  const take = ({ text }: Editor): CellProblem | undefined => {
    const plan = setCell(cells, selected.row, selected.column, text);
    if (plan.writes.length === 0) return plan.problems[0];
    return write(plan.writes, t("sheet.step.set", { column: column?.label ?? "", row: nameOfRow }))?.[0];
  };
  /** Somebody goes elsewhere: what cannot be taken is dropped, and told. */
  const leave = (): void => {
    const { current } = open;
    if (!current) return;
    show(undefined);
    const problem = take(current);
    if (problem)
      setTold({
        text: t("sheet.refused", { count: 1, ...nameOf(props, problem), problem: problem.problem }),
        isProblem: true,
      });
  };

  return {
    t,
    selected,
    range,
    row,
    column,
    nameOfRow,
    editor,
    told,
    leave,
    select(next: Selected) {
      setTold(NOTHING_TOLD);
      leave();
      place(next);
    },
    /** Opens the editor over the current cell: with its text, or with what was typed. */
    edit(typed?: string) {
      if (!canWrite || !column || row === undefined) {
        setTold({ text: t("sheet.readOnly"), isProblem: true });
        return;
      }
      setTold(NOTHING_TOLD);
      show({ text: startText(column, row, typed), isTyped: typed !== undefined });
    },
    type(text: string) {
      if (open.current) show({ ...open.current, text, problem: undefined });
    },
    cancel: () => show(undefined),
    /** False: the text cannot be taken, and the editor stays open with the reason. */
    commit(): boolean {
      const { current } = open;
      if (!current) return true;
      const problem = take(current);
      show(problem && { ...current, problem: problem.problem });
      return problem === undefined;
    },
    /** Takes what the editor holds into every cell of the range. */
    commitAll() {
      const { current } = open;
      if (!current) return;
      show(undefined);
      run("fill", fillRange(cells, range, current.text));
    },
    paste(text: string) {
      if (rows.length === 0 || text === "") return;
      const plan = pasteBlock(cells, range, readBlock(text));
      run("paste", plan);
      // The current cell stays in sight, however long the block is.
      const { top, left, bottom, right } = plan.range;
      place({ row: top, column: left, anchorRow: bottom, anchorColumn: right });
    },
    copy: (): string => {
      setTold({ text: t("sheet.copied", { count: cellCount(range) }), isProblem: false });
      return blockText(textsOf(cells, range));
    },
    fill: () => run("fill", fillDown(cells, range)),
    clear: () => run("clear", clearRange(cells, range)),
    selectAll: () =>
      place({ row: 0, column: 0, anchorRow: rows.length - 1, anchorColumn: columns.length - 1 }),
  };
}
