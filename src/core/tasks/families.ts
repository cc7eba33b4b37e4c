// The families of asynchronous tasks as rows: which table holds one, what its columns mean, when its tasks have failed or
// are lost, and what the log says of them. Whatever differs between families in the database stands here.
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Schema } from "../../../drizzle/schema.ts";
import { drawingFailed, taskFailed } from "../logs/sentences.ts";

export type DrawingRow = Schema["drawings"]["$inferSelect"];
export type CreativeTaskRow = Schema["tasks"]["$inferSelect"];

/** What the engine reads and writes of any task; the columns are named alike in every table of tasks. */
export interface TaskRow {
  id: number;
  userId: number;
  /** 0 = no key was charged. */
  tokenId: number;
  channelId: number;
  /** Of the channel's key that took it; 0 = not known. */
  keyId: number;
  group: string;
  modelName: string;
  /** Of the call that submitted it: a refund takes back what this call was charged. */
  requestId: string;
  quota: number;
  settledHour: number;
  refunded: boolean;
  action: string;
  status: string;
  progress: string;
  failReason: string;
  polls: number;
  nextPollMs: number;
}

type TaskTable = PgTable & Readonly<Record<keyof TaskRow, PgColumn>>;

/** Columns that each table names its own way. */
interface TaskColumns {
  table: TaskTable;
  /** The upstream's id of the task; "" = it never gave one. */
  upstreamId: PgColumn;
  /** When the client submitted it, in the unit that the family's lists count in. */
  submitTime: PgColumn;
  /** Where several platforms share the table. */
  platform: PgColumn | undefined;
}

export interface TaskFamily<Row extends TaskRow> {
  /** In the process's own log, and where the ids of several families meet. */
  name: "drawing" | "creative";
  columns(schema: Schema): TaskColumns;
  upstreamIdOf(row: Row): string;
  /** About how many characters its upstream's words about a task are. */
  chars(row: Row): number;
  /** Unix milliseconds. */
  submittedMs(row: Row): number;
  /** What a new task's row says about its id and its time. */
  submitted(upstreamId: string, atMs: number): Partial<Row>;
  /** What else changes whenever the row does. */
  moved(atMs: number): Partial<Row>;
  /** What else changes when the task fails; an end that the upstream named in `changes` stays. */
  ended(changes: Partial<Row>, atMs: number): Partial<Row>;
  /** Whether a row, as the upstream describes it, has failed. */
  hasFailed(row: Row): boolean;
  /** A task that is open for longer, and of which the account that took it knows nothing, is lost: it was forgotten. */
  patienceMs: number;
  /** Beginning of the log's sentence about a refund. */
  failedSentence: (upstreamId: string) => string;
}

/** A task that has ended, well or not: nothing moves it any more. */
export const DONE = "100%";
export const SUCCESS = "SUCCESS";
export const FAILURE = "FAILURE";

export const NO_ID_REASON = "no task id";
export const channelGoneReason = (channelId: number): string =>
  `获取渠道信息失败，请联系管理员，渠道ID：${channelId}`;

const HOUR_MS = 3_600_000;

/** So much longer a task is waited for while the account that took it does not answer: it may well be done, and billed. */
export const SILENT_PATIENCE_MS = 24 * HOUR_MS;

/** Why a task has failed that was open for so long; to its owner. */
export const lostReason = (patienceMs: number): string => `上游任务超时（超过${patienceMs / HOUR_MS}小时）`;

const secondsOf = (ms: number): number => Math.floor(ms / 1000);

/** Midjourney's pictures; their times are milliseconds. */
export const DRAWINGS: TaskFamily<DrawingRow> = {
  name: "drawing",
  columns: ({ drawings }) => ({
    table: drawings,
    upstreamId: drawings.mjId,
    submitTime: drawings.submitTimeMs,
    platform: undefined,
  }),
  upstreamIdOf: (row) => row.mjId,
  chars: ({ properties, buttons, prompt }) => properties.length + buttons.length + prompt.length,
  submittedMs: (row) => row.submitTimeMs,
  submitted: (mjId, atMs) => ({ mjId, submitTimeMs: atMs }),
  moved: () => ({}),
  ended: ({ finishTimeMs }, atMs) => ({ finishTimeMs: finishTimeMs || atMs }),
  hasFailed: ({ progress, failReason, status }) =>
    (progress !== DONE && failReason !== "") || status === FAILURE,
  patienceMs: HOUR_MS,
  failedSentence: drawingFailed,
};

/** Music and lyrics; their times are seconds. */
export const CREATIVE_TASKS: TaskFamily<CreativeTaskRow> = {
  name: "creative",
  columns: ({ tasks }) => ({
    table: tasks,
    upstreamId: tasks.taskId,
    submitTime: tasks.submitTime,
    platform: tasks.platform,
  }),
  upstreamIdOf: (row) => row.taskId,
  chars: ({ data, properties }) => data.length + properties.length,
  submittedMs: (row) => row.createdAt * 1000,
  submitted(taskId, atMs) {
    const now = secondsOf(atMs);
    return { taskId, createdAt: now, updatedAt: now, submitTime: now };
  },
  moved: (atMs) => ({ updatedAt: secondsOf(atMs) }),
  ended: ({ finishTime }, atMs) => ({
    finishTime: finishTime || secondsOf(atMs),
    updatedAt: secondsOf(atMs),
  }),
  hasFailed: ({ failReason, status }) => failReason !== "" || status === FAILURE,
  // Suno's own API has no such end: without one an upstream's memory loss would keep a user's money for ever.
  patienceMs: 24 * HOUR_MS,
  failedSentence: taskFailed,
};
