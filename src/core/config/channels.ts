// The section `channels` of a settings file: a channel is its name, and the file says all of it but its key.
// Refuses keys in plain text, new channels without one, and names that several channels have.
import { jsonObject } from "../../shared/json-object.ts";
import { charactersIn, MAX_CHANNEL_NAME } from "../../shared/name-limits.ts";
import { providerForm } from "../../shared/provider-forms.ts";
import { ChannelStatus, KEY_MODES } from "../../shared/enums.ts";
import { sha256Hex } from "../kit/seal.ts";
import { channelChanges, keysOf, MAX_KEYS_OF_CHANNEL, namesOf } from "../channels/input.ts";
import type { ChannelChanges, ChannelInput } from "../channels/input.ts";
import type { ChannelRow } from "../channels/rows.ts";
import type { ConfigChannel } from "./state.ts";
import { checked, entriesOf, isRecord, noteFields, onlyFields, wrong } from "./judge.ts";
import type { Judge, Path } from "./judge.ts";
import { maskedDeep, meantDeep } from "./masked.ts";
import { addressOf, maskedAddress, secretOf } from "./variables.ts";

/** What becomes of one channel. */
export interface ChannelPlan {
  name: string;
  before: ConfigChannel | undefined;
  /** Undefined: it goes. */
  changes: ChannelChanges | undefined;
  /** The keys, where they are others than before. */
  keys: readonly string[] | undefined;
}

/** How a field stands in a file: `names` is a list or a text with commas, `json` a map or its text. */
type Kind = "text" | "names" | "json" | "int" | "flag" | "status" | "mode";

interface Field {
  kind: Kind;
  column: keyof ChannelRow;
  /** Most characters of a text; least and most of a number. */
  max: number;
  min?: number;
}

/** Most of a cap that a number of the database holds. */
const MAX_CAP = 2_000_000_000;

/** In the order in which files show them. `key` stands beside them. */
const FIELDS = {
  type: { kind: "int", column: "type", min: 1, max: 10_000 },
  status: { kind: "status", column: "status", max: 0 },
  base_url: { kind: "text", column: "baseUrl", max: 2048 },
  models: { kind: "names", column: "models", max: 200_000 },
  group: { kind: "names", column: "group", max: 8192 },
  priority: { kind: "int", column: "priority", min: -999, max: 2_000_000_000 },
  weight: { kind: "int", column: "weight", min: 0, max: 1_000_000 },
  tag: { kind: "text", column: "tag", max: 64 },
  multi_key_mode: { kind: "mode", column: "multiKeyMode", max: 0 },
  max_concurrency: { kind: "int", column: "maxConcurrency", min: 0, max: MAX_CAP },
  rpm_limit: { kind: "int", column: "rpmLimit", min: 0, max: MAX_CAP },
  tpm_limit: { kind: "int", column: "tpmLimit", min: 0, max: MAX_CAP },
  auto_ban: { kind: "flag", column: "autoBan", max: 1 },
  test_model: { kind: "text", column: "testModel", max: 255 },
  max_input_tokens: { kind: "int", column: "maxInputTokens", min: 0, max: Number.MAX_SAFE_INTEGER },
  openai_organization: { kind: "text", column: "openaiOrganization", max: 255 },
  other: { kind: "text", column: "other", max: 65_536 },
  model_mapping: { kind: "json", column: "modelMapping", max: 65_536 },
  status_code_mapping: { kind: "json", column: "statusCodeMapping", max: 1024 },
  param_override: { kind: "json", column: "paramOverride", max: 65_536 },
  header_override: { kind: "json", column: "headerOverride", max: 65_536 },
  setting: { kind: "json", column: "setting", max: 65_536 },
  settings: { kind: "json", column: "settings", max: 65_536 },
} as const satisfies Record<string, Field>;

type FieldName = keyof typeof FIELDS;
const FIELD_ROWS = Object.entries(FIELDS) as [FieldName, Field][];
const NAMES: readonly string[] = ["key", ...FIELD_ROWS.map(([name]) => name)];

/** The value of a field that a file does not name. */
function shippedValue(name: FieldName, type: number): unknown {
  if (name === "group") return ["default"];
  if (name === "auto_ban") return true;
  if (name === "status") return "enabled";
  if (name === "multi_key_mode") return KEY_MODES[0];
  if (name === "other") return defaultOther(type);
  const { kind }: Field = FIELDS[name];
  return kind === "int" ? 0 : kind === "json" ? {} : kind === "names" ? [] : "";
}

const defaultOther = (type: number): string =>
  providerForm(type)?.fields?.find((field) => field.name === "other")?.defaultValue ?? "";

function shownField({ kind, column }: Field, row: ConfigChannel): unknown {
  const stored = row[column];
  if (kind === "names") return namesOf(String(stored ?? ""));
  if (kind === "flag") return stored === 1;
  // What a failure switched off is on, as far as its operator said.
  if (kind === "status") return stored === ChannelStatus.disabled ? "disabled" : "enabled";
  if (kind === "int") return Number(stored);
  const text = String(stored ?? "");
  if (column === "baseUrl") return maskedAddress(text);
  if (kind !== "json") return text;
  const value = jsonObject(text);
  if (value && (column === "headerOverride" || column === "paramOverride")) return maskedDeep(value);
  const proxy = column === "setting" ? value?.["proxy"] : undefined;
  return typeof proxy === "string" ? { ...value, proxy: maskedAddress(proxy) } : (value ?? text);
}

function isSameValue(kind: Kind, one: unknown, other: unknown): boolean {
  if (kind === "names" && Array.isArray(one) && Array.isArray(other))
    return new Set(one).symmetricDifference(new Set(other)).size === 0;
  return Bun.deepEquals(one, other, true);
}

/** The fields that are not as they are where nobody says anything; type and models always. */
function shownChannel(row: ConfigChannel): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, field] of FIELD_ROWS) {
    const value = shownField(field, row);
    const isNeeded = name === "type" || name === "models";
    if (isNeeded || !isSameValue(field.kind, value, shippedValue(name, row.type))) shown[name] = value;
  }
  return shown;
}

function byChannelName(rows: readonly ConfigChannel[]): Map<string, ConfigChannel[]> {
  return Map.groupBy(rows, ({ name }) => name);
}

/** Whether a file can speak of the name: one channel has it, and it is one that people could give today. */
const isNameOfOne = (name: string, rows: readonly ConfigChannel[]): boolean =>
  rows.length === 1 && name !== "" && name.trim() === name && charactersIn(name) <= MAX_CHANNEL_NAME;

/** Channels by name, without keys; and the names that a file cannot speak of, most of them because several channels have them. */
export function shownChannels(rows: readonly ConfigChannel[]): {
  channels: Record<string, Record<string, unknown>>;
  unnamed: string[];
} {
  const named = [...byChannelName(rows)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const single = named.flatMap(([name, of]): [string, Record<string, unknown>][] => {
    const [row] = of;
    return row && isNameOfOne(name, of) ? [[name, shownChannel(row)]] : [];
  });
  return {
    channels: Object.fromEntries(single),
    unnamed: named.filter(([name, of]) => !isNameOfOne(name, of)).map(([name]) => name),
  };
}

function isKind({ kind, min = 0, max }: Field, value: unknown): boolean {
  if (kind === "int") return Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max;
  if (kind === "flag") return typeof value === "boolean";
  if (kind === "status") return STATES.some((each) => each === value);
  if (kind === "mode") return KEY_MODES.some((each) => each === value);
  if (kind === "text") return typeof value === "string" && value.length <= max;
  if (kind === "names")
    return (
      Array.isArray(value) &&
      value.every((each) => typeof each === "string" && !each.includes(",")) &&
      value.join().length <= max
    );
  return isRecord(value) && JSON.stringify(value).length <= max;
}

const STATES = ["enabled", "disabled"];

function refuseValue(judge: Judge, path: Path, { kind, min = 0, max }: Field, value: unknown): void {
  if (kind === "int") wrong(judge, path, "option_not_int", { min, max });
  else if (kind === "flag") wrong(judge, path, "config_not_bool");
  else if (kind === "status") wrong(judge, path, "option_not_one_of", { values: STATES.join(", ") });
  else if (kind === "mode") wrong(judge, path, "option_not_one_of", { values: KEY_MODES.join(", ") });
  else if (kind === "text" && typeof value !== "string") wrong(judge, path, "config_not_text");
  else if (kind === "names" && !Array.isArray(value)) wrong(judge, path, "config_not_list");
  else if (kind === "json" && !isRecord(value)) wrong(judge, path, "config_not_map");
  else wrong(judge, path, "config_too_long", { max });
}

/** Texts with commas, and texts of JSON, as what they mean. */
function readField(judge: Judge, path: Path, field: Field, sent: unknown): unknown {
  let value = sent;
  if (field.kind === "names" && typeof sent === "string") value = namesOf(sent);
  if (field.kind === "json" && typeof sent === "string") value = jsonObject(sent);
  if (isKind(field, value)) return value;
  refuseValue(judge, path, field, value);
  return undefined;
}

/** As the row's column keeps it. */
function wireValue(kind: Kind, value: unknown): string | number {
  if (kind === "flag") return value === true ? 1 : 0;
  if (kind === "status") return value === "disabled" ? ChannelStatus.disabled : ChannelStatus.enabled;
  if (kind === "names") return (value as string[]).join(",");
  if (kind === "json")
    return isRecord(value) && Object.keys(value).length > 0 ? JSON.stringify(value, null, 2) : "";
  return value as string | number;
}

/** Passwords within addresses, and what headers and parameters hold of secrets: known ones stay, new ones come out of the environment. */
function withPasswords(
  judge: Judge,
  path: Path,
  name: FieldName,
  value: unknown,
  before: ConfigChannel | undefined,
): unknown {
  if (name === "base_url" && typeof value === "string")
    return addressOf(judge, path, value, before?.baseUrl ?? "");
  if (name === "header_override" || name === "param_override")
    return meantDeep(judge, path, value, jsonObject(String(before?.[FIELDS[name].column] ?? "")));
  if (name !== "setting" || !isRecord(value) || typeof value["proxy"] !== "string") return value;
  const known = jsonObject(before?.setting ?? "")?.["proxy"];
  const proxy = addressOf(judge, [...path, "proxy"], value["proxy"], typeof known === "string" ? known : "");
  return proxy === undefined ? undefined : { ...value, proxy };
}

/** The stored value of a field without masks, to tell whether the meant one differs. */
function heldField(name: FieldName, field: Field, row: ConfigChannel): unknown {
  if (name === "base_url") return row.baseUrl;
  if (name !== "setting" && name !== "header_override" && name !== "param_override")
    return shownField(field, row);
  const text = String(row[field.column] ?? "");
  return jsonObject(text) ?? text;
}

interface Read {
  input: ChannelInput;
  shown: Record<string, unknown>;
}

/** What differs from the row, as the console would send it; of a new channel all. */
function readFields(
  judge: Judge,
  path: Path,
  sent: Record<string, unknown>,
  before: ConfigChannel | undefined,
): Read | undefined {
  const input: Record<string, string | number> = {};
  const shown: Record<string, unknown> = {};
  let isWhole = true;
  const type = typeof sent["type"] === "number" ? sent["type"] : 0;
  for (const [name, field] of FIELD_ROWS) {
    const here = [...path, name];
    const isNeeded = name === "type" || name === "models";
    if (isNeeded && sent[name] === undefined) {
      wrong(judge, path, "config_field_missing", { field: name });
      isWhole = false;
      continue;
    }
    // As an export says it, whatever it is: only what is written is judged.
    if (before && isSameValue(field.kind, shownField(field, before), sent[name])) continue;
    const read =
      sent[name] === undefined ? shippedValue(name, type) : readField(judge, here, field, sent[name]);
    const value = read === undefined ? undefined : withPasswords(judge, here, name, read, before);
    if (value === undefined) {
      isWhole = false;
      continue;
    }
    if (before && isSameValue(field.kind, heldField(name, field, before), value)) continue;
    shown[name] = read;
    input[name] = wireValue(field.kind, value);
  }
  return isWhole ? { input: input as ChannelInput, shown } : undefined;
}

/** The key where the file names one; null where it stays or is missing, which is a problem then. */
function readKey(
  judge: Judge,
  path: Path,
  sent: Record<string, unknown>,
  before: ConfigChannel | undefined,
): readonly string[] | null | undefined {
  if (sent["key"] === undefined) {
    if (before) return null;
    wrong(judge, path, "config_key_needed");
    return undefined;
  }
  const here = [...path, "key"];
  const text = secretOf(judge, here, sent["key"]);
  if (text === undefined) return undefined;
  const keys = keysOf(typeof sent["type"] === "number" ? sent["type"] : 1, text);
  if (keys.length <= MAX_KEYS_OF_CHANNEL) return keys;
  wrong(judge, here, "channel_keys_many", { max: MAX_KEYS_OF_CHANNEL });
  return undefined;
}

function judgeChannel(
  judge: Judge,
  name: string,
  sent: Record<string, unknown>,
  before: ConfigChannel | undefined,
): void {
  const path = ["channels", name];
  onlyFields(judge, path, sent, NAMES);
  const read = readFields(judge, path, sent, before);
  const keys = readKey(judge, path, sent, before);
  if (!read || keys === undefined) return;
  const isNewKey = keys !== null && keys.map(sha256Hex).join() !== before?.keyHashes.join();
  if (before && Object.keys(read.input).length === 0 && !isNewKey) return;
  const input = before ? read.input : { ...read.input, name };
  const changes = checked(judge, path, () => channelChanges(input, before));
  if (!changes) return;
  if (changes.status === ChannelStatus.enabled && before) changes.otherInfo = "";
  const was =
    before && Object.fromEntries(FIELD_ROWS.map(([field, row]) => [field, shownField(row, before)]));
  const shownBefore = was && Object.fromEntries(Object.keys(read.shown).map((field) => [field, was[field]]));
  noteFields(judge, { section: "channels", name }, shownBefore, before ? read.shown : shownNew(read.shown));
  // Without a value: that it differs is all that may be told.
  if (isNewKey)
    judge.changes.push({
      section: "channels",
      name,
      field: "key",
      action: before ? "change" : "add",
      before: null,
      after: null,
    });
  judge.channels.push({ name, before, changes, keys: isNewKey ? keys : undefined });
}

/** Of a new channel only what says something. */
function shownNew(shown: Record<string, unknown>): Record<string, unknown> {
  const type = Number(shown["type"]);
  return Object.fromEntries(
    FIELD_ROWS.flatMap(([name, { kind }]): [string, unknown][] =>
      name === "type" || !isSameValue(kind, shown[name], shippedValue(name, type))
        ? [[name, shown[name]]]
        : [],
    ),
  );
}

export function judgeChannels(judge: Judge, value: unknown): void {
  const known = byChannelName(judge.state.channels);
  const named = new Set<string>();
  for (const [name, sent] of entriesOf(judge, ["channels"], value)) {
    const path = ["channels", name];
    named.add(name);
    const [before, ...more] = known.get(name) ?? [];
    if (name.trim() !== name || name === "" || charactersIn(name) > MAX_CHANNEL_NAME)
      wrong(judge, path, "name_invalid", { max: MAX_CHANNEL_NAME });
    else if (more.length > 0) wrong(judge, path, "config_channel_twice", { name, count: more.length + 1 });
    else if (isRecord(sent)) judgeChannel(judge, name, sent, before);
    else wrong(judge, path, "config_not_map");
  }
  if (judge.prunes.has("channels")) prune(judge, known, named);
}

function prune(judge: Judge, known: ReadonlyMap<string, ConfigChannel[]>, named: ReadonlySet<string>): void {
  for (const [name, rows] of [...known].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const [before] = rows;
    if (!before || named.has(name)) continue;
    // No export names them: a file that was made of one must not end them unseen.
    if (!isNameOfOne(name, rows)) {
      wrong(judge, ["channels"], "config_channel_twice", { name, count: rows.length });
      continue;
    }
    noteFields(judge, { section: "channels", name }, shownChannel(before), undefined);
    judge.channels.push({ name, before, changes: undefined, keys: undefined });
  }
}
