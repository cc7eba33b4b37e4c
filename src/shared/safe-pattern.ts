// Whether a regular expression is one that operators may write: short, and of a form whose running time nobody has to think of.
// Refuses nested quantifiers and back-references, in the browser as on the server (which runs patterns in linear time anyway).

const MAX_PATTERN_CHARACTERS = 200;

interface Group {
  /** A quantifier without a small bound, or a choice, stands inside. */
  repeats: boolean;
}

/** Index behind the class that begins at `from`. */
function endOfClass(pattern: string, from: number): number {
  let at = from + 1;
  if (pattern[at] === "^") at++;
  // A bracket in the first place is a character of the class.
  if (pattern[at] === "]") at++;
  while (at < pattern.length && pattern[at] !== "]") at += pattern[at] === "\\" ? 2 : 1;
  return at + 1;
}

const COUNTED = /^\{(\d*)(,?)(\d*)\}/;

/** How long the quantifier at `at` is, and whether it repeats; undefined where none stands there. */
function quantifierAt(pattern: string, at: number): { length: number; repeats: boolean } | undefined {
  const char = pattern[at];
  if (char === "*" || char === "+") return { length: 1, repeats: true };
  if (char === "?") return { length: 1, repeats: false };
  const counted = char === "{" ? COUNTED.exec(pattern.slice(at)) : null;
  if (!counted) return undefined;
  const [text, least = "", comma = "", most = ""] = counted;
  if (least === "" && most === "") return undefined;
  const highest = comma === "" ? Number(least) : most === "" ? Infinity : Number(most);
  return { length: text.length, repeats: highest > 1 };
}

export function isSafePattern(pattern: string): boolean {
  if (pattern === "" || pattern.length > MAX_PATTERN_CHARACTERS) return false;
  const open: Group[] = [{ repeats: false }];
  let at = 0;
  while (at < pattern.length) {
    const char = pattern[at];
    const group = open.at(-1);
    if (!group) return false;
    let closed: Group | undefined;
    if (char === "\\") {
      // \1 to \9 and \k<name> look back.
      if (/[1-9k]/.test(pattern[at + 1] ?? "")) return false;
      at += 2;
    } else if (char === "[") at = endOfClass(pattern, at);
    else if (char === "(") {
      open.push({ repeats: false });
      at++;
      continue;
    } else if (char === ")") {
      closed = open.pop();
      at++;
    } else at++;
    const outer = open.at(-1);
    if (!outer) return false;
    if (closed?.repeats) outer.repeats = true;
    const quantifier = quantifierAt(pattern, at);
    if (!quantifier) continue;
    if (quantifier.repeats && closed?.repeats) return false;
    if (quantifier.repeats) outer.repeats = true;
    at += quantifier.length;
    // Lazy and possessive forms.
    if (pattern[at] === "?" || pattern[at] === "+") at++;
  }
  return open.length === 1 && isRegExp(pattern);
}

/** Flags in front of a pattern are known to the engine of the server alone. */
const FLAGS = /^\(\?[imsU]+\)/;

function isRegExp(pattern: string): boolean {
  try {
    // Named groups have a letter more there.
    return new RegExp(pattern.replace(FLAGS, "").replaceAll("(?P<", "(?<")) instanceof RegExp;
  } catch {
    return false;
  }
}
