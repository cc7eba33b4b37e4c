// What the channel screen knows of a channel, and the drawer's values made from it and back.
// Refuses to carry keys: they go to the server and never come back.

export interface ChannelRow {
  id: number;
  type: number;
  name: string;
  status: number;
  models: string;
  group: string;
  priority: number;
  weight: number;
  tag: string | null;
  base_url: string;
  other: string;
  openai_organization: string | null;
  test_model: string | null;
  auto_ban: number;
  model_mapping: string;
  status_code_mapping: string;
  param_override: string;
  setting: string;
  other_info: string;
  response_time: number;
  test_time: number;
  balance: number;
  balance_updated_time: number;
  used_quota: number;
  created_time: number;
}

export interface ChannelPageData {
  rows: ChannelRow[];
  total: number;
  pageSize: number;
  groups: string[];
  /** Preset models per channel type. */
  presets: Record<string, readonly string[] | null>;
}

export interface ChannelValues extends Record<string, unknown> {
  type: number;
  name: string;
  key: string;
  baseUrl: string;
  organization: string;
  other: string;
  models: string;
  groups: string;
  priority: number | undefined;
  weight: number | undefined;
  tag: string;
  autoBan: boolean;
  testModel: string;
  modelMapping: string;
  statusCodeMapping: string;
  paramOverride: string;
  setting: string;
}

export const NEW_CHANNEL: ChannelValues = {
  type: 1,
  name: "",
  key: "",
  baseUrl: "",
  organization: "",
  other: "",
  models: "",
  groups: "default",
  priority: 0,
  weight: 0,
  tag: "",
  autoBan: true,
  testModel: "",
  modelMapping: "",
  statusCodeMapping: "",
  paramOverride: "",
  setting: "",
};

export function valuesOf(row: ChannelRow): ChannelValues {
  return {
    type: row.type,
    name: row.name,
    key: "",
    baseUrl: row.base_url,
    organization: row.openai_organization ?? "",
    other: row.other,
    models: row.models,
    groups: row.group,
    priority: row.priority,
    weight: row.weight,
    tag: row.tag ?? "",
    autoBan: row.auto_ban === 1,
    testModel: row.test_model ?? "",
    modelMapping: row.model_mapping,
    statusCodeMapping: row.status_code_mapping,
    paramOverride: row.param_override,
    setting: row.setting,
  };
}

export function namesOf(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((name) => name !== ""))];
}

export function bodyOf(values: ChannelValues) {
  return {
    type: values.type,
    name: values.name.trim(),
    ...(values.key.trim() === "" ? {} : { key: values.key.trim() }),
    base_url: values.baseUrl.trim().replace(/\/+$/, ""),
    openai_organization: values.organization.trim(),
    other: values.other.trim(),
    models: namesOf(values.models).join(","),
    group: namesOf(values.groups).join(","),
    priority: values.priority ?? 0,
    weight: values.weight ?? 0,
    tag: values.tag.trim(),
    auto_ban: values.autoBan ? 1 : 0,
    test_model: values.testModel.trim(),
    model_mapping: values.modelMapping.trim(),
    status_code_mapping: values.statusCodeMapping.trim(),
    param_override: values.paramOverride.trim(),
    setting: values.setting.trim(),
  };
}

/** Why and when a channel was switched off by itself. */
export function reasonOf(row: ChannelRow): { reason: string; time: number } | undefined {
  try {
    const info = JSON.parse(row.other_info || "{}") as { status_reason?: unknown; status_time?: unknown };
    return typeof info.status_reason === "string" && info.status_reason !== ""
      ? { reason: info.status_reason, time: typeof info.status_time === "number" ? info.status_time : 0 }
      : undefined;
  } catch {
    return undefined;
  }
}

/** A JSON object, or nothing. */
export function isJsonObject(text: string): boolean {
  if (text.trim() === "") return true;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** The specification's thresholds of a test's time. */
export const RESPONSE_MS = [1000, 3000, 5000] as const;
