// What journeys through the console begin with: a site that is set up, a person who is signed in, a page that is up.
import type { Browser, Page } from "playwright";
import { startTestApp } from "./app.ts";
import type { TestApp, TestAppOptions, TestUser } from "./app.ts";
import { openVisit, PAGE_IS_UP } from "./browser.ts";
import type { Visit, VisitOptions } from "./browser.ts";
import { CONTEXT_OF, handOf, LOCALE_OF } from "./hands.ts";
import type { Hand, JourneyLanguage, Manner } from "./hands.ts";

export interface Site {
  app: TestApp;
  /** Root: "owner". */
  root: TestUser;
  /** Administrator: "helper". */
  admin: TestUser;
}

/** A site behind its wizard, with root and an administrator. */
export async function startSite(options: TestAppOptions = {}): Promise<Site> {
  const app = await startTestApp(options);
  const { orm, t } = app.deps.db;
  await orm.insert(t.setups).values({ version: "test", initializedAt: 1 });
  const root = await app.createUser({ username: "owner", role: 100, quota: 10_000_000 });
  const admin = await app.createUser({ username: "helper", role: 10 });
  return { app, root, admin };
}

export interface Journey {
  user: TestUser;
  language: JourneyLanguage;
  manner?: Manner;
  /** What the context has besides: its size. */
  more?: Partial<VisitOptions>;
}

/** A context that the user is signed in to. */
export async function visitOf(
  browser: Browser,
  app: TestApp,
  { user, language, manner = "mouse", more = {} }: Journey,
): Promise<Visit & { hand: Hand }> {
  const visit = await openVisit(browser, {
    baseURL: app.url,
    locale: LOCALE_OF[language],
    reducedMotion: "reduce",
    ...CONTEXT_OF[manner],
    ...more,
  });
  const [name = "", value = ""] = (user.headers.cookie ?? "").split("=");
  await visit.context.addCookies([{ name, value, url: app.url }]);
  return { ...visit, hand: await handOf(visit.page, manner) };
}

/** Goes there, and waits until the page is up. */
export async function openPage(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await page.locator(PAGE_IS_UP).first().waitFor({ state: "attached" });
}

/** Words of the channel editor, which journeys fill in. */
export const CHANNEL_WORDS = {
  en: {
    newChannel: "New channel",
    name: /^Name/,
    baseUrl: "Base URL",
    key: /^Key/,
    models: /^Models/,
    create: "Create",
    setPrices: "Set prices",
  },
  zh: {
    newChannel: "新建渠道",
    name: /^名称/,
    baseUrl: "API 地址",
    key: /^密钥/,
    models: /^模型（/,
    create: "新建",
    setPrices: "设置价格",
  },
} as const;
