// The menu for a table's columns: shown or not, order by drag or Alt+arrows, reset.
// Refuses to hide the identity column.
import { GripVertical, Settings2 } from "lucide-react";
import { useId, useRef, useState } from "react";
import { useT } from "../lib/i18n.ts";
import { announce } from "../lib/toasts.ts";
import { Menu } from "./menu.tsx";
import type { Column, ColumnSettings } from "./table-columns.ts";

export function TableSettings<Row>({
  columns,
  settings,
}: {
  columns: readonly Column<Row>[];
  settings: ColumnSettings;
}) {
  const t = useT();
  const hintId = useId();
  const dragged = useRef<string>(undefined);
  const [over, setOver] = useState<string>();
  const byId = new Map(columns.map((column) => [column.id, column]));
  const move = (id: string, by: number) => {
    settings.move(id, by);
    const title = byId.get(id)?.title ?? id;
    announce(by < 0 ? "table.columns.movedUp" : "table.columns.movedDown", { column: title });
  };
  return (
    <Menu
      label={t("table.columns")}
      className="btn btn-ghost btn-square btn-xs"
      groups={[[{ id: "reset", label: t("table.columns.reset"), onSelect: settings.reset }]]}
      head={
        <>
          <li id={hintId} role="none" className="menu-title pt-1 font-normal whitespace-normal">
            {t("table.columns.hint")}
          </li>
          {settings.order.map((id, index) => {
            const column = byId.get(id);
            if (!column || column.isIdentity) return null;
            return (
              <li key={id} role="none">
                <div
                  role="menuitemcheckbox"
                  tabIndex={-1}
                  aria-checked={!settings.hidden.has(id)}
                  aria-describedby={hintId}
                  data-over={over === id ? "" : undefined}
                  draggable
                  onDragStart={() => {
                    dragged.current = id;
                  }}
                  onDragOver={(event) => {
                    event.preventDefault();
                    setOver(id);
                  }}
                  onDrop={() => {
                    setOver(undefined);
                    if (dragged.current && dragged.current !== id) {
                      settings.move(dragged.current, index - settings.order.indexOf(dragged.current));
                    }
                  }}
                  onDragEnd={() => setOver(undefined)}
                  onClick={() => settings.toggle(id)}
                  onKeyDown={(event) => {
                    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
                      event.preventDefault();
                      event.stopPropagation();
                      move(id, event.key === "ArrowUp" ? -1 : 1);
                    } else if (event.key === " " || event.key === "Enter") {
                      event.preventDefault();
                      settings.toggle(id);
                    }
                  }}
                >
                  <GripVertical aria-hidden />
                  <span>{column.title}</span>
                </div>
              </li>
            );
          })}
          <li role="separator" />
        </>
      }
    >
      <Settings2 aria-hidden size={14} />
    </Menu>
  );
}
