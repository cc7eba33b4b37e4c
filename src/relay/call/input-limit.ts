// The longest prompt that a channel is given (its max_input_tokens): longer ones go to the others that serve the model.
// Refuses what none of them takes as the providers do, by a code that makes agents shorten their conversation.
import type { Channel } from "../../core/channels/rows.ts";
import type { Tier } from "../../core/channels/routing.ts";
import { lengthDetails } from "../../protocol/classify.ts";
import { Failure } from "../../shared/failures.ts";
import { countedPrompt } from "../meter/meter.ts";
import type { HoldRequest } from "./hold.ts";
import type { CallServices } from "./services.ts";

export function takesInput({ maxInputTokens }: Channel, tokens: number): boolean {
  return maxInputTokens === 0 || tokens <= maxInputTokens;
}

const limitOf = ({ maxInputTokens }: Channel): number => maxInputTokens || Infinity;

interface Limits {
  /** What every channel takes. */
  least: number;
  /** What one of them takes. */
  most: number;
}

/** Tiers are built anew when one of their channels changes. */
const limitsOf = new WeakMap<readonly Tier[], Limits>();

function limits(tiers: readonly Tier[]): Limits {
  let known = limitsOf.get(tiers);
  if (!known) {
    const each = tiers.flatMap(({ entries }) => entries.map(({ channel }) => limitOf(channel)));
    known = { least: Math.min(Infinity, ...each), most: Math.max(0, ...each) };
    limitsOf.set(tiers, known);
  }
  return known;
}

/** Of several groups: any of their channels may serve. */
const together = (some: Limits, more: Limits): Limits => ({
  least: Math.min(some.least, more.least),
  most: Math.max(some.most, more.most),
});

/**
 * Counts the prompt where a channel may be too small for it, and throws a Failure `context_length` where all are. Undefined:
 * there is nothing to wait for, which is so for nearly every call.
 */
export function fitInput(
  { deps, counter }: Pick<CallServices, "deps" | "counter">,
  request: HoldRequest,
): Promise<void> | undefined {
  const { caller, model, pinned, prompt, endpoint, body, earlierTokens } = request;
  const { least, most } = pinned
    ? { least: limitOf(pinned), most: limitOf(pinned) }
    : caller.auto
      ? caller.auto.map((group) => limits(deps.routing.tiers(group, model))).reduce(together)
      : limits(deps.routing.tiers(caller.group, model));
  // No encoder counts more than that.
  if (prompt.mostTokens + earlierTokens <= least) return undefined;
  return countedPrompt(counter, { endpoint, body: body.json, model }).then((tokens) => {
    const used = (tokens ?? prompt.tokens) + earlierTokens;
    if (used > most)
      throw new Failure("context-length", "context_length", lengthDetails({ limit: most, used }));
    if (tokens !== undefined) request.prompt = { ...prompt, tokens, mostTokens: tokens };
  });
}
