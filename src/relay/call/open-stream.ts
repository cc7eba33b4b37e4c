// Opens a stream: as the upstream sends it, or told in the client's dialect, with the meter reading along.
// Refuses to hand on a stream before its first event: until then another channel can make a failure good.
import { DIALECTS } from "../../protocol/dialects.ts";
import type { Dialect, MeterOptions, StreamMeter } from "../../protocol/dialect.ts";
import { Failure } from "../../shared/failures.ts";
import { answerContext, streamDecoder } from "./answer.ts";
import type { StreamAnswer } from "./answer.ts";
import { attemptFailure } from "./attempt.ts";
import type { Opened } from "./attempt.ts";
import type { AttemptsContext } from "./open.ts";
import { drainingFailure } from "./call.ts";
import type { Call } from "./call.ts";
import { countPrompt, createTap } from "../meter/meter.ts";
import { pingMs } from "./ping.ts";
import type { Plan } from "./plan.ts";
import { createArrayFraming, createConversion } from "../wire/stream-convert.ts";
import type { StreamConversion } from "../wire/stream-convert.ts";
import { createStreamHold } from "./stream-hold.ts";
import { keepsReasoning } from "../endpoints/hidden-reasoning.ts";
import { createStreamRelay } from "../wire/stream.ts";
import type { TerminalRule } from "../wire/stream.ts";

const TERMINAL_RULES: Readonly<Record<Dialect["name"], TerminalRule>> = {
  "openai-chat": "done-line",
  "openai-responses": "terminal-event",
  anthropic: "terminal-event",
  gemini: "end-of-body",
};

const EVENT_STREAM = "text/event-stream";

function convert(context: AttemptsContext, call: Call, plan: Plan, meter: MeterOptions): StreamConversion {
  const encoding = answerContext(call, context.deps.clock.nowMs());
  return createConversion({
    decoder: streamDecoder(call, plan),
    encoder: DIALECTS[call.endpoint.dialect].encodeStream(encoding),
    contentType: call.wantsArray ? "application/json" : EVENT_STREAM,
    onText: meter.onText,
    isStrict: plan.channel.setting.force_format === true,
    thinkingAsText: call.endpoint.name === "chat" && plan.channel.setting.thinking_to_content === true,
  });
}

function terminalOf({ endpoint }: Call, plan: Plan): TerminalRule {
  if (endpoint.meterStream) return "end-of-body";
  return plan.isConverted || !endpoint.isConversation ? "done-line" : TERMINAL_RULES[plan.dialect.name];
}

export async function openStream(
  context: AttemptsContext,
  call: Call,
  plan: Plan,
  opened: Opened,
  limits: { firstEventMs: number },
): Promise<StreamAnswer> {
  const { options } = context.deps;
  const { body } = opened.response;
  if (!body) throw attemptFailure(new Failure("upstream-down", "upstream_bad_answer"));
  let conversion: StreamConversion | undefined;
  const makeMeter = (meterOptions: MeterOptions): StreamMeter => {
    if (call.endpoint.meterStream) return call.endpoint.meterStream(meterOptions);
    if (plan.isConverted) return (conversion = convert(context, call, plan, meterOptions));
    const meter = plan.dialect.meterStream(meterOptions);
    if (!call.wantsArray) return meter;
    return (conversion = createArrayFraming(
      meter,
      (failure) => context.failureBody(call, failure),
      (usage) => context.limitBody(call, usage),
    ));
  };
  const countsDeltas = !plan.reportsUsage || context.silent.has(plan.channel.id);
  const screen = context.screenOutput(call);
  const tap = createTap(makeMeter, context.counter, plan.upstreamModel, countsDeltas, screen);
  let firstByteMs = 0;
  const idleSeconds = options.get("relay.stream_idle_timeout_seconds");
  const told = conversion;
  const relay = createStreamRelay(
    { reader: body.getReader(), abort: () => opened.abort() },
    {
      meter: tap.meter,
      conversion: told,
      terminal: terminalOf(call, plan),
      hidesUsage: !call.wantsUsage,
      // Reasoning models think in silence.
      idleMs: idleSeconds * 1000 * (plan.upstreamModel.startsWith("o") ? 2 : 1),
      firstEventMs: limits.firstEventMs,
      pingMs: pingMs(options),
      hold: createStreamHold(call.reservation, call.hold, tap, async () => {
        const { prompt, endpoint, body } = call;
        if (prompt.mostTokens <= prompt.tokens) return 0;
        const counted = await countPrompt(context.counter, endpoint, body.json, plan.upstreamModel);
        return (counted - prompt.tokens) * call.hold.inputRate;
      }),
      drain: context.drain,
      readOn: {
        begin: () => context.open.begin(call),
        end: () => context.open.end(call),
        keepsReasoning: () => keepsReasoning(plan.upstreamModel, call.body.json),
      },
      finish: context.finish(call, plan, tap, told, () => firstByteMs),
      failureFrame: (failure) => (told ? told.fail(failure) : context.failureFrame(call, failure)),
    },
  );
  try {
    await relay.begin();
  } catch (error) {
    opened.settled();
    throw opened.explain(error);
  }
  opened.settled();
  call.hangUp = () => relay.endNow(drainingFailure());
  firstByteMs = performance.now() - call.startedMs;
  const contentType = told?.contentType ?? EVENT_STREAM;
  return { kind: "stream", plan, response: opened.response, relay, contentType, firstByteMs };
}
