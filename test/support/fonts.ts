// The widest and the narrowest proportional font of this machine, and a page that is set in one of them.
// Refuses to guess from names: the browser measures each family.
import type { BrowserContext, Page } from "playwright";

/** Letters, digits and signs as the console's lists hold them. */
const SAMPLE = "The quick brown fox: $1,234,567.89 · 2026-11-20 19:55:27 channel-42 gpt-4o-mini";
/** No family for running text. */
const OTHER = /mono|math|emoji|symbol|dingbat|console|courier|typewriter/i;

export interface ExtremeFonts {
  widest: string;
  narrowest: string;
}

/** Families that fontconfig knows, each name that a style may use. */
function familiesHere(): string[] {
  const { stdout } = Bun.spawnSync(["fc-list", ":", "family"]);
  const names = new TextDecoder().decode(stdout).split(/[\n,]/);
  return [...new Set(names.map((name) => name.trim()))].filter((name) => name !== "" && !OTHER.test(name));
}

/** Measured in the page; the same one twice where a machine has only one. */
export async function extremeFonts(page: Page): Promise<ExtremeFonts> {
  const widths = await page.evaluate(
    ([text, families]) => {
      const context = document.createElement("canvas").getContext("2d");
      return families.map((family): [string, number] => {
        if (!context) return [family, 0];
        context.font = `13px "${family}", monospace`;
        return [family, context.measureText(text).width];
      });
    },
    [SAMPLE, familiesHere()] as const,
  );
  const byWidth = widths.filter(([, width]) => width > 0).sort(([, a], [, b]) => a - b);
  const [narrowest, widest] = [byWidth.at(0)?.[0], byWidth.at(-1)?.[0]];
  if (narrowest === undefined || widest === undefined) throw new Error("no font was found by fc-list");
  return { narrowest, widest };
}

/** Sets the page in a font, as a system would whose first family it is; what is monospaced stays so. */
export async function setFont(page: Page, family: string): Promise<void> {
  await page.evaluate(async (name) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`:root { --font-sans: "${name}", sans-serif !important; }`);
    document.adoptedStyleSheets = [sheet];
    // Laid out, and whatever watches sizes has been told.
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  }, family);
}

export type FontName = keyof ExtremeFonts;
let measured: ExtremeFonts | undefined;

/** Every page that the context opens from now on is set in one of the two. */
export async function useFont(context: BrowserContext, name: FontName): Promise<void> {
  if (!measured) {
    const page = await context.newPage();
    measured = await extremeFonts(page);
    await page.close();
  }
  await context.addInitScript((family) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`:root { --font-sans: "${family}", sans-serif !important; }`);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }, measured[name]);
}

export interface Seen {
  width: number;
  height: number;
  font: FontName;
}

/** The widths that every screen must hold, each with one of the two fonts, a phone with both. */
export const SEEN: readonly Seen[] = [
  { width: 1440, height: 900, font: "widest" },
  { width: 1152, height: 768, font: "narrowest" },
  { width: 1024, height: 768, font: "widest" },
  { width: 360, height: 740, font: "narrowest" },
  { width: 360, height: 740, font: "widest" },
];

/** What an ordinary run looks at: the widest screen and a phone in the font that needs the most room, and the other font. */
export const SEEN_AT_LEAST: readonly Seen[] = SEEN.filter(
  ({ width, font }) =>
    Bun.env["WEIR_LONG"] === "1" || (font === "widest" ? width === 1440 || width === 360 : width === 1152),
);
