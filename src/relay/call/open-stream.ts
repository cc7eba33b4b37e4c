// Opens a stream: as the upstream sends it, or converted to the client's dialect, with the meter reading along.
// Hands a stream on with its first content: until then another channel can make a failure good.
import { DIALECTS } from "../../protocol/dialects.ts";
import type { Dialect, MeterOptions, StreamMeter } from "../../protocol/dialect.ts";
import { SAYS_NOTHING } from "../../protocol/life-cycle.ts";
import { Failure } from "../../shared/failures.ts";
import { secretsOf } from "../../shared/without-keys.ts";
import { keepsReasoning } from "../endpoints/hidden-reasoning.ts";
import { createOutputCounter } from "../meter/meter.ts";
import type { OutputCounter } from "../meter/meter.ts";
import { encodeFailure } from "../wire/render-failure.ts";
import type { StreamHold } from "../wire/stream-allowance.ts";
import { createArrayFraming, createConversion } from "../wire/stream-convert.ts";
import type { StreamConversion } from "../wire/stream-convert.ts";
import { createStreamRelay } from "../wire/stream.ts";
import type { StreamRelay } from "../wire/stream.ts";
import type { StreamReadOn, TerminalRule } from "../wire/stream-state.ts";
import { answerContext, streamDecoder } from "./answer.ts";
import type { StreamAnswer } from "./answer.ts";
import { attemptFailure } from "./attempt.ts";
import { createCapHold } from "./cap-hold.ts";
import type { Opened } from "./attempt.ts";
import { drainingFailure } from "./call.ts";
import type { Call } from "./call.ts";
import { viewOf } from "./exchange.ts";
import { sparedUnits } from "./hold-input.ts";
import { limitElement } from "./limit-frames.ts";
import { pingMs, PINGS } from "./ping.ts";
import type { Plan } from "./plan.ts";
import type { CallServices } from "./services.ts";
import { createStreamHold } from "./stream-hold.ts";
import { traceStream } from "./tracing.ts";

/** A stream whose first event has not been read. */
export interface OpenedStream {
  call: Call;
  plan: Plan;
  opened: Opened;
  /** Until the first event; 0 = only the silence counts. */
  firstEventMs: number;
}

const TERMINAL_RULES: Readonly<Record<Dialect["name"], TerminalRule>> = {
  "openai-chat": "done-line",
  "openai-responses": "terminal-event",
  anthropic: "terminal-event",
  gemini: "end-of-body",
};

const EVENT_STREAM = "text/event-stream";
/** What is read on, at most, for the usage of what was delivered and can be counted. */
const COUNTED_READ_ON_BYTES = 512 * 1024;

export async function openStream(services: CallServices, stream: OpenedStream): Promise<StreamAnswer> {
  const { call, plan, opened } = stream;
  const { body } = opened.response;
  if (!body) throw attemptFailure(new Failure("upstream-down", "upstream_bad_answer"));
  let conversion: StreamConversion | undefined;
  const output = createOutputCounter({
    makeMeter(options) {
      conversion = conversionOf(services, call, plan, options);
      return conversion ?? passedMeter(call, plan, options);
    },
    counter: services.counter,
    model: plan.upstreamModel,
    countsDeltas: !plan.reportsUsage || services.withoutUsage.has(plan.channel.id),
    screen: services.screens.output(call),
  });
  traceStream(call, output.meter);
  const relay = relayOf(services, stream, body, output, conversion);
  if (call.isBegun || call.request.signal.aborted) relay.release();
  call.release = relay.release;
  try {
    await relay.begin();
  } catch (error) {
    const failed = opened.explain(error);
    const { usage, usageFinal } = output.meter.state;
    if (usage && usageFinal) failed.usage = usage;
    throw failed;
  } finally {
    opened.settled();
  }
  call.hangUp = () => relay.endNow(drainingFailure());
  return {
    kind: "stream",
    call,
    plan,
    response: opened.response,
    relay,
    output,
    conversion,
    contentType: conversion?.contentType ?? EVENT_STREAM,
    firstByteMs: performance.now() - call.startedMs,
  };
}

function passedMeter({ endpoint }: Call, plan: Plan, options: MeterOptions): StreamMeter {
  return endpoint.meterStream?.(options) ?? plan.dialect.meterStream(options);
}

/** Undefined where the client gets the upstream's frames as they come. */
function conversionOf(
  { deps }: CallServices,
  call: Call,
  plan: Plan,
  options: MeterOptions,
): StreamConversion | undefined {
  const { endpoint } = call;
  const { setting } = plan.channel;
  const { clock } = deps;
  if (endpoint.meterStream) return undefined;
  if (plan.isConverted)
    return createConversion({
      decoder: streamDecoder(call, plan),
      encoder: DIALECTS[endpoint.dialect].encodeStream(answerContext(call, clock.nowMs(), deps.seal)),
      contentType: call.wantsArray ? "application/json" : EVENT_STREAM,
      onText: options.onText,
      isStrict: setting.force_format === true,
      thinkingAsText: endpoint.name === "chat" && setting.thinking_to_content === true,
    });
  if (!call.wantsArray) return undefined;
  return createArrayFraming(plan.dialect.meterStream(options), {
    saysNothing: SAYS_NOTHING[plan.dialect.name],
    failure: (failure) => JSON.stringify(encodeFailure(failure, viewOf(call)).body),
    limit: (usage) => limitElement(call, usage, clock.nowMs()),
  });
}

function relayOf(
  services: CallServices,
  { call, plan, opened, firstEventMs }: OpenedStream,
  body: ReadableStream<Uint8Array>,
  output: OutputCounter,
  conversion: StreamConversion | undefined,
): StreamRelay {
  const { options } = services.deps;
  const idleSeconds = options.get("relay.stream_idle_timeout_seconds");
  return createStreamRelay(
    { reader: body.getReader(), abort: () => opened.abort() },
    {
      meter: output.meter,
      conversion,
      terminal: terminalOf(call, plan),
      secrets: secretsOf(plan.key),
      hidesUsage: !call.wantsUsage,
      // Reasoning models think in silence.
      idleMs: idleSeconds * 1000 * (plan.upstreamModel.startsWith("o") ? 2 : 1),
      firstEventMs,
      pingMs: pingMs(options, call.endpoint.dialect),
      ping: PINGS[call.endpoint.dialect].between,
      dataOnly: conversion === undefined && call.endpoint.dialect === "gemini",
      saysNothing: call.endpoint.meterStream ? undefined : SAYS_NOTHING[plan.dialect.name],
      onFirstEvent: opened.begun,
      hold: holdOf(services, { call, plan }, output, conversion),
      readOn: readOnOf(services, call, plan),
    },
  );
}

function terminalOf({ endpoint }: Call, plan: Plan): TerminalRule {
  if (endpoint.meterStream) return "end-of-body";
  return plan.isConverted || !endpoint.isConversation ? "done-line" : TERMINAL_RULES[plan.dialect.name];
}

function holdOf(
  services: CallServices,
  { call, plan }: Pick<OpenedStream, "call" | "plan">,
  output: OutputCounter,
  conversion: StreamConversion | undefined,
): StreamHold {
  const { hold } = call;
  const reported = () => (conversion ? conversion.usageSoFar() : output.meter.state.usage);
  if (hold.cap !== undefined) return createCapHold(call, hold.cap, plan, output, reported);
  return createStreamHold(call.reservation, hold, output, () => sparedUnits(services, call, plan));
}

function readOnOf({ inFlight, countedReadOnMs }: CallServices, call: Call, plan: Plan): StreamReadOn {
  return {
    countedMs: countedReadOnMs,
    countedBytes: COUNTED_READ_ON_BYTES,
    begin: () => inFlight.begin(call),
    end: () => inFlight.end(call),
    keepsReasoning: () => keepsReasoning(plan.upstreamModel, call.body.json),
  };
}
