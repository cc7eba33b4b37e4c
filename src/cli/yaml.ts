// Writes a value as YAML that every reader understands alike: text in quotes as soon as there could be a doubt about it.
// Not the runtime's own writer: comments stand between the lines, and long texts keep their lines.

type Comments = (path: readonly string[]) => readonly string[];

/** Text that no reader of any version takes for something else. */
const PLAIN = /^[A-Za-z_/${(](?:[\w ./${}()+@*-]|:(?!$| ))*$/;
const WORDS = /^(?:true|false|null|yes|no|on|off|y|n|nan|inf|~)$/i;

function textOf(value: string): string {
  const isPlain = PLAIN.test(value) && !WORDS.test(value) && value === value.trim() && value.length < 200;
  return isPlain ? value : JSON.stringify(value);
}

const nameOf = (name: string): string =>
  /^(?:[A-Za-z_][\w./*-]*|[1-9]\d{0,8})$/.test(name) && !WORDS.test(name) ? name : JSON.stringify(name);

/** Whether a text keeps its lines as they are, unquoted and below a |. */
function isBlock(value: string): boolean {
  const lines = value.split("\n");
  return (
    lines.length > 1 &&
    lines[0] !== "" &&
    lines.every((line) => line === line.trimEnd() && !/[\p{Cc}\u2028\u2029\uFEFF]/u.test(line)) &&
    !/^\s/.test(value) &&
    !value.endsWith("\n\n")
  );
}

function block(value: string, indent: string): string {
  const ends = value.endsWith("\n");
  const lines = (ends ? value.slice(0, -1) : value).split("\n");
  return `${ends ? "|" : "|-"}\n${lines.map((line) => (line === "" ? "" : indent + line)).join("\n")}`;
}

function isScalar(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}

/** In one line, as JSON but with plain names. */
function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(", ")}]`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([name, each]) => `${nameOf(name)}: ${inline(each)}`)
      .join(", ")}}`;
  return typeof value === "string" && /^[\w][\w./-]*$/.test(value) && !/^\d/.test(value) && !WORDS.test(value)
    ? value
    : (JSON.stringify(value) ?? "null");
}

const MAX_INLINE = 100;

export function writeYaml(value: Readonly<Record<string, unknown>>, commentsOn: Comments = () => []): string {
  const lines: string[] = [];
  const write = (
    entries: Readonly<Record<string, unknown>>,
    indent: string,
    path: readonly string[],
  ): void => {
    for (const comment of commentsOn(path)) lines.push(`${indent}# ${comment}`);
    for (const [name, each] of Object.entries(entries))
      lines.push(...entry(indent, name, each, [...path, name]));
  };
  const entry = (indent: string, name: string, each: unknown, path: readonly string[]): string[] => {
    const head = `${indent}${nameOf(name)}:`;
    if (typeof each === "string")
      return [`${head} ${isBlock(each) ? block(each, `${indent}  `) : textOf(each)}`];
    if (isScalar(each)) return [`${head} ${JSON.stringify(each) ?? "null"}`];
    const short = inline(each);
    const isEmpty = short === "{}" || short === "[]";
    // Sections stay open, so that comments and differences have lines to stand on.
    const isShort = path.length > 2 || (path.length === 2 && path[0] !== "channels");
    if (Array.isArray(each)) {
      if (isEmpty || short.length <= MAX_INLINE) return [`${head} ${short}`];
      return [
        head,
        ...each.map((item) => `${indent}  - ${typeof item === "string" ? textOf(item) : inline(item)}`),
      ];
    }
    if (isEmpty || (isShort && short.length <= MAX_INLINE)) return [`${head} ${short}`];
    const from = lines.push(head);
    write(each as Record<string, unknown>, `${indent}  `, path);
    return lines.splice(from);
  };
  write(value, "", []);
  return `${lines.join("\n")}\n`;
}
