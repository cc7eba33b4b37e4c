// Builds rows of the log table, for settled calls and for everything else that is worth a line.
// Refuses what a database cannot hold: NUL characters, broken surrogates, numbers outside the exact integers.
import type { Schema } from "../../../drizzle/schema.ts";
import { storableText } from "../kit/storable.ts";
import { LogType } from "../../shared/enums.ts";
import type { LogEntry, Settlement, TokenAccount, UserAccount } from "../deps.ts";

/** A row of `logs` without its id, as drizzle/schema.ts has it; `other` is JSON text, or empty. */
export type LogRow = Omit<Schema["logs"]["$inferSelect"], "id">;

/** Half of the exact range, so that no sum of a balance and one charge leaves it. */
const MAX_CHARGE = 2 ** 52;

/** A charge or count: whole, never negative, never above MAX_CHARGE; what is not a number counts as 0. */
function boundedInteger(value: number): number {
  if (!(value > 0)) return 0;
  return value >= MAX_CHARGE ? MAX_CHARGE : Math.trunc(value);
}

export function settlementRow(
  requestId: string,
  user: UserAccount,
  token: TokenAccount | undefined,
  settlement: Settlement,
  nowMs: number,
): LogRow {
  return {
    createdAt: Math.floor(nowMs / 1000),
    type: LogType.consume,
    userId: user.id,
    channelId: settlement.channelId,
    tokenId: token?.id ?? 0,
    quota: boundedInteger(settlement.quota),
    promptTokens: boundedInteger(settlement.promptTokens),
    completionTokens: boundedInteger(settlement.completionTokens),
    useTimeMs: boundedInteger(settlement.useTimeMs),
    isStream: settlement.isStream,
    requestId: storableText(requestId),
    modelName: storableText(settlement.modelName),
    username: user.username,
    tokenName: storableText(settlement.tokenName ?? token?.name ?? ""),
    group: storableText(settlement.group),
    content: storableText(settlement.content),
    other: JSON.stringify(settlement.other),
  };
}

/** Refuses the type of settled calls: a consume row without its sums would unbalance the books. */
export function entryRow(entry: LogEntry, nowMs: number): LogRow {
  if (entry.type === LogType.consume) throw new Error("consume rows are written by settle only");
  return {
    createdAt: Math.floor(nowMs / 1000),
    type: entry.type,
    userId: entry.userId,
    channelId: entry.channelId ?? 0,
    tokenId: entry.tokenId ?? 0,
    quota: Math.trunc(entry.quota ?? 0) || 0,
    promptTokens: 0,
    completionTokens: 0,
    useTimeMs: boundedInteger(entry.useTimeMs ?? 0),
    isStream: entry.isStream ?? false,
    requestId: storableText(entry.requestId ?? ""),
    modelName: storableText(entry.modelName ?? ""),
    username: storableText(entry.username),
    tokenName: storableText(entry.tokenName ?? ""),
    group: storableText(entry.group ?? ""),
    content: storableText(entry.content),
    other: entry.other === undefined ? "" : JSON.stringify(entry.other),
  };
}
