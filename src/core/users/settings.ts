// A user's own settings: how notices reach them, from which balance on, and whether unpriced models are accepted.
// Refuses addresses that are none or that the site's rules for addresses refuse, thresholds of nothing, and more test letters to
// an address than it gets codes; what is stored is replaced as a whole.
import { randomBytes } from "node:crypto";
import { eq } from "drizzle-orm";
import type { Language } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps, UserAccount, UserSetting } from "../deps.ts";
import { beginFlow, forgetFlow } from "./auth-flows.ts";
import { foldMail } from "./folding.ts";
import { rearm } from "./low-quota-marks.ts";
import { mailFor } from "./mail-rules.ts";
import { testNotice } from "./notice-texts.ts";
import { checkWebhook, deliver } from "./notify.ts";
import { sealSecret } from "./webhook-secret.ts";

export interface SettingInput {
  notify_type?: string | undefined;
  quota_warning_threshold?: number | undefined;
  webhook_url?: string | undefined;
  /** Absent keeps the secret that is set, as long as the kind and the receiver stay; empty removes it. */
  webhook_secret?: string | undefined;
  notification_email?: string | undefined;
  accept_unset_model_ratio_model?: boolean | undefined;
}

function isWebAddress(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? "");
}

const originOf = (text: string): string | undefined => URL.parse(text)?.origin;

/** The setting to store; throws the documented refusals. */
async function checkedSetting(
  deps: Pick<Deps, "seal" | "reach" | "options">,
  input: SettingInput,
  user: Pick<UserAccount, "role" | "setting">,
): Promise<UserSetting> {
  const before = user.setting;
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
    await checkWebhook(deps, user, url);
    setting.webhook_url = url;
    const secret = input.webhook_secret?.trim();
    // A worker hands the secret itself to the receiver: to another one it goes only by whoever types it again.
    const isSameReceiver = originOf(url) === originOf(before.webhook_url ?? "");
    const kept = isSameReceiver ? before.webhook_secret_sealed : undefined;
    const sealed = secret ? sealSecret(deps.seal, secret) : kept;
    return sealed === undefined || secret === "" ? setting : { ...setting, webhook_secret_sealed: sealed };
  }
  const mail = input.notification_email?.trim() ?? "";
  // The rules hold wherever an address enters; one that stood there before they came stays.
  if (mail !== "")
    setting.notification_email = mail === before.notification_email ? mail : mailFor(deps, mail).address;
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
    : { ...(await checkedSetting(deps, input, user)), language };
  const { users } = deps.db.t;
  await deps.db.orm
    .update(users)
    .set({ setting: JSON.stringify(setting) })
    .where(eq(users.id, user.id));
  await deps.accounts.userChanged(user.id);
  // Another threshold or another receiver: the next fall is worth a warning.
  await rearm(deps, user.id);
}

/** † Sends a test the way the given setting says, saved or not; throws what refuses it, `too_many_attempts` too. */
export async function testSetting(
  deps: Deps,
  user: UserAccount,
  input: SettingInput,
  language: Language,
): Promise<void> {
  const notice = testNotice(language, deps.options.get("SystemName"));
  const setting = await checkedSetting(deps, input, user);
  const flow = await countTest(deps, user, setting.notification_email ?? "");
  try {
    await deliver(deps, user, setting, notice);
  } catch (error) {
    if (flow !== undefined) await forgetFlow(deps, flow);
    throw error;
  }
}

/** Of an address that is not the account's own, nobody has proven anything: all accounts together are counted. */
async function countTest(deps: Deps, user: UserAccount, typed: string): Promise<number | undefined> {
  const key = foldMail(typed)?.key;
  if (key === undefined || key === foldMail(user.email)?.key) return undefined;
  const hash = (): string => randomBytes(32).toString("hex");
  return beginFlow(deps, { kind: "notice_test", subjectKey: key, userId: user.id, hash });
}
