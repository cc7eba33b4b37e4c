// The attempts of one relayed call: each plans how the call is put to the channel, asks it, and opens its answer.
import { Failure } from "../../shared/failures.ts";
import type { Channel } from "../../core/channels/rows.ts";
import type { Answer } from "./answer.ts";
import { affinityOf, leavesProofs, recallSession } from "./affinity.ts";
import { serveIn } from "./auto-group.ts";
import { AttemptFailure, failureIn } from "./attempt.ts";
import { drainingFailure, endsLater } from "./call.ts";
import type { Call } from "./call.ts";
import { attemptChannels } from "./channel-attempts.ts";
import type { AttemptPolicy, ChannelAttempt } from "./channel-attempts.ts";
import { hasChat, lacksResponses } from "./chat-only.ts";
import { takesInput } from "./input-limit.ts";
import { openAnswer } from "./open.ts";
import { canServe, planCall } from "./plan.ts";
import type { Plan } from "./plan.ts";
import { rejectsProofs } from "./proofs.ts";
import { holdForSent, resetTerms } from "./rehold.ts";
import type { CallServices } from "./services.ts";
import { bearFailed } from "./upstream-cost.ts";

/** Thrown when the last attempt failed; the plan tells whom a call is charged for that nobody waited for. */
export class CallFailed extends Error {
  constructor(
    readonly failure: Failure,
    readonly plan: Plan | undefined,
  ) {
    super(failure.code);
  }
}

/** Runs attempts until one opens; throws CallFailed with the last failure. */
export async function runAttempts(services: CallServices, call: Call): Promise<Answer> {
  /** Of the request that an upstream has, and has not refused. */
  let plan: Plan | undefined;
  // Whoever names a channel has chosen; a call that goes on from a stored response takes its session along.
  if (!call.pinned || call.pinnedKey !== undefined) call.affinity = affinityOf(services.deps, call);
  const recalled = call.pinned ? undefined : recallSession(services.deps, call);
  if (recalled) await recalled;
  try {
    return await attemptChannels(services, call, policyOf(call), async (attempt) => {
      plan = undefined;
      resetTerms(call);
      call.lease = attempt.lease;
      call.beganMs = attempt.beganMs;
      serveIn(call, attempt.group);
      // Waited for also where nothing has to be fetched: calls that came together go on together (lockstep.ts).
      const dropsProofs = leavesProofs(call.affinity, attempt);
      const { channel, key, keyIndex } = attempt;
      const planned = await planCall(services.plans, call, { channel, key, keyIndex, dropsProofs });
      const rehold = holdForSent(services, call, planned);
      if (rehold) await rehold;
      checkWanted(services, call);
      plan = planned;
      const startedMs = performance.now();
      call.record.askedMs = startedMs;
      try {
        return await openAnswer(services, call, planned, attempt.limits);
      } catch (error) {
        bearUsage(services, call, planned, error);
        if (!dropsProofs && rejectsProofs(error, call)) {
          // It bills nothing, and nobody has the next request yet.
          plan = undefined;
          plan = await planBare(services, call, attempt);
          return await askAgain(services, call, plan, { ...attempt, startedMs });
        }
        if (!lacksResponses(error, call, planned)) {
          const failure = failureIn(error);
          if (failure instanceof Failure) call.lastFailure = failure;
          throw error;
        }
        plan = undefined;
        resetTerms(call);
        const asChat = await planCall(services.plans, call, { ...attempt, isChatOnly: true });
        // Some models are served in the Responses API only.
        if (asChat.dialect === planned.dialect) throw error;
        await holdForSent(services, call, asChat);
        checkWanted(services, call);
        plan = asChat;
      }
      return await askAsChat(services, call, plan, { ...attempt, startedMs });
    });
  } catch (error) {
    const failure = failureIn(error);
    throw failure instanceof Failure ? new CallFailed(failure, plan) : error;
  }
}

/** The same call without the proofs that its upstream could not read. */
async function planBare(services: CallServices, call: Call, attempt: ChannelAttempt): Promise<Plan> {
  resetTerms(call);
  const bare = await planCall(services.plans, call, { ...attempt, dropsProofs: true });
  await holdForSent(services, call, bare);
  checkWanted(services, call);
  if (call.affinity) call.affinity.wasRejected = true;
  return bare;
}

/** In what is left of the attempt's time. */
async function askAgain(
  services: CallServices,
  call: Call,
  plan: Plan,
  { limits, startedMs }: ChannelAttempt & { startedMs: number },
): Promise<Answer> {
  const deadlineMs = Math.max(1, limits.deadlineMs - (performance.now() - startedMs));
  try {
    return await openAnswer(services, call, plan, { ...limits, deadlineMs });
  } catch (error) {
    bearUsage(services, call, plan, error);
    const failure = failureIn(error);
    if (failure instanceof Failure) call.lastFailure = failure;
    throw error;
  }
}

/** Nobody is asked for a client that has left, or by a process that is about to end. */
function checkWanted({ inFlight }: CallServices, call: Call): void {
  if (call.request.signal.aborted) throw new Failure("client", "client_gone", { status: 499 });
  if (inFlight.isEnding) throw drainingFailure();
}

/**
 * The same attempt as chat completions, at an upstream that has no Responses API. What it has is remembered with the
 * channel, unless there is nothing at all where it should be.
 */
async function askAsChat(
  services: CallServices,
  call: Call,
  plan: Plan,
  { channel, limits, startedMs }: ChannelAttempt & { startedMs: number },
): Promise<Answer> {
  const { chatOnly } = services.plans;
  const deadlineMs = Math.max(1, limits.deadlineMs - (performance.now() - startedMs));
  try {
    const answer = await openAnswer(services, call, plan, { ...limits, deadlineMs });
    chatOnly.add(channel);
    return answer;
  } catch (error) {
    if (hasChat(error, call)) chatOnly.add(channel);
    bearUsage(services, call, plan, error);
    throw error;
  }
}

function bearUsage(services: CallServices, call: Call, plan: Plan, error: unknown): void {
  if (error instanceof AttemptFailure && error.usage) bearFailed(services, call, plan, error.usage);
}

function policyOf(call: Call): AttemptPolicy {
  const { endpoint } = call;
  const accepts = (channel: Channel): boolean =>
    takesInput(channel, call.prompt.tokens) && canServe(channel, endpoint, call.model);
  return {
    accepts,
    dialect: endpoint.dialect,
    endpoint: endpoint.name,
    tellsEnd: endsLater(call),
  };
}
