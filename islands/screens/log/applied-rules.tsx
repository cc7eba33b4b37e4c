// Which rules of its model's price acted on a call, and why, below the sum that they made.
// Refuses what no rule of ours says: rows of other software show none.
import { COST_FIELD } from "../../../src/shared/cost.ts";
import { readPriceRow } from "../../../src/shared/price-row.ts";
import type { PriceCondition } from "../../../src/shared/price-row.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { appliedText, otherTierText } from "../../lib/rule-words.ts";
import type { LogRow } from "../../lib/wire.ts";
import type { LogOther } from "./row.ts";

type Stored = Record<string, unknown>;

const recordOf = (value: unknown): Stored =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Stored) : {};

const textIn = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

function conditionsOf({ rules }: Stored): readonly PriceCondition[] {
  if (!Array.isArray(rules)) return [];
  // Read as the entries that they were, so that nothing but conditions is put into words.
  const when = rules.map((each: unknown) => ({ ...recordOf(each), times: 1 }));
  return readPriceRow({ when }).row?.when ?? [];
}

/** One sentence a rule, in the order in which they acted. */
function appliedTexts(t: Translate, row: LogRow, other: LogOther): string[] {
  const cost = recordOf(other[COST_FIELD]);
  const facts = {
    input: row.prompt_tokens,
    startMs: row.created_at * 1000 - row.use_time_ms,
    servedTier: textIn(cost["tier"]),
    askedTier: textIn(recordOf(cost["asked"])["tier"]),
  };
  const texts = conditionsOf(cost).map((condition) => appliedText(t, condition, facts));
  return [...texts, otherTierText(t, facts)].filter((text) => text !== "");
}

export function AppliedRules({ row, other }: { row: LogRow; other: LogOther }) {
  const t = useT();
  const texts = appliedTexts(t, row, other);
  if (texts.length === 0) return null;
  return (
    <ul className="mt-2 grid gap-1 text-dense">
      {texts.map((text) => (
        <li key={text} className="wrap-anywhere">
          {text}
        </li>
      ))}
    </ul>
  );
}
