// Where in an identity server's answer a value stands: keys joined by dots, `\.` for a dot inside a key, digits for places in
// lists. Refuses every other notation, so that nobody relies on wildcards or filters that do nothing.

const MAX_CHARACTERS = 200;
const MAX_STEPS = 10;
/** Wildcards, filters and brackets of other notations; control characters and blanks stand in no claim's name. */
// oxlint-disable-next-line no-control-regex
const FOREIGN = /[\u0000-\u0020\u007f*?[\]{}|()"']/;
/** What other notations give a meaning to at the start of a step. */
const FOREIGN_START = /^[#@$]/;

/** The steps of a path; undefined where it is none. */
export function parsePath(text: string): string[] | undefined {
  if (text === "" || text.length > MAX_CHARACTERS || FOREIGN.test(text)) return undefined;
  const steps: string[] = [""];
  for (let at = 0; at < text.length; at++) {
    const sign = text.charAt(at);
    if (sign === "\\") {
      if (text.charAt(at + 1) !== ".") return undefined;
      steps[steps.length - 1] += ".";
      at++;
    } else if (sign === ".") steps.push("");
    else steps[steps.length - 1] += sign;
  }
  if (steps.length > MAX_STEPS) return undefined;
  return steps.some((step) => step === "" || FOREIGN_START.test(step)) ? undefined : steps;
}

/** What stands there; undefined for what is missing, and for null, by which servers say the same. */
export function valueAt(claims: unknown, path: string): unknown {
  let at = claims;
  for (const step of parsePath(path) ?? [undefined]) {
    if (step === undefined || typeof at !== "object" || at === null) return undefined;
    if (Array.isArray(at)) at = /^(0|[1-9]\d{0,5})$/.test(step) ? (at as unknown[])[Number(step)] : undefined;
    else at = Object.hasOwn(at, step) ? (at as Record<string, unknown>)[step] : undefined;
  }
  return at ?? undefined;
}

/** A text, or a number as one; undefined for everything else, and for what nobody could read. */
export function textAt(claims: unknown, path: string): string | undefined {
  const value = valueAt(claims, path);
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : undefined;
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

const MAX_SUBJECT = 255;

/**
 * Whom the server means: a text, or an integer below 2^53. Larger ones have lost digits when they were read, and would be
 * somebody else.
 */
export function subjectAt(claims: unknown, path: string): string | undefined {
  const value = valueAt(claims, path);
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : undefined;
  if (typeof value !== "string" || value === "" || value.length > MAX_SUBJECT) return undefined;
  // oxlint-disable-next-line no-control-regex
  return /[\u0000-\u001f\u007f]/.test(value) || !value.isWellFormed() ? undefined : value;
}
