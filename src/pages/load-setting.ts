// First state of the settings: the options of the tab that the address names; the other tabs come when they are opened.
import { settingRows, settingTabOf } from "../core/options/setting-rows.ts";
import { shippedTexts } from "../core/prices/origins.ts";
import type { SettingPageData } from "../shared/setting-rows.ts";
import type { LoaderContext } from "./page.ts";

export function loadSetting({ deps, url }: LoaderContext): SettingPageData {
  const tab = settingTabOf(url.searchParams.get("tab"));
  const shipped = shippedTexts(deps.options.get("QuotaPerUnit"));
  return { tab, rows: settingRows(deps.options, { tab, shipped }) };
}

/** Names, explanations, units and groups of the options that the page shows; other tabs bring theirs along. */
export function settingTextKeys({ rows }: SettingPageData): string[] {
  return rows.flatMap(({ key, group, unit, texts }) => [
    ...(texts === undefined ? [`option.title.${key}`, `option.help.${key}`] : []),
    `option.group.${group}`,
    ...(unit === undefined ? [] : [`option.unit.${unit}`]),
  ]);
}
