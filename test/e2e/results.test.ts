// What came of an action is in sight where it was asked for: models fetched below a long form, a test of a channel whose row
// is on another page, a save that was refused inside a drawer. Widths and faces of the issue, all of them under WEIR_LONG; a
// provider that refuses.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Locator } from "playwright";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { json, refuse, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { SEEN_AT_LEAST, useFont } from "../support/fonts.ts";
import type { Seen } from "../support/fonts.ts";
import { signIn, startSample } from "../support/sample.ts";
import type { Sample } from "../support/sample.ts";

const REASON = "Incorrect API key provided";

let sample: Sample;
let browser: Browser;
let upstream: FakeUpstream;

beforeAll(async () => {
  [sample, browser, upstream] = await Promise.all([startSample(), launchBrowser(), startFakeUpstream()]);
  upstream.always((request) =>
    request.url.endsWith("/models")
      ? json({ object: "list", data: [{ id: "fake-model" }, { id: "fake-embedding" }] })
      : refuse(401, { error: { message: REASON, type: "invalid_request_error", code: "invalid_api_key" } }),
  );
});
afterAll(async () => {
  await browser.close();
  upstream.stop();
  await sample.app.close();
});

async function open(path: string, { font, ...viewport }: Seen): Promise<Visit> {
  const visit = await openVisit(browser, { baseURL: sample.app.url, viewport, reducedMotion: "reduce" });
  await signIn(visit.context, sample, "root");
  await useFont(visit.context, font);
  await visit.page.goto(path);
  await visit.page.locator("#island[data-mounted]").waitFor({ state: "attached" });
  return visit;
}

/** Whether its middle is what one sees there: inside the window, and nothing over it. */
async function isSeen(at: Locator): Promise<boolean> {
  return at.evaluate((element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    const found = document.elementFromPoint(left + width / 2, top + Math.min(height / 2, 20));
    return found !== null && (element.contains(found) || found.contains(element));
  });
}

describe.each(SEEN_AT_LEAST)("at $width px with the $font face", (seen) => {
  test("fetched models come into sight with the focus, and a refusal with its reason", async () => {
    const { page, close } = await open("/channel?new=1", seen);
    const dialog = page.locator("dialog[open]");
    await dialog.locator("[name=key]").fill("sk-test");
    await dialog.locator("[name=baseUrl]").fill(upstream.url);
    const fetchButton = dialog.getByRole("button", { name: "Fetch from upstream" });
    await fetchButton.click();
    const result = dialog.getByRole("region", { name: /^2 new/ });
    await result.waitFor();
    expect(await result.evaluate((element) => element === document.activeElement)).toBe(true);
    expect(await isSeen(result.getByText(/^2 new/))).toBe(true);

    await dialog.locator("[name=baseUrl]").fill("http://127.0.0.1:9");
    await fetchButton.click();
    const refusal = dialog.getByRole("region", { name: /Could not fetch the models/ });
    await refusal.waitFor();
    expect(await isSeen(refusal)).toBe(true);
    await close();
  });

  test("saving with a test says why it failed, though the channel is on another page of the list", async () => {
    const name = `late ${seen.width} ${seen.font}`;
    const { page, close } = await open("/channel?new=1", seen);
    const dialog = page.locator("dialog[open]");
    await dialog.locator("[name=name]").fill(name);
    await dialog.locator("[name=key]").fill("sk-test");
    await dialog.locator("[name=baseUrl]").fill(upstream.url);
    const models = dialog.getByLabel(/^Models/).last();
    await models.fill("gpt-4o");
    await models.press("Enter");
    await dialog.getByRole("button", { name: "Save and test" }).click();
    const outcome = page.getByRole("alert").filter({ hasText: REASON });
    await outcome.waitFor();
    expect(await outcome.textContent()).toContain(name);
    expect(await isSeen(outcome)).toBe(true);
    expect(await page.getByRole("row", { name }).count()).toBe(0);
    await close();
  });

  test("what is told while a drawer is open stands over the drawer, can be closed, and leaves the drawer open", async () => {
    const { page, close } = await open("/channel", seen);
    const href = await page.locator('a[href*="/channel?edit="]').first().getAttribute("href");
    await page.goto(href ?? "");
    const dialog = page.locator("dialog[open]");
    const save = dialog.getByRole("button", { name: "Save", exact: true });
    await save.click();
    const told = page.locator(".toast-box");
    await told.waitFor();
    expect(await isSeen(told)).toBe(true);
    expect(await isSeen(save)).toBe(true);
    await told.getByRole("button", { name: "Close" }).click();
    await told.waitFor({ state: "detached" });
    expect(await dialog.count()).toBe(1);
    await close();
  });
});
