// The right side of a plan: what the last days would have cost at the planned prices, who rises most, and how sure that is.
// Refuses to hold up the difference: it comes after it, and can be given up.
import { useState } from "react";
import { formatNumber, formatQuota, quotaText } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { PriceEffect } from "../../lib/wire.ts";
import { FailureNotice, Notice } from "../../ui/feedback.tsx";
import { percentOf } from "../../../src/shared/price-steps.ts";
import { percentText } from "../../ui/price-plan/from-to.tsx";
import { Segments } from "../../ui/segments.tsx";
import { PLAN_DAYS } from "./use-plan.ts";
import type { PlanAtHand, PlanDays } from "./use-plan.ts";

const TABS = ["model", "group", "user"] as const;
type Tab = (typeof TABS)[number];

const MOST_ROWS = 10;

export interface PlanEffectProps {
  effect: PlanAtHand["effect"];
  days: PlanDays;
  onDays: (days: PlanDays) => void;
  by: string | undefined;
  onBy: (by: Tab) => void;
  onCancel: () => void;
  onAgain: () => void;
}

export function PlanEffect({ effect, days, onDays, by, onBy, onCancel, onAgain }: PlanEffectProps) {
  const t = useT();
  return (
    <section className="min-w-0" aria-labelledby="plan-effect">
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <h2 id="plan-effect" className="mr-auto">
          {t("plan.effect")}
        </h2>
        <Segments
          label={t("plan.days")}
          of={PLAN_DAYS}
          chosen={days}
          textOf={(count) => t("plan.day", { count })}
          onChoose={onDays}
        />
      </div>
      {effect.is === "loading" ? (
        <div className="flex items-center gap-3 rounded-box border border-base-300 p-4" role="status">
          <span className="loading loading-xs" aria-hidden />
          <span className="grow text-muted">{t("plan.effectLoading", { count: days })}</span>
          <button type="button" className="btn btn-sm btn-default" onClick={onCancel}>
            {t("common.cancel")}
          </button>
        </div>
      ) : null}
      {effect.is === "cancelled" ? (
        <div className="flex items-center gap-3 rounded-box border border-base-300 p-4">
          <span className="grow text-muted">{t("plan.effectCancelled")}</span>
          <button type="button" className="btn btn-sm btn-default" onClick={onAgain}>
            {t("plan.effectAgain")}
          </button>
        </div>
      ) : null}
      {effect.is === "failed" ? <FailureNotice text={effect.text} onRetry={async () => onAgain()} /> : null}
      {effect.is === "there" ? (
        <Found
          effect={effect.effect}
          days={days}
          tab={TABS.find((each) => each === by) ?? "model"}
          onTab={onBy}
        />
      ) : null}
    </section>
  );
}

function signed(units: number): string {
  return `${units < 0 ? "−" : "+"}${formatQuota(Math.abs(units))}`;
}

interface FoundProps {
  effect: PriceEffect;
  days: PlanDays;
  tab: Tab;
  onTab: (tab: Tab) => void;
}

function Found({ effect, days, tab, onTab }: FoundProps) {
  const t = useT();
  const percent = percentOf(effect.old, effect.new);
  const most = effect.by_user.find((each) => each.new > each.old);
  return (
    <div role="status">
      {effect.calls === 0 ? (
        <p className="rounded-box border border-base-300 p-4 text-muted">
          {t("plan.noCalls", { count: days })}
        </p>
      ) : (
        <>
          <p className="text-base">
            {t(effect.old === effect.new ? "plan.sumSame" : "plan.sum", {
              count: days,
              old: formatQuota(effect.old),
              new: formatQuota(effect.new),
            })}{" "}
            {percent === undefined || effect.old === effect.new ? null : (
              <span className="whitespace-nowrap text-muted">({percentText(percent)})</span>
            )}
          </p>
          {most ? (
            <p className="mt-1">
              {t("plan.most", {
                name: most.username || `#${most.user_id}`,
                amount: signed(most.new - most.old),
              })}
            </p>
          ) : null}
        </>
      )}
      <Caveats effect={effect} />
      {effect.calls === 0 ? null : <Shares effect={effect} tab={tab} onTab={onTab} />}
    </div>
  );
}

/** How far the sums can be trusted, and what they do not hold. */
function Caveats({ effect }: { effect: PriceEffect }) {
  const t = useT();
  const { approximate } = effect;
  const lost = effect.lost_calls;
  const texts = [
    effect.every_hours > 1 ? t("plan.sampled", { count: effect.every_hours }) : "",
    approximate.calls > 0
      ? t("plan.approximate", { count: approximate.calls, amount: formatQuota(approximate.charged) })
      : "",
    effect.uncertain > 0 ? t("plan.uncertain", { count: effect.uncertain }) : "",
    effect.charged === effect.old ? "" : t("plan.charged", { amount: formatQuota(effect.charged) }),
    effect.refused_calls > 0 ? t("plan.refused", { count: effect.refused_calls }) : "",
    effect.calls > 0 ? t("plan.assumed") : "",
  ].filter((text) => text !== "");
  return (
    <>
      {lost > 0 ? (
        <div className="mt-3">
          <Notice tone="warning">{t("plan.lost", { count: lost, calls: formatNumber(lost) })}</Notice>
        </div>
      ) : null}
      {texts.length === 0 ? null : (
        <ul className="mt-2 list-disc pl-5 text-dense text-muted">
          {texts.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
    </>
  );
}

interface Share {
  id: string;
  name: string;
  calls: number;
  old: number;
  new: number;
}

function sharesOf({ by_model: models, by_group: groups, by_user: users }: PriceEffect, tab: Tab): Share[] {
  if (tab === "model") return models.map((each) => ({ ...each, id: each.model, name: each.model }));
  if (tab === "group") return groups.map((each) => ({ ...each, id: each.group, name: each.group }));
  return users.map((each) => ({
    ...each,
    id: String(each.user_id),
    name: each.username || `#${each.user_id}`,
  }));
}

function Shares({ effect, tab, onTab }: Omit<FoundProps, "days">) {
  const t = useT();
  const [isWhole, setWhole] = useState(false);
  const shares = sharesOf(effect, tab);
  const shown = isWhole ? shares : shares.slice(0, MOST_ROWS);
  return (
    <div className="mt-4">
      <div className="mb-2">
        <Segments
          label={t("plan.by")}
          of={TABS}
          chosen={tab}
          textOf={(each) => t(`plan.tab.${each}`)}
          onChoose={onTab}
        />
      </div>
      <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={t(`plan.tab.${tab}`)}>
        <table className="table sum-table [&_thead]:whitespace-nowrap">
          <thead>
            <tr>
              <th scope="col">{t(`plan.tab.${tab}`)}</th>
              <th scope="col" className="max-sm:hidden">
                {t("plan.column.calls")}
              </th>
              <th scope="col">{t("plan.column.old")}</th>
              <th scope="col">{t("plan.column.new")}</th>
              <th scope="col">{t("plan.column.change")}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((share) => (
              <tr key={share.id}>
                <th scope="row" className="font-normal wrap-anywhere">
                  {share.name === "" ? t("plan.none") : share.name}
                </th>
                <td className="max-sm:hidden">{formatNumber(share.calls)}</td>
                <td title={quotaText(share.old).exact}>{formatQuota(share.old)}</td>
                <td title={quotaText(share.new).exact}>{formatQuota(share.new)}</td>
                <td className="whitespace-nowrap">
                  {share.new === share.old ? "0" : signed(share.new - share.old)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shares.length > shown.length ? (
        <button type="button" className="link mt-1 text-dense" onClick={() => setWhole(true)}>
          {t("plan.more", { count: shares.length - shown.length })}
        </button>
      ) : null}
    </div>
  );
}
