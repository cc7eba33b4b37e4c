// The words of notices that leave the house by mail or webhook, in the receiver's language; letter-form.ts says how they look.
import type { Language } from "../../shared/enums.ts";
import type { Notice } from "../../net/notify.ts";
import { channelDisabled, channelDisabledFor, channelEnabled, CHANNELS_TESTED } from "../logs/sentences.ts";
import type { Sentence } from "../logs/sentences.ts";

/** What the operator is told. Its Chinese content is also the log row's. */
export interface OperatorNotice {
  type: string;
  title: Sentence;
  content: Sentence;
  channelId?: number;
}

interface NamedChannel {
  id: number;
  name: string;
}

export function channelDisabledNotice(channel: NamedChannel, type: string, reason: Sentence): OperatorNotice {
  const title = {
    zh: channelDisabled(channel),
    en: `Channel "${channel.name}" (#${channel.id}) was disabled`,
  };
  const content = { zh: channelDisabledFor(channel, reason.zh), en: `${title.en}: ${reason.en}` };
  return { type, title, content, channelId: channel.id };
}

export function channelEnabledNotice(channel: NamedChannel, type: string): OperatorNotice {
  const title = {
    zh: channelEnabled(channel),
    en: `Channel "${channel.name}" (#${channel.id}) was enabled again`,
  };
  return { type, title, content: title, channelId: channel.id };
}

export const CHANNELS_TESTED_NOTICE: OperatorNotice = {
  type: "channel_test",
  title: { zh: "通道测试完成", en: "Channels tested" },
  content: { zh: CHANNELS_TESTED, en: "The test of all channels is done" },
};

/** How many channels have models to add or to take out. */
export function modelsChangedNotice(count: number): OperatorNotice {
  const title = { zh: "上游模型列表有变化", en: "Lists of upstream models have changed" };
  const content = {
    zh: `${count} 个渠道的上游模型列表与本地不一致，请在渠道编辑中查看`,
    en: `Upstream lists differ from the models of channels: ${count}. The channel editor shows what is proposed.`,
  };
  return { type: "upstream_models", title, content };
}

/** `quota` as the site writes it; the address of the site may be unknown. */
export function lowQuotaNotice(language: Language, quota: string, serverAddress: string): Notice {
  const isChinese = language === "zh";
  const link = serverAddress === "" ? "" : `${serverAddress.replace(/\/+$/, "")}/topup`;
  const title = isChinese ? "您的额度即将用尽" : "Your balance is running low";
  const sentence = isChinese
    ? `${title}，当前剩余额度为 ${quota}，为了不影响您的使用，请及时充值。`
    : `${title}: ${quota} is left. Top up in time to keep your calls working.`;
  const label = isChinese ? "充值链接" : "Top up";
  return {
    type: "quota_exceed",
    title,
    content: link === "" ? sentence : `${sentence}\n${label}${isChinese ? "：" : ": "}${link}`,
    letter: { lines: [sentence], links: link === "" ? [] : [{ label, url: link }] },
    values: [title, quota, link, link],
  };
}

/** Most of a budget is spent; `key`: whose it is by name, undefined for the account's own. */
export function budgetNotice(
  language: Language,
  { key, used, budget, until }: { key: string | undefined; used: string; budget: string; until: string },
): Notice {
  if (language === "zh") {
    const whose = key === undefined ? "您的账户" : `您的密钥「${key}」`;
    return {
      type: "budget_warning",
      title: `${whose}的预算即将用完`,
      content: `${whose}在本周期已用 ${used}，预算为 ${budget}。用完后请求将被拒绝，直到 ${until}。`,
    };
  }
  const whose = key === undefined ? "your account" : `your key "${key}"`;
  return {
    type: "budget_warning",
    title: `The budget of ${whose} is nearly used up`,
    content: `${used} of the budget of ${budget} is spent in this period. Once it is used up, calls of ${whose} are refused until ${until}.`,
  };
}

/** What the button "Send a test" sends. */
export function testNotice(language: Language, siteName: string): Notice {
  return language === "zh"
    ? { type: "test", title: "测试通知", content: `这是来自 ${siteName} 的测试通知，说明通知设置可用。` }
    : {
        type: "test",
        title: "Test notice",
        content: `This is a test from ${siteName}: your notices arrive.`,
      };
}
