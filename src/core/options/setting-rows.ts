// The options as the settings screens draw them: in their order, each with its tab, its control, its value and its default.
// Refuses to hand out secrets: of those it says only whether they hold something.
import type { OptionControl, OptionRow } from "../../shared/setting-rows.ts";
import { affinityRules } from "./affinity-kind.ts";
import { optionRows } from "./definitions.ts";
import { OPTION_TABS, optionGroups } from "./groups.ts";
import {
  bool,
  chatList,
  domains,
  endpoint,
  groupRatioMap,
  groupTextMap,
  headerMap,
  lines,
  modelNotices,
  priceRulesMap,
  keyLimits,
  keyLimitsMap,
  rateLimitMap,
  ratioMap,
  textList,
  textMap,
  timeZone,
  tokenCountMapWithDefault,
  url,
} from "./kinds.ts";
import type { OptionDefinition } from "./kinds.ts";
import { amountList, discountMap, payMethods } from "./payment-kinds.ts";
import { priceSources } from "./price-sources.ts";
import type { OptionStore } from "./store.ts";

const CONTROLS = new Map<OptionDefinition["kind"], OptionControl>([
  [bool, "switch"],
  [url, "url"],
  [endpoint, "url"],
  [timeZone, "time_zone"],
  [lines, "lines"],
  [domains, "csv"],
  [ratioMap, "number_map"],
  [groupRatioMap, "number_map"],
  [tokenCountMapWithDefault, "number_map"],
  [textMap, "text_map"],
  [groupTextMap, "text_map"],
  [headerMap, "json_map"],
  [priceRulesMap, "json_map"],
  [rateLimitMap, "json_map"],
  [keyLimits, "json_map"],
  [keyLimitsMap, "json_map"],
  [chatList, "json_list"],
  [textList, "json_list"],
  [modelNotices, "json_list"],
  [affinityRules, "json_list"],
  [priceSources, "json_list"],
  [payMethods, "json_list"],
  [amountList, "json_list"],
  [discountMap, "number_map"],
]);

/** Texts of several lines, which people write and nobody parses. */
const LONG_TEXTS = new Set<string>([
  "Notice",
  "HomePageContent",
  "About",
  "legal.terms",
  "legal.privacy",
  "Footer",
  "site.maintenance_message",
]);

/** Longer ones do not travel with a page: maps of prices have thousands of lines. */
const MOST_CHARACTERS = 2000;

function controlOf(key: string, { kind }: OptionDefinition): OptionControl {
  if (kind.range) return "number";
  if (kind.values) return "choice";
  return CONTROLS.get(kind) ?? (LONG_TEXTS.has(key) ? "long_text" : "text");
}

const tabs = new Map(optionGroups.map(({ id, tab }) => [id, tab]));

export interface RowChoice {
  /** Only the rows of this one. */
  tab?: OptionRow["tab"];
  /** With long values and defaults. */
  isFull?: boolean;
  /** Defaults that depend on the site: the price maps of this release, in its own unit. */
  shipped?: Readonly<Record<string, string>>;
}

/** Every option that something acts on and some tab shows. */
export function settingRows(
  options: Pick<OptionStore, "text">,
  { tab: only, isFull = false, shipped = {} }: RowChoice = {},
): OptionRow[] {
  return optionRows.flatMap((row): OptionRow[] => {
    const tab = tabs.get(row.group) ?? "none";
    if (tab === "none" || tab === "desk" || row.hidden || (only !== undefined && tab !== only)) return [];
    const text = options.text(row.key);
    const byDefault = shipped[row.key] ?? row.default;
    const isLong = !isFull && text.length + byDefault.length > MOST_CHARACTERS;
    const isSecret = row.secret === true;
    return [
      {
        key: row.key,
        kind: controlOf(row.key, row),
        group: row.group,
        tab,
        value: isSecret || isLong ? "" : text,
        default: isSecret || isLong ? "" : byDefault,
        secret: isSecret,
        changed: text !== byDefault,
        ...(row.unit === undefined ? {} : { unit: row.unit }),
        ...(isSecret ? { isSet: text !== "" } : {}),
        ...row.kind.range,
        ...(row.kind.values === undefined ? {} : { values: row.kind.values }),
        ...(isLong ? { isLong: true } : {}),
        ...(row.texts === undefined ? {} : { texts: row.texts }),
      },
    ];
  });
}

/** The tab that an address asks for; the first where it asks for none that there is. */
export function settingTabOf(asked: string | null): OptionRow["tab"] {
  return OPTION_TABS.find((each) => each === asked) ?? OPTION_TABS[0];
}
