// Parts that forms and links of a server-rendered page replace: only what they name, with the address and the focus kept; and
// names chosen over several pages of a list. Whatever goes wrong ends where the browser would have gone by itself.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { startParts } from "../../islands/lib/parts.ts";

interface Request {
  url: string;
  signal: AbortSignal | undefined;
  answer: (body: string, init?: { status?: number; redirected?: boolean }) => Promise<void>;
}

const requests: Request[] = [];
const realFetch = globalThis.fetch;
const realAddress = location.href;
let left: string[] = [];

/** Promises of the code under test that wait for each other. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}

beforeAll(() => {
  startParts();
  globalThis.fetch = ((url: string, init?: RequestInit) =>
    new Promise((resolve, reject) => {
      init?.signal?.addEventListener("abort", () => reject(new DOMException("", "AbortError")));
      requests.push({
        url,
        signal: init?.signal ?? undefined,
        async answer(body, { status = 200, redirected = false } = {}) {
          const html = `<html><head><title>New</title></head><body>${body}</body></html>`;
          const response = new Response(html, { status });
          Object.defineProperty(response, "redirected", { value: redirected });
          resolve(response);
          await settle();
        },
      });
    })) as typeof fetch;
});
afterAll(() => {
  globalThis.fetch = realFetch;
  history.replaceState(null, "", realAddress);
  document.title = "";
});

beforeEach(() => {
  left = [];
  spyOn(location, "assign").mockImplementation((url) => void left.push(String(url)));
  history.replaceState(null, "", "/pricing");
});
afterEach(() => {
  requests.length = 0;
  jest.useRealTimers();
  jest.restoreAllMocks();
  document.body.innerHTML = "";
});

const text = (selector: string) => document.querySelector(selector)?.textContent;
const press = (selector: string, init: MouseEventInit = {}) =>
  document
    .querySelector(selector)
    ?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ...init }));
const last = () => {
  const request = requests.at(-1);
  if (!request) throw new Error("nothing was asked for");
  return request;
};

const PAGE = `
  <form action="/pricing" data-get="list"><input name="keyword"><input name="vendor" value="">
    <select name="group"><option value="a">a</option><option value="b">b</option></select><button>Go</button></form>
  <section data-part="list" tabindex="-1"><p role="status">10 models</p><a id="next" href="/pricing?p=2" data-get="list">2</a></section>
  <aside data-part="other">as it was</aside>`;

describe("links", () => {
  test("replace what their part holds, not the part, and nothing else; the address follows", async () => {
    document.body.innerHTML = PAGE;
    const section = document.querySelector("section");
    press("#next");
    expect(section?.getAttribute("aria-busy")).toBe("true");
    await last().answer(
      `<section data-part="list"><p>page 2</p><script>globalThis.ran = true</script></section><aside data-part="other">new</aside>`,
    );
    expect(document.querySelector("section")).toBe(section as HTMLElement);
    expect(text("section p")).toBe("page 2");
    expect(section?.hasAttribute("aria-busy")).toBe(false);
    expect(text("aside")).toBe("as it was");
    expect([location.pathname + location.search, document.title]).toEqual(["/pricing?p=2", "New"]);
    expect("ran" in globalThis).toBe(false);
  });

  test("give the focus to their successor, else to the part", async () => {
    document.body.innerHTML = PAGE;
    document.querySelector<HTMLElement>("#next")?.focus();
    press("#next");
    await last().answer(
      `<section data-part="list"><a id="next" href="/pricing?p=3" data-get="list">3</a></section>`,
    );
    expect(document.activeElement?.textContent).toBe("3");
    press("#next");
    await last().answer(`<section data-part="list">the end</section>`);
    expect(document.activeElement).toBe(document.querySelector("section"));
  });

  test("opened in a new tab, or without the attribute, are the browser's", () => {
    document.body.innerHTML = `${PAGE}<a id="plain" href="#x">x</a>`;
    for (const modifier of [{ ctrlKey: true }, { metaKey: true }, { shiftKey: true }, { button: 1 }])
      press("#next", modifier);
    press("#plain");
    expect(requests).toEqual([]);
  });
});

describe("forms", () => {
  test("lead to an address without empty fields", async () => {
    document.body.innerHTML = PAGE;
    const field = document.querySelector<HTMLInputElement>("[name=keyword]");
    if (field) field.value = "gpt 4";
    document.querySelector("form")?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
    expect(new URL(last().url).search).toBe("?keyword=gpt+4&group=a");
    await last().answer(`<section data-part="list">found</section>`);
    expect(location.search).toBe("?keyword=gpt+4&group=a");
  });

  const typeIn = (value: string, init: InputEventInit = {}) => {
    const field = document.querySelector<HTMLInputElement>("[name=keyword]");
    if (field) field.value = value;
    field?.dispatchEvent(new InputEvent("input", { bubbles: true, ...init }));
  };

  test("search after a pause in typing, in one entry of the history; an older answer never comes late", async () => {
    document.body.innerHTML = PAGE;
    jest.useFakeTimers();
    const before = history.length;
    typeIn("g");
    typeIn("gp");
    expect(requests).toEqual([]);
    jest.advanceTimersByTime(300);
    expect(requests.map(({ url }) => new URL(url).search)).toEqual(["?keyword=gp&group=a"]);
    const older = last();
    typeIn("gpt");
    jest.advanceTimersByTime(300);
    expect(older.signal?.aborted).toBe(true);
    await last().answer(`<section data-part="list">gpt</section>`);
    await older.answer(`<section data-part="list">gp</section>`);
    expect(text("section")).toBe("gpt");
    typeIn("gpt-4");
    jest.advanceTimersByTime(300);
    await last().answer(`<section data-part="list">gpt-4</section>`);
    expect([location.search, history.length]).toEqual(["?keyword=gpt-4&group=a", before + 1]);
    expect(left).toEqual([]);
  });

  test("wait for the end of a syllable of an input method", () => {
    document.body.innerHTML = PAGE;
    jest.useFakeTimers();
    typeIn("gu", { isComposing: true });
    jest.advanceTimersByTime(1000);
    expect(requests).toEqual([]);
    document
      .querySelector("[name=keyword]")
      ?.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }));
    jest.advanceTimersByTime(300);
    expect(requests).toHaveLength(1);
  });

  test("take a choice at once", () => {
    document.body.innerHTML = PAGE;
    const select = document.querySelector("select");
    if (select) select.value = "b";
    select?.dispatchEvent(new Event("input", { bubbles: true }));
    expect(new URL(last().url).search).toBe("?group=b");
  });
});

describe("what is no such page", () => {
  test.each([
    ["a failure", `<section data-part="list">broken</section>`, { status: 500 }],
    ["another page", `<main>sign in</main>`, {}],
    ["a redirect", `<section data-part="list">elsewhere</section>`, { redirected: true }],
  ])("%s is opened by the browser, and nothing is replaced", async (_name, body, init) => {
    document.body.innerHTML = PAGE;
    press("#next");
    const { url } = last();
    await last().answer(body, init);
    expect(left).toEqual([url]);
    expect(text("section p")).toBe("10 models");
    expect(location.search).toBe("");
  });
});

test("Back shows every part as it was, the form's too", async () => {
  document.body.innerHTML = `<div data-part="form">gpt</div><div data-part="list">found <b data-part="inner">x</b></div>`;
  dispatchEvent(new PopStateEvent("popstate"));
  await last().answer(`<div data-part="form">all</div><div data-part="list">10 models</div>`);
  expect(document.body.textContent).toBe("all10 models");
  expect(left).toEqual([]);
});

describe("chosen names", () => {
  const LIST = `<button data-copy-checked="model" disabled>Copy <b data-checked-count>0</b></button>
    <p data-copied-text hidden></p><input type="checkbox" data-check-all="model">
    <div data-part="rows"><input type="checkbox" name="model" value="a,1"><input type="checkbox" name="model" value="b"></div>
    <a href="/pricing?p=2" data-get="rows">2</a>`;
  const box = (value: string) => document.querySelector<HTMLInputElement>(`[value="${value}"]`);
  const all = () => document.querySelector<HTMLInputElement>("[data-check-all]");
  const button = () => document.querySelector<HTMLButtonElement>("[data-copy-checked]");

  test("are kept over pages, counted, copied in their order; the head says all, some or none", async () => {
    const copied: string[] = [];
    spyOn(navigator.clipboard, "writeText").mockImplementation(async (names) => void copied.push(names));
    document.body.innerHTML = LIST;
    box("b")?.click();
    expect([button()?.disabled, text("[data-checked-count]"), all()?.indeterminate]).toEqual([
      false,
      "1",
      true,
    ]);
    press("a");
    await last().answer(`<div data-part="rows"><input type="checkbox" name="model" value="c"></div>`);
    expect([text("[data-checked-count]"), all()?.checked, all()?.indeterminate]).toEqual(["1", false, false]);
    all()?.click();
    expect([box("c")?.checked, text("[data-checked-count]")]).toEqual([true, "2"]);
    press("a");
    await last().answer(
      `<div data-part="rows"><input type="checkbox" name="model" value="a"><input type="checkbox" name="model" value="b"></div>`,
    );
    expect([box("a")?.checked, box("b")?.checked]).toEqual([false, true]);
    button()?.click();
    await settle();
    expect(copied).toEqual(["b,c"]);
    box("b")?.click();
    expect(text("[data-checked-count]")).toBe("1");
  });

  test("are shown, selected, where the clipboard is closed", async () => {
    spyOn(navigator.clipboard, "writeText").mockRejectedValue(new Error("denied"));
    document.body.innerHTML = LIST.replaceAll("model", "maker");
    box("b")?.click();
    button()?.click();
    await settle();
    const shown = document.querySelector<HTMLElement>("[data-copied-text]");
    expect([shown?.hidden, shown?.textContent]).toEqual([false, "b"]);
  });
});
