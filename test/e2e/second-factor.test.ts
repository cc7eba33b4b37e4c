// Second factors in a real browser: an authenticator set up and asked for, a backup code, a passkey of Chromium's virtual
// authenticator that signs in without a name, and fresh proof that is asked for before a factor goes. In both languages.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { Secret, TOTP } from "otpauth";
import type { Browser, Page } from "playwright";
import { hashPassword } from "../../src/core/users/credentials.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { testClock } from "../support/clock.ts";
import { CONTEXT_OF, LOCALE_OF } from "../support/hands.ts";
import type { JourneyLanguage, Manner } from "../support/hands.ts";

const PASSWORD = "correct horse battery";
const STEP_MS = 30_000;
const ELEVEN_MINUTES_MS = 660_000;
const LOCALES = join(import.meta.dir, "../../locales");

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

/** The console's texts, as people read them. */
function wordsOf(language: JourneyLanguage): (key: string) => string {
  const areas = new Map<string, Record<string, string>>();
  return (key) => {
    const [area = "", ...rest] = key.split(".");
    const known =
      areas.get(area) ??
      (JSON.parse(readFileSync(join(LOCALES, language, `${area}.json`), "utf8")) as Record<string, string>);
    areas.set(area, known);
    const text = known[rest.join(".")];
    if (text === undefined) throw new Error(`no text ${key}`);
    return text;
  };
}

describe.each([
  ["en", "mouse"],
  ["zh", "finger"],
] as [JourneyLanguage, Manner][])("in %s, by %s", (language, manner) => {
  const t = wordsOf(language);
  let app: TestApp;
  let base: string;
  let page: Page;
  let visit: Visit;
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
    await page.locator("[name=username]").fill("dora");
    await page.locator("[name=password]").fill(PASSWORD);
    await page.locator("[name=password]").press("Enter");
  }

  const button = (key: string) => page.getByRole("button", { name: t(key), exact: true });

  test("from the password to a passkey, and back to the password alone", async () => {
    await open("/login");
    await typePassword();
    await page.waitForURL("**/token");

    // An authenticator: its secret is read off the dialog, a first code puts it in force.
    await open("/personal?tab=security");
    await main()
      .getByRole("button", { name: t("personal.totpOn"), exact: true })
      .click();
    const secret = (await dialog().locator("code").textContent())?.trim() ?? "";
    expect(
      await dialog()
        .getByRole("img", { name: t("personal.totpPicture") })
        .count(),
    ).toBe(1);
    await dialog().locator("[name=code]").fill(codeOf(secret));
    await dialog()
      .getByRole("button", { name: t("personal.totpEnable"), exact: true })
      .click();
    const kept = dialog().getByRole("button", { name: t("personal.codesKept"), exact: true });
    await kept.waitFor();
    const backup = (await dialog().textContent())?.match(/[a-z2-9]{5}-[a-z2-9]{5}/g) ?? [];
    expect(backup).toHaveLength(10);
    await kept.click();
    clock.advance(2 * STEP_MS);

    // The second step: a wrong code is told, the right one lets in; next time a backup code does.
    await signOut();
    await typePassword();
    const field = page.locator("[name=code]");
    await field.fill("000000");
    await button("signin.confirm").click();
    await main().getByRole("alert").first().waitFor();
    await field.fill(codeOf(secret));
    await button("signin.confirm").click();
    await page.waitForURL("**/token");
    await signOut();
    await typePassword();
    await button("signin.useBackup").click();
    await field.fill(backup[0] ?? "");
    await button("signin.confirm").click();
    await page.waitForURL("**/token");

    // A passkey, and a sign-in with nothing but it: the field for the name offers it.
    await open("/personal?tab=security");
    await main()
      .getByRole("button", { name: t("personal.passkeyAdd"), exact: true })
      .click();
    await touch(true);
    await dialog()
      .getByRole("button", { name: t("personal.passkeyCreate"), exact: true })
      .click();
    await page.getByText(t("personal.passkeyAdded")).first().waitFor();
    await visit.context.clearCookies({ name: "session" });
    await page.goto("/login");
    await page.waitForURL("**/token");
    await touch(false);

    // Ten minutes later a factor goes only after fresh proof, asked for in one dialog and then repeated.
    clock.advance(ELEVEN_MINUTES_MS);
    await open("/personal?tab=security");
    await main()
      .getByRole("button", { name: t("personal.totpOff"), exact: true })
      .click();
    await dialog()
      .getByRole("button", { name: t("personal.totpOff"), exact: true })
      .click();
    // The passkey is asked for first; the code is one press away.
    await dialog()
      .getByRole("button", { name: t("signin.proof.2fa"), exact: true })
      .click();
    await dialog().locator("[name=code]").fill(codeOf(secret));
    await page.keyboard.press("Enter");
    await page.getByText(t("personal.totpOffDone")).first().waitFor();
    await signOut();
    await typePassword();
    await page.waitForURL("**/token");
    // Browsers tell of the refusal that asked for the proof, and of nothing else.
    expect(visit.problems).toEqual([expect.stringMatching(/ 403 .*\/api\/user\/2fa\/disable\)$/)]);
  });
});
