// The status payload: what every visitor's console needs to know of the site, secrets never.
import { MAX_PASSWORD, MAX_USERNAME, MIN_PASSWORD } from "../../shared/name-limits.ts";
import { BUILT_IN_IDS, builtInProviders } from "../users/providers/built-in.ts";
import { enabledProviders, shown } from "../users/providers/registry.ts";
import type { IdentityProvider } from "../users/providers/types.ts";
import { canReset } from "../users/password-reset.ts";
import { termsVersion } from "../users/terms.ts";
import type { Deps } from "../deps.ts";
import { displayType, isInCurrency } from "../options/display.ts";
import { optionRows } from "../options/definitions.ts";
import type { OptionKey, PublicOptions } from "../options/definitions.ts";
import type { OptionStore } from "../options/store.ts";
import { setupState } from "./setup.ts";
import { isOnlineTopUpOpen } from "../payments/rails.ts";
import { arePasskeysOn } from "../users/factors/passkeys.ts";

const PUBLIC_FIELDS: readonly (readonly [string, OptionKey])[] = optionRows.flatMap((row) =>
  row.public === undefined ? [] : [[row.public, row.key] as const],
);

function publicOptions(options: Pick<OptionStore, "get">): PublicOptions {
  return Object.fromEntries(PUBLIC_FIELDS.map(([name, key]) => [name, options.get(key)])) as PublicOptions;
}

/**
 * The base that "/#/?settings=" is put behind, as old clients and /chat2link do: of the first chat link that is a web page, what
 * stands before "/#/", or before its query where it has none.
 */
export function firstWebChat(chats: readonly unknown[]): string {
  for (const entry of chats) {
    const [link] = entry && typeof entry === "object" ? Object.values(entry) : [];
    if (typeof link !== "string") continue;
    const [base = ""] = link.trim().split(/\/#\/|[?#{]/, 1);
    if (/^https?:\/\//i.test(base) && URL.canParse(base)) return base.replace(/\/+$/, "");
  }
  return "";
}

export async function siteStatus(deps: Deps): Promise<SiteStatus> {
  const { done } = await setupState(deps);
  return statusOf(deps, done, await enabledProviders(deps));
}

/** While the database is away: as of a site that has been set up, without the ways in that stand in its tables. */
export function statusFromMemory(deps: Deps): SiteStatus {
  const builtIn = builtInProviders(deps).filter(({ enabled }) => enabled);
  return statusOf(deps, true, builtIn);
}

/** The server's address is the operator's word or nothing: a request's Host is anybody's. */
function statusOf(deps: Deps, done: boolean, providers: readonly IdentityProvider[]) {
  const { options } = deps;
  const isOn = (id: string): boolean => providers.some((each) => each.id === id);
  const custom = providers.filter(({ id }) => !BUILT_IN_IDS.has(id));
  return {
    ...publicOptions(options),
    // A way in is there when its keys are, too.
    github_oauth: isOn("github"),
    oidc_enabled: isOn("oidc"),
    linuxdo_oauth: isOn("linuxdo"),
    discord_oauth: isOn("discord"),
    wechat_login: isOn("wechat"),
    telegram_oauth: isOn("telegram"),
    /** Every way in beside password and passkey, in display order. */
    sign_in_providers: providers.map(shown),
    custom_oauth_providers: custom.map(({ id, label, icon }) => ({ id, name: label, slug: id, icon })),
    version: deps.version,
    start_time: deps.startedAt,
    setup: done,
    /** Whoever is signed in sees the status page. */
    has_status_page: options.get("site.status_page") !== "off",
    /** The operator's words while maintenance mode is on; "" otherwise, or where there are none. */
    maintenance_message: options.get("site.maintenance_enabled")
      ? options.get("site.maintenance_message").trim()
      : "",
    passkey_login: arePasskeysOn(deps),
    reset_enabled: canReset(deps),
    /** Version of the terms and the privacy notice that whoever registers has to accept; "": there are none. */
    terms_version: termsVersion(deps),
    password_min: MIN_PASSWORD,
    password_max: MAX_PASSWORD,
    username_max: MAX_USERNAME,
    // One saved without the other: what is in force counts.
    display_in_currency: isInCurrency(options),
    quota_display_type: displayType(options),
    enable_online_topup: isOnlineTopUpOpen(deps),
    // Nothing here collects updates: older clients read the field.
    enable_batch_update: false,
    chat_link: firstWebChat(options.get("Chats")),
  };
}

export type SiteStatus = ReturnType<typeof statusOf>;
