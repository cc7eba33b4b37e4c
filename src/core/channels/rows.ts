// A channel row as the hot path reads it: every text column parsed once, when the row changes.
// A column that cannot be read is remembered as broken and fails the call that needs it.
import { channelAddress } from "../../shared/channel-address.ts";
import { CHANNEL_GATES } from "../../shared/channel-gates.ts";
import type { ChannelGate } from "../../shared/channel-gates.ts";
import { readHeaderRules } from "../../shared/header-rules.ts";
import type { HeaderRules } from "../../shared/header-rules.ts";
import { jsonObject } from "../../shared/json-object.ts";
import { readRequestRules } from "../../shared/request-rules.ts";
import type { RuleOperation } from "../../shared/request-rules.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import { KEY_MODES, KeyStatus } from "../../shared/enums.ts";
import type { KeyMode } from "../../shared/enums.ts";
import type { Sealer } from "../kit/seal.ts";
import { driftState } from "./drift.ts";
import { originOf } from "./origin.ts";

export type ChannelRow = Schema["channels"]["$inferSelect"];
export type ChannelKeyRow = Schema["channelKeys"]["$inferSelect"];

/** Upper bounds; 0 = none. */
export interface Caps {
  /** Calls at once. */
  readonly maxConcurrency: number;
  /** Requests, and tokens, a minute. */
  readonly rpmLimit: number;
  readonly tpmLimit: number;
}

/** A key of a channel but its text; its place in `keyRows` is its `pos`. */
interface ChannelKey extends Caps {
  /** 0: the channel has no key, and is asked without one. */
  readonly id: number;
  /** SHA-256 (hex). */
  readonly hash: string;
  /** The account behind it: equal keys for one origin are one, whichever channel has them. */
  readonly account: string;
  readonly label: string;
  readonly status: number;
  readonly reason: string;
  /** Unix seconds of the last change of status; 0 = never. */
  readonly statusTime: number;
}

/**
 * For Responses clients: find out whether the upstream has that API, take it to have it, or write their calls as chat
 * completions.
 */
export const RESPONSES_SETTINGS = ["auto", "native", "convert"] as const;

/** Per-channel switches, from the JSON of `channels.setting`; unknown keys stay readable by their owner. */
interface ChannelSetting extends Partial<Record<ChannelGate, unknown>> {
  force_format?: boolean;
  thinking_to_content?: boolean;
  /** What the upstream has for Responses clients; "auto" when absent. */
  responses?: (typeof RESPONSES_SETTINGS)[number];
  /** http, https, socks5 or socks5h address. */
  proxy?: string;
  /** Private networks (CIDR or addresses) that requests through this channel may name media addresses in. */
  allow_networks?: string[];
  /** Conversations go as their clients wrote them, or not at all. */
  pass_through_body_enabled?: boolean;
  /** Where a client has no system prompt of its own; with the second one also before a client's. */
  system_prompt?: string;
  system_prompt_override?: boolean;
  [key: string]: unknown;
}

export interface Channel {
  readonly id: number;
  readonly type: number;
  readonly name: string;
  readonly status: number;
  /** By `pos`; never empty (a keyless provider has one empty key). */
  readonly keys: readonly string[];
  /** What is known of each of `keys`, in the same order. */
  readonly keyRows: readonly ChannelKey[];
  /** None of the keys is off. */
  readonly areAllOn: boolean;
  readonly keyMode: KeyMode;
  /** Over all keys. */
  readonly caps: Caps;
  /** It or one of its keys has a cap. */
  readonly isCapped: boolean;
  readonly organization: string;
  readonly baseUrl: string;
  readonly other: string;
  readonly testModel: string;
  readonly models: readonly string[];
  readonly groups: readonly string[];
  readonly priority: number;
  readonly weight: number;
  readonly autoBan: boolean;
  readonly tag: string;
  /** Unix seconds. */
  readonly createdTime: number;
  /** Longest prompt that it is given; 0 = any. */
  readonly maxInputTokens: number;
  /** Requested name -> final upstream name, chains followed; "cycle" or "json" when the column is unusable. */
  readonly modelMapping: ReadonlyMap<string, string> | "cycle" | "json";
  /** Upstream status -> status for the client. */
  readonly statusCodeMapping: ReadonlyMap<number, number>;
  /** Top-level keys that replace those of the upstream body; null when its rules cannot be read. */
  readonly paramOverride: Readonly<Record<string, unknown>> | null;
  /** What is done to a request after that, in order. */
  readonly operations: readonly RuleOperation[];
  /** undefined: headers leave as they are. */
  readonly headerRules: HeaderRules | undefined;
  /** It changes requests by rules or a prompt of its own; most channels do not, and pay nothing for those that do. */
  readonly hasRules: boolean;
  /** Its upstream's list of models is looked at from time to time (drift.ts). */
  readonly watchesModels: boolean;
  /** `setting`, with the gates of `settings` above its own. */
  readonly setting: ChannelSetting;
}

function settingOf(row: Pick<ChannelRow, "setting" | "settings">): ChannelSetting {
  const setting: ChannelSetting = { ...jsonObject(row.setting) };
  const gates = jsonObject(row.settings) ?? {};
  for (const gate of CHANNEL_GATES) if (gates[gate] !== undefined) setting[gate] = gates[gate];
  return setting;
}

const NO_OPERATIONS: readonly RuleOperation[] = [];
const BROKEN = { paramOverride: null, operations: NO_OPERATIONS, headerRules: undefined };

function rulesOf(
  row: Pick<ChannelRow, "paramOverride" | "headerOverride">,
): Pick<Channel, "paramOverride" | "operations" | "headerRules"> {
  const stored = jsonObject(row.paramOverride);
  const ofHeaders = jsonObject(row.headerOverride);
  if (!stored || !ofHeaders) return BROKEN;
  const { rules } = readRequestRules(stored);
  const headers = readHeaderRules(ofHeaders);
  if (!rules || !headers.rules) return BROKEN;
  return {
    paramOverride: rules.fields,
    operations: rules.operations.length === 0 ? NO_OPERATIONS : rules.operations,
    headerRules: Object.keys(ofHeaders).length === 0 ? undefined : headers.rules,
  };
}

function names(text: string): string[] {
  return [
    ...new Set(
      text
        .split(",")
        .map((name) => name.trim())
        .filter((name) => name !== ""),
    ),
  ];
}

/** Follows each name to its end; a name that maps to itself ends its chain, any other return is a cycle. */
export function followMapping(text: string): Channel["modelMapping"] {
  const raw = jsonObject(text);
  if (!raw || !Object.values(raw).every((value) => typeof value === "string")) return "json";
  const links = raw as Record<string, string>;
  const ends = new Map<string, string>();
  for (const from of Object.keys(links)) {
    const seen = new Set([from]);
    let at = from;
    for (;;) {
      const next = Object.hasOwn(links, at) ? links[at] : undefined;
      if (next === undefined || next === "" || next === at) break;
      if (seen.has(next)) return "cycle";
      seen.add(next);
      at = next;
    }
    if (at !== from) ends.set(from, at);
  }
  return ends;
}

/**
 * The requested model's name at the channel's upstream, chains followed; a mapping that cannot be read changes none. What is
 * known of a model is kept by this name; a call whose mapping cannot be read fails (relay/call/plan.ts).
 */
export function upstreamModel({ modelMapping }: Pick<Channel, "modelMapping">, model: string): string {
  return typeof modelMapping === "string" ? model : (modelMapping.get(model) ?? model);
}

/** Invalid JSON and values that are no HTTP status are ignored, as clients of this column expect. */
function statusMapping(text: string): ReadonlyMap<number, number> {
  const mapping = new Map<number, number>();
  for (const [from, to] of Object.entries(jsonObject(text) ?? {})) {
    const source = Number(from);
    const target = Number(to);
    if (Number.isInteger(source) && Number.isInteger(target) && target >= 200 && target <= 599) {
      mapping.set(source, target);
    }
  }
  return mapping;
}

/** A key that was sealed under another encryption key is an empty one: calls fail, the start does not. */
function openKey(row: ChannelKeyRow, seal: Sealer): string {
  try {
    return seal.open("channel", row.keySealed);
  } catch {
    return "";
  }
}

const NO_CAPS: Caps = { maxConcurrency: 0, rpmLimit: 0, tpmLimit: 0 };
const KEYLESS: ChannelKey = {
  ...NO_CAPS,
  id: 0,
  hash: "",
  account: "",
  label: "",
  status: KeyStatus.on,
  reason: "",
  statusTime: 0,
};

function hasCap({ maxConcurrency, rpmLimit, tpmLimit }: Caps): boolean {
  return maxConcurrency > 0 || rpmLimit > 0 || tpmLimit > 0;
}

function capsOf({ maxConcurrency, rpmLimit, tpmLimit }: Caps): Caps {
  return { maxConcurrency, rpmLimit, tpmLimit };
}

function keyOf(row: ChannelKeyRow, origin: string): ChannelKey {
  return {
    ...capsOf(row),
    id: row.id,
    hash: row.keyHash,
    account: `${row.keyHash} ${origin}`,
    label: row.label,
    status: row.status,
    reason: row.reason,
    statusTime: row.statusTime,
  };
}

export function keyModeOf(text: string): KeyMode {
  return KEY_MODES.find((mode) => mode === text) ?? "polling";
}

/** `keyRows`: the channel's, in any order. */
export function parseChannel(row: ChannelRow, keyRows: readonly ChannelKeyRow[], seal: Sealer): Channel {
  const sorted = keyRows.toSorted((a, b) => a.pos - b.pos);
  const origin = originOf(row);
  const keys = sorted.length === 0 ? [KEYLESS] : sorted.map((key) => keyOf(key, origin));
  const setting = settingOf(row);
  const { paramOverride, operations, headerRules } = rulesOf(row);
  const hasPrompt = typeof setting.system_prompt === "string" && setting.system_prompt.trim() !== "";
  return {
    id: row.id,
    type: row.type,
    name: row.name,
    status: row.status,
    keys: sorted.length === 0 ? [""] : sorted.map((key) => openKey(key, seal)),
    keyRows: keys,
    areAllOn: keys.every(({ status }) => status === KeyStatus.on),
    keyMode: keyModeOf(row.multiKeyMode),
    caps: capsOf(row),
    isCapped: hasCap(row) || keys.some(hasCap),
    organization: row.openaiOrganization ?? "",
    baseUrl: channelAddress(row.type, row.baseUrl),
    other: row.other,
    testModel: row.testModel ?? "",
    models: names(row.models),
    groups: names(row.group),
    priority: row.priority,
    weight: row.weight,
    autoBan: row.autoBan === 1,
    tag: row.tag ?? "",
    createdTime: row.createdTime,
    maxInputTokens: row.maxInputTokens,
    modelMapping: followMapping(row.modelMapping),
    statusCodeMapping: statusMapping(row.statusCodeMapping),
    paramOverride,
    operations,
    headerRules,
    watchesModels: driftState(row).isChecked,
    hasRules:
      paramOverride === null || Object.keys(paramOverride).length > 0 || operations.length > 0 || hasPrompt,
    setting,
  };
}

/** Whether requests through the channel may name a service tier. */
export function allowsTiers({ setting }: Pick<Channel, "setting">): boolean {
  return setting.allow_service_tier === true;
}

/** What a log row's admin_info says of the key that served it. */
export function keyFields({ keyRows }: Pick<Channel, "keyRows">, index: number): Record<string, unknown> {
  const id = keyRows[index]?.id ?? 0;
  if (id === 0) return {};
  return keyRows.length > 1 ? { is_multi_key: true, multi_key_index: index, key_id: id } : { key_id: id };
}
