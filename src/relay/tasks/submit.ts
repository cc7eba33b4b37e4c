// How any task is submitted: admission → price → hold → channel → upstream → row → settlement, for every family alike.
// The row stands before the charge does, so that a charge always has a task that can give it back.
import { disableChannel } from "../../core/channels/state.ts";
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import { hourOf } from "../../core/ledger/items.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import type { TaskRow } from "../../core/tasks/families.ts";
import { addTask, ownTask } from "../../core/tasks/store.ts";
import { ERROR_CODE_HEADER, REQUEST_ID_HEADER } from "../../http/request-id.ts";
import { providerOf } from "../../providers/catalog.ts";
import { ChannelStatus, KeyStatus } from "../../shared/enums.ts";
import { Failure } from "../../shared/failures.ts";
import { withoutKeys } from "../../shared/without-keys.ts";
import { checkModel, pinnedChannel } from "../call/admission.ts";
import type { Caller } from "../call/admission.ts";
import { callerFor, groupsOf } from "../call/auto-group.ts";
import { attemptFailure } from "../call/attempt.ts";
import { capOf, overCap } from "../call/cap.ts";
import { quotedPrices } from "../call/quote-id.ts";
import { attemptChannels } from "../call/channel-attempts.ts";
import type { AttemptPolicy, ChannelAttempt } from "../call/channel-attempts.ts";
import type { Relay } from "../call/pipeline.ts";
import { tellAnswered, tellRefused } from "../call/telling.ts";
import { corsHeaders } from "../wire/cors.ts";
import { holdPrice, settleTask, taskCallPrice, taskPrice } from "./charge.ts";
import type { TaskCall, TaskPrice } from "./charge.ts";
import { askTaskUpstream, RefusedAttempt, refusal, refusalWords } from "./task-wire.ts";
import type { Json, TaskAnswer, TaskWire, UpstreamAnswer } from "./task-wire.ts";

const SUBMIT_TIMEOUT_MS = 60_000;

/** What a client wants done, as its family's route has read it. */
export interface Submission<Row extends TaskRow> {
  action: string;
  /** Decides price and channel. */
  model: string;
  /** It only opens a dialog: whatever completes that is charged. */
  isFree: boolean;
  /** The upstream's id of the task that is followed up; "" = none. */
  origin: string;
  /** Throws where this origin cannot be followed up. */
  checkOrigin?: (origin: Row) => void;
  /** What the upstream is sent. */
  path: string;
  body: Json;
  /** The columns that this family alone has, and those that depend on the upstream's answer. */
  columns(answer: TaskAnswer, origin: Row | undefined, atMs: number): Partial<Row>;
  /** What the client gets of the upstream's answer; absent: its very text. */
  reply?: (answer: TaskAnswer) => string;
}

interface Submitting<Row extends TaskRow> {
  deps: Deps;
  relay: Relay;
  wire: TaskWire<Row>;
  call: TaskCall;
  submission: Submission<Row>;
}

interface Submitted {
  channel: Channel;
  /** Of the channel's key that it was asked with. */
  keyId: number;
  /** In which the channel was asked. */
  group: string;
  answer: TaskAnswer;
}

/** Throws the family's TaskError, or a Failure of the first checks. */
export async function submitTask<Row extends TaskRow>(submitting: Submitting<Row>): Promise<Response> {
  const { deps, wire, call, submission } = submitting;
  const { request } = call;
  call.model = submission.model;
  checkModel(call.caller, submission.model);
  const origin = await originOf(submitting);
  const pinned = origin?.channel ?? pinnedBy(deps, call.caller);
  const caller = callerFor(deps, call.caller, submission.model, pinned);
  call.caller = caller;
  const quoted = quotedPrices(deps, request.headers, caller, submission.model);
  const prices = pricesOf(deps, caller, { submission, quoted });
  const cap = capOf(request.headers, caller, deps.options.get("QuotaPerUnit"));
  if (cap !== undefined && prices.dearest.quota > cap) throw overCap(deps.options, prices.dearest.quota, cap);
  const held = await holdPrice(deps, wire, caller, prices.dearest);
  try {
    const accountKey = origin && ownKeyOf(origin);
    const { answer, channel, keyId, group } = await askChannels(submitting, held.requestId, {
      pinned,
      accountKey,
    });
    const price = prices.byGroup.get(group) ?? prices.dearest;
    const atMs = deps.clock.nowMs();
    const quota = answer.failure ? 0 : price.quota;
    await addTask(deps, wire.family, {
      ...wire.family.submitted(answer.upstreamId, atMs),
      ...submission.columns(answer, origin?.row, atMs),
      userId: caller.user.id,
      tokenId: caller.token?.id ?? 0,
      channelId: channel.id,
      keyId,
      group,
      modelName: submission.model,
      requestId: held.requestId,
      action: submission.action,
      quota,
      settledHour: hourOf(Math.floor(atMs / 1000)),
    });
    if (quota > 0) {
      const { action, model } = submission;
      const suffix = wire.chargeSuffix(answer.upstreamId);
      await settleTask(
        deps,
        { held, price },
        {
          call,
          action,
          model,
          channelId: channel.id,
          keyId,
          group,
          upstreamId: answer.upstreamId,
          suffix,
          atMs,
        },
      );
    } else await held.release();
    tellSubmitted(submitting, { answer, channel, keyId, group }, held.requestId, quota);
    return new Response(submission.reply?.(answer) ?? answer.text, {
      status: answer.status,
      headers: {
        ...corsHeaders(request),
        "content-type": "application/json",
        "cache-control": "no-store",
        [REQUEST_ID_HEADER]: held.requestId,
        ...(answer.failure ? { [ERROR_CODE_HEADER]: answer.failure.failure.code } : {}),
      },
    });
  } catch (error) {
    await held.release();
    throw error;
  }
}

/** How it ended for its client: taken, or refused with a row of its own. */
function tellSubmitted<Row extends TaskRow>(
  { deps, wire, call, submission }: Submitting<Row>,
  { answer, channel, group }: Submitted,
  requestId: string,
  quota: number,
): void {
  const { caller, startedMs, record } = call;
  const told = {
    endpoint: wire.provider,
    group,
    model: submission.model,
    requestId,
    caller,
    startedMs,
    record,
  };
  if (answer.failure) return tellRefused(deps, told, answer.failure.failure);
  const cost = quota / deps.options.get("QuotaPerUnit");
  tellAnswered(deps, { ...told, channel, reason: "completed", quota, cost });
}

function pinnedBy(deps: Deps, { pinned }: Caller): Channel | undefined {
  return pinned === undefined ? undefined : pinnedChannel(deps, pinned);
}

/** What the task costs in each group that may take it, quoted or now; the dearest of these is held. */
function pricesOf(
  deps: Deps,
  caller: Caller,
  {
    submission: { model, isFree },
    quoted,
  }: { submission: { model: string; isFree: boolean }; quoted: ReadonlyMap<string, CallPrice> | undefined },
): { byGroup: ReadonlyMap<string, TaskPrice>; dearest: TaskPrice } {
  const { user } = caller;
  const priceIn = (group: string): TaskPrice =>
    taskPrice(quoted?.get(group) ?? taskCallPrice(deps, { user, group }, model), isFree);
  const byGroup = new Map(groupsOf(caller).map((group) => [group, priceIn(group)]));
  const own = byGroup.get(caller.group) ?? priceIn(caller.group);
  const dearest = [...byGroup.values()].reduce((most, each) => (each.quota > most.quota ? each : most), own);
  return { byGroup, dearest };
}

/** The caller's own earlier task, and its channel, which alone can follow it up. */
async function originOf<Row extends TaskRow>({
  deps,
  wire,
  call,
  submission,
}: Submitting<Row>): Promise<{ row: Row; channel: Channel } | undefined> {
  if (submission.origin === "") return undefined;
  const row = await ownTask(deps, wire.family, call.caller.user.id, submission.origin);
  if (!row) throw refusal(wire, "unknownOrigin");
  submission.checkOrigin?.(row);
  return { row, channel: channelOf(deps, wire, row) };
}

/** Place of the key that made a task, whose account alone knows it; undefined where it is gone, off or not known. */
function ownKeyOf({ row, channel }: { row: TaskRow; channel: Channel }): number | undefined {
  const index = channel.keyRows.findIndex(({ id, status }) => id === row.keyId && status === KeyStatus.on);
  return index === -1 ? undefined : index;
}

/** The channel that made a task. Throws the family's refusal when it is gone or off. */
export function channelOf<Row extends TaskRow>(
  { routing }: Pick<Deps, "routing">,
  wire: TaskWire<Row>,
  row: Row,
): Channel {
  const channel = routing.channel(row.channelId);
  if (channel?.status !== ChannelStatus.enabled) throw refusal(wire, "channelDisabled");
  return channel;
}

/**
 * Channel and key are chosen as for any call (channel-attempts.ts), except that they keep to the first key that works:
 * the account that took a task alone knows it later. Gives the last answer of which a row is kept, also where it refuses.
 */
async function askChannels<Row extends TaskRow>(
  submitting: Submitting<Row>,
  requestId: string,
  { pinned, accountKey }: { pinned: Channel | undefined; accountKey: number | undefined },
): Promise<Submitted> {
  const { deps, relay, wire, call, submission } = submitting;
  const { request, caller, startedMs, record } = call;
  const attempted = {
    request,
    body: { text: JSON.stringify(submission.body) },
    requestId,
    caller,
    model: submission.model,
    pinned,
    accountKey,
    attempts: [],
    startedMs,
    wantsStream: false,
    record,
  };
  const services = { deps, picker: relay.parts.picker, errorRows: relay.parts.errorRows };
  /** Of the last attempt. */
  let refused: Submitted | undefined;
  try {
    return await attemptChannels(services, attempted, policyOf(wire), async (attempt) => {
      refused = undefined;
      const { channel, group, keyIndex } = attempt;
      const keyId = channel.keyRows[keyIndex]?.id ?? 0;
      const answer = readKeyless(wire, await askOnce(submitting, attempt), attempt);
      await disableIfOutOfService(submitting, channel, answer);
      if (!answer.failure) return { channel, keyId, group, answer };
      refused = { channel, keyId, group, answer };
      throw answer.failure;
    });
  } catch (error) {
    if (refused) return refused;
    throw error instanceof RefusedAttempt ? error.shown : error;
  }
}

function policyOf<Row extends TaskRow>(wire: TaskWire<Row>): AttemptPolicy {
  const isOfFamily = ({ type }: Channel): boolean => providerOf(type)?.tasks === wire.provider;
  const shared = {
    dialect: "openai-chat",
    endpoint: wire.provider,
    keepsToFirstKey: true,
    noChannelCode: "no_channel",
  } as const;
  if (wire.triesOtherChannels) return { ...shared, accepts: isOfFamily };
  /** The one that was tried first. */
  let only: Channel | undefined;
  return {
    ...shared,
    accepts: (channel) => isOfFamily(channel) && (only === undefined || channel.id === only.id),
    // Another key of the same channel, and that only where it was the key that was refused: then nobody took the task.
    mayRetry({ verdict }, channel) {
      only = channel;
      return verdict === "rejected" || verdict === "limited";
    },
  };
}

async function askOnce<Row extends TaskRow>(
  { deps, wire, call, submission: { path, body } }: Submitting<Row>,
  { channel, key, limits }: ChannelAttempt,
): Promise<UpstreamAnswer> {
  const timeoutMs = Math.min(SUBMIT_TIMEOUT_MS, Math.max(1, limits.deadlineMs));
  try {
    return await askTaskUpstream(
      deps,
      wire,
      { channel, key },
      { path, body, timeoutMs, client: call.request.headers },
    );
  } catch (error) {
    const failure =
      error instanceof Failure
        ? error
        : new Failure("upstream-down", "do_request_failed", { internal: String(error), cause: error });
    throw new RefusedAttempt(attemptFailure(failure), refusalWords(wire, "unreachable"));
  }
}

/**
 * A refusal in a good status loses also a key that is as short as a word; of an answer that took the task its id may hold
 * that by chance.
 */
function readKeyless<Row extends TaskRow>(
  wire: TaskWire<Row>,
  received: UpstreamAnswer,
  { channel, key }: ChannelAttempt,
): TaskAnswer {
  try {
    const answer = wire.readAnswer(received, channel);
    if (!answer.failure) return answer;
  } catch (error) {
    if (!(error instanceof RefusedAttempt)) throw error;
  }
  return wire.readAnswer({ ...received, text: withoutKeys(received.text, [key]) }, channel);
}

async function disableIfOutOfService<Row extends TaskRow>(
  { deps, wire }: Submitting<Row>,
  channel: Channel,
  answer: TaskAnswer,
): Promise<void> {
  const reason = wire.outOfServiceReason?.(answer);
  if (reason === undefined || !channel.autoBan || !deps.options.get("AutomaticDisableChannelEnabled")) return;
  await disableChannel(deps, channel, reason);
}
