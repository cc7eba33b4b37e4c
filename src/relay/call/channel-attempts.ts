// One request goes from channel to channel until one serves it: who is asked next and with which key, and what a failed
// attempt does to the key, the channel and the log. Whoever asks upstreams for a caller goes through here.
import type { Lease } from "../../core/channels/caps.ts";
import type { Picker } from "../../core/channels/picker.ts";
import { keyFields } from "../../core/channels/rows.ts";
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import type { CallRecord } from "../../observe/record.ts";
import type { DialectName } from "../../protocol/canonical.ts";
import { Failure } from "../../shared/failures.ts";
import { unserved } from "./admission.ts";
import { boundPlace, keepServed } from "./affinity.ts";
import type { CallAffinity } from "./affinity.ts";
import type { Caller } from "./admission.ts";
import { groupsOf } from "./auto-group.ts";
import { attemptFailure, AttemptFailure, failureIn } from "./attempt.ts";
import type { AttemptLimits } from "./attempt.ts";
import { disableFor, mustDisable } from "./auto-disable.ts";
import type { AttemptNote } from "./call.ts";
import type { ErrorRows } from "./error-rows.ts";
import type { ClientWords } from "./client-words.ts";
import { boundKey, keyFor, nextChannel, tokensOf } from "./choice.ts";
import type { Choice } from "./choice.ts";
import { restKey, tellFailed, tellNothing, tellServed } from "./findings.ts";
import { createPatience } from "./patience.ts";
import type { Patience } from "./patience.ts";
import { goneReason } from "./plan.ts";
import { errorEntry, markTold } from "./refusal-rows.ts";
import { mayRetry } from "./retry-rules.ts";
import { tellFailedAttempt, tellServedAttempt } from "./telling.ts";
import type { ToldAttempt } from "./telling.ts";

/** One of each per process. */
export interface AttemptServices {
  deps: Deps;
  picker: Picker;
  errorRows: ErrorRows;
}

/** What is known of the request; a relayed call is one. */
export interface AttemptedRequest {
  readonly request: Pick<Request, "signal" | "url" | "headers">;
  /** What it sent: its upstream may repeat it in a refusal. */
  readonly body?: ClientWords["body"];
  readonly requestId: string;
  readonly caller: Caller;
  readonly model: string;
  readonly prompt?: { readonly tokens: number };
  /** This channel and no other; it is asked once. */
  readonly pinned: Channel | undefined;
  /** Of its keys this one and no other: it stores what the request goes on from. */
  readonly pinnedKey?: number | undefined;
  /** Of the pinned channel's keys the one whose account knows what the request follows: asked also while it rests. */
  readonly accountKey?: number | undefined;
  /** Where its session stays; undefined: it has none, or nothing is to choose. */
  readonly affinity?: CallAffinity | undefined;
  /** Every attempt is noted here, for the log row of the request. */
  readonly attempts: AttemptNote[];
  /** performance.now() of the start. */
  readonly startedMs: number;
  readonly wantsStream: boolean;
  /** Of a call that is told as one when it is over. */
  readonly record?: CallRecord;
  /** A channel asked on purpose: what it answers says nothing about its health, its keys or its status. */
  readonly isTest?: boolean;
}

/** Where one surface differs from the next. */
export interface AttemptPolicy {
  /** Whether the channel can serve the request at all. */
  accepts: (channel: Channel) => boolean;
  /** An answer goes on when its attempt has succeeded: whoever reads it tells the picker how it ended. */
  tellsEnd?: boolean;
  /** What was opened lasts: whoever uses it gives its place back. */
  keepsLease?: true;
  /** In whose words the error rows are written. */
  dialect: DialectName;
  /** What the attempts are counted as. */
  endpoint: string;
  /**
   * Keys take turns, unless later requests have to reach the account that served this one: then it is always the
   * first key that does not rest.
   */
  keepsToFirstKey?: true;
  /** Whether another attempt may follow; `mayRetry` of retry-rules.ts unless the surface has statuses of its own. */
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
  /** Its place under the caps of key and channel, until the attempt is over. */
  lease: Lease;
  /** On the steady clock: what key and channel met since says more of them than its answer. */
  beganMs: number;
  limits: AttemptLimits;
}

type Place = Omit<ChannelAttempt, "limits">;

/** What the attempts of one request share. */
interface Run extends Choice {
  services: AttemptServices;
  request: AttemptedRequest;
  policy: AttemptPolicy;
  /** Channels that are not asked again; another set once there are any, because most requests never have one. */
  excluded: ReadonlySet<number>;
  /** Channels that could serve it and are full, as of the last look. */
  full: Set<number>;
  /** How often the other nodes left no place on a channel, by its id, since room was waited for last; most never meet it. */
  refusals?: Map<number, number> | undefined;
  /** How long room is waited for (performance.now()). */
  queueUntilMs: number;
  /** Made when somebody asks for it: most requests never meet one. */
  patience: Patience | undefined;
}

const NONE: ReadonlySet<number> = new Set();
const BYTES_PER_MIB = 1024 * 1024;

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
  const run: Run = {
    services,
    request,
    policy,
    excluded: NONE,
    full: new Set(),
    queueUntilMs: performance.now() + options.get("relay.queue_ms"),
    patience: undefined,
  };
  const deadlineAtMs = performance.now() + options.get("relay.deadline_seconds") * 1000;
  const firstByteMs = options.get("relay.first_byte_timeout_seconds") * 1000;
  const maxAnswerBytes = options.get("relay.max_answer_mb") * BYTES_PER_MIB;
  let triesLeft = request.pinned ? 1 : options.get("RetryTimes") + 1;
  let last: unknown;
  while (triesLeft > 0) {
    const place = nextPlace(run);
    if (!place) {
      if (await waitForRoom(run, deadlineAtMs)) continue;
      if (await waitForPatient(run, deadlineAtMs)) continue;
      last = saturatedFailure(run, last) ?? last;
      break;
    }
    const isFree = mayUse(run, place);
    if (isFree !== true && !(await isFree)) continue;
    const { channel, lease } = place;
    const startedMs = performance.now();
    const deadlineMs = deadlineAtMs - startedMs;
    if (deadlineMs <= 0) {
      lease.release();
      break;
    }
    const attempt = { ...place, limits: { firstByteMs, deadlineMs, maxAnswerBytes } };
    try {
      const result = await tryOne(attempt);
      if (policy.tellsEnd !== true && policy.keepsLease !== true) lease.release();
      note(request, channel, startedMs, "ok", 200);
      const goesOn = policy.tellsEnd === true || policy.keepsLease === true;
      tellServedAttempt(deps, toldAttempt(run, attempt, startedMs), goesOn);
      if (request.affinity) keepServed(services, { ...request, affinity: request.affinity }, attempt);
      if (!request.isTest) {
        const nowMs = clock.monotonicMs();
        picker.traffic.told(channel, request.model, nowMs);
        if (!keyring.isCalm(nowMs)) tellServed(services, place, request.model, policy.tellsEnd === true);
        if (policy.tellsEnd === true) picker.opened(channel, request.model, place.beganMs);
        else picker.succeeded(channel, request.model, place.beganMs, nowMs);
      }
      return result;
    } catch (thrown) {
      lease.release();
      if (isBeyond(thrown) && !request.pinned) {
        tellNothing(services, attempt, request.model);
        exclude(run, channel);
        last = thrown;
        continue;
      }
      // Findings of our own (mapping, override) that hold for every channel end the request.
      const failed = thrown instanceof Failure && thrown.retryable ? attemptFailure(thrown) : thrown;
      if (!(failed instanceof AttemptFailure)) {
        tellNothing(services, attempt, request.model);
        throw failed;
      }
      note(request, channel, startedMs, failed.failure.code, failed.failure.upstreamStatus);
      tellFailedAttempt(deps, toldAttempt(run, attempt, startedMs), failed);
      if (request.record) request.record.triedMs += performance.now() - startedMs;
      last = failed;
      if (!goesOn(run, attempt, failed)) break;
      triesLeft--;
    }
  }
  if (last instanceof AttemptFailure && last.verdict === "limited") last = soonerFailure(run, last);
  throw last ?? (run.full.size > 0 ? noRoom(run) : noChannel(run));
}

/** Channel, key and a place under their caps, all of one moment; undefined: nobody can be asked now. */
function nextPlace(run: Run): Place | undefined {
  const { deps } = run.services;
  const nowMs = deps.clock.monotonicMs();
  if (run.full.size > 0) run.full.clear();
  if (run.refusals && run.request.request.signal.aborted) {
    for (const id of run.refusals.keys()) run.full.add(id);
    return undefined;
  }
  const bound = boundTo(run, nowMs);
  if (bound) return bound;
  const picked = nextChannel(run, nowMs);
  if (!picked) return undefined;
  const { channel, group } = picked;
  const chosen = keyFor(run, channel, nowMs);
  if (!chosen) {
    run.services.picker.abandoned(channel, run.request.model, nowMs);
    // Whose key is chosen lacks nothing but room with that one, whatever other keys have.
    const isFull =
      boundKey(run.request) !== undefined ||
      deps.keyring.fitness(channel, run.request.model, nowMs, tokensOf(run)) === "full";
    if (isFull) run.full.add(channel.id);
    return undefined;
  }
  const { key, index: keyIndex } = chosen;
  const lease = deps.caps.take(channel, keyIndex, tokensOf(run), nowMs);
  return { channel, group, key, keyIndex, lease, beganMs: nowMs };
}

/**
 * Whether the other nodes leave the place to this one; false: it was given back, and is full for a while. A test asks a key on
 * purpose, also one that is full.
 */
function mayUse(run: Run, place: Place): boolean | Promise<boolean> {
  const { services, request } = run;
  const asked = request.isTest === true ? undefined : place.lease.confirm();
  if (!asked) return true;
  return asked.then((isFree) => {
    if (isFree) return true;
    tellNothing(services, place, request.model);
    // Each key of a channel is asked for once a round, however many there are.
    const refusals = (run.refusals ??= new Map<number, number>());
    refusals.set(place.channel.id, (refusals.get(place.channel.id) ?? 0) + 1);
    return false;
  });
}

/** Where the session of the request is bound to, and may go. */
function boundTo(run: Run, nowMs: number): Place | undefined {
  const { services, request, policy, excluded } = run;
  const { affinity, caller, model } = request;
  if (!affinity || request.pinned || run.refusals) return undefined;
  const tokens = tokensOf(run);
  const { accepts } = policy;
  const found = boundPlace(services, { caller, model, affinity, tokens, accepts, excluded }, nowMs);
  if (!found) return undefined;
  const { channel, keyIndex } = found;
  const lease = services.deps.caps.take(channel, keyIndex, tokens, nowMs);
  return { ...found, key: channel.keys[keyIndex] ?? "", lease, beganMs: nowMs };
}

/** Waits until a channel that is full may have room; false: the time for it is over. */
async function waitForRoom(run: Run, deadlineAtMs: number): Promise<boolean> {
  const { services, request, full } = run;
  const { caps, clock } = services.deps;
  const { signal } = request.request;
  const leftMs = Math.min(run.queueUntilMs, deadlineAtMs) - performance.now();
  if (full.size === 0 || leftMs <= 0 || signal.aborted) return false;
  const wanted = { channelIds: [...full], keyIndex: boundKey(run.request) };
  await caps.wait(wanted, Math.min(leftMs, roomInMs(run, clock.monotonicMs())), signal);
  run.refusals = undefined;
  return !signal.aborted;
}

function roomInMs({ services, full, request }: Run, nowMs: number): number {
  const { routing, caps } = services.deps;
  return Math.min(
    ...[...full].map((id) => {
      const channel = routing.channel(id);
      return channel ? caps.roomInMs(channel, nowMs, boundKey(request)) : 1;
    }),
  );
}

/** Who could serve the request, were it not for time that they asked for. */
function patientOnes({ services, request, policy, excluded, patience }: Run): Channel[] {
  if (request.pinned) return [];
  const { routing } = services.deps;
  const tiers = groupsOf(request.caller).flatMap((group) => routing.tiers(group, request.model));
  return tiers
    .flatMap(({ entries }) => entries.map(({ channel }) => channel))
    .filter(({ id }) => !excluded.has(id) || patience?.waiting.has(id) === true)
    .filter((channel) => policy.accepts(channel));
}

function patienceOf(run: Run): Patience {
  const { deps, picker } = run.services;
  return (run.patience ??= createPatience(deps, picker, run.request.model));
}

/** Waits where all who are left asked for a little time; false: it is too long, or nobody did. */
async function waitForPatient(run: Run, deadlineAtMs: number): Promise<boolean> {
  const candidates = patientOnes(run);
  if (candidates.length === 0) return false;
  const { patience } = run;
  const waiting = patience ? [...patience.waiting] : [];
  if (!(await patienceOf(run).wait(candidates, deadlineAtMs, run.request.request.signal))) return false;
  run.excluded = new Set([...run.excluded].filter((id) => !waiting.includes(id)));
  return true;
}

/** All who are left asked for more time than a call may wait. */
function saturatedFailure(run: Run, last: unknown): Failure | undefined {
  const candidates = patientOnes(run);
  if (candidates.length === 0) return undefined;
  const failure = patienceOf(run).failure(candidates);
  // The attempt before has its row.
  if (failure && last instanceof AttemptFailure) markTold(failure);
  return failure;
}

/** The client reads the shortest of the times that were asked for, not the last. */
function soonerFailure(run: Run, last: AttemptFailure): AttemptFailure | Failure {
  const sooner = saturatedFailure(run, last);
  const saidSeconds = last.failure.retryAfterSeconds ?? 0;
  return sooner && (sooner.retryAfterSeconds ?? Infinity) < saidSeconds ? sooner : last;
}

/** Everybody who could serve is full: the client reads when to come again. */
function noRoom(run: Run): Failure {
  const seconds = Math.max(1, Math.ceil(roomInMs(run, run.services.deps.clock.monotonicMs()) / 1000));
  const params = { model: run.request.model, seconds };
  return new Failure("limit", "channel_capacity_exhausted", { params, retryAfterSeconds: seconds });
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
  const { deps } = services;
  const { channel } = attempt;
  const { failure } = failed;
  // No finding about the channel.
  if (failure.code === "client_gone" || failure.code === "server_draining") {
    tellNothing(services, attempt, request.model);
    return false;
  }
  logFailure(run, attempt, failed);
  if (request.isTest) return false;
  services.picker.traffic.told(channel, request.model, deps.clock.monotonicMs());
  const { refusal } = failed;
  const isFatal = refusal !== undefined && mustDisable(deps, channel, refusal, request);
  // A channel with more keys goes on with them: only the key that failed rests.
  const rejected = isFatal ? new AttemptFailure(failure, "rejected", refusal) : failed;
  // Another key goes on: whether the channel's model works again this attempt has not found out.
  if (restKey(deps, attempt, request.model, rejected)) tellNothing(services, attempt, request.model);
  else {
    exclude(run, channel);
    if (failed.verdict === "limited" && (failure.retryAfterSeconds ?? 0) > 0) patienceOf(run).asked(channel);
    tellFailed(services, attempt, request.model, failed);
  }
  // With the last key that was on its channel goes off.
  if (isFatal) void disableFor(deps, attempt, refusal);
  if (request.request.signal.aborted) return false;
  if (request.affinity?.isBound && request.affinity.skipsRetry) return false;
  return policy.mayRetry
    ? policy.mayRetry(failed, channel)
    : mayRetry(failed, channel.type, deps.options.get("AutomaticRetryStatusCodes"));
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

function toldAttempt(
  { request, policy }: Run,
  { channel, group }: ChannelAttempt,
  startedMs: number,
): ToldAttempt {
  const ms = performance.now() - startedMs;
  const { model, record, attempts } = request;
  const note = attempts.at(-1);
  return { channel, group, model, endpoint: policy.endpoint, ms, startedMs, record, note };
}

/** An error row for the failed attempt. */
function logFailure(
  { services, request, policy }: Run,
  { channel, keyIndex, group }: ChannelAttempt,
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
          ...keyFields(channel, keyIndex),
          use_channel: request.attempts.map((each) => String(each.channel)),
          upstream_text: failure.upstreamText ?? "",
          internal: failure.internal ?? "",
        },
      },
    };
  });
}
