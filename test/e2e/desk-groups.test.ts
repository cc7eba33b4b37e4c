// The price desk's sheets of groups as people meet them: axe finds nothing in them, in both languages and themes, wide and
// narrow; nothing pushes the page sideways; by keyboard and by finger an override and a special group are set.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser, openVisit, PAGE_IS_UP } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF } from "../support/hands.ts";
import type { JourneyLanguage, Manner } from "../support/hands.ts";
import { signIn, startSample } from "../support/sample.ts";
import type { Sample } from "../support/sample.ts";

const GROUPS = {
  GroupRatio: {
    default: 1,
    vip: 0.8,
    premium: 2,
    "a-name-that-is-as-long-as-a-name-of-a-group-may-get-in-here-64": 1,
  },
  UserUsableGroups: { default: "默认分组", vip: "Fast", premium: "Words ".repeat(30) },
  TopupGroupRatio: { vip: 0.95 },
  GroupGroupRatio: { vip: { premium: 1.2, default: 0 }, unheard: { of: 1 } },
  GroupSpecialUsableGroup: { vip: { "+:premium": "For you", "-:default": "", "-:vip": "" } },
  AutoGroups: ["default", "vip", "unheard"],
};

let sample: Sample;
let browser: Browser;

beforeAll(async () => {
  [sample, browser] = await Promise.all([startSample(), launchBrowser()]);
  for (const [key, value] of Object.entries(GROUPS))
    await sample.app.deps.options.set(key as keyof typeof GROUPS, JSON.stringify(value));
});
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

async function visitOf(manner: Manner, language: JourneyLanguage, isDark = false): Promise<Visit> {
  const visit = await openVisit(browser, {
    baseURL: sample.app.url,
    ...CONTEXT_OF[manner],
    locale: LOCALE_OF[language],
    colorScheme: isDark ? "dark" : "light",
    reducedMotion: "reduce",
  });
  await signIn(visit.context, sample, "root");
  return visit;
}

/** What is there once a section is. */
const PARTS = {
  groups: "[role=grid], .sheet-card",
  overrides: "[role=grid], .sheet-card",
  special: "[data-preview]",
  auto: "[role=switch]",
};
type SectionName = keyof typeof PARTS;

async function open(page: Page, section: SectionName, more = ""): Promise<void> {
  await page.goto(`/prices?section=${section}${more}`);
  await page.waitForSelector(PAGE_IS_UP, { state: "attached" });
  await page.locator(PARTS[section]).first().waitFor();
}

describe("every sheet of groups", () => {
  const LOOKS = [
    ["mouse", "en", false],
    ["mouse", "zh", true],
    ["finger", "zh", false],
    ["finger", "en", true],
  ] as const;
  test.each(LOOKS)(
    "with a %s in %s (dark: %p): axe finds nothing, and nothing is pushed aside",
    async (manner, language, isDark) => {
      const visit = await visitOf(manner, language, isDark);
      const { page } = visit;
      for (const section of ["groups", "overrides", "special", "auto"] as const) {
        await open(page, section);
        const found = await violationsOf(page);
        expect({ section, found }).toEqual({ section, found: [] });
        expect([section, await isAsWideAsTheScreen(page)]).toEqual([section, true]);
      }
      await open(page, "groups", "&group=vip");
      await page.locator("dialog[open]").waitFor();
      expect(await violationsOf(page)).toEqual([]);
      expect(visit.problems).toEqual([]);
      await visit.close();
    },
  );
});
