// The texts of options, by rows. The names are joined, not written as templates: a script that holds a template makes every
// page carry the texts of all options (scripts/build-texts.ts), and a page needs those of its own tab only.
import type { OptionRow } from "../../../src/shared/setting-rows.ts";
import { language, t } from "../../lib/i18n.ts";

const text = (...path: string[]) => t(["option", ...path].join("."));

type Named = Pick<OptionRow, "key" | "texts">;

export const titleOf = ({ key, texts }: Named): string => texts?.title[language.value] ?? text("title", key);
export const helpOf = ({ key, texts }: Named): string => texts?.help[language.value] ?? text("help", key);
export const groupName = (group: string): string => text("group", group);
export const unitOf = ({ unit }: OptionRow): string => (unit === undefined ? "" : text("unit", unit));

/** A value as people read it: "15", "On", "Hour". */
export function shownValue(option: OptionRow, value: string): string {
  if (option.secret) return t(value === "" ? "setting.secret.notSet" : "setting.secret.new");
  if (option.kind === "switch") return t(value === "true" ? "setting.on" : "setting.off");
  if (value === "") return t("setting.empty");
  if (option.kind === "choice") return choiceName(value);
  return value;
}

/** What a choice is called. */
export const choiceName = (value: string): string => t(`setting.choice.${value}`);
