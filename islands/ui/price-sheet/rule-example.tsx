// What one call would cost under the rules as they are typed, and which of them act on it.
import { useState } from "react";
import { TOKEN_KINDS } from "../../../src/shared/price-row.ts";
import type { PriceCondition, PriceRow, PriceRule, PriceRules } from "../../../src/shared/price-row.ts";
import { pricesUnder, rulesAt } from "../../../src/shared/price-rules.ts";
import { useT } from "../../lib/i18n.ts";
import { conditionText, priceText } from "../../lib/rule-words.ts";
import { numberOf } from "./rule-draft.ts";
import { RuleInput } from "./rule-input.tsx";

export interface RuleExampleProps {
  /** The list price in dollars. */
  base: PriceRow;
  /** Undefined while something is wrong with them. */
  rules: PriceRules | undefined;
  nowMs: number;
}

const TOKENS_PER_MTOK = 1_000_000;

function namesOf(when: readonly PriceRule[], field: "tier" | "size" | "quality"): string[] {
  return [...new Set(when.flatMap((each) => [each[field] ?? []].flat()))];
}

const isTimed = ({ hours, days, from, until }: PriceCondition): boolean =>
  [hours, days, from, until].some((each) => each !== undefined);

export function RuleExample({ base, rules, nowMs }: RuleExampleProps) {
  const t = useT();
  const [input, setInput] = useState("100,000");
  const [output, setOutput] = useState("2,000");
  const [at, setAt] = useState(() => new Date(nowMs).toISOString().slice(0, 16));
  const [asked, setAsked] = useState<Partial<Record<"tier" | "size" | "quality", string>>>({});
  const when = rules?.when ?? [];
  const isByCall = base.call !== undefined;
  const choices = (["tier", "size", "quality"] as const).filter((field) => namesOf(when, field).length > 0);
  return (
    <section className="rounded-box bg-base-200 p-3" aria-label={t("rule.edit.example")}>
      <h3>{t("rule.edit.example")}</h3>
      <div className="mt-1 grid grid-cols-1 gap-x-4 gap-y-2 sm:grid-cols-2">
        {isByCall ? null : (
          <>
            <RuleInput
              label={t("rule.edit.exampleInput")}
              value={input}
              isNumber
              onChange={setInput}
              onLeave={() => undefined}
            />
            <RuleInput
              label={t("rule.edit.exampleOutput")}
              value={output}
              isNumber
              onChange={setOutput}
              onLeave={() => undefined}
            />
          </>
        )}
        {choices.map((field) => (
          <label key={field}>
            <span className="text-xs text-muted">{t(`rule.edit.${field}`)}</span>
            <select
              className="select"
              value={asked[field] ?? ""}
              onChange={(event) => setAsked({ ...asked, [field]: event.target.value })}
            >
              <option value="">{t("rule.edit.exampleUsual")}</option>
              {namesOf(when, field).map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        ))}
        {when.some(isTimed) ? (
          <label>
            <span className="text-xs text-muted">{t("rule.edit.exampleAt")}</span>
            <input
              type="datetime-local"
              className="input"
              value={at}
              onChange={(event) => setAt(event.target.value)}
            />
          </label>
        ) : null}
      </div>
      <p className="mt-2 wrap-anywhere tabular-nums" role="status">
        {sumText()}
      </p>
    </section>
  );

  function sumText(): string {
    const counts = { input: numberOf(input) || 0, output: numberOf(output) || 0 };
    const atMs = Date.parse(`${at}Z`);
    if (!rules) return t("rule.edit.exampleWrong");
    const acting = rulesAt(when, Number.isNaN(atMs) ? nowMs : atMs);
    // Kinds beyond the ratios stand among the rules.
    const row: PriceRow = { ...base };
    for (const kind of TOKEN_KINDS) if (rules[kind] !== undefined) row[kind] = rules[kind];
    const { tokens, call, acted } = pricesUnder(row, acting, { ...asked, input: counts.input });
    const { in: perInput = 0, out: perOutput = perInput } = tokens;
    const dollars = call ?? (counts.input * perInput + counts.output * perOutput) / TOKENS_PER_MTOK;
    const by = acted.map((rule) => conditionText(t, rule)).join(t("rule.and"));
    const why = by === "" ? t("rule.edit.exampleNoRule") : t("rule.edit.exampleRules", { rules: by });
    return `${t("rule.edit.exampleSum", { amount: priceText(dollars) })}${t("rule.comma")}${why}`;
  }
}
