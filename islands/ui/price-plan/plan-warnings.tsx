// What of a plan deserves a second look, in words: what forbids it on top, many folded.
import { useState } from "react";
import { useT } from "../../lib/i18n.ts";
import { warningText } from "../../lib/price-words.ts";
import type { PricePlan } from "../../lib/wire.ts";
import { Notice } from "../feedback.tsx";

/** More than these are folded. */
const MOST_WARNINGS = 6;

export function PlanWarnings({ plan }: { plan: PricePlan }) {
  const t = useT();
  const [isWhole, setWhole] = useState(false);
  const sorted = [...plan.warnings].sort((a, b) => Number(b.blocking) - Number(a.blocking));
  const shown = isWhole ? sorted : sorted.slice(0, MOST_WARNINGS);
  const more = sorted.length - shown.length;
  if (sorted.length === 0) return null;
  const isBlocked = sorted.some(({ blocking }) => blocking);
  return (
    <section aria-labelledby="plan-warnings">
      <Notice tone={isBlocked ? "error" : "warning"}>
        <h2 id="plan-warnings" className="text-sm font-semibold">
          {t("plan.warnings", { count: sorted.length })}
        </h2>
        <ul className="mt-1 list-disc pl-5">
          {shown.map((warning) => (
            <li
              key={`${warning.code} ${warning.key} ${warning.name} ${warning.params["when"] ?? warning.params["tool"] ?? ""}`}
              className="wrap-anywhere"
            >
              {warning.blocking ? <b>{t("plan.blocking")} </b> : null}
              {warningText(t, warning)}
            </li>
          ))}
        </ul>
        {more > 0 ? (
          <button type="button" className="link mt-1" onClick={() => setWhole(true)}>
            {t("plan.more", { count: more })}
          </button>
        ) : null}
      </Notice>
    </section>
  );
}
