// Second factors in a real browser: an authenticator set up and asked for, a backup code, a passkey of Chromium's virtual
// authenticator that signs in without a name, and fresh proof that is asked for before a factor goes. In English by keyboard alone, in
// Chinese by finger at 360 px.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { Secret, TOTP } from "otpauth";
import type { Browser, Page } from "playwright";
import { hashPassword } from "../../src/core/users/credentials.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { testClock } from "../support/clock.ts";
import { CONTEXT_OF, handOf, LOCALE_OF } from "../support/hands.ts";
import type { Hand, JourneyLanguage, Manner } from "../support/hands.ts";
import { wordsOf } from "../support/words.ts";

const PASSWORD = "correct horse battery";
const STEP_MS = 30_000;
const ELEVEN_MINUTES_MS = 660_000;

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
  let base: string;
  let page: Page;
  let visit: Visit;
  let hand: Hand;
  /** Lays the finger on the virtual authenticator, or takes it away. */
  let touch: (enabled: boolean) => Promise<unknown>;
  const clock = testClock();

  beforeAll(async () => {
    app = await startTestApp({ clock });
    const { db, options } = app.deps;
    await db.orm.insert(db.t.setups).values({ id: 1, version: "0", initializedAt: 1 });
    // Passkeys are bound to a name; browsers take localhost without TLS.
    base = app.url.replace("127.0.0.1", "localhost");
    await options.set("ServerAddress", base);
    await options.set("passkey.enabled", "true");
    const user = await app.createUser({ username: "dora" });
    const passwordHash = await hashPassword(PASSWORD);
    await db.orm.update(db.t.users).set({ passwordHash }).where(eq(db.t.users.id, user.id));
    await app.deps.accounts.userChanged(user.id);
    visit = await openVisit(browser, { baseURL: base, ...CONTEXT_OF[manner], locale: LOCALE_OF[language] });
    ({ page } = visit);
    hand = await handOf(page, manner);
    const session = await visit.context.newCDPSession(page);
    await session.send("WebAuthn.enable");
    const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: false,
      },
    });
    // The field for the name offers passkeys too: a finger that always lies there signs in before anybody asks.
    touch = (enabled) =>
      session.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId, enabled });
  });
  afterAll(async () => {
    await visit.context.close();
    await app.close();
  });

  const main = () => page.locator("main");
  const dialog = () => page.getByRole("dialog");
  const codeOf = (secret: string) =>
    new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: clock.nowMs() });

  async function open(path: string): Promise<void> {
    await page.goto(path);
    await page.locator("[data-mounted]").waitFor();
  }

  async function signOut(): Promise<void> {
    await visit.context.clearCookies({ name: "session" });
    await open("/login");
  }

  async function typePassword(): Promise<void> {
    await hand.fill(page.locator("[name=username]"), "dora");
    await hand.fill(page.locator("[name=password]"), PASSWORD);
    await page.locator("[name=password]").press("Enter");
  }

  const button = (key: string) => page.getByRole("button", { name: t(key), exact: true });

  test("from the password to a passkey, and back to the password alone", async () => {
    await open("/login");
    await typePassword();
    await page.waitForURL("**/token");

    // An authenticator: its secret is read off the dialog, a first code puts it in force.
    await open("/personal?tab=security");
    await hand.press(main().getByRole("button", { name: t("personal.totpOn"), exact: true }));
    const secret = (await dialog().locator("code").textContent())?.trim() ?? "";
    expect(
      await dialog()
        .getByRole("img", { name: t("personal.totpPicture") })
        .count(),
    ).toBe(1);
    await hand.fill(dialog().locator("[name=code]"), codeOf(secret));
    await hand.press(dialog().getByRole("button", { name: t("personal.totpEnable"), exact: true }));
    const kept = dialog().getByRole("button", { name: t("personal.codesKept"), exact: true });
    await kept.waitFor();
    const backup = (await dialog().textContent())?.match(/[a-z2-9]{5}-[a-z2-9]{5}/g) ?? [];
    expect(backup).toHaveLength(10);
    await hand.press(kept);
    clock.advance(2 * STEP_MS);

    // The second step: a wrong code is told, the right one lets in; next time a backup code does.
    await signOut();
    await typePassword();
    const field = page.locator("[name=code]");
    await hand.fill(field, "000000");
    await hand.press(button("signin.confirm"));
    await main().getByRole("alert").first().waitFor();
    await hand.fill(field, codeOf(secret));
    await hand.press(button("signin.confirm"));
    await page.waitForURL("**/token");
    await signOut();
    await typePassword();
    await hand.press(button("signin.useBackup"));
    await hand.fill(field, backup[0] ?? "");
    await hand.press(button("signin.confirm"));
    await page.waitForURL("**/token");

    // A passkey, and a sign-in with nothing but it: the field for the name offers it.
    await open("/personal?tab=security");
    await hand.press(main().getByRole("button", { name: t("personal.passkeyAdd"), exact: true }));
    await touch(true);
    await hand.press(dialog().getByRole("button", { name: t("personal.passkeyCreate"), exact: true }));
    await page.getByText(t("personal.passkeyAdded")).first().waitFor();
    await visit.context.clearCookies({ name: "session" });
    await page.goto("/login");
    await page.waitForURL("**/token");
    await touch(false);

    // Ten minutes later a factor goes only after fresh proof, asked for in one dialog and then repeated.
    clock.advance(ELEVEN_MINUTES_MS);
    await open("/personal?tab=security");
    await hand.press(main().getByRole("button", { name: t("personal.totpOff"), exact: true }));
    await hand.press(dialog().getByRole("button", { name: t("personal.totpOff"), exact: true }));
    // The passkey is asked for first; the code is one press away.
    await hand.press(dialog().getByRole("button", { name: t("signin.proof.2fa"), exact: true }));
    await hand.fill(dialog().locator("[name=code]"), codeOf(secret));
    await page.keyboard.press("Enter");
    await page.getByText(t("personal.totpOffDone")).first().waitFor();
    await signOut();
    await typePassword();
    await page.waitForURL("**/token");
    // Browsers tell of the refusal that asked for the proof, and of nothing else.
    expect(visit.problems).toEqual([expect.stringMatching(/ 403 .*\/api\/user\/2fa\/disable\)$/)]);
  });
});
