// A finished page: language, theme and first rows are in the HTML, boot data cannot break out, nothing runs inline.
import { describe, expect, test } from "bun:test";
import { bootData } from "../../islands/lib/boot.ts";
import type { Boot } from "../../islands/lib/boot.ts";
import { useT } from "../../islands/lib/i18n.ts";
import type { SiteStatus } from "../../src/core/site/status.ts";
import type { Manifest } from "../../src/http/assets.ts";
import type { Page, RenderContext } from "../../src/pages/page.ts";
import { nearestPages, notFoundPage, operatorContent } from "../../src/pages/plain-pages.tsx";
import { renderPage, scriptJson } from "../../src/pages/render.tsx";
import { pageResponse } from "../../src/pages/respond.ts";
import { sanitise } from "../../src/http/sanitise.ts";

const STATUS = {
  version: "0.1.0",
  system_name: "Acme",
  logo: "",
  footer_html: "",
  docs_link: "",
  quota_per_unit: 500_000,
  display_in_currency: true,
  enable_data_export: true,
  enable_drawing: false,
  enable_task: true,
  demo_site_enabled: false,
  self_use_mode_enabled: false,
  chats: [{ "Chat one": "https://example.com" }],
} as unknown as SiteStatus;

const MANIFEST: Manifest = {
  css: "app-1.css",
  entries: {
    mount: { file: "mount-1.js", imports: ["chunk-1.js"] },
    lite: { file: "lite-1.js", imports: [] },
    rows: { file: "rows-1.js", imports: ["chunk-1.js", "chunk-2.js"] },
  },
};

function Rows() {
  const t = useT();
  return (
    <p>
      {t("common.save")}: {bootData<string[]>().join()}
    </p>
  );
}

const PAGE: Page = {
  path: "/rows",
  shell: "console",
  access: "user",
  title: "shell.nav.tokens",
  current: "tokens",
  screen: { name: "rows", component: Rows },
};

function context(part: Partial<RenderContext> = {}): RenderContext {
  return {
    user: { id: 1, username: "ada", display_name: "Ada <b>", role: 1, group: "default", quota: 1_000_000 },
    status: STATUS,
    language: "en",
    theme: "system",
    timeZone: "UTC",
    sidebarCollapsed: false,
    url: new URL("http://localhost/rows?p=2"),
    params: {},
    nowMs: 0,
    nonce: "n0nce",
    data: ["one", "two"],
    ...part,
  };
}

const html = (page: Page = PAGE, part: Partial<RenderContext> = {}) =>
  renderPage(page, context(part), MANIFEST).html;
const bootOf = (text: string) =>
  JSON.parse(/<script id="boot"[^>]*>([\s\S]*?)<\/script>/.exec(text)?.[1] ?? "null") as Boot;

describe("the document", () => {
  test("has the first rows, the language and the theme in it", () => {
    const zh = html(PAGE, { language: "zh", theme: "dark" });
    expect(zh).toContain('<html lang="zh-CN" data-theme="ink"');
    expect(zh).toContain("<p>保存<!-- -->: <!-- -->one,two</p>");
    const en = html();
    expect(en).toContain('<html lang="en"');
    expect(en).toContain("Save");
    expect(en).toContain("<title>API keys · Acme</title>");
  });

  test("loads the screen's chunks at once and every script from here", () => {
    const text = html();
    for (const file of ["rows-1.js", "chunk-1.js", "chunk-2.js"]) {
      expect(text.split(`<link rel="modulepreload" href="/a/${file}"/>`).length).toBe(2);
    }
    const scripts = [...text.matchAll(/<script[^>]*>/g)].map(([tag]) => tag);
    expect(scripts.every((tag) => tag.includes('nonce="n0nce"'))).toBe(true);
    expect(bootOf(text)).toMatchObject({
      screen: "rows",
      chunk: "/a/rows-1.js",
      url: "/rows?p=2",
      data: ["one", "two"],
    });
  });

  test("sends a policy without inline scripts and is never cached", () => {
    const { headers } = renderPage(PAGE, context(), MANIFEST);
    expect(headers["content-security-policy"]).toContain("script-src 'self' 'nonce-n0nce';");
    expect(headers["content-security-policy"]).not.toContain("script-src 'self' 'unsafe-inline'");
    expect(headers["cache-control"]).toBe("no-store");
  });

  test("marks the current entry and hides what role and flags hide", () => {
    const text = html();
    expect(text).toMatch(/<a href="\/token"[^>]*aria-current="page"/);
    expect(text).not.toContain('href="/channel"');
    expect(text).not.toContain('href="/midjourney"');
    expect(text).toContain('href="/chat/0"');
    expect(html(PAGE, { user: { ...context().user!, role: 100 } })).toContain('href="/channel"');
  });

  test("carries only texts of its own language", () => {
    const { texts } = bootOf(html(PAGE, { language: "zh" }));
    expect(texts["common.save"]).toBe("保存");
    expect(Object.keys(texts).some((key) => key.startsWith("failure."))).toBe(false);
  });

  test("one render leaves nothing behind for the next", () => {
    html(PAGE, { language: "zh", data: ["secret of another"] });
    const text = html(PAGE, { user: undefined, data: [] });
    expect(text).not.toContain("secret of another");
    expect(text).not.toContain("保存");
  });
});

describe("boot data", () => {
  test("cannot end its script, open a comment or break a line", () => {
    const evil = "</script><script>alert(1)</script><!-- \u2028\u2029 &";
    const json = scriptJson({ evil });
    expect(json).not.toMatch(/[<>&\u2028\u2029]/);
    expect(JSON.parse(json)).toEqual({ evil });
    expect(bootOf(html(PAGE, { data: [evil] })).data).toEqual([evil]);
  });

  test("names of people are escaped in the frame", () => {
    expect(html()).toContain("Ada &lt;b&gt;");
    expect(html()).not.toContain("Ada <b>");
  });
});

describe("operator content", () => {
  test.each([
    ['<p onclick="x()">a</p>', "<p>a</p>"],
    ["<script>alert(1)</script>b", "b"],
    ['<a href="java\tscript:alert(1)">x</a>', '<a rel="noreferrer">x</a>'],
    ['<a href=" JAVASCRIPT:alert(1)">x</a>', '<a rel="noreferrer">x</a>'],
    ['<img src="data:text/html,x" alt="y">', '<img alt="y" />'],
    ['<b style="background:url(//x)">z</b>', "<b>z</b>"],
    ["<iframe src=x></iframe><svg><script>1</script></svg>c", "c"],
    ["<!-- <b> -->d", "d"],
    ["<custom-tag>kept text</custom-tag>", "kept text"],
  ])("%s becomes %s", (dirty, clean) => {
    expect(sanitise(dirty)).toBe(clean);
  });

  test("a form goes with its fields, and classes are the console's own", () => {
    expect(sanitise('<form onsubmit="x"><p class="btn">a</p></form><p class="btn">b</p>')).toBe("<p>b</p>");
  });

  test("an address is framed, Markdown is rendered, HTML is cleaned", () => {
    expect(operatorContent(" https://example.com/x ")).toEqual({
      html: "",
      frameUrl: "https://example.com/x",
    });
    expect(operatorContent("# Hi\n\n<script>1</script>").html).toContain("<h1");
    expect(operatorContent("# Hi\n\n<script>1</script>").html).not.toContain("script");
    expect(operatorContent("")).toEqual({ html: "", frameUrl: "" });
  });
});

describe("plain pages", () => {
  test("not found is a 404 with the closest pages and no boot data", () => {
    const { html: text, statusCode } = renderPage(
      notFoundPage,
      context({ user: undefined, url: new URL("http://localhost/tokens") }),
      MANIFEST,
    );
    expect(statusCode).toBe(404);
    expect(text).toContain("/tokens");
    expect(text).not.toContain('id="boot"');
    expect(nearestPages("/tokens", 1, STATUS)[0]?.href).toBe("/token");
    expect(nearestPages("/channels", 1, STATUS).map(({ href }) => href)).not.toContain("/channel");
  });
});

test("a page of the console without a screen runs one small script, which knows how to bring the palette", () => {
  const text = html(notFoundPage, { data: undefined });
  const scripts = [...text.matchAll(/<(?:script|link)[^>]*\.js"[^>]*>/g)].map(([tag]) => tag);
  expect(scripts).toEqual([expect.stringContaining("/a/lite-1.js")]);
  expect(text).toContain('<div id="island" data-late="/a/mount-1.js"></div>');
  expect(bootOf(text)).toMatchObject({ screen: "", chunk: "", user: { username: "ada" }, language: "en" });
  expect(bootOf(text).texts["common.save"]).toBe("Save");
});

describe("the answer", () => {
  const rendered = { html: "x".repeat(5000), headers: { vary: "Cookie" }, statusCode: 200 };
  const ask = (encoding: string, { isSignedIn = false, site = "none" } = {}) =>
    pageResponse(
      rendered,
      new Request("http://localhost/", { headers: { "accept-encoding": encoding, "sec-fetch-site": site } }),
      isSignedIn,
    );

  test("is compressed as the client can take it, and says that it depends on that", async () => {
    const zstd = ask("gzip, br, zstd");
    expect(zstd.headers.get("content-encoding")).toBe("zstd");
    expect(new TextDecoder().decode(Bun.zstdDecompressSync(await zstd.bytes()))).toBe(rendered.html);
    const gzip = ask("gzip");
    expect(gzip.headers.get("content-encoding")).toBe("gzip");
    expect(new TextDecoder().decode(Bun.gunzipSync(await gzip.bytes()))).toBe(rendered.html);
    expect(gzip.headers.get("vary")).toBe("Cookie, Accept-Encoding");
    expect(await ask("").text()).toBe(rendered.html);
    expect(ask("zstd;q=0, gzip").headers.get("content-encoding")).toBe("gzip");
  });

  test("is compressed for whoever comes from another site, unless it holds what is theirs alone", () => {
    const encodings = [
      { site: "cross-site" },
      { site: "cross-site", isSignedIn: true },
      { site: "same-origin", isSignedIn: true },
    ].map((visit) => ask("gzip", visit).headers.get("content-encoding"));
    expect(encodings).toEqual(["gzip", null, "gzip"]);
  });
});
