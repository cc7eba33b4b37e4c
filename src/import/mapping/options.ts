// The settings of the old site under our names, judged as the settings screens judge them.
// Refuses what its kind refuses, and switches whose prerequisites are missing: secrets are named, never shown.
import { definitionOf, isOptionKey } from "../../core/options/definitions.ts";
import type { OptionKey } from "../../core/options/definitions.ts";
import { missingNeeds } from "../../core/options/guards.ts";
import { PRICE_MAPS } from "../../shared/row-maps.ts";
// Options of rails count as well.
import "../../core/payments/rails.ts";
import type { Notes } from "../report.ts";

/** Names of other products of the family, and what the same thing is called here. */
const ALIASES: Readonly<Record<string, string>> = {
  "group_ratio_setting.group_special_usable_group": "GroupSpecialUsableGroup",
  "group_ratio_setting.group_ratio": "GroupRatio",
  "group_ratio_setting.group_group_ratio": "GroupGroupRatio",
  "tool_price_setting.prices": "ToolPrices",
  "general_setting.quota_display_type": "QuotaDisplayType",
  "general_setting.custom_currency_symbol": "CustomCurrencySymbol",
  "general_setting.custom_currency_exchange_rate": "CustomCurrencyExchangeRate",
  "legal.user_agreement": "legal.terms",
  "legal.privacy_policy": "legal.privacy",
  // one-api
  OidcEnabled: "oidc.enabled",
  OidcClientId: "oidc.client_id",
  OidcClientSecret: "oidc.client_secret",
  OidcWellKnown: "oidc.well_known",
  OidcAuthorizationEndpoint: "oidc.authorization_endpoint",
  OidcTokenEndpoint: "oidc.token_endpoint",
  OidcUserinfoEndpoint: "oidc.user_info_endpoint",
};

/** Read elsewhere: prices, and where passkeys are from. */
const READ_ELSEWHERE: ReadonlySet<string> = new Set([
  ...PRICE_MAPS,
  "billing_setting.billing_expr",
  "billing_setting.billing_mode",
  "passkey.rp_id",
]);

export interface OptionValueWrite {
  key: OptionKey;
  text: string;
}

/** By our names; the names of the source that mean nothing here are noted. */
function underOurNames(texts: ReadonlyMap<string, string>, notes: Notes): Map<OptionKey, string> {
  const found = new Map<OptionKey, string>();
  for (const [name, text] of texts) {
    if (READ_ELSEWHERE.has(name)) continue;
    const key = ALIASES[name] ?? name;
    if (!isOptionKey(key)) notes.add("options", "option_unknown", name);
    // The name that is ours wins over another one for the same thing.
    else if (!found.has(key) || key === name) found.set(key, text);
  }
  return found;
}

function isSound(key: OptionKey, text: string): boolean {
  const { kind } = definitionOf(key);
  try {
    kind.parse(text);
    kind.check?.(text);
    return true;
  } catch {
    return false;
  }
}

/** A switch that would act without what it needs is left off, others of it again: until none of them does. */
function dropUnmet(found: Map<OptionKey, string>, notes: Notes): void {
  const shipped = (key: OptionKey): string => definitionOf(key).default;
  for (;;) {
    const unmet = missingNeeds(shipped, (key) => found.get(key) ?? shipped(key)).filter(({ key }) =>
      found.has(key),
    );
    if (unmet.length === 0) return;
    for (const { key } of unmet) {
      if (!found.delete(key)) continue;
      notes.add("options", "option_off", key);
    }
  }
}

/** In the order in which they may be written: switches last. */
export function mapOptions(texts: ReadonlyMap<string, string>, notes: Notes): OptionValueWrite[] {
  const found = underOurNames(texts, notes);
  for (const [key, text] of found) {
    if (isSound(key, text)) continue;
    found.delete(key);
    // An emptied map is how some of them say "by default".
    if (text.trim() !== "") notes.add("options", "option_refused", key);
  }
  dropUnmet(found, notes);
  for (const [key, text] of found)
    if (text !== definitionOf(key).default) notes.add("options", "option_differs", key);
  notes.carried("options", found.size);
  const writes = [...found].map(([key, text]) => ({ key, text }));
  const isSwitch = ({ key }: OptionValueWrite): boolean => /Enabled$|\.enabled$/.test(key);
  return [...writes.filter((each) => !isSwitch(each)), ...writes.filter(isSwitch)];
}
