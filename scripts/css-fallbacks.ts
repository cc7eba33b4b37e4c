// Takes out of the compiled style what only browsers without color-mix() read: Tailwind writes each such colour twice.
// Refuses to touch any other condition.

const CONDITION = "@supports (color:color-mix(in lab, red, red)){";

/** Where the block ends that begins before `from`: the place of its closing brace. */
function endOf(css: string, from: number): number {
  let depth = 1;
  let at = from;
  for (; depth > 0; at++) {
    if (css[at] === "{") depth++;
    else if (css[at] === "}") depth--;
  }
  return at - 1;
}

const propertyOf = (declaration: string) => declaration.slice(0, declaration.indexOf(":"));

/** The declarations of a rule with those of a second one for the same elements over them. */
function laidOver(first: string, second: string): string {
  const later = second.split(";");
  const replaced = new Set(later.map(propertyOf));
  return [
    ...first.split(";").filter((each) => each !== "" && !replaced.has(propertyOf(each))),
    ...later,
  ].join(";");
}

/** One rule by itself, of values in which a semicolon can only end a declaration. */
const PLAIN_RULE = /^([^{}]+)\{([^{}"']*)\}$/;

/**
 * Every browser that knows oklch(), in which all our colours are written, knows color-mix() a few versions later at most
 * (Chrome and Firefox in the same one, Safari 16.2). Conditions go, and with them the colours that they replaced.
 */
export function withoutFallbacks(css: string): string {
  let done = "";
  let rest = css;
  for (let at = rest.indexOf(CONDITION); at >= 0; at = rest.indexOf(CONDITION)) {
    done += rest.slice(0, at);
    const start = at + CONDITION.length;
    const end = endOf(rest, start);
    const body = rest.slice(start, end);
    rest = rest.slice(end + 1);
    const [, selector, declarations] = PLAIN_RULE.exec(body) ?? [];
    const opening = done.lastIndexOf("{");
    const begin = selector === undefined ? -1 : opening - selector.length;
    const isSame =
      selector !== undefined &&
      done.endsWith("}") &&
      done.slice(begin, opening) === selector &&
      /[{};]/.test(done[begin - 1] ?? "}") &&
      !done.slice(opening + 1, -1).includes("}");
    done = isSame
      ? `${done.slice(0, opening + 1)}${laidOver(done.slice(opening + 1, -1), declarations ?? "")}}`
      : done + body;
  }
  return done + rest;
}
