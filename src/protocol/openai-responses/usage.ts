// The usage object of the Responses API; it has the shape that openai-chat/usage.ts already reads.
// Refuses to trust it, as there.
import type { Usage } from "../../shared/usage.ts";
import type { JsonObject } from "../canonical.ts";

export { decodeUsage } from "../openai-chat/usage.ts";

export function encodeUsage(usage: Usage): JsonObject {
  const { input, output } = usage;
  const prompt =
    input.fresh + input.cacheRead + input.cacheWrite5m + input.cacheWrite1h + input.audio + input.image;
  const completion = output.text + output.thinking + output.audio + output.image;
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: input.cacheRead },
    output_tokens: completion,
    output_tokens_details: { reasoning_tokens: output.thinking },
    total_tokens: prompt + completion,
  };
}
