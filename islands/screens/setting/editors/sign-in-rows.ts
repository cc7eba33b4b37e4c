// The sign-in providers as the settings list them: which options each needs, and what state it is in.
import type { OptionRow } from "../editor-props.ts";
import { titleOf } from "../names.ts";
import type { CustomProvider } from "./provider-values.ts";

interface BuiltIn {
  id: string;
  label: string;
  /** Its switch; where a site does not know it, the row is left out. */
  enabled: string;
  /** Each of these; of a list, one. */
  needs: readonly (string | readonly string[])[];
  /** Sends people away and back: needs the site's address, and has a callback address. */
  isRedirecting: boolean;
}

const BUILT_IN: readonly BuiltIn[] = [
  {
    id: "github",
    label: "GitHub",
    enabled: "GitHubOAuthEnabled",
    needs: ["GitHubClientId", "GitHubClientSecret"],
    isRedirecting: true,
  },
  {
    id: "oidc",
    label: "OIDC",
    enabled: "oidc.enabled",
    needs: ["oidc.client_id", "oidc.client_secret", ["oidc.well_known", "oidc.authorization_endpoint"]],
    isRedirecting: true,
  },
  {
    id: "google",
    label: "Google",
    enabled: "google.enabled",
    needs: ["google.client_id", "google.client_secret"],
    isRedirecting: true,
  },
  {
    id: "discord",
    label: "Discord",
    enabled: "discord.enabled",
    needs: ["discord.client_id", "discord.client_secret"],
    isRedirecting: true,
  },
  {
    id: "linuxdo",
    label: "Linux DO",
    enabled: "LinuxDOOAuthEnabled",
    needs: ["LinuxDOClientId", "LinuxDOClientSecret"],
    isRedirecting: true,
  },
  {
    id: "wechat",
    label: "WeChat",
    enabled: "WeChatAuthEnabled",
    needs: ["WeChatServerAddress", "WeChatServerToken", "WeChatAccountQRCodeImageURL"],
    isRedirecting: false,
  },
  {
    id: "telegram",
    label: "Telegram",
    enabled: "TelegramOAuthEnabled",
    needs: ["TelegramBotToken", "TelegramBotName"],
    isRedirecting: true,
  },
];

export interface ProviderState {
  id: string;
  label: string;
  isOn: boolean;
  /** Names of what is not set yet. */
  missing: string[];
  isRedirecting: boolean;
  hasSecret: boolean;
  /** Where its options stand; undefined: a provider of the operator's own. */
  group: string | undefined;
}

export type Rows = ReadonlyMap<string, OptionRow>;

const isSet = (row: OptionRow | undefined): boolean =>
  row !== undefined && (row.secret ? row.isSet === true : row.value.trim() !== "");

/** The site's own address is missing, where it is needed. */
function addressMissing(rows: Rows, isRedirecting: boolean): string[] {
  const row = rows.get("ServerAddress");
  return isRedirecting && row && !isSet(row) ? [titleOf(row)] : [];
}

/** Those that this release has options of, in the order of their buttons. */
export function builtInStates(rows: Rows): ProviderState[] {
  return BUILT_IN.flatMap(({ id, label, enabled, needs, isRedirecting }) => {
    const own = rows.get(enabled);
    if (!own) return [];
    const missing = needs.flatMap((need) => {
      const keys = typeof need === "string" ? [need] : need;
      const first = rows.get(keys[0] ?? "");
      return !first || keys.some((key) => isSet(rows.get(key))) ? [] : [titleOf(first)];
    });
    const secret = needs.flat().find((key) => rows.get(key)?.secret);
    return [
      {
        id,
        label,
        isOn: own.value === "true",
        missing: [...missing, ...addressMissing(rows, isRedirecting)],
        isRedirecting,
        hasSecret: secret !== undefined && isSet(rows.get(secret)),
        group: own.group,
      },
    ];
  });
}

/** The same of a provider that the operator defined; `label` gives the name of a field. */
export function customState(
  row: CustomProvider,
  rows: Rows,
  label: (field: string) => string,
): ProviderState {
  const fields =
    row.kind === "oidc"
      ? (["client_id", "issuer"] as const)
      : (["client_id", "authorization_endpoint", "token_endpoint", "user_info_endpoint"] as const);
  const missing = fields.filter((field) => row[field] === "").map(label);
  if (!row.client_secret_set) missing.push(label("client_secret"));
  return {
    id: row.slug,
    label: row.name,
    isOn: row.enabled,
    missing: [...missing, ...addressMissing(rows, true)],
    isRedirecting: true,
    hasSecret: row.client_secret_set,
    group: undefined,
  };
}
