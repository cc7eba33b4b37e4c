// Service tiers that a provider bills above its list price, and words that may come to mean one: taken out of a request.
// Refuses to sell below cost: as long as tiers have no prices of their own, nothing dearer than the usual one is asked for.
import type { DialectName } from "../../protocol/canonical.ts";
import { asObject } from "../../protocol/json.ts";
import type { Json } from "./endpoint.ts";
import type { Changes } from "../wire/patch-json.ts";

/** `auto` follows what the provider's project is set to (OpenAI), or is the dear one where it is free (Anthropic). */
const DEARER: ReadonlySet<string> = new Set(["priority", "fast", "auto"]);
const FIELDS = ["service_tier", "serviceTier"] as const;
const CONFIGS = ["generationConfig", "generation_config"] as const;

function isDearer(value: unknown): boolean {
  // What is no word is nobody's tier, and not ours to guess at.
  return typeof value === "string"
    ? DEARER.has(value.trim().toLowerCase())
    : value !== undefined && value !== null;
}

/** A reader that takes the first of two members would see another tier than we do. */
function standsTwice(text: string, field: string): boolean {
  const key = `"${field}"`;
  return text.indexOf(key) !== text.lastIndexOf(key);
}

/**
 * Top-level changes that keep the request at the usual price; undefined = none is needed. `text` is the body as it was
 * written, where it goes on as it is.
 */
export function usualTier(dialect: DialectName, body: Json, text = ""): Changes | undefined {
  let changes: Record<string, unknown> | undefined;
  for (const field of FIELDS) {
    const named = body[field];
    if (named === undefined || !(isDearer(named) || standsTwice(text, field))) continue;
    changes ??= {};
    // Left out it means `auto` there.
    changes[field] = dialect === "anthropic" && field === "service_tier" ? "standard_only" : undefined;
  }
  if (dialect === "anthropic" && isDearer(body["speed"])) {
    changes ??= {};
    changes["speed"] = undefined;
  }
  if (dialect !== "gemini") return changes;
  for (const key of CONFIGS) {
    const config = asObject(body[key]);
    const named = config && FIELDS.filter((field) => isDearer(config[field]));
    if (!named || named.length === 0) continue;
    const kept = { ...config };
    for (const field of named) delete kept[field];
    changes ??= {};
    changes[key] = kept;
  }
  return changes;
}

/** What of a request its price may depend on. A tier that is taken out of it was not asked for. */
export function requestFacts(body: Json): { tier?: string; size?: string; quality?: string } {
  const facts: { tier?: string; size?: string; quality?: string } = {};
  for (const place of [body, ...CONFIGS.map((key) => asObject(body[key]))])
    for (const field of FIELDS) {
      const named = place?.[field];
      if (typeof named === "string" && !isDearer(named)) facts.tier ??= named.trim().toLowerCase();
    }
  const { size, quality } = body;
  if (typeof size === "string") facts.size = size;
  if (typeof quality === "string") facts.quality = quality;
  return facts;
}

/** The names that a log row tells of what was taken out. */
export function tierNames(changes: Changes): string[] {
  return Object.keys(changes).map((key) => (key === "speed" ? key : "service_tier"));
}
