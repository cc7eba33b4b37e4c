// Prices are compared with a source, taken, planned, applied and taken back in the browser: from a file, and from a host that
// misbehaves first. With conflicts that stay the operator's own unless a person ticks them.
// The walk with the mouse is the long run's (WEIR_LONG): finger and keyboard are asked for more.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright";
import type { TestApp, TestUser } from "../support/app.ts";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser } from "../support/browser.ts";
import { walkedNow } from "../support/hands.ts";
import { openPage, startSite, visitOf } from "../support/journeys.ts";
import { startPriceHost } from "../support/price-source.ts";
import type { PriceHost } from "../support/price-source.ts";

let app: TestApp;
let host: PriceHost;
let browser: Browser;
let root: TestUser;
let admin: TestUser;

beforeAll(async () => {
  [{ app, root, admin }, host, browser] = await Promise.all([
    startSite({ env: { UPSTREAM_NETWORKS: "127.0.0.0/8" } }),
    startPriceHost(),
    launchBrowser(),
  ]);
  await app.createChannel({ name: "main", models: "known,mine,fresh" });
});
afterAll(async () => {
  await browser.close();
  host.close();
  await app.close();
});

/** What the source says: one price newer, one that both changed, one new, one ten times dearer, one broken. */
const LIST = {
  success: true,
  data: {
    model_ratio: { known: 1.25, mine: 2, fresh: 3, wild: 30, broken: -1 },
    completion_ratio: { known: 4, mine: 4, fresh: 4, wild: 4 },
  },
};

/** Prices that were taken from a source once, one of which the operator has changed since. */
async function resetPrices(): Promise<void> {
  const { db, options } = app.deps;
  const { priceOrigins } = db.t;
  await options.set("ModelRatio", '{"known":1,"mine":1.5,"wild":3}');
  await options.set("CompletionRatio", '{"known":4,"mine":4,"wild":4}');
  await db.orm.delete(priceOrigins);
  await db.orm.insert(priceOrigins).values(
    ["known", "mine", "wild"].map((name) => ({
      name,
      price: name === "wild" ? '{"in":6,"out":24}' : '{"in":2,"out":8}',
      source: "shipped",
      version: "1",
      takenAt: 1,
    })),
  );
}

const ratios = () => app.deps.options.get("ModelRatio");

const WORDS = {
  en: {
    source: "Source",
    address: "Address",
    compare: "Compare",
    tick: (name: string) => `Take the price of ${name}`,
    take: /^Take 3 prices$/,
    toPlan: "Go to the plan",
    apply: /^Apply/,
    reason: "Reason",
    applied: /^Applied: /,
    undoAll: "Undo…",
    undo: /^Undo \d/,
    undone: /^Undone: /,
    html: /web page/,
    redirected: /on to another host/,
    broken: /not complete JSON/,
  },
  zh: {
    source: "来源",
    address: "地址",
    compare: "对比",
    tick: (name: string) => `选用 ${name} 的价格`,
    take: /^选用 3 个价格$/,
    toPlan: "前往计划",
    apply: /^应用[ ：]/,
    reason: "原因",
    applied: /^已应用 /,
    undoAll: "撤销…",
    undo: /^撤销 \d/,
    undone: /^已撤销 /,
    html: /返回的是网页/,
    redirected: /跳转到其他主机/,
    broken: /不是完整的 JSON/,
  },
};

describe.each(
  walkedNow([
    ["mouse", "en"],
    ["finger", "zh"],
    ["keyboard", "en"],
  ] as const),
)("with the %s, in %s", (manner, language) => {
  test("from a host that misbehaves first: compared, a conflict ticked by hand, applied and undone", async () => {
    await resetPrices();
    const words = WORDS[language];
    const { page, hand, problems, close } = await visitOf(browser, app, { user: root, manner, language });
    await openPage(page, "/prices?section=sync");
    const source = page.getByLabel(words.source, { exact: true });
    await source.waitFor();
    await source.selectOption("detect");
    const address = page.getByRole("textbox", { name: words.address });
    const compare = page.getByRole("button", { name: words.compare, exact: true });
    for (const [path, sentence] of [
      ["/html", words.html],
      ["/truncated", words.broken],
      [`/?to=${encodeURIComponent("http://localhost:1/")}`, words.redirected],
    ] as const) {
      await hand.fill(address, host.url + path);
      await hand.press(compare);
      await page.getByRole("alert").getByText(sentence).waitFor();
    }
    host.serve("/list", LIST);
    await hand.fill(address, `${host.url}/list`);
    await hand.press(compare);
    const box = (name: string) => page.getByRole("checkbox", { name: words.tick(name), exact: true });
    await box("known").waitFor();
    const ticked = async () =>
      Object.fromEntries(
        await Promise.all(
          ["fresh", "known", "mine", "wild"].map(
            async (name) => [name, await box(name).isChecked()] as const,
          ),
        ),
      );
    expect(await ticked()).toEqual({ fresh: true, known: true, mine: false, wild: false });
    expect(await violationsOf(page)).toEqual([]);
    // The operator's own price, which the source has changed as well: only a person takes it.
    await hand.press(box("mine"));
    await hand.press(page.getByRole("button", { name: words.take }));
    await hand.press(page.getByRole("button", { name: words.toPlan }));
    await hand.fill(page.getByRole("textbox", { name: words.reason }), "List prices of November");
    // Nothing is in force yet.
    expect(ratios()).toEqual({ known: 1, mine: 1.5, wild: 3 });
    await hand.press(page.getByRole("button", { name: words.apply }));
    await page.getByText(words.applied).waitFor();
    expect(ratios()).toEqual({ known: 1.25, mine: 2, fresh: 3, wild: 3 });

    await openPage(page, "/prices?section=history&name=fresh");
    await hand.press(page.locator("main li a[href*=revision]").first());
    await page.getByRole("dialog").getByText("List prices of November").waitFor();
    await hand.press(page.getByRole("button", { name: words.undoAll }));
    await hand.press(page.getByRole("button", { name: words.undo }));
    await page.getByText(words.undone).waitFor();
    expect(ratios()).toEqual({ known: 1, mine: 1.5, wild: 3 });
    expect(problems).toEqual([]);
    await close();
  });
});

test("an administrator compares with a file; what was taken before is not offered as new", async () => {
  await resetPrices();
  const { page, hand, problems, close } = await visitOf(browser, app, { user: admin, language: "en" });
  await openPage(page, "/prices?section=sync");
  await page.getByLabel("Source", { exact: true }).selectOption("detect");
  expect(await page.getByRole("textbox", { name: "Address" }).count()).toBe(0);
  await page.locator("input[type=file]").setInputFiles({
    name: "prices.json",
    mimeType: "application/json",
    buffer: Buffer.from(JSON.stringify(LIST)),
  });
  await hand.press(page.getByRole("button", { name: "Compare", exact: true }));
  await page.getByText("4 prices read: 0 as here, 4 differ.").waitFor();
  await page.getByText("1 entry could not be read").waitFor();
  await hand.press(page.getByRole("button", { name: /^Both changed/ }));
  expect(await page.getByRole("checkbox", { name: /^Take the price of/ }).count()).toBe(1);
  await hand.press(page.getByRole("button", { name: /^Look twice/ }));
  await page.getByRole("checkbox", { name: "Take the price of wild" }).waitFor();
  await hand.press(page.getByRole("button", { name: /^Take 2 prices$/ }));
  await hand.press(page.getByRole("button", { name: "Go to the plan" }));
  await page.getByText("fresh").first().waitFor();
  // Root applies.
  expect(await page.getByRole("button", { name: /^Apply/ }).count()).toBe(0);
  expect(problems).toEqual([]);
  await close();
});
