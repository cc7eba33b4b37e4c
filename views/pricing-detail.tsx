// One model's prices: each kind of quantity in the chosen group, what a call of a given size costs and why, the same in
// other groups, and a call to copy. Refuses to need scripts, as the list does.
import type { ReactNode } from "react";
import type { Translate } from "./document.tsx";
import { GroupField, TokenField } from "./pricing-filters.tsx";
import type { PricingFilters } from "./pricing-filters.tsx";
import { Banner, Notices } from "./pricing.tsx";
import type { PricingBanner, PricingGroup, PricingNotice } from "./pricing.tsx";

export interface PriceFact {
  title: string;
  price: string;
}

export interface PricedGroup extends PricingGroup {
  description: string;
  /** Input and output, or the call alone; "" where the group does not serve the model. */
  prices: readonly string[];
}

export interface PricingSum {
  /** `Input 1,000,000 × $2.50 / 1M = $2.50`. */
  lines: readonly string[];
  total: string;
  /** The specification's formula with the numbers of this call. */
  formula: string;
}

export interface PricingDetailProps {
  t: Translate;
  name: string;
  vendor: string;
  isAvailable: boolean;
  status: string;
  banner: PricingBanner;
  notices: readonly PricingNotice[];
  back: string;
  /** Where administrators read who changed the price; "" for others. */
  history: string;
  /** Empty where nobody has set a price. */
  facts: readonly PriceFact[];
  /** Kinds that few calls have: pictures, sound, thinking, hosted tools. */
  rareFacts: readonly PriceFact[];
  /** What the price depends on, a sentence each. */
  rules: readonly string[];
  isPerCall: boolean;
  input: string;
  output: string;
  cached: string;
  sum: PricingSum | undefined;
  choice: Pick<PricingFilters, "group" | "groups" | "areGroupsCut">;
  groupColumns: readonly string[];
  groups: readonly PricedGroup[];
  sample: string;
}

export function PricingDetailView(props: PricingDetailProps) {
  const { t, name, vendor, banner, notices, sample } = props;
  return (
    <div data-part="pricing" tabIndex={-1} className="scroll-mt-20 outline-0">
      <p className="mb-3">
        <a className="text-primary underline" href={props.back} data-get="pricing">
          {t("pricing.back")}
        </a>
      </p>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h1 id="pricing-model" className="min-w-0">
          {name}
        </h1>
        <button type="button" className="btn btn-sm btn-default noscript:hidden" data-copy="#pricing-model">
          {t("common.copy")}
        </button>
        <span className="status-word" data-tone={props.isAvailable ? "success" : "off"}>
          <span className="status" />
          {props.status}
        </span>
        {vendor === "" ? null : <span className="text-muted">{vendor}</span>}
        {props.history === "" ? null : (
          <a className="text-dense text-primary underline" href={props.history}>
            {t("pricing.history")}
          </a>
        )}
      </div>
      <div className="mt-3" data-part="pricing-banner">
        <Banner {...banner} />
      </div>
      <Notices t={t} notices={notices} />
      <div className="mt-5 grid items-start gap-x-10 gap-y-8 lg:grid-cols-2">
        <div className="grid min-w-0 gap-8">
          <Section id="pricing-prices" title={t("pricing.prices")}>
            <div data-part="pricing-facts">
              <Facts {...props} />
            </div>
          </Section>
          <Section id="pricing-by-group" title={t("pricing.byGroup")}>
            <div data-part="pricing-groups">
              <GroupTable {...props} />
            </div>
          </Section>
        </div>
        <div className="grid min-w-0 gap-8">
          <Section id="pricing-calculator" title={t("pricing.calculator")}>
            <Calculator {...props} />
          </Section>
          <Section id="pricing-call" title={t("pricing.sample")}>
            <pre
              id="pricing-sample"
              // Scrolls sideways: has to be reachable by keyboard.
              tabIndex={0}
              className="overflow-x-auto rounded-box border border-base-300 bg-base-200 p-3 text-[13px] leading-5"
            >
              <code>{sample}</code>
            </pre>
            <button
              type="button"
              className="btn btn-sm btn-default mt-2 noscript:hidden"
              data-copy="#pricing-sample"
            >
              {t("public.copySample")}
            </button>
          </Section>
        </div>
      </div>
    </div>
  );
}

function Section({ id, title, children }: { id: string; title: string; children: ReactNode }) {
  return (
    <section aria-labelledby={id} className="min-w-0">
      <h2 id={id} className="mb-2">
        {title}
      </h2>
      {children}
    </section>
  );
}

function Facts({ t, facts, rareFacts, rules }: PricingDetailProps) {
  if (facts.length === 0) return <p className="text-muted">{t("pricing.unpricedText")}</p>;
  return (
    <>
      <FactList facts={facts} />
      {rules.length === 0 ? null : (
        <>
          <h3 className="mt-4 mb-1">{t("rule.title")}</h3>
          <ul className="grid list-disc gap-1 pl-5 text-dense tabular-nums">
            {rules.map((rule) => (
              <li key={rule} className="wrap-anywhere">
                {rule}
              </li>
            ))}
          </ul>
        </>
      )}
      {rareFacts.length === 0 ? null : (
        <details className="mt-2">
          <summary className="py-1 text-muted">{t("pricing.rare")}</summary>
          <FactList facts={rareFacts} />
        </details>
      )}
    </>
  );
}

function FactList({ facts }: { facts: readonly PriceFact[] }) {
  return (
    <dl className="facts facts-dense tabular-nums">
      {facts.map(({ title, price }) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>{price}</dd>
        </div>
      ))}
    </dl>
  );
}

function Calculator(props: PricingDetailProps) {
  const { t, name, sum, choice } = props;
  return (
    <>
      <form
        action="/pricing"
        method="get"
        data-get="pricing-banner pricing-facts pricing-groups pricing-sum"
        className="flex flex-wrap items-center gap-x-4 gap-y-3"
      >
        <input type="hidden" name="model" value={name} />
        {props.isPerCall ? null : (
          <>
            <TokenField name="input" label={t("pricing.inputTokens")} value={props.input} />
            <TokenField name="output" label={t("pricing.outputTokens")} value={props.output} />
            <TokenField name="cached" label={t("pricing.cachedTokens")} value={props.cached} />
          </>
        )}
        <label className="flex min-w-0 basis-full items-center gap-2">
          <span className="text-dense whitespace-nowrap text-muted">{t("pricing.group")}</span>
          <GroupField {...choice} />
        </label>
        <button type="submit" className="btn btn-sm btn-primary">
          {t("pricing.calculate")}
        </button>
      </form>
      <div data-part="pricing-sum" className="mt-3" role="status">
        {sum ? (
          <>
            <ul className="grid gap-1 text-dense tabular-nums">
              {sum.lines.map((line) => (
                <li key={line} className="wrap-anywhere">
                  {line}
                </li>
              ))}
            </ul>
            <p className="mt-2 border-t border-base-300 pt-2 font-semibold tabular-nums">{sum.total}</p>
            {sum.formula === "" ? null : (
              <p className="mt-1 text-xs wrap-anywhere text-muted tabular-nums">{sum.formula}</p>
            )}
          </>
        ) : (
          <p className="text-muted">{t("pricing.unpricedText")}</p>
        )}
      </div>
    </>
  );
}

function GroupTable({ t, groups, groupColumns }: PricingDetailProps) {
  return (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={t("pricing.byGroup")}>
      <table className="table sum-table [&_thead]:whitespace-nowrap">
        <thead>
          <tr>
            <th scope="col">{t("pricing.group")}</th>
            <th scope="col">{t("pricing.groupRatio")}</th>
            {groupColumns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {groups.map(({ href, title, description, ratio, tone, prices, isCurrent }) => (
            <tr key={title}>
              <th scope="row" className="wrap-anywhere">
                <a
                  className={`underline ${isCurrent ? "font-semibold" : ""}`}
                  href={href}
                  data-get="pricing"
                  aria-current={isCurrent ? "true" : undefined}
                >
                  {title}
                </a>
                {description === "" ? null : <span className="block text-xs text-muted">{description}</span>}
              </th>
              <td data-tone={tone} className={tone ? "text-(--tone)" : undefined}>
                {ratio}
              </td>
              {groupColumns.map((column, at) => (
                <td key={column}>{prices[at] ?? t("pricing.notServed")}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
