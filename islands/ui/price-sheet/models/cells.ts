// What cells of the sheet of models mean for a model's price: in dollars as one row, in ratios as entries of the maps.
// Refuses a price by tokens without one for input: it would be sold for nothing.
import type { PriceRow, TokenKind } from "../../../../src/shared/price-row.ts";
import { TOKEN_KINDS } from "../../../../src/shared/price-row.ts";
import type { ModelBilling } from "../../../../src/shared/price-desk.ts";
import type { CellWrite } from "../../sheet-types.ts";
import type { Edit } from "../desk.ts";

export type PriceUnit = "dollars" | "ratio";

/** The map that holds the ratio of a kind; others have no ratio and are said in dollars. */
export const RATIO_OF: Partial<Record<TokenKind, string>> = {
  in: "ModelRatio",
  out: "CompletionRatio",
  cache_read: "CacheRatio",
  cache_write: "CreateCacheRatio",
  cache_write_1h: "CreateCache1hRatio",
  image_in: "ImageRatio",
  audio_in: "AudioRatio",
  audio_out: "AudioCompletionRatio",
};

/** Why a cell was not taken: names below `desk.models.problem`. */
type CellRefusal =
  "both" | "inputFirst" | "inputNeeded" | "callNeeded" | "typeCall" | "typeInput" | "freeInput";

export interface RefusedCell {
  columnId: string;
  reason: CellRefusal;
}

export function billingOf(row: PriceRow | undefined): ModelBilling {
  if (!row) return undefined;
  return row.call === undefined ? "tokens" : "call";
}

const isKind = (id: string): id is TokenKind => (TOKEN_KINDS as readonly string[]).includes(id);

interface SortedCells {
  tokens: (readonly [TokenKind, number | null])[];
  call: number | null | undefined;
  billing: string | undefined;
  hasTokens: boolean;
}

function sorted(cells: readonly CellWrite[]): SortedCells {
  const found: SortedCells = { tokens: [], call: undefined, billing: undefined, hasTokens: false };
  for (const { columnId, value } of cells) {
    const number = typeof value === "number" ? value : null;
    if (isKind(columnId)) {
      found.tokens.push([columnId, number]);
      found.hasTokens ||= number !== null;
    } else if (columnId === "call") found.call = number;
    else if (columnId === "billing") found.billing = String(value);
  }
  return found;
}

/** Conditions and tools stay whichever way a model is billed. */
function conditionsOf(row: PriceRow | undefined): PriceRow {
  const { tools, when } = row ?? {};
  return { ...(tools && { tools }), ...(when && { when }) };
}

export interface RowEdit {
  row: PriceRow | undefined;
  /** What is in force: billing the other way begins with it. */
  stored: PriceRow | undefined;
  cells: readonly CellWrite[];
}

export interface EditedRow {
  /** Undefined: nothing of it was taken. */
  row: PriceRow | undefined;
  refused: RefusedCell[];
}

/** The row after cells of it were written in dollars, all of them together. */
export function editedRow({ row, stored, cells }: RowEdit): EditedRow {
  const { tokens, call, billing, hasTokens } = sorted(cells);
  const refused: RefusedCell[] = [];
  const isCallToo = hasTokens && typeof call === "number";
  if (isCallToo) refused.push({ columnId: "call", reason: "both" });
  const wanted = hasTokens ? "tokens" : typeof call === "number" ? "call" : (billing ?? billingOf(row));
  if (billing !== undefined && billing !== wanted) refused.push({ columnId: "billing", reason: "both" });
  if (wanted === "call") {
    const before = row?.call ?? stored?.call;
    const price = call ?? before;
    if (call === null) refused.push({ columnId: "call", reason: "callNeeded" });
    else if (price === undefined) refused.push({ columnId: "billing", reason: "typeCall" });
    if (price === undefined || (call === null && row?.call === price)) return { row: undefined, refused };
    const { unit } = row?.call === undefined ? (stored ?? {}) : row;
    return { row: { call: price, ...(unit && { unit }), ...conditionsOf(row) }, refused };
  }
  const isSwitched = row?.call !== undefined;
  const base = isSwitched
    ? stored && stored.call === undefined
      ? { ...stored, ...conditionsOf(row) }
      : conditionsOf(row)
    : (row ?? {});
  const next: PriceRow = { ...base };
  for (const [kind, price] of tokens) {
    if (price !== null) next[kind] = price;
    else if (kind !== "in") delete next[kind];
    else if (row?.in !== undefined) refused.push({ columnId: "in", reason: "inputNeeded" });
  }
  if (next.in !== undefined) return { row: next, refused };
  for (const [kind, price] of tokens) {
    if (price !== null) refused.push({ columnId: kind, reason: "inputFirst" });
  }
  if (billing !== undefined) refused.push({ columnId: "billing", reason: "typeInput" });
  return { row: undefined, refused };
}

/** The model's rules without prices of these kinds, which would win over a ratio; undefined where they have none. */
export function rulesWithout(rules: unknown, kinds: readonly TokenKind[]): object | null | undefined {
  if (typeof rules !== "object" || rules === null || !kinds.some((kind) => kind in rules)) return undefined;
  const rest = Object.entries(rules).filter(([name]) => !(kinds as readonly string[]).includes(name));
  return rest.length === 0 ? null : Object.fromEntries(rest);
}

export interface RatioEdit {
  model: string;
  valueOf: (key: string, name: string) => unknown;
  storedValueOf: (key: string, name: string) => unknown;
  cells: readonly CellWrite[];
}

/** Entries after cells were written as ratios. A ratio is a ratio: others stay what they are. */
export function ratioEdits({ model, valueOf, storedValueOf, cells }: RatioEdit): {
  edits: Edit[];
  refused: RefusedCell[];
} {
  const { tokens, call, billing, hasTokens } = sorted(cells);
  const edits: Edit[] = [];
  const refused: RefusedCell[] = [];
  const put = (key: string, after: unknown) => edits.push({ key, name: model, after });
  const typed = tokens.find(([kind]) => kind === "in")?.[1];
  const ratio = typed ?? valueOf("ModelRatio", model);
  for (const [kind, value] of tokens) {
    const key = RATIO_OF[kind];
    if (key === undefined) continue;
    if (kind === "in" && value === null) refused.push({ columnId: kind, reason: "inputNeeded" });
    else if (value !== null && ratio === null) refused.push({ columnId: kind, reason: "inputFirst" });
    else if (value !== null && kind !== "in" && ratio === 0)
      refused.push({ columnId: kind, reason: "freeInput" });
    else put(key, value);
  }
  const written = tokens.filter(([kind]) => edits.some(({ key }) => key === RATIO_OF[kind]));
  const rules = rulesWithout(
    valueOf("PriceRules", model),
    written.map(([kind]) => kind),
  );
  if (rules !== undefined) put("PriceRules", rules);
  const isPerCall = valueOf("ModelPrice", model) !== null;
  if (typeof call === "number" && !hasTokens) put("ModelPrice", call);
  else if (typeof call === "number") refused.push({ columnId: "call", reason: "both" });
  else if (call === null && isPerCall && !hasTokens) refused.push({ columnId: "call", reason: "callNeeded" });
  const isByTokens = (hasTokens || billing === "tokens") && isPerCall;
  if (isByTokens && ratio === null) refused.push({ columnId: "billing", reason: "typeInput" });
  else if (isByTokens) put("ModelPrice", null);
  if (billing === "call" && !isPerCall && typeof call !== "number") {
    const before = storedValueOf("ModelPrice", model);
    if (hasTokens) refused.push({ columnId: "billing", reason: "both" });
    else if (before === null) refused.push({ columnId: "billing", reason: "typeCall" });
    else put("ModelPrice", before);
  }
  return { edits, refused };
}

/** The whole price times a factor: prices of conditions go along; what tools cost does not. */
export function scaledRow(row: PriceRow, factor: number): PriceRow {
  const scaled = (prices: Record<string, number | undefined>) =>
    Object.fromEntries(
      Object.entries(prices).map(([kind, price]) => [
        kind,
        price === undefined ? undefined : Number((price * factor).toPrecision(12)),
      ]),
    );
  const { unit, tools, when, ...prices } = row;
  return {
    ...scaled(prices),
    ...(unit && { unit }),
    ...(tools && { tools }),
    ...(when && { when: when.map((rule) => (rule.set ? { ...rule, set: scaled(rule.set) } : rule)) }),
  };
}
