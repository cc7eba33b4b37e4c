// Anthropic's usage object in disjoint counts, both ways. Its input_tokens already exclude the cache.
// Refuses to trust it: every number is bounded.
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { JsonObject } from "../canonical.ts";
import { asObject } from "../json.ts";

/**
 * Usage of a Messages answer; null when it reports nothing. Cache writes without a breakdown by life count as
 * five-minute writes, as does the remainder when the breakdown does not sum up.
 */
export function decodeUsage(raw: unknown): Usage | null {
  const wire = asObject(raw);
  if (!wire) return null;
  const usage = emptyUsage();
  usage.raw = raw;
  const { input, output } = usage;
  input.fresh = boundedCount(wire["input_tokens"]);
  input.cacheRead = boundedCount(wire["cache_read_input_tokens"]);
  const breakdown = asObject(wire["cache_creation"]);
  const short = boundedCount(breakdown?.["ephemeral_5m_input_tokens"]);
  const long = boundedCount(breakdown?.["ephemeral_1h_input_tokens"]);
  const written = boundedCount(wire["cache_creation_input_tokens"]);
  input.cacheWrite1h = written > 0 ? Math.min(long, written) : long;
  input.cacheWrite5m = written > 0 ? written - input.cacheWrite1h : short;
  const total = boundedCount(wire["output_tokens"]);
  output.thinking = Math.min(
    boundedCount(asObject(wire["output_tokens_details"])?.["thinking_tokens"]),
    total,
  );
  output.text = total - output.thinking;
  usage.calls.webSearch = boundedCount(asObject(wire["server_tool_use"])?.["web_search_requests"]);
  const sum = input.fresh + input.cacheRead + input.cacheWrite5m + input.cacheWrite1h + total;
  return sum === 0 ? null : usage;
}

/**
 * The numbers of message_delta over those of message_start: they are totals, fields left out keep their first value.
 * Some compatible upstreams repeat zeros at one of the two ends; a zero never replaces a number.
 */
export function mergeUsage(first: JsonObject | undefined, later: unknown): JsonObject {
  const out: JsonObject = { ...first };
  const more = asObject(later) ?? {};
  for (const key in more) {
    const value = more[key];
    if (value === null || value === undefined || (value === 0 && out[key])) continue;
    out[key] = value;
  }
  return out;
}

export function encodeUsage(usage: Usage): JsonObject {
  const { input, output, calls } = usage;
  const wire: JsonObject = {
    input_tokens: input.fresh + input.audio + input.image,
    cache_creation_input_tokens: input.cacheWrite5m + input.cacheWrite1h,
    cache_read_input_tokens: input.cacheRead,
    output_tokens: output.text + output.thinking + output.audio + output.image,
  };
  if (input.cacheWrite1h > 0) {
    wire["cache_creation"] = {
      ephemeral_5m_input_tokens: input.cacheWrite5m,
      ephemeral_1h_input_tokens: input.cacheWrite1h,
    };
  }
  if (output.thinking > 0) wire["output_tokens_details"] = { thinking_tokens: output.thinking };
  if (calls.webSearch > 0) wire["server_tool_use"] = { web_search_requests: calls.webSearch };
  return wire;
}

/** Answer of the count_tokens route. */
export function encodeTokenCount(inputTokens: number): JsonObject {
  return { input_tokens: inputTokens };
}
