// A JSON object out of a text that a person wrote into a field.
// Refuses lists, numbers and everything else that is no object.

/** An empty text is an empty object; undefined when it is no JSON or no object. */
export function jsonObject(text: string): Record<string, unknown> | undefined {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
