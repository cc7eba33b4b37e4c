// Says in the caller's language what a refused field should have been, from the schema that refused it.
// Refuses to repeat the value itself: it may be a secret, or very long.
import type { Language } from "../shared/enums.ts";
import { messageText } from "./messages.ts";

/** The pieces of JSON Schema that the console's bodies and queries are made of. */
interface Schema {
  type?: string;
  format?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
}

/** What a validator reports of the first value it refused. */
export interface RefusedValue {
  path?: string;
  message?: string;
  schema?: unknown;
}

/** The alternatives that a person may send: null means "not given", and a number's text form is the number again. */
function alternatives(schema: Schema): Schema[] {
  if (!schema.anyOf) return [schema];
  return schema.anyOf
    .flatMap(alternatives)
    .filter(({ type, format }) => type !== "null" && type !== "undefined" && (type !== "string" || !format));
}

function described(schema: Schema, language: Language): string {
  const { type, minimum: min, maximum: max, maxLength, maxItems } = schema;
  const say = (code: string, params: Record<string, string | number> = {}) =>
    messageText(code, language, params);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return say("expected_one_of", { values: schema.enum.map(String).join(", ") });
  switch (type) {
    case "integer":
    case "number": {
      const kind = type === "integer" ? "expected_whole" : "expected_number";
      if (min !== undefined && max !== undefined) return say(`${kind}_between`, { min, max });
      return min === undefined ? say(kind) : say(`${kind}_from`, { min });
    }
    case "string":
      return maxLength === undefined ? say("expected_text") : say("expected_text_up_to", { max: maxLength });
    case "boolean":
      return say("expected_bool");
    case "array":
      return maxItems === undefined ? say("expected_list") : say("expected_list_up_to", { max: maxItems });
    default:
      return say("expected_object");
  }
}

/** One sentence part, such as "a whole number from 0 to 5 is expected". */
export function expectedText({ schema, message = "" }: RefusedValue, language: Language): string {
  if (typeof schema !== "object" || schema === null) return "";
  const texts = alternatives(schema).map((each) => described(each, language));
  const values = [...new Set(texts)].join(messageText("expected_or", language));
  const isMissing = message.includes("required property");
  return messageText(isMissing ? "expected_missing" : "expected", language, { values });
}
