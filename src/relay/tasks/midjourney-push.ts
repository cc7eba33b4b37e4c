// What a push may change in a drawing's row: how far it is, its texts and its picture.
// Refuses times, steps backwards, and failures: those are the upstream's own answer to give, and only the poller asks it.
import { DONE, FAILURE, SUCCESS } from "../../core/tasks/families.ts";
import type { DrawingRow } from "../../core/tasks/families.ts";
import { asString } from "../../protocol/json.ts";
import type { Json } from "./task-wire.ts";

/** How far a status is; what is not named here is nobody's business to push. */
const RANKS: ReadonlyMap<string, number> = new Map([
  ["", 0],
  ["NOT_START", 1],
  ["SUBMITTED", 2],
  ["MODAL", 3],
  ["IN_PROGRESS", 4],
  [SUCCESS, 5],
]);
const NEARLY_DONE = 99;
const MAX_ADDRESS_CHARACTERS = 8192;

function percentOf(progress: string | undefined): number | undefined {
  const digits = /^(\d{1,3})%$/.exec(progress ?? "")?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/**
 * The columns that the push changes. `isUsers`: it came with the key of somebody who is no operator. Times are ours: a
 * task begins and ends when we hear of it. A pushed failure only makes the poller ask now, so that no refund hangs on the
 * word of whoever would get it.
 */
export function pushed(row: DrawingRow, body: Json, nowMs: number, isUsers: boolean): Partial<DrawingRow> {
  const reported = asString(body["status"]) ?? row.status;
  const hasFailed = reported === FAILURE || (asString(body["failReason"]) ?? "") !== "";
  const isForward = !hasFailed && (RANKS.get(reported) ?? -1) > (RANKS.get(row.status) ?? 0);
  const status = isForward ? reported : row.status;
  const isDone = status === SUCCESS;
  const percent = Math.min(percentOf(asString(body["progress"])) ?? 0, NEARLY_DONE);
  const progress = percent > (percentOf(row.progress) ?? 0) ? `${percent}%` : row.progress;
  const hasBegun = isDone || status === "IN_PROGRESS";
  const imageUrl = asString(body["imageUrl"]) ?? "";
  const isNewPicture =
    imageUrl !== "" && imageUrl !== row.imageUrl && imageUrl.length <= MAX_ADDRESS_CHARACTERS;
  return {
    status,
    progress: isDone ? DONE : progress,
    promptEn: asString(body["promptEn"]) ?? row.promptEn,
    state: asString(body["state"]) ?? row.state,
    startTimeMs: row.startTimeMs === 0 && hasBegun ? nowMs : row.startTimeMs,
    ...(isDone ? { finishTimeMs: nowMs } : {}),
    ...(isNewPicture ? { imageUrl, imagePushed: isUsers } : {}),
    ...(hasFailed ? { nextPollMs: Math.min(row.nextPollMs, nowMs) } : {}),
  };
}
