// Every button of every drawer, pressed by a real hand from an empty required field: it stays where it is from press to
// release, and the press arrives. The error that leaving the field brings may not move what is under the finger.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Locator, Page } from "playwright";
import { launchBrowser, openVisit, pageRests } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { SEEN, useFont } from "../support/fonts.ts";
import type { FontName } from "../support/fonts.ts";
import { CONTEXT_OF, handOf } from "../support/hands.ts";
import type { Manner } from "../support/hands.ts";
import { signIn, startSample } from "../support/sample.ts";
import type { Sample, SampleRole } from "../support/sample.ts";

let sample: Sample;
let browser: Browser;

beforeAll(async () => {
  [sample, browser] = await Promise.all([startSample(), launchBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

const DRAWERS: readonly { name: string; path: string; role: SampleRole; open?: string }[] = [
  { name: "a new channel", path: "/channel?new=1", role: "admin" },
  { name: "a channel", path: "/channel", role: "admin", open: "edit" },
  { name: "a tag", path: "/channel", role: "admin", open: "tag_edit" },
  { name: "a new key", path: "/token?new=1", role: "user" },
  { name: "new redemption codes", path: "/redemption?new=1", role: "admin" },
  { name: "a new user", path: "/user?new=1", role: "root" },
  { name: "a user", path: "/user", role: "root", open: "edit" },
  { name: "a user's quota", path: "/user", role: "root", open: "quota" },
];

const BUTTONS = "dialog[open] :is(button, summary, input[type=checkbox]):not([disabled])";
/** Fields that take text. */
const FIELDS =
  "dialog[open] .drawer-body :is(input:is(:not([type]), [type=text], [type=number]), textarea):not([disabled])";

async function visitOf(role: SampleRole, font: FontName, options: object): Promise<Visit> {
  const visit = await openVisit(browser, { baseURL: sample.app.url, reducedMotion: "reduce", ...options });
  await signIn(visit.context, sample, role);
  await useFont(visit.context, font);
  // Which element a click reaches; it does nothing more, so that the next button is found as this one was.
  await visit.page.addInitScript(() => {
    document.addEventListener(
      "click",
      (event) => {
        if (!event.isTrusted) return;
        event.stopPropagation();
        event.preventDefault();
        const isThere = (event.target as Element).closest("[data-pressed]") !== null;
        if (isThere) document.documentElement.dataset["reached"] = "";
      },
      true,
    );
  });
  return visit;
}

/** The drawer as it opens, folded sections too, with the focus in an empty field that must not be. Says how many buttons. */
async function openDrawer(page: Page, address: string, count?: number): Promise<number> {
  if (count === undefined) {
    await page.goto(address);
    await page.locator("#island[data-mounted]").waitFor({ state: "attached" });
    await page.locator("dialog[open] footer").waitFor();
    await pageRests(page);
  } else {
    // Closed and opened again by the address: a fresh form without loading the page.
    await goTo(page, new URL(address, sample.app.url).pathname);
    // Who leaves with changes is asked; the answer is no press of the mouse, which reaches nothing here.
    await page.waitForFunction(() => {
      document.querySelector<HTMLElement>("dialog.modal:not(.modal-end)[open] .btn-error")?.click();
      return !document.querySelector("dialog[open]");
    });
    await goTo(page, address);
    await page.locator("dialog[open] footer").waitFor();
  }
  await page.evaluate(() => {
    for (const section of document.querySelectorAll("dialog details")) section.setAttribute("open", "");
    // A tag's fields are "keep" until somebody says "set".
    if (location.search.includes("tag_edit"))
      for (const each of document.querySelectorAll<HTMLElement>("dialog [role=switch]:not(:checked)"))
        each.click();
  });
  await page.waitForFunction((fields) => {
    const all = [...document.querySelectorAll<HTMLInputElement>(fields)];
    const left = all.find((each) => each.required) ?? all[0];
    left?.setAttribute("data-left", "");
    left?.focus();
    return left !== undefined;
  }, FIELDS);
  await page.locator(`${FIELDS}[data-left]`).fill("");
  if (count === undefined) return page.locator(BUTTONS).count();
  await page.waitForFunction(([all, wanted]) => document.querySelectorAll(all).length === wanted, [
    BUTTONS,
    count,
  ] as const);
  return count;
}

async function goTo(page: Page, address: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, address);
}

/** Presses and says what went wrong; undefined: it stayed and was reached. */
async function pressSlowly(page: Page, button: Locator): Promise<string | undefined> {
  const { name, before } = await button.evaluate((element) => {
    element.scrollIntoView({ block: "nearest" });
    element.setAttribute("data-pressed", "");
    delete document.documentElement.dataset["reached"];
    return {
      name: element.getAttribute("aria-label") ?? element.textContent ?? "",
      before: element.getBoundingClientRect().toJSON() as DOMRect,
    };
  });
  // "Copy as curl" needs more room than a phone has.
  if (before.width === 0) return undefined;
  await page.mouse.move(before.x + before.width / 2, before.y + before.height / 2);
  await page.mouse.down();
  const during = await page.evaluate(async () => {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const pressed = document.querySelector("[data-pressed]");
    return pressed ? (pressed.getBoundingClientRect().toJSON() as DOMRect) : undefined;
  });
  await page.mouse.up();
  const isReached = await page.evaluate(() => "reached" in document.documentElement.dataset);
  const moved = during ? Math.max(Math.abs(during.x - before.x), Math.abs(during.y - before.y)) : Infinity;
  // The kit lets a pressed button sink by half a pixel.
  if (moved >= 1) return `${name}: moved by ${moved} px`;
  return isReached ? undefined : `${name}: the press did not arrive`;
}

async function addressOf(page: Page, { path, open }: { path: string; open?: string }): Promise<string> {
  if (open === undefined) return path;
  await page.goto(path);
  await page.locator("#island[data-mounted]").waitFor({ state: "attached" });
  if (open === "tag_edit") return `${path}?tag_edit=${await firstTag()}`;
  const link = page.locator(`a[href*="${path}?edit="]`).first();
  return ((await link.getAttribute("href")) ?? "").replace("edit=", `${open}=`);
}

async function firstTag(): Promise<string> {
  const { db } = sample.app.deps;
  const rows = await db.orm.select({ tag: db.t.channels.tag }).from(db.t.channels);
  return rows.flatMap(({ tag }) => (tag ? [tag] : []))[0] ?? "";
}

describe("every button of a drawer, from an empty field that must not be", () => {
  // Every width takes minutes: the long run has every button at all of them, the ordinary one the even ones at the widest and
  // the odd ones at the narrowest.
  const isLong = Bun.env["WEIR_LONG"] === "1";
  const seen = isLong ? SEEN : SEEN.filter((_, at) => at === 0 || at === SEEN.length - 1);
  for (const [turn, { font, ...viewport }] of seen.entries()) {
    for (const drawer of DRAWERS) {
      test(`${drawer.name} at ${viewport.width} px, ${font} font: nothing moves under the mouse, every press arrives`, async () => {
        const visit = await visitOf(drawer.role, font, { viewport });
        const { page } = visit;
        const address = await addressOf(page, drawer);
        const count = await openDrawer(page, address);
        expect(count).toBeGreaterThan(2);
        const pressed = Array.from({ length: count }, (_, index) => index).filter(
          (index) => isLong || index % seen.length === turn,
        );
        const wrong: string[] = [];
        for (const [at, index] of pressed.entries()) {
          if (at > 0) await openDrawer(page, address, count);
          const found = await pressSlowly(page, page.locator(BUTTONS).nth(index));
          if (found !== undefined) wrong.push(found);
        }
        expect(wrong).toEqual([]);
        await visit.close();
        // A channel's editor has some thirty buttons, each pressed in a drawer that opens anew.
      }, 120_000);
    }
  }
});

const QUOTA_OF_10_DOLLARS = "5000000";

/** One press each, with its effect, by whatever hand. */
const EFFECTS: readonly {
  name: string;
  path: string;
  role: SampleRole;
  /** The field that is left empty. */
  from: string;
  press: (page: Page) => Locator;
  seen: (page: Page) => Locator;
}[] = [
  {
    name: "$10 of a new key",
    path: "/token?new=1",
    role: "user",
    from: "Name",
    press: (page) => page.getByRole("button", { name: "$10", exact: true }),
    seen: (page) => page.locator(`dialog input[name=quota][value="${QUOTA_OF_10_DOLLARS}"]`),
  },
  {
    name: "Unlimited of a new key",
    path: "/token?new=1",
    role: "user",
    from: "Name",
    press: (page) => page.getByRole("switch", { name: "Unlimited" }),
    seen: (page) => page.locator("dialog[open]:not(:has(input[name=quota]))"),
  },
  {
    name: "an amount of new redemption codes",
    path: "/redemption?new=1",
    role: "admin",
    from: "Value",
    press: (page) => page.getByRole("button", { name: "$10", exact: true }),
    seen: (page) => page.locator('dialog button[aria-pressed="true"]', { hasText: "$10" }),
  },
  {
    name: "an amount for a user",
    path: "/user?quota=1",
    role: "root",
    from: "Amount",
    press: (page) => page.getByRole("button", { name: "$10", exact: true }),
    seen: (page) => page.locator('dialog button[aria-pressed="true"]', { hasText: "$10" }),
  },
];

describe.each(["mouse", "finger", "keyboard"] as Manner[])("by %s", (manner) => {
  test.each(EFFECTS)("$name acts at the first press", async ({ path, role, from, press, seen }) => {
    const visit = await openVisit(browser, {
      baseURL: sample.app.url,
      reducedMotion: "reduce",
      ...CONTEXT_OF[manner],
    });
    await signIn(visit.context, sample, role);
    await useFont(visit.context, "widest");
    const { page } = visit;
    const hand = await handOf(page, manner);
    await page.goto(path);
    await page.locator("#island[data-mounted]").waitFor({ state: "attached" });
    const field = page.locator("dialog[open]").getByLabel(from).first();
    await field.fill("");
    await field.focus();
    await hand.press(press(page));
    await seen(page).waitFor();
    expect(visit.problems).toEqual([]);
    await visit.close();
  });
});
