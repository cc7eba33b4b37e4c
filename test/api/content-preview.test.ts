// The preview of an operator's texts: what pages would show, what was cut out, for root alone, and nothing is saved.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { operatorContent } from "../../src/http/operator-content.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";

interface Told {
  success: boolean;
  data: { html: string; frame_url: string; removed: { kind: string; name: string; count: number }[] };
}

let app: TestApp;
let root: TestUser;
let admin: TestUser;
const preview = (key: string, value: string, as: TestUser = root) =>
  app.call<Told>("POST", "/api/option/preview", { key, value }, as);

beforeAll(async () => {
  app = await startTestApp();
  root = await app.createUser({ role: 100 });
  admin = await app.createUser({ role: 10 });
});
afterAll(() => app.close());

test("tells each tag, attribute and value that is cut out, counted, most first", async () => {
  const html =
    '<p onclick="a()" class="x">Hi<script>1</script><script>2</script></p>' +
    '<a href="javascript:1" onclick="b()">x</a><b style="position:fixed">y</b>';
  const { body } = await preview("About", html);
  expect(body.data.html).toBe('<p>Hi</p><a rel="noreferrer">x</a><b>y</b>');
  const found = body.data.removed.map(({ kind, name, count }) => `${kind} ${name} ${count}`);
  expect(found.toSorted()).toEqual([
    "attribute class 1",
    "attribute onclick 2",
    "tag script 2",
    "value href 1",
    "value style 1",
  ]);
  expect(found.slice(0, 2).toSorted()).toEqual(["attribute onclick 2", "tag script 2"]);
});

test("harmless texts lose nothing: HTML, Markdown, and links whose rel is ours", async () => {
  for (const text of [
    '<h2>Hello</h2><p style="color:#888">a <a href="/docs" rel="nofollow">b</a></p>',
    "# Hello\n\n- one\n- [two](https://weir.example)",
    "",
  ]) {
    expect((await preview("Notice", text)).body.data.removed).toEqual([]);
  }
  expect((await preview("Notice", "# Hello")).body.data.html).toContain("<h1");
});

test("an address is framed where pages frame it, and is text in the footer", async () => {
  const address = "https://weir.example/home";
  expect((await preview("HomePageContent", ` ${address} `)).body.data).toEqual({
    html: "",
    frame_url: address,
    removed: [],
  });
  expect((await preview("Footer", address)).body.data).toEqual({ html: address, frame_url: "", removed: [] });
});

test("what it shows is what the page shows, and nothing is saved", async () => {
  const text = '<p onclick="x()">Weir <em>about</em></p>';
  const { html } = (await preview("About", text)).body.data;
  expect(app.deps.options.get("About")).toBe("");
  expect(operatorContent(text).html).toBe(html);
});

test("thousands of odd names are told as few, and none is longer than people read", async () => {
  const odd = Array.from({ length: 500 }, (_, n) => `<x${n}${"y".repeat(300)}>`).join("");
  const { removed } = (await preview("About", odd)).body.data;
  expect(removed).toHaveLength(50);
  expect(Math.max(...removed.map(({ name }) => name.length))).toBe(64);
});

test("only root asks, and only for texts that pages show", async () => {
  expect((await preview("About", "x", admin)).status).toBe(403);
  expect((await preview("SMTPToken", "x")).body.success).not.toBe(true);
});
