// The form that narrows the price list, and its fields: search, maker, kind, group, tokens to reckon with.
// Refuses to need scripts: it is a plain form, and what unfolds it on phones is a box.
import type { ReactNode } from "react";
import type { Translate } from "./document.tsx";

/** The parts of the page that a change of the filters replaces. */
export const LIST_PARTS = "pricing-filters pricing-banner pricing-results";

export interface PricingFilters {
  keyword: string;
  vendor: string;
  vendors: readonly { id: string; title: string }[];
  kind: "" | "0" | "1";
  group: string;
  groups: readonly { id: string; title: string }[];
  /** There are more groups than these: one is typed. */
  areGroupsCut: boolean;
  onlyAvailable: boolean;
  input: string;
  output: string;
  /** More than the name is asked for. */
  isNarrowed: boolean;
  /** Further fields of the address that the form keeps. */
  kept: readonly (readonly [name: string, value: string])[];
  resetHref: string;
}

/** On phones the rows come first: what narrows them beside the search stays folded until it is asked for. */
const FOLDED = "max-sm:hidden group-has-[#more-filters:checked]:block";

export function Filters({ t, filters }: { t: Translate; filters: PricingFilters }) {
  return (
    <form
      action="/pricing"
      method="get"
      role="search"
      data-get="pricing-banner pricing-results"
      className="group mb-4 grid gap-3"
    >
      {filters.kept.map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      <div className="grid grid-cols-2 items-end gap-3 lg:grid-cols-[minmax(200px,1.6fr)_1fr_1fr_1.2fr]">
        <div className="max-lg:col-span-2">
          <Field label={t("pricing.search")}>
            <input
              className="input"
              type="search"
              name="keyword"
              maxLength={200}
              autoComplete="off"
              placeholder={t("pricing.searchHint")}
              defaultValue={filters.keyword}
            />
          </Field>
        </div>
        <div className={FOLDED}>
          <Field label={t("pricing.vendor")}>
            <select className="select" name="vendor" defaultValue={filters.vendor}>
              <option value="">{t("pricing.all")}</option>
              {filters.vendors.map(({ id, title }) => (
                <option key={id} value={id}>
                  {title}
                </option>
              ))}
            </select>
          </Field>
        </div>
        <div className={FOLDED}>
          <Field label={t("pricing.kind")}>
            <select className="select" name="quota_type" defaultValue={filters.kind}>
              <option value="">{t("pricing.all")}</option>
              <option value="0">{t("pricing.kind.tokens")}</option>
              <option value="1">{t("pricing.kind.call")}</option>
            </select>
          </Field>
        </div>
        <div className={`max-lg:col-span-2 ${FOLDED}`}>
          <Field label={t("pricing.group")}>
            <GroupField {...filters} />
          </Field>
        </div>
      </div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-3">
        <label className="flex min-h-8 items-center gap-2 max-sm:hidden max-sm:basis-full group-has-[#more-filters:checked]:flex">
          <input
            type="checkbox"
            className="checkbox"
            name="available"
            value="1"
            defaultChecked={filters.onlyAvailable}
          />
          {t("pricing.onlyAvailable")}
        </label>
        <fieldset className={`min-w-0 ${FOLDED}`}>
          <legend className="sr-only">{t("pricing.calculator")}</legend>
          <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
            <TokenField name="input" label={t("pricing.inputTokens")} value={filters.input} />
            <TokenField name="output" label={t("pricing.outputTokens")} value={filters.output} />
          </div>
        </fieldset>
        {/* What unfolds the rest on phones is a box that is no field: it needs no script, and is no part of the address. */}
        <label className="btn btn-sm btn-default has-[:checked]:border-primary has-[:focus-visible]:outline-2 sm:hidden">
          <input
            type="checkbox"
            id="more-filters"
            className="sr-only"
            autoComplete="off"
            defaultChecked={filters.isNarrowed}
          />
          {t("pricing.more")}
        </label>
        <span className="ml-auto flex gap-2">
          <a className="btn btn-sm btn-ghost" href={filters.resetHref} data-get={LIST_PARTS}>
            {t("pricing.reset")}
          </a>
          <button type="submit" className="btn btn-sm btn-primary">
            {t("pricing.apply")}
          </button>
        </span>
      </div>
    </form>
  );
}

function Field({ label, children }: { label: string; children: ReactNode }) {
  return (
    <label className="grid min-w-0 gap-1">
      <span className="text-dense text-muted">{label}</span>
      {children}
    </label>
  );
}

/** A list to choose from; where it would be too long, a field that suggests the first ones. */
export function GroupField({
  group,
  groups,
  areGroupsCut,
}: Pick<PricingFilters, "group" | "groups" | "areGroupsCut">) {
  if (!areGroupsCut) {
    return (
      <select className="select" name="group" defaultValue={group}>
        {groups.map(({ id, title }) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
      </select>
    );
  }
  return (
    <>
      <input className="input" name="group" list="pricing-groups" maxLength={200} defaultValue={group} />
      <datalist id="pricing-groups">
        {groups.map(({ id, title }) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
      </datalist>
    </>
  );
}

/** A number of tokens, as people write it. */
export function TokenField({ name, label, value }: { name: string; label: string; value: string }) {
  return (
    <label className="flex min-w-0 items-center gap-2">
      <span className="text-dense text-muted">{label}</span>
      <input
        className="input input-sm w-26! tabular-nums"
        name={name}
        maxLength={20}
        autoComplete="off"
        placeholder={name === "cached" ? "0" : "200k"}
        defaultValue={value}
      />
    </label>
  );
}
