// The sheet over all models in a real browser: by keyboard alone with the clipboard of the system, and by finger at 360 px.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF } from "../support/hands.ts";
import type { JourneyLanguage, Manner } from "../support/hands.ts";
import { signIn, startSample } from "../support/sample.ts";
import type { Sample } from "../support/sample.ts";

const CARD_RULES = [
  "label",
  "button-name",
  "color-contrast",
  "list",
  "nested-interactive",
  "aria-valid-attr-value",
];

let sample: Sample;
let browser: Browser;

beforeAll(async () => {
  [sample, browser] = await Promise.all([startSample(), launchBrowser()]);
  await sample.app.deps.options.set(
    "ModelRatio",
    '{"gpt-4o":1.25,"gpt-4o-mini":0.075,"qwen-max":0.8,"extra":1}',
  );
  for (const key of ["CompletionRatio", "CacheRatio", "CreateCacheRatio", "PriceRules"] as const)
    await sample.app.deps.options.set(key, key === "CompletionRatio" ? '{"qwen-max":4}' : "{}");
  await sample.app.deps.options.set("ModelPrice", '{"song":0.1}');
});
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

async function visitOf(manner: Manner, language: JourneyLanguage): Promise<Visit> {
  const visit = await openVisit(browser, {
    baseURL: sample.app.url,
    locale: LOCALE_OF[language],
    reducedMotion: "reduce",
    ...CONTEXT_OF[manner],
  });
  await signIn(visit.context, sample, "admin");
  return visit;
}

/** Texts of a row's cells, without its name. */
const cellsOf = (page: Page, name: string): Promise<string[]> =>
  page
    .getByRole("row")
    .filter({ has: page.getByRole("rowheader", { name: new RegExp(`^Select ${name} `) }) })
    .getByRole("gridcell")
    .evaluateAll((cells) =>
      cells.map((cell) => cell.querySelector<HTMLElement>(".sheet-text")?.innerText ?? ""),
    );

test("by keyboard: typed, filled down, copied, pasted, taken back, found and set together", async () => {
  const { page, problems, close } = await visitOf("keyboard", "en");
  const hand = await handOf(page, "keyboard");
  const { keyboard } = page;
  await page.goto("/prices?view=used&sort=name");
  const grid = page.getByRole("grid", { name: "Prices of models" });
  await hand.walkTo(grid);
  const at = () =>
    grid.evaluate((element) => {
      const cell = document.getElementById(element.getAttribute("aria-activedescendant") ?? "");
      return cell?.innerText.trim();
    });
  // claude, deepseek, gemini, gpt-4o, gpt-4o-mini: the first three have lost their price.
  expect(await at()).toContain("claude-sonnet-4-20250514");
  await keyboard.press("ArrowRight");
  expect(await at()).toBe("No price");
  await keyboard.press("ArrowRight");
  await keyboard.type("$1,234.5");
  await keyboard.press("Tab");
  await keyboard.type("9");
  await keyboard.press("Enter");
  expect(await cellsOf(page, "claude-sonnet-4-20250514")).toEqual(["By tokens", "1234.5", "9", "", "", ""]);
  // The clipboard of the system, by its own keys.
  await keyboard.press("Control+Home");
  await keyboard.press("ArrowRight");
  await keyboard.press("ArrowRight");
  await keyboard.press("Shift+ArrowRight");
  await keyboard.press("Control+c");
  await page.getByText("2 cells copied.").waitFor();
  await keyboard.press("ArrowLeft");
  await keyboard.press("ArrowDown");
  await keyboard.press("Shift+ArrowDown");
  await keyboard.press("Control+v");
  await page.getByText("4 cells changed.").waitFor();
  expect((await cellsOf(page, "gemini-2.5-pro")).slice(0, 3)).toEqual(["By tokens", "1234.5", "9"]);
  await keyboard.press("Control+z");
  expect((await cellsOf(page, "gemini-2.5-pro"))[0]).toContain("No price");
  await keyboard.press("Control+Shift+z");
  // What cannot be stays, with its reason; Escape leaves the price as it is.
  await keyboard.type("abc");
  await keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "“abc” is not a number" }).waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await keyboard.press("Escape");
  // Fill down, then tick the rows and set them together.
  await keyboard.press("Control+Home");
  await keyboard.press("ArrowRight");
  await keyboard.press("ArrowRight");
  await keyboard.press("Shift+ArrowDown");
  await keyboard.press("Space");
  await page.getByText("2 selected").waitFor();
  await hand.press(page.getByRole("button", { name: "Set together" }));
  await page.getByLabel("What to set").selectOption("factor");
  await hand.fill(page.getByLabel("Factor"), "0.5");
  await page.getByText("2 prices change").waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  expect((await cellsOf(page, "deepseek-chat")).slice(1, 3)).toEqual(["617.25", "4.5"]);
  // What was changed is a view with an address.
  await hand.press(page.getByRole("link", { name: /^Changed/ }));
  expect(page.url()).toContain("view=changed");
  expect(await page.getByRole("rowheader").count()).toBe(3);
  expect(problems).toEqual([]);
  await close();
}, 120_000);

test("by finger at 360 px: cards that are tapped, in Chinese, and nothing lies beyond the edge", async () => {
  const { page, problems, close } = await visitOf("finger", "zh");
  const hand = await handOf(page, "finger");
  await page.goto("/prices");
  const fieldOf = (column: string, name: string, text: string) =>
    page.getByRole("button", { name: new RegExp(`^${column} \\$/M ${name}： ${text} .*编辑$`) });
  await hand.press(fieldOf("输入", "qwen-max", "1.6"));
  const field = page.getByRole("textbox", { name: "qwen-max 的输入" });
  await field.fill("十");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "“十”不是数字" }).waitFor();
  // Sizes are looked at in the drawer: behind the dock at the foot, whatever scrolls is cut.
  expect(await violationsOf(page, { only: CARD_RULES })).toEqual([]);
  await field.fill("２．５");
  await page.keyboard.press("Enter");
  await fieldOf("输入", "qwen-max", "2.5").waitFor();
  // A price that is missing is told, and set.
  await hand.press(page.getByRole("link", { name: /未设置价格/ }));
  await hand.press(page.getByRole("checkbox", { name: "选择 deepseek-chat" }));
  await hand.press(page.getByRole("button", { name: "批量设置" }));
  await hand.fill(page.getByLabel("输入（美元 / 1M）"), "0.28");
  await hand.fill(page.getByLabel("输出（美元 / 1M）"), "0.42");
  expect(await violationsOf(page)).toEqual([]);
  await hand.press(page.getByRole("button", { name: "应用到 1 个模型" }));
  await fieldOf("输出", "deepseek-chat", "0.42").waitFor();
  await hand.press(page.getByRole("button", { name: "撤销：批量设置 1 个模型" }));
  await fieldOf("输出", "deepseek-chat", "–").waitFor();
  expect(await isAsWideAsTheScreen(page)).toBe(true);
  expect(problems).toEqual([]);
  await close();
}, 120_000);
