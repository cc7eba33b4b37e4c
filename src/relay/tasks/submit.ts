// What every call for an asynchronous task passes before its upstream is asked: key, user, address, model, channel, price.
// Refuses like the inference pipeline does; only what the task's own API words otherwise is left to its routes.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps, Reservation } from "../../core/deps.ts";
import { costOf } from "../../core/prices/prices.ts";
import { newRequestId } from "../../http/request-id.ts";
import { providerOf } from "../../providers/catalog.ts";
import type { ProviderRow } from "../../providers/define.ts";
import { COST_FIELD } from "../../shared/cost.ts";
import { ChannelStatus } from "../../shared/enums.ts";
import { Failure } from "../../shared/failures.ts";
import { emptyUsage } from "../../shared/usage.ts";
import { admitCaller, checkAddress, checkModel, pinnedChannel } from "../call/admission.ts";
import type { Caller } from "../call/admission.ts";
import type { Relay } from "../call/pipeline.ts";

/** Dollars a task costs where the operator set no price. */
const DEFAULT_PRICE = 0.1;

export interface TaskCall {
  request: Request;
}

/** Key → user → address; without a model there is nothing to limit. */
export async function admitTask(deps: Deps, relay: Relay, call: TaskCall, model?: string): Promise<Caller> {
  const caller = await admitCaller(deps, call.request, relay.parts.visitors);
  checkAddress(caller, call.request, relay.parts.visitors);
  // Its upstream may take longer than a silent connection is kept; a body is waited for first.
  if (call.request.method === "GET") relay.parts.visitors.hold(call.request);
  if (model !== undefined) checkModel(caller, model);
  return caller;
}

/** The channel for a new task; `failed` are those that refused it already. */
export function channelFor(
  deps: Deps,
  relay: Relay,
  caller: Caller,
  model: string,
  family: NonNullable<ProviderRow["tasks"]>,
  failed: ReadonlySet<number> = new Set(),
): Channel {
  if (caller.pinned !== undefined) return pinnedChannel(deps, caller.pinned);
  const channel = relay.parts.picker.pick(
    caller.group,
    model,
    failed,
    deps.clock.monotonicMs(),
    ({ type }) => providerOf(type)?.tasks === family,
  );
  if (!channel) throw new Failure("no-channel", "no_channel", { params: { group: caller.group, model } });
  return channel;
}

/** The channel that made an earlier task: follow-ups must go there. Undefined when it is gone or off. */
export function channelOf(deps: Deps, id: number): Channel | undefined {
  const channel = deps.routing.channel(id);
  return channel?.status === ChannelStatus.enabled ? channel : undefined;
}

/** Where the channel's upstream is: its own address, else the type's. */
export function taskBase(channel: Channel): string {
  return channel.baseUrl || providerOf(channel.type)?.baseUrl || "";
}

export function proxyOf(channel: Channel): string {
  const { proxy } = channel.setting;
  return typeof proxy === "string" ? proxy : "";
}

/** Frozen when the task is reserved; its settlement reads nothing else. */
export interface TaskPrice {
  /** Dollars. */
  price: number;
  groupRatio: number;
  /** Whole units. */
  quota: number;
  /** What a replay of the charge needs. */
  cost: Record<string, unknown>;
}

/** Tasks cost a fixed price per submission (billing reference, section 10). */
export function taskPrice(deps: Deps, caller: Caller, model: string): TaskPrice {
  const known =
    deps.prices.callPrice(model, caller.group) ?? deps.prices.missingCallPrice(model, caller.group);
  const price = known.ratios.callPrice ?? DEFAULT_PRICE;
  const ratios = { ...known.ratios, callPrice: price };
  const charge = costOf({ ...known, ratios }, emptyUsage(), { rounding: "floor" });
  const stored = charge.other[COST_FIELD] as Record<string, unknown>;
  return { price, groupRatio: known.groupRatio, quota: charge.quota, cost: stored };
}

/** Holds the price back. Throws the ledger's refusals. */
export async function holdTask(deps: Deps, caller: Caller, price: TaskPrice): Promise<Reservation> {
  const requestId = newRequestId(deps.clock.nowMs());
  return deps.ledger.reserve({ requestId, user: caller.user, token: caller.token, amount: price.quota });
}

/** Charges a submitted task: one consume row in the documented words. */
export async function settleTask(
  reservation: Reservation,
  caller: Caller,
  channel: Channel,
  model: string,
  price: TaskPrice,
  action: string,
  startedMs: number,
  /** When it counts: the hour stands in the task's row, and a refund goes back there. */
  atMs: number,
  suffix = "",
): Promise<void> {
  await reservation.settle({
    quota: price.quota,
    promptTokens: 0,
    completionTokens: 0,
    modelName: model,
    channelId: channel.id,
    group: caller.group,
    isStream: false,
    useTimeMs: Math.round(performance.now() - startedMs),
    content: `模型固定价格 ${price.price.toFixed(2)}，分组倍率 ${price.groupRatio.toFixed(2)}，操作 ${action}${suffix}`,
    other: { model_price: price.price, group_ratio: price.groupRatio, [COST_FIELD]: price.cost },
    atMs,
  });
}
