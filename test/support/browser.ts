// Chromium for end-to-end tests: one browser per test file, a fresh context per test.
// Refuses to download anything (`bun run test` sees to that) and to wait longer than Bun's own limit per test.

import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
  type Request,
  chromium,
} from "playwright";
import { findChromium } from "../../scripts/install-chromium.ts";

/** Under Bun's limit for end-to-end tests (two minutes): past that one, Bun ends the browser and every later test fails. */
const ACTION_TIMEOUT_MS = 15_000;
/** Where many processes begin at once, reading the browser from the disk takes its time. */
const LAUNCH_TIMEOUT_MS = 60_000;

const SKIPPED_TRANSITION =
  /^Transition was aborted because of invalid state\. (Page already revealed|ViewTransition opt-in disabled)$/;

/** A page that is up: its screen is alive, or it has none and brings the palette with its first use. */
export const PAGE_IS_UP = "#island[data-mounted], #island[data-late]";

/** Chromium writes a line about every document that is no success; this page is meant to be none. */
const FORBIDDEN_PAGE = /^console: Failed to load resource: .* 403 \(Forbidden\) \(\S*\/forbidden\)$/;

export interface VisitOptions extends BrowserContextOptions {
  /** Origin that relative addresses in `page.goto` start from. */
  baseURL: string;
}

export interface Visit {
  page: Page;
  context: BrowserContext;
  /** What went wrong in the page so far: console errors, uncaught exceptions, requests without an answer. */
  problems: string[];
  close(): Promise<void>;
}

/** One Chromium, without a sandbox because containers and root have none. Close it in `afterAll`. */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = findChromium();
  if (!executablePath) throw new Error("no Chromium found; run `bun scripts/install-chromium.ts`");
  return await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
    timeout: LAUNCH_TIMEOUT_MS,
  });
}

/** A context of its own (cookies, storage) with one page, whose troubles are collected in `problems`. */
export async function openVisit(browser: Browser, options: VisitOptions): Promise<Visit> {
  const context = await browser.newContext({ locale: "en-US", ...options });
  context.setDefaultTimeout(ACTION_TIMEOUT_MS);
  const problems: string[] = [];
  const page = await context.newPage();
  const open = new Set<Request>();
  openRequests.set(page, open);
  page.on("request", (request) => {
    // Streams of events stay open.
    if (request.resourceType() !== "eventsource") open.add(request);
  });
  page.on("requestfinished", (request) => void open.delete(request));
  page.on("console", (message) => {
    if (message.type() !== "error") return;
    const problem = `console: ${message.text()} (${message.location().url})`;
    if (!FORBIDDEN_PAGE.test(problem)) problems.push(problem);
  });
  page.on("pageerror", (error) => {
    // Chromium tells of a cross-document transition that it skipped as of a rejection that the page left unhandled,
    // although no script of the page has it in hand (csswg-drafts, issue 13726).
    if (!SKIPPED_TRANSITION.test(error.message)) problems.push(`exception: ${error.message}`);
  });
  page.on("requestfailed", (request) => {
    open.delete(request);
    const reason = request.failure()?.errorText ?? "";
    // Leaving a page aborts what it was still loading: no fault of the page.
    if (reason !== "net::ERR_ABORTED") problems.push(`request: ${request.url()} ${reason}`);
  });
  return { page, context, problems, close: () => context.close() };
}

const openRequests = new WeakMap<Page, ReadonlySet<Request>>();

/**
 * Until the page of a visit has done what it does by itself when idle: twice in a row it had an idle moment and a frame, and
 * waited for no answer. Half a second quicker than the driver's own "networkidle".
 */
export async function pageRests(page: Page): Promise<void> {
  const open = openRequests.get(page);
  if (!open) throw new Error("not the page of a visit");
  for (let quiet = 0; quiet < 2;) {
    await page.evaluate(async () => {
      // A busy page does what it keeps for idle moments after three seconds (islands/lib/when-idle.ts).
      await new Promise((done) => requestIdleCallback(done, { timeout: 3000 }));
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    });
    quiet = open.size === 0 ? quiet + 1 : 0;
  }
}
