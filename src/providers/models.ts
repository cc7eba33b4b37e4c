// The models that ship with the catalogue: who owns them, and the lists of GET /v1/models, /api/models and
// /api/channel/models. Which models a caller may use is decided elsewhere.
import { listProviders } from "./catalog.ts";

/** owned_by of a model that no type presets. */
const CUSTOM_OWNER = "custom";
/** Answered with null instead of an empty list: clients of this API know the type by it. */
const DIFY = 37;

export interface PresetModel {
  id: string;
  owner: string;
}

/** First preset wins: the model's maker stands before the clouds that resell it. */
const OWNERS: ReadonlyMap<string, string> = (() => {
  const owners = new Map<string, string>();
  for (const row of listProviders()) {
    for (const model of row.presetModels) if (!owners.has(model)) owners.set(model, row.owner);
  }
  return owners;
})();

export function modelOwner(model: string): string {
  return OWNERS.get(model) ?? CUSTOM_OWNER;
}

export function isPresetModel(model: string): boolean {
  return OWNERS.has(model);
}

/** Every preset model once, in the order of the types. */
export function listPresetModels(): PresetModel[] {
  return [...OWNERS].map(([id, owner]) => ({ id, owner }));
}

/** Preset by channel type, keyed by the type's number as text. */
export function presetModelsByType(): Record<string, readonly string[] | null> {
  return Object.fromEntries(
    listProviders().map((row) => [String(row.id), row.id === DIFY ? null : row.presetModels]),
  );
}
