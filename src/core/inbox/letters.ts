// What root is told of the inbox, by letter or webhook as root's own notices go: which items, in which words.
// Refuses a letter about letters: that they fail is told by webhook, or not at all.
import enTexts from "../../../locales/en/inbox.json" with { type: "json" };
import zhTexts from "../../../locales/zh/inbox.json" with { type: "json" };
import type { Notice } from "../../net/notify.ts";
import { ChannelStatus, Role } from "../../shared/enums.ts";
import type { Language } from "../../shared/enums.ts";
import { inboxHref, inboxKinds, inboxSentence } from "../../shared/inbox.ts";
import type { InboxKind, SaidItem } from "../../shared/inbox.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { channelDisabledNotice, channelEnabledNotice } from "../users/notice-texts.ts";
import type { OperatorNotice } from "../users/notice-texts.ts";
import { deliverKept, isReachable } from "../users/notify.ts";
import type { DeliverDeps } from "../users/notify.ts";

const TEXTS: Record<Language, Readonly<Record<string, string>>> = { zh: zhTexts, en: enTexts };
/** More letters at one time become one. */
const MOST_SINGLE = 3;
/** Of one letter about many. */
const MOST_LINES = 50;

/** The dictionary of the inbox as the console reads it, with its plural forms. */
function translatorOf(language: Language) {
  const plural = new Intl.PluralRules(language);
  return (key: string, params: Readonly<Record<string, string | number>> = {}): string => {
    const name = key.replace(/^inbox\./, "");
    const texts = TEXTS[language];
    const form =
      typeof params["count"] === "number" ? texts[`${name}_${plural.select(params["count"])}`] : undefined;
    return (form ?? texts[name] ?? key).replace(/\{\{(\w+)\}\}/g, (_, hole: string) =>
      String(params[hole] ?? ""),
    );
  };
}

/** A channel's notices keep the form that receivers of webhooks know. */
function channelNotice({ subject, params }: SaidItem, isBack: boolean): OperatorNotice {
  const channel = { id: Number(subject), name: String(params["name"] ?? "") };
  const status = isBack ? ChannelStatus.enabled : ChannelStatus.autoDisabled;
  const type = `channel_update_${channel.id}_${status}`;
  if (isBack) return channelEnabledNotice(channel, type);
  const reason = String(params["reason"] ?? "");
  return channelDisabledNotice(channel, type, { zh: reason, en: String(params["reason_en"] ?? reason) });
}

interface Letter {
  item: SaidItem;
  /** It is over. */
  isBack: boolean;
}

/** `serverAddress` may be unknown: then nothing is linked. */
function noticeOf({ item, isBack }: Letter, language: Language, serverAddress: string): Notice {
  if (item.kind === "channel") {
    const { type, title, content } = channelNotice(item, isBack);
    return { type, title: title[language], content: content[language] };
  }
  const t = translatorOf(language);
  const title = t(`inbox.kind.${item.kind}`);
  const said = inboxSentence(t, language, item);
  return withLink(
    { type: `inbox_${item.kind}`, title, content: said },
    inboxHref(item, Role.root) ?? "/inbox",
    {
      label: t("inbox.letter.link"),
      serverAddress,
    },
  );
}

function withLink(notice: Notice, href: string, about: { label: string; serverAddress: string }): Notice {
  if (about.serverAddress === "") return notice;
  const link = about.serverAddress.replace(/\/+$/, "") + href;
  return {
    ...notice,
    content: `${notice.content}\n${about.label}${link}`,
    letter: {
      lines: notice.content.split("\n"),
      links: [{ label: about.label.replace(/[:：]\s*$/, ""), url: link }],
    },
  };
}

/** Many at once as one. */
function digestOf(letters: readonly Letter[], language: Language, serverAddress: string): Notice {
  const t = translatorOf(language);
  const lines = letters.slice(0, MOST_LINES).map((letter) => noticeOf(letter, language, "").content);
  if (letters.length > MOST_LINES) lines.push("…");
  const notice = {
    type: "inbox",
    title: t("inbox.letter.more", { count: letters.length }),
    content: lines.join("\n"),
  };
  return withLink(notice, "/inbox", { label: t("inbox.letter.link"), serverAddress });
}

/** Whether root gets letters of this kind: the switch is on, root can be reached, and it is no letter about letters. */
export function wantsLetter(deps: Pick<Deps, "options">, root: UserAccount, kind: InboxKind): boolean {
  if ((kind === "mail" || kind === "letter") && root.setting.notify_type !== "webhook") return false;
  return deps.options.get(`inbox.letters.${inboxKinds[kind].letters}`) && isReachable(deps, root);
}

/** Sends them, each by itself or many as one; answers those that did not arrive. Never throws. */
export async function sendLetters<L extends Letter>(
  deps: DeliverDeps,
  root: UserAccount,
  letters: readonly L[],
): Promise<L[]> {
  const language = root.setting.language ?? deps.options.get("site.language");
  const serverAddress = deps.options.get("ServerAddress");
  const send = async (notice: Notice, of: readonly L[]): Promise<readonly L[]> => {
    try {
      await deliverKept(deps, root, root.setting, notice);
      return [];
    } catch (error) {
      deps.logger.warn("an item of the inbox could not be told", { type: notice.type, error: String(error) });
      return of;
    }
  };
  if (letters.length > MOST_SINGLE)
    return [...(await send(digestOf(letters, language, serverAddress), letters))];
  const failed: L[] = [];
  for (const letter of letters)
    failed.push(...(await send(noticeOf(letter, language, serverAddress), [letter])));
  return failed;
}
