// The schema of an answer as Anthropic takes it: every object in it says that it has no other properties.
// Refuses nothing: what else a model cannot do with a schema its provider says.
import type { JsonObject } from "../canonical.ts";
import { asList, asObject } from "../json.ts";

/** Keywords that hold one schema, a list of them, or schemas by name. */
const ONE = new Set(["items", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems"]);
const LISTS = new Set(["anyOf", "allOf", "oneOf", "prefixItems"]);
const NAMED = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);

/**
 * The schema with `additionalProperties: false` on every object, without which Anthropic refuses it. `onLost` is called
 * where the client had said something else.
 */
export function closedSchema(value: unknown, onLost: () => void): unknown {
  const schema = asObject(value);
  if (!schema) return value;
  const out: JsonObject = {};
  for (const key in schema) {
    const inner = schema[key];
    if (key === "additionalProperties") continue;
    if (NAMED.has(key)) out[key] = closedByName(inner, onLost);
    else if (ONE.has(key) || LISTS.has(key)) out[key] = closedInside(inner, onLost);
    else out[key] = inner;
  }
  const said = schema["additionalProperties"];
  if (isOfObjects(schema)) {
    if (said !== undefined && said !== false) onLost();
    out["additionalProperties"] = false;
  } else if (said !== undefined) out["additionalProperties"] = said;
  return out;
}

/** `items` may be one schema or, in older drafts, a list. */
function closedInside(value: unknown, onLost: () => void): unknown {
  return Array.isArray(value) ? value.map((each) => closedSchema(each, onLost)) : closedSchema(value, onLost);
}

function closedByName(value: unknown, onLost: () => void): unknown {
  const named = asObject(value);
  if (!named) return value;
  return Object.fromEntries(Object.entries(named).map(([name, each]) => [name, closedSchema(each, onLost)]));
}

function isOfObjects({ type, properties }: JsonObject): boolean {
  if (type === undefined) return asObject(properties) !== undefined;
  return type === "object" || asList(type).includes("object");
}
