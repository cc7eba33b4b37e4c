// One formatter for money, tokens, durations and times, equal on the server and in the browser.
// Refuses the runtime's date patterns: two ICU versions write them differently, and hydration would differ.
import type { Language } from "../../src/shared/enums.ts";
import { displayOf } from "../../src/shared/quota-display.ts";
import type { DisplayFields } from "../../src/shared/quota-display.ts";
import { status, timeZone } from "./boot.ts";
import { t } from "./i18n.ts";

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });

/** 12,345 in both languages. */
export function formatNumber(value: number): string {
  return grouped.format(value);
}

const SHORT_UNITS = [
  [1e3, "k"],
  [1e6, "M"],
  [1e9, "B"],
] as const;
/** From here on numbers are shortened; up to it they are as quickly read in full. */
const SHORTENED_FROM = 10_000;

/** Large numbers, short in both languages: 950, 9,999, 12.3k, 4.56M, 1.2B. What shows it has the exact one at hand. */
export function formatCompact(value: number): string {
  if (Math.abs(value) < SHORTENED_FROM) return formatNumber(value);
  let text = "";
  for (const [limit, unit] of SHORT_UNITS) {
    const scaled = value / limit;
    const rounded = Number(scaled.toFixed(Math.abs(scaled) < 10 ? 2 : 1));
    text = `${rounded}${unit}`;
    // What rounds up to a thousand is one of the next unit.
    if (Math.abs(rounded) < 1000) break;
  }
  return text;
}

/** What stands before an amount, and how much of it is a dollar. */
export interface Currency {
  symbol: string;
  rate: number;
}

/** Of what stays in dollars, such as the price desk's figures. */
export const DOLLARS: Currency = { symbol: "$", rate: 1 };

export interface SiteDisplay extends Currency {
  /** Amounts are shown in units; the currency, for what names a second one, is dollars. */
  isUnits: boolean;
  quotaPerUnit: number;
}

/** How the site shows money. */
export function siteDisplay(site: DisplayFields = status.peek()): SiteDisplay {
  const { type, symbol, rate, quotaPerUnit } = displayOf(site);
  const isUnits = type === "TOKENS";
  return { isUnits, quotaPerUnit, ...(isUnits ? DOLLARS : { symbol, rate }) };
}

/** Two decimals from one cent up; below that as many as needed for two figures, six at most; zeros cut. */
export function formatDollars(dollars: number, { symbol, rate }: Currency = DOLLARS): string {
  if (dollars === 0) return `${symbol}0`;
  const size = Math.abs(dollars * rate);
  const sign = dollars < 0 ? "-" : "";
  if (size >= 0.01)
    return `${sign}${symbol}${size.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: size < 1 ? 4 : 2 })}`;
  if (size < 0.000001) return `${sign}<${symbol}0.000001`;
  return `${sign}${symbol}${size.toFixed(6).replace(/0+$/, "")}`;
}

export interface QuotaText {
  /** As figures stand on a screen: many units are shortened. */
  text: string;
  /** Exact value for the hover: the shown currency to six decimals and units. */
  exact: string;
}

/** Dollars as the site shows them: a price, a rate. */
export function formatMoney(dollars: number, site: DisplayFields = status.peek()): string {
  const display = siteDisplay(site);
  return display.isUnits ? formatNumber(dollars * display.quotaPerUnit) : formatDollars(dollars, display);
}

/** Quota units as the site shows them: money or plain units, for sentences that have no hover. */
export function formatQuota(quota: number, site: DisplayFields = status.peek()): string {
  const display = siteDisplay(site);
  return display.isUnits ? formatNumber(quota) : formatDollars(quota / display.quotaPerUnit, display);
}

export function quotaText(quota: number, site: DisplayFields = status.peek()): QuotaText {
  const display = siteDisplay(site);
  const dollars = quota / display.quotaPerUnit;
  const exact = `${display.symbol}${(dollars * display.rate).toFixed(6)} · ${formatNumber(quota)}`;
  return { text: display.isUnits ? formatCompact(quota) : formatDollars(dollars, display), exact };
}

/** Milliseconds as `420 ms`, `3.2 s`, `2 m 05 s`, `1 h 04 m`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const pad = (value: number) => String(value).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${pad(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${pad(Math.floor((seconds % 3600) / 60))} m`;
}

const partsFormats = new Map<string, Intl.DateTimeFormat>();

function partsIn(zone: string, ms: number): Record<string, string> {
  let format = partsFormats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
    partsFormats.set(zone, format);
  }
  return Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]));
}

/** `2026-11-20 19:55:27` in a zone; the same in both languages. */
export function formatDateTime(ms: number, zone = timeZone.peek()): string {
  const part = partsIn(zone, ms);
  return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second}`;
}

export function formatDate(ms: number, zone = timeZone.peek()): string {
  return formatDateTime(ms, zone).slice(0, 10);
}

/** So far may the server's clock be ahead of the browser's: what it noted has happened all the same. */
const CLOCK_SKEW_SECONDS = 300;

/** When something happened: "3 min ago" within a day, the local time beyond it. */
export function formatWhen(ms: number, now: number, zone = timeZone.peek()): string {
  const seconds = Math.round((now - ms) / 1000);
  if (seconds < -CLOCK_SKEW_SECONDS) return formatDateTime(ms, zone).slice(0, 16);
  if (seconds < 5) return t("common.time.now");
  if (seconds < 60) return t("common.time.secondsAgo", { count: seconds });
  if (seconds < 3600) return t("common.time.minutesAgo", { count: Math.floor(seconds / 60) });
  if (seconds < 86_400) return t("common.time.hoursAgo", { count: Math.floor(seconds / 3600) });
  return formatDateTime(ms, zone).slice(0, 16);
}

/** Local, UTC and epoch, for the hover of a time. */
export function timeTitle(ms: number, zone = timeZone.peek()): string {
  return `${formatDateTime(ms, zone)} ${zone}\n${formatDateTime(ms, "UTC")} UTC\n${Math.floor(ms / 1000)}`;
}

const collators = new Map<Language, Intl.Collator>();

/** Order of names as people of the language expect it; digits by value. */
export function compareNames(to: Language): (a: string, b: string) => number {
  let collator = collators.get(to);
  if (!collator) {
    collator = new Intl.Collator(to === "zh" ? "zh-Hans-CN-u-co-pinyin" : "en", { numeric: true });
    collators.set(to, collator);
  }
  return collator.compare;
}

/** Last four characters; everything before them as dots. */
export function maskSecret(secret: string): string {
  return secret.length <= 4 ? "••••" : `••••${secret.slice(-4)}`;
}
