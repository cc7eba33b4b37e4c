// The secret that signs a user's webhooks: sealed in the user's setting, opened when a notice is sent.
import type { UserSetting } from "../deps.ts";
import type { Sealer } from "../kit/seal.ts";

export function hasSecret(setting: UserSetting): boolean {
  return Boolean(setting.webhook_secret_sealed);
}

export function sealSecret(seal: Sealer, clear: string): string {
  return seal.seal("user", clear);
}

/** Empty where none is set. Throws SealError when it was sealed under another key. */
export function openSecret(seal: Sealer, setting: UserSetting): string {
  return seal.open("user", setting.webhook_secret_sealed ?? "");
}

/** The webhook secret of a stored setting goes in and never comes out; what comes out is whether there is one. */
export function publicSetting(text: string): string {
  if (text === "") return "";
  try {
    const { webhook_secret_sealed: sealed, ...setting } = JSON.parse(text) as Record<string, unknown>;
    return JSON.stringify(sealed ? { ...setting, webhook_secret_set: true } : setting);
  } catch {
    return "";
  }
}
