// The home page's row: what it shows and to whom. About, not found, forbidden and broken are in plain-pages.tsx.
// Refuses raw operator HTML: notice and content are sanitised, an address is framed.
import { HomeView } from "../../views/home.tsx";
import { ContentView } from "../../views/messages.tsx";
import { Role } from "../shared/enums.ts";
import type { LoaderContext, Page } from "./page.ts";
import { operatorContent } from "./plain-pages.tsx";
import type { OperatorContent } from "./plain-pages.tsx";

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

const SAMPLE_MODEL = "gpt-4o-mini";

/** The same first call in three languages, with the server's own address. */
export function homeSamples(baseUrl: string): { id: string; title: string; code: string }[] {
  return [
    {
      id: "curl",
      title: "curl",
      code: [
        `curl ${baseUrl}/chat/completions \\`,
        `  -H "Authorization: Bearer $API_KEY" \\`,
        `  -H "Content-Type: application/json" \\`,
        `  -d '{"model": "${SAMPLE_MODEL}",`,
        `       "messages": [{"role": "user", "content": "Hello"}]}'`,
      ].join("\n"),
    },
    {
      id: "python",
      title: "Python",
      code: [
        `from openai import OpenAI`,
        `client = OpenAI(base_url="${baseUrl}", api_key="sk-...")`,
        `answer = client.chat.completions.create(model="${SAMPLE_MODEL}",`,
        `    messages=[{"role": "user", "content": "Hello"}])`,
        `print(answer.choices[0].message.content)`,
      ].join("\n"),
    },
    {
      id: "node",
      title: "Node",
      code: [
        `import OpenAI from "openai";`,
        `const client = new OpenAI({ baseURL: "${baseUrl}", apiKey: "sk-..." });`,
        `const answer = await client.chat.completions.create({ model: "${SAMPLE_MODEL}",`,
        `  messages: [{ role: "user", content: "Hello" }] });`,
        `console.log(answer.choices[0].message.content);`,
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
    const { status, user } = context;
    const baseUrl = `${status.server_address.replace(/\/+$/, "")}/v1`;
    return HomeView({
      t,
      siteName: status.system_name || "Weir",
      baseUrl,
      samples: homeSamples(baseUrl),
      isSignedIn: user !== undefined,
      needsChannel,
      docsLink: status.docs_link,
      noticeHtml: noticeHtml(notice),
      contentHtml: content.html,
    });
  },
};
