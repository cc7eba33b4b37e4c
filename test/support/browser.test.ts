// The browser helper's promises: a page opens, its troubles are seen, and visits share nothing.
// Refuses the product: the pages are three lines of HTML.

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser } from "playwright";
import { launchBrowser, openVisit } from "./browser.ts";

const PAGES: Record<string, string> = {
  "/": "<!doctype html><title>ok</title><h1>Hello</h1>",
  "/skipped":
    "<!doctype html><script>Promise.reject(new DOMException('Transition was aborted because of invalid state. Page already revealed')); " +
    "Promise.reject(new Error('a rejection of ours'))</script>",
  "/broken":
    "<!doctype html><script>console.error('seen in console'); throw new Error('seen as exception')</script>",
};
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    const html = PAGES[new URL(request.url).pathname];
    if (html === undefined) return new Response(null, { status: 204 });
    return new Response(html, { headers: { "content-type": "text/html" } });
  },
});

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await server.stop(true);
});

test("a page opens by its relative address and has no problems", async () => {
  const visit = await openVisit(browser, { baseURL: server.url.href });
  await visit.page.goto("/");
  expect(await visit.page.textContent("h1")).toBe("Hello");
  expect(visit.problems).toEqual([]);
  await visit.close();
});

test("console errors and exceptions of a page are collected", async () => {
  const visit = await openVisit(browser, { baseURL: server.url.href });
  await visit.page.goto("/broken");
  expect(visit.problems.some((problem) => problem.includes("seen in console"))).toBe(true);
  expect(visit.problems).toContain("exception: seen as exception");
  await visit.close();
});

test("a transition between pages that the browser skips is no problem of the page, any other rejection is", async () => {
  const visit = await openVisit(browser, { baseURL: server.url.href });
  await visit.page.goto("/skipped");
  expect(visit.problems).toEqual(["exception: a rejection of ours"]);
  await visit.close();
});

test("two visits share no cookies", async () => {
  const [a, b] = await Promise.all([1, 2].map(() => openVisit(browser, { baseURL: server.url.href })));
  await a?.context.addCookies([{ name: "session", value: "x", url: server.url.href }]);
  expect((await a?.context.cookies())?.length).toBe(1);
  expect(await b?.context.cookies()).toEqual([]);
  await Promise.all([a?.close(), b?.close()]);
});
