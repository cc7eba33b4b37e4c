// A channel of the old site as a row of ours, and its keys with the states that they had.
// Refuses to let a channel serve with half of what it was told: whatever is not understood switches it off, and is named.
import { readChannelInfo } from "../../core/channels/channel-info.ts";
import { channelChanges, keysOf, namesOf } from "../../core/channels/input.ts";
import type { ChannelInput } from "../../core/channels/input.ts";
import type { NewKey } from "../../core/channels/key-rows.ts";
import { sha256Hex } from "../../core/kit/seal.ts";
import { channelAddress } from "../../shared/channel-address.ts";
import { CHANNEL_GATES } from "../../shared/channel-gates.ts";
import { ChannelStatus, KeyStatus } from "../../shared/enums.ts";
import { jsonObject } from "../../shared/json-object.ts";
import { providerForm, splitsKeysByLine } from "../../shared/provider-forms.ts";
import type { Family } from "../family.ts";
import type { NewRow } from "../insert.ts";
import type { Notes } from "../report.ts";
import type { SourceRow } from "../source.ts";
import type { Sum } from "../target.ts";
import { exactWhole, jsonOf, jsonText, realOf, smallOf, textOf, wholeOf } from "../values.ts";
import { oneApiChannel } from "./one-api-channels.ts";

/** From here on forks of the family mean different things by one number. */
const FIRST_FORKED_TYPE = 58;

export interface ChannelFacts {
  family: Family;
  notes: Notes;
  sums: ReadonlyMap<number, Sum>;
}

export interface MappedChannel {
  channel: NewRow<"channels"> & { id: number; models: string; group: string; status: number };
  keys: (NewKey & { hash: string })[];
  opening: NewRow<"openings"> | undefined;
}

/** Fields that are judged as the editor judges them. */
const JUDGED = [
  ["modelMapping", "model_mapping"],
  ["statusCodeMapping", "status_code_mapping"],
  ["paramOverride", "param_override"],
  ["headerOverride", "header_override"],
  ["setting", "setting"],
  ["settings", "settings"],
] as const;

/** What `settings` may hold that acts here. */
const KNOWN_SETTINGS: ReadonlySet<string> = new Set([
  ...CHANNEL_GATES,
  "pass_through_body_enabled",
  "system_prompt",
  "system_prompt_override",
  "upstream_model_update_check_enabled",
  "upstream_model_update_auto_sync_enabled",
  "http_protocol",
  "http2_connection_shards",
  "responses",
  "proxy",
  "allow_networks",
]);

type Judged = Record<(typeof JUDGED)[number][0], string>;

/** Each text, and whether one of them keeps the channel from serving. */
function judge(row: SourceRow, id: number, type: number, notes: Notes): { texts: Judged; isOff: boolean } {
  let isOff = false;
  const texts = Object.fromEntries(
    JUDGED.map(([field, column]) => {
      const { text, isBroken } = jsonText(row, column);
      if (isBroken) notes.add("channels", "broken_json", `${id} (${column})`);
      if (text === "" || text === "{}") return [field, ""];
      try {
        channelChanges({ [column]: text } as ChannelInput, { type } as never);
      } catch {
        // Root sees in the editor what is wrong with it.
        notes.add("channels", "channel_override", `${id} (${column})`);
        isOff = true;
      }
      return [field, text];
    }),
  ) as Judged;
  for (const name of Object.keys(jsonObject(texts.settings) ?? {}))
    if (!KNOWN_SETTINGS.has(name)) notes.add("channels", "channel_field", `${id} (settings.${name})`);
  return { texts, isOff };
}

/** one-api's prompt of a channel stands in a column of its own. */
function withPrompt(setting: string, prompt: string): string {
  if (prompt === "") return setting;
  return JSON.stringify({ ...jsonObject(setting), system_prompt: prompt });
}

/** The texts of keys by their places, doubles among them: the states count by place. */
function placesOf(type: number, text: string): string[] {
  if (!splitsKeysByLine(type)) return keysOf(type, text);
  const list = text.startsWith("[") ? jsonOf({ text }, "text") : undefined;
  const lines = Array.isArray(list) ? list.map(String) : text.split("\n");
  return lines.map((line) => line.trim()).filter((line) => line !== "");
}

function keysIn(row: SourceRow, id: number, type: number, text: string, notes: Notes) {
  const places = placesOf(type, text.trim());
  const info = jsonOf(row, "channel_info");
  if (info === undefined && textOf(row, "channel_info") !== "")
    notes.add("channels", "broken_json", `${id} (channel_info)`);
  const read = readChannelInfo(info ?? {}, places);
  if (read.dropped > 0) notes.add("channels", "channel_key_states", id);
  // The first of doubles keeps its place.
  const keys = new Map<string, NewKey>();
  for (const key of read.keys) {
    const hash = sha256Hex(key.text);
    if (!keys.has(hash)) keys.set(hash, key);
  }
  if (keys.size < read.keys.length) notes.add("channels", "channel_key_twice", id);
  const off = read.keys.flatMap(({ status }, at) => (status === KeyStatus.off ? [at] : []));
  if (off.length > 0) notes.add("channels", "channel_keys_off", `${id} (${off.slice(0, 10).join(", ")})`);
  return { mode: read.mode, keys: [...keys].map(([hash, key]) => ({ ...key, hash })) };
}

/** Why channels of this number do not serve; undefined: they do. */
function typeProblem(type: number | undefined): "channel_type" | "channel_fork_type" | undefined {
  if (type === undefined) return "channel_type";
  if (type >= FIRST_FORKED_TYPE) return "channel_fork_type";
  const status = providerForm(type)?.status;
  return status === "active" || status === "legacy" ? undefined : "channel_type";
}

function statusOf(row: SourceRow, isOff: boolean, keys: readonly NewKey[]): number {
  const found = wholeOf(row, "status", ChannelStatus.enabled);
  const { enabled, disabled, autoDisabled } = ChannelStatus;
  if (isOff || (found !== enabled && found !== autoDisabled)) return disabled;
  const isAnyOn = keys.length === 0 || keys.some(({ status }) => (status ?? KeyStatus.on) === KeyStatus.on);
  return found === enabled && !isAnyOn ? autoDisabled : found;
}

export function mapChannel(row: SourceRow, { family, notes, sums }: ChannelFacts): MappedChannel {
  const id = wholeOf(row, "id");
  notes.read("channels");
  const number = wholeOf(row, "type", 1);
  const own =
    family === "one-api"
      ? oneApiChannel(row, number)
      : {
          type: number,
          baseUrl: channelAddress(number, textOf(row, "base_url")),
          key: textOf(row, "key"),
          other: textOf(row, "other"),
        };
  const problem = typeProblem(own.type);
  const type = own.type ?? number;
  if (problem) notes.add("channels", problem, `${id} (${number})`);
  const { texts, isOff } = judge(row, id, type, notes);
  const hasUsers = !["", "[]", "{}", "0"].includes(textOf(row, "open_user_ids"));
  if (hasUsers) notes.add("channels", "channel_open_users", id);
  if (textOf(row, "remark") !== "") notes.add("channels", "channel_field", `${id} (remark)`);
  const { keys, mode } = keysIn(row, id, type, own.key, notes);
  const { text: otherInfo, isBroken } = jsonText(row, "other_info");
  if (isBroken) notes.add("channels", "broken_json", `${id} (other_info)`);
  const usedQuota = exactWhole(row, "used_quota");
  if (usedQuota.isCapped) notes.add("channels", "capped", id);
  const over = usedQuota.value - (sums.get(id)?.quota ?? 0);
  const models = namesOf(textOf(row, "models")).join(",");
  const group = namesOf(textOf(row, "group")).join(",") || "default";
  notes.carried("channels");
  return {
    channel: {
      id,
      type,
      openaiOrganization: textOf(row, "open_ai_organization") || textOf(row, "openai_organization") || null,
      testModel: textOf(row, "test_model") || null,
      status: statusOf(row, isOff || problem !== undefined || hasUsers, keys),
      name: textOf(row, "name") || `channel ${id}`,
      weight: Math.max(0, smallOf(row, "weight")),
      createdTime: wholeOf(row, "created_time"),
      testTime: wholeOf(row, "test_time"),
      responseTime: smallOf(row, "response_time"),
      baseUrl: own.baseUrl,
      other: own.other,
      balance: realOf(row, "balance"),
      balanceUpdatedTime: wholeOf(row, "balance_updated_time"),
      models,
      group,
      usedQuota: usedQuota.value,
      ...texts,
      setting: withPrompt(texts.setting, textOf(row, "system_prompt")),
      priority: wholeOf(row, "priority"),
      autoBan: smallOf(row, "auto_ban", 1),
      otherInfo,
      tag: textOf(row, "tag") || null,
      multiKeyMode: mode ?? "polling",
      // What they have used so far was no key's of those that come.
      goneKeysQuota: usedQuota.value,
    },
    keys,
    opening: over === 0 ? undefined : { kind: "channel", id, usedQuota: over, requestCount: 0 },
  };
}
