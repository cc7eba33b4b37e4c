// What an upstream's list of models says beside a channel's own, and how much of that is believed. Refuses to take a list at its
// word: an empty one or one that has shrunk by half says nothing, and what is missing has to be missing twice, an hour apart.
import { jsonObject } from "../../shared/json-object.ts";
import type { ChannelRow } from "./rows.ts";

/**
 * What is kept of the looks at a channel's upstream; times are Unix seconds. The switches stand in its `settings`, where people set
 * them; what was found has a column of its own, which a form that was opened before a look does not write over.
 */
export interface DriftState {
  isChecked: boolean;
  isAutomatic: boolean;
  /** 0 = never. */
  lastCheck: number;
  /** Models that the upstream has and the channel has not, and the other way round: what is proposed. */
  detected: string[];
  removed: string[];
  /** Never proposed. */
  ignored: string[];
  /** Since when own models are not on the list. */
  missingSince: Record<string, number>;
  /** Length of the last list that was believed; 0 = none. */
  listSize: number;
  /** The channel's models before the last change from here; "": nothing to take back. */
  before: string;
}

/** What looks and decisions write. */
export type DriftFindings = Omit<DriftState, "isChecked" | "isAutomatic">;

/** The family's names; those with a dagger in the reference are ours. */
const NAMES = {
  isChecked: "upstream_model_update_check_enabled",
  isAutomatic: "upstream_model_update_auto_sync_enabled",
  lastCheck: "upstream_model_update_last_check_time",
  detected: "upstream_model_update_last_detected_models",
  removed: "upstream_model_update_last_removed_models",
  ignored: "upstream_model_update_ignored_models",
  missingSince: "upstream_model_update_missing_since",
  listSize: "upstream_model_update_list_size",
  before: "upstream_model_update_models_before",
} as const satisfies Record<keyof DriftState, string>;

/** A list as long as this is proposed whole; of longer ones the first. */
const MOST_PROPOSED = 1000;
const LEAST_SHARE = 0.5;
const REMOVED_AFTER_SECONDS = 3600;

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? (value as unknown[]).filter((each) => typeof each === "string") : [];
const numberOf = (value: unknown): number => (typeof value === "number" ? value : 0);

/** The columns of a channel that it stands in. */
export type DriftColumns = Pick<ChannelRow, "settings" | "modelDrift">;

/** What cannot be read is as if it was never written; what channels bring along in `settings` from elsewhere counts until a look. */
export function driftState({ settings, modelDrift }: DriftColumns): DriftState {
  const stored = { ...jsonObject(settings), ...jsonObject(modelDrift) };
  const missing = stored[NAMES.missingSince];
  const before = stored[NAMES.before];
  return {
    isChecked: stored[NAMES.isChecked] === true,
    isAutomatic: stored[NAMES.isAutomatic] === true,
    lastCheck: numberOf(stored[NAMES.lastCheck]),
    detected: textsOf(stored[NAMES.detected]),
    removed: textsOf(stored[NAMES.removed]),
    ignored: textsOf(stored[NAMES.ignored]),
    missingSince: Object.fromEntries(
      Object.entries(typeof missing === "object" && missing !== null ? missing : {}).filter(
        (entry): entry is [string, number] => typeof entry[1] === "number",
      ),
    ),
    listSize: numberOf(stored[NAMES.listSize]),
    before: typeof before === "string" ? before : "",
  };
}

/** The text of `modelDrift` with the changes; everything else in it stays. */
export function withDrift(modelDrift: string, changes: Partial<DriftFindings>): string {
  const stored = { ...jsonObject(modelDrift) };
  for (const [name, key] of Object.entries(NAMES)) {
    const value = changes[name as keyof DriftFindings];
    if (value !== undefined) stored[key] = value;
  }
  return JSON.stringify(stored);
}

const fold = (name: string): string => name.toLowerCase();

export interface DriftLook {
  /** The channel's. */
  models: readonly string[];
  /** Requested name -> name at the upstream. */
  mapping: ReadonlyMap<string, string>;
  /** The upstream's. */
  list: readonly string[];
  nowS: number;
}

/** What is kept after a look; undefined: the list is not believed. */
export function compareLists(
  state: DriftState,
  { models, mapping, list, nowS }: DriftLook,
): Pick<DriftState, "detected" | "removed" | "missingSince" | "listSize"> | undefined {
  if (list.length === 0 || list.length < LEAST_SHARE * state.listSize) return undefined;
  const there = new Set(list.map(fold));
  const served = new Set([...models, ...mapping.values(), ...state.ignored].map(fold));
  const missing = models.filter((name) => !mapping.has(name) && !there.has(fold(name)));
  const ignored = new Set(state.ignored.map(fold));
  const missingSince = Object.fromEntries(missing.map((name) => [name, state.missingSince[name] ?? nowS]));
  return {
    // A comma would end the name where models are kept.
    detected: list.filter((name) => !served.has(fold(name)) && !name.includes(",")).slice(0, MOST_PROPOSED),
    removed: missing
      .filter((name) => !ignored.has(fold(name)))
      .filter((name) => nowS - (missingSince[name] ?? nowS) >= REMOVED_AFTER_SECONDS)
      .slice(0, MOST_PROPOSED),
    missingSince,
    listSize: list.length,
  };
}
