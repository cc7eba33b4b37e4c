// Service tiers: which of them a request may name on its way to an upstream, and which one it is priced by.
// Refuses to sell below cost: a tier goes on where the model has a price for it and the channel allows it, else it is taken
// out and told.
import type { DialectName } from "../../protocol/canonical.ts";
import { asObject } from "../../protocol/json.ts";
import type { Json } from "./endpoint.ts";
import type { Changes } from "../wire/patch-json.ts";

/** Words for what the list price is of. */
const USUAL: ReadonlySet<string> = new Set(["default", "standard", "standard_only"]);
const FIELDS = ["service_tier", "serviceTier"] as const;
const CONFIGS = ["generationConfig", "generation_config"] as const;

/** Whether a tier may be asked for; small letters. */
type TierGate = (tier: string) => boolean;

/** One for tiers by name, one for the mode that is a field of its own (Anthropic's `speed`). */
export interface TierGates {
  tier: TierGate;
  speed: TierGate;
}

const SHUT: TierGate = () => false;
export const NO_TIERS: TierGates = { tier: SHUT, speed: SHUT };

/**
 * The tier that a word of a request means. Anthropic knows no other word for its dear one than `auto`, which is it where
 * there is some left; elsewhere `auto` is what the provider's project is set to, and nobody's price.
 */
function meant(dialect: DialectName, word: unknown): string | undefined {
  if (typeof word !== "string") return undefined;
  const tier = word.trim().toLowerCase();
  return dialect === "anthropic" && tier === "auto" ? "priority" : tier;
}

function goesOn(dialect: DialectName, word: unknown, gate: TierGate): boolean {
  if (word === undefined || word === null) return true;
  // What is no word is nobody's tier, and not ours to guess at.
  const tier = meant(dialect, word);
  return tier !== undefined && (USUAL.has(tier) || gate(tier));
}

/** A reader that takes the first of two members would see another tier than we do. */
function standsTwice(text: string, field: string): boolean {
  const key = `"${field}"`;
  return text.indexOf(key) !== text.lastIndexOf(key);
}

/** Members as readers that fold letters take them: Go's does, the long s too, and many upstreams are written in it. */
const FOLDED: ReadonlySet<string> = new Set(["SERVICE_TIER", "SERVICETIER"]);
const KNOWN: ReadonlySet<string> = new Set(FIELDS);

/** Second spellings of the member, which no provider documents; undefined where there are none. */
function otherSpellings(place: Json): string[] | undefined {
  let found: string[] | undefined;
  for (const key in place) {
    if (key.length !== 12 && key.length !== 11) continue;
    if (!KNOWN.has(key) && FOLDED.has(key.toUpperCase())) (found ??= []).push(key);
  }
  return found;
}

/**
 * Top-level changes that take out what the gate does not let through; undefined = none is needed. `text` is the body as
 * it was written, where it goes on as it is.
 */
export function gatedTier(
  dialect: DialectName,
  body: Json,
  { tier: gate, speed }: TierGates,
  text = "",
): Changes | undefined {
  let changes: Record<string, unknown> | undefined;
  for (const field of FIELDS) {
    const named = body[field];
    if (named === undefined || (goesOn(dialect, named, gate) && !standsTwice(text, field))) continue;
    changes ??= {};
    // Left out it means `auto` there.
    changes[field] = dialect === "anthropic" && field === "service_tier" ? "standard_only" : undefined;
  }
  for (const field of otherSpellings(body) ?? []) {
    changes ??= {};
    changes[field] = undefined;
  }
  if (dialect === "anthropic" && !goesOn(dialect, body["speed"], speed)) {
    changes ??= {};
    changes["speed"] = undefined;
  }
  if (dialect !== "gemini") return changes;
  for (const key of CONFIGS) {
    const config = asObject(body[key]);
    if (!config) continue;
    const named: string[] = FIELDS.filter((field) => !goesOn(dialect, config[field], gate));
    named.push(...(otherSpellings(config) ?? []));
    if (named.length === 0) continue;
    const kept = { ...config };
    for (const field of named) delete kept[field];
    changes ??= {};
    changes[key] = kept;
  }
  return changes;
}

/** What Anthropic's fast mode is called as a tier of prices. */
export const FAST = "fast";

/** The tier that a request names, by the word that prices have for it. */
export function askedTier(dialect: DialectName, body: Json): string | undefined {
  if (dialect === "anthropic" && meant(dialect, body["speed"]) === FAST) return FAST;
  for (const place of [body, ...(dialect === "gemini" ? CONFIGS.map((key) => asObject(body[key])) : [])])
    for (const field of FIELDS) {
      const tier = meant(dialect, place?.[field]);
      if (tier !== undefined) return tier;
    }
  return undefined;
}

/** What of a request its price may depend on. */
export function requestFacts(
  dialect: DialectName,
  body: Json,
): { tier?: string; size?: string; quality?: string } {
  const facts: { tier?: string; size?: string; quality?: string } = {};
  const tier = askedTier(dialect, body);
  if (tier !== undefined) facts.tier = tier;
  const { size, image_size: native, quality } = body;
  if (typeof size === "string") facts.size = size;
  // As in `images.ts`: some providers' own word counts where OpenAI's is absent.
  if (typeof native === "string" && (facts.size ?? "") === "") facts.size = native;
  if (typeof quality === "string") facts.quality = quality;
  return facts;
}

/** The names that a log row tells of what was taken out. */
export function tierNames(changes: Changes): string[] {
  return [...new Set(Object.keys(changes).map((key) => (key === "speed" ? key : "service_tier")))];
}
