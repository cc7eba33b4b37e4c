// The price list's row of the page table: what the loader found, as the texts and addresses that the views lay out.
// Refuses arithmetic of its own: unit prices and sums come from the functions that charge.
import { formatDateTime, formatNumber, siteDisplay } from "../../islands/lib/format.ts";
import { groupText } from "../../islands/lib/group-text.ts";
import { namesText } from "../../islands/lib/model-names.ts";
import {
  appliedText,
  callPriceText,
  ruleTexts,
  sitePriceText as priceText,
  toolName,
} from "../../islands/lib/rule-words.ts";
import { costDisplay, costRows } from "../../islands/screens/log/cost-rows.ts";
import type { Translate } from "../../views/document.tsx";
import { PricingDetailView } from "../../views/pricing-detail.tsx";
import type { PricedGroup, PriceFact, PricingSum } from "../../views/pricing-detail.tsx";
import type { PricingFilters } from "../../views/pricing-filters.tsx";
import { PricingView } from "../../views/pricing.tsx";
import type {
  PartLink,
  PricingBanner,
  PricingGroup,
  PricingNotice,
  PricingResults,
  PricingRow,
} from "../../views/pricing.tsx";
import { kindOf } from "../core/channels/catalogue.ts";
import { MOST_MODEL_NAME, MOST_VENDOR, pricingAddress } from "../http/queries/pricing.ts";
import type { PricingQuery } from "../http/queries/pricing.ts";
import { dollarsPerMTok, explainCost, priceLines } from "../shared/cost.ts";
import type { CostCounts, PriceLine, PriceRatios } from "../shared/cost.ts";
import { Role } from "../shared/enums.ts";
import type { PriceRow } from "../shared/price-row.ts";
import { shortText } from "../shared/short-text.ts";
import { announcedNotices, announcedPricesOf } from "./announced-prices.ts";
import type { AnnouncedTexts } from "./announced-prices.ts";
import { loadPricing } from "./load-pricing.ts";
import type { PricedModel, PricingData } from "./load-pricing.ts";
import type { Page, RenderContext } from "./page.ts";
import { divisorText, formulaText, ratioTone } from "./pricing-words.ts";
import { homeSamples } from "./public-pages.tsx";

/** What an example of a price is reckoned with where the visitor names nothing. */
const EXAMPLE = { input: 1_000_000, output: 200_000, cached: 0 };
const MOST_GROUPS_OF_ROW = 4;
const MOST_VENDORS = 60;
const PAGE_SIZES = [10, 20, 50, 100];
/** A name of a model, a group or a vendor where it is one of many. */
const SHORT = 40;

const ratios = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });

const ratioText = (ratio: number): string => `${ratios.format(ratio)}×`;

interface Shown {
  t: Translate;
  data: PricingData;
  context: RenderContext;
}

/** Where a change of the query leads: back to the first page, unless the change is about pages. */
function to(query: PricingQuery, changes: Partial<PricingQuery>): string {
  return pricingAddress({ ...query, page: undefined, ...changes });
}

function bannerOf({ t, data }: Shown): PricingBanner {
  const { group, groupRatio, quotaPerUnit, isGuest, query } = data;
  const named = { group: shortText(group, SHORT), ratio: ratios.format(groupRatio) };
  return {
    tone: isGuest ? "warning" : "info",
    text: t(isGuest ? "pricing.banner.guest" : "pricing.banner.user", named),
    formula: formulaText(t, quotaPerUnit),
    action: isGuest
      ? { href: `/login?next=${encodeURIComponent(pricingAddress(query))}`, title: t("shell.signIn") }
      : undefined,
  };
}

function noticesOf({ t, data, context }: Shown, model?: string): PricingNotice[] {
  return data.notices
    .filter(({ models }) => model === undefined || models.includes(model))
    .map(({ models, text, until }) => ({
      names: namesText(
        t,
        (model === undefined ? models : [model]).map((name) => shortText(name, SHORT)),
      ),
      text: shortText(text, 500),
      until:
        until === 0
          ? ""
          : t("notice.until", { time: formatDateTime(until * 1000, context.timeZone).slice(0, 16) }),
    }));
}

const announcedTexts = ({ t, context }: Shown): AnnouncedTexts => ({
  t,
  timeZone: context.timeZone,
  priceText,
  perText: (per, price) => t(PER_TEXT[per], { price }),
});

function statusOf(t: Translate, { model, isAvailable }: PricedModel): string {
  if (isAvailable) return t(model.pricing ? "pricing.available" : "pricing.availableUnpriced");
  return t(model.pricing ? "pricing.otherGroup" : "pricing.unpriced");
}

function kindText(t: Translate, { model }: PricedModel): string {
  const kind = kindOf(model);
  return kind === undefined ? t("pricing.kind.none") : t(`pricing.kind.${kind}`);
}

function groupChoices({ t, data }: Shown): PricingFilters["groups"] {
  return Object.entries(data.groups).map(([name, { ratio, desc }]) => {
    const text = groupText(t, desc);
    const label = shortText(text === "" || text === name ? name : `${name} · ${text}`, SHORT * 2);
    return { id: name, title: `${label} (${ratioText(ratio)})` };
  });
}

function filtersOf(shown: Shown): PricingFilters {
  const { data } = shown;
  const { query } = data;
  const vendors = data.vendors.filter(([id]) => id !== "" && id.length <= MOST_VENDOR);
  const listed = vendors.slice(0, MOST_VENDORS);
  // The chosen one stays to be seen where nothing is left of it.
  if (query.vendor !== "" && !listed.some(([id]) => id === query.vendor)) listed.unshift([query.vendor, 0]);
  return {
    keyword: query.keyword,
    vendor: query.vendor,
    vendors: listed.map(([id, count]) => ({
      id,
      title: `${shortText(data.vendorTitle(id), SHORT)} (${formatNumber(count)})`,
    })),
    kind: query.kind === undefined ? "" : query.kind === "call" ? "1" : "0",
    group: data.group,
    groups: groupChoices(shown),
    areGroupsCut: data.areGroupsCut,
    onlyAvailable: query.onlyAvailable,
    input: query.input === undefined ? "" : formatNumber(query.input),
    output: query.output === undefined ? "" : formatNumber(query.output),
    isNarrowed:
      [query.vendor, query.group].some((each) => each !== "") ||
      query.kind !== undefined ||
      query.onlyAvailable ||
      asksForSum(query),
    kept: [
      ...(query.unit === "ratio" ? [["unit", "ratio"] as const] : []),
      ...(query.pageSize === undefined ? [] : [["page_size", query.pageSize] as const]),
    ],
    resetHref: "/pricing",
  };
}

/** Whether the visitor asked what a call of a certain size would cost. */
const asksForSum = ({ input, output }: PricingQuery): boolean => input !== undefined || output !== undefined;

function columnsOf({ t, data }: Shown): string[] {
  const names =
    data.query.unit === "ratio" ? ["ratioInput", "ratioOutput", "ratioCache"] : ["input", "output", "cache"];
  return [
    ...(asksForSum(data.query) ? [t("pricing.column.sum")] : []),
    ...names.map((name) => t(`pricing.column.${name}`)),
    t("pricing.column.call"),
  ];
}

function countsOf({ query }: PricingData, isExample = false): Partial<CostCounts> {
  const input = query.input ?? (isExample && !asksForSum(query) ? EXAMPLE.input : 0);
  const output = query.output ?? (isExample && !asksForSum(query) ? EXAMPLE.output : 0);
  const cacheRead = Math.min(query.cached ?? EXAMPLE.cached, input);
  return { fresh: input - cacheRead, cacheRead, output };
}

/** What a call of such a size costs now, which may be another price than the list's. */
function sumOf(data: PricingData, { settled }: PricedModel, counts: Partial<CostCounts>) {
  const { groupRatio, quotaPerUnit } = data;
  const { fresh = 0, cacheRead = 0 } = counts;
  const { ratios: prices, applied } = settled(fresh + cacheRead) ?? { ratios: undefined, applied: [] };
  return { prices, applied, sum: explainCost({ ...prices, ...counts, groupRatio, quotaPerUnit }) };
}

/** Prices of one kind each, in the chosen group. */
function unitPrices(data: PricingData, prices: PriceRatios): Map<PriceLine["kind"], PriceLine> {
  const lines = priceLines(prices, data.groupRatio, data.quotaPerUnit);
  return new Map(lines.map((line) => [line.kind, line]));
}

function pricesOf(data: PricingData, row: PricedModel): string[] {
  const { ratios: prices } = row;
  const isSummed = asksForSum(data.query);
  if (!prices) return Array.from({ length: isSummed ? 5 : 4 }, () => "");
  const units = unitPrices(data, prices);
  const price = (kind: PriceLine["kind"]) => {
    const line = units.get(kind);
    return line ? priceText(line.unitPrice) : "";
  };
  const { callPrice, modelRatio, completionRatio, cacheRatio } = prices;
  const byRatio =
    callPrice === undefined ? [modelRatio, completionRatio, cacheRatio].map(ratioText) : ["", "", ""];
  return [
    ...(isSummed ? [priceText(sumOf(data, row, countsOf(data)).sum.quota / data.quotaPerUnit)] : []),
    ...(data.query.unit === "ratio" ? byRatio : [price("fresh"), price("output"), price("cache_read")]),
    price("per_call"),
  ];
}

function groupsOf(
  { data }: Shown,
  { groups }: PricedModel["model"],
): { shown: PricingGroup[]; more: number } {
  const { buyer, group, query } = data;
  const usable = groups.filter((name) => Object.hasOwn(buyer.groups, name));
  // The chosen one first: it is the one whose prices are shown.
  usable.sort((a, b) => Number(b === group) - Number(a === group));
  const shown = usable.slice(0, MOST_GROUPS_OF_ROW).map((name): PricingGroup => {
    const ratio = buyer.groups[name]?.ratio ?? 1;
    return {
      href: to(query, { group: name, model: "" }),
      title: shortText(name, SHORT),
      ratio: ratioText(ratio),
      tone: ratioTone(ratio),
      isCurrent: name === group,
    };
  });
  return { shown, more: usable.length - shown.length };
}

function rowOf(shown: Shown, row: PricedModel, notices: ReadonlyMap<string, string>): PricingRow {
  const { t, data } = shown;
  const { name, vendor } = row.model;
  const groups = groupsOf(shown, row.model);
  return {
    name,
    href: name.length > MOST_MODEL_NAME ? "" : pricingAddress({ ...data.query, model: name }),
    vendor: shortText(data.vendorTitle(vendor), SHORT),
    isAvailable: row.isAvailable,
    status: statusOf(t, row),
    kind: kindText(t, row),
    prices: pricesOf(data, row),
    groups: groups.shown,
    moreGroups: groups.more,
    notice: notices.get(name) ?? "",
  };
}

/** Links to the pages around the shown one, and to the ends. */
function pageLinks({ t, data }: Shown, last: number): PartLink[] {
  const { page, query } = data;
  const at = (number: number, title: string): PartLink => ({
    href: to(query, { page: String(number), model: "" }),
    title,
    isCurrent: false,
  });
  const numbers = [1, page - 1, page, page + 1, last].filter((each) => each >= 1 && each <= last);
  return [
    ...(page > 1 ? [at(page - 1, t("pricing.previous"))] : []),
    ...[...new Set(numbers)].map((number) => ({
      ...at(number, formatNumber(number)),
      isCurrent: number === page,
    })),
    ...(page < last ? [at(page + 1, t("pricing.next"))] : []),
  ];
}

function resultsOf(shown: Shown): PricingResults {
  const { t, data } = shown;
  const { query, rows, total, page, pageSize } = data;
  const notices = new Map(
    data.notices.flatMap(({ models, text }) => models.map((name) => [name, shortText(text, 120)] as const)),
  );
  const last = Math.max(1, Math.ceil(total / pageSize));
  const from = (page - 1) * pageSize + 1;
  return {
    count: t("pricing.count", { count: total, number: formatNumber(total) }),
    units: (["price", "ratio"] as const).map((unit) => ({
      href: to(query, { unit, model: "" }),
      title: t(`pricing.unit.${unit}`),
      isCurrent: query.unit === unit,
    })),
    columns: columnsOf(shown),
    rows: rows.map((row) => rowOf(shown, row, notices)),
    pages: last > 1 ? pageLinks(shown, last) : [],
    sizes: PAGE_SIZES.map((size) => ({
      href: to(query, { pageSize: String(size), model: "" }),
      title: String(size),
      isCurrent: size === pageSize,
    })),
    position: t("pricing.position", {
      from: formatNumber(from),
      to: formatNumber(from + rows.length - 1),
      total: formatNumber(total),
    }),
  };
}

const PER_TEXT: Record<PriceLine["per"], string> = {
  mtok: "log.cost.perMillion",
  call: "log.cost.perCall",
  kcall: "log.cost.perThousand",
};
/** What nearly every call has; the rest is folded. */
const USUAL: ReadonlySet<PriceLine["kind"]> = new Set([
  "fresh",
  "output",
  "cache_read",
  "cache_write_5m",
  "cache_write_1h",
  "per_call",
]);

function factsOf(
  { t, data }: Shown,
  { ratios: prices, model }: PricedModel,
  { tools, unit }: { tools: Record<string, number>; unit: PriceRow["unit"] },
) {
  if (!prices) return { facts: [], rareFacts: [] };
  const { groupRatio } = data;
  const fact = (title: string, price: string): PriceFact => ({ title, price });
  const facts: PriceFact[] = [];
  const rareFacts: PriceFact[] = [];
  if (!model.pricing) facts.push(fact(t("pricing.standIn"), ""));
  for (const { kind, per, unitPrice } of unitPrices(data, prices).values()) {
    const price =
      per === "call"
        ? callPriceText(t, unitPrice, unit, priceText)
        : t(PER_TEXT[per], { price: priceText(unitPrice) });
    const text = fact(t(`log.line.${kind}`), price);
    (USUAL.has(kind) ? facts : rareFacts).push(text);
  }
  for (const [kind, price] of Object.entries(tools)) {
    const text = t("log.cost.perThousand", { price: priceText(price * groupRatio) });
    rareFacts.push(fact(toolName(t, kind), text));
  }
  return { facts, rareFacts };
}

/** The charge of the calculator's call, line by line as a log row explains it, and as one formula. */
function explainedSum({ t, data }: Shown, model: PricedModel, listed: PriceRatios): PricingSum {
  const { groupRatio, quotaPerUnit } = data;
  const counts = listed.callPrice === undefined ? countsOf(data, true) : {};
  const { sum, prices = listed, applied } = sumOf(data, model, counts);
  const rows = costRows(sum, sum.quota, costDisplay(siteDisplay()));
  const lines = rows.slice(0, -1).map(({ kind, line, text }) => {
    if (!line) {
      const title =
        kind === "group" ? `${t("log.cost.groupRatio")} ${ratioText(groupRatio)}` : t(STEP_TEXT[kind] ?? "");
      return t("pricing.sum.step", { title, amount: text });
    }
    return t("pricing.sum.line", {
      title: t(`log.line.${line.kind}`),
      count: formatNumber(line.count),
      price: t(PER_TEXT[line.per], { price: priceText(line.unitPrice) }),
      amount: text,
    });
  });
  const { fresh = 0, cacheRead = 0, output = 0 } = counts;
  for (const each of applied)
    lines.push(appliedText(t, each, { input: fresh + cacheRead, startMs: data.nowMs }));
  const total = t("pricing.sum.total", { amount: rows.at(-1)?.text ?? "" });
  if (prices.callPrice !== undefined) {
    const formula = t("pricing.formulaCall", {
      price: priceText(prices.callPrice),
      group: ratios.format(groupRatio),
      amount: priceText(sum.exact / quotaPerUnit),
    });
    return { lines, total, formula };
  }
  const formula = t(cacheRead > 0 ? "pricing.formulaCached" : "pricing.formulaFilled", {
    group: ratios.format(groupRatio),
    model: ratios.format(prices.modelRatio),
    input: formatNumber(fresh),
    cached: formatNumber(cacheRead),
    cache: ratios.format(prices.cacheRatio),
    output: formatNumber(output),
    completion: ratios.format(prices.completionRatio),
    units: divisorText(quotaPerUnit),
    amount: priceText(sum.exact / quotaPerUnit),
  });
  return { lines, total, formula };
}

const STEP_TEXT: Partial<Record<string, string>> = {
  subtotal: "log.cost.subtotal",
  minimum: "log.cost.step.minimum",
  rounding: "log.cost.step.rounding",
};

function pricedGroups({ t, data }: Shown, { model, ratios: prices }: PricedModel): PricedGroup[] {
  const { quotaPerUnit, query } = data;
  return Object.entries(data.groups).map(([name, { ratio, desc }]) => {
    const serves = prices !== undefined && model.groups.includes(name);
    const texts = serves ? groupPrices(prices, ratio, quotaPerUnit) : [];
    const text = groupText(t, desc);
    return {
      href: pricingAddress({ ...query, group: name }),
      title: shortText(name, SHORT),
      description: text === name ? "" : shortText(text, SHORT * 2),
      ratio: ratioText(ratio),
      tone: ratioTone(ratio),
      isCurrent: name === data.group,
      prices: texts,
    };
  });
}

function groupPrices(prices: PriceRatios, ratio: number, quotaPerUnit: number): string[] {
  if (prices.callPrice !== undefined) return [priceText(prices.callPrice * ratio)];
  const input = dollarsPerMTok(prices.modelRatio * ratio, quotaPerUnit);
  return [priceText(input), priceText(input * prices.completionRatio)];
}

/** In single quotes as the shell reads them: a name may hold any character. */
function sampleOf(server: string, model: string): string {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }).replaceAll(
    "'",
    `'\\''`,
  );
  const [first] = homeSamples(server);
  return [...(first?.code.split("\n").slice(0, 3) ?? []), `  -d '${body}'`].join("\n");
}

function detailView(shown: Shown, detail: Exclude<PricingData["detail"], "missing" | undefined>) {
  const { t, data, context } = shown;
  const { query } = data;
  const { model, isAvailable, ratios: prices, tools, row } = detail;
  const isPerCall = prices?.callPrice !== undefined;
  const counts = countsOf(data, true);
  const { status, url } = context;
  const server = (status.server_address || url.origin).replace(/\/+$/, "");
  return PricingDetailView({
    t,
    name: model.name,
    vendor: shortText(data.vendorTitle(model.vendor), SHORT),
    isAvailable,
    status: statusOf(t, detail),
    banner: bannerOf(shown),
    notices: [
      ...noticesOf(shown, model.name),
      ...announcedPricesOf(announcedTexts(shown), data.announced, {
        model: model.name,
        group: data.group,
        groupRatio: data.groupRatio,
      }),
    ],
    history:
      (context.user?.role ?? 0) >= Role.admin
        ? `/prices?section=history&name=${encodeURIComponent(model.name)}`
        : "",
    back: pricingAddress({ ...query, model: "", input: undefined, output: undefined, cached: undefined }),
    ...factsOf(shown, detail, {
      tools: { ...row?.tools, web_search: tools.webSearch.medium, file_search: tools.fileSearch },
      unit: row?.unit,
    }),
    isPerCall,
    input: formatNumber((counts.fresh ?? 0) + (counts.cacheRead ?? 0)),
    output: formatNumber(counts.output ?? 0),
    cached: formatNumber(counts.cacheRead ?? 0),
    rules: ruleTexts(t, { ...row, tools: {} }, data.groupRatio, priceText),
    sum: prices && explainedSum(shown, detail, prices),
    choice: { group: data.group, groups: groupChoices(shown), areGroupsCut: data.areGroupsCut },
    groupColumns: isPerCall
      ? [t("pricing.column.call")]
      : [t("pricing.column.input"), t("pricing.column.output")],
    groups: pricedGroups(shown, detail),
    sample: sampleOf(server, model.name),
  });
}

export const pricingPage: Page = {
  path: "/pricing",
  shell: "public",
  access: "public",
  title: "pricing.title",
  current: "pricing",
  loader: loadPricing,
  titleOf: (data) => {
    const { detail } = data as PricingData;
    return typeof detail === "object" ? shortText(detail.model.name, SHORT * 2) : undefined;
  },
  view: ({ t, data, title, context }) => {
    const shown: Shown = { t, data, context };
    const { detail, query } = shown.data;
    if (typeof detail === "object") return detailView(shown, detail);
    return PricingView({
      t,
      title,
      banner: bannerOf(shown),
      notices: [...noticesOf(shown), ...announcedNotices(announcedTexts(shown), shown.data.announced)],
      missing: detail === "missing" ? shortText(query.model, SHORT) : "",
      filters: filtersOf(shown),
      results: resultsOf(shown),
    });
  },
};
