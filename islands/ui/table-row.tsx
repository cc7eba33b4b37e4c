// One row of a table: checkbox, cells (identity link, quick edit), menu. Keyboard: Enter opens, arrows move.
// Refuses to open on a click that hits a control or ends a selection of text.
import { Ellipsis } from "lucide-react";
import type { ReactNode } from "react";
import { useT } from "../lib/i18n.ts";
import { Menu } from "./menu.tsx";
import type { MenuGroups } from "./menu.tsx";
import type { Column } from "./table-columns.ts";

export interface TableRowProps<Row> {
  row: Row;
  index: number;
  columns: readonly Column<Row>[];
  name: string;
  menu: MenuGroups;
  isMuted: boolean;
  isNew: boolean;
  /** absent: rows of this table cannot be selected; blocked: others can, this one not. */
  check: "absent" | "blocked" | "checked" | "unchecked";
  onChoose: (isRange: boolean) => void;
  href: string | undefined;
  onOpen: ((row: Row) => void) | undefined;
  /** Moves the focus by rows. */
  onStep: (by: -1 | 1) => void;
}

export function TableRow<Row>(props: TableRowProps<Row>) {
  const { row, index, columns, name, menu, check, onChoose, onOpen } = props;
  const t = useT();
  return (
    <tr
      role="row"
      tabIndex={-1}
      data-index={index}
      data-muted={props.isMuted ? "" : undefined}
      data-new={props.isNew ? "" : undefined}
      data-open={onOpen ? "" : undefined}
      aria-selected={check === "absent" || check === "blocked" ? undefined : check === "checked"}
      onClick={(event) => {
        if (isInteractive(event.target) || getSelection()?.toString()) return;
        onOpen?.(row);
      }}
      onKeyDown={(event) => {
        if (event.target !== event.currentTarget) return;
        if (event.key === "Enter") onOpen?.(row);
        else if (event.key === "ArrowDown") props.onStep(1);
        else if (event.key === "ArrowUp") props.onStep(-1);
        else return;
        event.preventDefault();
      }}
    >
      {check === "absent" ? null : check === "blocked" ? (
        <td role="cell" className="cell-check" />
      ) : (
        // The whole cell is the target: browsers give a finger's tap beside the small box to the cell.
        <td
          role="cell"
          className="cell-check"
          onClick={(event) => {
            event.stopPropagation();
            if (event.target === event.currentTarget) onChoose(event.shiftKey);
          }}
        >
          <input
            type="checkbox"
            className="checkbox"
            aria-label={t("table.selectRow", { name })}
            checked={check === "checked"}
            onClick={(event) => {
              if (!event.shiftKey) return;
              event.preventDefault();
              onChoose(true);
            }}
            onChange={() => onChoose(false)}
          />
        </td>
      )}
      {columns.map((column) => (
        <td
          key={column.id}
          role="cell"
          data-align={column.align}
          data-identity={column.isIdentity ? "" : undefined}
          data-elastic={column.isElastic ? "" : undefined}
          data-from={column.from}
          data-card={column.card}
        >
          <Cell
            column={column}
            row={row}
            href={column.isIdentity ? props.href : undefined}
            onOpen={props.onOpen}
          />
        </td>
      ))}
      <td role="cell" className="cell-menu">
        {menu.some((group) => group.length > 0) ? (
          <Menu
            label={t("table.rowMenu", { name })}
            groups={menu}
            className="btn btn-ghost btn-square btn-xs"
          >
            <Ellipsis aria-hidden size={16} />
          </Menu>
        ) : null}
      </td>
    </tr>
  );
}

/** Rows in the shape of what is to come: same height, same columns. */
export function SkeletonRows<Row>({
  count,
  columns,
  canSelect,
}: {
  count: number;
  columns: readonly Column<Row>[];
  canSelect: boolean;
}) {
  return Array.from({ length: count }, (_, index) => (
    <tr key={index} role="row" aria-hidden>
      {canSelect ? <td className="cell-check" /> : null}
      {columns.map((column) => (
        <td
          key={column.id}
          role="cell"
          data-card={column.card}
          data-align={column.align}
          data-elastic={column.isElastic ? "" : undefined}
          data-from={column.from}
        >
          <span
            className="skeleton inline-block h-3"
            style={{ width: `${40 + ((index * 7 + column.id.length * 11) % 45)}%` }}
          />
        </td>
      ))}
      <td className="cell-menu" />
    </tr>
  ));
}

interface CellProps<Row> {
  column: Column<Row>;
  row: Row;
  href: string | undefined;
  onOpen: ((row: Row) => void) | undefined;
}

function Cell<Row>({ column, row, href, onOpen }: CellProps<Row>): ReactNode {
  const content = column.cell(row);
  if (href !== undefined) {
    return (
      <a
        href={href}
        className="row-link link link-hover line-clamp-2 font-semibold wrap-anywhere"
        onClick={(event) => {
          if (!onOpen || event.metaKey || event.ctrlKey || event.shiftKey) return;
          event.preventDefault();
          onOpen(row);
        }}
      >
        {content}
      </a>
    );
  }
  const { edit } = column;
  if (edit && edit.isAllowed?.(row) !== false) {
    return (
      <edit.Cell row={row} title={column.title} edit={edit}>
        {content}
      </edit.Cell>
    );
  }
  return content;
}

function isInteractive(target: EventTarget): boolean {
  return (
    target instanceof Element &&
    target.closest("a, button, input, select, textarea, label, [role=menu]") !== null
  );
}
