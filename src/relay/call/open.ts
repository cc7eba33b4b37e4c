// Opens the answer of one attempt, in the form that its endpoint and its upstream call for: full, a stream, or bytes.
import type { Answer } from "./answer.ts";
import { parseJson } from "../../protocol/json.ts";
import { secretsOf } from "../../shared/without-keys.ts";
import { keylessBytes } from "../wire/keyless.ts";
import { textOf } from "../wire/read-body.ts";
import { attempt, readFull, withUsage } from "./attempt.ts";
import type { AttemptLimits } from "./attempt.ts";
import type { Call } from "./call.ts";
import { keyless } from "./keyless.ts";
import { lineOnArrival } from "./lockstep.ts";
import { isJson, openBytes } from "./open-bytes.ts";
import { gatherStream, openFull } from "./open-full.ts";
import { openStream } from "./open-stream.ts";
import type { Plan } from "./plan.ts";
import type { CallServices } from "./services.ts";

/** Larger ones are not parsed once more for what they say of their usage. */
const MAX_FAILED_BYTES = 1024 * 1024;

const FULL_ANSWER = lineOnArrival(openFull);

/** Sends the request to the upstream and opens what it answers; throws AttemptFailure. */
export async function openAnswer(
  services: CallServices,
  call: Call,
  plan: Plan,
  limits: AttemptLimits,
): Promise<Answer> {
  try {
    return await openWith(services, call, plan, limits);
  } catch (error) {
    throw keyless(error, plan.key);
  }
}

async function openWith(
  services: CallServices,
  call: Call,
  plan: Plan,
  limits: AttemptLimits,
): Promise<Answer> {
  const startedMs = performance.now();
  const { upstream, dialect, channel } = plan;
  const opened = await attempt({
    request: upstream,
    limits,
    dialect,
    channel,
    key: plan.key,
    call,
    readingOn: services.inFlight,
  });
  if (!opened.isStream && call.endpoint.answers === "bytes" && !isJson(opened.response))
    return openBytes(services, call, plan, opened);
  if (!opened.isStream) {
    const bytes = keylessBytes(await readFull(opened, limits.maxAnswerBytes), secretsOf(plan.key));
    try {
      return await FULL_ANSWER.run(services, { call, plan, opened, bytes });
    } catch (error) {
      const isSmall = bytes.length <= MAX_FAILED_BYTES && services.deps.costs.has(channel.id);
      throw isSmall ? withUsage(error, dialect, parseJson(textOf(bytes))) : error;
    }
  }
  if (!call.wantsStream && call.endpoint.isConversation)
    return gatherStream(call, plan, opened, limits.maxAnswerBytes);
  const spentMs = performance.now() - startedMs;
  const firstEventMs = limits.firstByteMs === 0 ? 0 : Math.max(1, limits.firstByteMs - spentMs);
  return openStream(services, { call, plan, opened, firstEventMs });
}
