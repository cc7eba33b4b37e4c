// The main job, end to end: set up, add a channel, make a key, call a model with the official client, see its price.
import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI from "openai";
import type { Browser, Page } from "playwright";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { startFakeUpstream, stream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

let server: ServerProcess;
let upstream: FakeUpstream;
let browser: Browser;
let visit: Visit;
let page: Page;
let key = "";

const ROOT = { username: "owner", password: "a long password" };

beforeAll(async () => {
  [server, upstream, browser] = await Promise.all([
    startServerProcess(),
    startFakeUpstream(),
    launchBrowser(),
  ]);
  visit = await openVisit(browser, { baseURL: server.url });
  page = visit.page;
});
afterAll(async () => {
  await browser.close();
  await server.remove();
  upstream.stop();
});

const button = (name: string | RegExp) => page.getByRole("button", { name, exact: typeof name === "string" });

test("every address leads to the wizard until it is finished, and the wizard ends signed in", async () => {
  await page.goto("/log");
  await page.waitForURL("**/setup");
  await button("Next").click();
  await page.getByLabel("Username").fill(ROOT.username);
  await page.getByLabel(/^Password/).fill(ROOT.password);
  await page.getByLabel(/^Confirm password/).fill("something else");
  await button("Next").click();
  await page.getByText("Passwords do not match").waitFor();
  await page.getByLabel(/^Confirm password/).fill(ROOT.password);
  await button("Next").click();
  await button("Initialise the system").click();
  await page.getByText("The system has been set up").waitFor();
  await page.goto("/setup");
  expect(new URL(page.url()).pathname).not.toBe("/setup");
});

test("a guest is sent to sign in and comes back to the page that was asked for", async () => {
  await page.context().clearCookies();
  await page.goto("/channel");
  await page.waitForURL("**/login?**");
  await page.getByLabel("Username or email").fill(ROOT.username);
  await page.getByLabel("Password").fill("not the password");
  await button("Sign in").click();
  await page.getByText("The username or password is wrong, or the user has been banned").first().waitFor();
  await page.getByLabel("Password").fill(ROOT.password);
  await button("Sign in").click();
  await page.waitForURL("**/channel");
});

test("a channel is added, and one without models is refused at its field", async () => {
  await button("New channel").first().click();
  const drawer = page.getByRole("dialog", { name: "New channel" });
  await drawer.getByLabel(/^Name/).fill("fake provider");
  await drawer.getByLabel("Base URL").fill(upstream.url);
  await drawer.getByLabel(/^Key/).fill("sk-upstream-secret");
  await drawer.getByRole("button", { name: "Create" }).click();
  await drawer.getByText("Choose at least one model").waitFor();
  await drawer.getByLabel(/^Models/).fill("gpt-4o-mini, gpt-4o");
  await drawer.getByRole("button", { name: "Create" }).click();
  await page.getByRole("row", { name: /fake provider/ }).waitFor();
  expect(await page.content()).not.toContain("sk-upstream-secret");
});

test("a key is made and shown with ready code", async () => {
  await page.goto("/token");
  await button("New API key").first().click();
  const drawer = page.getByRole("dialog", { name: "New API key" });
  await drawer.getByLabel(/^Name/).fill("laptop");
  await drawer.getByLabel("Unlimited quota").check();
  await drawer.getByRole("button", { name: "Create" }).click();
  const shown = page.locator("code", { hasText: /^sk-[0-9A-Za-z]{48}$/ }).first();
  await shown.waitFor();
  key = (await shown.textContent()) ?? "";
  await page.getByText(`${server.url}/v1/chat/completions`).waitFor();
  await page.getByRole("row", { name: /laptop/ }).waitFor();
});

test("the official client streams a completion, and the log shows that call with its exact price", async () => {
  const client = new OpenAI({ apiKey: key, baseURL: `${server.url}/v1` });
  upstream.script(
    stream(["Hello", ", ", "world"], {
      usage: { prompt_tokens: 1000, completion_tokens: 200, total_tokens: 1200 },
    }),
  );
  const answer = await client.chat.completions.create({
    model: "gpt-4o",
    stream: true,
    messages: [{ role: "user", content: "Say hello" }],
  });
  let text = "";
  for await (const chunk of answer) text += chunk.choices[0]?.delta.content ?? "";
  expect(text).toBe("Hello, world");

  await page.goto("/log");
  const row = page.getByRole("row", { name: /gpt-4o/ });
  await row.waitFor();
  // 1000 × 1.25 + 200 × 1.25 × 4 = 2250 units = $0.0045.
  expect(await row.textContent()).toContain("$0.0045");
  await row.click();
  const detail = page.getByRole("dialog");
  const sum = detail.getByRole("region", { name: "How the cost came about" });
  expect(await sum.getByRole("row", { name: /^Input/ }).textContent()).toContain("1,000");
  expect(await sum.getByRole("row", { name: /^Output/ }).textContent()).toContain("200");
  expect(await sum.getByRole("row", { name: /^Total/ }).textContent()).toContain("$0.0045");
});

test("the balance is lower by that price, the books are balanced, and all of it survives a kill", async () => {
  const self = async () => {
    const id = await page.evaluate(
      () => (JSON.parse(localStorage.getItem("user") ?? "{}") as { id?: number }).id,
    );
    const answer = await page.request.get("/api/user/self", { headers: { "New-Api-User": String(id) } });
    return ((await answer.json()) as { data: { quota: number; used_quota: number; request_count: number } })
      .data;
  };
  expect(await self()).toMatchObject({ quota: 100_000_000 - 2250, used_quota: 2250, request_count: 1 });
  await server.kill();
  expect(server.audit()).toMatchObject({ code: 0 });
  await server.restart();
  expect(await self()).toMatchObject({ quota: 100_000_000 - 2250, used_quota: 2250, request_count: 1 });
  await page.goto("/log");
  await page.getByRole("row", { name: /gpt-4o/ }).waitFor();
});

test("the playground streams through the gateway and is billed like any call", async () => {
  upstream.script(
    stream(["A weir ", "measures ", "water."], {
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    }),
  );
  await page.goto("/playground");
  await page.getByRole("textbox", { name: /message/i }).fill("What is a weir?");
  await page.keyboard.press("Enter");
  await page.getByText("A weir measures water.").waitFor();
  await page.goto("/log");
  await page.getByRole("row", { name: /playground-default/ }).waitFor();
});

test("no page had an error in its console", () => {
  // The refused sign-in and form are expected to be answered with refusals, not with failed requests.
  expect(visit.problems).toEqual([]);
});
