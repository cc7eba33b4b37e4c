// A price is planned, applied and taken back at the desk while calls are under way: each is charged by the price that it began
// with. Two who prepare the same, and a plan that others were quicker than. And a change that users read of before it comes.
// The walk with the mouse is the long run's (WEIR_LONG): finger and keyboard are asked for more.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright";
import { applyDueDrafts } from "../../src/core/prices/drafts.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { testClock } from "../support/clock.ts";
import { gate, startFakeUpstream, stream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { walkedNow } from "../support/hands.ts";
import type { Hand, JourneyLanguage } from "../support/hands.ts";
import { openPage, startSite, visitOf } from "../support/journeys.ts";

const MODEL = "house-model";
const USAGE = { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 };
/** (1000 + 500 × 4) × ratio 1, 1.5. */
const OLD_CHARGE = 3000;
const NEW_CHARGE = 4500;
const DAY_MS = 86_400_000;

const clock = testClock(Date.now());
let app: TestApp;
let upstream: FakeUpstream;
let browser: Browser;
let root: TestUser;
let admin: TestUser;
let ada: TestUser;
let key = "";

beforeAll(async () => {
  [{ app, root, admin }, upstream, browser] = await Promise.all([
    startSite({ clock }),
    startFakeUpstream(),
    launchBrowser(),
  ]);
  ada = await app.createUser({ username: "ada", quota: 50_000_000 });
  ({ key } = await app.createToken(ada.id, { name: "laptop" }));
  await app.createChannel({ name: "main", baseUrl: upstream.url, models: `${MODEL},other-model` });
});
afterAll(async () => {
  await browser.close();
  upstream.stop();
  await app.close();
});

async function resetPrices(): Promise<void> {
  await app.deps.options.set("ModelRatio", JSON.stringify({ [MODEL]: 1, "other-model": 2 }));
  await app.deps.options.set("CompletionRatio", JSON.stringify({ [MODEL]: 4 }));
}

async function ask<T>(method: string, path: string, body?: unknown, as = root): Promise<T> {
  const { body: answered } = await app.call<{ data: T; message: string; success: boolean }>(
    method,
    `/api/price${path}`,
    body,
    as,
  );
  expect([answered.message, answered.success]).toEqual(["", true]);
  return answered.data;
}

const DEARER = { key: "ModelRatio", name: MODEL, after: 1.5 };
const draft = (title: string, changes: object[] = [DEARER], as = admin) =>
  ask<{ id: number; version: number }>("POST", "/drafts", { title, changes }, as);

function call(): Promise<Response> {
  return fetch(`${app.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, stream: true, messages: [{ role: "user", content: "Hi" }] }),
  });
}

/** A call that has begun to answer and waits in the middle of its stream. */
async function slowCall(): Promise<{ end: () => Promise<void> }> {
  const door = gate();
  upstream.script(stream(["Hello", door, " there"], { usage: USAGE }));
  const response = await call();
  const reader = response.body?.getReader();
  await reader?.read();
  return {
    async end() {
      door.open();
      while (reader && !(await reader.read()).done);
    },
  };
}

/** What all calls cost so far. */
async function spent(): Promise<number> {
  await app.deps.ledger.flush();
  const answer = await app.call<{ data: { used_quota: number } }>("GET", "/api/user/self", undefined, ada);
  return answer.body.data.used_quota;
}

/** What was charged for what happens in `work`. */
async function chargeOf(work: () => Promise<void>): Promise<number> {
  const before = await spent();
  await work();
  return (await spent()) - before;
}

const quickCall = () =>
  chargeOf(async () => {
    upstream.script(stream(["Hello"], { usage: USAGE }));
    await (await call()).text();
  });

const WORDS = {
  en: {
    menu: (name: string) => `Actions for draft ${name}`,
    open: "Open",
    apply: /^Apply/,
    reason: "Reason",
    applied: "Applied: 1 entry",
    undoAll: "Undo…",
    undoOne: "Undo 1 entry",
    undone: "Undone: 1 entry",
  },
  zh: {
    menu: (name: string) => `草稿 ${name} 的操作`,
    open: "打开",
    apply: /^应用[ ：]/,
    reason: "原因",
    applied: "已应用 1 项",
    undoAll: "撤销…",
    undoOne: "撤销 1 项",
    undone: "已撤销 1 项",
  },
};

async function openDraft(
  { page, hand }: Visit & { hand: Hand },
  name: string,
  language: JourneyLanguage = "en",
) {
  const words = WORDS[language];
  await openPage(page, "/prices?section=drafts");
  await hand.press(page.getByRole("button", { name: words.menu(name), exact: true }));
  await hand.press(page.getByRole("menuitem", { name: words.open, exact: true }));
  await page.locator("#plan-effect").waitFor();
}

describe.each(
  walkedNow([
    ["mouse", "en"],
    ["finger", "zh"],
    ["keyboard", "en"],
  ] as const),
)("with the %s, in %s", (manner, language) => {
  test("a price is applied and taken back while calls are under way: each keeps the price it began with", async () => {
    await resetPrices();
    const words = WORDS[language];
    const name = `list by ${manner}`;
    await draft(name);
    const visit = await visitOf(browser, app, { user: root, manner, language });
    const { page, hand, problems, close } = visit;
    const first = await slowCall();
    await openDraft(visit, name, language);
    await page.locator("main").getByText("$3.00").first().waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await hand.fill(page.getByRole("textbox", { name: words.reason }), "Makers raised theirs");
    await hand.press(page.getByRole("button", { name: words.apply }));
    await page.getByText(words.applied).waitFor();

    // At the new price, while the first one is still under way.
    expect(await quickCall()).toBe(NEW_CHARGE);
    const second = await slowCall();
    expect(await chargeOf(first.end)).toBe(OLD_CHARGE);

    await openPage(page, `/prices?section=history&name=${MODEL}`);
    await hand.press(page.locator("main li a[href*=revision]").first());
    await page.getByRole("dialog").getByText("Makers raised theirs").waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await hand.press(page.getByRole("button", { name: words.undoAll }));
    await hand.press(page.getByRole("button", { name: words.undoOne }));
    await page.getByText(words.undone).waitFor();
    expect(await quickCall()).toBe(OLD_CHARGE);
    expect(await chargeOf(second.end)).toBe(NEW_CHARGE);
    expect(problems).toEqual([]);
    await close();
  });
});

test("two administrators edit one draft: the second is refused and keeps theirs as another", async () => {
  await resetPrices();
  await draft("Shared");
  const other = await app.createUser({ username: "second", role: 10 });
  const visits = [
    await visitOf(browser, app, { user: admin, language: "en" }),
    await visitOf(browser, app, { user: other, language: "en" }),
  ] as const;
  for (const visit of visits) await openDraft(visit, "Shared");
  const save = async ({ page, hand }: (typeof visits)[number], note: string) => {
    await hand.press(page.getByRole("button", { name: "Save draft" }));
    const drawer = page.getByRole("dialog");
    await hand.fill(drawer.getByLabel("Reason"), note);
    await hand.press(drawer.getByRole("button", { name: "Save", exact: true }));
    return drawer;
  };
  const [first, second] = visits;
  await (await save(first, "mine")).waitFor({ state: "detached" });
  const drawer = await save(second, "mine as well");
  await drawer.getByText("Somebody changed the draft “Shared” meanwhile.").waitFor();
  expect(await violationsOf(second.page)).toEqual([]);
  await second.hand.press(drawer.getByRole("button", { name: "Save as a new draft" }));
  await drawer.waitFor({ state: "detached" });
  const { items } = await ask<{ items: { title: string; note: string; username: string }[] }>(
    "GET",
    "/drafts",
  );
  expect(
    items.filter(({ title }) => title === "Shared").map(({ note, username }) => [note, username]),
  ).toEqual([
    ["mine as well", "second"],
    ["mine", "helper"],
  ]);
  for (const { problems, close } of visits) {
    expect(problems).toEqual([]);
    await close();
  }
});

test("a plan on older prices is refused with who changed what; planned again it is applied, with what still differs", async () => {
  await resetPrices();
  await draft("Late", [DEARER, { key: "ModelRatio", name: "other-model", after: 5 }]);
  const visit = await visitOf(browser, app, { user: root, language: "en" });
  const { page, hand, problems, close } = visit;
  await openDraft(visit, "Late");
  await page.getByRole("button", { name: /^Apply/ }).waitFor();
  // Meanwhile somebody else sets one of the two, where it was to go, and a third.
  const chief = await app.createUser({ username: "chief", role: 100 });
  const value = JSON.stringify({ [MODEL]: 1.2, "other-model": 5, third: 1 });
  await app.call("PUT", "/api/option/", { key: "ModelRatio", value }, chief);
  await hand.press(page.getByRole("button", { name: /^Apply/ }));
  await page.getByText("Prices changed since you opened the desk: 1 change").waitFor();
  await page.getByText(new RegExp(`chief, .*: ${MODEL}, other-model, third`)).waitFor();
  expect(app.deps.prices.pricing(MODEL)?.modelRatio).toBe(1.2);
  expect(await violationsOf(page)).toEqual([]);
  await hand.press(page.getByRole("button", { name: "Plan again on the new prices" }));
  await page.getByRole("heading", { name: "What changes: 1 model" }).waitFor();
  await page.getByRole("region", { name: "1 warning" }).getByText(MODEL).waitFor();
  await hand.press(page.getByRole("button", { name: /^Apply/ }));
  await page.getByText("Applied: 1 entry").waitFor();
  expect(app.deps.prices.pricing(MODEL)?.modelRatio).toBe(1.5);
  expect(app.deps.prices.pricing("other-model")?.modelRatio).toBe(5);
  expect(problems).toEqual([]);
  await close();
});

test("a scheduled change is announced with old, new and date, and in force from its moment on", async () => {
  await resetPrices();
  await draft("Winter");
  const visit = await visitOf(browser, app, { user: root, language: "en" });
  const { page, hand, problems, close } = visit;
  await openPage(page, "/prices?section=drafts");
  await hand.press(page.getByRole("button", { name: WORDS.en.menu("Winter"), exact: true }));
  await hand.press(page.getByRole("menuitem", { name: "Schedule" }));
  const drawer = page.getByRole("dialog");
  const zone = app.deps.options.get("site.time_zone");
  const tomorrow = new Date(clock.nowMs() + DAY_MS);
  const parts = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
  const moment = parts.format(tomorrow);
  await drawer.getByLabel(/Date and time/).fill(moment.replace(" ", "T"));
  await hand.press(drawer.getByRole("switch", { name: "Announce it to users" }));
  expect(await violationsOf(page)).toEqual([]);
  await hand.press(drawer.getByRole("button", { name: "Schedule" }));
  await page.getByText(`Comes into force ${moment} (${zone}), scheduled by owner`).waitFor();

  const reader = await visitOf(browser, app, { user: ada, language: "en", manner: "finger" });
  await reader.page.goto("/pricing");
  await reader.page.getByText(/new prices from \d{4}-\d\d-\d\d/).waitFor();
  await reader.page.goto(`/pricing?model=${MODEL}`);
  await reader.page.getByText("Input $2.00 → $3.00 / 1M; Output $8.00 → $12.00 / 1M").waitFor();
  expect(await violationsOf(reader.page)).toEqual([]);
  expect(await reader.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  expect(await quickCall()).toBe(OLD_CHARGE);

  clock.advance(DAY_MS);
  await applyDueDrafts(app.deps);
  expect(await quickCall()).toBe(NEW_CHARGE);
  await reader.page.goto(`/pricing?model=${MODEL}`);
  await reader.page.getByText("$3.00 / 1M").first().waitFor();
  expect(await reader.page.getByText("→").count()).toBe(0);
  await openPage(page, "/prices?section=drafts");
  await page
    .getByText(/Applied as change \d+/)
    .first()
    .waitFor();
  for (const each of [problems, reader.problems]) expect(each).toEqual([]);
  await reader.close();
  await close();
});
