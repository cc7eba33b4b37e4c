// Reads a full answer of an upstream: its usage, its text and the errors that come with status 200.
// Refuses bodies that are no JSON object; nothing has reached the client yet, so another channel may be tried.
import { collect } from "../../protocol/assemble.ts";
import type { Answer as CanonicalAnswer } from "../../protocol/assemble.ts";
import type { CanonicalEvent } from "../../protocol/events.ts";
import type { JsonBounds } from "../../shared/json-size.ts";
import { isTooDense, outlineOf } from "../../shared/json-size.ts";
import { asObject, parseJson } from "../../protocol/json.ts";
import { readErrorBody, scrub } from "../../protocol/classify.ts";
import { completionSays } from "../../protocol/life-cycle.ts";
import { meterAnswer } from "../../protocol/openai-text.ts";
import type { AnswerMeter } from "../../protocol/openai-text.ts";
import { Failure } from "../../shared/failures.ts";
import { secretsOf } from "../../shared/without-keys.ts";
import { completionTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { decodeFull, streamDecoder } from "./answer.ts";
import type { FullAnswer } from "./answer.ts";
import { attemptFailure } from "./attempt.ts";
import type { AttemptFailure, Opened } from "./attempt.ts";
import type { Call } from "./call.ts";
import { createSseReader } from "../wire/framing.ts";
import type { SseEvent } from "../wire/framing.ts";
import { keylessEvents } from "../wire/keyless.ts";
import type { Plan } from "./plan.ts";
import { textOf } from "../wire/read-body.ts";
import { eachPiece } from "../wire/full-body.ts";

/** Smaller answers are parsed in a moment, whatever is in them. */
const LARGE_BYTES = 1024 * 1024;
/** More than long answers with the probabilities of all their tokens; one to three seconds of parsing at the worst. */
const ANSWER_BOUNDS: JsonBounds = { members: 1_000_000, containers: 1_000_000, values: 6_000_000 };
/** Of an answer that is passed on as it is nothing longer is looked at: usage, errors and names are short. */
const OUTLINE_STRING_BYTES = 4096;

/** Of a bad answer no more is told. */
const SAID_BYTES = 2000;

const NO_BYTES = new Uint8Array(0);

/** `bytes`: what came in its place, for administrators. */
function badAnswer(bytes: Uint8Array = NO_BYTES): Failure {
  const said = textOf(bytes.subarray(0, SAID_BYTES));
  return new Failure("upstream-down", "upstream_bad_answer", {
    type: "upstream_error",
    retryable: true,
    internal: scrub(said),
    upstreamText: scrub(readErrorBody(parseJson(said) ?? {}).message),
  });
}

/** Pages of proxies and portals. */
function isHtml(response: Response): boolean {
  return (response.headers.get("content-type") ?? "").includes("html");
}

/** A JSON object with something in it: lists, numbers and the like are no answer of any provider. */
function hasContent(json: unknown): boolean {
  for (const _ in asObject(json)) return true;
  return false;
}

/** Whether the answer may be words as they are: JSON is that only where the client requested text. */
function isText({ endpoint, sent }: Call, json: unknown): boolean {
  if (endpoint.answers !== "text") return false;
  const form = sent.json["response_format"];
  return json === undefined || (typeof form === "string" && !form.includes("json"));
}

/** Endpoints whose answers are choices. */
const CHOOSING: ReadonlySet<string> = new Set(["chat", "completions"]);

/** By the rule of streams (`isAnswer` in wire/stream.ts): content, an end that says why, or output that is billed. */
function isCompletion(json: unknown, usage: Usage | null, isElder: boolean): boolean {
  const wire = asObject(json);
  const choices = wire?.["choices"];
  if (!wire || !Array.isArray(choices) || !choices.every((choice) => asObject(choice) !== undefined))
    return false;
  if (usage === null) return completionSays(wire);
  return completionTokens(usage) > 0 || completionSays(wire) || (isElder && isFilledIn(choices));
}

/** A gap in a text may want nothing: the model has read it, and says that it ends there. */
function isFilledIn(choices: readonly unknown[]): boolean {
  return choices.length > 0 && choices.every((choice) => asObject(choice)?.["finish_reason"] === "stop");
}

/** The same of an answer in canonical form. */
function isAnswer({ blocks, usage, reason, rawReason, others = [] }: CanonicalAnswer): boolean {
  const isTelling = (end: { reason: string; raw: string | null }): boolean =>
    end.reason !== "stop" && end.raw !== null;
  if (completionTokens(usage) > 0 || isTelling({ reason, raw: rawReason }) || others.some(isTelling))
    return true;
  return blocks.some(
    ({ kind, text, data, notes, opaque }) =>
      text !== "" ||
      data !== undefined ||
      kind === "tool-call" ||
      kind === "hosted-tool" ||
      notes.length + opaque.length > 0,
  );
}

/** Whether the answer holds what its endpoint is for. */
function isDelivered({ endpoint, sent }: Call, json: unknown, usage: Usage | null): boolean {
  if (CHOOSING.has(endpoint.name)) return isCompletion(json, usage, endpoint.name === "completions");
  return asObject(json) === undefined || endpoint.holds?.(json, sent.json) !== false;
}

/** Usage and length of an answer in canonical form. */
function meterCanonical(answer: CanonicalAnswer): AnswerMeter {
  let textChars = 0;
  for (const block of answer.blocks) textChars += block.text.length + (block.data === undefined ? 0 : 1);
  return { usage: answer.usage.raw === undefined ? null : answer.usage, failure: null, textChars };
}

/** Pictures and the like: their bytes go to the client untouched, and only their usage is read. */
function isOnlyMetered({ endpoint }: Call): boolean {
  return endpoint.isMedia === true && endpoint.answer === undefined && endpoint.answers === undefined;
}

/** The answer's JSON. Throws for one that would hold everybody up while it is parsed. */
function parseAnswer(call: Call, bytes: Uint8Array<ArrayBuffer>): unknown {
  if (bytes.length <= LARGE_BYTES) return parseJson(textOf(bytes));
  if (isTooDense(bytes, ANSWER_BOUNDS)) throw attemptFailure(badAnswer());
  return parseJson(isOnlyMetered(call) ? outlineOf(bytes, OUTLINE_STRING_BYTES) : textOf(bytes));
}

/** An answer as it came. */
export interface ReadAnswer {
  call: Call;
  plan: Plan;
  opened: Opened;
  bytes: Uint8Array<ArrayBuffer>;
}

export function openFull(_services: unknown, { call, plan, opened, bytes }: ReadAnswer): FullAnswer {
  const json = parseAnswer(call, bytes);
  // Subtitles and plain transcripts are answers too; an empty one is an answer to silence.
  if (!hasContent(json) && (!isText(call, json) || isHtml(opened.response)))
    throw attemptFailure(badAnswer(bytes));
  const { response } = opened;
  const kind = "full" as const;
  const { dialect, isConverted } = plan;
  if (!call.endpoint.isConversation || (!isConverted && dialect.name === "openai-chat")) {
    const meter = meterAnswer(json);
    // Some providers say 200 and mean an error: nothing was sent yet, so it is one.
    if (meter.failure) throw attemptFailure(meter.failure);
    if (!isDelivered(call, json, meter.usage)) throw attemptFailure(badAnswer(bytes));
    if (call.endpoint.reportedUsage) meter.usage = call.endpoint.reportedUsage(json);
    return { kind, call, plan, response, bytes, json, meter };
  }
  try {
    const canonical = decodeFull(call, plan, json);
    if (!isAnswer(canonical)) throw badAnswer(bytes);
    if (plan.channel.setting.force_format === true) delete canonical.extra;
    return { kind, call, plan, response, bytes, json, meter: meterCanonical(canonical), canonical };
  } catch (error) {
    if (!(error instanceof Failure)) throw attemptFailure(badAnswer());
    // A prompt that Google blocked is an answer to Google's clients: they read why.
    if (!isConverted && error.kind === "upstream-refusal") {
      const usage = dialect.decodeUsage(asObject(json)?.["usageMetadata"]);
      return { kind, call, plan, response, bytes, json, meter: { usage, failure: null, textChars: 0 } };
    }
    throw attemptFailure(error);
  }
}

/** The answer of an upstream that streams although a full answer was requested; read as it comes. */
export async function gatherStream(
  call: Call,
  plan: Plan,
  opened: Opened,
  maxBytes: number,
): Promise<FullAnswer> {
  const reader = createSseReader();
  const decoder = streamDecoder(call, plan);
  const secrets = secretsOf(plan.key);
  const events: CanonicalEvent[] = [];
  /** Why the words of the upstream are no answer; its connection is sound. */
  let unread: AttemptFailure | undefined;
  const read = (frames: readonly SseEvent[]): void => {
    try {
      for (const frame of keylessEvents(frames, secrets)) events.push(...decoder.push(frame));
    } catch (error) {
      unread = attemptFailure(error instanceof Failure ? error : badAnswer());
      throw unread;
    }
  };
  try {
    await eachPiece(opened.response, maxBytes, (piece) => read(reader.push(piece)));
    read(reader.end());
  } catch (error) {
    opened.abort();
    throw unread ?? opened.explain(error);
  } finally {
    opened.settled();
  }
  try {
    events.push(...decoder.end());
    const canonical = collect(events);
    if (!isAnswer(canonical)) throw badAnswer();
    const { response } = opened;
    return {
      kind: "full",
      call,
      plan,
      response,
      bytes: NO_BYTES,
      json: undefined,
      meter: meterCanonical(canonical),
      canonical,
      isGathered: true,
    };
  } catch (error) {
    throw attemptFailure(error instanceof Failure ? error : badAnswer());
  }
}
