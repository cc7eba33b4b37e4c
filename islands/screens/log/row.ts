// What the usage log screen knows of a row, and the reading of its JSON.
// Refuses nothing: rows of older or other gateways may lack any field.

export interface LogRow {
  id: number;
  created_at: number;
  type: number;
  user_id: number;
  username: string;
  token_name: string;
  group: string;
  model_name: string;
  channel: number;
  channel_name: string;
  is_stream: boolean;
  use_time_ms: number;
  prompt_tokens: number;
  completion_tokens: number;
  quota: number;
  content: string;
  other: string;
  request_id?: string;
}

export interface Attempt {
  channel: number;
  ms: number;
  code?: string;
}

export interface LogOther extends Record<string, unknown> {
  frt?: number;
  is_model_mapped?: boolean;
  upstream_model_name?: string;
  cache_tokens?: number;
  admin_info?: { use_channel?: (string | number)[] };
  attempts?: Attempt[];
  end_reason?: string;
  estimated?: boolean;
  dropped?: string[];
  error_type?: string;
  error_code?: string;
  status_code?: number;
}

export interface LogStat {
  quota: number;
  rpm: number;
  tpm: number;
}

export interface LogPageData {
  rows: LogRow[];
  total: number;
  pageSize: number;
  stat: LogStat;
  isAdmin: boolean;
}

export function otherOf(row: LogRow): LogOther {
  try {
    const parsed: unknown = JSON.parse(row.other || "{}");
    return typeof parsed === "object" && parsed !== null ? (parsed as LogOther) : {};
  } catch {
    return {};
  }
}

/** Types of the specification, in the order of the tabs. */
export const LOG_TYPES = [
  [0, "log.type.all"],
  [2, "log.type.consume"],
  [1, "log.type.topUp"],
  [3, "log.type.manage"],
  [4, "log.type.system"],
  [5, "log.type.error"],
] as const;

export function typeKey(type: number): string {
  return LOG_TYPES.find(([id]) => id === type)?.[1] ?? "common.unknown";
}

/** The specification's thresholds: first token 3 and 10 s, whole call 101 and 300 s. */
export const FIRST_TOKEN_MS = [3000, 10_000] as const;
export const WHOLE_MS = [101_000, 300_000] as const;
