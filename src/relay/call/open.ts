// Opens the answer of one attempt, in the form that its endpoint and its upstream call for: whole, a stream, or bytes.
import type { Picker } from "../../core/channels/picker.ts";
import type { Deps } from "../../core/deps.ts";
import type { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Tap } from "../meter/meter.ts";
import type { TokenCounter } from "../meter/token-count.ts";
import type { StreamConversion } from "../wire/stream-convert.ts";
import type { StreamEnd, StreamOptions } from "../wire/stream.ts";
import type { Answer } from "./answer.ts";
import { attempt, readWhole } from "./attempt.ts";
import type { AttemptLimits } from "./attempt.ts";
import type { Call } from "./call.ts";
import type { ErrorRows } from "./error-rows.ts";
import type { OpenCalls } from "./in-flight.ts";
import type { Lockstep } from "./lockstep.ts";
import { isJson, openBytes } from "./open-bytes.ts";
import { openStream } from "./open-stream.ts";
import { gatherStream, openWhole } from "./open-whole.ts";
import type { Plan, PlanContext } from "./plan.ts";
import type { ResponseHomes } from "./response-affinity.ts";

export interface AttemptsContext {
  deps: Deps;
  picker: Picker;
  counter: TokenCounter;
  lockstep: Lockstep;
  homes: ResponseHomes;
  /** Channels that were seen to stream without usage. */
  silent: Set<number>;
  drain: { ms: number; bytes: number };
  errorRows: ErrorRows;
  open: OpenCalls;
  plans: PlanContext;
  /** Called when a stream ends: settles the call. */
  finish: (
    call: Call,
    plan: Plan,
    tap: Tap,
    conversion: StreamConversion | undefined,
    firstByteMs: () => number,
  ) => StreamOptions["finish"];
  /** Called when an answer that is no text ends: settles the call. */
  finishBytes: (call: Call, plan: Plan, end: StreamEnd) => Promise<unknown>;
  failureFrame: (call: Call, failure: Failure) => string;
  failureBody: (call: Call, failure: Failure) => unknown;
  /** The last element of a JSON array whose stream the balance ended. */
  limitBody: (call: Call, usage: Usage) => string;
  /** Looks at the model's words as they come; undefined = they are not screened. Returns the failure of a hit. */
  screenOutput: (call: Call) => ((delta: string) => Failure | undefined) | undefined;
}

/** Asks the upstream and opens what it answers; throws AttemptFailure. */
export async function open(
  context: AttemptsContext,
  call: Call,
  plan: Plan,
  limits: AttemptLimits,
): Promise<Answer> {
  const startedMs = performance.now();
  const { upstream, dialect, channel } = plan;
  const opened = await attempt(upstream, limits, dialect, channel, call, context.open);
  if (!opened.isStream && call.endpoint.answers === "bytes" && !isJson(opened.response))
    return openBytes(context, call, plan, opened);
  if (!opened.isStream) {
    const bytes = await readWhole(opened, limits.maxAnswerBytes);
    await context.lockstep.turn();
    return openWhole(call, plan, opened, bytes);
  }
  if (!call.wantsStream && call.endpoint.isConversation)
    return gatherStream(call, plan, opened, limits.maxAnswerBytes);
  const spentMs = performance.now() - startedMs;
  const firstEventMs = limits.firstByteMs === 0 ? 0 : Math.max(1, limits.firstByteMs - spentMs);
  return openStream(context, call, plan, opened, { firstEventMs });
}
