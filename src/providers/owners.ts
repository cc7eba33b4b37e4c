// Who a known model name belongs to: `owned_by` of model lists, and the full list of preset models.
// Refuses nothing: unknown names belong to "custom".
import { presetModels } from "./preset-models.ts";

/** Owner names as clients of this API know them, by provider type; earlier rows win for shared names. */
const OWNERS: readonly (readonly [number, string])[] = [
  [1, "openai"],
  [14, "claude"],
  [24, "google gemini"],
  [17, "ali"],
  [15, "baidu"],
  [46, "baidu_v2"],
  [16, "zhipu"],
  [26, "zhipu_4v"],
  [18, "xunfei"],
  [19, "360"],
  [23, "tencent"],
  [25, "moonshot"],
  [27, "perplexity"],
  [31, "lingyiwanwu"],
  [34, "cohere"],
  [35, "minimax"],
  [38, "jina"],
  [39, "cloudflare"],
  [42, "mistral"],
  [43, "deepseek"],
  [44, "mokaai"],
  [45, "volcengine"],
  [48, "xai"],
  [49, "coze"],
  [40, "siliconflow"],
  [47, "xinference"],
  [4, "ollama"],
  [33, "aws"],
  [41, "vertex-ai"],
  [11, "google palm"],
  [2, "midjourney"],
  [5, "midjourney"],
  [36, "suno"],
];

const owners = new Map<string, string>();
for (const [type, owner] of OWNERS) {
  for (const name of presetModels[type] ?? []) if (!owners.has(name)) owners.set(name, owner);
}

export function modelOwner(model: string): string {
  return owners.get(model) ?? "custom";
}

/** Every preset model once, with its owner. */
export function listPresetModels(): { id: string; owned_by: string }[] {
  return [...owners].map(([id, owned_by]) => ({ id, owned_by }));
}
