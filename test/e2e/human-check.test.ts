// The human check in the browser: its script comes to the pages that ask for it and to no others, the policy of each page
// lets in exactly its host, and a person gets through. The script is one of ours in its place; the service answers on
// loopback.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, BrowserContext, Page } from "playwright";
import { launchBrowser, openVisit, PAGE_IS_UP, pageRests } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { CONTEXT_OF, handOf } from "../support/hands.ts";
import { startSite } from "../attack/site.ts";
import type { Site } from "../attack/site.ts";

const HOST = "https://challenges.cloudflare.com";
const ASKING = ["/login", "/register", "/reset"];
const OTHERS = [
  "/",
  "/pricing",
  "/about",
  "/user/reset?email=a@b.example&token=0",
  "/rescue",
  "/no-such-page",
];

/** As much of the real one as pages use: a box that a person presses. */
const SCRIPT = `
  let made = 0;
  window.turnstile = {
    render(element, options) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "I am human";
      button.dataset.action = options.action;
      button.dataset.language = options.language;
      button.dataset.sitekey = options.sitekey;
      button.onclick = () => { made += 1; options.callback("token " + made); };
      element.replaceChildren(button);
      return String(made);
    },
    reset() {},
    remove() { document.querySelector("[data-sitekey]")?.remove(); },
  };`;

let site: Site;
let browser: Browser;
let service: ReturnType<typeof Bun.serve>;
let asked: URLSearchParams[] = [];
let visit: Visit | undefined;

beforeAll(async () => {
  service = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const form = new URLSearchParams(await request.text());
      asked.push(form);
      return Response.json({
        success: form.get("response")?.startsWith("token ") === true,
        hostname: "127.0.0.1",
      });
    },
  });
  site = await startSite();
  for (const [key, value] of [
    ["ServerAddress", site.server.url],
    ["SMTPServer", "127.0.0.1"],
    ["SMTPFrom", "site@mail.example"],
    ["TurnstileSiteKey", "the site key"],
    ["TurnstileSecretKey", "the secret"],
    ["TurnstileVerifyUrl", `http://127.0.0.1:${service.port}/siteverify`],
  ] as const)
    await site.set(key, value);
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await site.remove();
  await service.stop(true);
});

/** A visit in which the host of the check is ours, and what was asked of it. */
async function open(
  options: Partial<Parameters<typeof openVisit>[1]> = {},
): Promise<{ page: Page; problems: string[]; fetched: string[] }> {
  await visit?.close();
  visit = await openVisit(browser, { baseURL: site.server.url, ...options });
  const fetched: string[] = [];
  await answerAs(visit.context, fetched);
  return { page: visit.page, problems: visit.problems, fetched };
}

async function answerAs(context: BrowserContext, fetched: string[]): Promise<void> {
  await context.route(`${HOST}/**`, async (route) => {
    fetched.push(route.request().url());
    await route.fulfill({ contentType: "text/javascript", body: SCRIPT });
  });
}

const policyOf = (text: string | undefined) =>
  Object.fromEntries((text ?? "").split(";").map((part) => part.trim().split(/ (.*)/s) as [string, string]));

describe("while the site asks for none", () => {
  test("nothing is loaded from anywhere", async () => {
    const { page, problems, fetched } = await open();
    for (const path of [...ASKING, ...OTHERS.slice(0, 3)]) {
      await page.goto(path);
      await pageRests(page);
    }
    expect([fetched, problems]).toEqual([[], []]);
  });
});

describe("while the site asks", () => {
  beforeAll(() => site.set("TurnstileCheckEnabled", "true"));

  test.each(ASKING)(
    "%s loads the script, and its policy lets in that host beside its own and no other",
    async (path) => {
      const { page, problems, fetched } = await open();
      const answer = await page.goto(path);
      const policy = policyOf(answer?.headers()["content-security-policy"]);
      const foreign = (directive = "") => directive.split(" ").filter((each) => each.includes("://"));
      expect([foreign(policy["script-src"]), foreign(policy["frame-src"])]).toEqual([[HOST], [HOST]]);
      for (const [name, value] of Object.entries(policy))
        if (name !== "script-src" && name !== "frame-src") expect([name, foreign(value)]).toEqual([name, []]);
      const box = page.locator("main").getByRole("button", { name: "I am human" });
      await box.waitFor();
      expect(fetched).toEqual([`${HOST}/turnstile/v0/api.js?render=explicit`]);
      expect(await box.getAttribute("data-sitekey")).toBe("the site key");
      expect(await box.getAttribute("data-action")).toBe(
        { "/login": "login", "/register": "register", "/reset": "reset" }[path] ?? "",
      );
      expect(problems).toEqual([]);
      // Whoever puts another's script into the page gets nothing run.
      const refused = await page.evaluate(
        () =>
          new Promise<string>((resolve) => {
            document.addEventListener("securitypolicyviolation", (event) => resolve(event.blockedURI));
            const script = document.createElement("script");
            script.src = "https://challenges.cloudflare.com.evil.example/api.js";
            document.head.append(script);
          }),
      );
      expect(refused).toStartWith("https://challenges.cloudflare.com.evil.example");
    },
  );

  test.each(OTHERS)("%s loads nothing of it and does not let it in", async (path) => {
    const { page, fetched } = await open();
    const answer = await page.goto(path);
    await pageRests(page);
    expect(fetched).toEqual([]);
    const { "script-src": scripts = "" } = policyOf(answer?.headers()["content-security-policy"]);
    expect(scripts).not.toContain("://");
  });

  test.each([
    ["en-US", "keyboard", { name: "Username or email", password: "Password", go: "Sign in", wait: /check/i }],
    ["zh-CN", "finger", { name: "用户名或邮箱", password: "密码", go: "登录", wait: /验证/ }],
  ] as const)(
    "a person signs in after the check, in %s by %s; a wrong password asks for no new one",
    async (locale, manner, text) => {
      const { page, problems, fetched } = await open({ locale, ...CONTEXT_OF[manner] });
      const hand = await handOf(page, manner);
      asked = [];
      await page.goto("/login");
      await page.waitForSelector(PAGE_IS_UP);
      const main = page.locator("main");
      const box = main.getByRole("button", { name: "I am human" });
      await box.waitFor();
      expect(await box.getAttribute("data-language")).toBe(locale === "zh-CN" ? "zh-cn" : "en");
      await hand.fill(main.getByLabel(text.name), "root");
      await hand.fill(main.getByLabel(text.password), "a wrong one");
      const go = main.locator("button[type=submit]");
      expect(((await go.textContent()) ?? "").trim()).toBe(text.go);
      await hand.press(go);
      // Nothing was sent: the check comes first.
      await main.getByText(text.wait).first().waitFor();
      expect(asked).toEqual([]);
      await hand.press(box);
      await hand.press(go);
      await main.getByRole("alert").first().waitFor();
      await page.waitForFunction(() => document.activeElement?.getAttribute("name") === "password");
      expect(asked.map((form) => form.get("response"))).toEqual(["token 1"]);
      await hand.fill(main.getByLabel(text.password), "correct horse");
      await hand.press(main.getByRole("button", { name: "I am human" }));
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
      expect(problems).toEqual([]);
      await hand.press(go);
      await page.waitForURL((url) => url.pathname !== "/login");
      // What was passed once was remembered: the service was not asked again.
      expect(asked).toHaveLength(1);
      expect(fetched).toHaveLength(1);
    },
  );

  test("a script that does not come is said, and lets nobody through", async () => {
    const { page } = await open();
    await visit?.context.unroute(`${HOST}/**`);
    await visit?.context.route(`${HOST}/**`, (route) => route.abort());
    asked = [];
    await page.goto("/login");
    const main = page.locator("main");
    await main.getByRole("alert").first().waitFor();
    await main.getByLabel("Username or email").fill("root");
    await main.getByLabel("Password").fill("correct horse");
    await main.locator("button[type=submit]").click();
    await main.getByText(/check/i).first().waitFor();
    expect(new URL(page.url()).pathname).toBe("/login");
    expect(asked).toEqual([]);
  });
});
