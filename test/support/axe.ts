// axe-core in a page: violations of WCAG 2 A and AA as readable lines.
// Refuses to need a script tag: the page's security policy would rightly block it.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { AxeResults, RunOptions } from "axe-core";
import type { Page } from "playwright";

const SOURCE = readFileSync(join(import.meta.dir, "../../node_modules/axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** For a look at a page that differs from one before in nothing else. */
export interface Look {
  /** The colours of the other theme: only these rules. */
  only?: readonly string[];
  /** The words of the other language, in colours that were looked at: all but these rules. */
  without?: readonly string[];
  /** What opened over a page that was looked at: this element alone. */
  within?: string;
}

const isLong = Bun.env["WEIR_LONG"] === "1";
/** The sizes of targets are a third of axe's work: usually they are measured on the narrow screen, where fingers are. */
export const WIDE_LOOK: Look = isLong ? {} : { without: ["target-size"] };
/**
 * What a page is made of hangs on no width: where the wide look had the same person's page, usually this one is for colours and
 * sizes. Another person's page is made of other things.
 */
export const NARROW_LOOK: Look = isLong ? {} : { only: ["color-contrast", "target-size"] };

export async function violationsOf(page: Page, { only, without = [], within }: Look = {}): Promise<string[]> {
  // A colour halfway through its transition is nobody's colour: what just came counts when it has come, and what is enabled
  // while axe looks has its colour at once.
  await page.evaluate(async () => {
    const isEndless = (one: Animation) =>
      one.effect?.getComputedTiming().endTime === Number.POSITIVE_INFINITY;
    const running = document.getAnimations().filter((one) => one.playState === "running" && !isEndless(one));
    await Promise.allSettled(running.map(({ finished }) => finished));
    const sheet = new CSSStyleSheet();
    sheet.replaceSync("*, ::before, ::after { transition: none !important }");
    document.adoptedStyleSheets.push(sheet);
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  });
  const isThere = await page.evaluate(() => "axe" in window);
  if (!isThere) await page.evaluate(SOURCE);
  const options: RunOptions = {
    runOnly: only ? { type: "rule", values: [...only] } : { type: "tag", values: TAGS },
    rules: Object.fromEntries(without.map((rule) => [rule, { enabled: false }])),
    resultTypes: ["violations"],
    // The chat client in its frame is not ours.
    iframes: false,
  };
  const found = await page.evaluate(
    async ([asked, selector]) => {
      const { axe } = window as unknown as { axe: { run: (...args: unknown[]) => Promise<unknown> } };
      return (await axe.run(selector ?? document, asked)) as AxeResults;
    },
    [options as never, within] as const,
  );
  await page.evaluate(() => document.adoptedStyleSheets.pop());
  return found.violations.flatMap(({ id, nodes }) =>
    nodes
      .slice(0, 3)
      .map((node) => `${id}: ${String(node.target)} ${node.failureSummary?.split("\n")[1]?.trim() ?? ""}`),
  );
}
