// Options that lean on others: a switch is not turned on before what it needs is there, and what it needs is not taken
// away while it is on. Half a sign-in or half a payment rail is one that anybody may forge.
import type { FailureCode } from "../../shared/failure-codes.ts";
import { passkeySite } from "../../shared/passkey-site.ts";
import { refuse } from "../../shared/failures.ts";
import { optionRows } from "./definitions.ts";
import type { OptionKey } from "./definitions.ts";

/** One key, or several of which one is enough. */
type Need = OptionKey | readonly OptionKey[];

interface Guard {
  key: OptionKey;
  needs: readonly Need[];
  /** Of the refusal, whose sentence names what is missing. */
  code: FailureCode;
}

const REDIRECTING: readonly OptionKey[] = [
  "GitHubOAuthEnabled",
  "oidc.enabled",
  "LinuxDOOAuthEnabled",
  "google.enabled",
  "discord.enabled",
];

/** An option is guarded in the state that does something: a switch that is on, a text that is not empty. */
const GUARDS: readonly Guard[] = [
  { key: "GitHubOAuthEnabled", needs: ["GitHubClientId", "GitHubClientSecret"], code: "option_needs_github" },
  { key: "oidc.enabled", needs: ["oidc.client_id", "oidc.client_secret"], code: "option_needs_oidc" },
  {
    key: "oidc.enabled",
    // The server discovers the others by the first.
    needs: [
      ["oidc.well_known", "oidc.authorization_endpoint"],
      ["oidc.well_known", "oidc.token_endpoint"],
      ["oidc.well_known", "oidc.user_info_endpoint"],
    ],
    code: "option_needs_oidc_endpoints",
  },
  {
    key: "LinuxDOOAuthEnabled",
    needs: ["LinuxDOClientId", "LinuxDOClientSecret"],
    code: "option_needs_linuxdo",
  },
  { key: "google.enabled", needs: ["google.client_id", "google.client_secret"], code: "option_needs_google" },
  {
    key: "discord.enabled",
    needs: ["discord.client_id", "discord.client_secret"],
    code: "option_needs_discord",
  },
  // Whoever signs in elsewhere is sent back to this site, by an address that both sides know beforehand.
  ...REDIRECTING.map((key) => ({
    key,
    needs: ["ServerAddress"] as const,
    code: "option_needs_site_address" as const,
  })),
  { key: "EmailDomainRestrictionEnabled", needs: ["EmailDomainWhitelist"], code: "option_needs_domains" },
  {
    key: "EmailVerificationEnabled",
    // Letters need a sender: where none is named the account is one.
    needs: ["SMTPServer", ["SMTPFrom", "SMTPAccount"]],
    code: "option_needs_smtp",
  },
  {
    key: "WeChatAuthEnabled",
    needs: ["WeChatServerAddress", "WeChatServerToken", "WeChatAccountQRCodeImageURL"],
    code: "option_needs_wechat",
  },
  {
    key: "TurnstileCheckEnabled",
    needs: ["TurnstileSiteKey", "TurnstileSecretKey"],
    code: "option_needs_turnstile",
  },
  { key: "TelegramOAuthEnabled", needs: ["TelegramBotToken"], code: "option_needs_telegram" },
  { key: "TelegramOAuthEnabled", needs: ["TelegramBotName"], code: "option_needs_telegram_name" },
  { key: "WorkerAllowHttpImageRequestEnabled", needs: ["WorkerUrl"], code: "option_needs_worker" },
  { key: "passkey.enabled", needs: ["ServerAddress"], code: "option_needs_passkey_host" },
];

/** These, and what rows say of themselves. */
function allGuards(): Guard[] {
  const own = optionRows.flatMap(({ key, needs }) =>
    needs === undefined ? [] : [{ key, needs: [needs.key], code: needs.code }],
  );
  return [...GUARDS, ...own];
}

/** Blanks and commas are no value: a list may consist of them. */
const isGiven = (text: string): boolean => /[^\s,]/.test(text);

/** Whether an option's text makes it act. */
const isActing = (text: string): boolean => isGiven(text) && text !== "false";

const isMet = (need: Need, textOf: (key: OptionKey) => string): boolean =>
  (typeof need === "string" ? [need] : need).some((key) => isGiven(textOf(key)));

/** Throws a Failure where the change would leave an option acting without what it needs; `textOf` tells what is stored now. */
export function checkGuards(key: OptionKey, value: string, textOf: (key: OptionKey) => string): void {
  const after = (each: OptionKey): string => (each === key ? value : textOf(each));
  if (key === "passkey.enabled" && value === "true" && !passkeySite(textOf("ServerAddress")))
    throw refuse("option_needs_passkey_host");
  if (key === "ServerAddress" && textOf("passkey.enabled") === "true" && !passkeySite(value))
    throw refuse("option_in_use", { name: key, used: "passkey.enabled" });
  for (const guard of allGuards()) {
    if (!isActing(after(guard.key))) continue;
    const missing = guard.needs.filter((need) => !isMet(need, after));
    if (missing.length === 0) continue;
    if (guard.key === key) throw refuse(guard.code);
    // What an older release stored in halves may still be repaired piece by piece: only what makes it worse is refused.
    if (missing.some((need) => isMet(need, textOf)))
      throw refuse("option_in_use", { name: key, used: guard.key });
  }
}

/**
 * The same for many options that change together: those that would act without what they need, and either begin to act or
 * lose it now.
 */
export function missingNeeds(
  before: (key: OptionKey) => string,
  after: (key: OptionKey) => string,
): { key: OptionKey; code: FailureCode }[] {
  return allGuards()
    .filter(({ key, needs }) => {
      if (!isActing(after(key))) return false;
      const missing = needs.filter((need) => !isMet(need, after));
      return missing.length > 0 && (!isActing(before(key)) || missing.some((need) => isMet(need, before)));
    })
    .map(({ key, code }) => ({ key, code }));
}
