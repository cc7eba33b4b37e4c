// What a text in a cell of the groups' sheets means, and the edits that several cells come to.
// Refuses ratios that the gateway would refuse, in words, and a description of a group that nobody may choose.
import { formatNumber } from "../../lib/format.ts";
import type { Translate } from "../../lib/i18n.ts";
import { typedNumber } from "../../lib/typed-number.ts";
import type { CellProblem, CellWrite, ParsedCell } from "../../ui/sheet-types.ts";
import type { Desk } from "../../ui/price-sheet/desk.ts";
import { descriptionOf, overrideEdits, RATIO, TOPUP, USABLE } from "./group-book.ts";

/** Largest ratio that the gateway takes. */
const MAX_RATIO = 1e6;

type Edit = Parameters<Desk["write"]>[0][number];

/** A ratio; the empty text takes it away. */
export function parseRatio(t: Translate, text: string): ParsedCell {
  if (text === "") return { value: null };
  const { value, problem } = typedNumber(text.replaceAll(/^[×x*]\s*|\s*[×x]$/gi, ""));
  if (problem !== undefined) return { problem: t(`sheet.number.${problem}`, { text }) };
  if (value > MAX_RATIO) return { problem: t("desk.sheet.tooLarge", { most: formatNumber(MAX_RATIO) }) };
  return { value };
}

export function parseUsable(t: Translate, text: string): ParsedCell {
  const said = text.toLowerCase();
  if (said === t("desk.sheet.groups.yes").toLowerCase() || said === "true" || said === "1")
    return { value: true };
  const isNo = said === "" || said === t("desk.sheet.groups.no").toLowerCase();
  if (isNo || said === "false" || said === "0") return { value: false };
  return { problem: t("desk.sheet.groups.yesOrNo") };
}

export interface CellEdits {
  edits: Edit[];
  problems: CellProblem[];
}

/** Edits of rows of groups: whether users may choose one, and under which words, is one entry. */
export function groupEdits(desk: Desk, t: Translate, cells: readonly CellWrite[]): CellEdits {
  const edits: Edit[] = [];
  const problems: CellProblem[] = [];
  for (const [name, ofRow] of Map.groupBy(cells, ({ rowKey }) => rowKey)) {
    const written = new Map(ofRow.map(({ columnId, value }) => [columnId, value] as const));
    if (written.has("ratio")) edits.push({ key: RATIO, name, after: written.get("ratio") ?? null });
    if (written.has("topup")) edits.push({ key: TOPUP, name, after: written.get("topup") ?? null });
    const words = written.get("description");
    const current = descriptionOf(desk, name);
    const isUsable = written.has("usable") ? written.get("usable") === true : current !== undefined;
    if (!isUsable && typeof words === "string" && words !== "") {
      problems.push({
        rowKey: name,
        columnId: "description",
        problem: t("desk.sheet.groups.notOpen", { group: name }),
      });
    }
    if (!isUsable) {
      if (written.has("usable")) edits.push({ key: USABLE, name, after: null });
    } else if (written.has("usable") || written.has("description")) {
      const stored = desk.storedValueOf(USABLE, name);
      const kept = current ?? (typeof stored === "string" ? stored : name);
      edits.push({ key: USABLE, name, after: written.has("description") ? String(words ?? "") : kept });
    }
  }
  return { edits, problems };
}

/** Edits of cells of the matrix: rows are groups of users, columns the groups that they use. */
export function matrixEdits(desk: Desk, cells: readonly CellWrite[]): Edit[] {
  return overrideEdits(
    desk,
    cells.map(({ rowKey, columnId, value }) => ({
      userGroup: rowKey,
      group: columnId,
      ratio: typeof value === "number" ? value : null,
    })),
  );
}
