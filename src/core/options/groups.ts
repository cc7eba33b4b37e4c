// The settings screens as rows: the tabs of /setting, and the groups of options that each tab shows, in their order.

/** What stands in `/setting?tab=`. */
export const OPTION_TABS = ["operation", "ratelimit", "models", "payment", "system", "other"] as const;
type OptionTab = (typeof OPTION_TABS)[number];

/**
 * A group and its tab, a line each; "desk" = the price desk shows it; "none" = no screen does, kept because older clients read
 * and write it.
 */
const TAB_OF_GROUP = {
  general: "operation",
  drawing: "operation",
  sensitive: "operation",
  log: "operation",
  dashboard: "operation",
  monitoring: "operation",
  inbox: "operation",
  quota: "operation",
  chats: "operation",
  prices: "operation",
  groups: "operation",
  group_choices: "desk",
  price_sources: "desk",
  rate_limit: "ratelimit",
  global: "models",
  upstream: "models",
  affinity: "models",
  gemini: "models",
  claude: "models",
  server: "system",
  worker: "system",
  payment: "payment",
  sign_in: "system",
  email_domains: "system",
  smtp: "system",
  oidc: "system",
  github: "system",
  google: "system",
  discord: "system",
  linuxdo: "system",
  wechat: "system",
  telegram: "system",
  turnstile: "system",
  display: "other",
  site: "other",
  content: "other",
  version: "other",
  legacy: "none",
} as const satisfies Record<string, OptionTab | "desk" | "none">;

export type OptionGroupId = keyof typeof TAB_OF_GROUP;

interface OptionGroup {
  id: OptionGroupId;
  tab: OptionTab | "desk" | "none";
  /** Place among all groups, from 0. */
  order: number;
  /** Key of its name in the dictionaries. */
  title: string;
}

export const optionGroups: readonly OptionGroup[] = (Object.keys(TAB_OF_GROUP) as OptionGroupId[]).map(
  (id, order) => ({ id, tab: TAB_OF_GROUP[id], order, title: `option.group.${id}` }),
);
