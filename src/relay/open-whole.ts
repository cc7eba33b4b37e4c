// Reads a whole answer of an upstream: its usage, its text and the errors that come with status 200.
// Refuses bodies that are no JSON object; nothing has reached the client yet, so another channel may be asked.
import { collect } from "../protocol/assemble.ts";
import type { Answer as CanonicalAnswer } from "../protocol/assemble.ts";
import type { CanonicalEvent } from "../protocol/events.ts";
import { asObject, parseJson } from "../protocol/json.ts";
import { meterAnswer } from "../protocol/openai-text.ts";
import type { AnswerMeter } from "../protocol/openai-text.ts";
import { Failure } from "../shared/failures.ts";
import { decodeWhole, streamDecoder } from "./answer.ts";
import type { WholeAnswer } from "./answer.ts";
import { attemptFailure, readWhole } from "./attempt.ts";
import type { Opened } from "./attempt.ts";
import type { Call } from "./call.ts";
import { createSseReader } from "./framing.ts";
import type { Plan } from "./plan.ts";
import { textOf } from "./read-body.ts";

function badAnswer(): Failure {
  return new Failure("upstream-down", "upstream_bad_answer", { type: "upstream_error" });
}

/** Pages of proxies and portals. */
function saysHtml(response: Response): boolean {
  return (response.headers.get("content-type") ?? "").includes("html");
}

/** Usage and length of an answer in canonical form. */
function meterCanonical(answer: CanonicalAnswer): AnswerMeter {
  let textChars = 0;
  for (const block of answer.blocks) textChars += block.text.length + (block.data === undefined ? 0 : 1);
  return { usage: answer.usage.raw === undefined ? null : answer.usage, failure: null, textChars };
}

export function openWhole(
  call: Call,
  plan: Plan,
  opened: Opened,
  bytes: Uint8Array<ArrayBuffer>,
): WholeAnswer {
  const json = parseJson(textOf(bytes));
  const isObject = typeof json === "object" && json !== null;
  // Subtitles and plain transcripts are answers too; an empty one is an answer to silence.
  if (!isObject && (call.endpoint.answers !== "text" || saysHtml(opened.response)))
    throw attemptFailure(badAnswer());
  const whole = { kind: "whole" as const, plan, response: opened.response, bytes, json };
  const { dialect, isConverted } = plan;
  if (!call.endpoint.isConversation || (!isConverted && dialect.name === "openai-chat")) {
    const meter = meterAnswer(json);
    // Some providers say 200 and mean an error: nothing was sent yet, so it is one.
    if (meter.failure) throw attemptFailure(meter.failure);
    if (call.endpoint.reportedUsage) meter.usage = call.endpoint.reportedUsage(json);
    return { ...whole, meter };
  }
  try {
    const canonical = decodeWhole(call, plan, json);
    if (plan.channel.setting.force_format === true) delete canonical.extra;
    return { ...whole, meter: meterCanonical(canonical), canonical };
  } catch (error) {
    if (!(error instanceof Failure)) throw attemptFailure(badAnswer());
    // A prompt that Google blocked is an answer to Google's clients: they read why.
    if (!isConverted && error.kind === "upstream-refusal") {
      const usage = dialect.decodeUsage(asObject(json)?.["usageMetadata"]);
      return { ...whole, meter: { usage, failure: null, textChars: 0 } };
    }
    throw attemptFailure(error);
  }
}

/** The answer of an upstream that streams although a whole answer was asked for. */
export async function gatherStream(call: Call, plan: Plan, opened: Opened): Promise<WholeAnswer> {
  const bytes = await readWhole(opened);
  const reader = createSseReader();
  const decoder = streamDecoder(call, plan);
  try {
    const events: CanonicalEvent[] = [];
    for (const frame of [...reader.push(bytes), ...reader.end()]) events.push(...decoder.push(frame));
    events.push(...decoder.end());
    const canonical = collect(events);
    const { response } = opened;
    return {
      kind: "whole",
      plan,
      response,
      bytes,
      json: undefined,
      meter: meterCanonical(canonical),
      canonical,
      isGathered: true,
    };
  } catch (error) {
    throw attemptFailure(error instanceof Failure ? error : badAnswer());
  }
}
