// People and their accounts: root makes a user, gives quota, changes ranks and shuts a door; the user changes the
// password, makes a system token, sets a notice, moves invitation quota and leaves. Root's part on PostgreSQL, the user's on SQLite;
// with WEIR_LONG both on both.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import type { Browser, Page } from "playwright";
import { audit } from "../../src/core/ledger/audit.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit, VisitOptions } from "../support/browser.ts";

const FIRST_PASSWORD = "first password";
const SECOND_PASSWORD = "second password";
const WIDE = { viewport: { width: 1440, height: 900 } };
const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

const isLong = Bun.env["WEIR_LONG"] === "1";
let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    let app: TestApp;
    let root: TestUser;

    beforeAll(async () => {
      app = await startTestApp({ database });
      const { db } = app.deps;
      await db.orm.insert(db.t.setups).values({ id: 1, version: "0", initializedAt: 1 });
      root = await app.createUser({ username: "owner", role: Role.root });
    });
    afterAll(() => app.close());

    function visitWith(options: Partial<VisitOptions>): Promise<Visit> {
      return openVisit(browser, { baseURL: app.url, ...options });
    }

    async function visitAs(user: TestUser): Promise<Visit> {
      const visit = await visitWith(WIDE);
      const cookie = user.headers["cookie"] ?? "";
      const value = cookie.slice(cookie.indexOf("=") + 1);
      await visit.context.addCookies([{ name: "session", value, url: app.url }]);
      return visit;
    }

    async function open(page: Page, path: string): Promise<void> {
      await page.goto(path);
      await page.locator("[data-mounted]").waitFor();
    }

    async function signIn(page: Page, username: string, password: string): Promise<void> {
      await open(page, "/login");
      await page.locator("[name=username]").fill(username);
      await page.locator("[name=password]").fill(password);
      await page.locator("[name=password]").press("Enter");
      await page.waitForURL("**/token");
    }

    const rowOf = (page: Page, name: string) =>
      page.getByRole("table", { name: "Users" }).getByRole("row", { name: new RegExp(`^(Select )?${name}`) });

    async function act(page: Page, name: string, item: string): Promise<void> {
      await page.getByRole("button", { name: `Actions for ${name}` }).click();
      await page.getByRole("menuitem", { name: item, exact: true }).click();
    }

    async function confirmed(page: Page, button: string, typed?: string): Promise<void> {
      const dialog = page.getByRole("dialog").filter({ has: page.getByRole("button", { name: button }) });
      if (typed !== undefined) await dialog.getByRole("textbox").fill(typed);
      await dialog.getByRole("button", { name: button, exact: true }).click();
    }

    async function offered(page: Page, name: string): Promise<string[]> {
      await page.getByRole("button", { name: `Actions for ${name}` }).click();
      const items = page.getByRole("menuitem").filter({ visible: true });
      await items.first().waitFor();
      const texts = await items.allTextContents();
      await page.keyboard.press("Escape");
      return texts;
    }

    const userOf = async (username: string) => {
      const { users } = app.deps.db.t;
      const [row] = await app.deps.db.orm.select().from(users).where(eq(users.username, username));
      if (!row) throw new Error(`no user ${username}`);
      return row;
    };

    async function booksBalance(): Promise<void> {
      await app.deps.ledger.flush();
      expect((await audit(app.deps.db)).differences).toEqual([]);
    }

    if (isLong || database === "postgres")
      test("an account is made, filled, promoted, demoted, shut and opened, by the ranks' rules", async () => {
        const visit = await visitAs(root);
        const { page } = visit;
        const helper = await app.createUser({ username: "helper", role: Role.admin });
        await open(page, "/user");
        await page.getByRole("button", { name: "New user", exact: true }).click();
        const drawer = page.getByRole("dialog", { name: "New user" });
        await drawer.getByLabel(/^Username/).fill("dora");
        await drawer.getByLabel(/^Password/).fill(FIRST_PASSWORD);
        await drawer.getByRole("button", { name: "Create", exact: true }).click();
        await rowOf(page, "dora").waitFor();

        await act(page, "dora", "Change balance");
        const balance = page.getByRole("dialog", { name: "Balance of dora" });
        await balance.getByLabel("Amount", { exact: true }).fill("12.5");
        await balance.getByLabel(/^Reason/).fill("For a start");
        expect(await balance.getByText("$12.50").count()).toBe(1);
        await page.keyboard.press("Control+Enter");
        await rowOf(page, "dora").getByText("$12.50").waitFor();
        expect((await userOf("dora")).quota).toBe(6_250_000);

        await act(page, "dora", "Promote");
        await confirmed(page, "Promote dora");
        await rowOf(page, "dora").getByText("Administrator").waitFor();
        // An equal may look, not touch.
        const other = await visitAs(helper);
        await open(other.page, "/user");
        expect(await offered(other.page, "dora")).toEqual(["Usage log", "Copy user ID"]);
        expect(await offered(other.page, "owner")).toEqual(["Usage log", "Copy user ID"]);
        await act(page, "dora", "Demote");
        await confirmed(page, "Demote dora");
        await rowOf(page, "dora").getByText("User", { exact: true }).waitFor();
        await other.page.reload();
        await other.page.locator("[data-mounted]").waitFor();
        const items = await offered(other.page, "dora");
        expect(items).toContain("Disable");
        expect(items).not.toContain("Promote");

        const dora = await visitWith(PHONE);
        await signIn(dora.page, "dora", FIRST_PASSWORD);
        await act(other.page, "dora", "Disable");
        await confirmed(other.page, "Disable dora");
        await rowOf(other.page, "dora").getByText("Disabled", { exact: true }).waitFor();
        // The session ended with it, at once.
        await dora.page.goto("/topup");
        await dora.page.waitForURL("**/login?**");
        await act(other.page, "dora", "Enable");
        await rowOf(other.page, "dora").getByText("Active", { exact: true }).waitFor();
        await signIn(dora.page, "dora", FIRST_PASSWORD);
        expect([...visit.problems, ...other.problems, ...dora.problems]).toEqual([]);
        await Promise.all([visit.close(), other.close(), dora.close()]);
        await booksBalance();
      });

    if (isLong || database === "sqlite")
      test("an account is looked after and left by its owner, on a phone", async () => {
        const headers = { ...root.headers, "content-type": "application/json" };
        const made = await fetch(`${app.url}/api/user/`, {
          method: "POST",
          headers,
          body: JSON.stringify({ username: "emil", password: FIRST_PASSWORD }),
        });
        expect(((await made.json()) as { success: boolean }).success).toBe(true);
        const emil = await userOf("emil");
        const { users } = app.deps.db.t;
        await app.deps.db.orm.update(users).set({ affQuota: 1_500_000 }).where(eq(users.id, emil.id));
        await app.deps.accounts.userChanged(emil.id);

        const [visit, elsewhere] = await Promise.all([visitWith(PHONE), visitWith(WIDE)]);
        const { page } = visit;
        await signIn(page, "emil", FIRST_PASSWORD);
        await signIn(elsewhere.page, "emil", FIRST_PASSWORD);
        await open(page, "/personal");
        const section = (name: string) => page.getByRole("region", { name });

        // The password, by keyboard; the other session ends.
        await section("Password")
          .getByLabel(/^Current password/)
          .fill(FIRST_PASSWORD);
        await page.keyboard.press("Tab");
        await page.keyboard.type(SECOND_PASSWORD);
        await page.keyboard.press("Tab");
        await page.keyboard.type(SECOND_PASSWORD);
        await page.keyboard.press("Enter");
        await page.getByText("Password changed").waitFor();
        await elsewhere.page.goto("/personal");
        await elsewhere.page.waitForURL("**/login?**");

        // The token works for scripts, and is gone from the page after a reload.
        await section("System access token").getByRole("button", { name: "Make a token" }).click();
        const token = await section("System access token").locator("code").textContent();
        const asScript = await fetch(`${app.url}/api/user/self`, {
          headers: { authorization: `Bearer ${token}`, "new-api-user": String(emil.id) },
        });
        expect(await asScript.json()).toMatchObject({ success: true, data: { username: "emil" } });

        const notices = section("Notices");
        await notices.getByRole("radio", { name: "Webhook" }).check();
        await notices.getByLabel(/^Webhook address/).fill("https://hooks.example/weir");
        await notices.getByLabel("Secret (optional)").fill("s3cret");
        await notices.getByRole("button", { name: "$10", exact: true }).click();
        await notices.getByRole("button", { name: "Save", exact: true }).click();
        await page.getByText("Saved", { exact: true }).waitFor();
        const { setting } = await userOf("emil");
        expect(setting).not.toContain("s3cret");
        expect(JSON.parse(setting)).toEqual({
          notify_type: "webhook",
          quota_warning_threshold: 5_000_000,
          webhook_url: "https://hooks.example/weir",
          webhook_secret_sealed: expect.any(String),
          accept_unset_model_ratio_model: false,
          language: "en",
        });

        const invitation = section("Invitations");
        await invitation.getByLabel("Amount to move").fill("2");
        await invitation.getByRole("button", { name: "Move to balance" }).click();
        await section("Identity").getByText("$2.00").waitFor();
        expect(await userOf("emil")).toMatchObject({ quota: 1_000_000, affQuota: 500_000 });

        await page.reload();
        await page.locator("[data-mounted]").waitFor();
        const html = await page.content();
        for (const secret of [token ?? "", "s3cret", SECOND_PASSWORD]) expect(html).not.toContain(secret);
        expect(await notices.getByLabel(/^Webhook address/).inputValue()).toBe("https://hooks.example/weir");
        expect(
          await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          ),
        ).toBe(0);

        await section("Danger zone").getByRole("button", { name: "Delete my account" }).click();
        await confirmed(page, "Delete my account", "emil");
        await page.waitForURL("**/login");
        await page.locator("[name=username]").fill("emil");
        await page.locator("[name=password]").fill(SECOND_PASSWORD);
        await page.locator("[name=password]").press("Enter");
        await page.getByRole("alert").waitFor();
        const dead = await fetch(`${app.url}/api/user/self`, {
          headers: { authorization: `Bearer ${token}`, "new-api-user": String(emil.id) },
        });
        expect(((await dead.json()) as { success: boolean }).success).toBe(false);
        expect([...visit.problems, ...elsewhere.problems]).toEqual([]);
        await Promise.all([visit.close(), elsewhere.close()]);

        // Its records stay, struck through and without a menu.
        const admin = await visitAs(root);
        await open(admin.page, "/user?keyword=emil");
        await rowOf(admin.page, "emil").getByText("Deleted", { exact: true }).waitFor();
        expect(await admin.page.getByRole("button", { name: "Actions for emil" }).count()).toBe(0);
        await admin.close();
        await booksBalance();
      });
  });
}
