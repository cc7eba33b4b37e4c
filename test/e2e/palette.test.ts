// The palette in a real browser: what is found opens, with mouse, finger and keys, in both languages, at every width and
// with the widest and the narrowest font; and pages without a screen, which bring it with its first use.
// The walk with the mouse is the long run's (WEIR_LONG): finger and keyboard are asked for more.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, desc, eq } from "drizzle-orm";
import type { Browser, Page } from "playwright";
import { assetsOf } from "../../scripts/budgets.ts";
import { launchBrowser, openVisit, pageRests } from "../support/browser.ts";
import type { Visit, VisitOptions } from "../support/browser.ts";
import { extremeFonts, setFont } from "../support/fonts.ts";
import { CONTEXT_OF, handOf, LOCALE_OF, walkedNow } from "../support/hands.ts";
import type { JourneyLanguage, Manner } from "../support/hands.ts";
import { signIn, startSample } from "../support/sample.ts";
import type { Sample, SampleRole } from "../support/sample.ts";

const NAME: Record<JourneyLanguage, string> = { en: "Search or jump", zh: "搜索或跳转" };
const REQUEST_ID = "20261120120000123000001AbCdEfGh";

let sample: Sample;
let browser: Browser;
let channelId = 0;

beforeAll(async () => {
  [sample, browser] = await Promise.all([startSample(), launchBrowser()]);
  const { app, user } = sample;
  channelId = await app.createChannel({ name: "上海备用渠道" });
  await app.createToken(user.id, { name: "笔记本" });
  const { logs } = app.deps.db.t;
  const [own] = await app.deps.db.orm
    .select({ id: logs.id })
    .from(logs)
    .where(and(eq(logs.userId, user.id), eq(logs.type, 2)))
    .orderBy(desc(logs.id))
    .limit(1);
  await app.deps.db.orm
    .update(logs)
    .set({ requestId: REQUEST_ID })
    .where(eq(logs.id, own?.id ?? 0));
});
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

async function visitAs(role: SampleRole, options: Partial<VisitOptions> = {}): Promise<Visit> {
  const visit = await openVisit(browser, { baseURL: sample.app.url, reducedMotion: "reduce", ...options });
  await signIn(visit.context, sample, role);
  return visit;
}

const comboboxOf = (page: Page, language: JourneyLanguage = "en") =>
  page.getByRole("combobox", { name: NAME[language] });

describe.each(
  walkedNow<[Manner, JourneyLanguage]>([
    ["mouse", "en"],
    ["finger", "zh"],
    ["keyboard", "en"],
  ]),
)("by %s in %s", (manner, language) => {
  test("a channel by its initials, a key by pinyin, a call by its id: each opens", async () => {
    const options = { ...CONTEXT_OF[manner], locale: LOCALE_OF[language] };
    for (const [role, question, line, opened] of [
      ["admin", "shby", "上海备用渠道", `/channel?edit=${channelId}`],
      ["user", "bijiben", "笔记本", "/token?keyword="],
      ["user", REQUEST_ID, REQUEST_ID, `/log?request_id=${REQUEST_ID}`],
    ] as const) {
      const visit = await visitAs(role, options);
      const { page } = visit;
      const hand = await handOf(page, manner);
      await page.goto("/topup");
      await page.locator("[data-mounted]").waitFor();
      if (manner === "keyboard") await page.keyboard.press("Control+k");
      else await hand.press(page.locator("[data-palette]").first());
      const field = comboboxOf(page, language);
      await field.waitFor();
      await hand.fill(field, question);
      const option = page.getByRole("option").filter({ hasText: line });
      await option.waitFor();
      if (manner === "keyboard") {
        await page.waitForFunction(
          (text) =>
            document.querySelector('[role="option"][aria-selected="true"]')?.textContent?.includes(text),
          line,
        );
        await page.keyboard.press("Enter");
      } else await hand.press(option);
      await page.waitForURL((url) => decodeURIComponent(url.pathname + url.search).startsWith(opened));
      await page.locator("[data-mounted]").waitFor();
      await page.locator("dialog[open]").waitFor();
      expect(visit.problems).toEqual([]);
      await visit.close();
    }
  });
});

test("another's call is not found, and nothing of it is told", async () => {
  const visit = await visitAs("admin");
  await visit.page.goto("/topup");
  await visit.page.locator("[data-mounted]").waitFor();
  await visit.page.keyboard.press("Control+k");
  await comboboxOf(visit.page).fill(REQUEST_ID);
  await visit.page.getByRole("option").filter({ hasText: REQUEST_ID }).waitFor();
  await visit.close();

  const other = await sample.app.createUser({ username: "eve" });
  const answer = await fetch(`${sample.app.url}/api/log/self?request_id=${REQUEST_ID}`, {
    headers: other.headers,
  });
  expect(((await answer.json()) as { data: { items: unknown[] } }).data.items).toEqual([]);
  const page = await fetch(`${sample.app.url}/log?request_id=${REQUEST_ID}`, { headers: other.headers });
  expect((await page.text()).includes('data-index="0"')).toBe(false);
});

test("Chromium reads Han as the table was made", async () => {
  const visit = await visitAs("admin");
  await visit.page.goto("/topup");
  await visit.page.locator("[data-mounted]").waitFor();
  await visit.page.keyboard.press("Control+k");
  const field = comboboxOf(visit.page);
  for (const [question, title] of [
    ["shiyongrizhi", "Usage log"],
    ["xjyh", "New user"],
    ["tuichu", "Sign out"],
  ] as const) {
    await field.fill(question);
    await visit.page.getByRole("option", { name: title }).waitFor();
  }
  await visit.close();
});

for (const width of [1440, 1152, 1024, 360]) {
  test(`at ${width} px no font cuts a found line's own word, and nothing lies beyond the edge`, async () => {
    const visit = await visitAs("root", { viewport: { width, height: 740 } });
    const { page } = visit;
    await page.goto("/topup");
    await page.locator("[data-mounted]").waitFor();
    const { widest, narrowest } = await extremeFonts(page);
    for (const family of [widest, narrowest]) {
      await setFont(page, family);
      await page.keyboard.press("Control+k");
      await comboboxOf(page).fill("gpt");
      await page.getByRole("option").filter({ hasText: "gpt-4o" }).first().waitFor();
      const wide = await page.evaluate(() => {
        const box = document.querySelector("dialog[open] .modal-box")?.getBoundingClientRect();
        const beyond = [...document.querySelectorAll("dialog[open] [role=option] *")].filter(
          (each) => each.getBoundingClientRect().right > (box?.right ?? 0) + 0.5,
        );
        const squeezed = [...document.querySelectorAll("dialog[open] [role=option] span")].filter(
          (each) => each.getBoundingClientRect().width < 60,
        );
        return {
          isInside: box !== undefined && box.left >= 0 && box.right <= innerWidth,
          beyond: beyond.length,
          squeezed: squeezed.map((each) => each.textContent),
        };
      });
      expect([family, wide]).toEqual([family, { isInside: true, beyond: 0, squeezed: [] }]);
      await page.keyboard.press("Escape");
      await page.locator("dialog[open]").waitFor({ state: "detached" });
    }
    await visit.close();
  });
}

describe("a page that is not there", () => {
  async function lost(options: Partial<VisitOptions> = {}): Promise<Visit & { scripts: string[] }> {
    const visit = await visitAs("admin", options);
    const scripts: string[] = [];
    visit.page.on("request", (request) => {
      if (request.resourceType() === "script") scripts.push(request.url());
    });
    const answer = await visit.page.goto("/nowhere");
    await pageRests(visit.page);
    expect(answer?.status()).toBe(404);
    return { ...visit, scripts };
  }

  test("comes without React, and its button brings the palette, once", async () => {
    const visit = await lost();
    const named = assetsOf(await visit.page.content()).scripts;
    expect(visit.scripts.map((url) => url.split("/a/")[1]).toSorted()).toEqual(named.toSorted());
    expect(visit.scripts.some((url) => url.includes("/mount-"))).toBe(false);
    await visit.page.locator("main [data-palette]").click();
    await comboboxOf(visit.page).waitFor();
    await visit.page.keyboard.press("Escape");
    await comboboxOf(visit.page).waitFor({ state: "detached" });
    await visit.page.locator("main [data-palette]").click();
    await comboboxOf(visit.page).fill("redemption");
    await visit.page.getByRole("option", { name: "Redemption codes Go" }).waitFor();
    expect(visit.scripts.filter((url) => url.includes("/mount-"))).toHaveLength(1);
    await visit.close();
  });

  test("Ctrl K and the shortcuts work at the first press; a language chosen before counts", async () => {
    const visit = await lost();
    const { page } = visit;
    await page.evaluate(() => document.querySelector<HTMLElement>('[data-set-language="zh"]')?.click());
    await page.waitForSelector('html[lang^="zh"]');
    await page.keyboard.press("Control+k");
    await comboboxOf(page, "zh").waitFor();
    await page.getByRole("option").filter({ hasText: "新建渠道" }).waitFor();
    await page.goto("/nowhere");
    await page.locator("main [data-palette]").waitFor();
    await page.keyboard.type("gc");
    await page.waitForURL("**/channel");
    await visit.close();
  });
});
