// Formulas as MathML, by KaTeX: browsers draw it with their own fonts. Fetched with the first formula.
// Refuses everything but MathML's elements for presentation, whatever the typesetter gives.
import katex from "katex";
import { createElement } from "react";
import type { ReactElement, ReactNode } from "react";

/** MathML Core, and the few older elements that KaTeX writes. */
const ELEMENTS = new Set(
  (
    "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle merror mpadded mphantom msub msup msubsup munder mover " +
    "munderover mmultiscripts mprescripts none mtable mtr mtd menclose"
  ).split(" "),
);

const ATTRIBUTES = new Set(
  (
    "display displaystyle scriptlevel mathvariant stretchy fence separator lspace rspace symmetric largeop movablelimits " +
    "minsize maxsize accent accentunder linethickness columnalign columnspacing rowspacing columnlines rowlines width " +
    "height depth voffset notation"
  ).split(" "),
);

const MOST_CHARS = 5000;

function draw(node: Node, key: number): ReactNode {
  if (node.nodeType === Node.TEXT_NODE) return node.textContent;
  if (!(node instanceof Element)) return null;
  const name = node.localName.toLowerCase();
  const children = [...node.childNodes];
  // Of a formula with its source, only what is drawn.
  if (name === "semantics") return children[0] ? draw(children[0], key) : null;
  if (!ELEMENTS.has(name)) return null;
  const attributes = [...node.attributes].filter((each) => ATTRIBUTES.has(each.name));
  const props = Object.fromEntries(attributes.map((each) => [each.name, each.value]));
  return createElement(name, { key, ...props }, ...children.map(draw));
}

/** Undefined where the source is no formula. */
export function typeset(tex: string, isBlock: boolean): ReactElement | undefined {
  if (tex.length > MOST_CHARS) return undefined;
  try {
    const text = katex.renderToString(tex, {
      output: "mathml",
      displayMode: isBlock,
      throwOnError: true,
      strict: false,
      trust: false,
      maxExpand: 500,
      maxSize: 20,
    });
    const math = new DOMParser().parseFromString(text, "text/html").querySelector("math");
    return math ? (draw(math, 0) as ReactElement) : undefined;
  } catch {
    return undefined;
  }
}
