// Receipts and statements: pages for paper, rendered on the server, without an island.
// Refuses another user's to anybody below administrators, and sums of its own: the books' figures stand as they are.
import { formatDate, formatDateTime, formatNumber, siteDisplay } from "../../islands/lib/format.ts";
import { hasReceipt, isSum, moneyText, ORDER_STATUS } from "../../islands/lib/order-words.ts";
import type { Translate } from "../../views/document.tsx";
import { ReceiptView, StatementView } from "../../views/papers.tsx";
import type { PaperTable } from "../../views/papers.tsx";
import { oneOrder } from "../core/payments/order-list.ts";
import { statementOf } from "../core/payments/statement.ts";
import { rowIdOf } from "../http/paging.ts";
import { Role } from "../shared/enums.ts";
import { refuse } from "../shared/failures.ts";
import type { LoaderContext, Page, RenderContext } from "./page.ts";

/** Decimals that name a single unit of the usual half million to the dollar. */
const exact = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 6 });

/** Quota in what the site shows, to the last unit: figures below each other add up. */
function exactText(quota: number): string {
  const { isUnits, symbol, rate, quotaPerUnit } = siteDisplay();
  if (isUnits) return formatNumber(quota);
  const sign = quota < 0 ? "−" : "";
  return `${sign}${symbol}${exact.format((Math.abs(quota) / quotaPerUnit) * rate)}`;
}

type Order = Awaited<ReturnType<typeof loadReceipt>>;

async function loadReceipt({ deps, user, params }: LoaderContext) {
  if (!user) throw refuse("order_missing");
  const order = await oneOrder(deps, user, params["no"] ?? "");
  if (!hasReceipt(order.status)) throw refuse("order_missing");
  // As statements have it: whoever compares the papers finds one time on both, wherever they are read.
  return { ...order, zone: deps.options.get("site.time_zone") };
}

export const receiptPage: Page = {
  path: "/topup/receipt/:no",
  shell: "console",
  access: "user",
  title: "topup.receiptTitle",
  current: "wallet",
  loader: loadReceipt,
  view({ t, data, title }) {
    const order = data as Order;
    const money = (text: string) => moneyText(text, order.currency);
    const [, status] = ORDER_STATUS[order.status] ?? ["off", "common.unknown"];
    const left = Math.max(0, Number(order.money) - Number(order.refunded) - Number(order.disputed));
    const places = order.money.split(".")[1]?.length ?? 0;
    return ReceiptView({
      t,
      title,
      site: order.site_name,
      facts: [
        [t("topup.number"), order.trade_no],
        [t("topup.paidAt"), `${formatDateTime(order.complete_time * 1000, order.zone)} (${order.zone})`],
        [t("topup.buyer"), [order.display_name || order.username, order.email].filter(Boolean).join(" · ")],
        [t("topup.payMethod"), order.method_name],
        [t("topup.statusTitle"), t(status)],
      ],
      lines: [
        [
          order.plan === ""
            ? t("topup.receiptLine", { amount: exactText(order.quota) })
            : t("topup.receiptPlan", { plan: order.plan }),
          money(order.money),
        ],
        ...(isSum(order.refunded)
          ? ([[t("topup.receiptRefunded"), `−${money(order.refunded)}`]] as const)
          : []),
        // Lost, or not decided yet: the bank has taken it in either case.
        ...(isSum(order.disputed)
          ? ([[t("topup.receiptDisputed"), `−${money(order.disputed)}`]] as const)
          : []),
      ],
      total: [t("topup.receiptTotal"), money(left.toFixed(places))],
    });
  },
};

type Statement = Awaited<ReturnType<typeof statementOf>>;

/** A month of the caller, or, for administrators, of the user that the address names. */
async function loadStatement({ deps, user, url }: LoaderContext): Promise<Statement> {
  if (!user) throw refuse("user_missing");
  const asked = url.searchParams.get("user_id") ?? "";
  const userId = asked === "" ? user.id : rowIdOf(asked, "user_missing");
  if (userId !== user.id && user.role < Role.admin) throw refuse("user_missing");
  const zone = deps.options.get("site.time_zone");
  const month = url.searchParams.get("month") || formatDate(deps.clock.nowMs(), zone).slice(0, 7);
  return statementOf(deps, { userId, month });
}

const KINDS = [
  "setup",
  "register",
  "invite",
  "redeem",
  "payment",
  "admin",
  "affiliate",
  "refund",
  "import",
  "plan",
  "plan_end",
  "plan_buy",
];

const kindText = (t: Translate, kind: string): string =>
  KINDS.includes(kind) ? t(`topup.kind.${kind}`) : kind;

function tablesOf(t: Translate, { credits, entries, use, zone }: Statement): PaperTable[] {
  const useColumns = [t("topup.requests"), t("topup.tokens"), t("topup.used")];
  const useCells = (line: { count: number; tokens: number; quota: number }) => [
    formatNumber(line.count),
    formatNumber(line.tokens),
    exactText(line.quota),
  ];
  return [
    {
      title: t("topup.statement.credits"),
      words: 1,
      heads: [t("topup.what"), t("topup.statement.count"), t("topup.amount")],
      rows: credits.map(({ kind, count, amount }) => [
        kindText(t, kind),
        formatNumber(count),
        exactText(amount),
      ]),
    },
    {
      title: t("topup.statement.entries"),
      words: 2,
      heads: [t("topup.time"), t("topup.what"), t("topup.paid"), t("topup.amount")],
      rows: entries.map(({ at, kind, amount, money, currency }) => [
        formatDateTime(at * 1000, zone),
        kindText(t, kind),
        money === "" ? "" : moneyText(money, currency),
        exactText(amount),
      ]),
    },
    {
      title: t("topup.statement.byDay"),
      words: 1,
      heads: [t("topup.statement.day"), ...useColumns],
      rows: use.by_day.map((line) => [line.day, ...useCells(line)]),
    },
    {
      title: t("topup.statement.byModel"),
      words: 1,
      heads: [t("topup.statement.model"), ...useColumns],
      rows: use.by_model.map((line) => [line.model || t("common.none"), ...useCells(line)]),
    },
    {
      title: t("topup.statement.byKey"),
      words: 1,
      heads: [t("topup.statement.key"), ...useColumns],
      rows: use.by_key.map((line) => [line.name || `#${line.token_id}`, ...useCells(line)]),
    },
  ].filter(({ rows }) => rows.length > 0);
}

/** Whose months: the own ones need no name in the address. */
function addressOf(context: RenderContext, statement: Statement) {
  const isOwn = context.user?.id === statement.user.id;
  return (path: string, given: Record<string, string>) =>
    `${path}?${new URLSearchParams({ ...given, ...(isOwn ? {} : { user_id: String(statement.user.id) }) }).toString()}`;
}

export const statementPage: Page = {
  path: "/topup/statement",
  shell: "console",
  access: "user",
  title: "topup.statement.title",
  current: "wallet",
  loader: loadStatement,
  view({ t, data, title, context }) {
    const statement = data as Statement;
    const { month, zone, user, opening, credited, used, closing, is_open: isOpen, held } = statement;
    const to = addressOf(context, statement);
    const months = statement.months.includes(month) ? statement.months : [month, ...statement.months];
    return StatementView({
      t,
      title,
      site: context.status.system_name,
      subtitle: t("topup.statement.of", { name: user.display_name || user.username, month }),
      months: months.map((each) => ({
        href: to("/topup/statement", { month: each }),
        title: each,
        isCurrent: each === month,
      })),
      csv: to("/api/user/statement", { month, format: "csv" }),
      balance: [
        [t("topup.statement.opening"), exactText(opening)],
        [t("topup.statement.credited"), exactText(credited)],
        [t("topup.statement.used"), exactText(-used)],
        [t("topup.statement.closing"), exactText(closing)],
      ],
      notes: [
        t("topup.statement.sum"),
        t("topup.statement.zone", { zone }),
        ...(isOpen ? [t("topup.statement.open")] : []),
        ...(isOpen && (held ?? 0) > 0 ? [t("topup.statement.held", { amount: exactText(held ?? 0) })] : []),
      ],
      tables: tablesOf(t, statement),
    });
  },
};
