// The menu for a table's columns and the way back to those that it came with; the list in it comes when the page is idle.
import { Settings2 } from "lucide-react";
import { useT } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { Menu } from "./menu.tsx";
import type { Column, ColumnSettings } from "./table-columns.ts";

const ColumnList = lazyPart(() => import("./table-column-list.tsx"));

export interface TableSettingsProps {
  columns: readonly Pick<Column<object>, "id" | "title" | "isIdentity">[];
  settings: ColumnSettings;
}

export function TableSettings(props: TableSettingsProps) {
  const t = useT();
  return (
    <Menu
      label={t("table.columnsLabel")}
      className="btn btn-ghost btn-square btn-xs"
      groups={[[{ id: "reset", label: t("table.columns.reset"), onSelect: props.settings.reset }]]}
      head={<ColumnList {...props} />}
    >
      <Settings2 aria-hidden size={14} />
    </Menu>
  );
}
