// Content that wants to break screens: script in every name, RTL marks, 5,000-character words, emoji, 20,000 models and
// 10,000 groups. Every screen renders, nothing of it runs, nothing scrolls sideways, pages stay small and usable.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import type { Browser } from "playwright";
import { addressOf, isAllowed, watchedPages } from "../../scripts/budgets.ts";
import { PAGE_IS_UP, launchBrowser, openVisit, pageRests } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import {
  headersOf,
  openPayments,
  PLAIN_WORDS,
  signIn,
  standInForPictures,
  startSample,
} from "../support/sample.ts";
import type { Sample, SampleRole } from "../support/sample.ts";

const LONG = "W".repeat(5000);
/** Each would set window.pwned, ask something, or turn the line around. */
const NASTY = [
  "<script>window.pwned=1;alert(1)</script>",
  `"><img src="/favicon.svg" onload="window.pwned=1">`,
  "\u202Egnp.exe\u202C مرحبا \u200B\u2066",
  LONG,
  "👨‍👩‍👧‍👦🏳️‍🌈e\u0301\u0489 Z\u0351\u036B\u0343",
  "__proto__",
  "{{constructor.constructor('window.pwned=1')()}} ${window.pwned=1} {{name}} $t(common.save)",
  "javascript:window.pwned=1",
  "</textarea></title></style></script><svg onload=window.pwned=1>",
  "线上".repeat(2500),
];
const nasty = (index: number) => NASTY[index % NASTY.length] ?? "";
const ROWS = 30;
const MODELS = 20_000;
const GROUPS = 10_000;
/** For drawers in the ordinary run: still more than a page brings along. */
const FEWER_GROUPS = 1000;

/** A page of nothing but worst cases may weigh more than its budget, but not without bounds. */
const MOST_RAW = 400 * 1024;
const MOST_GZIPPED = 64 * 1024;
const MOST_ELEMENTS = 6000;

let sample: Sample;
let browser: Browser;

beforeAll(async () => {
  [sample, browser] = await Promise.all([
    startSample({
      ...PLAIN_WORDS,
      // Names of users are the only ones with a short limit.
      name: (what, index) =>
        what === "user" ? `${index} ${nasty(index).slice(0, 30)}` : `${nasty(index)} ${what} ${index}`,
      model: (index) =>
        index < NASTY.length ? nasty(index).replaceAll(",", "") : `vendor/model-number-${index}`,
      group: (index) =>
        index === 0 ? "default" : index < NASTY.length ? nasty(index).replaceAll(",", "") : `group ${index}`,
      // Thousands of descriptions of 5,000 characters would be 20 megabytes in each list of groups.
      sentence: (index) => (index < ROWS ? nasty(index) : `sentence ${index}`),
      rows: ROWS,
      models: MODELS,
      groups: GROUPS,
    }),
    launchBrowser(),
  ]);
  const { options } = sample.app.deps;
  await options.set("SystemName", nasty(0) + nasty(2));
  await options.set("Footer", `${nasty(1)}${nasty(8)}<a href="javascript:window.pwned=1">footer</a>`);
  await options.set(
    "About",
    `# ${nasty(0)}\n\n${nasty(1)}<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`,
  );
  await options.set("HomePageContent", `${nasty(8)}\n\n${nasty(2)}`);
  await options.set("Notice", nasty(1));
}, 60_000);
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

/** Leaves the site no more than the first groups; the long run keeps all. */
async function keepGroups(count: number): Promise<void> {
  if (Bun.env["WEIR_LONG"] === "1") return;
  const { options } = sample.app.deps;
  for (const key of ["UserUsableGroups", "GroupRatio"] as const) {
    const first = Object.entries(options.get(key)).slice(0, count);
    await options.set(key, JSON.stringify(Object.fromEntries(first)));
  }
}

async function open(role: SampleRole, width: number): Promise<Visit> {
  const visit = await openVisit(browser, {
    baseURL: sample.app.url,
    viewport: { width, height: 800 },
    locale: width < 600 ? "zh-CN" : "en-US",
    reducedMotion: "reduce",
  });
  // A box would block the page: that one came up is the fault.
  visit.page.on("dialog", (dialog) => {
    visit.problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await signIn(visit.context, sample, role);
  await standInForPictures(visit.context);
  return visit;
}

const LEAVING = "/chat2link";

async function goTo(visit: Visit, path: string): Promise<void> {
  // A page that leaves by itself may be on its way, to a host that never answers, before it counts as loaded.
  const isLeaving = path === LEAVING;
  await visit.page.goto(path, { waitUntil: isLeaving ? "commit" : "load" });
  if (isLeaving || (await visit.page.locator("#island").count()) > 0)
    await visit.page.waitForSelector(PAGE_IS_UP, { state: "attached" });
}

/** What would be wrong with a page under such content. */
async function faultsOf(visit: Visit): Promise<string[]> {
  const seen = await visit.page.evaluate(() => ({
    isPwned: "pwned" in window,
    sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    elements: document.querySelectorAll("body *:not(option)").length,
    isCrashed: document.querySelector("#island > [role=alert]")?.textContent ?? "",
  }));
  return [
    ...(seen.isPwned ? ["content ran"] : []),
    ...(seen.sideways > 0 ? [`scrolls ${seen.sideways} px sideways`] : []),
    ...(seen.elements > MOST_ELEMENTS ? [`${seen.elements} elements`] : []),
    ...(seen.isCrashed === "" ? [] : [`crashed: ${seen.isCrashed.slice(0, 200)}`]),
    ...visit.problems,
  ];
}

test("the markup of every page stays within bounds and holds no live piece of the content", async () => {
  for (const page of watchedPages) {
    for (const role of ["user", "root"] as const) {
      if (!isAllowed(page, role)) continue;
      const answer = await fetch(sample.app.url + addressOf(page), { headers: headersOf(sample, role) });
      const html = await answer.text();
      const at = `${page.path} as ${role}`;
      expect([at, answer.status]).toEqual([at, page.statusCode ?? 200]);
      expect([at, html.length < MOST_RAW, gzipSync(html).byteLength < MOST_GZIPPED]).toEqual([
        at,
        true,
        true,
      ]);
      expect([
        at,
        html.includes("<script>window"),
        html.includes("<svg onload"),
        /<img[^>]*\sonload/.test(html),
      ]).toEqual([at, false, false, false]);
    }
  }
});

describe("every page", () => {
  // Who has been somewhere stays signed in and goes on, as people do; but for the page that leaves for elsewhere by itself.
  const visits = new Map<string, Visit>();
  const visitOf = async (role: SampleRole, width: number): Promise<Visit> => {
    const known = visits.get(`${role} ${width}`);
    if (known) known.problems.length = 0;
    const visit = known ?? (await open(role, width));
    visits.set(`${role} ${width}`, visit);
    return visit;
  };
  afterAll(async () => {
    for (const visit of visits.values()) await visit.close();
  });

  for (const page of watchedPages) {
    test(`${page.path} renders it, wide and narrow, and nothing runs`, async () => {
      const isLeaving = page.path === LEAVING;
      // What root alone sees is narrowed where it is; what users see they load on a phone.
      const isUsers = isAllowed(page, "user");
      for (const [role, width, narrowed] of [
        ["root", 1440, isUsers ? undefined : 360],
        ...(isUsers ? ([["user", 360, undefined]] as const) : []),
        // Root's page on a phone of its own: with WEIR_LONG.
        ...(Bun.env["WEIR_LONG"] === "1" ? ([["root", 360, undefined]] as const) : []),
      ] as const) {
        const visit = isLeaving ? await open(role, width) : await visitOf(role, width);
        await goTo(visit, addressOf(page));
        // The cut lists of choices are filled behind the first paint.
        await pageRests(visit.page);
        expect({ width, faults: await faultsOf(visit) }).toEqual({ width, faults: [] });
        if (narrowed !== undefined) {
          await visit.page.setViewportSize({ width: narrowed, height: 800 });
          await pageRests(visit.page);
          const faults = await faultsOf(visit);
          expect({ narrowed, faults }).toEqual({ narrowed, faults: [] });
          await visit.page.setViewportSize({ width, height: 800 });
        }
        if (isLeaving) await visit.close();
      }
    });
  }
});

describe("what opens over a page", () => {
  // Every drawer that asks for a group draws all of them: a second of a processor for 10,000, which pages have shown to do.
  beforeAll(() => keepGroups(FEWER_GROUPS));

  const layers: readonly [string, SampleRole][] = [
    ["/channel", "root"],
    ["/token", "user"],
    ["/redemption", "root"],
    ["/user", "root"],
    ["/log", "root"],
    ["/midjourney", "user"],
    ["/task?range=7d", "root"],
  ];
  for (const [path, role] of layers) {
    test(`${path}: every row's drawer holds the content`, async () => {
      const visit = await open(role, 360);
      await goTo(visit, path);
      const rows = visit.page.locator("tr[data-index]");
      // Ten rows: each kind of nastiness once.
      expect(await rows.count()).toBe(10);
      for (let index = 0; index < 10; index++) {
        await rows.nth(index).focus();
        await visit.page.keyboard.press("Enter");
        const dialog = visit.page.locator("dialog[open]");
        await dialog.waitFor();
        expect([index, await faultsOf(visit)]).toEqual([index, []]);
        const overflow = await dialog.evaluate((box) => {
          const body = box.querySelector(".drawer-body") ?? box;
          return body.scrollWidth - body.clientWidth;
        });
        expect([index, overflow]).toEqual([index, 0]);
        await visit.page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });
      }
      await visit.close();
    });
  }

  test("one model of 20,000 is found by typing: in the playground and for a key", async () => {
    const visit = await open("user", 1280);
    const { page } = visit;
    await goTo(visit, "/playground");
    const picker = page.getByRole("combobox", { name: "Model" });
    await picker.click();
    await page.getByText(/and [\d,]+ more/).waitFor();
    expect(await page.getByRole("listbox").getByRole("option").count()).toBe(100);
    await picker.fill("model-number-19876");
    await page.getByRole("option", { name: "vendor/model-number-19876" }).click();
    expect(await picker.inputValue()).toBe("vendor/model-number-19876");

    await goTo(visit, "/token?new=1");
    const dialog = page.locator("dialog[open]");
    await dialog.locator("details", { hasText: "Limit models" }).locator("summary").click();
    await dialog.getByRole("switch", { name: "Limit models" }).check();
    const group = dialog.getByRole("group", { name: "Models to choose from" });
    await group.getByText(/and [\d,]+ more/).waitFor();
    await group.getByRole("searchbox").fill("number-15000");
    await group.getByRole("button", { name: "vendor/model-number-15000", exact: true }).click();
    expect(await dialog.locator("textarea[name=models]").inputValue()).toBe("vendor/model-number-15000");
    expect(await faultsOf(visit)).toEqual([]);
    await visit.close();
  });

  test("the palette shows what it finds as it is written, and says where it finds nothing", async () => {
    const visit = await open("user", 1280);
    await goTo(visit, "/topup");
    await visit.page.keyboard.press("Control+k");
    const field = visit.page.getByRole("combobox", { name: "Search or jump" });
    await field.fill(nasty(0));
    await visit.page
      .getByRole("option")
      .filter({ hasText: nasty(0) })
      .first()
      .waitFor();
    expect(await faultsOf(visit)).toEqual([]);
    await field.fill(LONG);
    await visit.page.getByText("Nothing matches").waitFor();
    expect(await faultsOf(visit)).toEqual([]);
    await visit.close();
  });
});

test("the wallet that sells, by methods of such names, and what root sees of it", async () => {
  await openPayments(
    sample,
    NASTY.map((each) => each.slice(0, 40)),
  );
  for (const [role, path] of [
    ["user", "/topup"],
    ["root", "/setting?tab=payment"],
  ] as const)
    for (const width of [1440, 360]) {
      const visit = await open(role, width);
      await goTo(visit, path);
      await pageRests(visit.page);
      expect({ path, width, faults: await faultsOf(visit) }).toEqual({ path, width, faults: [] });
      // Each of them can be chosen.
      if (role === "user") expect(await visit.page.getByRole("radio").count()).toBe(NASTY.length + 1);
      await visit.close();
    }
});
