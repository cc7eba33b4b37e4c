// Schema of texts as clients send them in bodies and queries: bounded, and storable in both databases.
// Refuses NUL characters, which PostgreSQL cannot hold.
import { t } from "elysia";

/** A text of at most `maxLength` UTF-16 units without NUL. */
export function plainText(maxLength: number) {
  return t.String({ maxLength, pattern: "^[^\\u0000]*$" });
}

/** A field that older clients send as null when they mean "not given". */
export function given<T extends Parameters<typeof t.Optional>[0]>(schema: T) {
  return t.Optional(t.Union([schema, t.Null()]));
}
