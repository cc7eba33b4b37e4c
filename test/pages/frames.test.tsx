// What both frames say on every page: the site's mode, its footer, the way to the prices, and a greeting on New Year's Day.
// An operator's home and about page stand in place of ours.
import { describe, expect, test } from "bun:test";
import type { SiteStatus } from "../../src/core/site/status.ts";
import type { LoaderContext, Page, RenderContext } from "../../src/pages/page.ts";
import { aboutPage, notFoundPage } from "../../src/pages/plain-pages.tsx";
import { homePage } from "../../src/pages/public-pages.tsx";
import { renderPage } from "../../src/pages/render.tsx";

const STATUS = {
  version: "0.1.0",
  system_name: "Acme",
  logo: "",
  footer_html: "",
  docs_link: "",
  server_address: "",
  chats: [],
  setup: true,
  self_use_mode_enabled: false,
  demo_site_enabled: false,
} as unknown as SiteStatus;

const publicPage: Page = { ...notFoundPage, shell: "public" };

const FRAMES: readonly (readonly [string, Page])[] = [
  ["console", { ...notFoundPage, shell: "console" }],
  ["public", publicPage],
  ["public, centred", { ...publicPage, width: "card" }],
  ["public, full", { ...publicPage, width: "full" }],
];

function render(page: Page, status: Partial<SiteStatus> = {}, context: Partial<RenderContext> = {}): string {
  return renderPage(
    page,
    {
      user: { id: 1, username: "ada", display_name: "", role: 1, group: "default", quota: 0 },
      status: { ...STATUS, ...status },
      language: "en",
      theme: "system",
      timeZone: "UTC",
      sidebarCollapsed: false,
      url: new URL("http://localhost/nowhere"),
      params: {},
      nowMs: Date.UTC(2026, 5, 1),
      nonce: "n",
      data: undefined,
      ...context,
    },
    { css: "a.css", entries: {} },
  ).html;
}

describe.each(FRAMES)("the %s frame", (_name, page) => {
  test("ends in the site's footer: a line of ours, or the operator's words without what could run", () => {
    const plain = render(page);
    expect(plain.match(/<footer/g)).toHaveLength(1);
    expect(plain).toContain("Acme 0.1.0");
    const own = render(page, { footer_html: `<b>Acme Ltd</b><script>steal()</script>` });
    expect(own).toContain("<b>Acme Ltd</b>");
    expect(own).not.toContain("steal");
    expect(own).not.toContain("powered by");
  });

  test("says which mode the site is in, and nothing on one that sells", () => {
    expect(render(page)).not.toMatch(/Demo site|Self-use mode/);
    expect(render(page, { demo_site_enabled: true })).toContain("Demo site");
    expect(render(page, { self_use_mode_enabled: true })).toContain("Self-use mode");
  });

  test("greets on the first day of the year where the visitor is", () => {
    const at = (iso: string, timeZone: string) =>
      render(page, {}, { nowMs: Date.parse(iso), timeZone }).includes("Happy New Year 2027!");
    expect(at("2026-12-31T16:30:00Z", "Asia/Shanghai")).toBe(true);
    expect(at("2026-12-31T16:30:00Z", "UTC")).toBe(false);
    expect(at("2027-01-02T04:30:00Z", "America/New_York")).toBe(true);
    expect(at("2027-01-02T05:30:00Z", "America/New_York")).toBe(false);
  });
});

test("the public frame leads to home, console, prices and about; to the docs where there are any", () => {
  const links = (html: string) =>
    [...(/<nav[^>]*>(.*?)<\/nav>/s.exec(html)?.[1] ?? "").matchAll(/href="([^"]+)"/g)].map(
      ([, href]) => href,
    );
  expect(links(render(publicPage))).toEqual(["/", "/token", "/pricing", "/about"]);
  expect(links(render(publicPage, { docs_link: "https://docs.example/" }, { user: undefined }))).toEqual([
    "/",
    "/login",
    "/pricing",
    "https://docs.example/",
    "/about",
  ]);
  expect(links(render(publicPage, { setup: false }, { user: undefined }))).toEqual([]);
});

function own(page: Page, options: Record<string, string>): string {
  const loading = {
    deps: {
      options: { get: (key: string) => options[key] ?? "" },
      routing: { channels: () => [{}] },
    },
    user: undefined,
  } as unknown as LoaderContext;
  return render(page, {}, { user: undefined, data: page.loader?.(loading) });
}

describe("an operator's own page", () => {
  test("stands in place of the built-in home, below the notice; its heading is the only one", () => {
    const built = own(homePage, {});
    expect(built).toContain("/v1/chat/completions");
    const html = own(homePage, { HomePageContent: "<h1>Acme sells</h1><p>Buy</p>", Notice: "Sale" });
    expect(html).toContain("<h1>Acme sells</h1>");
    expect(html).toContain("Sale");
    expect(html).not.toContain("/v1/chat/completions");
    expect(html.match(/<h1/g)).toHaveLength(1);
    expect(own(homePage, { HomePageContent: "<p>Buy</p>" }).match(/<h1/g)).toHaveLength(1);
  });

  test("stands in place of the built-in about page", () => {
    const none = "has not written anything here";
    expect(own(aboutPage, {})).toContain(none);
    const html = own(aboutPage, { About: "<h1>Who we are</h1>" });
    expect(html).toContain("<h1>Who we are</h1>");
    expect(html).not.toContain(none);
    expect(html.match(/<h1/g)).toHaveLength(1);
    expect(own(aboutPage, { About: "We are *few*." }).match(/<h1/g)).toHaveLength(1);
  });

  test("an address is framed instead, without a way into this site", () => {
    for (const [page, key] of [
      [homePage, "HomePageContent"],
      [aboutPage, "About"],
    ] as const) {
      const html = own(page, { [key]: "https://landing.example/" });
      expect(html).toMatch(/<iframe[^>]*src="https:\/\/landing\.example\/"[^>]*sandbox="/);
    }
  });
});
