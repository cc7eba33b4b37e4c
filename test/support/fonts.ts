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

export interface Seen {
  width: number;
  height: number;
  font: FontName;
}

/** The widths that every screen must hold, each with one of the two faces, a phone with both. */
export const SEEN: readonly Seen[] = [
  { width: 1440, height: 900, font: "widest" },
  { width: 1152, height: 768, font: "narrowest" },
  { width: 1024, height: 768, font: "widest" },
  { width: 360, height: 740, font: "narrowest" },
  { width: 360, height: 740, font: "widest" },
];
