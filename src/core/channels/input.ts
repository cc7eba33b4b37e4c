// What a person may write into a channel, checked and brought into the form of the row.
// Refuses JSON columns of the wrong shape, addresses that are none, names that are too long, and Vertex without region.
import ipaddr from "ipaddr.js";
import { RE2JS } from "re2js";
import { channelAddress } from "../../shared/channel-address.ts";
import { CHANNEL_GATES } from "../../shared/channel-gates.ts";
import { readHeaderRules } from "../../shared/header-rules.ts";
import { readRequestRules } from "../../shared/request-rules.ts";
import { providerForm, splitsKeysByLine } from "../../shared/provider-forms.ts";
import type { FailureCode } from "../../shared/failure-codes.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import { charactersIn, MAX_CHANNEL_NAME, MAX_MODEL_NAME, MAX_TAG } from "../../shared/name-limits.ts";
import { followMapping, keyModeOf, RESPONSES_SETTINGS } from "./rows.ts";
import type { ChannelRow } from "./rows.ts";

/** Absent and null both mean "leave as it is": older clients send null for what they do not know. */
type Given<T> = T | null | undefined;

/** The writable fields of a channel as the wire names them. */
export interface ChannelInput {
  type?: Given<number>;
  name?: Given<string>;
  key?: Given<string>;
  status?: Given<number>;
  openai_organization?: Given<string>;
  test_model?: Given<string>;
  base_url?: Given<string>;
  other?: Given<string>;
  models?: Given<string>;
  group?: Given<string>;
  model_mapping?: Given<string>;
  status_code_mapping?: Given<string>;
  param_override?: Given<string>;
  header_override?: Given<string>;
  setting?: Given<string>;
  settings?: Given<string>;
  priority?: Given<number>;
  weight?: Given<number>;
  auto_ban?: Given<number>;
  tag?: Given<string>;
  max_input_tokens?: Given<number>;
  multi_key_mode?: Given<string>;
  max_concurrency?: Given<number>;
  rpm_limit?: Given<number>;
  tpm_limit?: Given<number>;
  /** Of a new channel: what becomes of several keys. */
  mode?: Given<string>;
  /** Of a change: whether the keys that are sent join those before or take their place. */
  key_mode?: Given<string>;
  /** States of the keys that are sent (`channel-info.ts`). */
  channel_info?: unknown;
}

/** Channels that one call makes of as many keys. */
export const MAX_KEYS_AT_ONCE = 200;
export const MAX_KEYS_OF_CHANNEL = 1000;
const MAX_MODELS = 2000;
const MAX_GROUPS = 100;
const MAX_STATUS_MAPPING_CHARACTERS = 1024;
const VERTEX = 41;
const CONTROL = /\p{Cc}/u;

function refuseField(param: string, code: FailureCode, params?: Record<string, string | number>): Failure {
  return new Failure("client", code, { param, ...(params ? { params } : {}) });
}

/** Comma list as the row keeps it: trimmed, without empty and repeated names. */
export function namesOf(text: string): string[] {
  const names = text.split(",").map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ""))];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function nameText(text: string): string {
  const name = text.trim();
  if (name === "") throw refuseField("name", "channel_name_key_missing");
  if (charactersIn(name) > MAX_CHANNEL_NAME || CONTROL.test(name)) {
    throw refuseField("name", "name_invalid", { max: MAX_CHANNEL_NAME });
  }
  return name;
}

export function modelsText(text: string): string {
  const models = namesOf(text);
  for (const model of models) {
    if (charactersIn(model) > MAX_MODEL_NAME || CONTROL.test(model)) {
      throw refuseField("models", "channel_model_long", { model });
    }
  }
  if (models.length > MAX_MODELS) throw refuseField("models", "channel_models_many", { max: MAX_MODELS });
  if (models.length === 0) throw refuseField("models", "channel_models_missing");
  return models.join(",");
}

export function groupsText(text: string): string {
  const groups = namesOf(text);
  if (groups.length > MAX_GROUPS || groups.some((group) => group.length > 64 || CONTROL.test(group))) {
    throw refuseField("group", "channel_groups_invalid", { max: MAX_GROUPS });
  }
  return groups.length === 0 ? "default" : groups.join(",");
}

/** Keeps the person's own text: only whether it can be used is decided here. */
export function modelMappingText(text: string): string {
  const mapping = text.trim();
  const followed = followMapping(mapping);
  if (followed === "json") throw refuseField("model_mapping", "channel_mapping_json");
  if (followed === "cycle") throw refuseField("model_mapping", "channel_mapping_cycle");
  return mapping;
}

function isStatus(value: unknown, least: number): boolean {
  const status = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof status === "number" && Number.isInteger(status) && status >= least && status <= 599;
}

function statusMappingText(text: string): string {
  const mapping = text.trim();
  if (mapping === "") return "";
  const entries = Object.entries(parseObject(mapping) ?? { broken: 0 });
  const isSound = entries.every(([from, to]) => isStatus(from, 100) && isStatus(to, 200));
  if (!isSound || mapping.length > MAX_STATUS_MAPPING_CHARACTERS) {
    throw refuseField("status_code_mapping", "channel_status_mapping_invalid");
  }
  return mapping;
}

/** An address or a CIDR range, written in full. */
function isNetwork(entry: unknown): boolean {
  if (typeof entry !== "string") return false;
  const [address = ""] = entry.split("/");
  const isFull = ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address);
  return isFull && (address === entry || ipaddr.isValidCIDR(entry));
}

/** Whether the server's engine takes the pattern: it knows less than the browser's, and never runs away. */
function compiles(pattern: string): boolean {
  try {
    RE2JS.compile(pattern);
    return true;
  } catch {
    return false;
  }
}

function objectIn(field: "param_override" | "header_override" | "setting" | "settings", text: string) {
  const value = parseObject(text);
  if (!value) throw refuseField(field, "channel_json_object", { field });
  return value;
}

const HTTP_PROTOCOLS: readonly unknown[] = [undefined, null, "", "auto", "http1"];
const MOST_SHARDS = 8;

/** Which of the family's fields on how an upstream is connected is not what they allow; what they ask for is HTTP/1.1 here. */
function wrongTransport({
  http_protocol: protocol,
  http2_connection_shards: shards,
}: Record<string, unknown>) {
  if (!HTTP_PROTOCOLS.includes(protocol)) return "http_protocol";
  const isCount = Number.isInteger(shards) && Number(shards) >= 1 && Number(shards) <= MOST_SHARDS;
  return shards === undefined || shards === null || isCount ? undefined : "http2_connection_shards";
}

/** Keeps the person's own text: only whether it is a set of rules is decided here. */
function requestRulesText(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  const { rules, problem } = readRequestRules(objectIn("param_override", trimmed));
  if (problem) throw refuseField("param_override", problem.code, problem.params);
  const wrong = rules.operations.findIndex(({ mode, from }) => mode === "regex_replace" && !compiles(from));
  if (wrong !== -1)
    throw refuseField("param_override", "rule_pattern_unsafe", {
      place: `operations[${wrong}]`,
      pattern: rules.operations[wrong]?.from.slice(0, 64) ?? "",
    });
  return trimmed;
}

function headerRulesText(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  const { rules, problem } = readHeaderRules(objectIn("header_override", trimmed));
  if (problem) throw refuseField("header_override", problem.code, problem.params);
  const wrong = rules.patterns.find((pattern) => !compiles(pattern));
  if (wrong !== undefined)
    throw refuseField("header_override", "rule_pattern_unsafe", {
      place: "header_override",
      pattern: wrong.slice(0, 64),
    });
  return trimmed;
}

/** Switches of either settings text. */
const SWITCHES = [
  ...CHANNEL_GATES,
  "pass_through_body_enabled",
  "system_prompt_override",
  "upstream_model_update_check_enabled",
  "upstream_model_update_auto_sync_enabled",
] as const;

function settingText(field: "setting" | "settings", text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  const value = objectIn(field, trimmed);
  const { proxy, responses, allow_networks: networks, system_prompt: prompt } = value;
  if (proxy !== undefined && proxy !== "") {
    const isAddress = typeof proxy === "string" && URL.canParse(proxy);
    if (!isAddress || !/^(https?|socks5h?):\/\//.test(proxy))
      throw refuseField(field, "channel_proxy_invalid");
  }
  const isNamed = responses !== undefined && responses !== null;
  if (isNamed && !RESPONSES_SETTINGS.some((known) => known === responses))
    throw refuseField(field, "channel_responses_invalid", { allowed: RESPONSES_SETTINGS.join(", ") });
  if (networks !== undefined && networks !== null) {
    const list: unknown[] = Array.isArray(networks) ? networks : [networks];
    const wrong = Array.isArray(networks) ? list.find((entry) => !isNetwork(entry)) : networks;
    if (wrong !== undefined)
      throw refuseField(field, "channel_networks_invalid", { entry: JSON.stringify(wrong).slice(0, 64) });
  }
  const unclear = SWITCHES.find((name) => !["boolean", "undefined"].includes(typeof value[name]));
  if (unclear !== undefined) throw refuseField(field, "rule_field_invalid", { place: field, field: unclear });
  if (prompt !== undefined && prompt !== null && typeof prompt !== "string")
    throw refuseField(field, "rule_field_invalid", { place: field, field: "system_prompt" });
  const transport = wrongTransport(value);
  if (transport) throw refuseField(field, "rule_field_invalid", { place: field, field: transport });
  return trimmed;
}

function baseUrlText(type: number, text: string): string {
  const url = channelAddress(type, text);
  if (url !== "" && (!URL.canParse(url) || !/^https?:\/\//i.test(url) || CONTROL.test(url))) {
    throw refuseField("base_url", "option_not_url");
  }
  return url;
}

export function tagText(text: string): string | null {
  const tag = text.trim();
  if (CONTROL.test(tag)) throw refuseField("tag", "name_invalid", { max: MAX_TAG });
  return tag === "" ? null : tag;
}

function checkType(type: number): void {
  const form = providerForm(type);
  if (!form) throw refuseField("type", "provider_unknown", { type });
  const code = ({ retired: "provider_retired", later: "provider_unserved", active: "", legacy: "" } as const)[
    form.status
  ];
  if (code !== "") throw refuseField("type", code, { name: form.label.zh });
}

/** The type's own rules for `other`, by the type and text that the row will have. */
function otherText(type: number, text: string): string {
  const other = text.trim();
  if (type === VERTEX) {
    if (other === "") throw refuseField("other", "channel_region_missing");
    const regions = parseObject(other);
    if (regions && typeof regions["default"] !== "string") {
      throw refuseField("other", "channel_region_default_missing");
    }
  }
  if (other !== "") return other;
  return providerForm(type)?.fields?.find((field) => field.name === "other")?.defaultValue ?? "";
}

function compactKey(key: unknown): string {
  return typeof key === "string" ? key.trim() : JSON.stringify(key);
}

/**
 * The keys of a text: one per line; where a key may itself have lines (service account JSON) the whole text, or each element of
 * a JSON array.
 */
export function keysOf(type: number, text: string): string[] {
  const isPerLine = splitsKeysByLine(type);
  const keys = isPerLine ? text.split("\n").map((line) => line.trim()) : accountsOf(text.trim());
  return [...new Set(keys.filter((key) => key !== ""))];
}

function accountsOf(text: string): string[] {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    return [text.replace(/\s*\n\s*/g, "")];
  }
  if (Array.isArray(list)) return list.map(compactKey);
  return [isRecord(list) ? JSON.stringify(list) : text.replace(/\s*\n\s*/g, "")];
}

export type ChannelChanges = Partial<Omit<ChannelRow, "id" | "usedQuota" | "goneKeysQuota" | "createdTime">>;

/** Columns for the fields that are given. `before` is the row that is changed; undefined for a new one. */
export function channelChanges(input: ChannelInput, before: ChannelRow | undefined): ChannelChanges {
  const changes: ChannelChanges = {};
  const set = <K extends keyof ChannelChanges, T>(
    column: K,
    value: Given<T>,
    read: (value: T) => ChannelChanges[K],
  ): void => {
    if (value !== undefined && value !== null) changes[column] = read(value);
  };
  const same = <T>(value: T): T => value;
  const trimmed = (value: string): string => value.trim();

  const type = input.type ?? before?.type ?? 1;
  if (type !== before?.type) {
    checkType(type);
    changes.type = type;
  }
  set("name", input.name, nameText);
  set("openaiOrganization", input.openai_organization, trimmed);
  set("testModel", input.test_model, trimmed);
  set("baseUrl", input.base_url, (text: string) => baseUrlText(type, text));
  set("models", input.models, modelsText);
  set("group", input.group, groupsText);
  set("modelMapping", input.model_mapping, modelMappingText);
  set("statusCodeMapping", input.status_code_mapping, statusMappingText);
  set("paramOverride", input.param_override, requestRulesText);
  set("headerOverride", input.header_override, headerRulesText);
  set("setting", input.setting, (text: string) => settingText("setting", text));
  set("settings", input.settings, (text: string) => settingText("settings", text));
  set("priority", input.priority, same<number>);
  set("weight", input.weight, same<number>);
  set("autoBan", input.auto_ban, same<number>);
  set("tag", input.tag, tagText);
  set("maxInputTokens", input.max_input_tokens, same<number>);
  set("multiKeyMode", input.multi_key_mode, keyModeOf);
  set("maxConcurrency", input.max_concurrency, same<number>);
  set("rpmLimit", input.rpm_limit, same<number>);
  set("tpmLimit", input.tpm_limit, same<number>);
  // Zero is how older clients say that they do not speak of the status.
  if (input.status) changes.status = input.status;
  // Only what is written is judged: a row of another gateway must still be disabled or renamed.
  if (!before || "type" in changes || (input.other !== undefined && input.other !== null)) {
    changes.other = otherText(type, input.other ?? before?.other ?? "");
  }
  return changes;
}

/** What no channel is without: the older console sends whole rows and has nothing in what it does not know. */
const NEVER_EMPTY = ["type", "name", "models", "group", "other"] as const;

/**
 * A change as its sender means it: empty texts and 0 of NEVER_EMPTY count as not given. A blank (" ") is a text: for `other` it
 * means the type's own default, for names and models it is refused.
 */
export function givenForUpdate(input: ChannelInput): ChannelInput {
  const given = { ...input };
  for (const field of NEVER_EMPTY) if (given[field] === "" || given[field] === 0) delete given[field];
  return given;
}

/** What a new channel cannot do without, in the order in which the console asks for it. */
export function checkNewChannel(input: ChannelInput): void {
  if ((input.name ?? "").trim() === "" || (input.key ?? "").trim() === "") {
    throw refuse("channel_name_key_missing");
  }
  if (namesOf(input.models ?? "").length === 0) throw refuseField("models", "channel_models_missing");
}
