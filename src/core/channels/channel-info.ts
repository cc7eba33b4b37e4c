// `channel_info`, in which gateways of this family keep the states of a channel's keys by their places: read and written.
// Never fails over what it cannot read: a state that means nothing is none.
import { jsonObject } from "../../shared/json-object.ts";
import { KEY_MODES, KeyStatus } from "../../shared/enums.ts";
import type { KeyMode } from "../../shared/enums.ts";
import { withoutKeys } from "../../shared/without-keys.ts";
import type { NewKey } from "./key-rows.ts";
import type { ChannelKeyRow } from "./rows.ts";

/** As the wire has it: by place from "0"; a key without an entry is on. */
export interface ChannelInfo {
  is_multi_key: boolean;
  multi_key_size: number;
  multi_key_status_list: Record<string, number>;
  multi_key_disabled_reason: Record<string, string>;
  multi_key_disabled_time: Record<string, number>;
  multi_key_mode: KeyMode;
}

const MAX_REASON = 500;

export function channelInfoJson(
  keys: readonly Pick<ChannelKeyRow, "status" | "reason" | "statusTime">[],
  mode: KeyMode,
): ChannelInfo {
  const info: ChannelInfo = {
    is_multi_key: keys.length > 1,
    multi_key_size: keys.length > 1 ? keys.length : 0,
    multi_key_status_list: {},
    multi_key_disabled_reason: {},
    multi_key_disabled_time: {},
    multi_key_mode: mode,
  };
  for (const [index, { status, reason, statusTime }] of keys.entries()) {
    if (status === KeyStatus.on) continue;
    info.multi_key_status_list[index] = status;
    if (reason !== "") info.multi_key_disabled_reason[index] = reason;
    if (statusTime > 0) info.multi_key_disabled_time[index] = statusTime;
  }
  return info;
}

interface ReadInfo {
  isMultiKey: boolean;
  mode: KeyMode | undefined;
  keys: NewKey[];
  /** Entries of places where no key is. */
  dropped: number;
}

/** The states of an import, laid over the keys that came with them. `info`: an object or its JSON text. */
export function readChannelInfo(info: unknown, texts: readonly string[]): ReadInfo {
  const read = (typeof info === "string" ? jsonObject(info) : (info as Record<string, unknown> | null)) ?? {};
  const listOf = (name: string) => (read[name] ?? {}) as Record<string, unknown>;
  const states = listOf("multi_key_status_list");
  const reasons = listOf("multi_key_disabled_reason");
  const times = listOf("multi_key_disabled_time");
  const keys = texts.map((text, index): NewKey => {
    const status = Number(states[index]);
    if (status !== KeyStatus.off && status !== KeyStatus.autoOff) return { text };
    const reason = reasons[index];
    const time = Number(times[index]);
    return {
      text,
      status,
      reason: typeof reason === "string" ? withoutKeys(reason, texts).slice(0, MAX_REASON) : "",
      statusTime: Number.isSafeInteger(time) && time > 0 ? time : 0,
    };
  });
  const places = new Set([states, reasons, times].flatMap((list) => Object.keys(list)));
  const dropped = [...places].filter((place) => !(Number(place) >= 0 && Number(place) < texts.length)).length;
  const mode = KEY_MODES.find((each) => each === read["multi_key_mode"]);
  return { isMultiKey: read["is_multi_key"] === true, mode, keys, dropped };
}
