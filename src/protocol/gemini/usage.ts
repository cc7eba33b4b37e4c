// Gemini's usageMetadata in disjoint counts, both ways.
// Refuses to trust it: every number is bounded, and parts never exceed the total they belong to.
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { JsonObject } from "../canonical.ts";
import { asList, asObject } from "../json.ts";

/**
 * Usage of a generateContent answer; null when it reports nothing. promptTokenCount contains the cached tokens,
 * candidatesTokenCount does not contain the thoughts; tokens of tool results come on top of the prompt. Pictures and
 * video count as image.
 */
export function decodeUsage(raw: unknown): Usage | null {
  const wire = asObject(raw);
  if (!wire) return null;
  const usage = emptyUsage();
  usage.raw = raw;
  const prompt = boundedCount(wire["promptTokenCount"]);
  const tools = boundedCount(wire["toolUsePromptTokenCount"]);
  const thoughts = boundedCount(wire["thoughtsTokenCount"]);
  const total = boundedCount(wire["totalTokenCount"]);
  let candidates = boundedCount(wire["candidatesTokenCount"]);
  // Some answers (cut or blocked ones) leave the candidates out of everything but the total.
  if (candidates === 0) candidates = Math.max(0, total - prompt - thoughts - tools);

  let left = prompt;
  const take = (value: number): number => {
    const count = Math.min(value, left);
    left -= count;
    return count;
  };
  usage.input.cacheRead = take(boundedCount(wire["cachedContentTokenCount"]));
  const cached = wire["cacheTokensDetails"];
  const promptDetails = wire["promptTokensDetails"];
  usage.input.audio = take(Math.max(0, modality(promptDetails, "AUDIO") - modality(cached, "AUDIO")));
  usage.input.image = take(
    Math.max(0, modality(promptDetails, "IMAGE", "VIDEO") - modality(cached, "IMAGE", "VIDEO")),
  );
  usage.input.fresh = left + tools;

  left = candidates;
  const made = wire["candidatesTokensDetails"];
  usage.output.audio = take(modality(made, "AUDIO"));
  usage.output.image = take(modality(made, "IMAGE", "VIDEO"));
  usage.output.text = left;
  usage.output.thinking = thoughts;
  return prompt + tools + thoughts + candidates === 0 ? null : usage;
}

const COUNTS = [
  "promptTokenCount",
  "candidatesTokenCount",
  "totalTokenCount",
  "thoughtsTokenCount",
  "toolUsePromptTokenCount",
] as const;

/** Whether `decodeUsage` would find anything in it. */
export function reportsUsage(wire: JsonObject): boolean {
  return COUNTS.some((key) => boundedCount(wire[key]) > 0);
}

function modality(details: unknown, ...names: string[]): number {
  let sum = 0;
  for (const value of asList(details)) {
    const item = asObject(value);
    if (names.includes(String(item?.["modality"]))) sum += boundedCount(item?.["tokenCount"]);
  }
  return sum;
}

export function encodeUsage(usage: Usage): JsonObject {
  const { input, output } = usage;
  const prompt =
    input.fresh + input.cacheRead + input.cacheWrite5m + input.cacheWrite1h + input.audio + input.image;
  const candidates = output.text + output.audio + output.image;
  const wire: JsonObject = {
    promptTokenCount: prompt,
    candidatesTokenCount: candidates,
    totalTokenCount: prompt + candidates + output.thinking,
  };
  if (output.thinking > 0) wire["thoughtsTokenCount"] = output.thinking;
  if (input.cacheRead > 0) wire["cachedContentTokenCount"] = input.cacheRead;
  const promptDetails = details({ AUDIO: input.audio, IMAGE: input.image });
  const made = details({ AUDIO: output.audio, IMAGE: output.image });
  if (promptDetails) wire["promptTokensDetails"] = promptDetails;
  if (made) wire["candidatesTokensDetails"] = made;
  return wire;
}

function details(counts: Record<string, number>): JsonObject[] | undefined {
  const list = Object.entries(counts).filter(([, tokenCount]) => tokenCount > 0);
  return list.length > 0 ? list.map(([name, tokenCount]) => ({ modality: name, tokenCount })) : undefined;
}

/** Answer of the countTokens route. */
export function encodeTokenCount(totalTokens: number): JsonObject {
  return { totalTokens };
}
