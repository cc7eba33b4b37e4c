// The playground in a real browser, against the real server and a made-up provider: an answer as it was meant, what it
// cost, asking again, two models, pictures, a failure and its row; then the widths and faces it must hold, and 200 KB.
// The walk with the mouse is the long run's (WEIR_LONG): finger and keyboard are asked for more.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Locator, Page } from "playwright";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { gate, refuse, startFakeUpstream, stream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { extremeFonts, SEEN_AT_LEAST, setFont } from "../support/fonts.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF, walkedNow } from "../support/hands.ts";
import type { Manner } from "../support/hands.ts";
import { startOperator } from "../support/operator.ts";
import type { Operator } from "../support/operator.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";
import { startStretch } from "../support/stretch.ts";

const TEXTS = {
  en: {
    message: "Message",
    send: "Send",
    stop: "Stop",
    stopOne: "Stop this answer",
    table: "Table",
    cost: /^Cost \$/,
    quote: /^About \$0\.0\S+, at most \$0\.\d+$/,
    errorRow: "Entry in the usage log",
    edit: "Edit and resend",
    editing: "Edit the message",
    resend: "Resend",
    regenerate: "Regenerate",
    branch: "Branch from here",
    raw: "Raw events",
    close: "Close",
    settings: "Model settings",
    compare: "Compare two models",
    model: "Model",
  },
  zh: {
    message: "消息",
    send: "发送",
    stop: "停止生成",
    stopOne: "停止这个回答",
    table: "表格",
    cost: /^费用 \$/,
    quote: /^约 \$0\.0\S+，最多 \$0\.\d+$/,
    errorRow: "使用日志中的记录",
    edit: "编辑并重新发送",
    editing: "编辑消息",
    resend: "重新发送",
    regenerate: "重新生成",
    branch: "从此处分支",
    raw: "原始事件",
    close: "关闭",
    settings: "模型设置",
    compare: "对比两个模型",
    model: "模型",
  },
} as const;

const ANSWER = [
  "## Weirs\n\nA **weir** is a low dam.\n\n| Kind | Height |\n|:--|--:|\n| Sharp",
  "-crested | 1.2 m |\n\n```ts\nconst height = 3;\n```\n\nSo $Q = LH^2$. <img src=x onerror=alert(1)>",
];
const USAGE = { prompt_tokens: 1200, completion_tokens: 345, total_tokens: 1545 };
const DOT =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

let upstream: FakeUpstream;
let browser: Browser;

beforeAll(async () => {
  [upstream, browser] = await Promise.all([startFakeUpstream(), launchBrowser()]);
  upstream.always((request) =>
    JSON.stringify((request.json()["messages"] as unknown[]).at(-1)).includes("please fail")
      ? refuse(400, {
          error: { message: "No eyes", type: "invalid_request_error", code: "unsupported_image" },
        })
      : stream(ANSWER, { usage: USAGE }),
  );
});
afterAll(async () => {
  await browser.close();
  upstream.stop();
});

interface LogRow {
  quota: number;
  model_name: string;
  type: number;
}

describe.each(DATABASE_KINDS)("the playground on %s", (kind) => {
  let database: TestDatabase;
  let server: ServerProcess;
  let operator: Operator;

  beforeAll(async () => {
    database = await createTestDatabase(kind);
    server = await startServerProcess({ DATABASE_URL: database.databaseUrl ?? "" });
    operator = await startOperator(server, { base_url: upstream.url, models: "gpt-4o,gpt-4o-mini" });
  });
  afterAll(async () => {
    await server.remove();
    await database.drop();
  });

  async function open(
    language: keyof typeof TEXTS,
    options: Parameters<typeof openVisit>[1],
  ): Promise<Visit> {
    const visit = await openVisit(browser, { locale: LOCALE_OF[language], ...options });
    const { page } = visit;
    const signedIn = await page.request.post("/api/user/login", {
      data: { username: "root", password: "correct horse" },
    });
    expect(signedIn.ok()).toBe(true);
    return visit;
  }

  const CASES: [keyof typeof TEXTS, Manner][] =
    kind === "sqlite"
      ? [
          ["en", "mouse"],
          ["en", "keyboard"],
        ]
      : [
          ["zh", "mouse"],
          ["zh", "finger"],
        ];

  test.each(walkedNow(CASES))("in %s by %s", async (language, manner) => {
    const texts = TEXTS[language];
    const visit = await open(language, { baseURL: server.url, ...CONTEXT_OF[manner] });
    const { page } = visit;
    const { press, fill, walkTo } = await handOf(page, manner);
    await page.goto("/playground");
    await page.locator("[data-mounted]").waitFor({ state: "attached" });
    const field = page.getByRole("textbox", { name: texts.message, exact: true });
    const messages = page.locator("[data-message]");
    const last = messages.last();
    const button = (name: string, at: Locator | Page = page) => at.getByRole("button", { name, exact: true });
    const cost = (at: Locator) => at.getByRole("link", { name: texts.cost });
    const ask = async (text: string) => {
      await fill(field, text);
      await page.keyboard.press("Enter");
    };

    // What it would cost stands there before it is sent.
    await fill(field, "What is a weir?");
    await page.getByText(texts.quote).waitFor();

    // The answer as it was meant; what is HTML in it stays text.
    await page.keyboard.press("Enter");
    await last.getByRole("region", { name: texts.table }).getByText("Sharp-crested").waitFor();
    await last.locator("pre .text-primary", { hasText: "const" }).waitFor();
    await last.locator("math").waitFor();
    await last.getByText("<img src=x onerror=alert(1)>").waitFor();

    // What it cost is what was charged, and the link leads to the row.
    await cost(last).waitFor();
    const [charge] = ((await operator.send("GET", "/api/log/?type=2&page_size=1")) as { items: LogRow[] })
      .items;
    expect(charge?.quota).toBe(194);
    expect(await cost(last).textContent()).toContain("$0.000388");
    await walkTo(cost(last));
    const address = (await cost(last).getAttribute("href")) ?? "";
    await press(cost(last));
    await page.waitForURL("**/log?**");
    await page.getByRole("dialog", { name: "gpt-4o-mini" }).waitFor();
    expect(await page.locator("tbody tr[data-index]").count()).toBe(1);
    expect(page.url()).toEndWith(address);
    await page.goBack();
    await cost(last).waitFor();

    // Asked again in other words: what followed is replaced.
    await press(button(texts.edit, messages.nth(-2)));
    await fill(page.getByRole("textbox", { name: texts.editing }), "please fail");
    await press(button(texts.resend));
    await last.locator("[role=alert] code").waitFor();
    expect(await last.textContent()).toContain("No eyes");
    const errorRow = last.getByRole("link", { name: texts.errorRow });
    await press(errorRow);
    await page.waitForURL("**/log?**");
    await page.getByRole("dialog", { name: "gpt-4o-mini" }).getByText("No eyes").first().waitFor();
    await page.goBack();
    await errorRow.waitFor();

    // A picture, seen before it is sent and with the question afterwards.
    await page.locator("input[type=file]").setInputFiles({
      name: "dot.png",
      mimeType: "image/png",
      buffer: Buffer.from(DOT, "base64"),
    });
    await page.locator("form li img").waitFor();
    await ask("and this?");
    await cost(last).waitFor();
    expect(await messages.nth(-2).locator("img").count()).toBe(1);
    const sent = upstream.requests.at(-1)?.json()["messages"] as { content: unknown }[];
    expect(sent.at(-1)?.content).toEqual([
      { type: "text", text: "and this?" },
      { type: "image_url", image_url: { url: `data:image/png;base64,${DOT}` } },
    ]);

    // The events of the stream.
    await press(button(texts.raw, last));
    const drawer = page.getByRole("dialog", { name: texts.raw });
    await drawer.getByText("[DONE]").waitFor();
    await press(button(texts.close, drawer));
    await drawer.waitFor({ state: "detached" });

    // Another model beside it, each with its own cost; then one of the two goes on alone.
    if (manner === "finger") await press(button(texts.settings));
    await press(page.getByRole("switch", { name: texts.compare }).locator("visible=true"));
    if (manner === "finger") {
      await press(button(texts.close, page.getByRole("dialog")));
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await ask("Both, please");
    await cost(last).waitFor();
    await cost(messages.nth(-2)).waitFor();
    expect(await cost(last).textContent()).toContain("$0.00645");
    expect(await cost(messages.nth(-2)).textContent()).toContain("$0.000388");
    await press(button(texts.branch, last));
    await messages.nth(-2).getByText("Both, please").waitFor();
    expect(await last.textContent()).toContain("gpt-4o");
    expect(await last.textContent()).not.toContain("gpt-4o-mini");

    expect(await isAsWideAsTheScreen(page)).toBe(true);
    // The refused call is expected to be answered with a refusal.
    expect(visit.problems.filter((each) => !each.includes("/pg/chat/completions"))).toEqual([]);
    await visit.close();
  });
});

describe("the playground under strain", () => {
  const LONG_NAME = `vendor/${"a-model-with-a-very-long-name-".repeat(3)}latest`;
  const WIDE = [
    `| ${"A wide column of a table | ".repeat(12)}\n| ${"--- | ".repeat(12)}\n| ${"some words in a cell | ".repeat(12)}\n\n`,
    `\`\`\`\n${"one long line of code ".repeat(40)}\n\`\`\`\n\n${"Donaudampfschifffahrtsgesellschaft".repeat(12)}\n\n`,
    `https://weir.example/${"path/".repeat(60)}\n\n$$\n${"a + b + ".repeat(60)}c\n$$\n\n- ${"x".repeat(300)}`,
  ];
  let server: ServerProcess;

  beforeAll(async () => {
    server = await startServerProcess();
    const { send } = await startOperator(server, {
      base_url: upstream.url,
      models: `gpt-4o,gpt-4o-mini,${LONG_NAME}`,
    });
    await send("PUT", "/api/option/", { key: "SelfUseModeEnabled", value: "true" });
  });
  afterAll(() => server.remove());

  async function open(options: Omit<Parameters<typeof openVisit>[1], "baseURL">): Promise<Visit> {
    const visit = await openVisit(browser, { baseURL: server.url, ...options });
    await visit.page.request.post("/api/user/login", {
      data: { username: "root", password: "correct horse" },
    });
    return visit;
  }

  async function start(page: Page): Promise<Locator> {
    await page.goto("/playground");
    await page.locator("[data-mounted]").waitFor({ state: "attached" });
    return page.getByRole("textbox", { name: "Message", exact: true });
  }

  /** What of the conversation or the composer reaches beyond the window. */
  const beyond = (page: Page) =>
    page.evaluate(() => {
      const inside = (element: Element) => {
        const { left, right } = element.getBoundingClientRect();
        return left >= -0.5 && right <= innerWidth + 0.5;
      };
      // What is scrolled sideways in its own box may be wider: the box itself must not.
      const isScrolled = (element: Element) =>
        element.parentElement?.closest("pre, [role=region] [role=region], .overflow-x-auto") !== null;
      return [...document.querySelectorAll("main *")]
        .filter(
          (each) =>
            each.checkVisibility() && !each.matches(".toast, .sr-only") && !inside(each) && !isScrolled(each),
        )
        .map((each) => each.outerHTML.slice(0, 120));
    });

  // Under WEIR_LONG at every width.
  test.each(SEEN_AT_LEAST)(
    "at $width × $height px in the $font face nothing lies beyond the edge, answers side by side included",
    async ({ width, height, font: face }) => {
      upstream.always(() => stream(WIDE, { usage: USAGE }));
      const visit = await open({ viewport: { width, height } });
      const { page } = visit;
      await page.addInitScript(
        ([models]) => {
          const settings = { model: models[0], other: models[1], group: "default", isStream: true };
          const conversation = {
            id: "c",
            messages: [{ id: "m", role: "user", content: "x", createAt: 1, status: "complete" }],
            clearedAt: "",
          };
          if (localStorage.getItem("playground 1") === null)
            localStorage.setItem(
              "playground 1",
              JSON.stringify({ settings, conversations: [conversation], current: "c" }),
            );
        },
        [[LONG_NAME, "gpt-4o"]] as const,
      );
      const field = await start(page);
      await setFont(page, (await extremeFonts(page))[face]);
      await field.fill("Show me everything that is wide");
      await field.press("Enter");
      await page.getByRole("link", { name: /^Cost/ }).nth(1).waitFor();
      await page.locator("math").nth(1).waitFor();
      expect(await beyond(page)).toEqual([]);
      expect(await isAsWideAsTheScreen(page)).toBe(true);
      expect(await violationsOf(page)).toEqual([]);
      const [left, right] = await Promise.all(
        [-2, -1].map((at) => page.locator("[data-message]").nth(at).boundingBox()),
      );
      // Beside each other where there is room, one below the other on a phone.
      expect((right?.x ?? 0) > (left?.x ?? 0)).toBe(width >= 768);
      // The row of figures and actions of each answer is reached without scrolling sideways.
      for (const name of ["Regenerate", "Raw events", "Delete message"])
        expect(await page.getByRole("button", { name }).last().isVisible()).toBe(true);
      expect(visit.problems).toEqual([]);
      await visit.close();
    },
  );

  test("an answer of 200 KB leaves the page alive while it comes, and is there in full", async () => {
    const piece =
      "## Title\n\nSome *text* with `code` and [a link](https://weir.example/b).\n\n- one\n- two\n\n```ts\nconst x = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n";
    const long = `${piece.repeat(Math.ceil(200_000 / piece.length))}The very end.`;
    const pieces = long.match(/[\s\S]{1,100}/g) ?? [];
    const half = gate();
    const middle = Math.floor(pieces.length / 2);
    upstream.always(() =>
      stream([...pieces.slice(0, middle), half, ...pieces.slice(middle)], { usage: USAGE }),
    );
    const visit = await open({ viewport: { width: 1440, height: 900 } });
    const { page } = visit;
    const field = await start(page);
    await field.fill("Tell me everything");
    await field.press("Enter");
    await page.locator("[data-message] pre").first().waitFor();
    await page.evaluate(() => {
      const seen = { longestMs: 0 };
      new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) seen.longestMs = Math.max(seen.longestMs, duration);
      }).observe({ type: "longtask" });
      Object.assign(window, { seen });
    });
    const stretch = startStretch();
    // Half of it is there: what is written meanwhile appears at once.
    await field.pressSequentially("the next question");
    half.open();
    await field.pressSequentially(", and more of it");
    expect(await field.inputValue()).toBe("the next question, and more of it");
    // Seldom asked: looking for a text among thousands of elements would be the longest task itself.
    await page.waitForFunction(
      () => /Cost\s\$/.test([...document.querySelectorAll("[data-message]")].at(-1)?.textContent ?? ""),
      undefined,
      { polling: 1000 },
    );
    const { longestMs } = await page.evaluate(
      () => (window as unknown as { seen: { longestMs: number } }).seen,
    );
    // The page waits for a processor about as the test itself does, whose own work is little.
    expect(longestMs / (1 + stretch())).toBeLessThan(1000);
    await page.waitForFunction(
      (count) => document.querySelectorAll("[data-message] pre").length === count,
      Math.ceil(200_000 / piece.length),
      { polling: 500 },
    );
    expect(await page.getByText("The very end.").isVisible()).toBe(true);
    // Kept in the browser, it is drawn again when the page is opened anew.
    await page.reload();
    await page.getByText("The very end.").waitFor();
    expect(visit.problems).toEqual([]);
    await visit.close();
  });

  test("Stop ends the call; Escape does the same", async () => {
    for (const stop of ["button", "Escape"] as const) {
      const more = gate();
      upstream.always(() => stream(["The beginning", more, " and the end"], { usage: USAGE }));
      const visit = await open({ viewport: { width: 1280, height: 800 } });
      const { page } = visit;
      const field = await start(page);
      await field.fill("Go on for ever");
      await field.press("Enter");
      await page.getByText("The beginning").waitFor();
      if (stop === "button") await page.getByRole("button", { name: "Stop", exact: true }).click();
      else await page.keyboard.press("Escape");
      await page.getByText("Stopped", { exact: true }).waitFor();
      more.open();
      // What the upstream was asked is settled all the same, and the cost follows.
      await page.getByRole("link", { name: /^Cost/ }).waitFor();
      expect(await page.getByText("and the end").count()).toBe(0);
      await visit.close();
    }
  });
});
