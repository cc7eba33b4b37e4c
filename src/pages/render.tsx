// Turns a row of the page table and its data into the finished page: frame, island's first state, boot data.
// Refuses unescaped boot data: the JSON cannot end its script, whatever it holds.
import type { ReactNode } from "react";
import { renderToStaticMarkup, renderToString } from "react-dom/server";
import { installBoot } from "../../islands/lib/boot.ts";
import { formatDate, formatQuota } from "../../islands/lib/format.ts";
import { setLanguage } from "../../islands/lib/i18n.ts";
import { IslandRoot } from "../../islands/ui/root.tsx";
import { ConsoleFrame } from "../../views/console.tsx";
import { Document } from "../../views/document.tsx";
import type { FrameSite, FrameVisitor } from "../../views/frame.ts";
import { PublicFrame } from "../../views/public.tsx";
import type { Manifest } from "../http/assets.ts";
import { contentSecurityPolicy } from "./csp.ts";
import type { Boot, Page, RenderContext } from "./page.ts";
import { sanitise } from "../http/sanitise.ts";
import { textsOf, translator } from "./texts.ts";

const UNSAFE_IN_SCRIPT: Record<string, string> = {
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
};

/** JSON that is harmless inside a script element: no tag, entity or line separator survives. */
export function scriptJson(value: unknown): string {
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (char) => UNSAFE_IN_SCRIPT[char] ?? "");
}

const THEME_NAMES = { light: "paper", dark: "ink", system: undefined } as const;

/** The year on its first day where the visitor is. */
function newYearOf({ nowMs, timeZone }: RenderContext): string | undefined {
  const [year, month, day] = formatDate(nowMs, timeZone).split("-");
  return month === "01" && day === "01" ? year : undefined;
}

function frameSite(context: RenderContext): FrameSite {
  const { status } = context;
  return {
    name: status.system_name || "Weir",
    logo: status.logo,
    footerHtml: status.footer_html ? sanitise(status.footer_html) : "",
    docsLink: status.docs_link,
    version: status.version,
    isSetUp: status.setup,
    selfUse: status.self_use_mode_enabled,
    demo: status.demo_site_enabled,
    maintenance: status.maintenance_enabled
      ? { message: status.maintenance_message, isQuiet: context.isQuiet === true }
      : undefined,
    newYear: newYearOf(context),
    flags: status,
    chats: Array.isArray(status.chats)
      ? status.chats.flatMap((each: unknown) =>
          each && typeof each === "object" ? Object.keys(each).slice(0, 1) : [],
        )
      : [],
  };
}

const keySets = new WeakMap<readonly string[], ReadonlySet<string>>();

function keysOf(entry: { keys?: string[] } | undefined): ReadonlySet<string> | undefined {
  if (!entry?.keys) return undefined;
  const known = keySets.get(entry.keys) ?? new Set(entry.keys);
  keySets.set(entry.keys, known);
  return known;
}

/** What the script names, and what the screen makes up out of its data; every text of the areas where nobody knows. */
function keysFor(page: Page, entry: { keys?: string[] } | undefined, data: unknown) {
  const named = keysOf(entry);
  return named && page.textKeys ? new Set([...named, ...page.textKeys(data as never)]) : named;
}

export interface Rendered {
  html: string;
  headers: Record<string, string>;
  statusCode: number;
}

/** Synchronous from start to end: the islands' shared signals belong to this one render. */
export function renderPage(page: Page, context: RenderContext, manifest: Manifest): Rendered {
  const t = translator(context.language);
  const site = frameSite(context);
  // The page says it itself.
  if (page.statusCode === 503) site.maintenance = undefined;
  const entry = page.screen ? manifest.entries[page.screen.name] : undefined;
  const mount = manifest.entries.mount;
  const lite = manifest.entries.lite;
  const hasIsland = page.screen !== undefined;
  // The palette belongs to the console's frame. Without a screen it comes with the first use (lib/late-island.ts).
  const isConsole = page.shell === "console" || (page.shell === "either" && context.user !== undefined);
  const isLate = !hasIsland && isConsole && mount !== undefined;
  const hasBoot = hasIsland || isLate;
  const boot: Boot = {
    screen: page.screen?.name ?? "",
    chunk: entry ? `/a/${entry.file}` : "",
    url: context.url.pathname + context.url.search,
    params: context.params,
    status: context.status,
    user: context.user ?? null,
    language: context.language,
    theme: context.theme,
    timeZone: context.timeZone,
    nowMs: context.nowMs,
    texts: hasBoot ? textsOf(context.language, page.areas, keysFor(page, entry ?? mount, context.data)) : {},
    allTexts: hasBoot && manifest.texts ? `/a/${manifest.texts[context.language]}` : "",
    // A view has read its data already, all that its loader got: rows may hold what no browser is meant to see.
    data: hasIsland ? (context.data ?? null) : null,
  };
  setLanguage(context.language);
  installBoot(boot);

  const title = page.titleOf?.(context.data) ?? t(page.title);
  const island = hasIsland ? renderToString(<IslandRoot screen={page.screen?.component} />) : "";
  const visitor: FrameVisitor | undefined = context.user && {
    username: context.user.username,
    displayName: context.user.display_name,
    role: context.user.role,
    balance: formatQuota(context.user.quota),
    inbox: context.inbox,
  };
  const content: ReactNode = (
    <>
      {page.view ? (
        <div data-shell="view">{page.view({ t, data: context.data as never, title, context })}</div>
      ) : null}
      {hasIsland ? (
        <div id="island" data-screen={boot.screen} dangerouslySetInnerHTML={{ __html: island }} />
      ) : null}
      {isLate ? <div id="island" data-late={`/a/${mount.file}`} /> : null}
    </>
  );
  const frame = {
    t,
    site,
    visitor,
    language: context.language,
    theme: context.theme,
    current: page.current ?? "",
    title,
  };
  const running = [lite, hasIsland ? mount : undefined].filter((each) => each !== undefined);
  const preloads = new Set([
    ...running.flatMap(({ imports }) => imports),
    ...(entry ? [entry.file, ...entry.imports] : []),
  ]);
  const html = renderToStaticMarkup(
    <Document
      title={`${title} · ${site.name}`}
      description={t("shell.description", { name: site.name })}
      language={context.language}
      themeName={THEME_NAMES[context.theme]}
      sidebarCollapsed={context.sidebarCollapsed}
      stylesheet={`/a/${manifest.css}`}
      scripts={running.map(({ file }) => `/a/${file}`)}
      preloads={[...preloads].map((file) => `/a/${file}`)}
      icon={site.logo || "/favicon.svg"}
      nonce={context.nonce}
      bootJson={hasBoot ? scriptJson(boot) : undefined}
      isPrivate={page.access !== "public"}
    >
      {isConsole ? (
        <ConsoleFrame {...frame}>{content}</ConsoleFrame>
      ) : (
        <PublicFrame {...frame} width={page.width ?? "page"}>
          {content}
        </PublicFrame>
      )}
    </Document>,
  );
  return {
    html: `<!doctype html>${html}`,
    statusCode: page.statusCode ?? 200,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy": contentSecurityPolicy(context.nonce, page.csp),
      "x-content-type-options": "nosniff",
      "referrer-policy": "same-origin",
      vary: "Cookie, Accept-Language",
    },
  };
}
