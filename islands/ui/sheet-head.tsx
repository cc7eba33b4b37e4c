// The heads of a sheet's columns: above the first row for the arrow keys, and sorting where a column does.
import { ArrowDown, ArrowUp } from "lucide-react";
import { HEADS } from "./sheet-moves.ts";
import type { Selected } from "./sheet-moves.ts";
import type { SheetColumn, SheetProps } from "./sheet-types.ts";
import type { DrawnColumns } from "./sheet-window.ts";

interface SheetHeadProps<Row> {
  props: SheetProps<Row>;
  selected: Selected;
  width: number;
  cellId: (row: number, column: number) => string;
  drawn: DrawnColumns;
}

export function SheetHead<Row>({ props, selected, width, cellId, drawn }: SheetHeadProps<Row>) {
  const { columns, sort } = props;
  const sortOf = ({ id }: SheetColumn<Row>) =>
    sort?.column === id ? (sort.isDescending ? "descending" : "ascending") : undefined;
  return (
    <div role="rowgroup" className="sticky top-0 z-4" style={{ minWidth: width }}>
      <div role="row" aria-rowindex={1} style={{ paddingRight: drawn.rest }}>
        {drawn.columns.map(({ at, gap }) => {
          const column = columns[at];
          if (!column) return null;
          return (
            <div
              key={column.id}
              id={cellId(HEADS, at)}
              role="columnheader"
              aria-colindex={at + 1}
              aria-sort={sortOf(column)}
              data-row={HEADS}
              data-column={at}
              data-current={(selected.row === HEADS && selected.column === at) || undefined}
              data-number={column.kind === "number" || undefined}
              style={{ width: column.width, marginLeft: gap }}
            >
              {column.isSortable && props.onSort ? (
                <button
                  type="button"
                  tabIndex={-1}
                  className="sort-button"
                  data-active={sort?.column === column.id || undefined}
                >
                  <HeadText column={column} />
                  {sort?.column === column.id ? (
                    sort.isDescending ? (
                      <ArrowDown aria-hidden size={12} />
                    ) : (
                      <ArrowUp aria-hidden size={12} />
                    )
                  ) : null}
                </button>
              ) : (
                <HeadText column={column} />
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function HeadText<Row>({ column: { label, unit } }: { column: SheetColumn<Row> }) {
  return (
    <span className="block">
      {label}
      {unit === undefined ? null : <span className="font-normal"> {unit}</span>}
    </span>
  );
}
