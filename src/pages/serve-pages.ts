// Registers every row of the page table as a route: who asks, in which language and theme, then loader and render.
// Refuses guests (to /login and back), roles that are too low, and everything but /setup before the setup.
import { Elysia, NotFoundError } from "elysia";
import type { BootUser, ThemeMode } from "../../islands/lib/boot.ts";
import type { Deps, UserAccount } from "../core/deps.ts";
import type { OptionStore } from "../core/options/store.ts";
import { databaseFailure } from "../core/kit/database-failure.ts";
import { isQuiet } from "../core/options/quiet.ts";
import { setupState } from "../core/site/setup.ts";
import { siteStatus, statusFromMemory } from "../core/site/status.ts";
import type { SiteStatus } from "../core/site/status.ts";
import type { Manifest } from "../http/assets.ts";
import { traceIdOf } from "../http/failures.ts";
import { refuseBadHost } from "../http/host.ts";
import { languageOf } from "../http/messages.ts";
import { newRequestId } from "../http/request-id.ts";
import {
  mustEnrol,
  checkedBy,
  cookieOf,
  SESSION_COOKIE,
  sessionTokens,
  signedInBy,
} from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure } from "../shared/failures.ts";
import { Role, UserStatus } from "../shared/enums.ts";
import { HOME_OF_CONSOLE } from "../shared/navigation.ts";
import { isTimeZone } from "../shared/local-time.ts";
import type { Moved, Page, RenderContext } from "./page.ts";
import {
  awayPage,
  brokenPage,
  forbiddenInPlaceOf,
  forbiddenPage,
  maintenancePage,
  moved,
  notFoundPage,
  pages,
} from "./pages.ts";
import { renderPage } from "./render.tsx";
import { pageResponse } from "./respond.ts";

const ACCESS_ROLE = { public: Role.guest, user: Role.user, admin: Role.admin, root: Role.root } as const;

function themeOf(request: Request): ThemeMode {
  const theme = cookieOf(request, "theme-mode");
  return theme === "light" || theme === "dark" ? theme : "system";
}

/** The browser's zone after the first visit; a name that Intl does not know counts as none. */
function timeZoneOf(request: Request): string {
  const zone = cookieOf(request, "tz");
  return isTimeZone(zone) ? zone : "UTC";
}

function bootUser(user: UserAccount): BootUser {
  return {
    id: user.id,
    username: user.username,
    display_name: user.displayName,
    role: user.role,
    group: user.group,
    quota: user.quota - user.reserved,
  };
}

function redirect(location: string): Response {
  return new Response(null, { status: 302, headers: { location, "cache-control": "no-store" } });
}

/** Who comes; `unread`: why that could not be read. What is thrown before a route is answered as calls are, and this is a page. */
type Arrival = { visitor: UserAccount | undefined; unread?: unknown };

/** By which session a request came. */
const sessionIds = new WeakMap<Request, string>();

/** Renders pages, the broken ones too. */
function createResponder(deps: Deps, manifest: Manifest) {
  async function respond(
    asked: Page,
    request: Request,
    user: UserAccount | undefined,
    params: Record<string, string>,
    known?: SiteStatus,
  ): Promise<Response> {
    const url = new URL(request.url);
    const language = languageOf(request, deps.options);
    const status = known ?? (await siteStatus(deps));
    const isOff = asked.flag !== undefined && !status[asked.flag];
    const page: Page = isOff ? { ...notFoundPage, shell: "console" } : asked;
    const pageSize = Number(cookieOf(request, "page-size"));
    const timeZone = timeZoneOf(request);
    const remembered = (name: string) => cookieOf(request, name);
    const sessionId = sessionIds.get(request);
    const context = { deps, user, sessionId, language, status, url, params, pageSize, timeZone, remembered };
    const render: RenderContext = {
      user: user && bootUser(user),
      inbox: user && user.role >= Role.admin ? deps.inbox.summary() : undefined,
      status,
      isQuiet: isQuiet(deps.options),
      language,
      theme: themeOf(request),
      timeZone,
      sidebarCollapsed: collapsed(request, status.default_collapse_sidebar),
      url,
      params,
      nowMs: deps.clock.nowMs(),
      nonce: crypto.randomUUID(),
    };
    try {
      render.data = await page.loader?.(context);
      return pageResponse(renderPage(page, render, manifest), request, user !== undefined);
    } catch (error) {
      if (isMissing(error)) return respond({ ...notFoundPage, shell: "console" }, request, user, params);
      const requestId = newRequestId();
      const found = { request_id: requestId, trace_id: traceIdOf(request), path: url.pathname };
      deps.logger.error("page failed", { ...found, error: String((error as Error).stack ?? error) });
      const inPlace = databaseFailure(error) ? awayPage : brokenPage;
      const broken = renderPage(inPlace, { ...render, data: { requestId } }, manifest);
      return pageResponse(broken, request, user !== undefined);
    }
  }

  /** The page, or the one that says that the database is away; to a guest, where not even the visitor could be read. */
  async function answer(
    request: Request,
    { visitor, unread }: Arrival,
    page: () => Promise<Response>,
  ): Promise<Response> {
    try {
      if (unread !== undefined) throw unread;
      return await page();
    } catch (error) {
      if (!databaseFailure(error)) throw error;
      const away: Page = { ...awayPage, loader: () => Promise.reject(error) };
      return respond(away, request, visitor, {}, statusFromMemory(deps));
    }
  }

  return { respond, answer };
}

export function createPages(deps: Deps, session: SessionSettings, manifest: Manifest) {
  const { respond, answer } = createResponder(deps, manifest);

  /** `to`: where the page is really shown; sent there is only who may see it. */
  async function open(
    page: Page,
    request: Request,
    user: UserAccount | undefined,
    params: Record<string, string>,
    to?: Moved["to"],
  ): Promise<Response> {
    const refused = refuseBadHost({ request });
    if (refused) return refused;
    const { pathname, search } = new URL(request.url);
    const { done } = await setupState(deps);
    if (!done && pathname !== "/setup") return redirect("/setup");
    // Whoever has just finished the wizard is signed in, and goes on where the next steps are listed.
    if (done && pathname === "/setup") return redirect(user ? homeOf(deps.options) : "/");
    if (page.access !== "public") {
      if (!user) return redirect(`/login?next=${encodeURIComponent(pathname + search)}`);
      if (deps.maintenance.isOn && user.role < Role.root)
        return respond(maintenancePage, request, user, params);
      if (mustEnrol(deps.options, user) && pathname !== "/personal")
        return redirect("/personal?tab=security");
      if (user.role < ACCESS_ROLE[page.access])
        return respond(forbiddenInPlaceOf(page), request, user, params);
    }
    if (to) return redirect(to(params));
    return respond(page, request, user, params);
  }

  const routes = new Elysia({ name: "pages" })
    .use(sessionTokens(session.secret))
    .derive(async ({ request, sessionJwt }): Promise<Arrival> => {
      const raw = cookieOf(request, SESSION_COOKIE);
      const claims = raw !== "" ? await sessionJwt.verify(raw) : undefined;
      try {
        const signedIn = await signedInBy(claims, session);
        if (!signedIn || signedIn.user.status !== UserStatus.enabled) return { visitor: undefined };
        session.sessions.seen(signedIn.session, session.visitors.addressOf(request));
        sessionIds.set(request, signedIn.session.id);
        return { visitor: signedIn.user };
      } catch (error) {
        return { visitor: undefined, unread: error };
      }
    });
  for (const page of pages) {
    routes.get(
      page.path,
      // A path without placeholders has no params at all.
      ({ request, params, visitor, unread }) =>
        answer(request, { visitor, unread }, () =>
          open(page, request, visitor, (params ?? {}) as Record<string, string>),
        ),
      checkedBy("page table"),
    );
  }

  for (const { path, access, to } of moved) {
    routes.get(
      path,
      ({ request, params, visitor, unread }) =>
        answer(request, { visitor, unread }, () =>
          open({ ...forbiddenPage, access }, request, visitor, params as Record<string, string>, to),
        ),
      checkedBy("page table"),
    );
  }

  // Whatever no other route knows: an API path answers like an API (app.ts says how), anything else with a page.
  routes.get(
    "/*",
    async ({ request, visitor, unread }) => {
      const refused = refuseBadHost({ request });
      if (refused) return refused;
      if (isApiPath(new URL(request.url).pathname)) throw new NotFoundError();
      return answer(request, { visitor, unread }, async () => {
        const { done } = await setupState(deps);
        if (!done) return redirect("/setup");
        return respond(notFoundPage, request, visitor, {});
      });
    },
    checkedBy("page table"),
  );
  return routes;
}

/** Paths below these belong to programs, not to people. */
const API_PREFIXES = [
  "/v1",
  "/v1beta",
  "/upload",
  "/api",
  "/assets",
  "/a",
  "/pg",
  "/mj",
  "/suno",
  "/dashboard",
];

/** Whoever is signed in lands on the dashboard, or where there is none among the keys. */
function homeOf(options: Pick<OptionStore, "get">): string {
  return options.get("DataExportEnabled") ? "/detail" : HOME_OF_CONSOLE;
}

/** What the address names is not there, or is none of the visitor's business. */
const isMissing = (error: unknown): boolean => error instanceof Failure && error.kind === "client";

function isApiPath(pathname: string): boolean {
  return API_PREFIXES.some((prefix) => pathname === prefix || pathname.startsWith(`${prefix}/`));
}

function collapsed(request: Request, siteDefault: boolean): boolean {
  const cookie = cookieOf(request, "default_collapse_sidebar");
  return cookie === "" ? siteDefault : cookie === "true";
}
