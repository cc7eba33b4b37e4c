// The views of a list screen: its own and the saved ones, over the filters in its address.
import { useT } from "../lib/i18n.ts";
import type { ShownList } from "../lib/list-screen.ts";
import { ViewTabs } from "./view-tabs.tsx";
import type { ViewTabsProps } from "./view-tabs.tsx";

export interface ListViewsProps
  extends
    Pick<ViewTabsProps, "screen" | "builtIn" | "fields" | "columnsKey">,
    Partial<Pick<ViewTabsProps, "label" | "onOpen">> {
  list: Pick<ShownList<object>, "table">;
}

export function ListViews({ list, ...tabs }: ListViewsProps) {
  const t = useT();
  const { query, setFilters } = list.table;
  return <ViewTabs label={t("table.viewsLabel")} onOpen={setFilters} {...tabs} query={query} />;
}
