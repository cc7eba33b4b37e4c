// The weight of every page as each role gets it, by the figures that `bun run budgets` prints.
// What pages do in the browser (no request before the rows, nothing moves) is watched in axe.test.ts, on the same visits.
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  aboveBudget,
  assetsOf,
  badArrivals,
  BUDGETS,
  ownFiles,
  readBuildManifest,
  SCRIPT_BUDGETS,
  weighPages,
} from "../../scripts/budgets.ts";
import type { Arrival, Weight } from "../../scripts/budgets.ts";
import { forbiddenPage, notFoundPage, pages } from "../../src/pages/pages.ts";
import { startSample } from "../support/sample.ts";
import type { Sample } from "../support/sample.ts";

let sample: Sample;
let weights: Weight[] = [];

beforeAll(async () => {
  sample = await startSample();
  weights = await weighPages(sample);
});
afterAll(() => sample.app.close());

test("every page answers within the budgets of markup, style, first script and later script", () => {
  const all = [...pages, notFoundPage, forbiddenPage];
  expect(new Set(weights.map(({ path }) => path))).toEqual(new Set(all.map(({ path }) => path)));
  expect(aboveBudget(weights)).toEqual([]);
});

test("the figures are of real pages: lists come with their rows, screens with their scripts", async () => {
  for (const page of pages) {
    const own = weights.filter(({ path }) => path === page.path);
    expect(own.length).toBeGreaterThan(0);
    for (const weight of own) {
      expect(weight.css).toBeGreaterThan(5 * 1024);
      if (page.screen) expect(weight.firstScript).toBeGreaterThan(60 * 1024);
    }
  }
  const answer = await fetch(`${sample.app.url}/log`, { headers: sample.user.headers });
  const html = await answer.text();
  expect(html.split("data-index=")).toHaveLength(11);
  const manifest = readBuildManifest();
  const { scripts, styles } = assetsOf(html);
  // Nothing can be painted without the style: it stands before every script that the browser fetches ahead.
  expect(html.indexOf('rel="stylesheet"')).toBeGreaterThan(0);
  expect(html.indexOf('rel="stylesheet"')).toBeLessThan(html.indexOf('rel="modulepreload"'));
  expect(html.indexOf('rel="stylesheet"')).toBeLessThan(html.indexOf("<script"));
  expect(styles).toEqual([manifest.css]);
  expect(scripts).toContain(manifest.entries["log"]?.file ?? "");
  expect(scripts).toContain(manifest.entries["mount"]?.file ?? "");
});

const kilobytes = (bytes: number): string => `${(bytes / 1024).toFixed(1)} KB`;

test("a page above any budget is named with its figure", () => {
  const good: Weight = {
    path: "/x",
    role: "user",
    kind: "list",
    status: 200,
    expectedStatus: 200,
    html: BUDGETS.html,
    css: BUDGETS.css,
    firstScript: SCRIPT_BUDGETS.list,
    laterScript: BUDGETS.laterScript,
    parts: 1e6,
  };
  expect(aboveBudget([good])).toEqual([]);
  expect(
    aboveBudget([{ ...good, html: BUDGETS.html + 1024, firstScript: SCRIPT_BUDGETS.list + 512 }]),
  ).toEqual([
    `/x as user: html ${kilobytes(BUDGETS.html + 1024)}, budget ${kilobytes(BUDGETS.html)}`,
    `/x as user: firstScript ${kilobytes(SCRIPT_BUDGETS.list + 512)}, budget ${kilobytes(SCRIPT_BUDGETS.list)}`,
  ]);
  expect(aboveBudget([{ ...good, kind: "screen", firstScript: SCRIPT_BUDGETS.screen }])).toEqual([]);
  expect(aboveBudget([{ ...good, kind: "plain" }])).toEqual([
    `/x as user: firstScript ${kilobytes(SCRIPT_BUDGETS.list)}, budget ${kilobytes(SCRIPT_BUDGETS.plain)}`,
  ]);
  expect(aboveBudget([{ ...good, status: 500 }])).toEqual(["/x as user: answered 500"]);
});

test("what two screens load is shared, the rest is a screen's own", () => {
  const entry = (file: string, ...imports: string[]) => ({ file, imports, parts: [], keys: [] });
  const manifest = {
    css: "",
    texts: { zh: "", en: "" },
    entries: { mount: entry("m", "react"), a: entry("a", "kit", "only-a"), b: entry("b", "kit", "react") },
  };
  expect(ownFiles(manifest, "a")).toEqual(["a", "only-a"]);
  expect(ownFiles(manifest, "b")).toEqual(["b"]);
  expect(ownFiles(manifest, "none")).toEqual([]);
});

test("a page that asks, moves, loses rows or complains on its way is named with what it did", () => {
  const good: Arrival = {
    path: "/x",
    role: "user",
    width: 360,
    calls: [],
    shift: 0,
    rows: [10, 10],
    problems: [],
  };
  expect(badArrivals([good])).toEqual([]);
  expect(
    badArrivals([{ ...good, calls: ["GET /api/x"], shift: 0.02, rows: [10, 0], problems: ["console: no"] }]),
  ).toEqual([
    "/x as user at 360 px: asked for data before it was alive: GET /api/x",
    "/x as user at 360 px: layout moved by 0.0200",
    "/x as user at 360 px: came with 10 rows and has 0",
    "/x as user at 360 px: console: no",
  ]);
});
