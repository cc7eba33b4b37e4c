// `bun run screenshots [part of a path…]`: every page and what opens over it, in both themes, languages and widths, as
// pictures below .screenshots/ (ignored by git). It is for eyes, tests are elsewhere.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContext, Page as Tab } from "playwright";
import { startTestApp } from "../test/support/app.ts";
import { PAGE_IS_UP, launchBrowser } from "../test/support/browser.ts";
import { signIn, standInForPictures, startSample } from "../test/support/sample.ts";
import type { Sample } from "../test/support/sample.ts";
import { addressOf, watchedPages } from "./budgets.ts";
import { buildFrontEnd, PROJECT_DIR } from "./build.ts";

const OUT_DIR = join(PROJECT_DIR, ".screenshots");
const SIZES = [
  { width: 1440, height: 900 },
  { width: 360, height: 740 },
];

interface Shot {
  /** File name's beginning. */
  name: string;
  path: string;
  role: "guest" | "user" | "root";
  /** What to do before the picture is taken. */
  act?: (tab: Tab) => Promise<void>;
}

const openFirst = (tab: Tab) => tab.locator("tr[data-index] .row-link").first().click();

const OVER: readonly Shot[] = [
  { name: "palette", path: "/token", role: "root", act: (tab) => tab.keyboard.press("Control+k") },
  { name: "shortcuts", path: "/log", role: "root", act: (tab) => tab.keyboard.press("?") },
  {
    name: "costs",
    path: "/prices?section=costs",
    role: "root",
    act: async (tab) => {
      await tab.locator("#cost-drift").waitFor();
      await tab.waitForLoadState("networkidle");
    },
  },
  { name: "channel-new", path: "/channel?new=1", role: "root" },
  { name: "channel-edit", path: "/channel", role: "root", act: openFirst },
  {
    name: "channel-rules",
    path: "/channel",
    role: "root",
    act: async (tab) => {
      await openFirst(tab);
      const part = tab.locator("dialog details", { has: tab.locator("[data-field=paramOverride]") });
      await part.locator("summary").click();
      const rules = part.locator("[data-field=paramOverride]");
      await rules.locator("[role=tab]").last().click();
      await rules.locator("textarea").fill(
        JSON.stringify({
          temperature: 0,
          operations: [
            {
              mode: "delete_header",
              path: "anthropic-beta",
              logic: "AND",
              conditions: [{ path: "model", mode: "prefix", value: "claude-" }],
            },
            { mode: "set", path: "n", value: 4, logic: "OR" },
          ],
        }),
      );
      await rules.locator("[role=tab]").first().click();
      await part.locator("button.btn-default.mb-6").click();
      await part.locator("[data-part=try] button[aria-busy]").click();
      await part.locator("[data-part=acted]").waitFor();
      await rules.locator("button.btn-sm.btn-default").last().click();
      await rules.scrollIntoViewIfNeeded();
    },
  },
  {
    name: "channel-route",
    path: "/channel?route=1",
    role: "root",
    act: async (tab) => {
      await tab.locator("dialog [name=model]").fill("gpt-4o");
      await tab.locator("dialog [name=session]").fill("a session");
      const told = tab.waitForResponse((response) => response.url().endsWith("/api/channel/route"));
      await tab.locator("dialog footer .btn-primary, dialog .btn-primary").last().click();
      await told;
    },
  },
  {
    name: "inbox-bell",
    path: "/token",
    role: "root",
    act: (tab) => tab.locator("[popovertarget=menu-inbox]").click(),
  },
  { name: "inbox-closed", path: "/inbox?state=closed", role: "root" },
  { name: "token-new", path: "/token?new=1", role: "user" },
  { name: "token-edit", path: "/token", role: "user", act: openFirst },
  {
    name: "token-limits",
    path: "/token?new=1",
    role: "user",
    act: async (tab) => {
      await tab.locator("dialog summary").last().click();
      await tab.locator("[name=maxQuota]").fill("25000");
    },
  },
  {
    name: "token-budget",
    path: "/token?new=1",
    role: "user",
    act: async (tab) => {
      await tab.locator("dialog summary").first().click();
      await tab.locator("[name=budget]").fill("5");
      await tab.locator("[name=atOnce]").scrollIntoViewIfNeeded();
    },
  },
  {
    name: "user-limits",
    path: "/user",
    role: "root",
    act: async (tab) => {
      await openFirst(tab);
      const part = tab.locator("dialog details", { has: tab.locator("[name=budget]") });
      await part.locator("summary").click();
      await part.locator(".facts").scrollIntoViewIfNeeded();
    },
  },
  { name: "setting-limits", path: "/setting?tab=ratelimit#KeyLimitsDefault", role: "root" },
  { name: "personal-limits", path: "/personal#limits", role: "user" },
  {
    name: "playground-quote",
    path: "/playground",
    role: "user",
    act: async (tab) => {
      const told = tab.waitForResponse((response) => response.url().endsWith("/pg/quote"));
      await tab.locator("form textarea").first().fill("What is a weir?");
      await told;
    },
  },
  { name: "redemption-new", path: "/redemption?new=1", role: "root" },
  { name: "order-detail", path: "/order?order=1", role: "root" },
  { name: "topup-payments", path: "/topup?view=payments", role: "user" },
  { name: "topup-returned", path: "/topup?order=1", role: "user" },
  { name: "user-edit", path: "/user", role: "root", act: openFirst },
  {
    name: "user-bulk",
    path: "/user",
    role: "root",
    act: async (tab) => {
      for (const at of [0, 1])
        await tab.locator("tr[data-index] input[type=checkbox]:not(:disabled)").nth(at).check();
      await tab.locator(".bulk-bar .btn-default").first().click();
      await tab.locator("dialog[open]").waitFor();
    },
  },
  { name: "user-runs", path: "/user?run=all", role: "root" },
  { name: "user-import", path: "/user?import=1", role: "root" },
  { name: "log-detail", path: "/log", role: "root", act: openFirst },
  { name: "midjourney-detail", path: "/midjourney", role: "root", act: openFirst },
  { name: "midjourney-gallery", path: "/midjourney?view=gallery", role: "user" },
  { name: "task-detail", path: "/task?range=7d", role: "root", act: openFirst },
  {
    name: "token-selection",
    path: "/token",
    role: "user",
    act: async (tab) => {
      for (const at of [0, 2]) await tab.locator("tr[data-index] input[type=checkbox]").nth(at).check();
    },
  },
  {
    name: "token-row-menu",
    path: "/token",
    role: "user",
    act: (tab) => tab.locator("tr[data-index] .cell-menu button").first().click(),
  },
  ...["ratelimit", "models", "payment", "system", "other"].map((tab): Shot => ({
    name: `setting-${tab}`,
    path: `/setting?tab=${tab}`,
    role: "root",
  })),
  {
    name: "setting-found",
    path: "/setting",
    role: "root",
    act: async (tab) => {
      await tab.getByRole("searchbox").fill("smtp");
      await tab.locator("#SMTPPort").waitFor();
    },
  },
  {
    name: "setting-changed",
    path: "/setting",
    role: "root",
    act: async (tab) => {
      await tab.locator("#RetryTimes input").fill("3");
      await tab.locator("#QuotaPerUnit input").fill("0");
      await tab.locator("#TopUpLink input").fill("https://shop.example.org/");
    },
  },
  {
    name: "setting-review",
    path: "/setting",
    role: "root",
    act: async (tab) => {
      await tab.locator("#RetryTimes input").fill("3");
      await tab.locator("#TopUpLink input").fill("https://shop.example.org/");
      await tab.locator(".setting-bar button").first().click();
      await tab.locator("dialog[open]").waitFor();
    },
  },
  { name: "log-empty", path: "/log?model_name=nothing", role: "user" },
  { name: "not-found", path: "/no/such/page", role: "user" },
  { name: "forbidden-channel", path: "/channel", role: "user" },
  { name: "forbidden-guest", path: "/forbidden", role: "guest" },
  { name: "home-guest", path: "/", role: "guest" },
  { name: "pricing-guest", path: "/pricing?input=1000000&output=200000", role: "guest" },
  { name: "pricing-detail", path: "/pricing?model=gpt-4o", role: "user" },
];

const PAGES: readonly Shot[] = watchedPages.map((page) => ({
  name: page.path === "/" ? "home" : page.path.slice(1).replaceAll(/[/:]+/g, "-"),
  path: addressOf(page),
  role: page.path === "/login" ? "guest" : "root",
}));

async function take(context: BrowserContext, shot: Shot, suffix: string): Promise<void> {
  const tab = await context.newPage();
  await tab.goto(shot.path);
  if ((await tab.locator("#island").count()) > 0)
    await tab.waitForSelector(PAGE_IS_UP, { state: "attached" });
  await shot.act?.(tab);
  await tab.waitForLoadState("networkidle");
  await tab.screenshot({ path: join(OUT_DIR, `${shot.name}-${suffix}.png`) });
  await tab.close();
}

const filters = process.argv.slice(2);
const wanted = [...PAGES, ...OVER].filter(
  ({ name }) => filters.length === 0 || filters.some((filter) => name.includes(filter)),
);
await buildFrontEnd();
if (filters.length === 0) rmSync(OUT_DIR, { recursive: true, force: true });
mkdirSync(OUT_DIR, { recursive: true });
const sample: Sample = await startSample();
const bare = await startTestApp();
const browser = await launchBrowser();
let count = 0;
for (const viewport of SIZES) {
  for (const [language, locale] of [
    ["zh", "zh-CN"],
    ["en", "en-US"],
  ] as const) {
    for (const colorScheme of ["light", "dark"] as const) {
      const suffix = `${viewport.width}-${language}-${colorScheme}`;
      for (const role of ["guest", "user", "root"] as const) {
        const context = await browser.newContext({
          baseURL: sample.app.url,
          viewport,
          locale,
          colorScheme,
          reducedMotion: "reduce",
          timezoneId: "Asia/Shanghai",
        });
        await signIn(context, sample, role);
        await standInForPictures(context);
        for (const shot of wanted.filter((each) => each.role === role)) {
          await take(context, shot, suffix);
          count++;
        }
        await context.close();
      }
      if (filters.length > 0 && !filters.includes("setup")) continue;
      const context = await browser.newContext({ baseURL: bare.url, viewport, locale, colorScheme });
      await take(context, { name: "setup", path: "/setup", role: "guest" }, suffix);
      count++;
      await context.close();
    }
  }
}
await browser.close();
await Promise.all([sample.app.close(), bare.close()]);
console.log(`${count} pictures in ${OUT_DIR}`);
process.exit(0);
