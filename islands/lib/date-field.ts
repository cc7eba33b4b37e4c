// What a field of date and time holds, by the visitor's clock, and the Unix seconds of it.

/** Unix seconds as the text of a `datetime-local` input in the browser's zone. */
export function localText(seconds: number): string {
  if (seconds <= 0) return "";
  const date = new Date(seconds * 1000);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}T${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** The other way; -1 for never, undefined for a text that is no date. */
export function secondsOf(text: string): number | undefined {
  if (text === "") return -1;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000);
}
