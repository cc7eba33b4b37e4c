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

function isSafeUrl(value: string): boolean {
  // Control characters and blanks inside a scheme are ignored by browsers, so they are ignored here too.
  const compact = value.replaceAll(/[\p{Cc}\s]/gu, "").toLowerCase();
  const scheme = /^([a-z][a-z0-9+.-]*):/.exec(compact)?.[1];
  return scheme === undefined || ["http", "https", "mailto", "tel"].includes(scheme);
}

function isSafeStyle(value: string): boolean {
  return !/url\(|expression|@import|position\s*:\s*(fixed|absolute)|behavior|\\/i.test(value);
}

export function sanitise(html: string): Sanitised {
  const removed = new Set<string>();
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
        for (const [name, value] of Array.from(element.attributes)) {
          const lower = name.toLowerCase();
          const ok =
            ATTRIBUTES.has(lower) &&
            (lower !== "href" && lower !== "src" ? true : isSafeUrl(value)) &&
            (lower !== "style" || isSafeStyle(value));
          if (!ok) {
            removed.add(lower);
            element.removeAttribute(name);
          }
        }
        if (tag === "a") element.setAttribute("rel", "noreferrer");
      },
    })
    .onDocument({
      comments(comment) {
        comment.remove();
      },
    });
  return { html: rewriter.transform(html), removed: [...removed] };
}
