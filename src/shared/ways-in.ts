// Options that are about ways into an account: their switches, by key.

/** The switch of each provider that ships with the product, and the provider's id. */
export const PROVIDER_SWITCHES = {
  GitHubOAuthEnabled: "github",
  "oidc.enabled": "oidc",
  LinuxDOOAuthEnabled: "linuxdo",
  "google.enabled": "google",
  "discord.enabled": "discord",
  WeChatAuthEnabled: "wechat",
  TelegramOAuthEnabled: "telegram",
} as const;

/** Whether an option's new text takes a way in from accounts, or may: a switch that goes off, or another host. */
export function mayTakeWaysIn(key: string, text: string): boolean {
  if (key === "ServerAddress") return true;
  const isSwitch = key === "PasswordLoginEnabled" || key === "passkey.enabled" || key in PROVIDER_SWITCHES;
  return isSwitch && text === "false";
}
