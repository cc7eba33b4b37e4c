// The widest and the narrowest face that is installed, for pages that must hold with either.
// Refuses to wait for a web font: the faces come with the system, and the page's own rules are overruled.
import type { BrowserContext } from "playwright";

export const FONTS = { widest: "DejaVu Sans", narrowest: "DejaVu Sans Condensed" } as const;
export type FontName = keyof typeof FONTS;

/** Every text of the context's pages in one face; condensed faces are a stretch of their family to Chromium. */
export async function useFont(context: BrowserContext, name: FontName): Promise<void> {
  await context.addInitScript((isCondensed) => {
    const sheet = new CSSStyleSheet();
    const stretch = isCondensed ? "font-stretch: condensed !important;" : "";
    sheet.replaceSync(`* { font-family: "DejaVu Sans" !important; ${stretch} }`);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }, name === "narrowest");
}
