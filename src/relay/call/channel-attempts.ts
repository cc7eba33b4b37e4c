// One request goes from channel to channel until one serves it: who is asked next and with which key, and what a failed
// attempt does to the key, the channel and the log. Whoever asks upstreams for a caller goes through here.
import type { PickedChannel, Picker } from "../../core/channels/picker.ts";
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import type { DialectName } from "../../protocol/canonical.ts";
import { Failure } from "../../shared/failures.ts";
import { unserved } from "./admission.ts";
import type { Caller } from "./admission.ts";
import { groupsOf } from "./auto-group.ts";
import { attemptFailure, AttemptFailure, failureIn, mayRetry } from "./attempt.ts";
import type { AttemptLimits } from "./attempt.ts";
import { disableFor, mustDisable } from "./auto-disable.ts";
import type { AttemptNote } from "./call.ts";
import type { ErrorRows } from "./error-rows.ts";
import { goneReason } from "./plan.ts";
import { responseUnavailable } from "./response-affinity.ts";
import { errorEntry, markTold } from "./refusal-rows.ts";

/** One of each per process. */
export interface AttemptServices {
  deps: Deps;
  picker: Picker;
  errorRows: ErrorRows;
}

/** What is known of the request; a relayed call is one. */
export interface AttemptedRequest {
  readonly request: Pick<Request, "signal">;
  readonly requestId: string;
  readonly caller: Caller;
  readonly model: string;
  /** This channel and no other; it is asked once. */
  readonly pinned: Channel | undefined;
  /** Of its keys this one and no other: it stores what the request goes on from. */
  readonly pinnedKey?: number | undefined;
  /** Every attempt is noted here, for the log row of the request. */
  readonly attempts: AttemptNote[];
  /** performance.now() of the start. */
  readonly startedMs: number;
  readonly wantsStream: boolean;
  /** A channel asked on purpose: what it answers says nothing about its health, its keys or its status. */
  readonly isTest?: boolean;
}

/** Where one surface differs from the next. */
export interface AttemptPolicy {
  /** Whether the channel can serve the request at all. */
  accepts: (channel: Channel) => boolean;
  /** An answer goes on when its attempt has succeeded: whoever reads it tells the picker how it ended. */
  tellsEnd?: boolean;
  /** In whose words the error rows are written. */
  dialect: DialectName;
  /**
   * Keys take turns, unless later requests have to reach the account that served this one: then it is always the
   * first key that does not rest.
   */
  keepsToFirstKey?: true;
  /** Whether another attempt may follow; `mayRetry` of attempt.ts unless the surface has statuses of its own. */
  mayRetry?: (failed: AttemptFailure, channel: Channel) => boolean;
  /** Code of the failure when no channel is left to ask and none has failed. */
  noChannelCode?: "endpoint_unsupported" | "no_channel";
}

/** One try at one channel. */
export interface ChannelAttempt {
  channel: Channel;
  /** In which it is asked: the caller's, or one of an automatic key. */
  group: string;
  key: string;
  /** Which of the channel's keys it is. */
  keyIndex: number;
  limits: AttemptLimits;
}

type ChosenKey = ReturnType<Deps["keyring"]["next"]>;

/** What the attempts of one request share. */
interface Run {
  services: AttemptServices;
  request: AttemptedRequest;
  policy: AttemptPolicy;
  /** Channels that are not asked again; another set once there are any, because most requests never have one. */
  excluded: ReadonlySet<number>;
}

const NONE: ReadonlySet<number> = new Set();
const BYTES_PER_MIB = 1024 * 1024;
/** How long a key rests that its provider rejected, or asked to be patient with. */
const REJECTED_KEY_MS = 600_000;
const LIMITED_KEY_MS = 30_000;

/**
 * Runs attempts until one succeeds, under one deadline. `tryOne` throws an AttemptFailure (or a retryable Failure) for a
 * finding about this channel, which is noted and logged, rests the key or reports the channel, and lets the next one be
 * asked; anything else that it throws ends the request and leaves no trace here.
 *
 * Throws what ended it: the last AttemptFailure, the other thing that `tryOne` threw, or a Failure when nobody could be
 * asked.
 */
export async function attemptChannels<T>(
  services: AttemptServices,
  request: AttemptedRequest,
  policy: AttemptPolicy,
  tryOne: (attempt: ChannelAttempt) => Promise<T>,
): Promise<T> {
  const { deps, picker } = services;
  const { options, keyring, clock } = deps;
  const run: Run = { services, request, policy, excluded: NONE };
  const deadlineAtMs = performance.now() + options.get("relay.deadline_seconds") * 1000;
  const firstByteMs = options.get("relay.first_byte_timeout_seconds") * 1000;
  const maxAnswerBytes = options.get("relay.max_answer_mb") * BYTES_PER_MIB;
  let triesLeft = request.pinned ? 1 : options.get("RetryTimes") + 1;
  let last: unknown;
  while (triesLeft > 0) {
    const place = nextPlace(run);
    if (!place) break;
    const { channel, group } = place;
    const startedMs = performance.now();
    const deadlineMs = deadlineAtMs - startedMs;
    if (deadlineMs <= 0) break;
    const nowMs = clock.monotonicMs();
    const { key, index: keyIndex } = keyFor(run, channel, nowMs);
    const attempt = { channel, group, key, keyIndex, limits: { firstByteMs, deadlineMs, maxAnswerBytes } };
    try {
      const result = await tryOne(attempt);
      note(request, channel, startedMs, "ok", 200);
      if (!request.isTest) {
        keyring.wake(channel, keyIndex, request.model);
        if (policy.tellsEnd === true) picker.opened(channel, request.model);
        else picker.succeeded(channel, request.model, clock.monotonicMs());
      }
      return result;
    } catch (thrown) {
      if (isBeyond(thrown) && !request.pinned) {
        picker.abandoned(channel, request.model);
        exclude(run, channel);
        last = thrown;
        continue;
      }
      // Findings of our own (mapping, override) that hold for every channel end the request.
      const failed = thrown instanceof Failure && thrown.retryable ? attemptFailure(thrown) : thrown;
      if (!(failed instanceof AttemptFailure)) {
        picker.abandoned(channel, request.model);
        throw failed;
      }
      note(request, channel, startedMs, failed.failure.code, failed.failure.upstreamStatus);
      last = failed;
      if (!goesOn(run, attempt, failed)) break;
      triesLeft--;
    }
  }
  throw last ?? noChannel(run);
}

function nextPlace({ services, request, policy, excluded }: Run): PickedChannel | undefined {
  const { pinned, pinnedKey, model, caller } = request;
  const { group, auto } = caller;
  const nowMs = services.deps.clock.monotonicMs();
  if (!pinned && auto) return services.picker.pickAmong(auto, model, excluded, nowMs, policy.accepts);
  if (!pinned) {
    const channel = services.picker.pick(group, model, excluded, nowMs, policy.accepts);
    return channel && { channel, group };
  }
  if (excluded.size > 0) return undefined;
  if (pinnedKey !== undefined) claimAccount(services, { channel: pinned, keyIndex: pinnedKey, model }, nowMs);
  return { channel: pinned, group };
}

/** Only this account can serve: while it rests nobody is asked, and the client reads when to come again. */
function claimAccount(
  { deps, picker }: AttemptServices,
  { channel, keyIndex, model }: { channel: Channel; keyIndex: number; model: string },
  nowMs: number,
): void {
  const ofKey = deps.keyring.restOf(channel, keyIndex, model, nowMs);
  const ofChannel = ofKey ? undefined : picker.claim(channel, model, nowMs);
  if (!ofKey && !ofChannel) return;
  const untilMs = ofKey?.restsUntilMs ?? ofChannel?.untilMs ?? nowMs;
  const isLimit = (ofKey ?? ofChannel)?.reason === "limited";
  throw responseUnavailable(isLimit, Math.max(1, Math.ceil((untilMs - nowMs) / 1000)));
}

function keyFor({ services, request, policy }: Run, channel: Channel, nowMs: number): ChosenKey {
  const { keyring } = services.deps;
  const { model, pinnedKey } = request;
  if (pinnedKey !== undefined) return { key: channel.keys[pinnedKey] ?? "", index: pinnedKey };
  return policy.keepsToFirstKey === true
    ? keyring.first(channel, model, nowMs)
    : keyring.next(channel, model, nowMs);
}

function exclude(run: Run, channel: Channel): void {
  run.excluded = new Set([...run.excluded, channel.id]);
}

/** What this channel's dialect cannot express another one's may: that is no failed attempt of anybody. */
function isBeyond(thrown: unknown): boolean {
  const failure = failureIn(thrown);
  if (!(failure instanceof Failure)) return false;
  // A rule that refuses for its own channel alone.
  return failure.code === "unsupported_field" || (failure.code === "rule_refused" && failure.retryable);
}

/** What a failed attempt does to log, key and channel; true when another one may follow. */
function goesOn(run: Run, attempt: ChannelAttempt, failed: AttemptFailure): boolean {
  const { services, request, policy } = run;
  const { deps, picker } = services;
  const { channel } = attempt;
  const { failure } = failed;
  // No finding about the channel.
  if (failure.code === "client_gone" || failure.code === "server_draining") {
    picker.abandoned(channel, request.model);
    return false;
  }
  logFailure(run, attempt, failed);
  if (request.isTest) return false;
  const { refusal } = failed;
  const isFatal = refusal !== undefined && mustDisable(deps, channel, refusal);
  // A channel with more keys goes on with them: only the key that failed rests.
  const rejected = isFatal ? new AttemptFailure(failure, "rejected", refusal) : failed;
  if (!restKey(deps, attempt, request.model, rejected)) {
    exclude(run, channel);
    reportFailed(run, channel, failed);
    // Where another key was only asked for patience, the channel works again when that is over.
    if (isFatal && deps.keyring.areAllRejected(channel)) void disableFor(deps, channel, refusal);
  }
  if (request.request.signal.aborted) return false;
  return policy.mayRetry ? policy.mayRetry(failed, channel) : mayRetry(failed, channel.type);
}

/** What the channel's model met; a channel none of whose keys is accepted has no model that works. */
function reportFailed(
  { services, request }: Run,
  channel: Channel,
  { verdict, failure }: AttemptFailure,
): void {
  const { deps, picker } = services;
  const nowMs = deps.clock.monotonicMs();
  if (verdict === "ok") picker.succeeded(channel, request.model, nowMs);
  else {
    const isWhole = verdict === "rejected" && deps.keyring.areAllRejected(channel);
    const { retryAfterSeconds } = failure;
    picker.failed(channel, request.model, { reason: verdict, isWhole, retryAfterSeconds }, nowMs);
  }
}

/**
 * Rests the key of a failed attempt when it is the key that failed: for the model that it is too much for, or for all when
 * it is rejected. True when other keys of the channel go on.
 */
export function restKey(
  deps: Pick<Deps, "keyring" | "clock">,
  { channel, keyIndex }: Pick<ChannelAttempt, "channel" | "keyIndex">,
  model: string,
  { failure, verdict }: AttemptFailure,
): boolean {
  if (verdict !== "rejected" && verdict !== "limited") return false;
  const wantedMs = (failure.retryAfterSeconds ?? 0) * 1000;
  const restMs =
    verdict === "rejected" ? REJECTED_KEY_MS : Math.max(LIMITED_KEY_MS, Math.min(wantedMs, REJECTED_KEY_MS));
  const detail = failure.internal?.slice(0, 200) ?? failure.code;
  const rest = { reason: verdict, restMs, detail, ...(verdict === "limited" ? { model } : {}) };
  return deps.keyring.rest(channel, keyIndex, rest, deps.clock.monotonicMs());
}

/** Where every channel is of a provider that is gone or not served, the client reads that. */
function noChannel({ services, request, policy }: Run): Failure {
  const { caller, model } = request;
  const { routing } = services.deps;
  const tiers = groupsOf(caller).flatMap((group) => routing.tiers(group, model));
  const left = tiers.flatMap(({ entries }) => entries);
  if (left.length === 0 && !request.pinned) return unserved({ routing }, caller, model);
  const gone = goneReason(left.map(({ channel }) => channel));
  const code = policy.noChannelCode ?? "endpoint_unsupported";
  return gone ?? new Failure("no-channel", code, { params: { group: caller.group, model } });
}

function note(
  { attempts }: AttemptedRequest,
  channel: Channel,
  startedMs: number,
  code: string,
  status: number | undefined,
): void {
  attempts.push({
    channel: channel.id,
    ms: Math.round(performance.now() - startedMs),
    code,
    ...(status === undefined || code === "ok" ? {} : { status }),
  });
}

/** An error row for the failed attempt. */
function logFailure(
  { services, request, policy }: Run,
  { channel, group }: ChannelAttempt,
  { failure }: AttemptFailure,
): void {
  const { deps, errorRows } = services;
  const { caller } = request;
  markTold(failure);
  if (!deps.options.get("ErrorLogEnabled")) return;
  const source = { userId: caller.user.id, tokenId: caller.token?.id ?? 0, reason: failure.code };
  errorRows.add(source, () => {
    const entry = errorEntry(
      { ...request, caller: { ...caller, group }, dialect: policy.dialect },
      failure,
      deps.options.get("site.language"),
    );
    return {
      ...entry,
      channelId: channel.id,
      other: {
        ...entry.other,
        error_type: failure.type ?? "upstream_error",
        error_code: failure.wireCode ?? failure.code,
        channel_id: channel.id,
        channel_name: channel.name,
        channel_type: channel.type,
        admin_info: {
          use_channel: request.attempts.map((each) => String(each.channel)),
          upstream_text: failure.upstreamText ?? "",
          internal: failure.internal ?? "",
        },
      },
    };
  });
}
