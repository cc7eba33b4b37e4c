// What the drawing log and the task log are narrowed by: the query strings of /api/mj and /api/task, and the addresses of
// /midjourney and /task.
import type { CreativeTaskFilter } from "../../core/tasks/creative-tasks.ts";
import type { DrawingFilter } from "../../core/tasks/drawing-tasks.ts";
import { positive, present, queryText } from "./sent.ts";
import type { Sent } from "./sent.ts";

const word = queryText(255);

/** Times are Unix milliseconds, both included. */
export const drawingFields = {
  channel_id: word,
  mj_id: word,
  start_timestamp: word,
  end_timestamp: word,
};

/** Times are Unix seconds, both included. */
export const taskFields = {
  channel_id: word,
  platform: word,
  task_id: word,
  status: word,
  action: word,
  start_timestamp: word,
  end_timestamp: word,
};

export function drawingFilterOf(sent: Sent<typeof drawingFields>): DrawingFilter {
  return present({
    channelId: positive(sent.channel_id),
    mjId: sent.mj_id,
    from: positive(sent.start_timestamp),
    to: positive(sent.end_timestamp),
  });
}

export function taskFilterOf(sent: Sent<typeof taskFields>): CreativeTaskFilter {
  return present({
    channelId: positive(sent.channel_id),
    platform: sent.platform,
    taskId: sent.task_id,
    status: sent.status,
    action: sent.action,
    from: positive(sent.start_timestamp),
    to: positive(sent.end_timestamp),
  });
}
