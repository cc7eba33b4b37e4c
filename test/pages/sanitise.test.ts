// What an operator's HTML may do in other people's browsers: nothing runs, however its addresses are written.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { sanitise } from "../../src/http/sanitise.ts";

/** One character as HTML lets it be written. */
const written = (char: string) => {
  const code = char.charCodeAt(0);
  return fc.oneof(
    fc.constantFrom(char, char.toUpperCase()),
    fc
      .tuple(fc.constantFrom("", "0", "0000000"), fc.constantFrom("", ";"))
      .map(([zeros, end]) => `&#${zeros}${code}${end}`),
    fc
      .tuple(fc.constantFrom("x", "X"), fc.constantFrom("", "00"), fc.constantFrom("", ";"))
      .map(([x, zeros, end]) => `&#${x}${zeros}${code.toString(16)}${end}`),
    ...(char === ":" ? [fc.constant("&colon;")] : []),
  );
};
/** What browsers skip inside a scheme. */
const skipped = fc.constantFrom(
  "",
  "",
  "",
  "\t",
  "\n",
  "\r",
  "&Tab;",
  "&NewLine;",
  "&#9;",
  "&#x0A;",
  "&#13;",
);
const before = fc.constantFrom("", " ", "\u0001", "&#1;", "&#32;", "\u001f ", "\t");
const writtenWord = (word: string) =>
  fc
    .tuple(
      before,
      ...word.split("").map((char) => fc.tuple(written(char), skipped).map((pair) => pair.join(""))),
    )
    .map((parts) => parts.join(""));
const quotes = fc.constantFrom('"', "'");

/** A reference without its semicolon would swallow the digit or letter after it: then it is another word. */
const read = (value: string): string =>
  value
    .replaceAll(/&#[xX]([0-9a-fA-F]+);?/g, (_, hex: string) =>
      String.fromCodePoint(Number.parseInt(hex, 16) % 0x10ffff),
    )
    .replaceAll(/&#(\d+);?/g, (_, decimal: string) => String.fromCodePoint(Number(decimal) % 0x10ffff))
    .replaceAll("&colon;", ":")
    .replaceAll(/&(Tab|NewLine);|[\p{Cc} ]/gu, "")
    .toLowerCase();

describe("addresses", () => {
  test("that run something are taken away, however they are written", () => {
    const words = fc
      .constantFrom("javascript:", "vbscript:", "data:")
      .chain((word) => fc.tuple(fc.constant(word), writtenWord(word)));
    let looked = 0;
    fc.assert(
      fc.property(
        words,
        quotes,
        fc.constantFrom(["a", "href"], ["img", "src"]),
        ([word, text], quote, [tag, name]) => {
          if (!read(`${text}!`).startsWith(word)) return;
          looked++;
          const html = sanitise(`<${tag} ${name}=${quote}${text}!alert(1)${quote}>x`);
          expect([text, html.includes("alert"), html.includes(`${name}=`)]).toEqual([text, false, false]);
        },
      ),
      { numRuns: 2000 },
    );
    expect(looked).toBeGreaterThan(500);
  });

  test.each([
    "https://weir.example/a?b=1&amp;c=2#d:e",
    "HTTP://weir.example",
    "mailto:a@b.example",
    "tel:+431234",
    "/docs/a:b",
    "docs/a?x=javascript:1",
    "#part",
    "?q=a:b&amp;r=1",
    "//cdn.example/a.png",
    "",
  ])("%j stays as it is", (url) => {
    expect(sanitise(`<a href="${url}">x</a>`)).toBe(`<a href="${url}" rel="noreferrer">x</a>`);
  });

  test.each([
    "java&#115;cript:alert(1)",
    "javascript&colon;alert(1)",
    "&#106&#97&#118&#97&#115&#99&#114&#105&#112&#116&#58alert(1)",
    "&#x6A&#x61vascript:alert(1)",
    "java&Tab;script:alert(1)",
    "java\nscript:alert(1)",
    "&#1;javascript:alert(1)",
    "java\u200bscript:alert(1)",
    "javascript&unknown;alert(1)",
    "blob:https://x",
    "file:///etc/passwd",
  ])("%j goes", (url) => {
    expect(sanitise(`<a href="${url}">x</a>`)).toBe('<a rel="noreferrer">x</a>');
  });

  test("of one name twice the first counts, as in a browser, and with it goes the second", () => {
    const link = (pair: string) => sanitise(`<a ${pair}>x</a>`);
    expect(link('href="/ok" href="javascript:1"')).toBe('<a href="/ok" rel="noreferrer">x</a>');
    expect(link('HREF="javascript:1" href="/ok"')).toBe('<a rel="noreferrer">x</a>');
  });
});

describe("styles", () => {
  test.each([
    "background:u&#114;l(//x)",
    "background:url&lpar;//x)",
    "position:/**/fixed",
    "position:&#102;ixed",
    "background:image-set('//x' 1x)",
    "--p:fixed;position:var(--p)",
    "position:/*",
  ])("%j goes", (style) => {
    expect(sanitise(`<b style="${style}">x</b>`)).toBe("<b>x</b>");
  });
  test("of colour and size stay", () => {
    const html = '<b style="color:#f00;font-size:12px;margin:0 auto">x</b>';
    expect(sanitise(html)).toBe(html);
  });
});

describe("markup", () => {
  test("that was text inside another element does not come alive without it", () => {
    for (const tag of [
      "xmp",
      "textarea",
      "title",
      "noembed",
      "noframes",
      "plaintext",
      "noscript",
      "style",
      "script",
    ])
      expect(sanitise(`a<${tag}><img src=x onerror=alert(1)></${tag}>`)).toBe("a");
  });

  test("does not come alive out of a stray bracket and what follows a tag that goes", () => {
    for (const tag of ["<x>", "</x>", "<!-- -->", "<script></script>", "<?x>"])
      expect(sanitise(`<${tag}img src=x onerror=alert(1)>`)).not.toContain("<img");
    expect(sanitise("1 < 2 & 3")).toBe("1 &lt; 2 &amp; 3");
  });

  test("that is left open takes nothing of the page around it", () => {
    for (const open of [
      "<img src=x onerror=alert(1) ",
      "<img src=x onerror='a",
      '<b title="',
      "<b title=a",
      "<i",
      "</b",
      "<!-- ",
    ]) {
      const html = sanitise(`a${open}`);
      expect([open, sanitise(`${html}<p onclick=1>`).includes("<p>")]).toEqual([open, true]);
      expect([open, html.includes("onerror")]).toEqual([open, false]);
    }
    for (const [text, clean] of [
      ["a", "a"],
      [`a"'>`, `a"'&gt;`],
      [`<b>a</b>"'`, `<b>a</b>"'`],
      ["", ""],
      ["<div><b>a", "<div><b>a</b></div>"],
      ["</div></main>a", "a"],
    ] as const)
      expect(sanitise(text)).toBe(clean);
  });

  // Text without brackets, and listed tags with listed attributes in quotes: every parser reads that in one way.
  const UNAMBIGUOUS =
    /^(?:[^<>]|<\/?(?:a|b|div|i|img|p|pre|span|table|tbody|td|tr|u)(?: (?:href|src|alt|title|style|rel)="[^"<>]*")*(?: \/)?>)*$/;

  test.each([
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
    '<svg></p><style><a id="</style><img src=1 onerror=alert(1)>">',
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    '<xmp><img title="</xmp><img src=x onerror=alert(1)>"></xmp>',
    "<noembed><img title='</noembed><img src=x onerror=alert(1)>'>",
    '<textarea><img title="</textarea><img src=x onerror=alert(1)>">',
    '<select><template><style><!--</style><a rel="--></style></template></select><img src=x onerror=alert(1)>">',
    "<p><plaintext><img src=x onerror=alert(1)>",
    '<img src="x` `<script>alert(1)</script>"` `>',
    '<img alt="&quot; onerror=alert(1) x=">',
    '<a href="x" title=\'"><img src=x onerror=alert(1)>\'>y',
    "<![CDATA[><img src=x onerror=alert(1)>]]>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<?xml ><img src=x onerror=alert(1)>?>",
  ])("%s cannot turn into something else in a browser", (dirty) => {
    expect(sanitise(dirty)).toMatch(UNAMBIGUOUS);
  });

  test("once cleaned is clean: a second look finds nothing more, and every parser reads the same", () => {
    const piece = fc.constantFrom(
      ..."<a |<img |<p>|</p>|<xmp>|</xmp>|<svg>|<textarea>|href=|src=|onerror=|style=|javascript:|&#106;|\"|'|>|/|<!--|-->|<script>|</script>|x|=|<|&|<title>|<b |url(".split(
        "|",
      ),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
        const html = sanitise(pieces.join(""));
        expect([pieces, sanitise(html)]).toEqual([pieces, html]);
        expect(html).toMatch(UNAMBIGUOUS);
      }),
      { numRuns: 3000 },
    );
  });
});
