// What the usage log screen knows of a row, and the reading of its JSON.
// Rows of older or other gateways may lack any field.
import type { Translate } from "../../lib/i18n.ts";
import type { ListPageData, LogHistogramData, LogRow, LogStat } from "../../lib/wire.ts";

interface Attempt {
  channel: number;
  ms: number;
  code?: string;
  /** The upstream's HTTP status, of failed attempts. */
  status?: number;
}

export interface LogOther extends Record<string, unknown> {
  frt?: number;
  is_model_mapped?: boolean;
  upstream_model_name?: string;
  cache_tokens?: number;
  cache_creation_tokens?: number;
  reasoning_effort?: string;
  admin_info?: {
    use_channel?: (string | number)[];
    internal?: string;
    admin_username?: string;
    header_rules?: string[];
    multi_key_index?: number;
    /** Where the session of the call stays; absent: it has none, or nothing was to choose. */
    channel_affinity?: {
      rule_name: string;
      key_source?: string;
      /** Absent: of a stored response. */
      key_fp?: string;
      state?: "new" | "kept" | "switched";
      reason?: string;
      from_channel?: number;
    };
  };
  attempts?: Attempt[];
  client_dialect?: string;
  upstream_dialect?: string;
  end_reason?: string;
  note?: string;
  estimated?: boolean;
  sensitive_output?: boolean;
  dropped?: string[];
  /** What the channel's rules did to the request, by mode and field. */
  request_rules?: string[];
  /** Of the channel's own system prompt, estimated. */
  system_prompt_tokens?: number;
  /** The group's ratio is one that only users of the caller's group pay. */
  user_group_ratio?: number;
  /** The key was an automatic one: the row's group is the one that answered. */
  auto?: boolean;
  /** "balance": a lower limit on the answer was sent, because no more could be held. */
  limited?: string;
  /** The cap that the call had, in units, and what was generated above it. */
  max_quota?: number;
  over_cap?: number;
  /** Rows of the audit trail: from where, by whom, with what. */
  op?: { action: string };
  ip?: string;
  ua?: string;
  auth_method?: string;
  error_type?: string;
  error_code?: string;
  status_code?: number;
}

export interface LogPageData extends ListPageData<LogRow> {
  stat: LogStat;
  histogram: LogHistogramData;
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

/** What the row says, in the reader's language where it is known in it. */
export const textOf = (row: LogRow): string => row.text ?? row.content;

/** Tests of channels use no key of anybody's: the log names them in the words of old clients. */
export function keyNameOf(t: Translate, { token_name: name }: LogRow): string {
  return name === "模型测试" ? t("log.channelTest") : name;
}

export const CONSUME = 2;
export const ERROR = 5;

/** Types of the specification, in the order of the tabs. */
export const LOG_TYPES = [
  [0, "log.type.all"],
  [2, "log.type.consume"],
  [1, "log.type.topUp"],
  [3, "log.type.manage"],
  [4, "log.type.system"],
  [7, "log.type.login"],
  [5, "log.type.error"],
] as const;

export function typeKey(type: number): string {
  return LOG_TYPES.find(([id]) => id === type)?.[1] ?? "common.unknown";
}

/** The specification's thresholds: first token 3 and 10 s, the call in all 101 and 300 s. */
export const FIRST_TOKEN_MS = [3000, 10_000] as const;
export const TOTAL_MS = [101_000, 300_000] as const;

/** Filters of the API, by their own names; the last two are the administrators'. */
const USER_FILTERS = ["type", "token_name", "model_name", "group", "request_id"] as const;
const ADMIN_FILTERS = ["username", "channel"] as const;
/** What a saved view keeps. */
export const VIEW_FIELDS = [
  ...USER_FILTERS,
  ...ADMIN_FILTERS,
  "range",
  "start_timestamp",
  "end_timestamp",
] as const;
