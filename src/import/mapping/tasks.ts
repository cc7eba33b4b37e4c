// Drawings and songs of the old site, with what is still open of them.
// Refuses tasks of platforms that are not served here; those that were open are named, since nobody will ask for them.
import { DONE, FAILURE } from "../../core/tasks/families.ts";
import type { NewRow } from "../insert.ts";
import type { Notes } from "../report.ts";
import type { SourceRow } from "../source.ts";
import { jsonText, objectOf, smallOf, textOf, wholeOf } from "../values.ts";

export interface TaskFacts {
  notes: Notes;
  hasUser: (id: number) => boolean;
}

const SUNO = "suno";

/** Its times are milliseconds. */
export function mapDrawing(row: SourceRow, { notes, hasUser }: TaskFacts): NewRow<"drawings"> | undefined {
  const id = wholeOf(row, "id");
  const userId = wholeOf(row, "user_id");
  notes.read("midjourneys");
  if (!hasUser(userId)) {
    notes.rejected("midjourneys", "user_gone", id);
    return undefined;
  }
  notes.carried("midjourneys");
  const action = textOf(row, "action");
  const status = textOf(row, "status");
  return {
    id,
    code: smallOf(row, "code"),
    userId,
    tokenId: Math.max(0, wholeOf(row, "token_id")),
    channelId: Math.max(0, wholeOf(row, "channel_id")),
    action,
    mjId: textOf(row, "mj_id"),
    group: textOf(row, "group"),
    modelName: action === "" ? "" : `mj_${action.toLowerCase()}`,
    submitTimeMs: wholeOf(row, "submit_time"),
    startTimeMs: wholeOf(row, "start_time"),
    finishTimeMs: wholeOf(row, "finish_time"),
    quota: Math.max(0, wholeOf(row, "quota")),
    // What had failed was given back there.
    refunded: status === FAILURE,
    status,
    progress: textOf(row, "progress") || "0%",
    prompt: textOf(row, "prompt"),
    promptEn: textOf(row, "prompt_en"),
    description: textOf(row, "description"),
    state: textOf(row, "state"),
    imageUrl: textOf(row, "image_url"),
    failReason: textOf(row, "fail_reason"),
    buttons: textOf(row, "buttons"),
    properties: textOf(row, "properties"),
  };
}

/** Its times are seconds. */
export function mapTask(row: SourceRow, { notes, hasUser }: TaskFacts): NewRow<"tasks"> | undefined {
  const id = wholeOf(row, "id");
  const userId = wholeOf(row, "user_id");
  notes.read("tasks");
  const platform = textOf(row, "platform");
  const progress = textOf(row, "progress") || "0%";
  const status = textOf(row, "status");
  const isOpen = progress !== DONE && status !== FAILURE;
  if (platform !== SUNO) {
    notes.rejected("tasks", isOpen ? "task_platform_open" : "task_platform", `${id} (${platform || "-"})`);
    return undefined;
  }
  if (!hasUser(userId)) {
    notes.rejected("tasks", "user_gone", id);
    return undefined;
  }
  const secret = objectOf(row, "private_data");
  const upstreamId = typeof secret["upstream_task_id"] === "string" ? secret["upstream_task_id"] : "";
  const data = jsonText(row, "data");
  const properties = jsonText(row, "properties");
  if (data.isBroken || properties.isBroken) notes.add("tasks", "broken_json", id);
  notes.carried("tasks");
  return {
    id,
    createdAt: wholeOf(row, "created_at"),
    updatedAt: wholeOf(row, "updated_at"),
    // An open one is asked for by the id that its upstream knows.
    taskId: isOpen && upstreamId !== "" ? upstreamId : textOf(row, "task_id"),
    platform,
    userId,
    tokenId: Math.max(0, Number(secret["token_id"]) || 0),
    channelId: Math.max(0, wholeOf(row, "channel_id")),
    group: textOf(row, "group"),
    modelName: `suno_${textOf(row, "action").toLowerCase()}`,
    quota: Math.max(0, wholeOf(row, "quota")),
    refunded: status === FAILURE,
    action: textOf(row, "action"),
    status,
    submitTime: wholeOf(row, "submit_time"),
    startTime: wholeOf(row, "start_time"),
    finishTime: wholeOf(row, "finish_time"),
    progress,
    failReason: textOf(row, "fail_reason"),
    properties: properties.text,
    data: data.text,
  };
}
