// A user's own settings: how notices reach them, from which balance on, and whether unpriced models are accepted.
// Refuses addresses that are none and thresholds of nothing; what is stored is replaced as a whole.
import { eq } from "drizzle-orm";
import type { Language } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps, UserAccount, UserSetting } from "../deps.ts";
import { rearm } from "./low-quota-marks.ts";
import { testNotice } from "./notice-texts.ts";
import { checkWebhook, deliver } from "./notify.ts";
import { sealSecret } from "./webhook-secret.ts";

export interface SettingInput {
  notify_type?: string | undefined;
  quota_warning_threshold?: number | undefined;
  webhook_url?: string | undefined;
  /** Absent keeps the secret that is set, as long as the kind stays; empty removes it. */
  webhook_secret?: string | undefined;
  notification_email?: string | undefined;
  accept_unset_model_ratio_model?: boolean | undefined;
}

const MAIL = /^[^\s@]{1,64}@[^\s@]{1,255}$/;

function isWebAddress(text: string): boolean {
  try {
    const { protocol } = new URL(text);
    return protocol === "https:" || protocol === "http:";
  } catch {
    return false;
  }
}

/** The setting to store; throws the documented refusals. */
async function checkedSetting(
  deps: Pick<Deps, "seal" | "reach">,
  input: SettingInput,
  before: UserSetting,
): Promise<UserSetting> {
  const kind = input.notify_type;
  if (kind !== "email" && kind !== "webhook") throw refuse("notify_type_wrong");
  const threshold = input.quota_warning_threshold ?? 0;
  if (!Number.isFinite(threshold) || threshold <= 0) throw refuse("notify_threshold_low");
  const setting: UserSetting = {
    notify_type: kind,
    quota_warning_threshold: threshold,
    accept_unset_model_ratio_model: input.accept_unset_model_ratio_model === true,
  };
  if (kind === "webhook") {
    const url = input.webhook_url?.trim() ?? "";
    if (url === "") throw refuse("webhook_missing");
    if (!isWebAddress(url)) throw refuse("webhook_wrong");
    await checkWebhook(deps, url);
    setting.webhook_url = url;
    const secret = input.webhook_secret?.trim();
    const sealed = secret ? sealSecret(deps.seal, secret) : before.webhook_secret_sealed;
    return sealed === undefined || secret === "" ? setting : { ...setting, webhook_secret_sealed: sealed };
  }
  const mail = input.notification_email?.trim() ?? "";
  if (mail !== "") {
    if (!MAIL.test(mail)) throw refuse("mail_wrong");
    setting.notification_email = mail;
  }
  return setting;
}

/** † Nothing but the price preference: the rest of the setting stays as it is. */
function isPreferenceOnly(input: SettingInput): boolean {
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  return given.length === 1 && given[0]?.[0] === "accept_unset_model_ratio_model";
}

/** `language`: in which notices shall be written. */
export async function updateSetting(
  deps: Deps,
  user: UserAccount,
  input: SettingInput,
  language: Language,
): Promise<void> {
  const setting: UserSetting = isPreferenceOnly(input)
    ? {
        ...user.setting,
        accept_unset_model_ratio_model: input.accept_unset_model_ratio_model === true,
      }
    : { ...(await checkedSetting(deps, input, user.setting)), language };
  const { users } = deps.db.t;
  await deps.db.orm
    .update(users)
    .set({ setting: JSON.stringify(setting) })
    .where(eq(users.id, user.id));
  await deps.accounts.userChanged(user.id);
  // Another threshold or another receiver: the next fall is worth a warning.
  await rearm(deps, user.id);
}

/** † Sends a test the way the given setting says, saved or not; throws what refuses it. */
export async function testSetting(
  deps: Deps,
  user: UserAccount,
  input: SettingInput,
  language: Language,
): Promise<void> {
  const notice = testNotice(language, deps.options.get("SystemName"));
  await deliver(deps, user, await checkedSetting(deps, input, user.setting), notice);
}
