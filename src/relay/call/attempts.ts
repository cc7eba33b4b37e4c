// The attempts of one call: channel after channel until one answers, under one deadline.
// Refuses to try a channel twice, and to go on once anything could have reached the client.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import { LogType } from "../../shared/enums.ts";
import { Failure } from "../../shared/failures.ts";
import { attemptFailure, AttemptFailure, mayRetry } from "./attempt.ts";
import { disableIfFatal } from "./auto-disable.ts";
import { drainingFailure } from "./call.ts";
import type { Call } from "./call.ts";
import type { Answer } from "./answer.ts";
import { canServe, goneReason, planCall } from "./plan.ts";
import { openAnswer } from "./open.ts";
import type { Plan } from "./plan.ts";
import type { CallServices } from "./services.ts";
import { publicText } from "../wire/render-failure.ts";

const BYTES_PER_MIB = 1024 * 1024;

/** Thrown when the last attempt failed; the plan tells whom a call is charged for that nobody waited for. */
export class CallFailed extends Error {
  constructor(
    readonly failure: Failure,
    readonly plan: Plan | undefined,
  ) {
    super(failure.code);
  }
}

function nextChannel(context: CallServices, call: Call, failed: ReadonlySet<number>): Channel | undefined {
  if (call.pinned) return failed.size === 0 ? call.pinned : undefined;
  const nowMs = context.deps.clock.monotonicMs();
  const accepts = (channel: Channel): boolean => canServe(channel, call.endpoint, call.model);
  const home =
    call.endpoint.name === "responses" && failed.size === 0
      ? context.affinity.find(call, accepts, nowMs)
      : undefined;
  return home ?? context.picker.pick(call.caller.group, call.model, failed, nowMs, accepts);
}

/** Runs attempts until one opens; throws CallFailed with the last failure. */
export async function runAttempts(context: CallServices, call: Call): Promise<Answer> {
  const { options } = context.deps;
  const failed = new Set<number>();
  const tries = call.pinned ? 1 : options.get("RetryTimes") + 1;
  const deadlineAtMs = performance.now() + options.get("relay.deadline_seconds") * 1000;
  const firstByteMs = options.get("relay.first_byte_timeout_seconds") * 1000;
  const maxAnswerBytes = options.get("relay.max_answer_mb") * BYTES_PER_MIB;
  let last: CallFailed | undefined;
  for (let i = 0; i < tries; i++) {
    const channel = nextChannel(context, call, failed);
    if (!channel) break;
    const startedMs = performance.now();
    const deadlineMs = deadlineAtMs - startedMs;
    if (deadlineMs <= 0) break;
    let plan: Plan | undefined;
    try {
      // A border between two stages (lockstep.ts), also where nothing has to be fetched.
      plan = await planCall(context.plans, call, channel);
      // Nobody is asked for a client that has left, or by a process that is about to end.
      if (call.request.signal.aborted) throw new CallFailed(clientGone(), undefined);
      if (context.inFlight.isEnding) throw new CallFailed(drainingFailure(), undefined);
      const answer = await openAnswer(context, call, plan, { firstByteMs, deadlineMs, maxAnswerBytes });
      note(call, channel, startedMs, "ok", 200);
      if (!call.isTest) {
        context.deps.keyring.wake(channel, plan.keyIndex);
        context.picker.report(channel.id, "ok", context.deps.clock.monotonicMs());
      }
      return answer;
    } catch (thrown) {
      // What this channel's dialect cannot say another one's may: that is no failed attempt of anybody.
      const unsaid = thrown instanceof AttemptFailure ? thrown.failure : thrown;
      if (unsaid instanceof Failure && unsaid.code === "unsupported_field" && !call.pinned) {
        failed.add(channel.id);
        last = new CallFailed(unsaid, undefined);
        i--;
        continue;
      }
      // Findings of our own (mapping, override) that hold for every channel end the call.
      const error = thrown instanceof Failure && thrown.retryable ? attemptFailure(thrown) : thrown;
      if (!(error instanceof AttemptFailure)) {
        if (error instanceof Failure) throw new CallFailed(error, plan);
        throw error;
      }
      const { failure } = error;
      note(call, channel, startedMs, failure.code, failure.upstreamStatus);
      last = new CallFailed(failure, plan);
      // No finding about the channel.
      if (failure.code === "client_gone" || failure.code === "server_draining") break;
      logFailure(context, call, channel, error);
      if (call.isTest) break;
      // A channel with more keys goes on with them: only the key that failed rests.
      if (!plan || !restKey(context.deps, plan, error)) {
        failed.add(channel.id);
        context.picker.report(
          channel.id,
          error.verdict,
          context.deps.clock.monotonicMs(),
          failure.retryAfterSeconds,
        );
        if (error.refusal) void disableIfFatal(context.deps, channel, error.refusal);
      }
      if (call.request.signal.aborted || !mayRetry(error, channel.type)) break;
    }
  }
  throw last ?? new CallFailed(noChannel(context, call), undefined);
}

/** How long a key rests that its provider rejected, or asked to be patient with. */
const REJECTED_KEY_MS = 600_000;
const LIMITED_KEY_MS = 30_000;

/** Rests the key of a failed attempt when it is the key that failed; true when other keys of the channel go on. */
function restKey(deps: Deps, { channel, keyIndex }: Plan, { failure, verdict }: AttemptFailure): boolean {
  if (verdict !== "rejected" && verdict !== "limited") return false;
  const wanted = (failure.retryAfterSeconds ?? 0) * 1000;
  const restMs =
    verdict === "rejected" ? REJECTED_KEY_MS : Math.max(LIMITED_KEY_MS, Math.min(wanted, REJECTED_KEY_MS));
  const detail = failure.internal?.slice(0, 200) ?? failure.code;
  return deps.keyring.rest(channel, keyIndex, { reason: verdict, restMs, detail }, deps.clock.monotonicMs());
}

function clientGone(): Failure {
  return new Failure("client", "client_gone", { status: 499 });
}

function noChannel(context: CallServices, call: Call): Failure {
  const left = context.deps.routing.tiers(call.caller.group, call.model).flatMap(({ entries }) => entries);
  const gone = goneReason(left.map(({ channel }) => channel));
  if (gone) return gone;
  return new Failure("no-channel", "endpoint_unsupported", {
    params: { group: call.caller.group, model: call.model },
  });
}

function note(
  call: Call,
  channel: Channel,
  startedMs: number,
  code: string,
  status: number | undefined,
): void {
  call.attempts.push({
    channel: channel.id,
    ms: Math.round(performance.now() - startedMs),
    code,
    ...(status === undefined || code === "ok" ? {} : { status }),
  });
}

/** An error row for the failed attempt; its owner reads the public text, administrators also what was really said. */
function logFailure(
  { deps, errorRows }: CallServices,
  call: Call,
  channel: Channel,
  failed: AttemptFailure,
): void {
  if (!deps.options.get("ErrorLogEnabled")) return;
  const { failure } = failed;
  const { caller } = call;
  const { token } = caller;
  errorRows.add({ userId: caller.user.id, tokenId: token?.id ?? 0, reason: failure.code }, () => ({
    type: LogType.error,
    userId: caller.user.id,
    username: caller.user.username,
    content: publicText(failure, {
      dialect: call.endpoint.dialect,
      language: "zh",
      requestId: call.requestId,
    }),
    channelId: channel.id,
    tokenId: token?.id ?? 0,
    tokenName: caller.tokenName ?? token?.name ?? "",
    modelName: call.model,
    group: caller.group,
    requestId: call.requestId,
    useTimeMs: Math.round(performance.now() - call.startedMs),
    isStream: call.wantsStream,
    other: {
      error_type: failure.type ?? "upstream_error",
      error_code: failure.wireCode ?? failure.code,
      status_code: failure.status,
      channel_id: channel.id,
      channel_name: channel.name,
      channel_type: channel.type,
      admin_info: {
        use_channel: call.attempts.map((each) => String(each.channel)),
        internal: failure.internal ?? "",
      },
    },
  }));
}
