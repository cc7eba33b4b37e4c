// Cleans HTML that an administrator wrote (footer, notice, about, home): a list of harmless tags and attributes.
// Refuses everything else and says what it removed.

const TAGS = new Set(
  (
    "a abbr b blockquote br caption code dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i img ins " +
    "kbd li mark ol p pre q s small span strong sub summary sup table tbody td tfoot th thead tr u ul center font"
  ).split(" "),
);
/** Their text is code, not content. */
const DROPPED_WHOLE = new Set([
  "script",
  "style",
  "iframe",
  "object",
  "embed",
  "template",
  "noscript",
  "svg",
  "math",
  "form",
  // Read as text inside: without its own tags around it, it would be read as markup.
  "xmp",
  "textarea",
  "title",
  "noembed",
  "noframes",
  "plaintext",
]);
/** Neither class nor id: the console's own must stay its own. */
const ATTRIBUTES = new Set([
  "href",
  "src",
  "alt",
  "title",
  "width",
  "height",
  "colspan",
  "rowspan",
  "align",
  "lang",
  "target",
  "open",
  "style",
]);

export interface Sanitised {
  html: string;
  /** Names of removed tags and attributes, each once. */
  removed: string[];
}

const SCHEMES = new Set(["http", "https", "mailto", "tel"]);

/** Named characters that stand in addresses and styles; any other is left as it is written. */
const NAMED: Readonly<Record<string, string>> = {
  amp: "&",
  colon: ":",
  lpar: "(",
  rpar: ")",
  sol: "/",
  bsol: "\\",
  num: "#",
  quest: "?",
  period: ".",
  semi: ";",
  commat: "@",
  quot: '"',
  apos: "'",
  lt: "<",
  gt: ">",
  nbsp: "\u00a0",
  Tab: "\t",
  NewLine: "\n",
};
const MAX_CODE_POINT = 0x10ffff;

/** An attribute's value as a browser reads it: character references resolved once, with or without their semicolon. */
function decoded(value: string): string {
  return value.replaceAll(
    /&(?:#[xX]([0-9a-fA-F]+)|#(\d+)|([a-zA-Z]+));?/g,
    (whole, hex: string | undefined, decimal: string | undefined, name: string | undefined) => {
      if (name !== undefined) return Object.hasOwn(NAMED, name) ? (NAMED[name] ?? whole) : whole;
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      return code <= MAX_CODE_POINT ? String.fromCodePoint(code) : "\ufffd";
    },
  );
}

/** Lists the schemes that may stand there: whatever could hide another one is refused. */
function isSafeUrl(value: string): boolean {
  // Control characters and blanks inside a scheme are ignored by browsers, so they are ignored here too.
  const compact = decoded(value).replaceAll(/[\p{Cc}\p{Cf}\s]/gu, "");
  const [head = ""] = compact.split(/[/?#]/, 1);
  const end = head.indexOf(":");
  // A path of our own; a reference that is not known here may be a colon or a letter to a browser.
  if (end === -1) return !/&[a-z]/i.test(head);
  return SCHEMES.has(head.slice(0, end).toLowerCase());
}

function isSafeStyle(value: string): boolean {
  // Comments stand for nothing, between any two words.
  const style = decoded(value).replaceAll(/\/\*[^]*?\*\//g, "");
  return !/url\(|image-set|var\(|expression|@import|position\s*:\s*(fixed|absolute)|behavior|\\|\/\*|&[a-z]/i.test(
    style,
  );
}

/**
 * Ends a tag that was left open, in quotes or not: what follows on the page would be its attributes. What of it is text
 * by then is cut again.
 */
const CLOSING = `>"'>`;

export function sanitise(html: string): Sanitised {
  const removed = new Set<string>();
  const mark = crypto.randomUUID();
  const rewriter = new HTMLRewriter()
    .on("*", {
      element(element) {
        const tag = element.tagName.toLowerCase();
        if (!TAGS.has(tag)) {
          removed.add(`<${tag}>`);
          if (DROPPED_WHOLE.has(tag)) element.remove();
          else element.removeAndKeepContent();
          return;
        }
        // A copy: removing while walking would skip the next one.
        const attributes = Array.from(element.attributes);
        for (const [name, value] of attributes) {
          const lower = name.toLowerCase();
          // Of two with one name a browser reads the first, and removing takes away no more than that.
          const isSingle = attributes.filter(([other]) => other.toLowerCase() === lower).length === 1;
          const ok =
            isSingle &&
            ATTRIBUTES.has(lower) &&
            (lower !== "href" && lower !== "src" ? true : isSafeUrl(value)) &&
            (lower !== "style" || isSafeStyle(value));
          if (!ok) {
            removed.add(lower);
            for (const _ of attributes) element.removeAttribute(name);
          }
        }
        if (tag === "a") element.setAttribute("rel", "noreferrer");
      },
    })
    .onDocument({
      comments(comment) {
        comment.remove();
      },
      text(chunk) {
        const { text } = chunk;
        const end = [CLOSING + mark, CLOSING.slice(1) + mark, mark].find((each) => text.endsWith(each)) ?? "";
        // A stray bracket would begin a tag with whatever follows, once a tag between them is gone.
        const shown = text.slice(0, text.length - end.length).replaceAll("<", "&lt;");
        if (shown !== text) chunk.replace(shown, { html: true });
      },
    });
  const clean = rewriter.transform(html + CLOSING + mark);
  return { html: clean.replaceAll(mark, ""), removed: [...removed] };
}
