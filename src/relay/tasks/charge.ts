// What a task costs: a fixed price, held back before its upstream is asked, and charged once the task is there.
import { bornCost } from "../../core/costs/book.ts";
import type { Deps, Reservation } from "../../core/deps.ts";
import { taskCharge as taskSentence } from "../../core/logs/sentences.ts";
import { costOf, TASK_PRICE } from "../../core/prices/prices.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import { newRequestId } from "../../http/request-id.ts";
import { COST_FIELD } from "../../shared/cost.ts";
import { Failure } from "../../shared/failures.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { Caller } from "../call/admission.ts";
import type { Call } from "../call/call.ts";
import { refusal } from "./task-wire.ts";
import type { TaskWire } from "./task-wire.ts";

/** Who submits, and since when. */
export interface TaskCall {
  request: Request;
  caller: Caller;
  /** Of a submission, as soon as it is read; the row of a refusal names it. */
  model?: string;
  /** performance.now() of the start. */
  startedMs: number;
  /** What is told of it when it is over. */
  readonly record: Call["record"];
}

/** Frozen when the task is reserved; its settlement reads nothing else. */
export interface TaskPrice {
  /** Dollars. */
  price: number;
  groupRatio: number;
  /** The same number, where it stands for users of the caller's group alone. */
  userGroupRatio: number | undefined;
  /** Whole units. */
  quota: number;
  /** What a replay of the charge needs. */
  cost: unknown;
}

/** Tasks cost a fixed price per submission (billing reference, section 10): that of the model in the group, or the default. */
export function taskCallPrice(
  { prices }: Pick<Deps, "prices">,
  { user, group }: Pick<Caller, "user" | "group">,
  model: string,
): CallPrice {
  const known =
    prices.callPrice(model, group, user.group) ?? prices.missingCallPrice(model, group, user.group);
  return { ...known, ratios: { ...known.ratios, callPrice: known.ratios.callPrice ?? TASK_PRICE } };
}

/** The charge of a task at that price; `isFree`: whatever its submission only opens is charged later. */
export function taskCharge(price: CallPrice, isFree: boolean): ReturnType<typeof costOf> {
  return costOf(price, emptyUsage(), { rounding: "floor", isTask: true, ...(isFree ? { quotaCap: 0 } : {}) });
}

export function taskPrice(price: CallPrice, isFree: boolean): TaskPrice {
  const charge = taskCharge(price, isFree);
  return {
    price: price.ratios.callPrice ?? TASK_PRICE,
    groupRatio: price.groupRatio,
    userGroupRatio: price.userGroupRatio,
    quota: charge.quota,
    cost: charge.other[COST_FIELD],
  };
}

/** Holds the price back. Throws the family's refusal where the balance is too low. */
export async function holdPrice(
  deps: Deps,
  wire: Pick<TaskWire<never>, "refusals">,
  caller: Caller,
  price: TaskPrice,
): Promise<Reservation> {
  const requestId = newRequestId(deps.clock.nowMs());
  try {
    return await deps.ledger.reserve({
      requestId,
      user: caller.user,
      token: caller.token,
      amount: price.quota,
    });
  } catch (error) {
    throw error instanceof Failure && error.kind === "quota"
      ? refusal(wire, "balanceTooLow", error.code)
      : error;
  }
}

/** One consume row in the documented words. */
export async function settleTask(
  deps: Pick<Deps, "costs">,
  { held, price }: { held: Reservation; price: TaskPrice },
  task: {
    call: TaskCall;
    action: string;
    model: string;
    channelId: number;
    keyId: number;
    /** In which it was taken. */
    group: string;
    /** The upstream's id of the task. */
    upstreamId: string;
    /** Behind the sentence. */
    suffix: string;
    /** When it counts: the hour stands in the task's row, and a refund goes back there. */
    atMs: number;
  },
): Promise<void> {
  const { call, action, suffix, model, channelId, atMs } = task;
  const nanos = deps.costs.has(channelId)
    ? deps.costs.nanos({ channelId, upstreamModel: model, model, usage: emptyUsage(), facts: {}, atMs })
    : undefined;
  await held.settle({
    quota: price.quota,
    promptTokens: 0,
    completionTokens: 0,
    modelName: model,
    channelId,
    keyId: task.keyId,
    group: task.group,
    isStream: false,
    useTimeMs: Math.round(performance.now() - call.startedMs),
    content: taskSentence(price, action) + suffix,
    cost: nanos === undefined ? undefined : bornCost(nanos, price.quota, price.groupRatio),
    other: {
      model_price: price.price,
      group_ratio: price.groupRatio,
      ...(price.userGroupRatio === undefined ? {} : { user_group_ratio: price.userGroupRatio }),
      ...(call.caller.auto ? { auto: true } : {}),
      admin_info: {
        upstream_model: model,
        ...(task.upstreamId === "" ? {} : { upstream_id: task.upstreamId }),
        ...(nanos === undefined ? {} : { cost_nanos: nanos }),
      },
      [COST_FIELD]: price.cost,
    },
    atMs,
  });
}
