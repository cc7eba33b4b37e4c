// What models are to their users: how many requests were answered or failed, and how long the first token took. Counted since the
// start; whoever writes them down takes what came since.
import { METRICS } from "./names.ts";
import type { Outcome } from "./names.ts";
import { createTally, observe } from "./tally.ts";
import type { Tally } from "./tally.ts";

export const FIRST_TOKEN_BOUNDS = METRICS.gen_ai_server_time_to_first_token_seconds.buckets;

export interface ModelFigures {
  answered: number;
  /** By upstreams or the gateway; what clients did wrong is nobody's failure. */
  failed: number;
  readonly firstToken: Tally;
}

export type ModelTable = ReadonlyMap<string, Readonly<ModelFigures>>;

export function countModel(
  table: Map<string, ModelFigures>,
  { model, outcome, firstTokenMs }: { model: string; outcome: Outcome; firstTokenMs: number | undefined },
): void {
  const isAnswered = outcome === "ok";
  if (!isAnswered && outcome !== "upstream" && outcome !== "internal") return;
  let figures = table.get(model);
  if (!figures) {
    figures = { answered: 0, failed: 0, firstToken: createTally(FIRST_TOKEN_BOUNDS) };
    table.set(model, figures);
  }
  if (isAnswered) figures.answered++;
  else figures.failed++;
  if (firstTokenMs !== undefined) observe(figures.firstToken, firstTokenMs / 1000);
}
