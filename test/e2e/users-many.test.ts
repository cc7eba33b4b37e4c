// Many users in a real browser: found by filters, changed all at once, brought in by a file; and a person who takes their
// data along and is forgotten. English by keyboard alone, Chinese by finger at 360 px.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { eq } from "drizzle-orm";
import type { Browser, Page } from "playwright";
import { audit } from "../../src/core/ledger/audit.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF } from "../support/hands.ts";
import type { Hand, JourneyLanguage, Manner } from "../support/hands.ts";
import { wordsOf } from "../support/words.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

describe.each([
  ["en", "keyboard"],
  ["zh", "finger"],
] as [JourneyLanguage, Manner][])("in %s, by %s", (language, manner) => {
  const t = wordsOf(language);
  let app: TestApp;
  let root: TestUser;
  let visit: Visit;
  let page: Page;
  let hand: Hand;

  async function visitAs(user: TestUser): Promise<Visit> {
    const opened = await openVisit(browser, {
      baseURL: app.url,
      ...CONTEXT_OF[manner],
      locale: LOCALE_OF[language],
    });
    const cookie = user.headers["cookie"] ?? "";
    await opened.context.addCookies([
      { name: "session", value: cookie.slice(cookie.indexOf("=") + 1), url: app.url },
    ]);
    return opened;
  }
  async function open(path: string): Promise<void> {
    await page.goto(path);
    await page.locator("[data-mounted]").waitFor();
  }
  const dialog = () => page.getByRole("dialog").last();
  const press = (name: string, within = page.locator("body")) =>
    hand.press(within.getByRole("button", { name, exact: true }).last());
  const rowOf = async (username: string) => {
    const { users } = app.deps.db.t;
    return (await app.deps.db.orm.select().from(users).where(eq(users.username, username)))[0];
  };

  beforeAll(async () => {
    app = await startTestApp();
    const { db } = app.deps;
    await db.orm.insert(db.t.setups).values({ id: 1, version: "0", initializedAt: 1 });
    root = await app.createUser({ username: "owner", role: 100 });
    for (let at = 0; at < 14; at++) await app.createUser({ username: `vip${at}`, group: "vip", quota: 1000 });
    visit = await visitAs(root);
    ({ page } = visit);
    hand = await handOf(page, manner);
  });
  afterAll(async () => {
    await visit.close();
    await app.close();
  });

  test("all that match a filter are changed at once, and the result stays", async () => {
    await open("/user?group=vip");
    await hand.press(page.locator("tr[data-index] input[type=checkbox]").first());
    await press(t("table.selectMatching", { number: 14 }));
    await press(t("user.bulk.credit"));
    await hand.fill(dialog().locator("[name=amount]"), "2");
    await hand.fill(dialog().locator("[name=reason]"), "outage");
    await press(t("user.bulk.do.credit", { number: 14 }), dialog());
    await dialog()
      .getByText(t("user.bulk.counts", { done: 14, total: 14 }))
      .waitFor();
    expect(await isAsWideAsTheScreen(page)).toBe(true);
    expect((await rowOf("vip7"))?.quota).toBe(1_001_000);
    // Leaving and coming back: it stands under the runs.
    await open("/user?run=all");
    await press(`${t("user.bulk.credit")}: +$2.00`, dialog());
    await dialog().getByText(t("user.bulk.finished"), { exact: true }).waitFor();
    expect(new URL(page.url()).searchParams.get("run")).toMatch(/^\d+$/);
  });

  test("a file is looked at, begun, and done line by line; the list goes out as a file", async () => {
    await open("/user?import=1");
    const csv = "username,password,group,credit_usd\nnora,a long password,vip,3\nvip3,,default,\n";
    await dialog()
      .locator("input[type=file]")
      .setInputFiles({ name: "course.csv", mimeType: "text/csv", buffer: Buffer.from(csv) });
    await dialog().getByText(t("user.import.right")).waitFor();
    await hand.fill(dialog().locator("[name=reason]"), "course");
    await press(t("user.import.begin", { number: 2 }), dialog());
    await dialog()
      .getByText(t("user.bulk.counts", { done: 2, total: 2 }))
      .waitFor();
    expect(await rowOf("nora")).toMatchObject({ group: "vip", quota: 1_500_000 });
    expect((await rowOf("vip3"))?.group).toBe("default");
    await open("/user?keyword=nora");
    await press(t("common.more"));
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      hand.press(page.getByRole("menuitem", { name: t("table.exportCsv"), exact: true })),
    ]);
    expect(download.suggestedFilename()).toMatch(/^users-.*\.csv$/);
    expect(readFileSync(await download.path(), "utf8")).toContain("nora");
    expect((await audit(app.deps.db)).differences).toEqual([]);
    expect(visit.problems).toEqual([]);
  });

  test("a person takes their data along, and is forgotten", async () => {
    const mine = await app.createUser({ username: "gisela" });
    const own = await visitAs(mine);
    page = own.page;
    hand = await handOf(page, manner);
    await open("/personal");
    const [download] = await Promise.all([page.waitForEvent("download"), press(t("personal.dataExport"))]);
    expect(JSON.parse(readFileSync(await download.path(), "utf8"))).toMatchObject({
      account: { username: "gisela" },
    });
    await press(t("personal.erase"));
    await hand.fill(dialog().getByRole("textbox"), "gisela");
    await press(t("personal.erase"), dialog());
    await page.waitForURL("**/login");
    expect(await rowOf("gisela")).toBeUndefined();
    expect(await rowOf(`erased@${mine.id}`)).toMatchObject({ email: "", displayName: "" });
    expect(own.problems).toEqual([]);
    await own.close();
  });
});
