// Every Chinese sentence that is written into a log row, or into a notice that leaves one: old clients of the log read
// them as they stand. The console says the same in the reader's language from the row's other fields.
import type { Language } from "../../shared/enums.ts";
import { auditText } from "../../shared/audit-actions.ts";
import type { AuditAction, AuditParams } from "../../shared/audit-actions.ts";

/** For what also leaves the house, where its receiver's language counts. */
export type Sentence = Readonly<Record<Language, string>>;

/** Ratios and prices as the log writes them. */
const figure = (value: number): string => value.toFixed(2);

/** What a call's charge was reckoned with, as far as the sentence names it. */
export interface ChargeFigures {
  readonly ratios: {
    /** A fixed price, where the ratios do not count. */
    readonly callPrice?: number | undefined;
    readonly modelRatio: number;
    readonly completionRatio: number;
    readonly audioRatio: number;
    readonly audioCompletionRatio: number;
  };
  readonly groupRatio: number;
}

export function chargeSentence({ ratios, groupRatio }: ChargeFigures): string {
  const { callPrice, modelRatio, completionRatio } = ratios;
  if (callPrice !== undefined) return fixedChargeSentence(callPrice, groupRatio);
  return `模型倍率 ${figure(modelRatio)}，补全倍率 ${figure(completionRatio)}，分组倍率 ${figure(groupRatio)}`;
}

/** The same for a turn of a realtime session, whose sound has ratios of its own. */
export function spokenChargeSentence({ ratios, groupRatio }: ChargeFigures): string {
  const { callPrice, modelRatio, completionRatio, audioRatio, audioCompletionRatio } = ratios;
  if (callPrice !== undefined) return fixedChargeSentence(callPrice, groupRatio);
  return `模型倍率 ${figure(modelRatio)}，补全倍率 ${figure(completionRatio)}，音频倍率 ${figure(audioRatio)}，音频补全倍率 ${figure(audioCompletionRatio)}，分组倍率 ${figure(groupRatio)}`;
}

function fixedChargeSentence(callPrice: number, groupRatio: number): string {
  return `模型价格 ${figure(callPrice)}，分组倍率 ${figure(groupRatio)}`;
}

/** Behind a charge: the name that was called, where many names share one price. */
export function calledModel(model: string): string {
  return `，模型 ${model}`;
}

/** Behind a charge: what makes one picture dearer than another. */
export function pictureRemark(size: string, quality: string): string {
  return `大小 ${size}, 品质 ${quality}`;
}

export function taskCharge(price: { price: number; groupRatio: number }, action: string): string {
  return `模型固定价格 ${figure(price.price)}，分组倍率 ${figure(price.groupRatio)}，操作 ${action}`;
}

/** Of a drawing, by its upstream's id. */
export function drawingFailed(id: string): string {
  return `构图失败 ${id}`;
}

/** Of any other task, by its id. */
export function taskFailed(id: string): string {
  return `异步任务执行失败 ${id}`;
}

export function refunded(failure: string, quota: string): string {
  return `${failure}，补偿 ${quota}`;
}

/** One row for all further errors of a minute that have the same reason. */
export function moreErrors(count: number, sample: string): string {
  return `一分钟内另有 ${count} 次相同原因的错误未逐条记录：${sample}`;
}

/** `names`: what was changed since the draft was scheduled; without any an option refused it, by the code. */
export function priceDraftFailed(title: string, { names, code }: { names: string; code: string }): string {
  const reason = names === "" ? `选项校验未通过（${code}）` : `以下项目在排期后已被修改：${names}`;
  return `定时调价 ${title} 未生效，${reason}`;
}

/** Content and key name of the row that a test of a channel leaves. */
export const CHANNEL_TEST = "模型测试";

/** The same of a probe, which goes out by itself. */
export const CHANNEL_PROBE = "渠道探测";

export function newUserGift(quota: string): string {
  return `新用户注册赠送 ${quota}`;
}

/** For the one who came by an invitation. */
export function inviteeGift(quota: string): string {
  return `使用邀请码赠送 ${quota}`;
}

/** For the one whose invitation it was. */
export function inviterGift(quota: string): string {
  return `邀请用户赠送 ${quota}`;
}

/** The money of the order that earned it went back. */
export function inviterGiftBack(quota: string): string {
  return `被邀请用户的首笔订单已全额退回，收回邀请奖励 ${quota}`;
}

/** That refund failed. */
export function inviterGiftAgain(quota: string): string {
  return `被邀请用户的订单退款未成功，返还邀请奖励 ${quota}`;
}

export function quotaChanged(before: string, after: string, reason = ""): string {
  return `管理员将用户额度从 ${before}修改为 ${after}${reason === "" ? "" : `，原因：${reason}`}`;
}

/** Of the audit trail; a changed balance has the older sentence above. */
const AUDIT_SENTENCES: Readonly<Record<Exclude<AuditAction, "user.quota">, string>> = {
  "user.create": "管理员创建了用户 {{name}}",
  "user.update": "管理员修改了用户资料（{{fields}}）",
  "user.password": "管理员重置了用户密码",
  "user.disable": "管理员禁用了用户",
  "user.enable": "管理员启用了用户",
  "user.delete": "管理员删除了用户",
  "user.promote": "管理员将用户提升为管理员",
  "user.demote": "管理员将管理员降级为普通用户",
  "user.remove": "管理员彻底移除了用户 {{name}}",
  "user.factor_reset": "管理员重置了用户的{{factor}}",
  "user.group": "管理员将用户分组改为 {{group}} {{reason}}",
  "user.letter": "管理员向用户发送了邮件 {{reason}}",
  "user.unbind": "管理员解除了用户的 {{provider}} 绑定",
  "user.sessions_revoke": "管理员注销了用户的全部设备",
  "plan.create": "创建了套餐 {{plan}}",
  "plan.update": "修改了套餐 {{plan}}（{{fields}}）",
  "plan.delete": "删除了套餐 {{plan}}",
  "plan.grant": "赠送了套餐 {{plan}} {{reason}}",
  "plan.cancel": "取消了套餐 {{plan}} {{reason}}",
  "plan.refund": "退还了套餐 {{plan}} {{reason}}",
  "redemption.create": "生成了 {{count}} 个兑换码「{{name}}」，每个 {{quota}} 点额度",
  "redemption.update": "将兑换码「{{name}}」的额度从 {{before}} 改为 {{quota}} 点",
  "order.complete": "管理员手动完成订单 {{order}}，原因：{{reason}}",
  "order.refund": "管理员对订单 {{order}} 发起了退款，原因：{{reason}}",
  "option.set": "设置 {{key}} 从「{{old}}」改为「{{new}}」",
  "provider.create": "添加了登录方式 {{provider}}",
  "provider.update": "修改了登录方式 {{provider}}",
  "provider.delete": "删除了登录方式 {{provider}}",
  "cost.set": "设置了渠道「{{name}}」的 {{count}} 条成本价格",
  "cost.delete": "删除了渠道 #{{channel}} 的成本价格：{{name}}",
  "cost.import": "为渠道「{{name}}」导入了 {{source}} 账单（{{count}} 行）",
  "log.clear": "清理了 {{before}} 之前的 {{rows}} 条日志",
  "log.export": "导出了日志 {{types}}",
  "account.registered": "注册了账户",
  "account.names": "修改了账户资料（{{fields}}）",
  "account.deleted": "注销了账户",
  "account.erased": "注销了账户并清除了个人数据",
  "email.set": "将邮箱改为 {{email}}",
  "password.changed": "修改了密码",
  "password.reset": "通过邮件重置了密码",
  "identity.bound": "绑定了 {{provider}} {{account}}",
  "identity.unbound": "解除了 {{provider}} {{account}} 的绑定",
  "identity.claimed": "{{provider}} {{account}} 的绑定由用户名改为数字 ID",
  "totp.enabled": "启用了验证器",
  "totp.disabled": "停用了验证器",
  "backup.renewed": "重新生成了备用码",
  "passkey.added": "添加了通行密钥 {{name}}",
  "passkey.renamed": "将通行密钥改名为 {{name}}",
  "passkey.removed": "移除了通行密钥 {{name}}",
  "token.renewed": "重新生成了系统访问令牌",
  "key.rotated": "更换了令牌 {{name}} 的密钥",
  "session.revoked": "注销了设备 {{device}}",
  "session.revoked_others": "注销了其他全部设备",
  "login.ok": "登录成功：{{device}}，{{method}} {{provider}}",
  "login.rescue": "通过 weir rescue 链接登录",
  "login.failed": "登录失败 {{count}} 次：{{device}}",
  "login.locked": "登录尝试过多，已暂时拒绝：{{device}}",
};

/** What codes among the values of a sentence are called. */
const AUDIT_WORDS: Readonly<Record<string, string>> = {
  "method.password": "密码",
  "method.passkey": "通行密钥",
  "method.provider": "第三方账户",
  "method.rescue": "救援链接",
  "factor.totp": "验证器",
  "factor.passkey": "通行密钥",
  "device.": "未知设备",
};

/** The sentence of an action; its balance's is written by whoever knows how the site shows money. */
export function auditSentence(action: AuditAction, params: AuditParams): string {
  if (action === "user.quota") return action;
  return auditText(AUDIT_SENTENCES[action], params, (name, value) => AUDIT_WORDS[`${name}.${value}`]);
}

export function redeemed(quota: string, redemptionId: number): string {
  return `通过兑换码充值 ${quota}，兑换码ID ${redemptionId}`;
}

/** An order that its rail reported as paid; `money` with its two decimals. */
export function orderPaid(quota: string, money: string): string {
  return `使用在线充值成功，充值金额: ${quota}，支付金额：${money}`;
}

/** A plan has been bought or given; `quota` is that of one period. */
export function planBegun(title: string, quota: string): string {
  return `获得套餐「${title}」，每周期额度 ${quota}`;
}

export function orderCompleted(tradeNo: string, reason: string): string {
  return `管理员手动完成订单 ${tradeNo}，原因：${reason}`;
}

/** What a refund or a dispute took from the balance, or gave back to it. */
export function orderTakenBack(quota: string, tradeNo: string, isGivenBack: boolean): string {
  return `订单 ${tradeNo} ${isGivenBack ? "退回撤销，返还额度" : "退款，扣除额度"} ${quota}`;
}

interface NamedChannel {
  id: number;
  name: string;
}

export function channelDisabled({ id, name }: NamedChannel): string {
  return `通道「${name}」（#${id}）已被禁用`;
}

export function channelDisabledFor(channel: NamedChannel, reason: string): string {
  return `${channelDisabled(channel)}，原因：${reason}`;
}

export function channelEnabled({ id, name }: NamedChannel): string {
  return `通道「${name}」（#${id}）已被启用`;
}

/** Reasons for which a channel is disabled by itself. */
export function channelTooSlow(seconds: number, limitSeconds: number): Sentence {
  const [took, limit] = [figure(seconds), figure(limitSeconds)];
  return {
    zh: `响应时间 ${took}s 超过阈值 ${limit}s`,
    en: `it took ${took} s to answer, the limit is ${limit} s`,
  };
}

export const CHANNEL_WITHOUT_BALANCE: Sentence = { zh: "余额不足", en: "its balance is used up" };

export const CHANNEL_WITHOUT_KEY: Sentence = { zh: "没有启用的密钥", en: "none of its keys is on" };

export const CHANNELS_TESTED = "所有通道测试已完成";

/** Of an API key that got a new secret. */
export function tokenRotated(name: string, graceSeconds: number): string {
  return graceSeconds === 0
    ? `更换令牌密钥：${name}，旧密钥立即失效`
    : `更换令牌密钥：${name}，旧密钥 ${graceSeconds} 秒后失效`;
}

/** Of root, who came in by the link of `weir rescue`. */
export const ROOT_RESCUED = "通过 weir rescue 链接登录";

/** Of a way in by a provider: its name, and what the foreign account is known by. */
export function registeredBy(provider: string, account: string): string {
  return `通过 ${provider} 账户 ${account} 注册`;
}
