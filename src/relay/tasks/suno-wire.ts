// Suno on the wire of its servers: what a song's request may say, what an answer means, and the fields of a task.
import { CREATIVE_TASKS, DONE, SUCCESS } from "../../core/tasks/families.ts";
import type { CreativeTaskRow } from "../../core/tasks/families.ts";
import { scrub } from "../../protocol/classify.ts";
import { asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import { attemptFailure } from "../call/attempt.ts";
import { isOfAccount, RefusedAttempt, statusFailure, TaskError, tasksById } from "./task-wire.ts";
import type { Json, TaskWire } from "./task-wire.ts";

const DEFAULT_VERSION = "chirp-v3-0";
const SATURATED = "当前分组上游负载已饱和，请稍后再试";
/** Words of a transport: such a message shows where the upstream lives. */
const TRANSPORT = /\b(?:post|dial|https?)\b/i;
const UNREACHABLE = "请求上游地址失败";
const FIELDS = [
  "gpt_description_prompt",
  "prompt",
  "mv",
  "title",
  "tags",
  "continue_at",
  "task_id",
  "continue_clip_id",
  "make_instrumental",
] as const;

const invalid = (message: string): TaskError =>
  new TaskError({ status: 400, code: "invalid_request", message, reason: "task_request_invalid" });

/** By which a song is priced; `action` in capitals. */
export const songModel = (action: string): string => `suno_${action.toLowerCase()}`;

/** The fields that are sent on: known ones only, checked by action. */
export function songOf(action: string, body: Json): Json {
  const song: Json = {};
  for (const field of FIELDS) if (body[field] !== undefined) song[field] = body[field];
  if (action === "MUSIC") song["mv"] ??= DEFAULT_VERSION;
  else if (action !== "LYRICS") throw invalid("invalid_action");
  else if (!asString(song["prompt"])) throw invalid("prompt_empty");
  if (song["continue_clip_id"] && !asString(song["task_id"])) throw invalid("task id is empty");
  return song;
}

/** An answer of status 200 that names no task. */
function refusedSong(code: string, message: string): RefusedAttempt {
  const failure = new Failure("upstream-down", "upstream_down", { internal: scrub(`${code} ${message}`) });
  return new RefusedAttempt(attemptFailure(failure), { status: 500, code, message, isUpstreams: true });
}

const NO_JSON = "unmarshal_response_body_failed";

export const SUNO: TaskWire<CreativeTaskRow> = {
  family: CREATIVE_TASKS,
  provider: "suno",
  auth: (key) => ({ authorization: `Bearer ${key}` }),
  refusals: {
    badBody: [400, "invalid_request", "invalid_request"],
    balanceTooLow: [403, "quota_not_enough", "user quota is not enough"],
    unknownTask: [400, "task_not_exist", "task_not_exist"],
    unknownOrigin: [400, "task_not_exist", "task_origin_not_exist"],
    channelDisabled: [400, "task_channel_disable", "该任务所属渠道已被禁用"],
    unreachable: [500, "do_request_failed", UNREACHABLE],
    upstreamAccount: [502, "upstream_auth", "upstream_auth"],
  },
  errorBody({ status, code, message, isUpstreams }) {
    const isTransport = isUpstreams && TRANSPORT.test(message);
    const shown = status === 429 ? SATURATED : isTransport ? UNREACHABLE : scrub(message);
    return { code, message: shown, data: null };
  },
  readAnswer(received, channel) {
    const { status, text } = received;
    const wire = asObject(parseJson(text));
    if (status !== 200) {
      const failed = statusFailure(channel, received, wire ?? text);
      const { failure } = failed;
      throw new RefusedAttempt(
        failed,
        isOfAccount(failed)
          ? { status: failure.status, code: failure.code, message: failure.code }
          : {
              status: channel.statusCodeMapping.get(status) ?? status,
              code: "fail_to_fetch_task",
              message: scrub(text),
              isUpstreams: true,
            },
      );
    }
    if (!wire) throw refusedSong(NO_JSON, NO_JSON);
    const upstreamId = asString(wire["data"]);
    if (wire["code"] !== "success" || upstreamId === undefined)
      throw refusedSong(asString(wire["code"]) ?? "upstream_error", asString(wire["message"]) ?? "");
    return { status, text, wire, upstreamId };
  },
  triesOtherChannels: true,
  chargeSuffix: () => "",
  pollPath: "/suno/fetch",
  readPoll(wire) {
    const answer = asObject(wire);
    return answer?.["code"] === "success" ? tasksById(answer["data"], "task_id") : undefined;
  },
  changes(row, task) {
    const status = asString(task["status"]) || row.status;
    const data = task["data"];
    return {
      status,
      failReason: scrub(asString(task["fail_reason"]) ?? "") || row.failReason,
      submitTime: asNumber(task["submit_time"]) || row.submitTime,
      startTime: asNumber(task["start_time"]) || row.startTime,
      finishTime: asNumber(task["finish_time"]) || row.finishTime,
      data: data === undefined || data === null ? row.data : JSON.stringify(data),
      progress: status === SUCCESS ? DONE : row.progress,
    };
  },
};
