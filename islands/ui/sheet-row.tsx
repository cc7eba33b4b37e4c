// One row of a sheet: its name pinned, its cells, what changed with what stood there before.
import type { ReactNode } from "react";
import { useT } from "../lib/i18n.ts";
import { isWithin } from "./sheet-moves.ts";
import type { Range, Selected } from "./sheet-moves.ts";
import type { SheetColumn, SheetProps } from "./sheet-types.ts";
import { ROW_HEIGHT } from "./sheet-window.ts";
import type { DrawnColumns } from "./sheet-window.ts";

interface SheetRowProps<Row> {
  props: SheetProps<Row>;
  row: Row;
  at: number;
  selected: Selected;
  range: Range;
  cellId: (row: number, column: number) => string;
  drawn: DrawnColumns;
  /** In place of the current cell's text. */
  editor: ReactNode;
}

export function SheetRow<Row>({
  props,
  row,
  at,
  selected,
  range,
  cellId,
  drawn,
  editor,
}: SheetRowProps<Row>) {
  const { columns, keyOf, changed, ticked } = props;
  const key = keyOf(row);
  return (
    <div
      role="row"
      aria-rowindex={at + 2}
      className="absolute inset-x-0"
      data-ticked={ticked?.has(key) || undefined}
      style={{ top: at * ROW_HEIGHT, paddingRight: drawn.rest }}
    >
      {drawn.columns.map(({ at: beside, gap }) => {
        const column = columns[beside];
        if (!column) return null;
        const isCurrent = selected.row === at && selected.column === beside;
        const before = changed?.(key, column.id);
        return (
          <div
            key={column.id}
            id={cellId(at, beside)}
            role={beside === 0 ? "rowheader" : "gridcell"}
            aria-colindex={beside + 1}
            aria-selected={isWithin(range, at, beside)}
            aria-readonly={!column.parse || column.isReadOnly?.(row) ? true : undefined}
            data-row={at}
            data-column={beside}
            data-current={isCurrent || undefined}
            data-number={column.kind === "number" || undefined}
            data-muted={column.isMuted?.(row) || undefined}
            data-changed={before === undefined ? undefined : ""}
            style={{ width: column.width, marginLeft: gap }}
          >
            {isCurrent && editor !== undefined ? (
              editor
            ) : beside === 0 ? (
              <RowName {...{ props, row, column }} rowKey={key} />
            ) : (
              <CellText {...{ row, column }} />
            )}
            {before === undefined || (isCurrent && editor !== undefined) ? null : <Before text={before} />}
          </div>
        );
      })}
    </div>
  );
}

/** Longer texts may be cut: the whole one is at hand. */
const MOST_SHOWN = 9;

function CellText<Row>({ row, column }: { row: Row; column: SheetColumn<Row> }) {
  const text = column.read(row);
  return (
    <span className="sheet-text max-w-full truncate" title={text.length > MOST_SHOWN ? text : undefined}>
      {column.render?.(row) ?? text}
    </span>
  );
}

/** What stood in a changed cell. */
export function Before({ text }: { text: string }) {
  const t = useT();
  return (
    <span className="text-xs/3 text-muted line-through">
      <span className="sr-only">{t("sheet.before")} </span>
      {text === "" ? "–" : text}
    </span>
  );
}

function RowName<Row>({
  props,
  row,
  column,
  rowKey,
}: {
  props: SheetProps<Row>;
  row: Row;
  column: SheetColumn<Row>;
  rowKey: string;
}) {
  const t = useT();
  const name = column.read(row);
  const text = column.render?.(row) ?? name;
  return (
    <>
      {props.onTick ? (
        <input
          type="checkbox"
          className="checkbox mr-2 flex-none"
          tabIndex={-1}
          aria-label={t("sheet.tick", { row: name })}
          checked={props.ticked?.has(rowKey) ?? false}
          onChange={(event) => props.onTick?.([rowKey], event.target.checked)}
        />
      ) : null}
      {props.onOpenRow ? (
        <button
          type="button"
          tabIndex={-1}
          className="sheet-text max-w-full cursor-pointer truncate text-left"
          title={name}
          data-open-row
        >
          {text}
        </button>
      ) : (
        <span className="sheet-text max-w-full truncate">{text}</span>
      )}
    </>
  );
}
