// Kinds of option values: how the stored text is read, checked and shown.
// Each parse refuses wrong text with a Failure that names what was expected.
import { AUTO_GROUP } from "../../shared/auto-group.ts";
import { refusedScheme } from "../../shared/chat-schemes.ts";
import type { SpecialGroups } from "../../shared/group-rules.ts";
import { refuse } from "../../shared/failures.ts";
import { readLimitFields } from "../../shared/key-limits.ts";
import type { LimitFields } from "../../shared/key-limits.ts";
import { isTimeZone } from "../../shared/local-time.ts";
import { isPriceName, readPriceRules } from "../../shared/price-row.ts";
import type { PriceRules } from "../../shared/price-row.ts";
import { readStatusRanges } from "../../shared/status-ranges.ts";

export interface OptionKind<T> {
  /** Reads the stored text; throws a Failure for text that is not of this kind. */
  parse(text: string): T;
  /**
   * Throws a Failure for text that people may not save, though it is read where it is stored already: what an older release
   * took must not turn into the default by itself.
   */
  check?: (text: string) => void;
  /** A map of prices, ratios or groups: nobody empties it by sending nothing. */
  isTable?: boolean;
  /** Bounds of a number, for the field that it is typed into. */
  range?: { min: number; max: number; isWhole: boolean; isOptional?: boolean };
  /** All that may be chosen. */
  values?: readonly string[];
}

export interface OptionDefinition<T = unknown> {
  kind: OptionKind<T>;
  /** Text on the wire and in the database. */
  default: string;
  /** Sealed at rest and never returned by any call. */
  secret?: boolean;
  /** Sent to everybody: the field of GET /api/status that carries it. */
  public?: string;
  /** What a number counts; its text is `option.unit.<unit>`. */
  unit?: OptionUnit;
}

export const OPTION_UNITS = [
  "attempts",
  "currency_per_dollar",
  "days",
  "dollars",
  "hours",
  "mebibytes",
  "minutes",
  "quota",
  "quota_per_dollar",
  "requests",
  "milliseconds",
  "seconds",
  "share",
  "partShare",
  "tokens",
] as const;
type OptionUnit = (typeof OPTION_UNITS)[number];

export const text: OptionKind<string> = { parse: (value) => value };

/** An address such as https://example.org; empty is allowed; trailing slashes are cut when read. */
export const url: OptionKind<string> = {
  parse(value) {
    if (value === "") return "";
    if (!URL.canParse(value) || !/^https?:\/\//.test(value)) throw refuse("option_not_url");
    return value.replace(/\/+$/, "");
  },
};

/** An address that is called as it stands, to its last slash; empty is allowed. */
export const endpoint: OptionKind<string> = {
  parse: (value) => value,
  check(value) {
    if (value !== "" && !(URL.canParse(value) && /^https?:\/\//.test(value))) throw refuse("option_not_url");
  },
};

export const bool: OptionKind<boolean> = {
  parse(value) {
    if (value === "true") return true;
    if (value === "false" || value === "") return false;
    throw refuse("option_not_bool");
  },
};

function number(min: number, max: number, code: "option_not_int" | "option_not_number"): OptionKind<number> {
  return {
    range: { min, max, isWhole: code === "option_not_int" },
    parse(value) {
      const parsed = value.trim() === "" ? Number.NaN : Number(value);
      const isOfKind = code === "option_not_int" ? Number.isInteger(parsed) : Number.isFinite(parsed);
      if (!isOfKind || parsed < min || parsed > max) throw refuse(code, { min, max });
      return parsed;
    },
  };
}

export const int = (min = 0, max = Number.MAX_SAFE_INTEGER) => number(min, max, "option_not_int");
export const float = (min = 0, max = 1e12) => number(min, max, "option_not_number");

/** A whole number, or nothing: read as null. */
export function optionalInt(min = 0, max = Number.MAX_SAFE_INTEGER): OptionKind<number | null> {
  const whole = int(min, max);
  return {
    range: { min, max, isWhole: true, isOptional: true },
    parse: (value) => (value.trim() === "" ? null : whole.parse(value)),
  };
}

/** A sum of money: few decimals, so that every product of it is exact. */
export function money(min: number, max: number, decimals: number): OptionKind<number> {
  const plain = new RegExp(`^\\d+(\\.\\d{1,${decimals}})?$`);
  return {
    ...float(min, max),
    check(value) {
      if (!plain.test(value.trim())) throw refuse("option_too_precise", { decimals });
    },
  };
}

export function oneOf<const T extends string>(...values: T[]): OptionKind<T> {
  return {
    values,
    parse(value) {
      const found = values.find((each) => each === value);
      if (found === undefined) throw refuse("option_not_one_of", { values: values.join(", ") });
      return found;
    },
  };
}

/** Statuses of upstreams, as ranges. */
export const statusRanges: OptionKind<ReadonlySet<number>> = {
  parse(value) {
    const statuses = readStatusRanges(value);
    if (!statuses) throw refuse("option_not_statuses");
    return statuses;
  },
};

/** A zone by its IANA name, such as Asia/Shanghai: fixed offsets know no daylight saving. */
export const timeZone: OptionKind<string> = {
  parse(value) {
    if (!isTimeZone(value)) throw refuse("option_not_time_zone");
    return value;
  },
};

/** Lines of text, trimmed, without empty ones. */
export const lines: OptionKind<string[]> = {
  parse: (value) =>
    value
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== ""),
};

const csv: OptionKind<string[]> = {
  parse: (value) =>
    value
      .split(",")
      .map((item) => item.trim())
      .filter((item) => item !== ""),
};

/** `*.` in front: everything below the domain. */
const DOMAIN = /^(?:\*\.)?(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?\.)+[\p{L}\p{N}-]{2,}$/u;

/** Names of mail domains, separated by commas. */
export const domains: OptionKind<string[]> = {
  ...csv,
  check(value) {
    const wrong = csv.parse(value).find((name) => !DOMAIN.test(name));
    if (wrong !== undefined) throw refuse("option_bad_domain", { name: wrong });
  },
};

function json(value: string): unknown {
  try {
    return JSON.parse(value) as unknown;
  } catch {
    throw refuse("option_not_json");
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A JSON object whose values all pass `check`; the empty text counts as {}. */
function map<T>(check: (value: unknown, key: string) => T): OptionKind<Record<string, T>> {
  return {
    parse(value) {
      const parsed = value.trim() === "" ? {} : json(value);
      if (!isRecord(parsed)) throw refuse("option_not_map");
      const result: Record<string, T> = {};
      for (const [key, entry] of Object.entries(parsed)) result[key] = check(entry, key);
      return result;
    },
  };
}

/** A map of prices, ratios or groups. */
function table<T>(check: (value: unknown, key: string) => T): OptionKind<Record<string, T>> {
  return { ...map(check), isTable: true };
}

/** Largest ratio or price that is taken: a slip of six digits must not pass. */
const MAX_RATIO = 1e6;

export const ratioMap = table((value, key) => {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0 || value > MAX_RATIO) {
    throw refuse("option_bad_ratio", { name: key });
  }
  return value;
});

/** model -> what its price is beyond the maps of ratios. */
export const priceRulesMap = table((value, key): PriceRules => {
  const { row, problem } = isPriceName(key) ? readPriceRules(value) : { problem: "" };
  if (!row) throw refuse("option_bad_price_rules", { name: key, place: problem });
  return row;
});

const groupRatios = table((value, key) => {
  if (typeof value !== "number" || !Number.isFinite(value) || value > MAX_RATIO) {
    throw refuse("option_bad_ratio", { name: key });
  }
  if (value < 0) throw refuse("option_group_ratio_negative", { name: key });
  return value;
});

function refuseAuto(name: string): void {
  if (name === AUTO_GROUP) throw refuse("option_group_auto");
}

/** group -> its factor; `auto` is no group. */
export const groupRatioMap: OptionKind<Record<string, number>> = {
  ...groupRatios,
  check: (value) => Object.keys(groupRatios.parse(value)).forEach(refuseAuto),
};

const groupOverrides = table((value, userGroup): Record<string, number> => {
  if (!isRecord(value)) throw refuse("option_bad_override", { name: userGroup });
  const ratios: Record<string, number> = {};
  for (const [group, ratio] of Object.entries(value)) {
    const name = `${userGroup}: ${group}`;
    if (typeof ratio !== "number" || !Number.isFinite(ratio) || ratio > MAX_RATIO)
      throw refuse("option_bad_ratio", { name });
    if (ratio < 0) throw refuse("option_group_ratio_negative", { name });
    ratios[group] = ratio;
  }
  return ratios;
});

/** group of users -> group that they use -> the factor that replaces that group's own. */
export const groupOverrideMap: OptionKind<Record<string, Record<string, number>>> = {
  ...groupOverrides,
  check: (value) =>
    Object.values(groupOverrides.parse(value)).forEach((ratios) => Object.keys(ratios).forEach(refuseAuto)),
};

const specialGroups = table((value, userGroup): SpecialGroups => {
  if (!isRecord(value)) throw refuse("option_bad_special", { name: userGroup });
  const added: Record<string, string> = {};
  const removed = new Set<string>();
  for (const [entry, words] of Object.entries(value)) {
    const group = /^[+-]:/.test(entry) ? entry.slice(2) : entry;
    if (typeof words !== "string" || group.trim() === "")
      throw refuse("option_bad_special", { name: `${userGroup}: ${entry}` });
    if (entry.startsWith("-:")) removed.add(group);
    else added[group] = words;
  }
  return { added, removed };
});

/** group of users -> { "+:group" or "group": its description, "-:group": any text }. */
export const specialGroupMap: OptionKind<Record<string, SpecialGroups>> = {
  ...specialGroups,
  check(value) {
    for (const [userGroup, { added, removed }] of Object.entries(specialGroups.parse(value))) {
      [...Object.keys(added), ...removed].forEach(refuseAuto);
      const both = Object.keys(added).find((group) => removed.has(group));
      if (both !== undefined) throw refuse("option_special_both", { name: `${userGroup}: ${both}` });
    }
  },
};

function textOf(value: unknown, key: string): string {
  if (typeof value !== "string") throw refuse("option_bad_text", { name: key });
  return value;
}

export const textMap = map(textOf);
/** group -> its description. */
export const groupTextMap = table(textOf);

const tokenCountMap = map((value, key) => {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > 1e9) {
    throw refuse("option_bad_count", { name: key });
  }
  return value;
});

/** model -> count; what no model's own entry says is said by `default`. */
export const tokenCountMapWithDefault: OptionKind<Record<string, number>> = {
  ...tokenCountMap,
  check(value) {
    if (!Object.hasOwn(tokenCountMap.parse(value), "default")) throw refuse("option_no_default");
  },
};

/** group -> [requests, successful requests] per window. */
export const rateLimitMap = table((value, key): [number, number] => {
  if (!Array.isArray(value) || value.length !== 2)
    throw refuse("option_bad_rate_limit", { name: key, total: "?", success: "?" });
  const [total, success] = value as unknown[];
  if (
    typeof total !== "number" ||
    typeof success !== "number" ||
    !Number.isInteger(total) ||
    !Number.isInteger(success) ||
    total < 0 ||
    success < 1
  ) {
    throw refuse("option_bad_rate_limit", { name: key, total: String(total), success: String(success) });
  }
  return [total, success];
});

function limitFields(value: unknown, key: string): LimitFields {
  const fields = readLimitFields(value);
  if ("wrong" in fields) {
    const place = fields.wrong === "" ? key : `${key}.${fields.wrong}`;
    throw refuse("option_bad_key_limits", { place: key === "" ? fields.wrong : place });
  }
  return fields;
}

/** Budget and limits of one user, for everybody: a JSON object with the fields of a key. */
export const keyLimits: OptionKind<LimitFields> = {
  parse: (value) => limitFields(value.trim() === "" ? {} : json(value), ""),
};

/** group -> the same for each of its users. */
export const keyLimitsMap = table(limitFields);

/** model -> header -> values. */
export const headerMap = map((value, key): Record<string, string[]> => {
  if (!isRecord(value)) throw refuse("option_bad_text", { name: key });
  const headers: Record<string, string[]> = {};
  for (const [name, entry] of Object.entries(value)) {
    const values: unknown[] = Array.isArray(entry) ? entry : [entry];
    if (
      !/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name) ||
      !values.every((v) => typeof v === "string" && !/[\r\n]/.test(v))
    ) {
      throw refuse("option_bad_text", { name: `${key}.${name}` });
    }
    headers[name] = values as string[];
  }
  return headers;
});

/** Chat links: a list of one-entry objects, title -> template; none that runs script or reads local files. */
export const chatList: OptionKind<Record<string, string>[]> = {
  parse(value) {
    const parsed = value.trim() === "" ? [] : json(value);
    if (!Array.isArray(parsed)) throw refuse("option_not_list");
    return parsed.map((entry: unknown, index) => {
      if (
        !isRecord(entry) ||
        Object.keys(entry).length !== 1 ||
        typeof Object.values(entry)[0] !== "string"
      ) {
        throw refuse("option_bad_chat", { position: index + 1 });
      }
      return entry as Record<string, string>;
    });
  },
  check(value) {
    chatList.parse(value).forEach((entry, index) => {
      const scheme = refusedScheme(Object.values(entry)[0] ?? "");
      if (scheme !== undefined) throw refuse("option_chat_scheme", { position: index + 1, scheme });
    });
  },
};

export const textList: OptionKind<string[]> = {
  parse(value) {
    const parsed = value.trim() === "" ? [] : json(value);
    if (!Array.isArray(parsed) || !parsed.every((entry) => typeof entry === "string")) {
      throw refuse("option_not_list");
    }
    return parsed;
  },
};

/** Groups in the order in which they are tried. */
export const groupList: OptionKind<string[]> = {
  ...textList,
  isTable: true,
  check(value) {
    const groups = textList.parse(value);
    groups.forEach(refuseAuto);
    const wrong = groups.find((group, at) => group.trim() === "" || groups.indexOf(group) !== at);
    if (wrong !== undefined) throw refuse("option_bad_group_list", { name: wrong });
  },
};

/** Something to know about models or channels, as an administrator wrote it. */
export interface ModelNotice {
  id: string;
  /** Exact names. */
  models: string[];
  /** Ids. */
  channels: number[];
  text: string;
  /** Unix seconds; 0: until it is taken back. */
  until: number;
}

const isListOf = <T>(value: unknown, isOne: (each: unknown) => each is T): value is T[] =>
  Array.isArray(value) && value.every(isOne);
const isName = (each: unknown): each is string => typeof each === "string" && each !== "";
const isId = (each: unknown): each is number => Number.isSafeInteger(each) && Number(each) > 0;

/** Notices about models or channels; those without an id are known by their place. */
export const modelNotices: OptionKind<ModelNotice[]> = {
  parse(value) {
    const parsed = value.trim() === "" ? [] : json(value);
    if (!Array.isArray(parsed)) throw refuse("option_not_list");
    return parsed.map((entry: unknown, index): ModelNotice => {
      const {
        id = String(index + 1),
        models = [],
        channels = [],
        text: said,
        until = 0,
      } = isRecord(entry) ? entry : {};
      const isWhole =
        isName(id) &&
        isListOf(models, isName) &&
        isListOf(channels, isId) &&
        models.length + channels.length > 0 &&
        isName(said) &&
        typeof until === "number" &&
        Number.isSafeInteger(until) &&
        until >= 0;
      if (!isWhole) throw refuse("option_bad_notice", { position: index + 1 });
      return { id, models, channels, text: said, until };
    });
  },
};
