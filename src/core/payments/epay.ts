// The rail "epay" (易支付): a signed form that the browser posts to the gateway, and a signed callback that says it was paid.
// Refuses callbacks in the order of money.md 6; a signature without a time is replayable, so the state of the order decides.
import { createHash, timingSafeEqual } from "node:crypto";
import type { Deps } from "../deps.ts";
import { minorOf, minorText } from "../../shared/currencies.ts";
import { markPending, noteEvent, receivePayment } from "./orders.ts";
import type { OrderRow, Payment, PaymentDeps } from "./orders.ts";

export const EPAY = "epay";
/** The protocol knows no other. */
export const EPAY_CURRENCY = "CNY";
export const EPAY_SECONDS = 24 * 3600;
const MAX_PARAMETERS = 64;

type Options = Pick<Deps["options"], "get">;

/** Everything stands that keeps others from forging a payment. */
export function isEpayReady(options: Options): boolean {
  return (
    options.get("PayAddress") !== "" &&
    options.get("EpayId") !== "" &&
    options.get("EpayKey") !== "" &&
    options.get("ServerAddress") !== ""
  );
}

/** MD5 over the sorted, non-empty parameters, raw, and the key behind them. */
export function epaySign(parameters: ReadonlyMap<string, string>, key: string): string {
  const text = [...parameters]
    .filter(([name, value]) => value !== "" && name !== "sign" && name !== "sign_type")
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
  return createHash("md5")
    .update(text + key, "utf8")
    .digest("hex");
}

const withoutSlash = (address: string): string => address.replace(/\/+$/, "");

/** Older consoles send `zfb` and `wx`. */
export function epayType(method: string): string {
  if (method === "zfb") return "alipay";
  return method === "wx" ? "wxpay" : method;
}

/** The form that the browser posts, and where to; the order waits from now on. */
export async function epayForm(
  deps: PaymentDeps,
  order: OrderRow,
): Promise<{ url: string; fields: Record<string, string> }> {
  const { options } = deps;
  const site = withoutSlash(options.get("ServerAddress"));
  const callback = withoutSlash(options.get("CustomCallbackAddress")) || site;
  const snapshot = JSON.parse(order.snapshot) as { amount?: number };
  const fields = new Map([
    ["pid", options.get("EpayId")],
    ["type", order.method],
    ["out_trade_no", order.tradeNo],
    ["notify_url", `${callback}/api/user/epay/notify`],
    ["return_url", `${site}/topup?order=${order.tradeNo}`],
    ["name", `TUC${snapshot.amount ?? ""}`],
    ["money", minorText(order.moneyMinor, order.currency)],
    ["device", "pc"],
  ]);
  const sign = epaySign(fields, options.get("EpayKey"));
  await markPending(deps, order.tradeNo);
  return {
    url: `${withoutSlash(options.get("PayAddress"))}/submit.php`,
    fields: { ...Object.fromEntries(fields), sign_type: "MD5", sign },
  };
}

function isSame(given: string, right: string): boolean {
  const a = Buffer.from(given, "utf8");
  const b = Buffer.from(right, "utf8");
  return a.length === b.length && timingSafeEqual(a, b);
}

const PAYLOAD_FIELDS = ["pid", "trade_no", "out_trade_no", "type", "name", "money", "trade_status"];

function reportOf(parameters: ReadonlyMap<string, string>): Payment {
  const text = (name: string): string => parameters.get(name) ?? "";
  const payload = Object.fromEntries(PAYLOAD_FIELDS.map((name) => [name, text(name).slice(0, 200)]));
  return {
    rail: EPAY,
    eventId: createHash("sha256").update(JSON.stringify(payload)).digest("hex"),
    tradeNo: text("out_trade_no"),
    providerRef: text("trade_no"),
    moneyMinor: minorOf(text("money"), EPAY_CURRENCY),
    currency: undefined,
    doubt: "",
    payload,
  };
}

/** `success` once the verdict is durable, review included; `fail` for a bad sign or a database that cannot write. */
export async function epayCallback(deps: PaymentDeps, sent: URLSearchParams): Promise<"success" | "fail"> {
  const entries = [...sent];
  const parameters = new Map(entries);
  // A repeated parameter reads differently to whoever signs and whoever checks.
  if (parameters.size !== entries.length || entries.length > MAX_PARAMETERS) return "fail";
  const signType = parameters.get("sign_type") ?? "";
  if (signType !== "" && signType !== "MD5") return "fail";
  const right = epaySign(parameters, deps.options.get("EpayKey"));
  if (!isSame(parameters.get("sign") ?? "", right)) return "fail";
  if (parameters.get("pid") !== deps.options.get("EpayId")) return "fail";
  const payment = reportOf(parameters);
  try {
    if (parameters.get("trade_status") !== "TRADE_SUCCESS") {
      await noteEvent(deps, payment, "ignored");
      return "success";
    }
    await receivePayment(deps, payment);
    return "success";
  } catch (error) {
    deps.logger.error("a payment could not be entered; the gateway will repeat it", {
      order: payment.tradeNo.slice(0, 64),
      error: String(error),
    });
    return "fail";
  }
}
