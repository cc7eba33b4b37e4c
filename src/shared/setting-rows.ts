// What the settings screens know of an option: its place, how it is drawn, its value and its default. Types only.
import type { Language } from "./enums.ts";

/** How an option is drawn and typed in. */
export type OptionControl =
  | "switch"
  | "number"
  | "choice"
  | "text"
  | "url"
  | "long_text"
  | "lines"
  | "csv"
  | "time_zone"
  | "text_map"
  | "number_map"
  | "json_map"
  | "json_list";

/** What stands in `/setting?tab=`. */
export type SettingTab = "operation" | "ratelimit" | "models" | "payment" | "system" | "other";

/** What an option is called and what it does. */
export interface OptionTexts {
  title: Readonly<Record<Language, string>>;
  help: Readonly<Record<Language, string>>;
}

export interface OptionRow {
  key: string;
  kind: OptionControl;
  group: string;
  tab: SettingTab;
  /** As stored or by default; always "" for a secret. */
  value: string;
  default: string;
  secret: boolean;
  /** The text of `option.unit.<unit>`. */
  unit?: string;
  /** Differs from the default. */
  changed: boolean;
  /** A secret that holds something. */
  isSet?: boolean;
  min?: number;
  max?: number;
  /** A number without a fraction. */
  isWhole?: boolean;
  /** An empty field means something of its own. */
  isOptional?: boolean;
  /** All that may be chosen. */
  values?: readonly string[];
  /** Value and default were left out for their length. */
  isLong?: boolean;
  /** Where the console's dictionaries do not have them. */
  texts?: OptionTexts;
}

/** What the page of the settings comes with: the rows of the tab that is open. */
export interface SettingPageData {
  tab: SettingTab;
  rows: OptionRow[];
}
