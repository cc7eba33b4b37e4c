// `bun run budgets`: weighs every page of the page table as each role sees it, and watches it come up in Chromium.
// Refuses (exit code 1) what is above the budgets of the console's design: bytes, requests before the rows, moving layout.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Browser } from "playwright";
import { forbiddenPage, notFoundPage, pages } from "../src/pages/pages.ts";
import type { Page } from "../src/pages/page.ts";
import type { Language } from "../src/shared/enums.ts";
import { startTestApp } from "../test/support/app.ts";
import type { TestApp } from "../test/support/app.ts";
import { PAGE_IS_UP, launchBrowser, openVisit } from "../test/support/browser.ts";
import type { Visit } from "../test/support/browser.ts";
import { headersOf, signIn, SAMPLE_ROLES, startSample, standInForPictures } from "../test/support/sample.ts";
import type { Sample, SampleRole } from "../test/support/sample.ts";
import { buildFrontEnd, PROJECT_DIR } from "./build.ts";
import type { Manifest } from "./build.ts";
import { gzipSize } from "./build-compress.ts";

const KILO = 1024;
/** Gzipped bytes, as the console's design sets them. */
export const BUDGETS = {
  /** A kilobyte of it is the inbox's bell, which carries the newest eight items on every page. */
  html: 16 * KILO,
  // The design says 22; it counted 45 classes of daisyUI, and the console has grown by dialogs, results and the playground.
  css: 25 * KILO,
  /** A kilobyte of it is what the profile says of factors, passkeys, bindings and devices. */
  laterScript: 11 * KILO,
} as const;

/** All script before a page is alive, gzipped bytes, by what the page is. */
export const SCRIPT_BUDGETS = {
  /** Served as it is: public pages, not found, forbidden. */
  plain: 20 * KILO,
  /** A kilobyte more since figures are shortened, with the exact one beside them, on every list; another since
   * any call may ask who is there (lib/step-up.ts). */
  list: 112 * KILO,
  screen: 120 * KILO,
} as const;

/**
 * The settings are the one page that is all form: fifty options with their explanations stand on its first tab, twice each,
 * as markup and as texts, and some with an editor of their own. A page that shows fewer of them at first would not be found
 * through by Ctrl F.
 */
const HTML_OF_SETTINGS = 24 * KILO;

type PageKind = keyof typeof SCRIPT_BUDGETS;

/** Screens that are no list; any other has to keep the smaller budget of lists. */
const SINGLE_SCREENS = new Set([
  "setup",
  "login",
  "detail",
  "playground",
  "chat",
  "chat2link",
  "topup",
  "personal",
  "setting",
]);

function kindOf({ screen }: Page): PageKind {
  if (!screen) return "plain";
  return SINGLE_SCREENS.has(screen.name) ? "screen" : "list";
}

const RANK: Record<SampleRole | "public", number> = { public: 0, guest: 0, user: 1, admin: 10, root: 100 };

export interface Weight {
  path: string;
  role: SampleRole;
  kind: PageKind;
  status: number;
  /** What it should have answered. */
  expectedStatus: number;
  /** Gzipped bytes; the page in its heavier language. */
  html: number;
  css: number;
  /** All script that the page loads before it is alive. */
  firstScript: number;
  /** What of it no other screen shares. */
  laterScript: number;
  /** Further parts, fetched when the page is idle or when they are opened. */
  parts: number;
}

/** The address of a page: placeholders get the id of a row that the sample has. */
export function addressOf(page: Page): string {
  // The task log shows today by default: what the sample has of it hangs on the hour.
  if (page.path === "/task") return "/task?range=7d";
  return page.path.replaceAll(/:\w+/g, page.path.startsWith("/chat/") ? "0" : "1");
}

export function isAllowed(page: Page, role: SampleRole): boolean {
  return RANK[role] >= RANK[page.access];
}

const sizes = new Map<string, number>();

function sizeOf(file: string): number {
  const known = sizes.get(file) ?? gzipSize(join(PROJECT_DIR, "dist/a", file));
  sizes.set(file, known);
  return known;
}

function sum(files: Iterable<string>): number {
  return [...files].reduce((total, file) => total + sizeOf(file), 0);
}

export function readBuildManifest(): Manifest {
  return JSON.parse(readFileSync(join(PROJECT_DIR, "dist/manifest.json"), "utf8")) as Manifest;
}

/** Files of a screen that neither the frame nor another screen loads. */
export function ownFiles(manifest: Manifest, screen: string): string[] {
  const entry = manifest.entries[screen];
  if (!entry) return [];
  const others = new Set(
    Object.entries(manifest.entries).flatMap(([name, { file, imports }]) =>
      name === screen ? [] : [file, ...imports],
    ),
  );
  return [entry.file, ...entry.imports].filter((file) => !others.has(file));
}

/** Scripts and styles that a page names in its markup, as file names below /a/. */
export function assetsOf(html: string): { scripts: string[]; styles: string[] } {
  const found = [...html.matchAll(/(?:src|href)="\/a\/([^"?]+)"/g)].map(([, name]) => name ?? "");
  const unique = [...new Set(found)];
  return {
    scripts: unique.filter((name) => name.endsWith(".js")),
    styles: unique.filter((name) => name.endsWith(".css")),
  };
}

interface Look {
  page: Page;
  role: SampleRole;
  headers: Record<string, string>;
  address?: string;
}

async function weigh(app: TestApp, look: Look): Promise<Weight> {
  const { page, role, headers, address = addressOf(page) } = look;
  const manifest = readBuildManifest();
  let html = 0;
  let status = 0;
  let text = "";
  for (const language of ["zh", "en"]) {
    const answer = await fetch(app.url + address, {
      headers: { ...headers, "accept-language": language, "accept-encoding": "identity" },
      redirect: "manual",
    });
    text = await answer.text();
    status = answer.status;
    html = Math.max(html, gzipSync(text).byteLength);
  }
  const { scripts, styles } = assetsOf(text);
  const entries = Object.values(manifest.entries).filter(({ file }) => scripts.includes(file));
  return {
    path: page.path,
    role,
    kind: kindOf(page),
    status,
    expectedStatus: page.statusCode ?? 200,
    html,
    css: sum(styles),
    firstScript: sum(scripts),
    laterScript: sum(ownFiles(manifest, page.screen?.name ?? "")),
    parts: sum(new Set(entries.flatMap(({ parts }) => parts))),
  };
}

/** Pages that no row of the table has: what is not there, and what a role may not open. */
const PLAIN_LOOKS = [
  { page: notFoundPage, role: "guest", address: "/nowhere" },
  { page: notFoundPage, role: "user", address: "/nowhere" },
  { page: forbiddenPage, role: "user", address: "/channel" },
] as const;

/** Every page as every role that may open it; /setup on a product that nobody has set up yet. */
export async function weighPages(sample: Sample): Promise<Weight[]> {
  const weights: Weight[] = [];
  for (const page of pages) {
    if (page.path === "/setup") {
      const bare = await startTestApp();
      weights.push(await weigh(bare, { page, role: "guest", headers: {} }));
      await bare.close();
      continue;
    }
    for (const role of SAMPLE_ROLES) {
      if (!isAllowed(page, role)) continue;
      weights.push(await weigh(sample.app, { page, role, headers: headersOf(sample, role) }));
    }
  }
  for (const { page, role, address } of PLAIN_LOOKS) {
    weights.push(await weigh(sample.app, { page, role, address, headers: headersOf(sample, role) }));
  }
  return weights;
}

/** One line for each budget that is broken; empty is good. */
export function aboveBudget(weights: readonly Weight[]): string[] {
  return weights.flatMap((weight) => {
    const at = `${weight.path} as ${weight.role}:`;
    const html = weight.path === "/setting" ? HTML_OF_SETTINGS : BUDGETS.html;
    const budgets = { ...BUDGETS, html, firstScript: SCRIPT_BUDGETS[weight.kind] };
    return [
      ...(weight.status === weight.expectedStatus ? [] : [`${at} answered ${weight.status}`]),
      ...(Object.keys(budgets) as (keyof typeof budgets)[]).flatMap((what) =>
        weight[what] > budgets[what]
          ? [`${at} ${what} ${kilo(weight[what])} KB, budget ${kilo(budgets[what])} KB`]
          : [],
      ),
    ];
  });
}

export interface Arrival {
  path: string;
  role: SampleRole;
  width: number;
  /** Calls for data before the page was alive: the first rows come with the page. */
  calls: string[];
  /** Cumulative layout shift from first paint until the page rests. */
  shift: number;
  /** Rows and cards in the server's markup, and once the page was alive. */
  rows: [number, number];
  problems: string[];
}

/** A busy machine may paint between two pieces of the document: a hairline then moves by a fraction of a pixel. */
const MOST_SHIFT = 0.002;
/**
 * What is asked for while the first rows are read. A page that shows the first rows of a sheet and edits it as a whole: thousands
 * of models do not travel in its markup. What stands below a dashboard and is asked for when it comes near the window.
 */
const BEYOND_FIRST_ROWS = new Set(["/api/price/desk", "/api/data/margin", "/api/data/cache"]);
const DATA_REQUESTS = new Set(["fetch", "xhr", "eventsource", "websocket"]);

export interface Visitor {
  role: SampleRole;
  width: number;
  language: Language;
  theme: "light" | "dark";
}

/**
 * Opens a page as a first visit from another time zone and watches it until it rests; `then` goes on with the page.
 * Motion is reduced, so that colours stand where they end.
 */
export async function watchArrival(
  browser: Browser,
  sample: Sample,
  page: Page,
  visitor: Visitor,
  then?: (visit: Visit) => Promise<void>,
): Promise<Arrival> {
  const { role, width, language, theme } = visitor;
  const visit = await openVisit(browser, {
    baseURL: sample.app.url,
    viewport: { width, height: 900 },
    timezoneId: "Asia/Kolkata",
    locale: language === "zh" ? "zh-CN" : "en-US",
    colorScheme: theme,
    reducedMotion: "reduce",
  });
  try {
    await signIn(visit.context, sample, role);
    await standInForPictures(visit.context);
    await visit.page.addInitScript(() => {
      const seen = { shift: 0 };
      Object.assign(window, { seen });
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) seen.shift += (entry as unknown as { value: number }).value;
      }).observe({ type: "layout-shift", buffered: true });
    });
    const calls: string[] = [];
    visit.page.on("request", (request) => {
      // Texts for what may be opened later are a file below /a/, no data.
      const { pathname } = new URL(request.url());
      if (!DATA_REQUESTS.has(request.resourceType()) || pathname.startsWith("/a/")) return;
      if (BEYOND_FIRST_ROWS.has(pathname)) return;
      calls.push(`${request.method()} ${request.url()}`);
    });
    // Scripts come after the first paint, as on a slow line: what they move is then seen, however quick this machine is.
    await visit.page.route(/\/a\/[^/]+\.js$/, async (route) => {
      await visit.page.waitForFunction(
        () => performance.getEntriesByName("first-contentful-paint").length > 0,
      );
      await route.continue();
    });
    const answer = await visit.page.goto(addressOf(page), { waitUntil: "load" });
    const html = (await answer?.text()) ?? "";
    if (html.includes('id="island"')) await visit.page.waitForSelector(PAGE_IS_UP, { state: "attached" });
    const callsBefore = [...calls];
    const { shift, rows } = await visit.page.evaluate(async () => {
      await new Promise((done) => requestIdleCallback(done));
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      return {
        shift: (window as unknown as { seen: { shift: number } }).seen.shift,
        rows: document.querySelectorAll("[data-index]").length,
      };
    });
    await then?.(visit);
    return {
      path: page.path,
      role,
      width,
      calls: callsBefore,
      shift,
      rows: [html.split("data-index=").length - 1, rows],
      problems: visit.problems,
    };
  } finally {
    // A page that is left while it fetches a script leaves the handler above waiting for a paint that never comes.
    await visit.page.unrouteAll({ behavior: "ignoreErrors" });
    await visit.close();
  }
}

/** How every page is looked at: wide as its most powerful role, and narrow in the other language as its least one. */
export function visitorsOf(page: Page): Visitor[] {
  const least = SAMPLE_ROLES.find((role) => isAllowed(page, role)) ?? "root";
  return [
    { role: "root", width: 1440, language: "en", theme: "light" },
    { role: least, width: 360, language: "zh", theme: "dark" },
  ];
}

/** Every page but the setup's, which has no sample behind it. */
export const watchedPages = pages.filter(({ path }) => path !== "/setup");

async function watchArrivals(browser: Browser, sample: Sample): Promise<Arrival[]> {
  const arrivals: Arrival[] = [];
  for (const page of watchedPages) {
    for (const visitor of visitorsOf(page)) arrivals.push(await watchArrival(browser, sample, page, visitor));
  }
  return arrivals;
}

/** One line for each page that asked, moved or complained on its way; empty is good. */
export function badArrivals(arrivals: readonly Arrival[]): string[] {
  return arrivals.flatMap(({ path, role, width, calls, shift, rows, problems }) => {
    const at = `${path} as ${role} at ${width} px:`;
    return [
      ...calls.map((call) => `${at} asked for data before it was alive: ${call}`),
      ...(shift > MOST_SHIFT ? [`${at} layout moved by ${shift.toFixed(4)}`] : []),
      ...(rows[0] === rows[1] ? [] : [`${at} came with ${rows[0]} rows and has ${rows[1]}`]),
      ...problems.map((problem) => `${at} ${problem}`),
    ];
  });
}

function kilo(bytes: number): string {
  return (bytes / KILO).toFixed(1);
}

function print(weights: readonly Weight[]): void {
  const row = (cells: readonly string[]) =>
    console.log(
      cells.map((cell, at) => (at < 2 ? cell.padEnd([14, 7][at] ?? 0) : cell.padStart(8))).join(" "),
    );
  console.log("KB gzipped; own: script that only this screen loads; parts: fetched when idle or opened\n");
  row(["page", "role", "html", "css", "script", "own", "parts"]);
  for (const { path, role, html, css, firstScript, laterScript, parts } of weights) {
    row([path, role, ...[html, css, firstScript, laterScript, parts].map(kilo)]);
  }
  for (const kind of Object.keys(SCRIPT_BUDGETS) as PageKind[]) {
    const { html, css, laterScript } = BUDGETS;
    row(["budget", kind, ...[html, css, SCRIPT_BUDGETS[kind], laterScript].map(kilo), "-"]);
  }
}

if (import.meta.main) {
  await buildFrontEnd();
  const sample = await startSample();
  const browser = await launchBrowser();
  const weights = await weighPages(sample);
  print(weights);
  const arrivals = await watchArrivals(browser, sample);
  console.log(`\n${arrivals.length} arrivals watched in Chromium`);
  const faults = [...aboveBudget(weights), ...badArrivals(arrivals)];
  for (const fault of faults) console.error(fault);
  await browser.close();
  await sample.app.close();
  process.exit(faults.length === 0 ? 0 : 1);
}
