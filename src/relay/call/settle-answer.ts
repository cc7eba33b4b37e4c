// Settles a call by how it ended: a full answer before its first byte leaves, a stream before its last bytes do.
// Never reports usage that was not charged: where an upstream reports none, the client gets what the ledger says.
import type { RemoteObject } from "../../core/deps.ts";
import type { EndReason } from "../../core/ledger/settle-policy.ts";
import { asObject } from "../../protocol/json.ts";
import { encodeUsage } from "../../protocol/openai-chat/usage.ts";
import { Failure } from "../../shared/failures.ts";
import { completionTokens, emptyUsage, promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { answerTexts, canonicalTexts } from "../meter/meter.ts";
import type { OutputCounter } from "../meter/meter.ts";
import { COUNT_ERRORS, estimateTokens, hasOwnEncoder } from "../meter/token-count.ts";
import { failureFrame } from "../wire/render-failure.ts";
import { textOf } from "../wire/read-body.ts";
import { isCut } from "../wire/stream-end.ts";
import type { StreamEnd } from "../wire/stream-end.ts";
import type { Answer, BytesAnswer, FullAnswer, StreamAnswer } from "./answer.ts";
import type { CallFailed } from "./attempts.ts";
import { endsLater } from "./call.ts";
import type { Call } from "./call.ts";
import { viewOf } from "./exchange.ts";
import { tellDown } from "./findings.ts";
import { sparedUnits } from "./hold-input.ts";
import { keylessFailure } from "./keyless.ts";
import { choicesIn, limitFrames } from "./limit-frames.ts";
import type { CallServices } from "./services.ts";
import { settleCall } from "./settle.ts";
import { coverFull } from "./stream-hold.ts";
import { tellRefused, tellStreamedAttempt } from "./telling.ts";
import { upstreamIdOf } from "./upstream-id.ts";

/** An answer that may leave: its call is settled, or will be before its last bytes leave. */
export interface SettledAnswer {
  answer: Answer;
  /** As charged; undefined where nothing was charged, and for what has not ended. */
  usage: Usage | undefined;
  /** The balance does not pay the answer: in its place leaves the end of a stream that reached its limit. */
  isUnpaid: boolean;
}

const NO_TOKENS = (): Promise<number> => Promise.resolve(0);
/** Failures of attempts whose answer nobody waited for, as the table of charges knows them. */
const UNANSWERED: Readonly<Record<string, EndReason>> = {
  client_gone: "abandoned",
  server_draining: "draining",
};

export function settle(services: CallServices, answer: Answer): SettledAnswer | Promise<SettledAnswer> {
  if (answer.kind === "full") return settleFull(services, answer);
  if (answer.kind === "stream") void settleStream(services, answer);
  else void settleBytes(services, answer);
  return { answer, usage: undefined, isUnpaid: false };
}

/** A call without an answer: charged where an upstream got the request and bills it, else what was held is given back. */
export async function settleUnanswered(
  services: CallServices,
  call: Call,
  failed: CallFailed | undefined,
): Promise<void> {
  const reason = failed && UNANSWERED[failed.failure.code];
  if (failed?.plan && reason) {
    await settleCall(services, call, failed.plan, {
      reason,
      usage: null,
      sawText: false,
      outputTokens: NO_TOKENS,
      isStream: call.wantsStream,
      firstByteMs: undefined,
    });
    return;
  }
  services.inFlight.remove(call);
  await call.reservation.release();
}

async function settleFull(services: CallServices, answer: FullAnswer): Promise<SettledAnswer> {
  const { call, meter, plan, json } = answer;
  // It has been read in full.
  call.lease?.release();
  const { endpoint } = call;
  const forbidden = services.screens.answer(answer);
  const outputTokens = (): Promise<number> => countFull(services, answer);
  const { usage: reported } = meter;
  const isUnpaid =
    call.wantsStream &&
    !(await coverFull(
      call,
      () => (reported ? Promise.resolve(completionTokens(reported)) : outputTokens()),
      () => sparedUnits(services, call, plan),
    ));
  const object =
    endpoint.name === "responses" && !isUnpaid && !forbidden
      ? services.affinity.rowOf(
          call,
          plan,
          asObject(json)?.["id"] ?? answer.canonical?.id,
          tokensOf(call, reported),
        )
      : undefined;
  const usage = await settleCall(services, call, plan, {
    reason: isUnpaid ? "balance" : call.request.signal.aborted ? "client-gone" : "completed",
    usage: isUnpaid && reported ? withoutOutput(reported) : reported,
    usageFinal: !isUnpaid,
    ...(isUnpaid && reported ? { billed: reported } : {}),
    upstreamId: upstreamIdOf(answer.response, asObject(json)?.["id"] ?? answer.canonical?.id),
    sawText: meter.textChars > 0 || endpoint.name === "embeddings" || endpoint.ownUsage !== undefined,
    outputTokens: isUnpaid ? NO_TOKENS : outputTokens,
    isStream: false,
    firstByteMs: undefined,
    json: json ?? (endpoint.answers === "text" ? textOf(answer.bytes) : undefined),
    object,
  });
  if (forbidden) throw forbidden;
  if (!isUnpaid && usage) learnLength(services, call, usage);
  if (endsLater(call)) tellEnd(services, answer, "completed");
  if (object) await services.affinity.keep(object);
  return { answer, usage, isUnpaid };
}

/** Waits for the stream's end and settles; only then its last bytes leave. */
async function settleStream(services: CallServices, answer: StreamAnswer): Promise<void> {
  const { call, relay } = answer;
  services.visitors.feed(call.request, relay);
  const end = keylessEnd(await relay.ended, answer.plan.key);
  tellEnd(services, answer, end.reason);
  let tail: string;
  try {
    const usage = await settleEnded(services, answer, end);
    tail = tailOf(services, answer, end, usage);
  } catch (error) {
    const failure =
      error instanceof Failure ? error : new Failure("internal", "relay_internal", { cause: error });
    tellRefused(services.deps, { ...call, endpoint: call.endpoint.name }, failure);
    tail = failureTail(answer, failure);
  }
  relay.finish(tail);
}

/** What an upstream said when it broke off goes on to the client, as at the beginning. */
function keylessEnd(end: StreamEnd, key: string): StreamEnd {
  return end.failure ? { ...end, failure: keylessFailure(end.failure, key) } : end;
}

async function settleEnded(
  services: CallServices,
  { call, plan, response, relay, output, conversion, firstByteMs }: StreamAnswer,
  end: StreamEnd,
): Promise<Usage | undefined> {
  const { withoutUsage, affinity, visitors } = services;
  const { state } = output.meter;
  let object: RemoteObject | undefined;
  if (end.reason === "completed") {
    if (state.usage === null) withoutUsage.add(plan.channel.id);
    else if (withoutUsage.size > 0) withoutUsage.delete(plan.channel.id);
    if (state.responseId !== undefined)
      object = affinity.rowOf(call, plan, state.responseId, tokensOf(call, state.usage));
  }
  // A converted stream keeps what was reported on the way in its decoder.
  const reported = state.usageFinal || !conversion ? state.usage : conversion.usageSoFar();
  const isShort = end.deliveredShare !== undefined;
  const contentMs = relay.contentMs();
  try {
    const charged = await settleCall(services, call, plan, {
      reason: end.reason,
      // What was reported of an output that was not delivered is not charged.
      usage: isShort && reported ? withoutOutput(reported) : reported,
      usageFinal: state.usageFinal && !isShort,
      ...(isShort && reported && state.usageFinal ? { billed: reported } : {}),
      upstreamId: upstreamIdOf(response, state.responseId),
      sawText: state.sawText,
      outputTokens: () => deliveredTokens(output, end),
      generatedTokens: () => output.outputTokens(),
      isStream: true,
      firstByteMs: contentMs === undefined ? firstByteMs : contentMs - call.startedMs,
      servedTier: state.servedTier,
      object,
    });
    if (object) await affinity.keep(object);
    return charged;
  } finally {
    // The client waits for the ledger too: its connection stays open until it has written.
    visitors.fed(call.request);
  }
}

/** The last bytes of a stream, once it is settled: its clean end, or why there is none, in the client's dialect. */
function tailOf(
  services: CallServices,
  answer: StreamAnswer,
  end: StreamEnd,
  usage: Usage | undefined,
): string {
  const { call, conversion, relay } = answer;
  if (isCut(end.reason)) {
    const charged = usage ?? emptyUsage();
    if (conversion) return conversion.cut(charged, choicesIn(call));
    const nowMs = services.deps.clock.nowMs();
    return limitFrames(call, { usage: charged, nowMs, first: end.first, last: end.last });
  }
  if (end.reason !== "completed") return end.failure ? failureTail(answer, end.failure) : "";
  if (usage) learnLength(services, call, usage);
  if (conversion) return conversion.tail(usage);
  return usageFrame(services, answer, usage) + relay.terminalFrames();
}

function failureTail({ call, conversion }: StreamAnswer, failure: Failure): string {
  return conversion ? conversion.fail(failure) : failureFrame(failure, viewOf(call));
}

/** The client asked for usage and the upstream reports none: it gets what it is charged for. */
function usageFrame(
  { deps }: CallServices,
  { call, output }: StreamAnswer,
  usage: Usage | undefined,
): string {
  const { endpoint } = call;
  if (endpoint.dialect !== "openai-chat" || endpoint.isMedia === true) return "";
  if (!call.wantsUsage || output.meter.state.usage !== null || !usage) return "";
  return `data: ${JSON.stringify({
    id: `chatcmpl-${call.requestId}`,
    object: "chat.completion.chunk",
    created: Math.floor(deps.clock.nowMs() / 1000),
    model: call.model,
    choices: [],
    usage: encodeUsage(usage),
  })}\n\n`;
}

/** Ends of answers that their upstream broke off. */
const BROKEN: ReadonlySet<EndReason> = new Set([
  "upstream-cut",
  "upstream-stall",
  "error-in-stream",
  "malformed",
]);

/** How the answer went on that its attempt only saw begin: the health of its channel follows. */
function tellEnd(
  { picker, deps }: CallServices,
  { call, plan }: Pick<Answer, "call" | "plan">,
  reason: EndReason,
): void {
  call.lease?.release();
  tellStreamedAttempt(deps, call, plan.channel, reason);
  if (call.isTest) return;
  const nowMs = deps.clock.monotonicMs();
  const { channel, keyIndex } = plan;
  const { model, beganMs = 0 } = call;
  picker.traffic.told(channel, model, nowMs);
  if (reason === "completed") {
    picker.succeeded(channel, model, beganMs, nowMs);
    deps.keyring.succeeded(channel, keyIndex, model, beganMs, nowMs);
  } else if (BROKEN.has(reason))
    tellDown({ deps, picker }, { channel, keyIndex, beganMs }, model, { detail: reason });
}

/** As `settleStream`, for an answer that is no text. */
async function settleBytes(
  services: CallServices,
  { call, plan, response, relay }: BytesAnswer,
): Promise<void> {
  services.visitors.feed(call.request, relay);
  const { reason } = await relay.ended;
  tellEnd(services, { call, plan }, reason);
  let unsettled: unknown;
  try {
    await settleCall(services, call, plan, {
      reason,
      usage: null,
      sawText: true,
      outputTokens: NO_TOKENS,
      isStream: false,
      firstByteMs: undefined,
      upstreamId: upstreamIdOf(response, undefined),
      sound: relay.passed(),
    });
  } catch (error) {
    unsettled = error;
  } finally {
    services.visitors.fed(call.request);
  }
  relay.finish(unsettled);
}

/** Tokens of a full answer by our own count. */
async function countFull(
  { counter }: CallServices,
  { call, canonical, json, plan }: FullAnswer,
): Promise<number> {
  const texts = canonical ? canonicalTexts(canonical) : answerTexts(json);
  const counted = await counter.count(texts, plan.upstreamModel);
  const tokens = counted ?? texts.reduce((sum, text) => sum + estimateTokens(text), 0);
  return withinLimit(tokens, call.hold.mostTokens, plan.upstreamModel);
}

/**
 * A count that passes the limit by no more than counts are off is an answer that came to its limit: the model counted it with its
 * own tables. One that passes it by more was not limited, and is charged as it is.
 */
function withinLimit(tokens: number, most: number, model: string): number {
  const error = hasOwnEncoder(model) ? COUNT_ERRORS.encoder : COUNT_ERRORS.similar_encoder;
  return tokens <= Math.ceil(most * (1 + error)) ? Math.min(tokens, most) : tokens;
}

/** What went on to the client, of what was counted. */
async function deliveredTokens(
  output: OutputCounter,
  { deliveredShare, paidTokens = Infinity }: StreamEnd,
): Promise<number> {
  const counted = await output.outputTokens();
  if (deliveredShare === undefined) return counted;
  // The last count is of all text and may differ by a token from the one that decided what is paid.
  return Math.min(Math.floor(counted * deliveredShare), Math.floor(paidTokens));
}

function withoutOutput(usage: Usage): Usage {
  return { ...usage, output: emptyUsage().output };
}

/** Everything that a stored response holds, as far as it is known. */
function tokensOf(call: Call, usage: Usage | null): number {
  return usage ? promptTokens(usage) + completionTokens(usage) : call.prompt.tokens;
}

/** What the model's answers are like on this site. */
function learnLength({ usual }: CallServices, { endpoint, model }: Call, usage: Usage): void {
  if (endpoint.answersTokens !== false) usual.learn(model, completionTokens(usage));
}
