// First state of the wallet: what was used, the invitation, and the newest credits.
import type { WalletData } from "../../islands/screens/topup.tsx";
import { affiliateCode } from "../core/users/affiliates.ts";
import type { Deps, UserAccount } from "../core/deps.ts";
import { END_OF_TIME } from "../core/logs/filter.ts";
import { listOwnLogs } from "../core/logs/list.ts";
import { inLanguage } from "../http/log-texts.ts";
import { oneOrder, ownOrders } from "../core/payments/order-list.ts";
import { ownPlans } from "../core/payments/plan-orders.ts";
import { topUpOffers } from "../core/payments/rails.ts";
import { getUser } from "../core/users/users.ts";
import { LogType } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

/** What the invitation card shows. */
export async function invitationOf(deps: Deps, user: UserAccount) {
  const code = await affiliateCode(deps, user);
  const self = await getUser(deps, user.id);
  return { code, count: self.aff_count, quota: self.aff_quota, history: self.aff_history_quota };
}

/** The order that its buyer came back with; null where the address names none of theirs. */
async function returnedOrder({ deps, url }: LoaderContext, user: UserAccount) {
  const tradeNo = url.searchParams.get("order") ?? "";
  if (tradeNo === "") return null;
  try {
    return await oneOrder(deps, user, tradeNo);
  } catch (error) {
    if (error instanceof Failure) return null;
    throw error;
  }
}

export async function loadWallet(context: LoaderContext): Promise<WalletData | undefined> {
  const { deps, user } = context;
  const { offset, page, pageSize } = pagingOf(context);
  if (!user) return undefined;
  const isPayments = context.url.searchParams.get("view") === "payments";
  const [self, invitation, { items, total }, orders, order, plans] = await Promise.all([
    getUser(deps, user.id),
    invitationOf(deps, user),
    listOwnLogs(deps, user, { type: LogType.topUp, from: 0, to: END_OF_TIME }, { limit: pageSize, offset }),
    ownOrders(deps, { userId: user.id, page: isPayments ? page : 1, pageSize }),
    returnedOrder(context, user),
    ownPlans(deps, user),
  ]);
  const rows = inLanguage(items, context.language).map(({ id, created_at, content, text, quota, other }) => ({
    id,
    created_at,
    content,
    ...(text === undefined ? {} : { text }),
    quota,
    other,
  }));
  return {
    rows,
    total,
    pageSize,
    used: self.used_quota,
    requests: self.request_count,
    invitation,
    offers: topUpOffers(deps, user),
    orders: { rows: orders.items, total: orders.total },
    order,
    plans,
  };
}
