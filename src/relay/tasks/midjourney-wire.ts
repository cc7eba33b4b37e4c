// Midjourney on the wire of its proxies: paths, the codes of their answers, and the fields of a task.
import { scrub } from "../../protocol/classify.ts";
import { asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { DONE, DRAWINGS, FAILURE, SUCCESS } from "../../core/tasks/families.ts";
import type { DrawingRow } from "../../core/tasks/families.ts";
import { Failure } from "../../shared/failures.ts";
import { attemptFailure } from "../call/attempt.ts";
import type { AttemptFailure } from "../call/attempt.ts";
import { FREE_ACTIONS } from "./midjourney-actions.ts";
import type { Drawing } from "./midjourney-actions.ts";
import { isOfAccount, RefusedAttempt, statusFailure, tasksById } from "./task-wire.ts";
import type { TaskAnswer, TaskWire } from "./task-wire.ts";

/** Codes of accepted submissions: submitted, exists already, queued. */
const SUBMITTED = 1;
const EXISTS = 21;
const QUEUED = 22;
const ACCEPTED_CODES: ReadonlySet<number> = new Set([SUBMITTED, EXISTS, QUEUED]);
/** Codes of refusals that are about the proxy and not about the request. */
const NO_INSTANCE = 3;
const QUEUE_FULL = 23;
/** Codes of our own refusals: of the request, and of the upstream. */
const REQUEST_ERROR = 4;
const UPSTREAM_ERROR = 5;

const codeOf = ({ wire }: TaskAnswer): number => asNumber(wire["code"]) ?? 0;
const descriptionOf = ({ wire }: TaskAnswer): string => asString(wire["description"]) ?? "";

/** What an answer that took no task says about the channel: a proxy that is full or empty is left alone for a while. */
function refusedAttempt(code: number, description: string): AttemptFailure {
  const details = { text: scrub(description), internal: scrub(description) };
  if (code === QUEUE_FULL) return attemptFailure(new Failure("upstream-limit", "upstream_limit", details));
  if (code === NO_INSTANCE) return attemptFailure(new Failure("upstream-down", "upstream_down", details));
  return attemptFailure(new Failure("upstream-request", "upstream_request", details));
}

const unreadable = (description: string): RefusedAttempt =>
  new RefusedAttempt(
    attemptFailure(new Failure("upstream-down", "upstream_down", { internal: description })),
    { status: 400, code: UPSTREAM_ERROR, message: description },
  );

/** In place of an answer that is about our own account there. */
function accountAnswer({ failure }: AttemptFailure): TaskAnswer {
  const wire = { description: failure.code, type: "upstream_error", code: UPSTREAM_ERROR };
  return { status: failure.status, text: JSON.stringify(wire), wire, upstreamId: "" };
}

export const MIDJOURNEY: TaskWire<DrawingRow> = {
  family: DRAWINGS,
  provider: "midjourney",
  auth: (key) => ({ "mj-api-secret": key }),
  refusals: {
    badBody: [400, REQUEST_ERROR, "bind_request_body_failed"],
    balanceTooLow: [400, REQUEST_ERROR, "quota_not_enough"],
    unknownTask: [400, REQUEST_ERROR, "task_no_found"],
    unknownOrigin: [400, REQUEST_ERROR, "task_not_found"],
    channelDisabled: [400, REQUEST_ERROR, "该任务所属渠道已被禁用"],
    unreachable: [400, UPSTREAM_ERROR, "do_request_failed"],
    upstreamAccount: [502, UPSTREAM_ERROR, "upstream_auth"],
  },
  errorBody: ({ message, code }) => ({ description: message.trim(), type: "upstream_error", code }),
  readAnswer(received, channel) {
    const { status, text } = received;
    if (text.trim() === "") throw unreadable("empty_response_body");
    const wire = asObject(parseJson(text));
    if (!wire) throw unreadable("unmarshal_response_body_failed");
    const upstreamId = asString(wire["result"]) ?? "";
    const answer: TaskAnswer = { status, text, wire, upstreamId };
    const code = codeOf(answer);
    if (status !== 200) {
      const failure = statusFailure(channel, received, { message: descriptionOf(answer), ...wire });
      if (isOfAccount(failure)) return { ...accountAnswer(failure), failure };
      return { ...answer, status: channel.statusCodeMapping.get(status) ?? status, failure };
    }
    if (!ACCEPTED_CODES.has(code)) answer.failure = refusedAttempt(code, descriptionOf(answer));
    return answer;
  },
  triesOtherChannels: false,
  outOfServiceReason: (answer) =>
    codeOf(answer) === NO_INSTANCE ? "No available account instance" : undefined,
  chargeSuffix: (id) => `，ID ${id}`,
  pollPath: "/mj/task/list-by-condition",
  readPoll: (wire) => (Array.isArray(wire) ? tasksById(wire, "id") : undefined),
  changes(row, task) {
    const imageUrl = asString(task["imageUrl"]) ?? "";
    return {
      code: SUBMITTED,
      promptEn: asString(task["promptEn"]) ?? row.promptEn,
      state: asString(task["state"]) ?? row.state,
      startTimeMs: asNumber(task["startTime"]) ?? row.startTimeMs,
      finishTimeMs: asNumber(task["finishTime"]) ?? row.finishTimeMs,
      ...(imageUrl === "" ? {} : { imageUrl, imagePushed: false }),
      status: asString(task["status"]) ?? row.status,
      progress: asString(task["progress"]) || row.progress,
      failReason: scrub(asString(task["failReason"]) ?? ""),
      properties: task["properties"] ? JSON.stringify(task["properties"]) : row.properties,
      buttons: task["buttons"] ? JSON.stringify(task["buttons"]) : row.buttons,
    };
  },
};

/** The columns of a new drawing that its request and its upstream's answer decide. */
export function drawingColumns(
  drawing: Drawing,
  answer: TaskAnswer,
  origin: DrawingRow | undefined,
  atMs: number,
): Partial<DrawingRow> {
  const code = codeOf(answer);
  const isAccepted = answer.failure === undefined;
  const existing = code === EXISTS ? asObject(answer.wire["properties"]) : undefined;
  const status = asString(existing?.["status"]) ?? "";
  const isDone = status === SUCCESS || (drawing.action === "UPLOAD" && code === SUBMITTED);
  return {
    code,
    prompt: drawing.prompt || (origin?.prompt ?? ""),
    description: scrub(descriptionOf(answer)),
    startTimeMs: drawing.action === "SWAP_FACE" || isDone ? atMs : 0,
    finishTimeMs: isDone ? atMs : 0,
    status: isDone ? SUCCESS : isAccepted ? status : FAILURE,
    progress: isDone || !isAccepted ? DONE : "0%",
    imageUrl: asString(existing?.["imageUrl"]) ?? "",
    failReason: isAccepted ? "" : scrub(descriptionOf(answer)),
  };
}

/**
 * A task that exists or waits is a submitted one to the client; dialogs keep their code. What says where the upstream is does not
 * leave: its words are scrubbed, and `shown` says where a picture that exists already is shown.
 */
export function drawingReply(
  { action }: Drawing,
  answer: TaskAnswer,
  shown: (imageUrl: string, id: string) => string,
): string {
  const code = codeOf(answer);
  const wire = { ...answer.wire };
  if ((code === EXISTS || code === QUEUED) && !FREE_ACTIONS.has(action)) wire["code"] = SUBMITTED;
  if (wire["description"] !== undefined) wire["description"] = scrub(descriptionOf(answer));
  const existing = asObject(wire["properties"]);
  const imageUrl = asString(existing?.["imageUrl"]) ?? "";
  if (imageUrl !== "") wire["properties"] = { ...existing, imageUrl: shown(imageUrl, answer.upstreamId) };
  return JSON.stringify(wire);
}
