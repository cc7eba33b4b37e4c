// What server-rendered HTML can do by attributes alone: swap, submit, confirm, abort, redirect.
import { afterAll, afterEach, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { send, startLite } from "../../islands/lite.ts";

interface Call {
  url: string;
  init: RequestInit;
}

const calls: Call[] = [];
let reply: (call: Call) => Response | Promise<Response> = () => new Response("<p>new</p>");
const realFetch = globalThis.fetch;

beforeAll(() => {
  globalThis.fetch = (async (input: string, init: RequestInit = {}) => {
    const call = {
      url: new URL(input, "http://localhost").pathname + new URL(input, "http://localhost").search,
      init,
    };
    calls.push(call);
    return await reply(call);
  }) as typeof fetch;
  startLite();
});

afterAll(() => {
  globalThis.fetch = realFetch;
});

afterEach(() => {
  calls.length = 0;
  reply = () => new Response("<p>new</p>");
});

function page(html: string): HTMLElement {
  document.body.innerHTML = html;
  return document.body.firstElementChild as HTMLElement;
}

/** Resolves with the elements that were added. */
function swapped(): Promise<unknown> {
  return new Promise((resolve) => document.addEventListener("lite:swapped", resolve, { once: true }));
}

describe("swapping", () => {
  test("a click fetches and replaces the content of the target; scripts in the answer are dropped", async () => {
    reply = () => new Response("<p>fresh</p><script>window.hacked = 1</script>");
    const button = page('<button data-get="/part" data-target="#box">Go</button>');
    document.body.insertAdjacentHTML("beforeend", '<div id="box">old</div>');
    const done = swapped();
    button.click();
    await done;
    expect(document.getElementById("box")?.innerHTML).toBe("<p>fresh</p>");
    expect(calls.map(({ url }) => url)).toEqual(["/part"]);
    expect(button.hasAttribute("aria-busy")).toBe(false);
  });

  test.each([
    ["outer", "<p>new</p>"],
    ["append", '<div id="box"><i>old</i><p>new</p></div>'],
    ["prepend", '<div id="box"><p>new</p><i>old</i></div>'],
    ["none", '<div id="box"><i>old</i></div>'],
  ])("%s puts the answer where it says", async (how, expected) => {
    const box = page('<div id="box"><i>old</i></div>');
    box.setAttribute("data-get", "/part");
    box.setAttribute("data-swap", how);
    await send(box);
    expect(document.body.innerHTML.replaceAll(/ data-[a-z]+="[^"]*"/g, "")).toBe(expected);
  });

  test("closest reaches the row that holds the button", async () => {
    page(
      '<table><tbody><tr class="row"><td><button data-post="/gone" data-target="closest .row" data-swap="outer">x</button></td></tr></tbody></table>',
    );
    const button = document.querySelector("button") as HTMLButtonElement;
    reply = () => new Response("");
    const done = swapped();
    button.click();
    await done;
    expect(document.querySelector("tr")).toBeNull();
    expect(calls[0]?.init.method).toBe("POST");
  });
});

describe("forms", () => {
  test("a form sends its fields and the button that was pressed", async () => {
    const form = page(
      '<form data-lite action="/search" method="get"><input name="q" value="a b"><button name="do" value="find">Find</button></form>',
    ) as HTMLFormElement;
    const done = swapped();
    form.querySelector("button")?.click();
    await done;
    expect(calls[0]?.url).toBe("/search?q=a+b&do=find");
  });

  test("a posted form sends a body", async () => {
    const form = page('<form data-post="/save"><input name="name" value="x"></form>') as HTMLFormElement;
    await send(form);
    expect(Array.from((calls[0] as Call).init.body as FormData)).toEqual([["name", "x"]]);
  });
});

describe("care", () => {
  test("a refused question sends nothing", async () => {
    const asking = spyOn(window, "confirm").mockReturnValue(false);
    const button = page('<button data-post="/wipe" data-confirm="Really?">x</button>');
    await send(button);
    expect(asking).toHaveBeenCalledWith("Really?");
    asking.mockRestore();
    expect(calls).toEqual([]);
  });

  test("a newer question aborts the older one, whose answer is never shown", async () => {
    const input = page('<input name="q" data-get="/find" data-target="#box">') as HTMLInputElement;
    document.body.insertAdjacentHTML("beforeend", '<div id="box"></div>');
    const slow = Promise.withResolvers<Response>();
    reply = ({ url }) => (url.endsWith("q=old") ? slow.promise : new Response("new"));
    input.value = "old";
    const first = send(input);
    input.value = "new";
    await send(input);
    slow.resolve(new Response("old"));
    await first;
    expect(document.getElementById("box")?.textContent).toBe("new");
    expect(calls[0]?.init.signal?.aborted).toBe(true);
  });

  test("foreign origins are never asked", async () => {
    await send(page('<button data-get="https://example.com/x">x</button>'));
    expect(calls).toEqual([]);
  });

  test("a failed answer changes nothing and is told", async () => {
    reply = () => new Response("broken", { status: 500 });
    const box = page('<div data-get="/part">old</div>');
    let told = 0;
    box.addEventListener("lite:failed", () => told++);
    await send(box);
    expect(box.innerHTML).toBe("old");
    expect(told).toBe(1);
  });

  test("elements that load by themselves also do so when they arrive in an answer", async () => {
    const box = page('<div data-get="/outer">old</div>');
    reply = ({ url }) =>
      new Response(url === "/outer" ? '<span data-get="/inner" data-on="load"></span>' : "inner");
    const inner = new Promise<void>((resolve) => {
      document.addEventListener("lite:swapped", (event) => {
        if (event.target !== box) resolve();
      });
    });
    await send(box);
    await inner;
    expect(box.textContent).toBe("inner");
  });
});
