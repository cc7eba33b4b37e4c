// Rows of the usage log, and the sums of calls that are made of them.
// Refuses to count what was no call: refunds, tests and charges below nothing keep their row, and no sum has them.
import { errorSumName } from "../../core/logs/coarse-sums.ts";
import { LogType } from "../../shared/enums.ts";
import type { Family } from "../family.ts";
import type { NewRow } from "../insert.ts";
import type { Notes } from "../report.ts";
import type { SourceRow } from "../source.ts";
import { exactWhole, flagOf, isObject, jsonOf, textOf, wholeOf } from "../values.ts";

/** What is read of a row; columns that a source lacks are left out. */
export const LOG_COLUMNS = [
  "id",
  "created_at",
  "type",
  "user_id",
  "channel_id",
  "token_id",
  "quota",
  "prompt_tokens",
  "completion_tokens",
  "use_time",
  "elapsed_time",
  "is_stream",
  "request_id",
  "model_name",
  "username",
  "token_name",
  "group",
  "content",
  "other",
  "ip",
] as const;

export const HOUR = 3600;

export interface LogFacts {
  family: Family;
  notes: Notes;
  /** one-api writes names of keys: `<user>:<name>` of those that are the only one, to their id. */
  tokenIds: ReadonlyMap<string, number>;
  /** Unix seconds: calls and errors before it become sums; 0: none do. */
  keptFrom: number;
}

export interface MappedLog {
  row: NewRow<"logs"> | undefined;
  sum: NewRow<"rollups"> | undefined;
}

/** What each family's types are here; all others are told as the system's. */
const KEPT_TYPES: Readonly<Record<Family, ReadonlySet<number>>> = {
  "one-api": new Set([0, 1, 2, 3, 4]),
  "new-api": new Set([0, 1, 2, 3, 4, LogType.error, LogType.login]),
  "new-api-v1": new Set([0, 1, 2, 3, 4, LogType.error, LogType.login]),
};

function typeOf(row: SourceRow, { family }: LogFacts): { type: number; imported: number | undefined } {
  const imported = wholeOf(row, "type");
  const isCharge = imported === LogType.consume && wholeOf(row, "quota") < 0;
  if (KEPT_TYPES[family].has(imported) && !isCharge) return { type: imported, imported: undefined };
  return { type: LogType.system, imported };
}

/** As it stands, but what administrators alone may read goes where their console looks for it. */
function otherOf(row: SourceRow, type: number, imported: number | undefined, notes: Notes): string {
  const value = jsonOf(row, "other");
  if (value === undefined && textOf(row, "other") !== "") notes.add("logs", "broken_json", textOf(row, "id"));
  const other: Record<string, unknown> = isObject(value) ? { ...value } : {};
  if ("audit_info" in other) {
    const admin = isObject(other["admin_info"]) ? other["admin_info"] : {};
    other["admin_info"] = { ...admin, audit_info: other["audit_info"] };
    delete other["audit_info"];
  }
  const ip = textOf(row, "ip");
  if (ip !== "" && (type === LogType.manage || type === LogType.login) && other["ip"] === undefined)
    other["ip"] = ip;
  if (imported !== undefined) other["imported_type"] = imported;
  return Object.keys(other).length === 0 ? "" : JSON.stringify(other);
}

const notBelow0 = (row: SourceRow, column: string): number => Math.max(0, wholeOf(row, column));

function useTimeMs(row: SourceRow): number {
  return row["elapsed_time"] === undefined
    ? notBelow0(row, "use_time") * 1000
    : notBelow0(row, "elapsed_time");
}

/** Both undefined: the row belongs to nobody. */
export function mapLog(source: SourceRow, facts: LogFacts): MappedLog {
  const { notes, tokenIds, keptFrom } = facts;
  const id = wholeOf(source, "id");
  const userId = wholeOf(source, "user_id");
  notes.read("logs");
  if (userId <= 0) {
    notes.rejected("logs", "log_without_user", id);
    return { row: undefined, sum: undefined };
  }
  const { type, imported } = typeOf(source, facts);
  if (imported !== undefined) notes.add("logs", "log_imported_type", `${id} (${imported})`);
  const quota = exactWhole(source, "quota");
  if (quota.isCapped) notes.add("logs", "capped", id);
  const tokenName = textOf(source, "token_name");
  const createdAt = notBelow0(source, "created_at");
  const row: NewRow<"logs"> & { id: number } = {
    id,
    createdAt,
    type,
    userId,
    channelId: notBelow0(source, "channel_id"),
    tokenId:
      source["token_id"] === undefined
        ? (tokenIds.get(`${userId}:${tokenName}`) ?? 0)
        : notBelow0(source, "token_id"),
    quota: quota.value,
    promptTokens: notBelow0(source, "prompt_tokens"),
    completionTokens: notBelow0(source, "completion_tokens"),
    useTimeMs: useTimeMs(source),
    isStream: flagOf(source, "is_stream"),
    requestId: textOf(source, "request_id"),
    modelName: textOf(source, "model_name"),
    username: textOf(source, "username"),
    tokenName,
    group: textOf(source, "group"),
    content: textOf(source, "content"),
    other: otherOf(source, type, imported, notes),
  };
  const isKept = createdAt >= keptFrom || (type !== LogType.consume && type !== LogType.error);
  if (isKept) notes.carried("logs");
  else notes.add("logs", "log_summed", id);
  return {
    row: isKept ? row : undefined,
    sum: sumOf(type, row, isKept),
  };
}

/** What a row adds to its hour; undefined: nothing. */
function sumOf(type: number, row: NewRow<"logs">, isKept: boolean): NewRow<"rollups"> | undefined {
  if (type === LogType.consume) return sumOfCall(row, isKept);
  const place = placeOf(row);
  return type === LogType.error && isKept
    ? { ...place, modelName: errorSumName(place), errorCount: 1 }
    : undefined;
}

function placeOf(row: NewRow<"logs">) {
  return {
    hour: row.createdAt - (row.createdAt % HOUR),
    userId: row.userId,
    modelName: row.modelName ?? "",
    channelId: row.channelId ?? 0,
    tokenId: row.tokenId ?? 0,
    group: row.group ?? "",
  };
}

function sumOfCall(row: NewRow<"logs">, isLogged: boolean): NewRow<"rollups"> {
  const quota = row.quota ?? 0;
  return {
    ...placeOf(row),
    count: 1,
    quota,
    promptTokens: row.promptTokens ?? 0,
    completionTokens: row.completionTokens ?? 0,
    useTimeMs: row.useTimeMs ?? 0,
    loggedCount: isLogged ? 1 : 0,
    loggedQuota: isLogged ? quota : 0,
  };
}

/** An hour's sums of `quota_data`, which the old product kept beside its log; undefined: of nobody, or of no call. */
export function mapQuotaData(source: SourceRow): NewRow<"rollups"> | undefined {
  const userId = wholeOf(source, "user_id");
  const count = wholeOf(source, "count");
  const quota = wholeOf(source, "quota");
  const createdAt = notBelow0(source, "created_at");
  if (userId <= 0 || count <= 0 || quota < 0) return undefined;
  return {
    hour: createdAt - (createdAt % HOUR),
    userId,
    modelName: textOf(source, "model_name"),
    channelId: notBelow0(source, "channel_id"),
    tokenId: notBelow0(source, "token_id"),
    group: textOf(source, "use_group"),
    count,
    quota,
    promptTokens: notBelow0(source, "token_used"),
  };
}

const KEY = ["hour", "userId", "modelName", "channelId", "tokenId", "group"] as const;
const FIELDS = [
  "count",
  "quota",
  "promptTokens",
  "completionTokens",
  "useTimeMs",
  "loggedCount",
  "loggedQuota",
  "errorCount",
] as const;

/** How sums are added to those that are there. */
export const ROLLUP_SUMS = { key: KEY, fields: FIELDS } as const;

/** Sums of one key as one. */
export function gathered(sums: readonly NewRow<"rollups">[]): NewRow<"rollups">[] {
  const found = new Map<string, NewRow<"rollups">>();
  for (const sum of sums) {
    const id = KEY.map((field) => sum[field]).join("\0");
    const known = found.get(id);
    if (!known) found.set(id, { ...sum });
    else for (const field of FIELDS) known[field] = (known[field] ?? 0) + (sum[field] ?? 0);
  }
  return [...found.values()];
}
