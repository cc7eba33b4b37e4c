// What travels between the routes and the screens, by the islands' names: each derived from the type of its route.
import type { api, ResponseData } from "./api.ts";
import type { ListPage } from "./list.ts";

type User = ReturnType<typeof api.user>;

export type TokenRow = ResponseData<typeof api.token.get>[number];
export type ChannelRow = ResponseData<typeof api.channel.search.get>[number];
export type ChannelSummary = ResponseData<typeof api.channel.summary.get>;
/** A channel's keys in pages, and what a test of them found. */
export type ChannelKeys = ResponseData<typeof api.channel.multi_key.manage.post>;
export type ChannelKeyState = ChannelKeys["keys"][number];
/** What an upstream's list of models proposes for a channel. */
export type ModelProposal = ResponseData<typeof api.channel.upstream_updates.detect.post>;
/** Who would serve a call, and why not the others. */
export type RouteReport = ResponseData<typeof api.channel.route.post>;
export type ChannelCell = ResponseData<ReturnType<typeof api.channel.cells>["get"]>[number];
export type UserRow = ResponseData<typeof api.user.search.get>["items"][number];
export type UserBulkHead = ResponseData<typeof api.user.bulk.get>[number];
export type UserBulkRun = ResponseData<ReturnType<typeof api.user.bulk>["get"]>;
export type UserKey = ResponseData<User["keys"]["get"]>[number];
export type CodeRow = ResponseData<typeof api.redemption.search.get>["items"][number];
export type CodeResult = ResponseData<typeof api.user.topup.batch.post>[number];
/** One's own order. */
export type OrderRow = ResponseData<typeof api.user.topup.self.get>["items"][number];
type AnyOrders = ResponseData<typeof api.user.topup.get>;
/** An order as those who look after payments see it. */
export type AnyOrderRow = AnyOrders["items"][number];
export type OrderEvent = AnyOrders["events"][number];
type OrderOf = ReturnType<typeof api.user.topup>;
export type OrderDetail = ResponseData<OrderOf["get"]>;
export type OrderReport = ResponseData<OrderOf["events"]["get"]>[number];
export type PayOffers = ResponseData<typeof api.user.topup.info.get>;
export type Plan = ResponseData<typeof api.plan.get>[number];
export type OwnPlans = ResponseData<typeof api.plan.self.get>;
export type SoldPlan = OwnPlans["on_sale"][number];
export type UserPlan = OwnPlans["items"][number];
export type UserPlans = ResponseData<ReturnType<typeof api.plan.user>["get"]>;
export type PayCost = ResponseData<typeof api.user.topup.amount.post>;
export type DrawingRow = ResponseData<typeof api.mj.get>[number];
export type TaskRow = ResponseData<typeof api.task.get>[number];
/** What a source of prices says beside the prices in force. */
export type PriceComparison = ResponseData<typeof api.price.sync.post>;
export type KeptPriceSource = ResponseData<typeof api.price.sync.get>[number];
export type InboxRow = ResponseData<typeof api.inbox.get>["items"][number];
export type LogRow = ResponseData<typeof api.log.get>["items"][number];
export type LogStat = ResponseData<typeof api.log.stat.get>;
export type LogHistogramData = ResponseData<typeof api.log.histogram.get>;
export type LogBucket = LogHistogramData["buckets"][number];
export type UsageSummary = ResponseData<typeof api.data.summary.get>;
/** What is earned, for administrators. */
export type CacheRates = ResponseData<typeof api.data.cache.get>;
export type Margins = ResponseData<typeof api.data.margin.get>;
export type CostLine = ResponseData<typeof api.cost.get>[number];
export type CostFound = ResponseData<typeof api.cost.fill.post>;
export type BillResult = ResponseData<typeof api.cost.import.post>;
export type DriftReport = ResponseData<typeof api.cost.drift.get>;
export type FirstSteps = ResponseData<typeof api.data.self.first_steps.get>;
/** What a user is told about some of their models. */
export type ModelNotice = ResponseData<typeof api.user.models.notices.get>[number];
/** The same as administrators wrote it. */
export type WrittenNotice = ResponseData<typeof api.model_notice.get>[number];
export type UsageSeries = UsageSummary["series"][number];
/** Groups that a visitor may choose, by name. */
export type GroupMap = ResponseData<typeof api.user.self.groups.get>;
export type Self = ResponseData<typeof api.user.self.get>;
/** What limits a user, with what is spent of the budget. */
export type OwnLimits = NonNullable<ResponseData<typeof api.user.self.limits.get>>;

/** The first page of a list as a page's loader gives it. */
export interface ListPageData<Row> extends ListPage<Row> {
  pageSize: number;
}

export type PricePlan = ResponseData<typeof api.price.plan.post>;
export type PriceEffect = NonNullable<PricePlan["effect"]>;
export type PriceDraft = ResponseData<typeof api.price.drafts.get>["items"][number];
export type PriceRevision = ResponseData<typeof api.price.revisions.get>["items"][number];
type Revision = ReturnType<typeof api.price.revisions>;
export type PriceRevisionDetail = ResponseData<Revision["get"]>;
export type PriceUndo = ResponseData<Revision["undo"]["get"]>;
