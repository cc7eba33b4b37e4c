// What an answer's Markdown becomes: elements of what is known, text of everything else, whatever a model writes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { screen, waitFor, within } from "@testing-library/react";
import { createElement } from "react";
import Markdown, { safeAddress } from "../../islands/screens/playground/markdown.tsx";
import { GrowingMarkdown } from "../../islands/screens/playground/markdown-blocks.ts";
import { renderPart, settle } from "./render.tsx";

// Nothing is ever in sight here: without it everything is. Files share one window, so it comes back afterwards.
const observer = Reflect.getOwnPropertyDescriptor(globalThis, "IntersectionObserver");
beforeAll(() => {
  Reflect.deleteProperty(globalThis, "IntersectionObserver");
});
afterAll(() => {
  if (observer) Object.defineProperty(globalThis, "IntersectionObserver", observer);
});

function draw(text: string, language: "en" | "zh" = "en") {
  return renderPart(createElement(Markdown, { text, isGrowing: false }), { language });
}

describe("what models write", () => {
  test("headings, lists, quotations, tables, emphasis and links become what they mean", () => {
    const { container } = draw(
      [
        "# Title",
        "One **bold** and *slanted* and ~~gone~~ `code` &lt;b&gt;",
        "next line",
        "",
        "> said",
        "",
        "3. three",
        "4. four",
        "   - inner",
        "",
        "- [x] done",
        "- [ ] open",
        "",
        "| a | b |",
        "|:--|--:|",
        "| 1 | x<br>y |",
        "",
        "[a page](https://weir.example/x) and https://auto.example",
      ].join("\n"),
    );
    expect(container.querySelector("h2")?.textContent).toBe("Title");
    expect(container.querySelector("strong")?.textContent).toBe("bold");
    expect(container.querySelector("em")?.textContent).toBe("slanted");
    expect(container.querySelector("p")?.textContent).toContain("code <b>");
    expect(container.querySelector("p br")).not.toBeNull();
    expect(container.querySelector("blockquote")?.textContent).toBe("said");
    expect(container.querySelector("ol")?.getAttribute("start")).toBe("3");
    expect(container.querySelector("ol ul li")?.textContent).toBe("inner");
    expect(screen.getByRole("img", { name: "Done" }).parentElement?.textContent).toContain("done");
    expect(screen.getByRole("img", { name: "Not done" })).toBeTruthy();
    const table = within(screen.getByRole("region", { name: "Table" }));
    expect(table.getByRole("columnheader", { name: "b" }).className).toContain("text-right");
    expect(table.getAllByRole("cell").map((cell) => cell.innerHTML)).toEqual(["1", "x<br>y"]);
    const links = screen.getAllByRole("link") as HTMLAnchorElement[];
    expect(links.map((link) => [link.textContent, link.href, link.target, link.rel])).toEqual([
      ["a page", "https://weir.example/x", "_blank", "noopener noreferrer nofollow"],
      ["https://auto.example", "https://auto.example/", "_blank", "noopener noreferrer nofollow"],
    ]);
  });

  test("code has its language, its colours where they are known, and a button that copies it", async () => {
    const { container } = draw(
      "```ts\nconst x = 1; // so\n```\n\n```klingon\nqapla <b>\n```\n\n    indented",
    );
    const blocks = () => [...container.querySelectorAll("pre")];
    await waitFor(() => expect(blocks()[0]?.querySelector(".text-primary")?.textContent).toBe("const"));
    expect(blocks().map((each) => each.textContent)).toEqual(["const x = 1; // so", "qapla <b>", "indented"]);
    expect(blocks()[1]?.querySelector("span")).toBeNull();
    expect(screen.getAllByRole("button", { name: "Copy code" })).toHaveLength(3);
    // Code wider than the answer is scrolled, by keyboard too.
    expect(blocks().every((each) => each.tabIndex === 0)).toBe(true);
  });

  test("formulas are set as MathML, prices in dollars are none, and a wrong formula stays its source", async () => {
    const { container } = draw(
      "It costs $5 and $6, $E = mc^2$ and \\(a_1\\).\n\n$$\n\\frac{1}{2}\n$$\n\n$\\nonsense{$",
    );
    await waitFor(() => expect(container.querySelectorAll("math").length).toBe(3));
    expect(container.querySelector("p")?.textContent).toStartWith("It costs $5 and $6, ");
    expect(container.querySelector('math[display="block"] mfrac')).not.toBeNull();
    expect(container.querySelector("annotation, [style], [href]")).toBeNull();
    expect(container.textContent).toContain("$\\nonsense{$");
  });

  test("references defined at the end are found once the answer is whole", () => {
    const reader = new GrowingMarkdown();
    const text = "See [the page][p].\n\nMore.\n\n[p]: https://weir.example/";
    reader.read(text.slice(0, 30), true);
    reader.read(text, true);
    const [first] = reader.read(text, false);
    expect(JSON.stringify(first?.token)).toContain("https://weir.example/");
  });

  test("the words that the page adds follow its language", () => {
    draw(`|a|\n|-|\n${"|1|\n".repeat(150)}\n\n- [x] a`, "zh");
    expect(screen.getByRole("button", { name: "显示全部 150 行" })).toBeTruthy();
    expect(screen.getByRole("region", { name: "表格" })).toBeTruthy();
    expect(screen.getByRole("img", { name: "已完成" })).toBeTruthy();
  });
});

describe("what models must not do", () => {
  test.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "text <b onclick=alert(1)>x</b> <iframe src=//evil.example></iframe>",
    "<svg><a xlink:href=javascript:alert(1)>x</a></svg>",
    "<style>*{display:none}</style>\n\n<form action=/api/user/logout><input></form>",
    "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
    "- <details open ontoggle=alert(1)>",
    "[<img src=x onerror=alert(1)>](https://weir.example)",
    "![<b>x</b>](https://weir.example/x.png)",
    "```html\n<script>alert(1)</script>\n```",
  ])("%j stays text", async (text) => {
    const { container } = draw(text);
    await settle();
    const made = container.querySelector(
      "script, img, iframe, svg:not([aria-hidden]), style, form, input, b, details, object, [onclick], [onerror], [style]",
    );
    expect(made).toBeNull();
    expect(container.textContent).toContain("<");
  });

  test.each([
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
    "file:///etc/passwd",
    "blob:https://weir.example/1",
    "/api/user/logout",
    "//evil.example/x",
    "?expired=true",
    "#x",
    "",
  ])("%j is no address", (href) => {
    expect(safeAddress(href)).toBeUndefined();
  });

  test("links to such addresses are their text, however they are written", () => {
    const { container } = draw(
      [
        "[one](javascript:alert(1))",
        "[two](<java script:alert(1)>)",
        "[three][r]",
        "<javascript:alert(1)>",
        "[four](&#106;avascript:alert(1))",
        "![five](javascript:alert(1))",
        "[six](/logout)",
        "",
        "[r]: javascript:alert(1)",
      ].join("\n"),
    );
    expect([...container.querySelectorAll("a, img")].map((each) => each.outerHTML)).toEqual([]);
    for (const word of ["one", "three", "four", "five", "six"]) expect(container.textContent).toContain(word);
  });

  test("a picture elsewhere is a link, so that nobody learns that it was looked at; one in the text is shown", () => {
    const { container } = draw(
      "![chart](https://spy.example/p.png?q=secret) ![dot](data:image/png;base64,iVBORw0KGgo=) ![no](data:image/svg+xml;base64,PHN2Zz4=)",
    );
    expect(screen.getByRole("link", { name: "chart" }).getAttribute("href")).toBe(
      "https://spy.example/p.png?q=secret",
    );
    expect([...container.querySelectorAll("img")].map(({ alt }) => alt)).toEqual(["dot"]);
    expect(container.textContent).toContain("no");
  });

  test("a large picture is shown with the words around it; a large one of another kind stays text", () => {
    const bytes = "A".repeat(30_000);
    const { container } = draw(
      `Before **it** ![chart](data:image/png;base64,${bytes}) after ![x](data:image/svg+xml;base64,${bytes})`,
    );
    expect([...container.querySelectorAll("img")].map(({ alt, src }) => [alt, src.length])).toEqual([
      ["chart", bytes.length + 22],
    ]);
    expect(container.querySelector("strong")?.textContent).toBe("it");
    expect(container.textContent).toContain("Before");
    expect(container.textContent).toContain("after");
  });

  test("formulas bring no links, styles or pictures along", async () => {
    const { container } = draw(
      "$\\href{javascript:alert(1)}{x}$ $\\htmlStyle{color:red}{x}$ $\\includegraphics{https://spy.example/x}$ $\\def\\a{\\a\\a}\\a$ $a$",
    );
    await waitFor(() => expect(container.querySelector("math")).not.toBeNull());
    expect(container.querySelector("a, img, mglyph, [href], [style], [src], [class*=enclosing]")).toBeNull();
  });

  test("a table of many rows is drawn in part, and whole when somebody wants it", async () => {
    const island = draw(`| n | text |\n|---|---|\n${"| 1 | x |\n".repeat(1200)}`);
    const rows = () => island.container.querySelectorAll("tbody tr").length;
    expect(rows()).toBe(100);
    await island.user.click(screen.getByRole("button", { name: "Show all 1,200 rows" }));
    expect(rows()).toBe(1200);
  });

  test("absurd nesting and endless lines stay readable text, within a second", () => {
    const hostile = [
      `${"> ".repeat(20_000)}deep`,
      Array.from({ length: 300 }, (_, depth) => `${"  ".repeat(depth)}- x`).join("\n"),
      `${"[".repeat(50_000)}deep`,
      `${"word *x* ".repeat(25_000)}deep`,
      `${"**a*".repeat(4900)}deep`,
      `${"x $$a\n".repeat(3000)}deep`,
      `${"<!--".repeat(4800)}deep`,
    ];
    for (const text of hostile) {
      const startMs = performance.now();
      const island = draw(text);
      expect(island.container.textContent?.length ?? 0).toBeGreaterThan(300);
      expect([text.slice(0, 10), performance.now() - startMs < 3000]).toEqual([text.slice(0, 10), true]);
      island.unmount();
    }
  });
});

describe("an answer that grows", () => {
  const PIECE =
    "## Title\n\nSome *text* with `code` and [a link](https://weir.example/b).\n\n- one\n- two\n\n```ts\nconst x = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n";
  const LONG = PIECE.repeat(Math.ceil(200_000 / PIECE.length));

  test("of 200 KB is read once and not once per piece; its finished blocks stay the same objects", () => {
    const growing = new GrowingMarkdown();
    let before: ReturnType<GrowingMarkdown["read"]> = [];
    let changed = 0;
    let reads = 0;
    for (let end = 0; end < LONG.length; end += 200) {
      const blocks = growing.read(LONG.slice(0, end), true);
      changed += blocks.filter((block, index) => block !== before[index]).length;
      before = blocks;
      reads++;
    }
    // New blocks, and the one that is still open with each read: nothing is made anew.
    expect(changed).toBeLessThan(before.length + 3 * reads);
    const whole = new GrowingMarkdown().read(LONG, false);
    expect(growing.read(LONG, false).map(({ raw, token }) => [raw, token])).toEqual(
      whole.map(({ raw, token }) => [raw, token]),
    );
  });

  test("is the same wherever the network cuts it", () => {
    const text = `Intro\r\n===\r\n\n1. a\n   b\n\n   c\n2. d\n\n> q\nlazy\n\n| x |\n|---|\n| \`|\` |\n\n~~~\nopen\n\n~~~\nend $a$\n\n$$\nb\n$$\ntail`;
    const whole = new GrowingMarkdown().read(text, false).map(({ token }) => token);
    for (let cut = 0; cut <= text.length; cut++) {
      const growing = new GrowingMarkdown();
      growing.read(text.slice(0, cut), true);
      expect({ cut, tokens: growing.read(text, false).map(({ token }) => token) }).toEqual({
        cut,
        tokens: whole,
      });
    }
  });

  test("that is begun anew forgets what it was", () => {
    const growing = new GrowingMarkdown();
    growing.read("one\n\ntwo\n\nthree", true);
    expect(growing.read("other\n\ntext", true).map(({ raw }) => raw.trim())).toEqual(["other", "text"]);
  });

  test("shows code before its fence is closed, without colours until then", async () => {
    const island = renderPart(createElement(Markdown, { text: "```ts\nconst x", isGrowing: true }));
    await settle();
    expect(island.container.querySelector("pre")?.textContent).toBe("const x");
    expect(island.container.querySelector("pre span")).toBeNull();
  });
});
