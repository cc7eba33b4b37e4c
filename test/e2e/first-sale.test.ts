// A fresh site to its first sold call, in the browser and without leaving it: the wizard, the checklist that ticks itself,
// a channel whose model gets its price there and then, a key, and a call that is charged.
// The walk with the mouse is the long run's (WEIR_LONG): finger and keyboard are asked for more.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { startFakeUpstream, stream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import {
  CONTEXT_OF,
  handOf,
  isAsWideAsTheScreen,
  LOCALE_OF,
  openUntil,
  walkedNow,
} from "../support/hands.ts";
import type { Hand, JourneyLanguage, Manner } from "../support/hands.ts";
import { CHANNEL_WORDS } from "../support/journeys.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { DatabaseKind, TestDatabase } from "../support/postgres.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

const ROOT = { username: "owner", password: "a long password" };
/** No table has a price for it. */
const MODEL = "house-model-1";

const TEXTS = {
  en: {
    next: "Next",
    username: "Username",
    password: /^Password/,
    confirm: /^Confirm password/,
    initialise: "Finish setup",
    go: "Go on to the first call",
    title: "A few steps to your first figures",
    steps: {
      channel: "Connect a provider",
      prices: "Set prices",
      key: "Create an API key",
      call: "Call a model",
    },
    done: "done",
    addChannel: "Add channel",
    ...CHANNEL_WORDS.en,
    input: "Input / 1M",
    output: "Output / 1M",
    createKey: "Create key",
    newKey: "New API key",
    unlimited: "Unlimited quota",
    play: "Open the playground",
    message: /message/i,
    over: "The first call has come in.",
    show: "Show the figures",
    chart: "Spend over time",
  },
  zh: {
    next: "下一步",
    username: "用户名",
    password: /^密码/,
    confirm: /^确认密码/,
    initialise: "初始化系统",
    go: "继续完成首次调用",
    title: "完成以下步骤即可看到数据",
    steps: { channel: "接入一个渠道", prices: "设置价格", key: "创建一个令牌", call: "调用一次模型" },
    done: "已完成",
    addChannel: "添加渠道",
    ...CHANNEL_WORDS.zh,
    input: "输入 / 1M",
    output: "输出 / 1M",
    createKey: "创建令牌",
    newKey: "新建令牌",
    unlimited: "无限额度",
    play: "打开操练场",
    message: /消息/,
    over: "首次调用已成功。",
    show: "查看数据",
    chart: "花费随时间的变化",
  },
} as const;

const WALKS: { database: DatabaseKind; language: JourneyLanguage; manner: Manner; zone: string }[] = [
  { database: "sqlite", language: "en", manner: "mouse", zone: "America/New_York" },
  { database: "postgres", language: "zh", manner: "finger", zone: "Asia/Shanghai" },
  { database: "sqlite", language: "en", manner: "keyboard", zone: "Europe/Berlin" },
  // Nothing of it is new but the pair: the long run has it.
  ...(Bun.env["WEIR_LONG"] === "1"
    ? [{ database: "sqlite", language: "en", manner: "finger", zone: "Pacific/Auckland" } as const]
    : []),
];

let upstream: FakeUpstream;
let browser: Browser;
beforeAll(async () => {
  [upstream, browser] = await Promise.all([startFakeUpstream(), launchBrowser()]);
});
afterAll(async () => {
  await browser.close();
  upstream.stop();
});

describe.each(walkedNow(WALKS))(
  "by $manner on $database, in $language",
  ({ database: kind, language, manner, zone }) => {
    const texts = TEXTS[language];
    let database: TestDatabase;
    let server: ServerProcess;
    let visit: Visit;
    let page: Page;
    let hand: Hand;

    beforeAll(async () => {
      database = await createTestDatabase(kind);
      server = await startServerProcess({ DATABASE_URL: database.databaseUrl ?? "" });
      visit = await openVisit(browser, {
        baseURL: server.url,
        locale: LOCALE_OF[language],
        timezoneId: zone,
        ...CONTEXT_OF[manner],
      });
      page = visit.page;
      hand = await handOf(page, manner);
    });
    afterAll(async () => {
      await visit.close();
      await server.remove();
      await database.drop();
    });

    const mounted = (where = page) => where.locator("[data-mounted]").waitFor();
    const button = (name: string) => page.getByRole("button", { name, exact: true });
    const step = (name: string, where = page) =>
      where.getByRole("region", { name: texts.title }).getByRole("listitem").filter({ hasText: name });
    const isTicked = async (name: keyof typeof texts.steps, where = page) =>
      (await step(texts.steps[name], where).getAttribute("data-done")) === "true";
    const ticks = async () => ({
      channel: await isTicked("channel"),
      prices: await isTicked("prices"),
      key: await isTicked("key"),
      call: await isTicked("call"),
    });
    /** By a link of the frame, as people go: in the sidebar, on a phone below the page. */
    const goTo = async (path: string) => {
      await hand.press(page.locator(`a[href="${path}"]:visible`).first());
      await page.waitForURL(`**${path}`);
      await mounted();
    };
    const openDashboard = async () => {
      await goTo("/detail");
      await step(texts.steps.call).waitFor();
    };

    test("the wizard takes the browser's zone and leads to the checklist, where nothing is ticked", async () => {
      await page.goto("/");
      await page.waitForURL("**/setup");
      await mounted();
      await hand.press(button(texts.next));
      await hand.fill(page.getByLabel(texts.username), ROOT.username);
      await hand.fill(page.getByLabel(texts.password), ROOT.password);
      await hand.fill(page.getByLabel(texts.confirm), ROOT.password);
      await hand.press(button(texts.next));
      await hand.press(button(texts.initialise));
      await page.getByRole("link", { name: texts.go }).waitFor();
      // By its link or, after a moment, by itself.
      await page.waitForURL("**/detail");
      await mounted();
      expect(await ticks()).toEqual({ channel: false, prices: false, key: false, call: false });
      expect(await isAsWideAsTheScreen(page)).toBe(true);
      expect(await violationsOf(page)).toEqual([]);
      const status = (await (await page.request.get("/api/status")).json()) as {
        data: { time_zone: string };
      };
      expect(status.data.time_zone).toBe(zone);
    });

    test("a channel is added; its model's missing price is asked for there and then", async () => {
      await hand.press(page.getByRole("link", { name: texts.addChannel }));
      const drawer = page.getByRole("dialog", { name: texts.newChannel });
      await drawer.waitFor();
      await mounted();
      await hand.fill(drawer.getByLabel(texts.name), "fake provider");
      await hand.fill(drawer.getByLabel(texts.baseUrl), upstream.url);
      await hand.fill(drawer.getByLabel(texts.key), "sk-upstream-secret");
      await hand.fill(drawer.getByLabel(texts.models), MODEL);
      await hand.press(drawer.getByRole("button", { name: texts.create, exact: true }));
      const prices = page.getByRole("dialog", { name: texts.setPrices });
      await prices.waitFor();
      expect(await prices.textContent()).toContain(MODEL);
      await hand.fill(prices.getByLabel(texts.input), "2");
      await hand.fill(prices.getByLabel(texts.output), "8");
      await hand.press(prices.getByRole("button", { name: texts.setPrices }));
      await prices.waitFor({ state: "detached" });
      await page.getByRole("row", { name: /fake provider/ }).waitFor();
      await openDashboard();
      expect(await ticks()).toEqual({ channel: true, prices: true, key: false, call: false });
    });

    test("a key is created", async () => {
      await hand.press(page.getByRole("link", { name: texts.createKey }));
      const drawer = page.getByRole("dialog", { name: texts.newKey });
      await drawer.waitFor();
      await mounted();
      await hand.fill(drawer.getByLabel(texts.name), "laptop");
      await hand.press(drawer.getByLabel(texts.unlimited));
      await hand.press(drawer.getByRole("button", { name: texts.create, exact: true }));
      await page
        .locator("code", { hasText: /^sk-[0-9A-Za-z]{48}$/ })
        .first()
        .waitFor();
      await openDashboard();
      expect(await ticks()).toEqual({ channel: true, prices: true, key: true, call: false });
    });

    test("the first call is made in the playground; the list that stands open elsewhere ticks itself", async () => {
      const list = await page.context().newPage();
      await list.goto("/detail");
      await mounted(list);
      await page.bringToFront();
      await hand.press(page.getByRole("link", { name: texts.play }));
      await page.waitForURL("**/playground");
      await mounted();
      upstream.script(
        stream(["Sold ", "for ", "the first time."], {
          usage: { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 },
        }),
      );
      await hand.fill(page.getByRole("textbox", { name: texts.message }), "Hello");
      await page.keyboard.press("Enter");
      await page.getByText("Sold for the first time.").waitFor();

      // Nobody reloads it.
      await list.bringToFront();
      await list.getByText(texts.over).waitFor();
      expect(await isTicked("call", list)).toBe(true);
      await list.getByRole("button", { name: texts.show }).click();
      await list.getByRole("figure", { name: texts.chart }).waitFor();
      expect(await list.getByText(texts.title).count()).toBe(0);
      await list.close();
    });

    test("it was sold at the price that was set", async () => {
      await page.bringToFront();
      await goTo("/log");
      const row = page.getByRole("row", { name: new RegExp(MODEL) });
      await openUntil(page, "/log", row);
      // 1000 × $2/M + 500 × $8/M.
      expect(await row.textContent()).toContain("$0.006");
    });

    test("no page had an error in its console, and the books stay balanced when the process is killed", async () => {
      expect(visit.problems).toEqual([]);
      await server.kill();
      expect(server.audit()).toMatchObject({ code: 0 });
    });
  },
);
