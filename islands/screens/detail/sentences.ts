// The dashboard's numbers as people read them: money or units, the sentence above the chart, names of what is gone.
// Refuses to call an unnamed series by anything but its number.
import type { SiteStatus } from "../../lib/api.ts";
import { shareText, sumOf } from "../../lib/chart.ts";
import {
  formatCompact,
  formatDateTime,
  formatDuration,
  formatMoney,
  formatNumber,
  formatQuota,
  siteDisplay,
} from "../../lib/format.ts";
import type { Translate } from "../../lib/i18n.ts";
import type { Preset } from "../../lib/time-range.ts";
import type { RankedSeries } from "./data.ts";
import type { UsageSeries, UsageSummary } from "../../lib/wire.ts";

export interface Formats {
  format: (value: number) => string;
  /** Shorter, for grid lines and lists. */
  formatShort: (value: number) => string;
  formatAxis: (value: number) => string;
  /** What grid lines are cut at: quota units of a dollar or what stands in its place, or single ones. */
  unit: number;
  isInteger: boolean;
}

export function formatsOf({ figure }: UsageSummary, site: Partial<SiteStatus>): Formats {
  const { isUnits, rate, quotaPerUnit } = siteDisplay(site);
  if (figure === "quota" && !isUnits) {
    const format = (value: number) => formatQuota(value, site);
    const formatAxis = (value: number) => formatMoney(value / quotaPerUnit, site).replace(/\.00$/, "");
    return { format, formatShort: format, formatAxis, unit: quotaPerUnit / rate, isInteger: false };
  }
  return {
    format: formatNumber,
    formatShort: formatCompact,
    formatAxis: formatCompact,
    unit: 1,
    isInteger: true,
  };
}

export function labelOf(t: Translate, { by }: UsageSummary, series: UsageSeries): string {
  if (series.name !== "") return series.name;
  return by === "model" ? t("detail.noModel") : t(`detail.gone.${by}`, { id: series.id });
}

/** A base below this share of now is none: the percentage would tell of the base. */
const LEAST_BASE = 0.1;

/** Whether there was enough before that a percentage tells of now. */
export function hasBase(now: number, before: number): boolean {
  return before > 0 && before >= now * LEAST_BASE;
}

/** `12% more than before`; only where there is a base. */
export function changeText(t: Translate, now: number, before: number): string {
  const percent = Math.round((now / before - 1) * 100);
  const key = percent > 0 ? "detail.more" : percent < 0 ? "detail.less" : "detail.same";
  return t(key, { percent: formatNumber(Math.abs(percent)) });
}

export interface Sentences {
  /** Above the chart: the figure of what is shown, over what time, and the change. */
  sentence: string;
  /** Its figure in full. */
  exact: string;
  /** The same for those who do not see the bars, with who leads. */
  summary: string;
}

export interface SentenceOptions {
  t: Translate;
  use: UsageSummary;
  formats: Formats;
  shown: readonly RankedSeries[];
  all: readonly RankedSeries[];
  /** undefined: a range that somebody chose. */
  preset: Preset | undefined;
  zone: string;
}

export function sentencesOf({ t, use, formats, shown, all, preset, zone }: SentenceOptions): Sentences {
  const { figure } = use;
  const { format, formatShort } = formats;
  const value = sumOf(shown.map(({ total }) => total));
  const within = preset
    ? t(`detail.within.${preset}`)
    : t("detail.within.custom", {
        from: formatDateTime(use.from * 1000, zone).slice(5, 16),
        to: formatDateTime(use.to * 1000, zone).slice(5, 16),
      });
  const sum = t(`detail.sum.${figure}`, { value: formatShort(value), count: value });
  // What was before is known of all series together only.
  const before = use.previous[figure];
  const change = shown.length === all.length && hasBase(value, before) ? changeText(t, value, before) : "";
  const sentence = t(change === "" ? "detail.sentence" : "detail.sentenceChange", { sum, within, change });
  const exact = format(value);
  const leader = all[0];
  if (!leader || leader.id === "other") return { sentence, exact, summary: sentence };
  const share = shareText(leader.total, sumOf(use.lines[figure]));
  return { sentence, exact, summary: t("detail.leader", { sentence, name: leader.label, share }) };
}

/** Average response time of some bars. */
export function speedText({ ms, lines }: UsageSummary, first = 0, last = ms.length - 1): string {
  const calls = sumOf(lines.count.slice(first, last + 1));
  return calls === 0 ? "–" : formatDuration(sumOf(ms.slice(first, last + 1)) / calls);
}
