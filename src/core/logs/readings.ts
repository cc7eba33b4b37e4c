// What rows of the log say, in English: the sentences of sentences.ts as they stand in rows, those of other gateways with
// the same words included. Refuses to guess: a sentence that is none of them stays as it was written.

/** Words of a charge, the longer before those that they contain. */
const CHARGE_WORDS: readonly (readonly [string, string])[] = [
  ["模型固定价格", "fixed price"],
  ["模型价格", "price per call"],
  ["模型倍率", "model ratio"],
  ["音频补全倍率", "audio output ratio"],
  ["音频倍率", "audio ratio"],
  ["补全倍率", "output ratio"],
  ["分组倍率", "group ratio"],
  ["操作", "action"],
  ["大小", "size"],
  ["品质", "quality"],
  ["模型", "model"],
  ["，", ", "],
];
const CHARGE = /^模型(?:固定价格|价格|倍率) /;
const CJK = /[\u3000-\u9fff\uff00-\uffef]/;

function charge(text: string): string | undefined {
  let english = text;
  for (const [word, meaning] of CHARGE_WORDS) english = english.replaceAll(word, meaning);
  return CJK.test(english) ? undefined : capitalised(english);
}

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** `＄1.50 额度` and `750000 点额度`. */
function amount(text: string): string {
  return text.replace(/＄([\d.]+) 额度/g, "$$$1").replace(/(\d+) 点额度/g, "$1 units of quota");
}

type Reading = readonly [pattern: RegExp, say: (...found: string[]) => string];

const READINGS: readonly Reading[] = [
  [/^模型测试$/, () => "Channel test"],
  [/^渠道探测$/, () => "Channel probe"],
  [/^通过 weir rescue 链接登录$/, () => "Signed in by a link of weir rescue"],
  [/^所有通道测试已完成$/, () => "All channels have been tested"],
  [
    /^管理员将用户额度从 (.+?)修改为 (.+?)(?:，原因：([^]*))?$/,
    (before, after, reason) =>
      `An administrator changed the balance from ${amount(before ?? "")} to ${amount(after ?? "")}${reason === undefined ? "" : `: ${reason}`}`,
  ],
  [
    /^更换令牌密钥：(.*)，旧密钥立即失效$/,
    (name) => `New secret for the key ${name}; the old one ended at once`,
  ],
  [
    /^更换令牌密钥：(.*)，旧密钥 (\d+) 秒后失效$/,
    (name, seconds) => `New secret for the key ${name}; the old one ends after ${seconds} seconds`,
  ],
  [/^通过 (.+) 账户 (.+) 注册$/, (provider, account) => `Registered by the ${provider} account ${account}`],
  [/^新用户注册赠送 (.+)$/, (quota) => `Given to the new account: ${amount(quota ?? "")}`],
  [/^使用邀请码赠送 (.+)$/, (quota) => `Given for the invitation code used: ${amount(quota ?? "")}`],
  [/^邀请用户赠送 (.+)$/, (quota) => `Earned by inviting a user: ${amount(quota ?? "")}`],
  [
    /^被邀请用户的首笔订单已全额退回，收回邀请奖励 (.+)$/,
    (quota) =>
      `The invited user's first order was refunded in full; reward taken back: ${amount(quota ?? "")}`,
  ],
  [
    /^被邀请用户的订单退款未成功，返还邀请奖励 (.+)$/,
    (quota) => `The refund of the invited user's order failed; reward given again: ${amount(quota ?? "")}`,
  ],
  [/^通过兑换码充值 (.+)，兑换码ID (\d+)$/, (quota, id) => `Redeemed code ${id} for ${amount(quota ?? "")}`],
  [
    /^使用在线充值成功，充值金额: (.+)，支付金额：([\d.]+)$/,
    (quota, money) => `Topped up online: ${amount(quota ?? "")}, paid ${money}`,
  ],
  [
    /^获得套餐「(.+)」，每周期额度 (.+)$/,
    (plan, quota) => `Plan “${plan}”: ${amount(quota ?? "")} each period`,
  ],
  [
    /^管理员手动完成订单 (\w+)，原因：([^]*)$/,
    (order, reason) => `Order ${order} completed by hand: ${reason}`,
  ],
  [
    /^订单 (\w+) 退款，扣除额度 (.+)$/,
    (order, quota) => `Order ${order} refunded; taken back ${amount(quota ?? "")}`,
  ],
  [
    /^订单 (\w+) 退回撤销，返还额度 (.+)$/,
    (order, quota) => `Refund of order ${order} undone; given back ${amount(quota ?? "")}`,
  ],
  [/^构图失败 (\S+)，补偿 (.+)$/, (id, quota) => `Drawing ${id} failed; refunded ${amount(quota ?? "")}`],
  [
    /^异步任务执行失败 (\S+)，补偿 (.+)$/,
    (id, quota) => `Task ${id} failed; refunded ${amount(quota ?? "")}`,
  ],
  [/^构图失败 (\S+)$/, (id) => `Drawing ${id} failed`],
  [/^异步任务执行失败 (\S+)$/, (id) => `Task ${id} failed`],
  [
    /^一分钟内另有 (\d+) 次相同原因的错误未逐条记录：([^]*)$/,
    (count, sample) =>
      `${count} more errors with the same reason within a minute, not listed one by one: ${sample}`,
  ],
  [
    /^通道「(.*)」（#(\d+)）已被禁用，原因：([^]*)$/,
    (name, id, reason) => `Channel “${name}” (#${id}) was disabled: ${readInEnglish(reason ?? "") ?? reason}`,
  ],
  [/^通道「(.*)」（#(\d+)）已被禁用$/, (name, id) => `Channel “${name}” (#${id}) was disabled`],
  [/^通道「(.*)」（#(\d+)）已被启用$/, (name, id) => `Channel “${name}” (#${id}) was enabled`],
  [
    /^定时调价 (.*) 未生效，以下项目在排期后已被修改：([^]*)$/,
    (title, names) => `Scheduled prices ${title} not applied: changed since they were scheduled: ${names}`,
  ],
  [
    /^定时调价 (.*) 未生效，选项校验未通过（(\w+)）$/,
    (title, code) => `Scheduled prices ${title} not applied: an option refuses them (${code})`,
  ],
  [
    /^响应时间 ([\d.]+)s 超过阈值 ([\d.]+)s$/,
    (took, limit) => `it took ${took} s to answer, the limit is ${limit} s`,
  ],
  [/^余额不足$/, () => "its balance is used up"],
  [/^没有启用的密钥$/, () => "none of its keys is on"],
];

/** The same in English; undefined where the text is none of the log's sentences. */
export function readInEnglish(text: string): string | undefined {
  if (!CJK.test(text)) return undefined;
  if (CHARGE.test(text)) return charge(text);
  for (const [pattern, say] of READINGS) {
    const found = pattern.exec(text);
    if (found) return say(...found.slice(1));
  }
  return undefined;
}
