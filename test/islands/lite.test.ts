// What server-rendered HTML does by its attributes: the frame's buttons and menus, and parts replaced from a fresh render.
import { afterAll, afterEach, beforeAll, expect, spyOn, test } from "bun:test";
import { replaceParts } from "../../islands/lib/fresh-parts.ts";
import { LANGUAGE_EVENT, PALETTE_EVENT } from "../../islands/lib/shell.ts";
import { untilSo } from "../support/turns.ts";

const requests: string[] = [];
let reply: () => Response = () => new Response("");
const realFetch = globalThis.fetch;

beforeAll(async () => {
  globalThis.fetch = (async (input: string) => {
    requests.push(String(input));
    return reply();
  }) as typeof fetch;
  // The script itself: importing it starts it, as on a page.
  await import("../../islands/lite.ts");
});

afterAll(() => {
  globalThis.fetch = realFetch;
  localStorage.clear();
  document.title = "";
  document.documentElement.removeAttribute("lang");
});

afterEach(() => {
  requests.length = 0;
  document.body.innerHTML = "";
  for (const name of ["theme", "sidebar"]) delete document.documentElement.dataset[name];
});

function answerWith(body: string, status = 200): void {
  const html = `<html lang="en"><head><title>New</title></head><body>${body}</body></html>`;
  reply = () => new Response(html, { status, headers: { "content-type": "text/html" } });
}

function press(selector: string): void {
  document.querySelector<HTMLElement>(selector)?.click();
}

test("parts are replaced by name from a fresh render; what it lacks stays, its scripts never run", async () => {
  document.body.innerHTML = `<header data-shell="head">old</header><main id="island">kept</main><footer data-shell="foot">old foot</footer>`;
  answerWith(`<header data-shell="head">new<script>globalThis.ran = true</script></header>`);
  const next = await replaceParts();
  expect(requests).toEqual([location.href]);
  expect(document.querySelector("header")?.textContent).toStartWith("new");
  expect(document.querySelector("main")?.textContent).toBe("kept");
  expect(document.querySelector("footer")?.textContent).toBe("old foot");
  expect([document.title, document.documentElement.lang]).toEqual(["New", "en"]);
  expect(next.querySelector("[data-shell=head]")).toBeNull();
  expect("ran" in globalThis).toBe(false);
});

test("a failed render replaces nothing and is reported", async () => {
  document.body.innerHTML = `<header data-shell="head">old</header>`;
  answerWith(`<header data-shell="head">broken</header>`, 500);
  expect(await replaceParts().catch((error: Error) => error.message)).toBe("500");
  expect(document.body.textContent).toBe("old");
});

test("choosing a language replaces the frame and hands islands their new texts", async () => {
  document.body.innerHTML = `<button data-set-language="en">English</button><nav data-shell="dock">旧</nav>`;
  answerWith(
    `<nav data-shell="dock">new</nav><script id="boot" type="application/json">{"language":"en"}</script>`,
  );
  const event = new Promise<Event>((resolve) =>
    document.addEventListener(LANGUAGE_EVENT, resolve, { once: true }),
  );
  press("button");
  expect(((await event) as CustomEvent<{ language: string }>).detail.language).toBe("en");
  expect(document.querySelector("nav")?.textContent).toBe("new");
});

test("a theme is in force at once, and marked as chosen", () => {
  document.body.innerHTML = `<button data-set-theme="dark" aria-checked="false"></button><button data-set-theme="system" aria-checked="true"></button>`;
  press("[data-set-theme=dark]");
  expect(document.documentElement.dataset.theme).toBe("ink");
  expect(document.querySelector("[data-set-theme=dark]")?.getAttribute("aria-checked")).toBe("true");
  press("[data-set-theme=system]");
  expect(document.documentElement.dataset.theme).toBeUndefined();
});

test("the sidebar folds and says so; the palette is called for", () => {
  document.body.innerHTML = `<button data-toggle-sidebar></button><button data-palette></button>`;
  press("[data-toggle-sidebar]");
  expect(document.documentElement.dataset.sidebar).toBe("collapsed");
  expect(document.querySelector("[data-toggle-sidebar]")?.getAttribute("aria-expanded")).toBe("false");
  let calls = 0;
  document.addEventListener(PALETTE_EVENT, () => calls++, { once: true });
  press("[data-palette]");
  expect(calls).toBe(1);
});

test("arrow keys walk through a menu of the frame, round its ends", () => {
  document.body.innerHTML = `<ul data-menu="" role="menu"><li><button id="a"></button></li><li><button id="b"></button></li></ul>`;
  const walk = (key: string) =>
    document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  document.querySelector<HTMLElement>("#a")?.focus();
  walk("ArrowUp");
  expect(document.activeElement?.id).toBe("b");
  walk("ArrowDown");
  expect(document.activeElement?.id).toBe("a");
});

test("a copy button takes the text that it names", async () => {
  const write = spyOn(navigator.clipboard, "writeText").mockResolvedValue();
  document.body.innerHTML = `<code id="url">https://example.org/v1</code><button data-copy="#url"></button>`;
  press("button");
  await Promise.resolve();
  expect(write.mock.calls).toEqual([["https://example.org/v1"]]);
  expect(document.querySelector("button")?.dataset.copied).toBe("");
  write.mockRestore();
});

test("a button that sends says in its dialog what was refused, and can be pressed again", async () => {
  document.body.innerHTML = `<dialog><p data-said></p><button data-send="DELETE /api/maintenance" data-failed="Failed">End</button></dialog>`;
  const said = () => document.querySelector("[data-said]")?.textContent;
  const button = document.querySelector<HTMLButtonElement>("button");
  for (const [answer, expected] of [
    [Response.json({ success: false, message: "Not you" }, { status: 403 }), "Not you"],
    [new Response("<html>", { status: 502 }), "Failed"],
  ] as const) {
    reply = () => answer;
    press("button");
    await untilSo(() => said() === expected);
    expect(button?.disabled).toBe(false);
  }
  expect(requests).toEqual(["/api/maintenance", "/api/maintenance"]);
});
