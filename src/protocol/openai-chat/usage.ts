// Reads the usage object of OpenAI-shaped answers (chat, completions, embeddings, images) into disjoint counts.
// Refuses to trust it: every number is bounded, and parts never exceed the total they belong to.
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { asObject } from "../json.ts";

/**
 * Usage of an OpenAI-shaped answer, or null when it reports nothing (missing, null, or all zero).
 *
 * prompt_tokens contains cached, audio and image tokens; completion_tokens contains reasoning, audio and image tokens.
 * Known deviations: DeepSeek counts cache reads in prompt_cache_hit_tokens; OpenRouter and resellers add cache writes
 * to prompt_tokens_details; others leave reasoning out of completion_tokens, which shows in the total, or in there being more
 * of it. Perplexity's deep research bills its reasoning, and as input what it read, beside prompt, completion and total.
 */
export function decodeUsage(raw: unknown): Usage | null {
  const wire = asObject(raw);
  if (!wire) return null;
  let prompt = boundedCount(wire["prompt_tokens"] ?? wire["input_tokens"]);
  const completion = boundedCount(wire["completion_tokens"] ?? wire["output_tokens"]);
  const total = boundedCount(wire["total_tokens"]);
  if (prompt === 0 && completion === 0) {
    if (total === 0) return null;
    // Embeddings and rerank of some providers report only the total.
    prompt = total;
  }
  const inDetails = asObject(wire["prompt_tokens_details"] ?? wire["input_tokens_details"]);
  const outDetails = asObject(wire["completion_tokens_details"] ?? wire["output_tokens_details"]);

  const usage = emptyUsage();
  usage.raw = raw;
  let left = prompt;
  const take = (value: unknown): number => {
    const count = Math.min(boundedCount(value), left);
    left -= count;
    return count;
  };
  usage.input.cacheRead = take(
    inDetails?.["cached_tokens"] ?? wire["prompt_cache_hit_tokens"] ?? wire["cached_tokens"],
  );
  usage.input.cacheWrite5m = take(
    inDetails?.["cache_write_tokens"] ??
      inDetails?.["cached_creation_tokens"] ??
      inDetails?.["cache_creation_tokens"],
  );
  usage.input.audio = take(inDetails?.["audio_tokens"]);
  usage.input.image = take(inDetails?.["image_tokens"]);
  usage.input.fresh = left;

  const reasoning = boundedCount(outDetails?.["reasoning_tokens"] ?? wire["reasoning_tokens"]);
  const isResearch = boundedCount(wire["reasoning_tokens"]) > 0 && boundedCount(wire["citation_tokens"]) > 0;
  if (isResearch) usage.input.fresh += boundedCount(wire["citation_tokens"]);
  const inTotal = total === prompt + completion + reasoning;
  const outside = reasoning > 0 && (inTotal || isResearch || reasoning > completion);
  left = completion;
  usage.output.thinking = outside ? reasoning : take(reasoning);
  usage.output.audio = take(outDetails?.["audio_tokens"]);
  usage.output.image = take(outDetails?.["image_tokens"]);
  usage.output.text = left;

  usage.calls.webSearch = boundedCount(
    asObject(wire["server_tool_use"])?.["web_search_requests"] ?? wire["num_search_queries"],
  );
  return usage;
}

/** The chat completions usage object of canonical counts. */
export function encodeUsage(usage: Usage): Record<string, unknown> {
  const { input, output } = usage;
  const prompt =
    input.fresh + input.cacheRead + input.cacheWrite5m + input.cacheWrite1h + input.audio + input.image;
  const completion = output.text + output.thinking + output.audio + output.image;
  const inDetails: Record<string, number> = { cached_tokens: input.cacheRead, audio_tokens: input.audio };
  const written = input.cacheWrite5m + input.cacheWrite1h;
  if (written > 0) inDetails["cache_write_tokens"] = written;
  if (input.image > 0) inDetails["image_tokens"] = input.image;
  const outDetails: Record<string, number> = {
    reasoning_tokens: output.thinking,
    audio_tokens: output.audio,
  };
  if (output.image > 0) outDetails["image_tokens"] = output.image;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: inDetails,
    completion_tokens_details: outDetails,
  };
}
