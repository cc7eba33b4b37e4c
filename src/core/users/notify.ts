// Notices: to the operator what happened to channels, to users that their balance runs low; by e-mail or webhook.
// Refuses to flood: two notices of a kind in ten minutes, and to let a receiver that fails disturb what the notice is about.
import { eq } from "drizzle-orm";
import { LogType, Role } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Deps, Inbox, UserAccount, UserSetting } from "../deps.ts";
import { refuseWhenQuiet } from "../options/quiet.ts";
import { mailServer } from "./mail-server.ts";
import { sendMail } from "../../net/mail.ts";
import type { MailServer } from "../../net/mail.ts";
import { callWebhook } from "../../net/notify.ts";
import type { Notice } from "../../net/notify.ts";
import { noticeLetter } from "./letter-form.ts";
import type { OperatorNotice } from "./notice-texts.ts";
import { outboundOf } from "./outbound.ts";
import { postNow } from "./outbox.ts";
import { openSecret } from "./webhook-secret.ts";

export type NotifyDeps = Pick<
  Deps,
  "db" | "accounts" | "ledger" | "logger" | "clock" | "guard" | "reach" | "options" | "seal" | "inbox"
>;

export type DeliverDeps = Pick<Deps, "db" | "logger" | "guard" | "reach" | "clock" | "options" | "seal"> & {
  inbox: Pick<Inbox, "raise" | "gone">;
};

const WINDOW_MS = 600_000;
const PER_WINDOW = 2;
/** Kinds remembered for the limit; the oldest make room. */
const MAX_KINDS = 10_000;

const sent = new WeakMap<object, Map<string, number[]>>();

function isTooMany(deps: NotifyDeps, type: string): boolean {
  let kinds = sent.get(deps.ledger);
  if (!kinds) sent.set(deps.ledger, (kinds = new Map()));
  const nowMs = deps.clock.monotonicMs();
  const recent = (kinds.get(type) ?? []).filter((atMs) => nowMs - atMs < WINDOW_MS);
  if (recent.length >= PER_WINDOW) return true;
  recent.push(nowMs);
  kinds.delete(type);
  kinds.set(type, recent);
  const [oldest] = kinds.keys();
  if (kinds.size > MAX_KINDS && oldest !== undefined) kinds.delete(oldest);
  return false;
}

async function rootId({ db }: Pick<Deps, "db">): Promise<number | undefined> {
  const { users } = db.t;
  const [root] = await db.orm.select({ id: users.id }).from(users).where(eq(users.role, Role.root)).limit(1);
  return root?.id;
}

export async function rootAccount(deps: Pick<Deps, "db" | "accounts">): Promise<UserAccount | undefined> {
  const id = await rootId(deps);
  return id === undefined ? undefined : deps.accounts.user(id);
}

/**
 * As memory has it, which may be old: for whoever keeps the account in case the database goes away. That wakes no process that
 * rests, where a lookup would.
 */
export async function keptRoot(deps: Pick<Deps, "db" | "accounts">): Promise<UserAccount | undefined> {
  const id = await rootId(deps);
  return id === undefined ? undefined : (deps.accounts.cachedUser(id) ?? deps.accounts.user(id));
}

/** Where a notice by e-mail goes: the address for notices, else the account's own; empty for neither. */
function addressOf(user: Pick<UserAccount, "email">, setting: UserSetting): string {
  return setting.notification_email || user.email;
}

/**
 * Refuses a webhook whose body would cross foreign networks in clear: http is for what UPSTREAM_NETWORKS opens, and those are
 * administrators' alone. Nobody else's is looked up: the answer would say what lies in them. Throws a Failure `webhook_insecure`.
 */
export async function checkWebhook(
  { reach }: Pick<Deps, "reach">,
  { role }: Pick<UserAccount, "role">,
  url: string,
): Promise<void> {
  const isSecure = URL.parse(url)?.protocol === "https:";
  if (!isSecure && (role < Role.admin || !(await reach.opens(url))))
    throw new Failure("client", "webhook_insecure", { param: "webhook_url" });
}

type Receiver = Pick<UserAccount, "id" | "email" | "role">;

/**
 * Sends one notice the way the setting says and resolves when the receiver took it: for tests, which are reported. Throws
 * Failures: `mail_missing`, `smtp_missing`, `mail_failed`, `webhook_missing`, `webhook_insecure`, `webhook_answered`, and
 * those of the guard.
 */
export async function deliver(
  deps: Omit<DeliverDeps, "db" | "logger">,
  user: Omit<Receiver, "id">,
  setting: UserSetting,
  notice: Notice,
): Promise<void> {
  if (setting.notify_type === "webhook") return toWebhook(deps, user, setting, notice);
  const { server, to } = mailWay(deps, user, setting);
  try {
    await sendMail(server, noticeLetter(deps, to, languageFor(deps, setting), notice));
  } catch (error) {
    // The one address that a user typed may be wrong; root's own letters must arrive.
    if (user.role >= Role.root || !isOfAddress(error)) deps.inbox.raise({ kind: "mail" });
    throw error;
  }
  deps.inbox.gone("mail");
}

/**
 * The same by way of the outbox: a letter that does not go now is kept and tried again. Throws like `deliver` otherwise, and
 * `maintenance` where a webhook would leave a quiet site.
 */
export async function deliverKept(
  deps: DeliverDeps,
  user: Receiver,
  setting: UserSetting,
  notice: Notice,
): Promise<void> {
  if (setting.notify_type === "webhook") {
    refuseWhenQuiet(deps.options);
    return toWebhook(deps, user, setting, notice);
  }
  const { to } = mailWay(deps, user, setting);
  const letter = noticeLetter(deps, to, languageFor(deps, setting), notice);
  await postNow(deps, { userId: user.id, kind: notice.type, letter });
}

const languageFor = ({ options }: Pick<Deps, "options">, setting: UserSetting) =>
  setting.language ?? options.get("site.language");

/** Where a letter goes, and by whom. */
function mailWay(
  deps: Pick<Deps, "options">,
  user: Omit<Receiver, "id">,
  setting: UserSetting,
): { to: string; server: MailServer } {
  const to = addressOf(user, setting);
  if (to === "") throw refuse("mail_missing");
  const server = mailServer(deps);
  if (!server) throw refuse("smtp_missing");
  return { to, server };
}

/**
 * Administrators' webhooks may lie in the networks where their channels may lie, everybody else's at public addresses only.
 */
async function toWebhook(
  deps: Omit<DeliverDeps, "db" | "logger">,
  user: Omit<Receiver, "id">,
  setting: UserSetting,
  notice: Notice,
): Promise<void> {
  const { webhook_url: url } = setting;
  if (url === undefined || url === "") throw refuse("webhook_missing");
  await checkWebhook(deps, user, url);
  const isTrusted = user.role >= Role.admin;
  const allow = isTrusted ? deps.reach.networks(url, { baseUrl: url, setting: {} }) : [];
  const webhook = { url, secret: openSecret(deps.seal, setting), allow };
  return callWebhook(outboundOf(deps), webhook, notice, deps.clock.nowMs());
}

/** Whether the server refused the receiver, and nothing else. */
export function isOfAddress(error: unknown): boolean {
  const cause = error instanceof Failure ? error.cause : error;
  return (cause as { command?: unknown } | undefined)?.command === "RCPT TO";
}

/** Whether a notice would go anywhere at all: without address or server it is silently left out. */
export function isReachable(deps: Pick<Deps, "options">, user: UserAccount): boolean {
  const { setting } = user;
  if (setting.notify_type === "webhook") return Boolean(setting.webhook_url);
  return addressOf(user, setting) !== "" && mailServer(deps) !== undefined;
}

/** Leaves the notice's row in the root user's log; answers who that is. */
async function logForRoot(
  deps: Pick<NotifyDeps, "db" | "accounts" | "ledger">,
  { content, channelId }: OperatorNotice,
): Promise<UserAccount | undefined> {
  const root = await rootAccount(deps);
  if (!root) return undefined;
  await deps.ledger.log({
    type: LogType.system,
    userId: root.id,
    username: root.username,
    content: content.zh,
    ...(channelId === undefined ? {} : { channelId }),
  });
  return root;
}

/** For what the inbox tells: only the row in the log. Never throws. */
export async function logNotice(
  deps: Pick<NotifyDeps, "db" | "accounts" | "ledger" | "logger">,
  notice: OperatorNotice,
): Promise<void> {
  try {
    await logForRoot(deps, notice);
  } catch (error) {
    deps.logger.warn("notice could not be logged", { type: notice.type, error: String(error) });
  }
}

/** Tells the root user. Resolves when the log has it and sending was tried; never throws. */
export async function notifyRoot(deps: NotifyDeps, notice: OperatorNotice): Promise<void> {
  try {
    const root = await logForRoot(deps, notice);
    if (!root) return;
    if (!isReachable(deps, root) || isTooMany(deps, notice.type)) return;
    const language = root.setting.language ?? deps.options.get("site.language");
    const { type, title, content } = notice;
    await deliverKept(deps, root, root.setting, { type, title: title[language], content: content[language] });
  } catch (error) {
    deps.logger.warn("notice could not be sent", { type: notice.type, error: String(error) });
  }
}
