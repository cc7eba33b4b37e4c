// The home page before and after signing in: a call that can be copied, the operator's words made harmless, a next step.
import { expect, test } from "bun:test";
import type { SiteStatus } from "../../src/core/site/status.ts";
import type { LoaderContext, RenderContext } from "../../src/pages/page.ts";
import { homePage, homeSamples } from "../../src/pages/public-pages.tsx";
import { renderPage } from "../../src/pages/render.tsx";

const STATUS = {
  version: "0.1.0",
  system_name: "Acme <AI>",
  logo: "",
  footer_html: "",
  server_address: "https://gate.example/",
  docs_link: "",
  chats: [],
} as unknown as SiteStatus;

interface Site {
  notice?: string;
  content?: string;
  channels?: number;
  role?: number;
}

function home(
  { notice = "", content = "", channels = 1, role }: Site = {},
  status: Partial<SiteStatus> = {},
): string {
  const user =
    role === undefined
      ? undefined
      : { id: 1, username: "ada", display_name: "", role, group: "default", quota: 0 };
  const options: Record<string, string> = { Notice: notice, HomePageContent: content };
  const loading = {
    deps: {
      options: { get: (key: string) => options[key] ?? "" },
      routing: { channels: () => Array.from({ length: channels }, () => ({})) },
    },
    user,
  } as unknown as LoaderContext;
  const context: RenderContext = {
    user,
    status: { ...STATUS, ...status },
    language: "en",
    theme: "system",
    timeZone: "UTC",
    sidebarCollapsed: false,
    url: new URL("http://localhost/"),
    params: {},
    nowMs: 0,
    nonce: "n",
    data: homePage.loader?.(loading),
  };
  return renderPage(homePage, context, { css: "a.css", entries: {} }).html;
}

test("a guest reads the base URL, a first call and the way in, without a script of the page's own", () => {
  const html = home();
  expect(html).toContain("https://gate.example/v1<");
  expect(html).toContain(`href="/login"`);
  expect(html).toContain("Acme &lt;AI&gt;");
  expect(html).not.toContain(`id="boot"`);
  expect(html).not.toContain(`/channel?new=1`);
});

test("every sample calls the server's own address, in at most five lines", () => {
  const samples = homeSamples("https://gate.example");
  expect(samples.map(({ title }) => title)).toEqual(["OpenAI", "Anthropic", "Gemini"]);
  for (const { code } of samples) {
    expect(code).toContain("https://gate.example/v1");
    expect(code.split("\n").length).toBeLessThanOrEqual(5);
  }
});

test("who is signed in goes on to keys and playground; docs are linked when there are any", () => {
  const html = home({ role: 1 }, { docs_link: "https://docs.example/" });
  expect(html).toContain(`href="/token"`);
  expect(html).toContain(`href="/playground"`);
  expect(html).toContain(`href="https://docs.example/"`);
});

test("an administrator without a channel is told, and nobody else", () => {
  expect(home({ role: 10, channels: 0 })).toContain(`href="/channel?new=1"`);
  expect(home({ role: 10, channels: 1 })).not.toContain(`href="/channel?new=1"`);
  expect(home({ role: 1, channels: 0 })).not.toContain(`href="/channel?new=1"`);
});

test("the operator's notice and content are shown without what could run", () => {
  const html = home({
    notice: `<b onclick="x()">Maintenance</b><script>steal()</script>`,
    content: `<h2>Welcome</h2><iframe src="https://x.example"></iframe>`,
  });
  expect(html).toContain("<b>Maintenance</b>");
  expect(html).toContain("<h2>Welcome</h2>");
  expect(html).not.toMatch(/steal|onclick|<iframe/);
});

test("an address as content is framed instead, and as notice becomes a link", () => {
  expect(home({ content: "https://landing.example/" })).toContain(`src="https://landing.example/"`);
  const html = home({ notice: `https://news.example/?a=1&b="2"` });
  expect(html).toContain(`href="https://news.example/?a=1&amp;b=&quot;2&quot;"`);
});
