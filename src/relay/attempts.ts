// The attempts of one call: channel after channel until one answers, under one deadline.
// Refuses to try a channel twice, and to go on once anything could have reached the client.
import type { Channel } from "../core/channel-rows.ts";
import type { Deps } from "../core/deps.ts";
import type { Picker } from "../core/picker.ts";
import { meterAnswer } from "../protocol/openai-text.ts";
import type { AnswerMeter } from "../protocol/openai-text.ts";
import { parseJson } from "../protocol/json.ts";
import { LogType } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";
import { attempt, attemptFailure, AttemptFailure, mayRetry, readWhole } from "./attempt.ts";
import type { AttemptLimits, Opened } from "./attempt.ts";
import { disableIfFatal } from "./auto-disable.ts";
import type { Call } from "./call.ts";
import { createTap } from "./meter.ts";
import type { Tap } from "./meter.ts";
import { canServe, planCall } from "./plan.ts";
import type { Plan } from "./plan.ts";
import { publicText } from "./render-failure.ts";
import { createStreamRelay } from "./stream.ts";
import type { StreamOptions, StreamRelay } from "./stream.ts";
import type { TokenCounter } from "./token-count.ts";

/** A plain answer, read in full and understood. */
export interface WholeAnswer {
  kind: "whole";
  plan: Plan;
  response: Response;
  bytes: Uint8Array<ArrayBuffer>;
  json: unknown;
  meter: AnswerMeter;
}

/** A stream whose first event is there. */
export interface StreamAnswer {
  kind: "stream";
  plan: Plan;
  response: Response;
  relay: StreamRelay;
  firstByteMs: number;
}

export type Answer = WholeAnswer | StreamAnswer;

export interface AttemptsContext {
  deps: Deps;
  picker: Picker;
  counter: TokenCounter;
  /** Channels that were seen to stream without usage. */
  silent: Set<number>;
  drain: { ms: number; bytes: number };
  /** Called when a stream ends: settles the call. */
  finish: (call: Call, plan: Plan, tap: Tap, firstByteMs: () => number) => StreamOptions["finish"];
  failureFrame: (call: Call, failure: Failure) => string;
}

/** Thrown when the last attempt failed; the plan tells whom an abandoned call is charged for. */
export class CallFailed extends Error {
  constructor(
    readonly failure: Failure,
    readonly plan: Plan | undefined,
  ) {
    super(failure.code);
  }
}

function nextChannel(context: AttemptsContext, call: Call, failed: ReadonlySet<number>): Channel | undefined {
  if (call.pinned) return failed.size === 0 ? call.pinned : undefined;
  return context.picker.pick(call.caller.group, call.model, failed, context.deps.clock.nowMs(), (channel) =>
    canServe(channel, call.endpoint, call.model),
  );
}

/** Runs attempts until one opens; throws CallFailed with the last failure. */
export async function runAttempts(context: AttemptsContext, call: Call): Promise<Answer> {
  const { options } = context.deps;
  const failed = new Set<number>();
  const tries = call.pinned ? 1 : options.get("RetryTimes") + 1;
  const deadlineAtMs = performance.now() + options.get("relay.deadline_seconds") * 1000;
  const firstByteMs = options.get("relay.first_byte_timeout_seconds") * 1000;
  let last: CallFailed | undefined;
  for (let i = 0; i < tries; i++) {
    const channel = nextChannel(context, call, failed);
    if (!channel) break;
    const startedMs = performance.now();
    const deadlineMs = deadlineAtMs - startedMs;
    if (deadlineMs <= 0) break;
    let plan: Plan | undefined;
    try {
      plan = planCall(context.deps, call, channel);
      const answer = await open(context, call, plan, { firstByteMs, deadlineMs, drainMs: context.drain.ms });
      note(call, channel, startedMs, "ok", 200);
      context.picker.report(channel.id, "ok", context.deps.clock.nowMs());
      return answer;
    } catch (thrown) {
      // Findings of our own (mapping, override, conversion) that hold for every channel end the call.
      const error = thrown instanceof Failure && thrown.retryable ? attemptFailure(thrown) : thrown;
      if (!(error instanceof AttemptFailure)) {
        if (error instanceof Failure) throw new CallFailed(error, plan);
        throw error;
      }
      const { failure } = error;
      note(call, channel, startedMs, failure.code, failure.upstreamStatus);
      failed.add(channel.id);
      last = new CallFailed(failure, plan);
      if (call.request.signal.aborted) break;
      context.picker.report(channel.id, error.verdict, context.deps.clock.nowMs(), failure.retryAfterSeconds);
      logFailure(context.deps, call, channel, error);
      if (error.refusal) void disableIfFatal(context.deps, channel, error.refusal);
      if (!mayRetry(error, channel.type)) break;
    }
  }
  throw last ?? new CallFailed(noChannel(call), undefined);
}

function noChannel(call: Call): Failure {
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

/** One error row per failed attempt; its owner reads the public text, administrators also what was really said. */
function logFailure(deps: Deps, call: Call, channel: Channel, failed: AttemptFailure): void {
  if (!deps.options.get("ErrorLogEnabled")) return;
  const { failure } = failed;
  const { caller } = call;
  const { token } = caller;
  deps.ledger
    .log({
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
    })
    .catch((error: unknown) => {
      deps.logger.warn("error row could not be written", { requestId: call.requestId, error: String(error) });
    });
}

async function open(
  context: AttemptsContext,
  call: Call,
  plan: Plan,
  limits: AttemptLimits,
): Promise<Answer> {
  const opened = await attempt(plan.upstream, limits, plan.dialect, plan.channel, call.request.signal);
  return opened.isStream ? openStream(context, call, plan, opened) : openWhole(plan, opened);
}

async function openWhole(plan: Plan, opened: Opened): Promise<WholeAnswer> {
  const bytes = await readWhole(opened);
  const json = parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  if (typeof json !== "object" || json === null) {
    throw attemptFailure(new Failure("upstream-down", "upstream_bad_answer", { type: "upstream_error" }));
  }
  const meter = meterAnswer(json);
  // Some providers say 200 and mean an error: nothing was sent yet, so it is one.
  if (meter.failure) throw attemptFailure(meter.failure);
  return { kind: "whole", plan, response: opened.response, bytes, json, meter };
}

async function openStream(
  context: AttemptsContext,
  call: Call,
  plan: Plan,
  opened: Opened,
): Promise<StreamAnswer> {
  const { options } = context.deps;
  const { body } = opened.response;
  if (!body) throw attemptFailure(new Failure("upstream-down", "upstream_bad_answer"));
  const tap = createTap(
    plan.dialect,
    context.counter,
    plan.upstreamModel,
    !plan.reportsUsage || context.silent.has(plan.channel.id),
  );
  let firstByteMs = 0;
  const idleSeconds = options.get("relay.stream_idle_timeout_seconds");
  const relay = createStreamRelay(
    { reader: body.getReader(), abort: () => opened.abort() },
    {
      meter: tap.meter,
      hidesUsage: !call.wantsUsage,
      // Reasoning models think in silence.
      idleMs: idleSeconds * 1000 * (plan.upstreamModel.startsWith("o") ? 2 : 1),
      pingMs: pingMs(options),
      drain: context.drain,
      finish: context.finish(call, plan, tap, () => firstByteMs),
      failureFrame: (failure) => context.failureFrame(call, failure),
    },
  );
  try {
    await relay.begin();
  } catch (error) {
    opened.settled();
    if (error instanceof Failure) throw attemptFailure(error);
    throw opened.explain(error);
  }
  opened.settled();
  firstByteMs = performance.now() - call.startedMs;
  return { kind: "stream", plan, response: opened.response, relay, firstByteMs };
}

/** Interval of keep-alive comments; 0 = switched off. */
export function pingMs(options: Deps["options"]): number {
  if (!options.get("general_setting.ping_interval_enabled")) return 0;
  const seconds = options.get("general_setting.ping_interval_seconds");
  return (seconds > 0 ? seconds : 10) * 1000;
}
