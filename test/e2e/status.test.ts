// Both status pages in a browser, wide and narrow, in both languages: a look again replaces the page's part alone, by keyboard too.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright";
import { lostCause } from "../../src/core/inbox/ledger-causes.ts";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import { signIn, startSample } from "../support/sample.ts";
import type { Sample, SampleRole } from "../support/sample.ts";

const LOST = "10571057105710aa";

let sample: Sample;
let browser: Browser;

beforeAll(async () => {
  [sample, browser] = await Promise.all([startSample(), launchBrowser()]);
  // The longest state of a node's card.
  const { db, inbox } = sample.app.deps;
  await db.orm.insert(db.t.nodes).values({ nodeId: LOST, history: "", place: "", figures: "" });
  inbox.keep(lostCause(LOST, 86_400));
}, 60_000);
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

describe.each([
  ["/node", "root", 360, "zh-CN", "刷新"],
  ["/status", "guest", 1440, "en-US", "Look again"],
] as const)("%s for %s at %d px in %s", (path, role, width, locale, again) => {
  test("it fits, reads well, and looks again without leaving", async () => {
    const visit = await openVisit(browser, {
      baseURL: sample.app.url,
      viewport: { width, height: 800 },
      locale,
      reducedMotion: "reduce",
    });
    const { page } = visit;
    await signIn(visit.context, sample, role as SampleRole);
    await page.goto(path);
    const link = page.getByRole("link", { name: again });
    await link.waitFor();
    if (path === "/node")
      expect(await page.locator("[data-part=node]").getByText(LOST.slice(0, 8)).count()).toBe(1);
    expect(await violationsOf(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    await page.evaluate(() => document.body.setAttribute("data-same-document", ""));
    const before = await page.getByRole("status").first().textContent();
    // What is shown changes by the second.
    await page.waitForFunction(
      async ([address, shown]) => {
        const text = await (await fetch(address)).text();
        return !text.replaceAll("<!-- -->", "").includes(shown);
      },
      [path, before ?? ""] as const,
    );
    await link.focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      (shown) => document.querySelector("[data-part] [role=status]")?.textContent !== shown,
      before,
    );
    expect(await page.locator("body[data-same-document]").count()).toBe(1);
    expect(visit.problems).toEqual([]);
    await visit.close();
  });
});
