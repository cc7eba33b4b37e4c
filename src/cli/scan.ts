// Where each name of a YAML or JSON file stands, and what in it means something else than it seems to: readers keep the last of
// two equal names and take 012 for 12 or for 10 without a word.
// Refuses what a settings file does not need: tags, anchors, merges, several documents, plain text over several lines.

/** A place in a file's value: names of maps and numbers of list items, as texts. */
export type Path = readonly string[];

export interface ScanProblem {
  line: number;
  message: string;
}

export interface Scan {
  /** Line of each name and item, by `placeKey`. */
  lines: ReadonlyMap<string, number>;
  problems: ScanProblem[];
}

export const placeKey = (path: Path): string => JSON.stringify(path);

interface Line {
  no: number;
  /** Offset of the line's content in the text. */
  start: number;
  indent: number;
  content: string;
}

/** Ends the scan: beyond it nothing can be said of places. */
class Unreadable extends Error {
  constructor(
    readonly line: number,
    message: string,
  ) {
    super(message);
  }
}

const SPECIAL: Readonly<Record<string, string>> = {
  "&": "anchors (&) are not read here: write the value out",
  "*": "aliases (*) are not read here: write the value out",
  "!": "tags (!) are not read here",
  "@": "text that begins with @ needs quotes",
  "`": "text that begins with ` needs quotes",
  "%": "text that begins with % needs quotes",
  "?": "names over several lines (?) are not read here",
  "|": "a block of text (|) cannot stand here",
  ">": "a block of text (>) cannot stand here",
};

/** What YAML's versions and readers disagree about, with what to do. */
const DOUBTFUL: readonly [pattern: RegExp, reason: string][] = [
  [/^[-+]?0[0-9_]+$/, "looks octal: write it without the leading 0, or in quotes"],
  [/^[-+]?0[xXoObB][0-9a-fA-F_]+$/, "is not written in decimal: write the decimal number, or quotes"],
  [/^[-+]?\.(?:inf|nan)$/i, "is no number that anything here can be"],
  [/^[-+]?\d[\d_]*_[\d_]*(?:\.\d+)?$/, "has underscores: write the number without them, or in quotes"],
  [/^[-+]?\d+(?::[0-5]?\d)+(?:\.\d*)?$/, "looks like a number of base 60: write it in quotes"],
  [/^(?:yes|no|on|off|y|n)$/i, "is true or false to some readers: write true, false, or quotes"],
];

function doubtOf(text: string): string | undefined {
  const found = DOUBTFUL.find(([pattern]) => pattern.test(text));
  if (found) return found[1];
  const isWhole = /^[-+]?\d+$/.test(text);
  return isWhole && !Number.isSafeInteger(Number(text)) ? "has more digits than a number keeps" : undefined;
}

/** A name that stands without quotes must be the name that readers make of it. */
function nameDoubt(text: string): string | undefined {
  const doubt = doubtOf(text);
  if (doubt !== undefined) return doubt;
  const isNumber = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/.test(text);
  if (isNumber && String(Number(text)) !== text) return "is read as a number: write the name in quotes";
  return /^(?:~|null|true|false)$/i.test(text) ? "is no text: write the name in quotes" : undefined;
}

class Scanner {
  readonly lines = new Map<string, number>();
  readonly problems: ScanProblem[] = [];
  private readonly rows: Line[];
  private readonly starts: number[];
  private at = 0;

  constructor(private readonly text: string) {
    let start = 0;
    this.starts = [];
    this.rows = text.split("\n").map((line, index) => {
      const indent = line.length - line.trimStart().length;
      this.starts.push(start);
      const row = { no: index + 1, start: start + indent, indent, content: line.slice(indent).trimEnd() };
      start += line.length + 1;
      return row;
    });
  }

  document(): void {
    const first = this.next();
    if (!first) return;
    if (first.content === "---") this.at++;
    const row = this.next();
    if (!row) return;
    if (/^[{[]/.test(row.content)) this.flowIn(row, 0, []);
    else this.node(row, []);
    const left = this.next();
    if (left) throw new Unreadable(left.no, this.strayReason(left));
  }

  private strayReason({ content }: Line): string {
    return /^(?:---|\.\.\.)/.test(content)
      ? "a file holds one document"
      : "this line belongs to nothing: check how far it is indented";
  }

  /** The next line that says something; it stays the next one. */
  private next(): Line | undefined {
    for (;;) {
      const row = this.rows[this.at];
      if (!row) return undefined;
      if (row.content !== "" && !row.content.startsWith("#")) {
        const before = this.text.slice(this.starts[row.no - 1], row.start);
        if (before.includes("\t")) throw new Unreadable(row.no, "a tab cannot indent: use blanks");
        if (row.content.startsWith("%")) throw new Unreadable(row.no, "directives (%) are not read here");
        return row;
      }
      this.at++;
    }
  }

  private problem(line: number, message: string): void {
    this.problems.push({ line, message });
  }

  /** Answers the place for what stands below: of a second one another, whose names are not all second ones too. */
  private note(path: Path, line: number): Path {
    const key = placeKey(path);
    const earlier = this.lines.get(key);
    if (earlier === undefined) {
      this.lines.set(key, line);
      return path;
    }
    this.problem(line, `"${path.at(-1)}" stands in line ${earlier} already: a name may stand once`);
    return [...path, `again in line ${line}`];
  }

  private node(row: Line, path: Path): void {
    if (row.content === "-" || row.content.startsWith("- ")) this.sequence(row.indent, path);
    else this.mapping(row.indent, path);
  }

  private mapping(indent: number, path: Path): void {
    for (;;) {
      const row = this.next();
      if (!row || row.indent < indent) return;
      if (row.indent > indent) throw new Unreadable(row.no, this.strayReason(row));
      if (row.content === "-" || row.content.startsWith("- ")) return;
      const found = this.nameIn(row);
      const here = this.note([...path, found.name], row.no);
      this.value(row, found.rest, indent, here, true);
    }
  }

  /** The name before the colon, and where the value begins. */
  private nameIn(row: Line): { name: string; rest: number } {
    const { content, no } = row;
    if (/^---|^\.\.\./.test(content)) throw new Unreadable(no, this.strayReason(row));
    const quoted = /^(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)')\s*:(?=\s|$)/.exec(content);
    if (quoted)
      return { name: unquoted(quoted[0].replace(/\s*:$/, "")), rest: afterBlanks(content, quoted[0].length) };
    const reason = SPECIAL[content.charAt(0)];
    if (reason !== undefined && !(content.startsWith("?") && !/^\?(\s|$)/.test(content)))
      throw new Unreadable(no, reason);
    const plain = /^([^#"'{}[\],|>](?:[^:#]|:(?!\s|$)|(?<!\s)#)*?)\s*:(?=\s|$)/.exec(content);
    const name = plain?.[1];
    if (plain === null || name === undefined)
      throw new Unreadable(no, `a name and a colon should stand here, not ${shortened(content)}`);
    if (name === "<<") throw new Unreadable(no, "merges (<<) are not read here: write the values out");
    const doubt = nameDoubt(name);
    if (doubt !== undefined) this.problem(no, `"${name}" ${doubt}`);
    return { name, rest: afterBlanks(content, plain[0].length) };
  }

  private sequence(indent: number, path: Path): void {
    for (let index = 0; ; index++) {
      const row = this.next();
      if (!row || row.indent !== indent || !(row.content === "-" || row.content.startsWith("- "))) {
        if (row && row.indent > indent) throw new Unreadable(row.no, this.strayReason(row));
        return;
      }
      const here = this.note([...path, String(index)], row.no);
      const rest = afterBlanks(row.content, 1);
      const inner: Line = {
        no: row.no,
        start: row.start + rest,
        indent: row.indent + rest,
        content: row.content.slice(rest),
      };
      const isNested = inner.content === "-" || inner.content.startsWith("- ") || holdsName(inner.content);
      if (!isNested) this.value(row, rest, indent, here, false);
      else {
        // What stands behind the dash begins a map or a list of its own.
        this.rows[this.at] = inner;
        this.node(inner, here);
      }
    }
  }

  /** The value behind a name or a dash; leaves the scanner behind it. */
  private value(row: Line, from: number, indent: number, path: Path, isNamed: boolean): void {
    const rest = row.content.slice(from);
    const first = rest.charAt(0);
    if (rest === "" || first === "#") {
      this.at++;
      const below = this.next();
      if (!below) return;
      const isList = below.content === "-" || below.content.startsWith("- ");
      if (below.indent > indent || (isNamed && isList && below.indent === indent)) this.below(below, path);
      return;
    }
    if (first === "|" || first === ">") return this.blockText(row, rest, indent);
    if (first === "{" || first === "[") return this.flowIn(row, from, path);
    if (first === '"' || first === "'") return this.endLine(this.quoted(row.start + from), row);
    const reason = SPECIAL[first];
    if (reason !== undefined && first !== "?") throw new Unreadable(row.no, reason);
    this.plain(rest.replace(/\s#.*$/, "").trimEnd(), row.no);
    this.at++;
    const below = this.next();
    if (below && below.indent > indent)
      throw new Unreadable(
        below.no,
        "text that goes on in the next line needs quotes, or | above it; or this line is indented too far",
      );
  }

  private below(row: Line, path: Path): void {
    const { content } = row;
    const isStructure = content === "-" || content.startsWith("- ") || holdsName(content);
    if (isStructure || !/^["'{[|>]/.test(content)) this.node(row, path);
    else this.value(row, 0, row.indent - 1, path, false);
  }

  private plain(text: string, line: number): void {
    if (/:(\s|$)/.test(text)) throw new Unreadable(line, "text with a colon and a blank needs quotes");
    const doubt = doubtOf(text);
    if (doubt !== undefined) this.problem(line, `${text} ${doubt}`);
  }

  private blockText(row: Line, header: string, indent: number): void {
    if (!/^[|>](?:[-+]?[1-9]?|[1-9][-+])\s*(?:\s#.*)?$/.test(header))
      throw new Unreadable(row.no, `${shortened(header)} is no beginning of a text over several lines`);
    this.at++;
    for (let line = this.rows[this.at]; line; line = this.rows[this.at]) {
      if (line.content !== "" && line.indent <= indent) return;
      this.at++;
    }
  }

  // --- by character: quotes, { } and [ ] -----------------------------------------------------------------------------

  private lineOf(offset: number): number {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  }

  /** Nothing but a comment may follow in the line of the offset; goes on behind that line. */
  private endLine(offset: number, from: Line): void {
    const no = this.lineOf(Math.max(offset - 1, from.start));
    const end = this.starts[no] === undefined ? this.text.length : this.starts[no] - 1;
    const left = this.text.slice(offset, end);
    if (!/^\s*(?:\s#.*)?$/.test(left))
      throw new Unreadable(no, `nothing may follow here: ${shortened(left.trim())}`);
    this.at = no;
  }

  private flowIn(row: Line, from: number, path: Path): void {
    this.endLine(this.flow(row.start + from, path), row);
  }

  /** Offset behind the quoted text that begins at the offset. */
  private quoted(offset: number): number {
    const mark = this.text.charAt(offset);
    for (let at = offset + 1; at < this.text.length; at++) {
      const char = this.text.charAt(at);
      if (mark === '"' && char === "\\") at++;
      else if (char === mark) {
        if (mark === '"' || this.text.charAt(at + 1) !== "'") return at + 1;
        at++;
      }
    }
    throw new Unreadable(this.lineOf(offset), "the quote that begins here does not end");
  }

  private skipBlanks(from: number): number {
    let at = from;
    for (; at < this.text.length; at++) {
      const char = this.text.charAt(at);
      if (char === "#" && /\s/.test(this.text.charAt(at - 1))) {
        while (at < this.text.length && this.text.charAt(at) !== "\n") at++;
      } else if (!/\s/.test(char)) break;
    }
    return at;
  }

  private flow(from: number, path: Path): number {
    const open = this.text.charAt(from);
    const close = open === "{" ? "}" : "]";
    let at = this.skipBlanks(from + 1);
    for (let index = 0; ; index++) {
      if (at >= this.text.length)
        throw new Unreadable(this.lineOf(from), `the ${open} that begins here does not end`);
      if (this.text.charAt(at) === close) return at + 1;
      at = open === "{" ? this.flowPair(at, path) : this.flowItem(at, [...path, String(index)]);
      at = this.skipBlanks(at);
      const char = this.text.charAt(at);
      if (char === ",") at = this.skipBlanks(at + 1);
      else if (char !== close && at < this.text.length)
        throw new Unreadable(
          this.lineOf(at),
          `a comma or ${close} should stand before ${shortened(this.text.slice(at))}`,
        );
    }
  }

  private flowItem(at: number, path: Path): number {
    return this.flowValue(at, this.note(path, this.lineOf(at)));
  }

  private flowPair(from: number, path: Path): number {
    const line = this.lineOf(from);
    let end = this.flowEnd(from);
    const written = this.text.slice(from, end);
    const isQuoted = /^["']/.test(written);
    const name = isQuoted ? unquoted(written) : written;
    if (name === "<<" && !isQuoted)
      throw new Unreadable(line, "merges (<<) are not read here: write the values out");
    const doubt = isQuoted ? undefined : nameDoubt(name);
    if (doubt !== undefined) this.problem(line, `"${name}" ${doubt}`);
    const here = this.note([...path, name], line);
    end = this.skipBlanks(end);
    if (this.text.charAt(end) !== ":")
      throw new Unreadable(line, `a colon should follow ${shortened(written)}`);
    return this.flowValue(this.skipBlanks(end + 1), here);
  }

  private flowValue(at: number, path: Path): number {
    const char = this.text.charAt(at);
    if (char === "{" || char === "[") return this.flow(at, path);
    const end = this.flowEnd(at);
    if (char !== '"' && char !== "'") this.plain(this.text.slice(at, end), this.lineOf(at));
    return end;
  }

  /** Offset behind a quoted or plain text within { } or [ ]. */
  private flowEnd(at: number): number {
    const char = this.text.charAt(at);
    if (char === '"' || char === "'") return this.quoted(at);
    const reason = SPECIAL[char];
    if (reason !== undefined) throw new Unreadable(this.lineOf(at), reason);
    const found = /^(?:[^\s,{}[\]:#]|:(?![\s,{}[\]]|$)|(?<!\s)#| +(?![\s,{}[\]:#]))+/.exec(
      this.text.slice(at, at + 4096),
    );
    const end = at + (found?.[0].length ?? 0);
    if (end === at)
      throw new Unreadable(this.lineOf(at), `${shortened(this.text.slice(at))} needs quotes here`);
    if (/[{[]/.test(this.text.charAt(end)))
      throw new Unreadable(this.lineOf(at), "text with { or [ needs quotes here");
    return end;
  }
}

function afterBlanks(text: string, from: number): number {
  let at = from;
  while (at < text.length && /\s/.test(text.charAt(at))) at++;
  return at;
}

function shortened(text: string): string {
  const line = text.split("\n")[0] ?? "";
  return JSON.stringify(line.length > 40 ? `${line.slice(0, 40)}…` : line);
}

/** Whether the line begins a map. */
function holdsName(content: string): boolean {
  if (/^["']/.test(content)) return /^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*:(?=\s|$)/.test(content);
  return /^[^#{}[\],|>](?:[^:#]|:(?!\s|$)|(?<!\s)#)*?\s*:(?=\s|$)/.test(content);
}

/** The name within quotes; escapes are left to the reader of the whole file. */
function unquoted(written: string): string {
  if (written.startsWith("'")) return written.slice(1, -1).replaceAll("''", "'");
  try {
    return JSON.parse(written) as string;
  } catch {
    return written.slice(1, -1);
  }
}

/** Scans a text whose lines end in \n. */
export function scanText(text: string): Scan {
  const scanner = new Scanner(text);
  try {
    scanner.document();
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    scanner.problems.push({ line: error.line, message: error.message });
  }
  return { lines: scanner.lines, problems: scanner.problems };
}

/** Every place of a value, as the scan should have found them. */
export function placesOf(value: unknown, path: Path = []): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => {
    const here = [...path, name];
    return [placeKey(here), ...placesOf(each, here)];
  });
}
