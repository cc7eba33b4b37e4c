// The price list: who pays which group's prices, a form that narrows the list, the models with their prices, its pages.
// Refuses to need scripts: the form and every link lead to addresses; with scripts only the named parts are replaced.
import { Check, Copy } from "lucide-react";
import type { Translate } from "./document.tsx";
import { Filters, LIST_PARTS } from "./pricing-filters.tsx";
import type { PricingFilters } from "./pricing-filters.tsx";

/** Where something leads, and the parts of the page that it replaces. */
export interface PartLink {
  href: string;
  title: string;
  isCurrent?: boolean;
}

export interface PricingBanner {
  tone: "info" | "warning";
  text: string;
  /** How a charge is made of ratios. */
  formula: string;
  action: { href: string; title: string } | undefined;
}

export interface PricingNotice {
  names: string;
  text: string;
  /** "" where it has no end. */
  until: string;
}

export interface PricingGroup extends PartLink {
  /** `0.5×`. */
  ratio: string;
  /** How far above 1 the ratio is. */
  tone: "info" | "warning" | "error" | undefined;
}

export interface PricingRow {
  name: string;
  /** "" for a name that no address holds. */
  href: string;
  vendor: string;
  isAvailable: boolean;
  /** What it is where it is not available. */
  status: string;
  kind: string;
  /** One text for each column of prices; "" where there is none. */
  prices: readonly string[];
  groups: readonly PricingGroup[];
  /** Groups that are left out. */
  moreGroups: number;
  /** What an administrator tells of it. */
  notice: string;
}

export interface PricingResults {
  count: string;
  units: readonly PartLink[];
  columns: readonly string[];
  rows: readonly PricingRow[];
  pages: readonly PartLink[];
  sizes: readonly PartLink[];
  position: string;
}

export interface PricingViewProps {
  t: Translate;
  title: string;
  banner: PricingBanner;
  notices: readonly PricingNotice[];
  /** The model of that name is not for sale here. */
  missing: string;
  filters: PricingFilters;
  results: PricingResults;
}

export function PricingView(props: PricingViewProps) {
  const { t, title, banner, notices, missing, filters, results } = props;
  return (
    <div data-part="pricing" tabIndex={-1} className="scroll-mt-20 outline-0">
      <h1>{title}</h1>
      <div data-part="pricing-banner" className="mt-3">
        <Banner {...banner} />
      </div>
      <Notices t={t} notices={notices} />
      {missing === "" ? null : (
        <p className="alert alert-soft" data-tone="warning" role="status">
          {t("pricing.missing", { name: missing })}
        </p>
      )}
      <div data-part="pricing-filters">
        <Filters t={t} filters={filters} />
      </div>
      <section
        data-part="pricing-results"
        tabIndex={-1}
        aria-label={t("pricing.results")}
        className="scroll-mt-20"
      >
        <Results t={t} results={results} />
      </section>
    </div>
  );
}

export function Banner({ tone, text, formula, action }: PricingBanner) {
  return (
    <div className="alert alert-soft" data-tone={tone}>
      <div className="min-w-0 grow">
        <p className="wrap-anywhere">{text}</p>
        <p className="mt-1 text-dense text-muted">{formula}</p>
      </div>
      {action ? (
        <a className="btn btn-sm btn-default" href={action.href}>
          {action.title}
        </a>
      ) : null}
    </div>
  );
}

export function Notices({ t, notices }: { t: Translate; notices: readonly PricingNotice[] }) {
  if (notices.length === 0) return null;
  return (
    <aside className="alert alert-soft" data-tone="warning" aria-label={t("pricing.notices")}>
      <ul className="min-w-0">
        {notices.map(({ names, text, until }) => (
          <li key={`${names} ${text}`} className="wrap-anywhere">
            <span className="mono">{names}</span>: {text}
            {until === "" ? null : <span className="text-muted"> {until}</span>}
          </li>
        ))}
      </ul>
    </aside>
  );
}

function Results({ t, results }: { t: Translate; results: PricingResults }) {
  const { rows, columns } = results;
  return (
    <>
      <div className="mb-2 flex flex-wrap items-center gap-x-4 gap-y-2">
        <p role="status" className="text-muted">
          {results.count}
        </p>
        <span className="grow" />
        {rows.length === 0 ? null : (
          <button
            type="button"
            className="btn btn-sm btn-default noscript:hidden"
            data-copy-checked="model"
            disabled
          >
            <Copy aria-hidden size={14} />
            <span>
              {t("pricing.copySelected")} (<span data-checked-count="">0</span>)
            </span>
          </button>
        )}
        <nav className="join" aria-label={t("pricing.unit")}>
          {results.units.map(({ href, title, isCurrent }) => (
            <a
              key={href}
              id={`unit-${title}`}
              className="btn btn-sm btn-default join-item"
              href={href}
              data-get={LIST_PARTS}
              aria-current={isCurrent ? "true" : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
      </div>
      <p className="mb-2 text-dense wrap-anywhere" data-copied-text="" hidden />
      {rows.length === 0 ? (
        <p className="rounded-box border border-base-300 px-4 py-10 text-center text-muted">
          {t("pricing.nothing")}
        </p>
      ) : (
        <div className="price-box" tabIndex={0} role="region" aria-label={t("pricing.table")}>
          <table className="price-table">
            <caption className="sr-only">{t("pricing.table")}</caption>
            <thead>
              <tr>
                <td className="w-9 noscript:hidden">
                  <input
                    type="checkbox"
                    className="checkbox"
                    data-check-all="model"
                    aria-label={t("pricing.selectAll")}
                  />
                </td>
                <th scope="col">{t("pricing.model")}</th>
                <th scope="col">{t("pricing.availability")}</th>
                <th scope="col">{t("pricing.kind")}</th>
                {columns.map((column) => (
                  <th key={column} scope="col" className="text-right">
                    {column}
                  </th>
                ))}
                <th scope="col">{t("pricing.groups")}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <Row key={row.name} t={t} row={row} columns={columns} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Pages t={t} results={results} />
    </>
  );
}

function Row({ t, row, columns }: { t: Translate; row: PricingRow; columns: readonly string[] }) {
  const { name, href } = row;
  return (
    <tr data-index="">
      <td className="price-check noscript:hidden">
        <input
          type="checkbox"
          className="checkbox"
          name="model"
          value={name}
          aria-label={t("pricing.select", { name })}
        />
      </td>
      <th scope="row">
        <span className="flex items-center gap-1">
          {href === "" ? (
            <span className="line-clamp-2 wrap-anywhere">{name}</span>
          ) : (
            <a
              className="line-clamp-2 font-semibold wrap-anywhere hover:underline"
              href={href}
              data-get="pricing"
              title={name}
            >
              {name}
            </a>
          )}
          <button
            type="button"
            className="btn btn-ghost btn-square btn-xs flex-none noscript:hidden"
            data-copy={name}
            aria-label={t("pricing.copyModel", { name })}
            title={t("common.copy")}
          >
            <Copy aria-hidden size={13} />
          </button>
        </span>
        {row.vendor === "" ? null : <span className="block truncate text-xs text-muted">{row.vendor}</span>}
        {row.notice === "" ? null : (
          <span className="block text-xs wrap-anywhere text-warning-text">{row.notice}</span>
        )}
      </th>
      <td className="price-status">
        <span className="status-word" data-tone={row.isAvailable ? "success" : "off"}>
          {row.isAvailable ? (
            <Check aria-hidden size={14} className="self-center" />
          ) : (
            <span className="status" />
          )}
          {row.status}
        </span>
      </td>
      <td className="price-kind">{row.kind}</td>
      {row.prices.map((price, at) => (
        <td key={columns[at]} className="price-number" data-label={columns[at]}>
          {price === "" ? <span className="text-muted max-sm:hidden">–</span> : price}
        </td>
      ))}
      <td className="price-groups">
        <Groups t={t} groups={row.groups} more={row.moreGroups} />
      </td>
    </tr>
  );
}

function Groups({ t, groups, more }: { t: Translate; groups: readonly PricingGroup[]; more: number }) {
  return (
    <span className="flex flex-wrap gap-1">
      {groups.map(({ href, title, ratio, tone, isCurrent }) => (
        <a
          key={title}
          href={href}
          data-get={LIST_PARTS}
          aria-current={isCurrent ? "true" : undefined}
          className={`badge badge-ghost badge-sm gap-1 ${isCurrent ? "font-semibold" : "hover:bg-base-300"}`}
        >
          <span className="truncate">{title}</span>
          <span data-tone={tone} className={tone ? "text-(--tone)" : "text-muted"}>
            {ratio}
          </span>
        </a>
      ))}
      {more > 0 ? (
        <span className="text-xs text-muted">{t("pricing.moreGroups", { count: more })}</span>
      ) : null}
    </span>
  );
}

function Pages({ t, results }: { t: Translate; results: PricingResults }) {
  if (results.rows.length === 0) return null;
  return (
    <div className="mt-3 flex flex-wrap items-center gap-x-4 gap-y-2">
      <p className="text-dense text-muted">{results.position}</p>
      <nav className="flex items-center gap-1 text-dense" aria-label={t("pricing.pageSize")}>
        <span className="text-muted">{t("pricing.pageSize")}</span>
        {results.sizes.map(({ href, title, isCurrent }) => (
          <a
            key={title}
            id={`size-${title}`}
            className="btn btn-xs btn-ghost aria-[current]:font-semibold aria-[current]:text-base-content"
            href={href}
            data-get="pricing-filters pricing-results"
            aria-current={isCurrent ? "true" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <nav className="join ml-auto" aria-label={t("pricing.pages")}>
        {results.pages.map(({ href, title, isCurrent }) => (
          <a
            key={`${title} ${href}`}
            className="btn btn-sm btn-default join-item"
            href={href}
            data-get="pricing-results"
            aria-current={isCurrent ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
    </div>
  );
}
