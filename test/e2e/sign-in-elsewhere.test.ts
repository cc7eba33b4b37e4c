// Signing in by somebody else, as people meet it: root defines a provider in the settings; a stranger comes in by it, cannot
// give up the last way in, takes a password, gives it up and takes it back, and shows two other devices out; WeChat by its
// code, Telegram by its signed result. By keyboard alone in English, by finger at 360 px in Chinese; on both databases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash, createHmac } from "node:crypto";
import type { Browser, Page } from "playwright";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF } from "../support/hands.ts";
import type { Hand, JourneyLanguage, Manner } from "../support/hands.ts";
import { OIDC_CLIENT, startIdentityServer } from "../support/identity-server.ts";
import type { IdentityServer } from "../support/identity-server.ts";
import type { DatabaseKind } from "../support/postgres.ts";
import { startProviderFakes } from "../support/provider-fakes.ts";
import type { ProviderFakes } from "../support/provider-fakes.ts";
import { wordsOf } from "../support/words.ts";

const PASSWORD = "battery staple";
const BOT = "123456:a bot's token";
const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0";

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

describe.each([
  ["en", "keyboard", "sqlite"],
  ["zh", "finger", "postgres"],
] as [JourneyLanguage, Manner, DatabaseKind][])("in %s, by %s, on %s", (language, manner, database) => {
  const t = wordsOf(language);
  let app: TestApp;
  let identity: IdentityServer;
  let fakes: ProviderFakes;
  let root: TestUser;
  let visit: Visit;
  let page: Page;
  let hand: Hand;

  beforeAll(async () => {
    app = await startTestApp({ database });
    const { db, options } = app.deps;
    await db.orm.insert(db.t.setups).values({ id: 1, version: "0", initializedAt: 1 });
    fakes = startProviderFakes();
    identity = await startIdentityServer(`${app.url}/oauth/journey`);
    identity.account = {
      sub: "ada",
      preferred_username: "ada",
      name: "Ada",
      email: "ada@mail.example",
      email_verified: true,
    };
    for (const [key, value] of [
      ["ServerAddress", app.url],
      ["WeChatServerAddress", fakes.url],
      ["WeChatServerToken", "the-token"],
      ["WeChatAccountQRCodeImageURL", `${app.url}/logo.svg`],
      ["WeChatAuthEnabled", "true"],
      ["TelegramBotToken", BOT],
      ["TelegramBotName", "weir_bot"],
      ["TelegramOAuthEnabled", "true"],
    ] as const)
      await options.set(key, value);
    root = await app.createUser({ username: "owner", role: 100 });
  });
  afterAll(async () => {
    await app.close();
    await identity.close();
    await fakes.close();
  });

  async function begin(user?: TestUser): Promise<void> {
    visit = await openVisit(browser, {
      baseURL: app.url,
      ...CONTEXT_OF[manner],
      locale: LOCALE_OF[language],
    });
    ({ page } = visit);
    if (user) {
      const cookie = user.headers["cookie"] ?? "";
      const value = cookie.slice(cookie.indexOf("=") + 1);
      await visit.context.addCookies([{ name: "session", value, url: app.url }]);
    }
    hand = await handOf(page, manner);
  }
  const mounted = () => page.locator("[data-mounted]").waitFor();
  const open = async (path: string) => {
    // From the same page to another place of it nothing would be loaded.
    await page.goto("about:blank");
    await page.goto(path);
    await mounted();
  };
  const main = () => page.locator("main");
  const dialog = () => page.getByRole("dialog");
  const said = (text: string) => page.getByText(text).first().waitFor();
  /** A button of the page, or of one of its cards, that names what it is for after its word. */
  const bindingButton = (word: string, name: string) =>
    main()
      .locator("#bindings")
      .getByRole("button", { name: new RegExp(`^${word}\\s*${name}$`) });
  const pressIn = (key: string) => hand.press(dialog().getByRole("button", { name: t(key), exact: true }));
  const signOut = async () => {
    await visit.context.clearCookies({ name: "session" });
    await open("/login");
  };

  test("root defines a provider in the settings", async () => {
    await begin(root);
    await open("/setting?tab=system#PasswordLoginEnabled");
    await hand.press(main().getByRole("button", { name: t("editor.providers.add"), exact: true }));
    const field = (name: string) => dialog().locator(`[name="${name}"]`);
    await hand.fill(field("name"), "Journey");
    await hand.fill(field("slug"), "journey");
    await hand.press(dialog().getByRole("switch", { name: t("editor.providers.field.enabled") }));
    await hand.fill(field("issuer"), identity.issuer);
    await hand.fill(field("client_id"), OIDC_CLIENT.id);
    await hand.fill(field("client_secret"), OIDC_CLIENT.secret);
    await pressIn("common.create");
    await main().getByText(`${app.url}/oauth/journey`).waitFor();
    expect(await isAsWideAsTheScreen(page)).toBe(true);
    expect(visit.problems).toEqual([]);
    await visit.close();
  });

  test("a stranger comes in by it, and keeps a way in whatever is given up", async () => {
    await begin();
    await open("/login");
    await hand.press(main().getByRole("button", { name: t("signin.with", { name: "Journey" }) }));
    await page.waitForURL("**/token");
    await open("/personal#bindings");
    await hand.press(bindingButton(t("personal.unbind"), "Journey"));
    await pressIn("personal.unbind");
    await said(t("failure.last_method"));

    const password = main().locator("#password");
    await hand.fill(password.locator("[name=password]"), PASSWORD);
    await hand.fill(password.locator("[name=again]"), PASSWORD);
    await hand.press(password.getByRole("button", { name: t("personal.changePassword"), exact: true }));
    await said(t("personal.passwordChanged"));
    await hand.press(bindingButton(t("personal.unbind"), "Journey"));
    await pressIn("personal.unbind");
    await said(t("personal.unboundNow", { name: "Journey" }));
    await hand.press(bindingButton(t("personal.bind"), "Journey"));
    await said(t("personal.boundNow", { name: "Journey" }));
    expect(await isAsWideAsTheScreen(page)).toBe(true);
  });

  test("other devices are listed and shown out, one and then the rest", async () => {
    const agent = { id: 0, username: "", headers: { "user-agent": FIREFOX } };
    const elsewhere: TestUser[] = [];
    for (let each = 0; each < 3; each++) {
      const answer = await app.call<{ data: { id: number } }>(
        "POST",
        "/api/user/login",
        { username: "ada", password: PASSWORD },
        agent,
      );
      const cookie = answer.headers.getSetCookie().find((line) => line.startsWith("session=")) ?? "";
      const headers = { cookie: cookie.split(";")[0] ?? "", "new-api-user": String(answer.body.data.id) };
      elsewhere.push({ id: answer.body.data.id, username: "ada", headers });
    }
    const areIn = async () => {
      const answers = await Promise.all(
        elsewhere.map((user) => app.call("GET", "/api/user/self", undefined, user)),
      );
      return answers.filter(({ status }) => status === 200).length;
    };
    expect(await areIn()).toBe(3);
    await open("/personal#devices");
    const devices = main().locator("#devices");
    expect(await devices.getByText(t("personal.deviceThis")).count()).toBe(1);
    const others = devices.getByRole("button", { name: /Firefox/ });
    expect(await others.count()).toBe(3);
    await hand.press(others.first());
    await devices.getByRole("listitem").nth(3).waitFor({ state: "detached" });
    expect(await areIn()).toBe(2);
    await hand.press(devices.getByRole("button", { name: t("personal.devicesOut"), exact: true }));
    await pressIn("personal.devicesOut");
    await said(t("personal.devicesDone"));
    expect(await areIn()).toBe(0);
    await page.reload();
    await mounted();
    expect(await devices.getByRole("listitem").count()).toBe(1);
  });

  /** Telegram as its page answers: in the query, or behind "#". */
  async function answerAsTelegram(): Promise<void> {
    let serial = 0;
    await visit.context.route("https://oauth.telegram.org/**", async (route) => {
      const asked = new URL(route.request().url()).searchParams;
      const fields: Record<string, string> = {
        auth_date: String(Math.floor(Date.now() / 1000)),
        first_name: "Ada",
        id: "4242",
        last_name: String(++serial),
      };
      const signed = Object.entries(fields).map(([key, value]) => `${key}=${value}`);
      const key = createHash("sha256").update(BOT).digest();
      fields["hash"] = createHmac("sha256", key).update(signed.join("\n")).digest("hex");
      const back = asked.get("return_to") ?? "";
      const target =
        manner === "finger"
          ? `${back}#tgAuthResult=${Buffer.from(JSON.stringify({ ...fields, id: 4242, auth_date: Number(fields["auth_date"]) })).toString("base64url")}`
          : `${back}?${new URLSearchParams(fields)}`;
      await route.fulfill({
        contentType: "text/html",
        body: `<script>location.replace(${JSON.stringify(target)})</script>`,
      });
    });
  }

  test("WeChat is bound by its code and Telegram by its word, and both let the account in", async () => {
    await answerAsTelegram();
    await open("/personal#bindings");
    await hand.press(bindingButton(t("personal.bind"), "WeChat"));
    await hand.fill(dialog().locator("[name=code]"), "ada-at-wechat");
    await pressIn("signin.wechatBindSubmit");
    await said(t("personal.boundNow", { name: t("personal.binding.wechat_id") }));
    await hand.press(bindingButton(t("personal.bind"), "Telegram"));
    await said(t("personal.boundNow", { name: "Telegram" }));

    await signOut();
    await hand.press(main().getByRole("button", { name: t("signin.with", { name: "WeChat" }) }));
    await dialog()
      .getByRole("img", { name: t("signin.wechatPicture") })
      .waitFor();
    await hand.fill(dialog().locator("[name=code]"), "ada-at-wechat");
    await pressIn("signin.wechatSubmit");
    await page.waitForURL("**/token");
    await signOut();
    await hand.press(main().getByRole("button", { name: t("signin.with", { name: "Telegram" }) }));
    await page.waitForURL("**/token");
    expect(await isAsWideAsTheScreen(page)).toBe(true);
    expect(visit.problems).toEqual([]);
    await visit.close();
  });
});
