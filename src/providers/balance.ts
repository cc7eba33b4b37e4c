// What is left on a provider's account: which calls to make for a channel, and how to read the answers.
// Refuses to fetch: it is handed a function that asks one address with one key; amounts are in the provider's own unit.
import { Failure } from "../shared/failures.ts";
import { siteOf } from "./address.ts";
import type { BalanceKind, ProviderRow, UpstreamChannel } from "./define.ts";

/** GET of a JSON object; throws a Failure for anything else. */
type AskJson = (url: string, headers: Record<string, string>) => Promise<Record<string, unknown>>;

export interface BalanceQuestion {
  row: ProviderRow;
  channel: UpstreamChannel;
  key: string;
  ask: AskJson;
  nowMs: number;
  /** Price of a dollar in the operator's currency, for accounts that are kept in it (option Price). */
  currencyPerDollar: number;
}

const DAY_MS = 86_400_000;

/** Hosts of account calls that differ from the provider's default address; a channel's own address wins over them. */
const ACCOUNT_HOSTS: Readonly<Partial<Record<BalanceKind, string>>> = {
  aiproxy: "https://aiproxy.io",
  api2gpt: "https://api.api2gpt.com",
  aigc2d: "https://api.aigc2d.com",
};

function unread(what: string): Failure {
  return new Failure("upstream-down", "balance_unreadable", { internal: what });
}

function amount(value: unknown, what: string): number {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof number !== "number" || !Number.isFinite(number)) throw unread(what);
  return number;
}

function part(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw unread(what);
  return value as Record<string, unknown>;
}

const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

async function openaiBilling(base: string, question: BalanceQuestion): Promise<number> {
  const headers = { authorization: `Bearer ${question.key}` };
  const subscription = await question.ask(`${base}/v1/dashboard/billing/subscription`, headers);
  const limit = amount(subscription["hard_limit_usd"], "hard_limit_usd");
  const now = new Date(question.nowMs);
  const monthStart = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  // Prepaid accounts without a payment method are reported over a hundred days.
  const since = subscription["has_payment_method"] === true ? monthStart : question.nowMs - 100 * DAY_MS;
  const range = `start_date=${day(since)}&end_date=${day(question.nowMs + DAY_MS)}`;
  const usage = await question.ask(`${base}/v1/dashboard/billing/usage?${range}`, headers);
  return limit - amount(usage["total_usage"], "total_usage") / 100;
}

/** Moonshot's site outside of China keeps accounts in dollars; what stands elsewhere is taken for the Chinese one. */
const isInternational = (base: string): boolean =>
  /^https?:\/\/(?:[\w-]+\.)*moonshot\.ai(?=[:/]|$)/i.test(base);

/** The balance in dollars (in the provider's own currency for SiliconFlow and DeepSeek). Throws `balance_unsupported`. */
export async function readBalance(question: BalanceQuestion): Promise<number> {
  const { row, channel, key, ask } = question;
  const bearer = { authorization: `Bearer ${key}` };
  const host = ACCOUNT_HOSTS[row.balance];
  const base = channel.baseUrl === "" && host !== undefined ? host : siteOf(row, channel);
  if (base === undefined) throw new Failure("client", "balance_unsupported");
  switch (row.balance) {
    case "none":
      throw new Failure("client", "balance_unsupported");
    case "openai-billing":
      return openaiBilling(base, question);
    case "aiproxy": {
      const body = await ask(`${base}/api/report/getUserOverview`, { "api-key": key });
      if (body["success"] === false) throw unread("success");
      return amount(part(body["data"], "data")["totalPoints"], "totalPoints");
    }
    case "api2gpt":
      return amount(
        (await ask(`${base}/dashboard/billing/credit_grants`, bearer))["total_remaining"],
        "total_remaining",
      );
    case "aigc2d":
      return amount(
        (await ask(`${base}/dashboard/billing/credit_grants`, bearer))["total_available"],
        "total_available",
      );
    case "openrouter": {
      const data = part((await ask(`${base.replace(/\/api$/, "")}/api/v1/credits`, bearer))["data"], "data");
      return amount(data["total_credits"], "total_credits") - amount(data["total_usage"], "total_usage");
    }
    case "moonshot": {
      const data = part((await ask(`${base}/v1/users/me/balance`, bearer))["data"], "data");
      const left = amount(data["available_balance"], "available_balance");
      return isInternational(base) ? left : left / (question.currencyPerDollar || 1);
    }
    case "siliconflow": {
      const body = await ask(`${base}/v1/user/info`, bearer);
      if (body["code"] !== 20_000) throw unread("code");
      return amount(part(body["data"], "data")["totalBalance"], "totalBalance");
    }
    case "deepseek": {
      const infos = (await ask(`${base}/user/balance`, bearer))["balance_infos"];
      const list = Array.isArray(infos) ? (infos as unknown[]) : [];
      const found = list
        .map((info) => part(info, "balance_infos"))
        .find((info) => info["currency"] === "CNY");
      return amount((found ?? part(list[0], "balance_infos"))["total_balance"], "total_balance");
    }
  }
}
