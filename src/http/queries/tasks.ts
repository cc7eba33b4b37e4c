// What the drawing log and the task log are narrowed by: the query strings of /api/mj and /api/task, and the addresses of
// /midjourney and /task.
import type { TaskFilter } from "../../core/tasks/store.ts";
import { positive, queryText } from "./sent.ts";
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

/** Both lists are narrowed alike; what a list's own fields do not name is absent. */
export function taskFilterOf(sent: Sent<typeof drawingFields> & Sent<typeof taskFields>): TaskFilter {
  return {
    channelId: positive(sent.channel_id),
    upstreamId: sent.mj_id ?? sent.task_id,
    platform: sent.platform,
    status: sent.status,
    action: sent.action,
    from: positive(sent.start_timestamp),
    to: positive(sent.end_timestamp),
  };
}

/** What a user may read of it: the own rows, never by channel. */
export function ownTasks(filter: TaskFilter, userId: number): TaskFilter {
  return { ...filter, channelId: undefined, userId };
}
