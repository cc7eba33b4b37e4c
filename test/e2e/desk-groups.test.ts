// The price desk's sheets of groups as people meet them: axe finds nothing in them, in both languages and themes, wide and
// narrow; nothing pushes the page sideways; by keyboard and by finger an override and a special group are set.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser, openVisit, PAGE_IS_UP } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF } from "../support/hands.ts";
import type { JourneyLanguage, Manner } from "../support/hands.ts";
import { signIn, startSample } from "../support/sample.ts";
import type { Sample } from "../support/sample.ts";

const GROUPS = {
  GroupRatio: {
    default: 1,
    vip: 0.8,
    premium: 2,
    "a-name-that-is-as-long-as-a-name-of-a-group-may-get-in-here-64": 1,
  },
  UserUsableGroups: { default: "默认分组", vip: "Fast", premium: "Words ".repeat(30) },
  TopupGroupRatio: { vip: 0.95 },
  GroupGroupRatio: { vip: { premium: 1.2, default: 0 }, unheard: { of: 1 } },
  GroupSpecialUsableGroup: { vip: { "+:premium": "For you", "-:default": "", "-:vip": "" } },
  AutoGroups: ["default", "vip", "unheard"],
};

let sample: Sample;
let browser: Browser;

beforeAll(async () => {
  [sample, browser] = await Promise.all([startSample(), launchBrowser()]);
  for (const [key, value] of Object.entries(GROUPS))
    await sample.app.deps.options.set(key as keyof typeof GROUPS, JSON.stringify(value));
});
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

async function visitOf(manner: Manner, language: JourneyLanguage, isDark = false): Promise<Visit> {
  const visit = await openVisit(browser, {
    baseURL: sample.app.url,
    ...CONTEXT_OF[manner],
    locale: LOCALE_OF[language],
    colorScheme: isDark ? "dark" : "light",
    reducedMotion: "reduce",
  });
  await signIn(visit.context, sample, "root");
  return visit;
}

/** What is there once a section is. */
const PARTS = {
  groups: "[role=grid], [data-column-id]",
  overrides: "[role=grid], [data-column-id]",
  special: "[data-preview]",
  auto: "[role=switch]",
};
type SectionName = keyof typeof PARTS;

async function open(page: Page, section: SectionName, more = ""): Promise<void> {
  await page.goto(`/prices?section=${section}${more}`);
  await page.waitForSelector(PAGE_IS_UP, { state: "attached" });
  await page.locator(PARTS[section]).first().waitFor();
}

describe("every sheet of groups", () => {
  // Each width, language and theme once; every two of them together with WEIR_LONG.
  const isLong = Bun.env["WEIR_LONG"] === "1";
  const LOOKS: readonly (readonly ["mouse" | "finger", "en" | "zh", boolean])[] = [
    ["mouse", "en", false],
    ["finger", "zh", true],
    ...(isLong
      ? ([
          ["mouse", "zh", true],
          ["finger", "en", true],
          ["finger", "zh", false],
        ] as const)
      : []),
  ];
  test.each(LOOKS)(
    "with a %s in %s (dark: %p): axe finds nothing, and nothing is pushed aside",
    async (manner, language, isDark) => {
      const visit = await visitOf(manner, language, isDark);
      const { page } = visit;
      for (const section of ["groups", "overrides", "special", "auto"] as const) {
        await open(page, section);
        const found = await violationsOf(page);
        expect({ section, found }).toEqual({ section, found: [] });
        expect([section, await isAsWideAsTheScreen(page)]).toEqual([section, true]);
        // Where the tabs scroll, the open one is in sight.
        const isInSight = await page.locator("nav.tabs [aria-current]").evaluate((tab) => {
          const { left, right } = tab.getBoundingClientRect();
          return left >= 0 && right <= innerWidth;
        });
        expect([section, isInSight]).toEqual([section, true]);
      }
      await open(page, "groups", "&group=vip");
      await page.locator("dialog[open]").waitFor();
      expect(await violationsOf(page)).toEqual([]);
      expect(visit.problems).toEqual([]);
      await visit.close();
    },
  );
});

const TEXTS = {
  en: {
    userGroup: "Group of users",
    addRow: "Add row",
    special: "Who may choose",
    addUserGroup: "Add group of users",
    toOpen: "Group that users of vip may choose",
    open: "Open group",
    preview: "Users of vip may choose: default, vip, and premium.",
    plan: "Plan",
    apply: /^Apply 2 changes|^Apply: /,
    applied: "Applied: 2 entries",
    group: "Group",
  },
  zh: {
    userGroup: "用户分组",
    addRow: "添加一行",
    special: "可选分组",
    addUserGroup: "添加用户分组",
    toOpen: "向 vip 的用户开放的分组",
    open: "开放分组",
    preview: "vip 分组的用户可以选择：default、vip、premium。",
    plan: "生成计划",
    apply: /^应用/,
    applied: "已应用 2 项",
    group: "分组",
  },
} as const;

describe("an override and a special group", () => {
  let app: TestApp;
  let upstream: FakeUpstream;
  let root: TestUser;
  let ada: TestUser;

  beforeAll(async () => {
    [app, upstream] = await Promise.all([startTestApp(), startFakeUpstream()]);
    await app.deps.db.orm.insert(app.deps.db.t.setups).values({ version: "test", initializedAt: 1 });
    root = await app.createUser({ username: "owner", role: 100 });
    ada = await app.createUser({ username: "ada", quota: 5_000_000, group: "vip" });
    await app.createChannel({ baseUrl: upstream.url, models: "gpt-4o-mini", group: "default,premium" });
  });
  afterAll(async () => {
    upstream.stop();
    await app.close();
  });

  async function pageOf(user: TestUser, manner: Manner, language: JourneyLanguage): Promise<Visit> {
    const visit = await openVisit(browser, {
      baseURL: app.url,
      ...CONTEXT_OF[manner],
      locale: LOCALE_OF[language],
      reducedMotion: "reduce",
    });
    const [name = "", value = ""] = (user.headers.cookie ?? "").split("=");
    await visit.context.addCookies([{ name, value, url: app.url }]);
    return visit;
  }

  async function ratioOfCall(group: string): Promise<unknown> {
    const { key } = await app.createToken(ada.id, { group });
    const response = await fetch(`${app.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-4o-mini", messages: [{ role: "user", content: "Hi" }] }),
    });
    expect(response.status).toBe(200);
    await response.text();
    await app.deps.ledger.flush();
    const rows = await app.deps.db.orm.select().from(app.deps.db.t.logs);
    const last = rows.filter(({ type }) => type === 2).at(-1);
    return (JSON.parse(last?.other ?? "{}") as Record<string, unknown>)["group_ratio"];
  }

  test.each([
    ["keyboard", "zh"],
    ["finger", "en"],
  ] as const)(
    "set by %s, planned and applied, are in the key editor and the charge",
    async (manner, language) => {
      const texts = TEXTS[language];
      const set = (key: string, value: unknown) => app.deps.options.set(key as never, JSON.stringify(value));
      await set("GroupRatio", { default: 1, vip: 1, premium: 2 });
      await set("UserUsableGroups", { default: "Everybody", vip: "Fast" });
      await set("GroupGroupRatio", {});
      await set("GroupSpecialUsableGroup", {});
      const visit = await pageOf(root, manner, language);
      const { page } = visit;
      const hand = await handOf(page, manner);
      const pick = async (label: string, group: string, button: string) => {
        await hand.walkTo(page.getByLabel(label, { exact: true }));
        await page.getByLabel(label, { exact: true }).selectOption(group);
        await hand.press(page.getByRole("button", { name: button, exact: true }));
      };
      await page.goto("/prices?section=overrides");
      await page.waitForSelector(PAGE_IS_UP, { state: "attached" });
      await pick(texts.userGroup, "vip", texts.addRow);
      if (manner === "finger") {
        await hand.press(page.getByRole("button", { name: /^premium of vip/ }));
        await page.keyboard.type("0.5");
        await page.keyboard.press("Enter");
      } else {
        await hand.walkTo(page.getByRole("grid"));
        for (const key of ["ArrowRight", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
        await page.keyboard.type("0.5");
        await page.keyboard.press("Enter");
      }
      await hand.press(page.getByRole("link", { name: texts.special, exact: true }));
      await pick(texts.userGroup, "vip", texts.addUserGroup);
      await pick(texts.toOpen, "premium", texts.open);
      await page.getByText(texts.preview, { exact: true }).waitFor();
      expect(await isAsWideAsTheScreen(page)).toBe(true);

      await hand.press(page.getByRole("button", { name: texts.plan, exact: true }));
      await hand.press(page.getByRole("button", { name: texts.apply }));
      await page.getByText(texts.applied, { exact: true }).waitFor();
      expect(visit.problems).toEqual([]);
      await visit.close();

      const theirs = await pageOf(ada, manner, language);
      await theirs.page.goto("/token?new=1");
      const option = theirs.page
        .getByRole("dialog")
        .getByLabel(texts.group, { exact: true })
        .locator("option", { hasText: "premium" });
      await option.waitFor({ state: "attached" });
      expect(await option.textContent()).toContain("0.5");
      await theirs.close();
      expect(await ratioOfCall("premium")).toBe(0.5);
    },
  );
});
