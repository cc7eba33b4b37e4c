// The rail "epay" (易支付): a signed form that the browser posts to the gateway, and a signed callback that says it was paid.
// Refuses callbacks in the order of money.md 6; a signature without a time is replayable, so the state of the order decides.
import { createHash, timingSafeEqual } from "node:crypto";
import type { Deps } from "../deps.ts";
import { readerOf } from "../options/definitions.ts";
import { bool, text, url } from "../options/kinds.ts";
import { minorOf, minorText } from "../../shared/currencies.ts";
import { markPending, noteEvent, receivePayment } from "./orders.ts";
import type { OrderRow, Payment, PaymentDeps } from "./orders.ts";
import type { PaymentRail, PaymentStart, RailCall, RailDeps, RailOption } from "./rail.ts";

export const EPAY = "epay";
/** The protocol knows no other. */
const EPAY_CURRENCY = "CNY";
const WAIT_SECONDS = 24 * 3600;
const MAX_PARAMETERS = 64;
const MAX_CALLBACK_BYTES = 8 * 1024;
const MAX_ANSWER_BYTES = 64 * 1024;
const ASK_TIMEOUT_MS = 10_000;

const settings = {
  PayAddress: {
    kind: url,
    default: "",
    isRequired: true,
    // Whoever pays is sent back to this site, and the rail calls it: both by its own address.
    needs: { key: "ServerAddress", code: "option_needs_server_address" },
    texts: {
      title: { en: "Payment gateway", zh: "支付网关地址" },
      help: {
        en: "Base address of the epay gateway. Online top-up needs it together with the merchant ID and key.",
        zh: "易支付网关的基础地址。在线充值需要同时填写商户 ID 和密钥。",
      },
    },
  },
  EpayId: {
    kind: text,
    default: "",
    isRequired: true,
    texts: {
      title: { en: "Merchant ID", zh: "商户 ID" },
      help: {
        en: "Your ID (pid) at the payment gateway.",
        zh: "您在支付网关的商户 ID（pid）。",
      },
    },
  },
  EpayKey: {
    kind: text,
    default: "",
    secret: true,
    isRequired: true,
    texts: {
      title: { en: "Merchant key", zh: "商户密钥" },
      help: {
        en: "Signs payments and their callbacks. It is never shown again.",
        zh: "用于支付及回调的签名，保存后不再显示。",
      },
    },
  },
  /** The question names the merchant key in its address: not every gateway keeps those out of its log. */
  EpayAskOrders: {
    kind: bool,
    default: "false",
    texts: {
      title: { en: "Ask for open orders", zh: "主动查询未完成订单" },
      help: {
        en: "Orders that have waited 10 minutes are asked for at the gateway. The question carries the merchant key in its address.",
        zh: "等待超过 10 分钟的订单会向网关查询。查询地址中带有商户密钥。",
      },
    },
  },
} as const satisfies Record<string, RailOption>;

const { valueOf } = readerOf(settings);

type Options = Pick<Deps["options"], "get">;

/** Everything stands that keeps others from forging a payment. */
function isEpayReady(options: Options): boolean {
  return (
    valueOf(options, "PayAddress") !== "" &&
    valueOf(options, "EpayId") !== "" &&
    valueOf(options, "EpayKey") !== "" &&
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
function epayType(method: string): string {
  if (method === "zfb") return "alipay";
  return method === "wx" ? "wxpay" : method;
}

/** The form that the browser posts, and where to; the order waits from now on. */
async function epayForm(deps: PaymentDeps, order: OrderRow): Promise<PaymentStart> {
  const { options } = deps;
  const site = withoutSlash(options.get("ServerAddress"));
  const callback = withoutSlash(options.get("CustomCallbackAddress")) || site;
  const snapshot = JSON.parse(order.snapshot) as { amount?: number; plan?: string };
  const fields = new Map([
    ["pid", valueOf(options, "EpayId")],
    ["type", order.method],
    ["out_trade_no", order.tradeNo],
    ["notify_url", `${callback}/api/user/epay/notify`],
    ["return_url", `${site}/topup?order=${order.tradeNo}`],
    ["name", snapshot.plan ?? `TUC${snapshot.amount ?? ""}`],
    ["money", minorText(order.moneyMinor, order.currency)],
    ["device", "pc"],
  ]);
  const sign = epaySign(fields, valueOf(options, "EpayKey"));
  await markPending(deps, order.tradeNo);
  return {
    url: `${withoutSlash(valueOf(options, "PayAddress"))}/submit.php`,
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
async function epayCallback(deps: PaymentDeps, sent: URLSearchParams): Promise<"success" | "fail"> {
  const entries = [...sent];
  const parameters = new Map(entries);
  // A repeated parameter reads differently to whoever signs and whoever checks.
  if (parameters.size !== entries.length || entries.length > MAX_PARAMETERS) return "fail";
  const signType = parameters.get("sign_type") ?? "";
  if (signType !== "" && signType !== "MD5") return "fail";
  const right = epaySign(parameters, valueOf(deps.options, "EpayKey"));
  if (!isSame(parameters.get("sign") ?? "", right)) return "fail";
  if (parameters.get("pid") !== valueOf(deps.options, "EpayId")) return "fail";
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

/** GET: the query alone; POST: the form alone. Other bodies have no fields, which no signature fits. */
function sentFields({ method, query, contentType, body }: RailCall): URLSearchParams {
  if (method === "GET") return query.toString().length > MAX_CALLBACK_BYTES ? new URLSearchParams() : query;
  if (!/^application\/x-www-form-urlencoded\b/i.test(contentType)) return new URLSearchParams();
  return new URLSearchParams(new TextDecoder().decode(body));
}

const textOf = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";

/** Asks the gateway for an order. Its answer is not signed: it comes over the connection that we opened. */
async function askFor(deps: RailDeps, order: OrderRow): Promise<void> {
  const { options } = deps;
  const base = withoutSlash(valueOf(options, "PayAddress"));
  const query = new URLSearchParams({
    act: "order",
    pid: valueOf(options, "EpayId"),
    key: valueOf(options, "EpayKey"),
    out_trade_no: order.tradeNo,
  });
  const { status, bytes } = await deps.guard(`${base}/api.php?${query}`, {
    method: "GET",
    headers: { accept: "application/json" },
    maxBytes: MAX_ANSWER_BYTES,
    timeoutMs: ASK_TIMEOUT_MS,
    maxRedirects: 0,
    allow: deps.reach.networks(base, { baseUrl: base, setting: {} }),
  });
  const answer: unknown = status === 200 ? JSON.parse(new TextDecoder().decode(bytes)) : {};
  if (typeof answer !== "object" || answer === null) return;
  const told = answer as Record<string, unknown>;
  const isPaid = textOf(told["code"]) === "1" && textOf(told["status"]) === "1";
  if (!isPaid || textOf(told["out_trade_no"]) !== order.tradeNo) return;
  if (textOf(told["pid"]) !== valueOf(options, "EpayId")) return;
  const fields = PAYLOAD_FIELDS.map((name) => [name, textOf(told[name])] as const);
  await receivePayment(deps, reportOf(new Map([...fields, ["trade_status", "ASKED"]])));
}

export const epay: PaymentRail = {
  name: EPAY,
  title: "Epay",
  callback: "/api/user/epay/notify",
  settings,
  isGuarded: isEpayReady,
  currency: () => EPAY_CURRENCY,
  price: (options) => options.text("Price"),
  minimum: (options) => options.get("MinTopUp"),
  seconds: WAIT_SECONDS,
  methods: (options) =>
    options.get("PayMethods").map(({ type, name, min_topup: minimum }) => ({ type, name, minimum })),
  methodOf: epayType,
  start: epayForm,
  maxBodyBytes: MAX_CALLBACK_BYTES,
  receive: (deps, call) => epayCallback(deps, sentFields(call)),
  ask: askFor,
  mayAsk: (options) => valueOf(options, "EpayAskOrders"),
};
