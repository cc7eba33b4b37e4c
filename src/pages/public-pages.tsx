// The home page's row: what it shows and to whom. About, not found, forbidden and broken are in plain-pages.tsx.
// Refuses raw operator HTML: notice and content are sanitised, an address is framed.
import { HomeView } from "../../views/home.tsx";
import { ContentView } from "../../views/messages.tsx";
import { Role } from "../shared/enums.ts";
import type { LoaderContext, Page } from "./page.ts";
import { operatorContent } from "../http/operator-content.ts";
import type { OperatorContent } from "../http/operator-content.ts";

interface HomeData {
  notice: OperatorContent;
  content: OperatorContent;
  needsChannel: boolean;
}

function loadHome({ deps, user }: LoaderContext): HomeData {
  const isAdmin = (user?.role ?? 0) >= Role.admin;
  return {
    notice: operatorContent(deps.options.get("Notice")),
    content: operatorContent(deps.options.get("HomePageContent")),
    needsChannel: isAdmin && deps.routing.channels()[Symbol.iterator]().next().done === true,
  };
}

/** The same first call in three dialects, with the server's own address (without a slash at its end). */
export function homeSamples(server: string): { id: string; title: string; code: string }[] {
  return [
    {
      id: "openai",
      title: "OpenAI",
      code: [
        `curl ${server}/v1/chat/completions \\`,
        `  -H "Authorization: Bearer $API_KEY" \\`,
        `  -H "Content-Type: application/json" \\`,
        `  -d '{"model": "gpt-4o-mini",`,
        `       "messages": [{"role": "user", "content": "Hello"}]}'`,
      ].join("\n"),
    },
    {
      id: "anthropic",
      title: "Anthropic",
      code: [
        `curl ${server}/v1/messages \\`,
        `  -H "x-api-key: $API_KEY" -H "anthropic-version: 2023-06-01" \\`,
        `  -H "Content-Type: application/json" \\`,
        `  -d '{"model": "claude-3-5-haiku-20241022", "max_tokens": 256,`,
        `       "messages": [{"role": "user", "content": "Hello"}]}'`,
      ].join("\n"),
    },
    {
      id: "gemini",
      title: "Gemini",
      code: [
        `curl ${server}/v1beta/models/gemini-2.0-flash:generateContent \\`,
        `  -H "x-goog-api-key: $API_KEY" \\`,
        `  -H "Content-Type: application/json" \\`,
        `  -d '{"contents": [{"role": "user",`,
        `       "parts": [{"text": "Hello"}]}]}'`,
      ].join("\n"),
    },
  ];
}

/** A notice that is only an address becomes a link: a frame would be too much for a bar. */
function noticeHtml({ html, frameUrl }: OperatorContent): string {
  if (frameUrl === "") return html;
  const address = Bun.escapeHTML(frameUrl);
  return `<a href="${address}" rel="noreferrer">${address}</a>`;
}

export const homePage: Page = {
  path: "/",
  shell: "public",
  access: "public",
  title: "shell.top.home",
  current: "home",
  // The operator's home may be an address anywhere.
  csp: { frame: ["https:", "http:"] },
  loader: loadHome,
  view: ({ t, data, title, context }) => {
    const { notice, content, needsChannel } = data as HomeData;
    if (content.frameUrl !== "")
      return ContentView({ title, html: "", frameUrl: content.frameUrl, empty: "" });
    const { status, user, url } = context;
    // Shown to whoever asked by that name, kept by nobody (no-store), and a link nowhere.
    const server = (status.server_address || url.origin).replace(/\/+$/, "");
    return HomeView({
      t,
      siteName: status.system_name || "Weir",
      baseUrl: `${server}/v1`,
      samples: homeSamples(server),
      isSignedIn: user !== undefined,
      needsChannel,
      docsLink: status.docs_link,
      noticeHtml: noticeHtml(notice),
      contentHtml: content.html,
    });
  },
};
