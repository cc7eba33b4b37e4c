// The usage that a realtime upstream reports: of a response, and of a transcription.
// Refuses numbers beyond their bounds, and counts no token twice.
import { asObject } from "../../protocol/json.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";

/**
 * Usage of a response.done (also of a finished transcription), or null when it tells none. input_tokens contain cached,
 * audio and image tokens. Cached sound counts as sound: no provider's price list is the same for it, and the documented
 * formula knows one price per token of sound.
 */
export function decodeRealtimeUsage(raw: unknown): Usage | null {
  const wire = asObject(raw);
  if (!wire) return null;
  const input = asObject(wire["input_token_details"] ?? wire["input_tokens_details"]);
  const output = asObject(wire["output_token_details"] ?? wire["output_tokens_details"]);
  let left = boundedCount(wire["input_tokens"]);
  const completion = boundedCount(wire["output_tokens"]);
  if (left === 0 && completion === 0) {
    left = boundedCount(wire["total_tokens"]);
    if (left === 0) return null;
  }
  const take = (value: unknown): number => {
    const count = Math.min(boundedCount(value), left);
    left -= count;
    return count;
  };
  const usage = emptyUsage();
  usage.raw = raw;
  usage.input.audio = take(input?.["audio_tokens"]);
  usage.input.image = take(input?.["image_tokens"]);
  const cachedText = asObject(input?.["cached_tokens_details"])?.["text_tokens"];
  usage.input.cacheRead = take(cachedText ?? input?.["cached_tokens"]);
  usage.input.fresh = left;
  left = completion;
  usage.output.audio = take(output?.["audio_tokens"]);
  usage.output.text = left;
  return usage;
}

/** Tokens of a transcription that is billed by time: 1000 a minute, of whole seconds. */
export function durationUsage(seconds: unknown): Usage | null {
  if (typeof seconds !== "number" || !(seconds > 0)) return null;
  const usage = emptyUsage();
  usage.input.fresh = boundedCount(Math.round((Math.ceil(seconds) / 60) * 1000));
  usage.raw = { type: "duration", seconds };
  return usage;
}

/** Both of them as one; what either upstream object said is kept for the log. */
export function usageOfBoth(one: Usage | undefined, other: Usage): Usage {
  if (!one) return other;
  const sum = emptyUsage();
  for (const { input, output } of [one, other]) {
    sum.input.fresh += input.fresh;
    sum.input.cacheRead += input.cacheRead;
    sum.input.audio += input.audio;
    sum.input.image += input.image;
    sum.output.text += output.text;
    sum.output.audio += output.audio;
  }
  sum.raw = [one.raw, other.raw];
  if (one.estimated === true || other.estimated === true) sum.estimated = true;
  return sum;
}
