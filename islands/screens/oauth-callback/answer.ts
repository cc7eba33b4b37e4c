// What a provider says in the address of the callback's page, and the route that it is for.
import type { ProviderFlow } from "../../lib/sign-in.ts";

type Given = Record<string, string>;

/** Telegram's result as a fragment: JSON in base64url. */
function telegramOf(hash: string): Given | undefined {
  const text = new URLSearchParams(hash.replace(/^#/, "")).get("tgAuthResult");
  if (text === null) return undefined;
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (sign) =>
      sign.charCodeAt(0),
    );
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [
        key,
        typeof each === "string" ? each : JSON.stringify(each),
      ]),
    );
  } catch {
    // What cannot be read is no answer.
    return undefined;
  }
}

/** Undefined: the page was opened by itself. */
export function answerOf(search: string, hash: string): Given | undefined {
  const given = Object.fromEntries(new URLSearchParams(search));
  const all = { ...given, ...telegramOf(hash) };
  return "code" in all || "error" in all || "hash" in all ? all : undefined;
}

/** Telegram's older way has routes of its own; all others are told apart by the state. */
export function routeOf(provider: string, intent: ProviderFlow["intent"]): string {
  if (provider !== "telegram") return `/api/oauth/${encodeURIComponent(provider)}`;
  return intent === "signin" ? "/api/oauth/telegram/login" : "/api/oauth/telegram/bind";
}
