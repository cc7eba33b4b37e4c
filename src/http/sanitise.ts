// Cleans HTML that an administrator wrote (footer, notice, about, home): a list of harmless tags and attributes.
// Refuses everything else: what stands in none of the lists is cut out.
import type { IOptions } from "sanitize-html";

const TAGS =
  "a abbr b blockquote br caption code dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i img ins " +
  "kbd li mark ol p pre q s small span strong sub summary sup table tbody td tfoot th thead tr u ul center font";

/** These go with all that is in them: it is code, or a browser reads it by other rules than the rest. */
const DROPPED_WITH_CONTENT =
  "script style iframe object embed template noscript svg math form select option xmp textarea title noembed noframes plaintext";

/** Neither class nor id: the console's own must stay its own. */
const ATTRIBUTES = "href src alt title width height colspan rowspan align lang target open style rel";

const SCHEMES = ["http", "https", "mailto", "tel"];

/** A path of our own, or one of the schemes; what could hide another one from a reader of addresses is refused. */
function isSafeUrl(value: string): boolean {
  // Control characters and blanks inside a scheme are ignored by browsers, so they are ignored here too.
  const compact = value.replaceAll(/[\p{Cc}\p{Cf}\s]/gu, "");
  const [head = ""] = compact.split(/[/?#]/, 1);
  const end = head.indexOf(":");
  // A reference that the parser does not know may be a colon or a letter to a browser.
  if (end === -1) return !/&[a-z]/i.test(head);
  return SCHEMES.includes(head.slice(0, end).toLowerCase());
}

/** Nothing that fetches, and nothing that leaves its place on the page. */
function isSafeStyle(value: string): boolean {
  // Comments stand for nothing, between any two words.
  const style = value.replaceAll(/\/\*[^]*?\*\//g, "");
  return !/url\(|image-set|var\(|expression|@import|position\s*:\s*(fixed|absolute)|behavior|\\|\/\*|&[a-z]/i.test(
    style,
  );
}

const TAG_SET = new Set(TAGS.split(" "));
const ATTRIBUTE_SET = new Set(ATTRIBUTES.split(" "));

/** Something that was cut out: a tag, an attribute of any tag, or an attribute whose value is not taken. */
export interface Removal {
  kind: "tag" | "attribute" | "value";
  /** In small letters: `script`, `onclick`; of a value the attribute, `href`. */
  name: string;
  count: number;
}

/** Kinds and names that people wrote are told up to here; whoever pastes a whole page need not read more. */
const MOST_REMOVALS = 50;
const MAX_NAME = 64;

type Note = (kind: Removal["kind"], name: string) => void;

/** The types lack one of the options. */
function optionsOf(note: Note): IOptions & { allowedEmptyAttributes: string[] } {
  return {
    allowedTags: TAGS.split(" "),
    allowedAttributes: { "*": ATTRIBUTES.split(" ") },
    allowedEmptyAttributes: ["alt", "href"],
    allowedSchemes: SCHEMES,
    nonTextTags: DROPPED_WITH_CONTENT.split(" "),
    parseStyleAttributes: false,
    transformTags: {
      "*": (tagName, attribs) => {
        const isKept = TAG_SET.has(tagName);
        if (!isKept) note("tag", tagName);
        const kept: Record<string, string> = {};
        for (const [name, value] of Object.entries(attribs)) {
          // Ours replaces it, whatever it was.
          if (name === "rel") continue;
          const isBad =
            ((name === "href" || name === "src") && !isSafeUrl(value)) ||
            (name === "style" && !isSafeStyle(value));
          if (isKept && !ATTRIBUTE_SET.has(name)) note("attribute", name);
          else if (isKept && isBad) note("value", name);
          if (!isBad) kept[name] = value;
        }
        if (tagName === "a") kept["rel"] = "noreferrer";
        return { tagName, attribs: kept };
      },
    },
  };
}

/** More looks than any text needs; one that still changes is shown as the text that it is. */
const MAX_LOOKS = 8;

interface Cleaned {
  html: string;
  /** What the first look cut out, most first. */
  removed: Removal[];
}

/** Cleans until a further look changes nothing: every parser that reads the result then reads the same. */
export function sanitiseWithReport(dirty: string): Cleaned {
  // Its module is evaluated with the first text: most installations have none.
  const sanitizeHtml = require("sanitize-html") as typeof import("sanitize-html");
  const found = new Map<string, Removal>();
  const note: Note = (kind, written) => {
    const name = written.slice(0, MAX_NAME);
    const key = `${kind} ${name}`;
    const known = found.get(key);
    if (known) known.count++;
    else if (found.size < MOST_REMOVALS) found.set(key, { kind, name, count: 1 });
  };
  let html = sanitizeHtml(dirty, optionsOf(note));
  const removed = [...found.values()].sort((a, b) => b.count - a.count);
  const silent = optionsOf(() => undefined);
  for (let look = 1; look < MAX_LOOKS; look++) {
    const again = sanitizeHtml(html, silent);
    if (again === html) return { html, removed };
    html = again;
  }
  return { html: Bun.escapeHTML(dirty), removed };
}

/** An installation has few such texts, and every page shows one of them. */
const MAX_KEPT = 16;
const kept = new Map<string, string>();

/** The clean HTML of an operator's text; the last few are kept. */
export function sanitise(html: string): string {
  const known = kept.get(html);
  if (known !== undefined) return known;
  const clean = sanitiseWithReport(html).html;
  if (kept.size >= MAX_KEPT) kept.clear();
  kept.set(html, clean);
  return clean;
}
