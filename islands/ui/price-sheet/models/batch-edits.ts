// What setting many models together would change: pure, so that the preview shows what applying does.
import type { PriceRow, TokenKind } from "../../../../src/shared/price-row.ts";
import { tidyDollars } from "../../../../src/shared/price-row.ts";
import type { Translate } from "../../../lib/i18n.ts";
import type { Desk, Edit } from "../desk.ts";
import { rulesWithout, scaledRow } from "./cells.ts";

/** The specification's modes are the last four; prices and the factor are in dollars. */
export const BATCH_MODES = ["tokens", "factor", "both", "ratio", "completion", "call"] as const;
export type BatchMode = (typeof BATCH_MODES)[number];

/** Fields of a mode: names below `desk.models.field`. */
export const FIELDS_OF: Record<BatchMode, readonly string[]> = {
  tokens: ["in", "out"],
  factor: ["factor"],
  both: ["ratio", "completion"],
  ratio: ["ratio"],
  completion: ["completion"],
  call: ["call"],
};

/** The edits that give each model the values, in the order of the mode's fields. */
export function batchEdits(
  desk: Pick<Desk, "rowOf" | "editsOfRows" | "valueOf">,
  names: readonly string[],
  mode: BatchMode,
  [first = 0, second = 0]: readonly number[],
): Edit[] {
  const ofRows = (rowFor: (row: PriceRow | undefined) => PriceRow | undefined) => {
    const rows = new Map<string, PriceRow>();
    for (const name of names) {
      const row = rowFor(desk.rowOf(name));
      if (row) rows.set(name, row);
    }
    return desk.editsOfRows(rows);
  };
  const each = (kinds: readonly TokenKind[], entries: readonly (readonly [key: string, after: unknown])[]) =>
    names.flatMap((name) => {
      // Output over nothing is no price: what has none by tokens is left alone.
      if (!kinds.includes("in") && desk.valueOf("ModelRatio", name) === null) return [];
      const rules = rulesWithout(desk.valueOf("PriceRules", name), kinds);
      return [...entries, ...(rules === undefined ? [] : [["PriceRules", rules] as const])].map(
        ([key, after]): Edit => ({ key, name, after }),
      );
    });
  switch (mode) {
    case "tokens":
      return ofRows((row) => {
        const { call: _, unit: __, ...rest } = row ?? {};
        return { ...rest, in: first, out: second };
      });
    case "factor":
      return ofRows((row) => row && scaledRow(row, first));
    case "call":
      return ofRows((row) => ({
        call: first,
        ...(row?.unit && { unit: row.unit }),
        ...(row?.tools && { tools: row.tools }),
        ...(row?.when && { when: row.when }),
      }));
    case "ratio":
      return each(
        ["in"],
        [
          ["ModelPrice", null],
          ["ModelRatio", first],
        ],
      );
    case "completion":
      return each(["out"], [["CompletionRatio", first]]);
    case "both":
      return each(
        ["in", "out"],
        [
          ["ModelPrice", null],
          ["ModelRatio", first],
          ["CompletionRatio", second],
        ],
      );
  }
}

/** A price in short: what a preview lists. */
function rowText(t: Translate, row: PriceRow | undefined): string {
  if (!row) return t("desk.models.billing.none");
  if (row.call !== undefined) return t("desk.models.short.call", { call: tidyDollars(row.call) });
  return t("desk.models.short.tokens", {
    input: tidyDollars(row.in ?? 0),
    output: tidyDollars(row.out ?? row.in ?? 0),
  });
}

interface PreviewLine {
  model: string;
  before: string;
  after: string;
}

export interface Preview {
  lines: PreviewLine[];
  /** Models whose price becomes another one. */
  count: number;
}

const MOST_LINES = 12;

/** What edits change, model by model: the first of them in words, and how many there are. */
export function previewOf(t: Translate, desk: Desk, edits: readonly Edit[]): Preview {
  const changing = edits.filter(
    ({ key, name, after }) => JSON.stringify(desk.valueOf(key, name)) !== JSON.stringify(after),
  );
  const byModel = Map.groupBy(changing, ({ name }) => name);
  const lines = [...byModel].slice(0, MOST_LINES).map(([model, own]) => ({
    model,
    before: rowText(t, desk.rowOf(model)),
    after: rowText(t, desk.rowAfter(model, own)),
  }));
  return { lines, count: byModel.size };
}
