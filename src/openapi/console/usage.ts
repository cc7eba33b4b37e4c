// The console's calls about use: the log, its figures, dashboards, and the lists of tasks.
import type { ConsoleOperation } from "../schema.ts";

const FIRST_PAGE = { p: "Page; the first is 1." };
const SECONDS = {
  start_timestamp: "Unix seconds, included.",
  end_timestamp: "Unix seconds, included.",
};
const COUNTED =
  "`total_more`: the count ended at `total`, there are more. `cut`: no sum knows the filter, so only the newest 120,000 rows (100,000 of each type that is neither call nor error) were searched.";
const MONTH = "Without a range: the month up to now.";
const TASK_PAGE = { p: "Page; the first is 0." };
const MILLISECONDS = {
  start_timestamp: "Unix milliseconds, included.",
  end_timestamp: "Unix milliseconds, included.",
};

export const usage: Readonly<Record<string, ConsoleOperation>> = {
  "GET /api/log/": {
    tag: "Usage",
    summary: "List the log",
    description: COUNTED,
    fields: { ...FIRST_PAGE, ...SECONDS },
  },
  "GET /api/log/self": {
    tag: "Usage",
    summary: "List the own log",
    description: COUNTED,
    fields: { ...FIRST_PAGE, ...SECONDS },
  },
  "GET /api/log/export": {
    tag: "Usage",
    summary: "The log as a CSV file",
    description: "Every row of the filter, newest first, as a stream. One export at a time for each account.",
    csv: "A row of the log; times in UTC.",
    fields: { ...SECONDS, type: "One type, or several with commas: 3,4,7 is the audit trail." },
  },
  "GET /api/log/self/export": {
    tag: "Usage",
    summary: "The own log as a CSV file",
    description: "Every row of the filter, newest first, as a stream. One export at a time for each account.",
    csv: "A row of the log; times in UTC.",
    fields: { ...SECONDS, type: "One type, or several with commas: 4,7 is what the account did." },
  },
  "GET /api/log/stat": { tag: "Usage", summary: "Sums of the log", fields: SECONDS },
  "GET /api/log/self/stat": { tag: "Usage", summary: "Sums of the own log", fields: SECONDS },
  "GET /api/log/histogram": {
    tag: "Usage",
    summary: "The log over time",
    description: MONTH,
    fields: SECONDS,
  },
  "GET /api/log/self/histogram": {
    tag: "Usage",
    summary: "The own log over time",
    description: MONTH,
    fields: SECONDS,
  },
  "GET /api/log/channel_affinity_usage_cache": {
    tag: "Usage",
    summary: "What the binding of one session has served",
    description:
      "Of the node that answers. `rule_name` and `key_fp` are those that a log row tells in `admin_info.channel_affinity`; " +
      "zeros where the binding is gone.",
    fields: {
      rule_name: "Name of the rule.",
      using_group: "Answered as it is sent.",
      key_fp: "Eight hex digits of a log row.",
    },
  },
  "GET /api/log/search": {
    tag: "Usage",
    summary: "Search the log",
    description:
      "The newest rows: 100, or as many as page_size says. Texts are searched in the newest 120,000 rows; `cut`: there are older ones.",
    fields: { keyword: "Number of a kind, or the beginning of a row's text." },
  },
  "GET /api/log/self/search": {
    tag: "Usage",
    summary: "Search the own log",
    description: "The newest rows: 100, or as many as page_size says.",
    fields: { keyword: "Number of a kind." },
  },
  "GET /api/log/token": {
    tag: "Usage",
    summary: "The log of a key, for whoever holds it",
    description:
      "Every row, up to 1000, where no page is asked for. Open to pages of every site, sixty times a minute.",
    key: "keyInQuery",
    fields: { ...FIRST_PAGE, key: "The key, with or without `sk-`." },
  },
  "GET /api/usage/token": {
    tag: "Usage",
    summary: "What a key may spend and has spent",
    description:
      "In quota units, for whoever holds the key; `limits` are the budget and the limits of the key itself, null without any. Open to pages of every site, sixty times a minute.",
    key: "apiKey",
  },
  "GET /api/log/clear_count": {
    tag: "Usage",
    summary: "How many rows a deletion would take",
    fields: { target_timestamp: "Unix seconds: rows before it are counted." },
  },
  "GET /api/log/clear_progress": { tag: "Usage", summary: "How far the deletion of old rows is" },
  "POST /api/log/clear_cancel": {
    tag: "Usage",
    summary: "End the deletion of old rows",
    description: "What is deleted stays deleted.",
  },
  "DELETE /api/log/": {
    tag: "Usage",
    summary: "Delete old rows of the log",
    description: "Answers how many.",
    fields: { target_timestamp: "Unix seconds: rows before it go." },
  },
  "GET /api/data/": { tag: "Usage", summary: "Use by hour", description: MONTH, fields: SECONDS },
  "GET /api/data/self": {
    tag: "Usage",
    summary: "The own use by hour",
    description: `${MONTH} At most a month.`,
    fields: SECONDS,
  },
  "GET /api/data/summary": {
    tag: "Usage",
    summary: "Use summed for a dashboard",
    description: MONTH,
    fields: SECONDS,
  },
  "GET /api/data/cache": {
    tag: "Usage",
    summary: "How much of the prompts came from caches",
    description:
      "Hit rate is `read` / `input`. `saved` is what the same calls would have cost without a cache, less what they cost, in " +
      "units of quota. Calls whose upstream reported no usage are left out. Of rules also how many calls stayed where their " +
      "session was bound, and how many were served elsewhere.",
    fields: { ...SECONDS, by: "channel, model, user, or rule (of affinity)." },
  },
  "GET /api/data/margin": {
    tag: "Usage",
    summary: "What is earned",
    description:
      "Revenue, what upstreams charge and the difference, in units of quota, over time and by channel, model, group or day. " +
      "Calls of unknown cost are in no margin: `known_revenue` and `known_calls` say how much is known.",
    fields: SECONDS,
  },
  "GET /api/data/self/first_steps": {
    tag: "Usage",
    summary: "What stands between a fresh site and its first call",
    description: "A channel and prices for its models (administrators only), a key, the call itself.",
  },
  "GET /api/data/self/summary": {
    tag: "Usage",
    summary: "The own use summed for a dashboard",
    description: `${MONTH} At most a month.`,
    fields: SECONDS,
  },
  "GET /api/mj/": { tag: "Tasks", summary: "List drawings", fields: { ...TASK_PAGE, ...MILLISECONDS } },
  "GET /api/mj/self": {
    tag: "Tasks",
    summary: "List the own drawings",
    fields: { ...TASK_PAGE, ...MILLISECONDS },
  },
  "GET /api/task/": { tag: "Tasks", summary: "List songs", fields: { ...TASK_PAGE, ...SECONDS } },
  "GET /api/task/self": { tag: "Tasks", summary: "List the own songs", fields: { ...TASK_PAGE, ...SECONDS } },
};
