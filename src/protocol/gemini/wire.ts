// Names of the Gemini generateContent wire format, with the mappings of its words and schemas.
// Both spellings of the protocol's JSON (camelCase and snake_case) are read.
import type { JsonObject } from "../canonical.ts";
import type { FinishReason } from "../events.ts";
import { asList, asObject } from "../json.ts";

/** Request fields with a canonical place; all others are extras. */
export const REQUEST_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "contents",
  "systemInstruction",
  "generationConfig",
  "tools",
  "toolConfig",
]);

/** Extras that change what is asked for: refused by name towards another dialect. */
export const MUST_CARRY: readonly string[] = ["cachedContent"];

/** Ids made here for calls that had none start like this and are left out again on the way to Gemini. */
export const MADE_ID = "call_g";

const CONTENT_FILTER = new Set([
  "SAFETY",
  "RECITATION",
  "LANGUAGE",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION",
]);

/** Gemini ends tool calls with STOP: that the answer holds a call makes it "tool-calls". */
export function finishFromWire(raw: string, sawCall: boolean): FinishReason {
  if (raw === "STOP") return sawCall ? "tool-calls" : "stop";
  if (raw === "MAX_TOKENS") return "length";
  return CONTENT_FILTER.has(raw) ? "content-filter" : "other";
}

/** Clients leave their tool loop on anything but STOP, so calls end with it. */
export function finishToWire(reason: FinishReason): string {
  switch (reason) {
    case "length":
      return "MAX_TOKENS";
    case "content-filter":
    case "refusal":
      return "SAFETY";
    case "other":
      return "OTHER";
    default:
      return "STOP";
  }
}

/** The object with its own keys in camelCase; values are left alone. */
export function camel(object: JsonObject): JsonObject {
  let changed: JsonObject | undefined;
  for (const key in object) {
    if (!key.includes("_")) continue;
    changed ??= { ...object };
    delete changed[key];
    const name = key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    changed[name] ??= object[key];
  }
  return changed ?? object;
}

/** Gemini's schema dialect (upper-case types, `nullable`) as JSON Schema. */
export function toJsonSchema(value: unknown): unknown {
  const schema = asObject(value);
  if (!schema) return value;
  const out: JsonObject = {};
  for (const key in schema) {
    const inner = schema[key];
    switch (key) {
      case "type":
        out["type"] = typeof inner === "string" ? inner.toLowerCase() : inner;
        break;
      case "properties":
      case "defs": {
        const named: JsonObject = {};
        const object = asObject(inner) ?? {};
        for (const name in object) named[name] = toJsonSchema(object[name]);
        out[key === "defs" ? "$defs" : key] = named;
        break;
      }
      case "items":
        out["items"] = toJsonSchema(inner);
        break;
      case "anyOf":
      case "any_of":
        out["anyOf"] = asList(inner).map(toJsonSchema);
        break;
      case "nullable":
      case "propertyOrdering":
      case "property_ordering":
        break;
      case "minItems":
      case "maxItems":
      case "minLength":
      case "maxLength":
      case "minProperties":
      case "maxProperties":
        // 64-bit numbers may be written as text.
        out[key] = typeof inner === "string" ? Number(inner) : inner;
        break;
      default:
        out[key] = inner;
    }
  }
  if (schema["nullable"] === true && typeof out["type"] === "string") out["type"] = [out["type"], "null"];
  return out;
}
