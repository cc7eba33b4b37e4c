// What the usage log is narrowed by: the query strings of /api/log and the address of /log.
import type { Deps } from "../../core/deps.ts";
import { END_OF_TIME } from "../../core/logs/filter.ts";
import type { LogFilter } from "../../core/logs/filter.ts";
import { userIdOf } from "../../core/logs/list.ts";
import { positive, present, queryText } from "./sent.ts";
import type { Sent } from "./sent.ts";

/** No user has it: the filter for a name that nobody bears. */
const NOBODY = -1;

export const logFields = {
  type: queryText(20),
  token_name: queryText(255),
  model_name: queryText(255),
  /** Unix seconds, both included. */
  start_timestamp: queryText(20),
  end_timestamp: queryText(20),
  group: queryText(64),
  /** Exact: what X-Oneapi-Request-Id of the answer says. */
  request_id: queryText(100),
};

/** Administrators also ask by user and channel. */
export const adminLogFields = { ...logFields, username: queryText(255), channel: queryText(20) };

export function logFilterOf(sent: Sent<typeof logFields> & { channel?: string | undefined }): LogFilter {
  const end = positive(sent.end_timestamp);
  return {
    type: positive(sent.type) ?? 0,
    from: Math.min(positive(sent.start_timestamp) ?? 0, END_OF_TIME),
    to: end === undefined ? END_OF_TIME : Math.min(end + 1, END_OF_TIME),
    ...present({
      tokenName: sent.token_name || undefined,
      modelName: sent.model_name || undefined,
      group: sent.group || undefined,
      requestId: sent.request_id || undefined,
      channelId: positive(sent.channel),
    }),
  };
}

export async function adminLogFilter(deps: Deps, sent: Sent<typeof adminLogFields>): Promise<LogFilter> {
  const filter = logFilterOf(sent);
  if (sent.username) filter.userId = await userIdNamed(deps, sent.username);
  return filter;
}

/** The id of the user with this name; an id without rows where there is none. */
export async function userIdNamed(deps: Deps, username: string): Promise<number> {
  return (await userIdOf(deps, username)) ?? NOBODY;
}
