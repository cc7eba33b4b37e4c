// A batch of codes sold and redeemed: made and exported by an administrator, redeemed one by one and many at once by a
// user with bad ones among them, and the books balanced after it. By mouse, by finger in Chinese, by keyboard alone.
// The walk with the mouse is the long run's (WEIR_LONG): finger and keyboard are asked for more.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright";
import { audit } from "../../src/core/ledger/audit.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import type { DatabaseKind } from "../support/postgres.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF, walkedNow } from "../support/hands.ts";
import type { Hand, Manner } from "../support/hands.ts";

const TEXTS = {
  en: {
    newCodes: "New codes",
    name: /^Name/,
    value: /^Value/,
    count: /^How many/,
    create: "Create",
    newList: "New codes",
    download: "Download CSV",
    actions: (name: string) => `Actions for ${name}`,
    edit: "Edit",
    disable: "Disable",
    enable: "Enable",
    used: "Used",
    disabled: "Disabled",
    redeem: "Redeem",
    codes: "Codes",
    results: "Results",
    one: "Redeemed $2.50",
    invalid: "Not redeemed: this code is not valid",
    spent: "Not redeemed: this code has been used",
    credits: "Credits",
    table: "Redemption codes",
  },
  zh: {
    newCodes: "新建兑换码",
    name: /^名称/,
    value: /^额度/,
    count: /^生成数量/,
    create: "新建",
    newList: "新生成的兑换码",
    download: "下载 CSV",
    actions: (name: string) => `${name} 的操作`,
    edit: "编辑",
    disable: "禁用",
    enable: "启用",
    used: "已使用",
    disabled: "已禁用",
    redeem: "兑换余额",
    codes: "兑换码",
    results: "兑换结果",
    one: "已兑换 $2.50",
    invalid: "兑换失败，无效的兑换码",
    spent: "兑换失败，该兑换码已被使用",
    credits: "充值记录",
    table: "兑换码",
  },
} as const;

type Language = keyof typeof TEXTS;

interface Seat extends Visit {
  hand: Hand;
}

const WALKS: readonly { database: DatabaseKind; language: Language; manner: Manner }[] = [
  { database: "sqlite", language: "en", manner: "mouse" },
  { database: "postgres", language: "zh", manner: "finger" },
  { database: "sqlite", language: "en", manner: "keyboard" },
];

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

for (const { database, language, manner } of walkedNow(WALKS)) {
  describe(`by ${manner} on ${database}, in ${language}`, () => {
    let app: TestApp;
    let admin: TestUser;

    beforeAll(async () => {
      app = await startTestApp({ database });
      const { db } = app.deps;
      await db.orm.insert(db.t.setups).values({ id: 1, version: "0", initializedAt: 1 });
      admin = await app.createUser({ username: "seller", role: Role.admin });
    });
    afterAll(() => app.close());

    async function visitAs(user: TestUser): Promise<Seat> {
      const visit = await openVisit(browser, {
        baseURL: app.url,
        locale: LOCALE_OF[language],
        acceptDownloads: true,
        ...CONTEXT_OF[manner],
      });
      const cookie = user.headers["cookie"] ?? "";
      const value = cookie.slice(cookie.indexOf("=") + 1);
      await visit.context.addCookies([{ name: "session", value, url: app.url }]);
      return { ...visit, hand: await handOf(visit.page, manner) };
    }

    async function open(page: Page, path: string): Promise<void> {
      await page.goto(path);
      await page.locator("[data-mounted]").waitFor();
    }

    /** Makes five codes of $2.50 and takes them along; the last one is taken out of sale. */
    async function makeBatch({ page, hand }: Seat): Promise<string[]> {
      const texts = TEXTS[language];
      await open(page, "/redemption");
      await hand.press(page.getByRole("button", { name: texts.newCodes, exact: true }).first());
      const drawer = page.getByRole("dialog", { name: texts.newCodes });
      await hand.fill(drawer.getByLabel(texts.name), `batch ${language}`);
      await hand.fill(drawer.getByLabel(texts.value), "2.5");
      await hand.fill(drawer.getByLabel(texts.count), "5");
      await hand.press(drawer.getByRole("button", { name: texts.create, exact: true }));
      const list = page.getByRole("list", { name: texts.newList });
      await list.waitFor();
      const shown = await list.locator("code").allTextContents();
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        hand.press(page.getByRole("button", { name: texts.download, exact: true })),
      ]);
      const [, ...rows] = readFileSync(await download.path(), "utf8")
        .replace("\uFEFF", "")
        .trim()
        .split("\r\n");
      expect(rows).toEqual(shown.map((key) => `${key},batch ${language},2.5,1250000`));
      expect(new Set(shown).size).toBe(5);
      expect(await isAsWideAsTheScreen(page)).toBe(true);

      // By its code, because five of them share a name.
      await open(page, `/redemption?keyword=${shown[4]}`);
      await hand.press(page.getByRole("button", { name: texts.actions(`batch ${language}`) }));
      await hand.press(page.getByRole("menuitem", { name: texts.disable, exact: true }));
      await page.getByRole("row", { name: new RegExp(texts.disabled) }).waitFor();
      return shown;
    }

    /** One code, then many with bad ones among them; the balance follows each time. */
    async function redeem({ page, hand }: Seat, codes: readonly string[]): Promise<void> {
      const texts = TEXTS[language];
      const [first = "", second = "", third = "", , withdrawn = ""] = codes;
      await open(page, "/topup");
      const field = page.getByRole("textbox", { name: texts.codes });
      const button = page.getByRole("button", { name: texts.redeem, exact: true });
      const lines = page.getByRole("list", { name: texts.results }).getByRole("listitem");
      // One line on phones until somebody opens it.
      if (manner === "finger") await hand.press(page.getByRole("button", { name: texts.codes, exact: true }));
      await hand.fill(field, first);
      await hand.press(button);
      await lines.first().waitFor();
      expect(await lines.allTextContents()).toEqual([`••••${first.slice(-4)}${texts.one}`]);
      expect(await page.getByTestId("balance").textContent()).toBe("$2.50");

      await hand.fill(field, [second, "nonsense-code", first, withdrawn, third].join("\n"));
      await hand.press(button);
      await lines.nth(4).waitFor();
      expect(await lines.allTextContents()).toEqual([
        `••••${second.slice(-4)}${texts.one}`,
        `••••code${texts.invalid}`,
        `••••${first.slice(-4)}${texts.spent}`,
        `••••${withdrawn.slice(-4)}${texts.spent}`,
        `••••${third.slice(-4)}${texts.one}`,
      ]);
      // What failed stays in the field.
      expect(await field.inputValue()).toBe(["nonsense-code", first, withdrawn].join("\n"));
      expect(await page.getByTestId("balance").textContent()).toBe("$7.50");
      await page
        .getByRole("table", { name: texts.credits })
        .getByText("$2.50", { exact: true })
        .nth(2)
        .waitFor();
      expect(await isAsWideAsTheScreen(page)).toBe(true);
    }

    /** The administrator sees who has them; a used one can no longer be touched. */
    async function lookBack({ page, hand }: Seat, buyer: TestUser): Promise<void> {
      const texts = TEXTS[language];
      await open(page, "/redemption");
      await hand.press(page.getByRole("link", { name: texts.used, exact: true }));
      await page.waitForURL(/status=3/);
      const rows = page
        .getByRole("table", { name: texts.table })
        .getByRole("row", { name: new RegExp(`batch ${language}`) });
      // The rows of the tab before stand until those of this one are there.
      await rows.nth(3).waitFor({ state: "detached" });
      expect(await rows.count()).toBe(3);
      expect(await rows.getByRole("link", { name: buyer.username }).count()).toBe(3);
      await hand.press(rows.first().getByRole("button", { name: texts.actions(`batch ${language}`) }));
      const items = page.getByRole("menuitem");
      await items.first().waitFor();
      const offered = await items.filter({ visible: true }).allTextContents();
      for (const item of [texts.edit, texts.enable, texts.disable]) expect(offered).not.toContain(item);
    }

    test("a batch is sold, redeemed and accounted for", async () => {
      const buyer = await app.createUser({ username: "buyer" });
      const seller = await visitAs(admin);
      const codes = await makeBatch(seller);
      const visit = await visitAs(buyer);
      await redeem(visit, codes);
      await lookBack(seller, buyer);
      expect([...seller.problems, ...visit.problems]).toEqual([]);
      await Promise.all([visit.close(), seller.close()]);
      await app.deps.ledger.flush();
      expect((await audit(app.deps.db)).differences).toEqual([]);
    });
  });
}
