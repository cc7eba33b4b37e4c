// The sheet of models as a file: rows in dollars for spreadsheets, or the maps of the options as other instances read them.
import { PRICE_MAPS, emptyMaps } from "../../../../src/shared/row-maps.ts";
import { csvText, downloadText } from "../../../lib/csv.ts";
import type { Desk } from "../desk.ts";
import { billingOf } from "./cells.ts";
import { BASE_COLUMNS, MORE_COLUMNS } from "./columns.ts";

interface ExportOptions {
  desk: Desk;
  /** Models of the view. */
  names: readonly string[];
}

/** Rows of the view in dollars, every column; heads are names that the import knows in any language. */
export function modelsCsv({ desk, names }: ExportOptions): string {
  const columns = [...BASE_COLUMNS, ...MORE_COLUMNS];
  const rows = names.map((name) => {
    const row = desk.rowOf(name);
    return columns.map(({ id }) =>
      id === "name" ? name : id === "billing" ? (billingOf(row) ?? "") : row?.[id],
    );
  });
  return csvText(
    columns.map(({ id }) => (id === "name" ? "model" : id)),
    rows,
  );
}

/** Every map with the changes at hand, whatever the view shows. */
export function modelsJson(desk: Desk): string {
  const maps: Record<string, Record<string, unknown>> = emptyMaps();
  for (const key of PRICE_MAPS) {
    for (const name of desk.namesOf(key).toSorted()) {
      Object.defineProperty(maps[key], name, {
        value: desk.valueOf(key, name),
        enumerable: true,
        configurable: true,
      });
    }
  }
  return JSON.stringify(maps, null, 2);
}

export function exportModels(kind: "csv" | "json", options: ExportOptions): void {
  if (kind === "csv") downloadText("prices.csv", modelsCsv(options));
  else downloadText("prices.json", modelsJson(options.desk), "application/json");
}
