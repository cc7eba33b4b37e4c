// How a stream or an answer of bytes is settled once it has ended, and the frames that belong behind it.
// Refuses to tell usage that was not charged: a silent upstream's client gets what the books say.
import type { Clock } from "../../core/deps.ts";
import type { Visitors } from "../../http/visitors.ts";
import { encodeUsage } from "../../protocol/openai-chat/usage.ts";
import { completionTokens, emptyUsage, promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AttemptsContext } from "./open.ts";
import type { UsualOutput } from "./hold.ts";
import type { Call } from "./call.ts";
import type { Tap } from "../meter/meter.ts";
import type { OpenCalls } from "./in-flight.ts";
import type { Plan } from "./plan.ts";
import type { ResponseHomes } from "./response-affinity.ts";
import { settleCall } from "./settle.ts";
import type { CallEnd } from "./settle.ts";
import { choicesIn, limitFrames } from "./stream-hold.ts";
import type { StreamEnd } from "../wire/stream.ts";
import type { TokenCounter } from "../meter/token-count.ts";

export interface FinishParts {
  clock: Clock;
  counter: TokenCounter;
  open: OpenCalls;
  /** Channels that were seen to stream without usage. */
  silent: Set<number>;
  homes: ResponseHomes;
  usual: UsualOutput;
  visitors: Pick<Visitors, "fed">;
}

/** Everything that a stored response holds, as far as it is known. */
export function tokensOf(call: Call, usage: Usage | null): number {
  return usage ? promptTokens(usage) + completionTokens(usage) : call.prompt.tokens;
}

/** What went on to the client, of what was counted. */
async function deliveredTokens(
  tap: Tap,
  { deliveredShare, paidTokens = Infinity }: StreamEnd,
): Promise<number> {
  const counted = await tap.outputTokens();
  if (deliveredShare === undefined) return counted;
  // The last count is of whole text and may differ by a token from the one that decided what is paid.
  return Math.min(Math.floor(counted * deliveredShare), Math.floor(paidTokens));
}

/** What the model's answers are like on this site. */
export function learnLength(usual: UsualOutput, { endpoint, model }: Call, usage: Usage): void {
  if (endpoint.answersTokens !== false) usual.learn(model, completionTokens(usage));
}

export function createFinish({
  clock,
  counter,
  open,
  silent,
  homes,
  usual,
  visitors,
}: FinishParts): Pick<AttemptsContext, "finish" | "finishBytes"> {
  /** The client waits for the books too: its connection stays open until they are written. */
  async function settled(call: Call, plan: Plan, ending: CallEnd): Promise<Usage | undefined> {
    try {
      return await settleCall(open, counter, call, plan, ending);
    } finally {
      visitors.fed(call.request);
    }
  }

  return {
    finishBytes: (call, plan, { reason }) =>
      settled(call, plan, {
        reason,
        usage: null,
        sawText: true,
        outputTokens: () => Promise.resolve(0),
        isStream: false,
        firstByteMs: undefined,
      }),
    finish: (call, plan, tap, conversion, firstByteMs) => async (end) => {
      const { state } = tap.meter;
      if (end.reason === "completed") {
        if (state.usage === null) silent.add(plan.channel.id);
        else if (silent.size > 0) silent.delete(plan.channel.id);
        if (state.responseId !== undefined)
          homes.keep(call, plan, state.responseId, tokensOf(call, state.usage));
      }
      // A stream told in another dialect keeps what was said on the way in its decoder.
      const told = state.usageFinal || !conversion ? state.usage : conversion.usageSoFar();
      const isCut = end.reason === "balance";
      const usage = await settled(call, plan, {
        reason: end.reason,
        // What was said of an output that was not delivered is not charged.
        usage: isCut && told ? { ...told, output: emptyUsage().output } : told,
        usageFinal: state.usageFinal && !isCut,
        sawText: state.sawText,
        outputTokens: () => deliveredTokens(tap, end),
        isStream: true,
        firstByteMs: firstByteMs(),
        servedTier: state.servedTier,
      });
      if (isCut)
        return conversion
          ? conversion.cut(usage ?? emptyUsage(), choicesIn(call))
          : limitFrames(call, usage ?? emptyUsage(), clock.nowMs(), end.first, end.last);
      if (end.reason === "completed" && usage) learnLength(usual, call, usage);
      if (end.reason === "completed" && conversion) return conversion.tail(usage);
      if (call.endpoint.dialect !== "openai-chat" || call.endpoint.isMedia === true) return "";
      if (end.reason !== "completed" || !call.wantsUsage || state.usage !== null || !usage) return "";
      // The client asked for usage and the upstream kept silent: it gets what it is charged for.
      return `data: ${JSON.stringify({
        id: `chatcmpl-${call.requestId}`,
        object: "chat.completion.chunk",
        created: Math.floor(clock.nowMs() / 1000),
        model: call.model,
        choices: [],
        usage: encodeUsage(usage),
      })}\n\n`;
    },
  };
}
