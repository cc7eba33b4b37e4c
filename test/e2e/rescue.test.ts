// The link that weir rescue prints, opened in a browser: looking changes nothing, one press lets root in; and an API key
// that gets a new secret on its screen.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser } from "playwright";
import { launchBrowser, openVisit, PAGE_IS_UP } from "../support/browser.ts";
import { callPlan, signIn, startSite } from "../attack/site.ts";
import type { Site } from "../attack/site.ts";

let site: Site;
let browser: Browser;

beforeAll(async () => {
  site = await startSite();
  await site.set("ServerAddress", site.server.url);
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await site.remove();
});

test.each([
  ["en-US", 1280, "Sign in as root", "has been used"],
  ["zh-CN", 360, "以超级管理员登录", "已使用"],
] as const)(
  "a link lets root in by one press, in %s at %i px, and by no other",
  async (locale, width, go, used) => {
    const [link = ""] = site.server.run(["rescue"]).text.split("\n");
    const visit = await openVisit(browser, {
      baseURL: site.server.url,
      locale,
      viewport: { width, height: 740 },
    });
    const { page, problems } = visit;
    for (let look = 0; look < 2; look++) {
      await page.goto(link);
      await page.waitForSelector(PAGE_IS_UP);
      if (look === 0) await page.reload();
    }
    expect(await visit.context.cookies()).not.toContainEqual(expect.objectContaining({ name: "session" }));
    const press = page.locator("main").getByRole("button", { name: go });
    await press.focus();
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    expect(problems).toEqual([]);
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => url.pathname === "/personal");
    await page.waitForSelector(PAGE_IS_UP);
    await visit.close();
    const late = await openVisit(browser, { baseURL: site.server.url, locale });
    await late.page.goto(link);
    await late.page.waitForSelector(PAGE_IS_UP);
    await late.page.locator("main").getByRole("button", { name: go }).click();
    await late.page.locator("main").getByText(used).waitFor();
    await late.close();
  },
);

test("a key gets a new secret on its screen; both answer calls, and the old one ends with the next", async () => {
  const person = await site.person(1_000_000);
  const old = await person.key();
  const { cookie } = await signIn(site.server.url, person.username, person.cookie);
  const visit = await openVisit(browser, { baseURL: site.server.url });
  const [name = "", value = ""] = (/session=[^;]+/.exec(cookie)?.[0] ?? "").split(/=(.*)/s);
  await visit.context.addCookies([{ name, value, url: site.server.url }]);
  const { page, problems } = visit;
  const rotate = async (grace: string) => {
    await page.goto("/token");
    await page.waitForSelector(PAGE_IS_UP);
    await page.locator("main").getByRole("button", { name: "Actions for key" }).click();
    await page.getByRole("menuitem", { name: "New secret" }).click();
    await page.getByLabel("The old one works").selectOption({ label: grace });
    await page.getByRole("button", { name: "Make a new secret" }).click();
    const shown = page.locator("main code").filter({ hasText: /^sk-\w{48}$/ });
    return (await shown.first().textContent()) ?? "";
  };
  const second = await rotate("For another day");
  const statusOf = async (key: string, id: string) => (await callPlan(site.server.url, key, { id })).status;
  expect([await statusOf(old, "old"), await statusOf(second, "second")]).toEqual([200, 200]);
  const third = await rotate("No longer");
  expect([
    await statusOf(old, "old again"),
    await statusOf(second, "second again"),
    await statusOf(third, "third"),
  ]).toEqual([401, 401, 200]);
  expect(problems).toEqual([]);
  await visit.close();
});
