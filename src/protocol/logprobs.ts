// Probabilities of tokens, which both of OpenAI's dialects write alike: what goes from one into the other.
// Leaves out what a provider adds of its own.
import type { JsonObject } from "./canonical.ts";
import { asList, asObject } from "./json.ts";

function plain(value: unknown): JsonObject {
  const { token, logprob, bytes } = asObject(value) ?? {};
  return { token, logprob, bytes };
}

/** A list of tokens with the alternatives of each. */
export function sharedLogprobs(list: unknown): JsonObject[] {
  return asList(list).map((value) => ({
    ...plain(value),
    top_logprobs: asList(asObject(value)?.["top_logprobs"]).map(plain),
  }));
}
