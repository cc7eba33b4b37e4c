// The console's calls about money that comes in: offers, orders, the rails' callbacks, statements.
import type { ConsoleOperation } from "../schema.ts";

const ORDER = "USR2NO4hG7kQz0aB3cD5eF";

export const payments: Readonly<Record<string, ConsoleOperation>> = {
  "GET /api/user/topup/info": {
    tag: "Wallet",
    summary: "What may be ordered, and how it is paid",
    description: "Amounts are in `unit`: dollars of credit, or units where the site shows units.",
  },
  "POST /api/user/topup/amount": {
    tag: "Wallet",
    summary: "Show what an amount costs by a rail",
    body: { rail: "epay", method: "alipay", amount: 10 },
    answer: {
      success: true,
      message: "",
      data: { money: "73.00", currency: "CNY", quota: 5_000_000, discount: 1 },
    },
  },
  "POST /api/user/topup/pay": {
    tag: "Wallet",
    summary: "Order credit",
    description: "With `fields` the buyer's browser posts them to `url` as a form; without it goes there.",
    body: { rail: "epay", method: "alipay", amount: 10 },
    answer: {
      success: true,
      message: "",
      data: {
        trade_no: ORDER,
        url: "https://pay.example/submit.php",
        fields: { pid: "1001", type: "alipay", out_trade_no: ORDER, money: "73.00" },
      },
    },
  },
  "POST /api/user/amount": {
    tag: "Wallet",
    summary: "Show what an amount costs by epay",
    description:
      "For older consoles: no `success`; a refusal has `message` `error`, its text in `data` and its `code`.",
    body: { amount: 10 },
    answer: { message: "success", data: "73.00" },
  },
  "POST /api/user/pay": {
    tag: "Wallet",
    summary: "Order credit by epay",
    description: "For older consoles. Answers the fields of a form that the browser posts to `url`.",
    body: { amount: 10, payment_method: "alipay" },
    answer: {
      message: "success",
      url: "https://pay.example/submit.php",
      data: { pid: "1001", type: "alipay", out_trade_no: ORDER, money: "73.00" },
    },
  },
  "POST /api/user/stripe/amount": {
    tag: "Wallet",
    summary: "Show what an amount costs by Stripe",
    description: "For older consoles.",
    body: { amount: 10 },
    answer: { message: "success", data: "10.00" },
  },
  "POST /api/user/stripe/pay": {
    tag: "Wallet",
    summary: "Order credit by Stripe",
    description: "For older consoles. Answers where the buyer goes on.",
    body: { amount: 10 },
    answer: {
      message: "success",
      data: { pay_link: "https://checkout.stripe.com/c/pay/cs_1", trade_no: ORDER },
    },
  },
  "GET /api/payment/{rail}": {
    tag: "Wallet",
    summary: "A rail's callback",
    description: "Signed by the provider, and answered in its words; 404 where the rail is not set up.",
  },
  "POST /api/payment/{rail}": {
    tag: "Wallet",
    summary: "A rail's callback with a body",
    description: "As the callback by GET.",
  },
  "GET /api/user/epay/notify": {
    tag: "Wallet",
    summary: "Epay's callback",
    description:
      "Answers `success` once what it says is kept, `fail` where it is not signed or cannot be kept.",
  },
  "POST /api/user/epay/notify": {
    tag: "Wallet",
    summary: "Epay's callback as a form",
    description: "As the callback by GET.",
  },
  "POST /api/stripe/webhook": {
    tag: "Wallet",
    summary: "Stripe's events",
    description: "Signed by Stripe; 503 asks for the event once more.",
  },
  "GET /api/user/topup/self": {
    tag: "Wallet",
    summary: "List the own orders",
    fields: { p: "Page; the first is 1.", trade_no: "Only this order." },
  },
  "GET /api/user/topup": {
    tag: "Wallet",
    summary: "List all orders",
    description: "With the verdicts on what the payment gateways said of those on the page.",
    fields: {
      p: "Page; the first is 1.",
      trade_no: "Only this order.",
      rail: "Only orders of this rail.",
      user_id: "Only orders of this user.",
      keyword: "The beginning of an order number, a gateway's number of a payment, or a username.",
    },
  },
  "GET /api/user/topup/{trade_no}": {
    tag: "Wallet",
    summary: "Show an order",
    description: "One of the caller's own; administrators read all, with `background`.",
  },
  "GET /api/user/topup/{trade_no}/events": {
    tag: "Wallet",
    summary: "What the gateways said of an order",
    description: "Without signatures, keys and the payer's person.",
  },
  "POST /api/user/topup/complete": {
    tag: "Wallet",
    summary: "Complete an order by hand",
    description:
      "For money that came another way; the reason is kept in the log. `pro_rata` credits the part that was paid of an order in review.",
    body: { trade_no: ORDER, reason: "Paid by bank transfer" },
    answer: { success: true, message: "" },
  },
  "POST /api/user/topup/refund": {
    tag: "Wallet",
    summary: "Refund an order",
    description:
      "What is left of its money goes back where the rail can do that, and the credit is taken from the balance, below zero where it was spent.",
    body: { trade_no: ORDER, reason: "Ordered twice" },
    answer: { success: true, message: "" },
  },
  "GET /api/user/statement": {
    tag: "Wallet",
    summary: "A month's statement",
    description:
      "In the site's zone: opening + credited − used = closing, as the books have it. `format=csv` answers a table of every movement.",
    fields: {
      month: "Such as 2026-11.",
      format: "json or csv; json where absent.",
      user_id: "Another user's; for administrators.",
    },
  },
  "GET /api/plan/": {
    tag: "Plans",
    summary: "List plans",
    description: "With how many were sold and how many run; for administrators.",
  },
  "POST /api/plan/": {
    tag: "Plans",
    summary: "Make a plan",
    description:
      "Root's, as all prices are; administrators draft (`POST /api/price/drafts`). `quota` is that of each period: the whole plan where `reset` is none. `price` is decimal text of `currency`; `wallet_price` are units of the balance. At least one of them is given. `overflow` false: calls end with the plan's quota, whatever the wallet has. `stack` extend: another purchase begins when the last ends; parallel: at once.",
    body: {
      title: "Pro",
      price: "73.00",
      currency: "CNY",
      wallet_price: 5_000_000,
      quota: 10_000_000,
      duration_unit: "month",
      duration_count: 1,
      reset: "none",
      group: "vip",
      overflow: true,
      max_per_user: 0,
      stack: "extend",
    },
    answer: { success: true, message: "", data: { id: 1 } },
  },
  "PUT /api/plan/{id}": {
    tag: "Plans",
    summary: "Change a plan",
    description:
      "What is not named stays. What was bought keeps the terms of its purchase. `reason` stands in the history of prices, which can take the change back.",
    body: { enabled: false },
    answer: { success: true, message: "" },
  },
  "DELETE /api/plan/{id}": {
    tag: "Plans",
    summary: "Take a plan away",
    description: "Nobody buys it any more; what was bought goes on.",
    fields: { reason: "Why, for the history of prices." },
    answer: { success: true, message: "" },
  },
  "GET /api/plan/self": {
    tag: "Plans",
    summary: "The caller's plans, and what is on sale",
    description:
      "Running and waiting ones first. `left` are units that running periods have left: part of the balance.",
  },
  "POST /api/plan/{id}/buy": {
    tag: "Plans",
    summary: "Buy a plan",
    description:
      "`method` wallet: from the balance, at once, without what other plans give. Else by a rail: with `fields` the buyer's browser posts them to `url`, without it goes there; the plan begins when the order is paid.",
    body: { rail: "epay", method: "alipay" },
    answer: {
      success: true,
      message: "",
      data: {
        id: 0,
        trade_no: ORDER,
        url: "https://pay.example/submit.php",
        fields: { pid: "1001", type: "alipay", out_trade_no: ORDER, money: "73.00" },
      },
    },
  },
  "POST /api/plan/self/{id}/cancel": {
    tag: "Plans",
    summary: "Cancel a plan",
    description: "At once: what is left of its period goes, its group ends, nothing is paid back.",
    answer: { success: true, message: "" },
  },
  "GET /api/plan/user/{id}": {
    tag: "Plans",
    summary: "The plans of a user",
    description: "Of a lower rank than the caller's, or their own; root sees everybody's.",
  },
  "POST /api/plan/user/{id}": {
    tag: "Plans",
    summary: "Give a user a plan",
    description:
      "A user of a lower rank. What the plan gives over its whole time counts against `AdminBalanceDailyCeiling`; root is told.",
    body: { plan_id: 1, reason: "For the outage in May" },
    answer: { success: true, message: "", data: { id: 7 } },
  },
  "POST /api/plan/user/{id}/cancel": {
    tag: "Plans",
    summary: "Cancel a user's plan",
    description:
      "With `refund` the wallet gets back what it paid, less all that was used of the plan; orders are refunded as orders. A user of a lower rank; what the balance loses, or the wallet gets, counts against `AdminBalanceDailyCeiling`.",
    body: { user_plan_id: 7, reason: "Asked by mail", refund: false },
    answer: { success: true, message: "" },
  },
};
