// A text cut to a length, for lists of choices.
// Refuses to leave half a character behind.

/** At most so many UTF-16 units, and an ellipsis where something was cut. */
export function shortText(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most).replace(/[\uD800-\uDBFF]$/, "")}…` : text;
}
