// What stands in the menu for a table's columns: each of them, shown or not, moved by drag or Alt+arrows.
// Refuses to hide the identity column, and to call shown what the table has no room for.
import { GripVertical } from "lucide-react";
import { useId, useLayoutEffect, useRef, useState } from "react";
import { useT } from "../lib/i18n.ts";
import { announce } from "../lib/toasts.ts";
import type { TableSettingsProps } from "./table-settings.tsx";

/** Stands in the page only while the menu is open: it looks at the heads of the table around it. */
export default function ColumnList({ columns, settings }: TableSettingsProps) {
  const t = useT();
  const hintId = useId();
  const hint = useRef<HTMLLIElement>(null);
  const [narrow, setNarrow] = useState<ReadonlySet<string>>(new Set());
  useLayoutEffect(() => {
    const heads = hint.current?.closest("tr")?.querySelectorAll<HTMLElement>("th[data-column]") ?? [];
    const away = [...heads].filter((head) => getComputedStyle(head).display === "none");
    setNarrow(new Set(away.map((head) => head.dataset["column"] ?? "")));
  }, [settings]);
  const isShown = (id: string) => !settings.hidden.has(id) && !narrow.has(id);
  const dragged = useRef<string>(undefined);
  const [over, setOver] = useState<string>();
  const byId = new Map(columns.map((column) => [column.id, column]));
  const move = (id: string, by: number) => {
    settings.move(id, by);
    const title = byId.get(id)?.title ?? id;
    announce(by < 0 ? "table.columns.movedUp" : "table.columns.movedDown", { column: title });
  };
  return (
    <>
      <li ref={hint} id={hintId} role="none" className="menu-title pt-1 font-normal whitespace-normal">
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
              aria-checked={isShown(id)}
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
              onClick={() => settings.show(id, !isShown(id))}
              onKeyDown={(event) => {
                if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
                  event.preventDefault();
                  event.stopPropagation();
                  move(id, event.key === "ArrowUp" ? -1 : 1);
                } else if (event.key === " " || event.key === "Enter") {
                  event.preventDefault();
                  settings.show(id, !isShown(id));
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
  );
}
