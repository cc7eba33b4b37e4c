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

/** The types lack one of the options. */
const OPTIONS: IOptions & { allowedEmptyAttributes: string[] } = {
  allowedTags: TAGS.split(" "),
  allowedAttributes: { "*": ATTRIBUTES.split(" ") },
  allowedEmptyAttributes: ["alt", "href"],
  allowedSchemes: SCHEMES,
  nonTextTags: DROPPED_WITH_CONTENT.split(" "),
  parseStyleAttributes: false,
  transformTags: {
    "*": (tagName, attribs) => {
      const kept: Record<string, string> = {};
      for (const [name, value] of Object.entries(attribs)) {
        if ((name === "href" || name === "src") && !isSafeUrl(value)) continue;
        if ((name === "style" && !isSafeStyle(value)) || name === "rel") continue;
        kept[name] = value;
      }
      if (tagName === "a") kept["rel"] = "noreferrer";
      return { tagName, attribs: kept };
    },
  },
};

/** An installation has few such texts, and every page shows one of them. */
const MAX_KEPT = 16;
const kept = new Map<string, string>();

export function sanitise(html: string): string {
  const known = kept.get(html);
  if (known !== undefined) return known;
  // Its module is evaluated with the first text: most installations have none.
  const sanitizeHtml = require("sanitize-html") as typeof import("sanitize-html");
  const clean = sanitizeHtml(html, OPTIONS);
  if (kept.size >= MAX_KEPT) kept.clear();
  kept.set(html, clean);
  return clean;
}
