// What the channel editor holds, made from a row and back into the body of a call.
// Refuses to send what was not changed, and to lose settings that it has no field for.
import { channelAddress } from "../../../src/shared/channel-address.ts";
import type { ChannelGate } from "../../../src/shared/channel-gates.ts";
import type { KeyMode } from "../../../src/shared/enums.ts";
import { jsonObject } from "../../../src/shared/json-object.ts";
import { rebasedJson, rebasedNames } from "../../lib/rebase.ts";
import { namesOf } from "./row.ts";
import type { ChannelRow } from "../../lib/wire.ts";

export interface ChannelValues extends Record<string, unknown> {
  type: number;
  name: string;
  key: string;
  /** Several keys make one channel whose keys take turns, in place of one channel each. New channels only. */
  keysTogether: boolean;
  /** Which key a call gets, where there are several. */
  keyMode: KeyMode;
  /** Over all keys; 0 or empty: none. */
  maxConcurrency: number | undefined;
  rpmLimit: number | undefined;
  tpmLimit: number | undefined;
  baseUrl: string;
  organization: string;
  other: string;
  models: string;
  groups: string;
  priority: number | undefined;
  weight: number | undefined;
  tag: string;
  /** Tokens; 0 or empty: prompts of any length. */
  maxInputTokens: number | undefined;
  autoBan: boolean;
  testModel: string;
  modelMapping: string;
  statusCodeMapping: string;
  paramOverride: string;
  headerOverride: string;
  passThrough: boolean;
  systemPrompt: string;
  systemPromptFirst: boolean;
  allowInferenceGeo: boolean;
  allowSpeed: boolean;
  allowSafetyIdentifier: boolean;
  allowIncludeObfuscation: boolean;
  disableStore: boolean;
  claudeBetaQuery: boolean;
  sessionHint: boolean;
  sendTraceparent: boolean;
  /** Gates that this editor does not know, as a JSON object. */
  otherGates: string;
  forceFormat: boolean;
  thinkingToContent: boolean;
  /** What the upstream has for Responses clients; "" finds it out. */
  responses: "" | "native" | "convert";
  proxy: string;
  /** One address or range a line. */
  allowNetworks: string;
  allowServiceTier: boolean;
  /** Settings without a field of their own, as a JSON object; or a text that is none, as it was stored. */
  otherSettings: string;
}

export const NEW_CHANNEL: ChannelValues = {
  type: 1,
  name: "",
  key: "",
  keysTogether: false,
  keyMode: "polling",
  maxConcurrency: undefined,
  rpmLimit: undefined,
  tpmLimit: undefined,
  baseUrl: "",
  organization: "",
  other: "",
  models: "",
  groups: "default",
  priority: 0,
  weight: 0,
  tag: "",
  maxInputTokens: undefined,
  autoBan: true,
  testModel: "",
  modelMapping: "",
  statusCodeMapping: "",
  paramOverride: "",
  headerOverride: "",
  passThrough: false,
  systemPrompt: "",
  systemPromptFirst: false,
  allowInferenceGeo: false,
  allowSpeed: false,
  allowSafetyIdentifier: false,
  allowIncludeObfuscation: false,
  disableStore: false,
  claudeBetaQuery: false,
  sessionHint: false,
  sendTraceparent: false,
  otherGates: "",
  forceFormat: false,
  thinkingToContent: false,
  responses: "",
  proxy: "",
  allowNetworks: "",
  allowServiceTier: false,
  otherSettings: "",
};

/** Folded behind "Rewrite": what is set there is counted. */
export const REWRITE_FIELDS = [
  "modelMapping",
  "paramOverride",
  "headerOverride",
  "passThrough",
  "systemPrompt",
  "systemPromptFirst",
  "allowInferenceGeo",
  "allowSpeed",
  "allowSafetyIdentifier",
  "allowIncludeObfuscation",
  "disableStore",
  "claudeBetaQuery",
  "sessionHint",
  "sendTraceparent",
  "statusCodeMapping",
  "forceFormat",
  "thinkingToContent",
  "responses",
  "proxy",
  "allowNetworks",
  "allowServiceTier",
  "otherSettings",
] as const;

function pretty(value: Record<string, unknown>): string {
  return Object.keys(value).length === 0 ? "" : JSON.stringify(value, null, 2);
}

type SettingValues = Pick<
  ChannelValues,
  | "passThrough"
  | "systemPrompt"
  | "systemPromptFirst"
  | "forceFormat"
  | "thinkingToContent"
  | "responses"
  | "proxy"
  | "allowNetworks"
  | "allowServiceTier"
  | "otherSettings"
>;

function settingValues(text: string): SettingValues {
  const setting = jsonObject(text);
  if (!setting)
    return {
      passThrough: false,
      systemPrompt: "",
      systemPromptFirst: false,
      forceFormat: false,
      thinkingToContent: false,
      responses: "",
      proxy: "",
      allowNetworks: "",
      allowServiceTier: false,
      otherSettings: text,
    };
  const {
    force_format: force,
    thinking_to_content: thinking,
    responses,
    proxy,
    allow_networks: networks,
    allow_service_tier: tiers,
    pass_through_body_enabled: raw,
    system_prompt: prompt,
    system_prompt_override: first,
    ...rest
  } = setting;
  return {
    passThrough: raw === true,
    systemPrompt: typeof prompt === "string" ? prompt : "",
    systemPromptFirst: first === true,
    forceFormat: force === true,
    thinkingToContent: thinking === true,
    responses: responses === "native" || responses === "convert" ? responses : "",
    proxy: typeof proxy === "string" ? proxy : "",
    allowNetworks: Array.isArray(networks) ? networks.map(String).join("\n") : "",
    allowServiceTier: tiers === true,
    otherSettings: pretty(rest),
  };
}

function settingText(values: SettingValues): string {
  const networks = namesOf(values.allowNetworks);
  const setting: Record<string, unknown> = {
    ...jsonObject(values.otherSettings),
    ...(values.forceFormat ? { force_format: true } : {}),
    ...(values.thinkingToContent ? { thinking_to_content: true } : {}),
    ...(values.responses === "" ? {} : { responses: values.responses }),
    ...(values.proxy.trim() === "" ? {} : { proxy: values.proxy.trim() }),
    ...(networks.length === 0 ? {} : { allow_networks: networks }),
    ...(values.allowServiceTier ? { allow_service_tier: true } : {}),
    ...(values.passThrough ? { pass_through_body_enabled: true } : {}),
    ...(values.systemPrompt.trim() === "" ? {} : { system_prompt: values.systemPrompt.trim() }),
    ...(values.systemPromptFirst ? { system_prompt_override: true } : {}),
  };
  return Object.keys(setting).length === 0 ? "" : JSON.stringify(setting);
}

/** The editor's names of the gates of `settings`. */
const GATES = {
  allow_inference_geo: "allowInferenceGeo",
  allow_speed: "allowSpeed",
  allow_safety_identifier: "allowSafetyIdentifier",
  allow_include_obfuscation: "allowIncludeObfuscation",
  disable_store: "disableStore",
  claude_beta_query: "claudeBetaQuery",
  session_hint: "sessionHint",
  send_traceparent: "sendTraceparent",
} as const satisfies Partial<Record<ChannelGate, keyof ChannelValues>>;
type GateName = keyof typeof GATES;
type GateValues = Record<(typeof GATES)[GateName], boolean> & Pick<ChannelValues, "otherGates">;

const GATE_NAMES = Object.keys(GATES) as GateName[];

/** Gates may also stand in `setting`, as imports of older databases have them. */
function gateValues(row: Pick<ChannelRow, "setting" | "settings">): GateValues {
  const gates = jsonObject(row.settings) ?? {};
  const setting = jsonObject(row.setting) ?? {};
  const known = GATE_NAMES.map((name) => [GATES[name], (gates[name] ?? setting[name]) === true]);
  const rest = Object.entries(gates).filter(([name]) => !Object.hasOwn(GATES, name));
  return { ...Object.fromEntries(known), otherGates: pretty(Object.fromEntries(rest)) } as GateValues;
}

function gatesText(values: GateValues): string {
  const open = GATE_NAMES.filter((name) => values[GATES[name]]).map((name) => [name, true]);
  const gates = { ...jsonObject(values.otherGates), ...Object.fromEntries(open) };
  return Object.keys(gates).length === 0 ? "" : JSON.stringify(gates);
}

/** Statuses may be stored as numbers; the editor's cells are texts, and the server takes both. */
function statusText(text: string): string {
  const mapping = jsonObject(text);
  if (!mapping) return text;
  return pretty(Object.fromEntries(Object.entries(mapping).map(([from, to]) => [from, String(to)])));
}

export function valuesOf(row: ChannelRow): ChannelValues {
  return {
    type: row.type,
    name: row.name,
    key: "",
    keysTogether: false,
    keyMode: row.multi_key_mode,
    maxConcurrency: row.max_concurrency || undefined,
    rpmLimit: row.rpm_limit || undefined,
    tpmLimit: row.tpm_limit || undefined,
    baseUrl: row.base_url,
    organization: row.openai_organization ?? "",
    other: row.other,
    models: namesOf(row.models).join(","),
    groups: namesOf(row.group).join(","),
    priority: row.priority,
    weight: row.weight,
    tag: row.tag ?? "",
    maxInputTokens: row.max_input_tokens || undefined,
    autoBan: row.auto_ban === 1,
    testModel: row.test_model ?? "",
    modelMapping: row.model_mapping,
    statusCodeMapping: statusText(row.status_code_mapping),
    paramOverride: row.param_override,
    headerOverride: row.header_override,
    ...gateValues(row),
    ...settingValues(row.setting),
  };
}

export function bodyOf(values: ChannelValues) {
  return {
    type: values.type,
    name: values.name.trim(),
    ...(values.key.trim() === "" ? {} : { key: values.key.trim() }),
    base_url: channelAddress(values.type, values.baseUrl),
    openai_organization: values.organization.trim(),
    other: values.other.trim(),
    models: namesOf(values.models).join(","),
    group: namesOf(values.groups).join(","),
    priority: values.priority ?? 0,
    weight: values.weight ?? 0,
    tag: values.tag.trim(),
    max_input_tokens: values.maxInputTokens ?? 0,
    multi_key_mode: values.keyMode,
    max_concurrency: values.maxConcurrency ?? 0,
    rpm_limit: values.rpmLimit ?? 0,
    tpm_limit: values.tpmLimit ?? 0,
    auto_ban: values.autoBan ? 1 : 0,
    test_model: values.testModel.trim(),
    model_mapping: values.modelMapping.trim(),
    status_code_mapping: values.statusCodeMapping.trim(),
    param_override: values.paramOverride.trim(),
    header_override: values.headerOverride.trim(),
    setting: settingText(values),
    settings: gatesText(values),
  };
}

export type ChannelBody = ReturnType<typeof bodyOf>;

/** A text that was emptied on purpose: an empty one would mean "not given", as older consoles send it. */
const EMPTIED = " ";

/** Only what differs from the loaded values: two administrators do not undo each other's changes. */
export function changedBody(before: ChannelValues, values: ChannelValues): Partial<ChannelBody> {
  const old = bodyOf(before) as Record<string, unknown>;
  const changed = Object.fromEntries(
    Object.entries(bodyOf(values)).filter(([name, value]) => value !== old[name]),
  ) as Partial<ChannelBody>;
  return changed.other === "" ? { ...changed, other: EMPTIED } : changed;
}

/** Fields that hold many things, by what parts them. */
const MANY = {
  setting: "json",
  settings: "json",
  model_mapping: "json",
  status_code_mapping: "json",
  param_override: "json",
  header_override: "json",
  models: ",",
  group: ",",
} as const satisfies Partial<Record<keyof ChannelBody, "json" | ",">>;
type ManyName = keyof typeof MANY;

const isMany = (name: string): name is ManyName => Object.hasOwn(MANY, name);

/** Something of it may have been changed by somebody else while the editor was open. */
export const holdsMany = (body: Partial<ChannelBody>): boolean => Object.keys(body).some(isMany);

/** The changes over what the channel says now: others' entries in the same text stay. */
export function overNewer(
  body: Partial<ChannelBody>,
  before: ChannelValues,
  now: ChannelRow,
): Partial<ChannelBody> {
  const [old, newer] = [bodyOf(before), bodyOf(valuesOf(now))];
  return Object.fromEntries(
    Object.entries(body).map(([name, typed]) => {
      if (!isMany(name)) return [name, typed];
      const texts = [old[name], String(typed), newer[name]] as const;
      return [name, MANY[name] === "json" ? rebasedJson(...texts) : rebasedNames(MANY[name], ...texts)];
    }),
  );
}

/** A JSON object, or nothing. */
export function isJsonObject(text: string): boolean {
  return jsonObject(text) !== undefined;
}

/** Where the proxy may stand, as the server has it. */
export function isProxy(text: string): boolean {
  return text.trim() === "" || (/^(https?|socks5h?):\/\//.test(text.trim()) && URL.canParse(text.trim()));
}

/** Lines that are neither an address nor a range. */
export function wrongNetworks(text: string): string[] {
  return namesOf(text).filter(
    (line) => !/^(\d{1,3}(\.\d{1,3}){3}|[0-9a-f:.]*:[0-9a-f:.]*)(\/\d{1,3})?$/i.test(line),
  );
}
