// How long the answers of each model are on this site: what the first hold of a stream begins with.
// Forgets everything once there are too many names: clients make them up.
import { USUAL_OUTPUT } from "../../core/prices/holds.ts";

/** How long the answers of each model are on this site. */
export interface UsualOutput {
  of(model: string): number;
  learn(model: string, tokens: number): void;
}

const MAX_MODELS = 5000;
/** The mean follows the last answers: a model that is renamed behind its name is soon known again. */
const MEMORY_ANSWERS = 200;

export function createUsualOutput(): UsualOutput {
  const seen = new Map<string, { mean: number; count: number }>();
  return {
    of: (model) => Math.max(USUAL_OUTPUT, Math.ceil(seen.get(model)?.mean ?? 0)),
    learn(model, tokens) {
      const known = seen.get(model);
      if (!known) {
        if (seen.size >= MAX_MODELS) seen.clear();
        seen.set(model, { mean: tokens, count: 1 });
        return;
      }
      known.count = Math.min(known.count + 1, MEMORY_ANSWERS);
      known.mean += (tokens - known.mean) / known.count;
    },
  };
}
