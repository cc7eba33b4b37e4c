// A route's schema as the document shows it: what checks a value, without what is only there for the framework.
import type { Schema } from "./schema.ts";

/** Forms in which the framework also takes a number or a switch: as text, as query strings have them. */
const AS_TEXT = new Set(["integer", "numeric", "boolean", "ObjectString", "ArrayString"]);
/** No text of the console's may hold NUL; that is not worth a line in every field. */
const NO_NUL = "^[^\\u0000]*$";

const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isAsText = (schema: unknown): boolean =>
  isObject(schema) && schema["type"] === "string" && AS_TEXT.has(String(schema["format"]));

/** `{anyOf: [X, null]}` of a plain type is that type or null, which every generator understands. */
function orNull(members: readonly Schema[]): Schema | undefined {
  const [first, second, ...more] = members;
  if (!first || more.length > 0 || second?.["type"] !== "null" || typeof first["type"] !== "string")
    return undefined;
  return "enum" in first || "const" in first ? undefined : { ...first, type: [first["type"], "null"] };
}

/** A plain copy: TypeBox marks its schemas with symbols, which end here. */
export function declaredSchema(schema: Schema): Schema {
  const { anyOf, ...rest } = schema;
  const shown: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(rest)) {
    if (keyword === "pattern" && value === NO_NUL) continue;
    if (Array.isArray(value))
      shown[keyword] = value.map((each) => (isObject(each) ? declaredSchema(each) : each));
    else if (keyword === "properties" && isObject(value))
      shown[keyword] = Object.fromEntries(
        Object.entries(value).map(([name, member]) => [name, declaredSchema(member as Schema)]),
      );
    else shown[keyword] = isObject(value) ? declaredSchema(value) : value;
  }
  if (!Array.isArray(anyOf)) return shown;
  const members = (anyOf as Schema[]).filter((each) => !isAsText(each)).map(declaredSchema);
  if (members.length === 1) return { ...shown, ...members[0] };
  const literals = members.map((each) => each["const"]);
  if (literals.every((each) => typeof each === "string")) return { ...shown, type: "string", enum: literals };
  return { ...shown, ...(orNull(members) ?? { anyOf: members }) };
}
