// Splits a model's text at code fences: prose with line breaks, and code that can be copied.
// Refuses to interpret anything else: what a model writes stays text.

export interface Part {
  isCode: boolean;
  /** What stands after the opening fence: "python". */
  language: string;
  text: string;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$/;

/** An open fence runs to the end: while an answer streams, its code is already shown as code. */
export function splitFences(text: string): Part[] {
  const parts: Part[] = [];
  let lines: string[] = [];
  let fence = "";
  let language = "";
  const finish = (isCode: boolean) => {
    const joined = lines.join("\n");
    // Blank lines around a fence belong to neither side.
    const content = isCode ? joined : joined.replace(/^\n+|\n+$/g, "");
    if (isCode || content !== "") parts.push({ isCode, language: isCode ? language : "", text: content });
    lines = [];
  };
  for (const line of text.split(/\r?\n/)) {
    const match = FENCE.exec(line);
    if (fence === "" && match) {
      finish(false);
      fence = match[1] ?? "";
      language = match[2] ?? "";
    } else if (fence !== "" && isEndOf(fence, line)) {
      finish(true);
      fence = "";
    } else lines.push(line);
  }
  if (fence !== "" || lines.length > 0) finish(fence !== "");
  return parts;
}

/** At least as many of the same sign, and nothing else. */
function isEndOf(fence: string, line: string): boolean {
  const trimmed = line.trim();
  return trimmed.length >= fence.length && trimmed === (fence[0] ?? "").repeat(trimmed.length);
}
