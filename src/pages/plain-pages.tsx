// Pages without an island: about, not found, forbidden, broken. Server-rendered, readable without scripts.
// Refuses raw operator HTML: it is sanitised, addresses are framed in a sandbox.
import { operatorContent } from "../http/operator-content.ts";
import type { OperatorContent } from "../http/operator-content.ts";
import { BrokenView, ContentView, ForbiddenView, NotFoundView } from "../../views/messages.tsx";
import { MaintenanceView } from "../../views/maintenance.tsx";
import { Role } from "../shared/enums.ts";
import { HOME_OF_CONSOLE, NAV, isVisible } from "../shared/navigation.ts";
import type { LoaderContext, Page } from "./page.ts";

export { operatorContent };

/** Frames of operator content may come from anywhere the operator says. */
const FRAMES = { frame: ["https:", "http:"] };

export const aboutPage: Page = {
  path: "/about",
  shell: "public",
  access: "public",
  title: "shell.top.about",
  current: "about",
  csp: FRAMES,
  loader: ({ deps }) => operatorContent(deps.options.get("About")),
  view: ({ t, data, title }) => {
    const { html, frameUrl } = data as OperatorContent;
    return ContentView({ title, html, frameUrl, empty: t("shell.about.empty") });
  },
};

/** What the operator asks people to accept, in their own words. */
export const legalPages: readonly Page[] = (["terms", "privacy"] as const).map((name) => ({
  ...aboutPage,
  path: `/legal/${name}`,
  title: `shell.legal.${name}`,
  loader: ({ deps }) => operatorContent(deps.options.get(`legal.${name}`)),
  view: ({ t, data, title }) => {
    const { html, frameUrl } = data as OperatorContent;
    return ContentView({ title, html, frameUrl, empty: t("shell.legal.empty") });
  },
}));

/** Edits (insert, remove, replace) between two short texts. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

const NEAREST = 3;

/** The closest pages the visitor may open, best first. */
export function nearestPages(
  path: string,
  role: number,
  flags: LoaderContext["status"],
): { href: string; title: string }[] {
  const short = path.slice(0, 40).toLowerCase();
  return [
    ...NAV.flatMap(({ entries }) => entries).filter((entry) => isVisible(entry, role, flags)),
    { href: "/pricing", title: "shell.top.pricing" },
    { href: "/about", title: "shell.top.about" },
    ...(role === Role.guest ? [{ href: "/login", title: "shell.signIn" }] : []),
  ]
    .map(({ href, title }) => ({ href, title, edits: distance(short, href) }))
    .sort((a, b) => a.edits - b.edits)
    .slice(0, NEAREST)
    .map(({ href, title }) => ({ href, title }));
}

export const notFoundPage: Page = {
  path: "/*",
  shell: "either",
  access: "public",
  title: "shell.notFound.title",
  statusCode: 404,
  view: ({ t, context }) =>
    NotFoundView({
      t,
      path: context.url.pathname,
      hasPalette: context.user !== undefined,
      nearest: nearestPages(context.url.pathname, context.user?.role ?? 0, context.status).map(
        ({ href, title }) => ({
          href,
          title: t(title),
        }),
      ),
    }),
};

/** The role that was missing; none at the page's own address, where nobody says what was asked for. */
interface ForbiddenData {
  needs: Page["access"] | undefined;
}

/** Stands at an address of its own, and in place of every page that its visitor may not open, which keeps its address. */
export const forbiddenPage: Page = {
  path: "/forbidden",
  shell: "either",
  access: "public",
  title: "shell.forbidden.title",
  statusCode: 403,
  loader: (): ForbiddenData => ({ needs: undefined }),
  view: ({ t, data, context }) =>
    ForbiddenView({
      t,
      needs: roleName((data as ForbiddenData).needs),
      own: context.user && roleName(ROLE_NAMES.get(context.user.role)),
      home: NAV.flatMap(({ entries }) => entries).find(({ href }) => href === HOME_OF_CONSOLE)?.title ?? "",
    }),
};

/** The forbidden page in place of one that asks for more than its visitor has. */
export function forbiddenInPlaceOf({ access }: Pick<Page, "access">): Page {
  return { ...forbiddenPage, loader: (): ForbiddenData => ({ needs: access }) };
}

const ROLE_NAMES: ReadonlyMap<number, Page["access"]> = new Map([
  [Role.user, "user"],
  [Role.admin, "admin"],
  [Role.root, "root"],
]);

/** Key of the dictionary. */
function roleName(access: Page["access"] | undefined): string | undefined {
  return access === undefined || access === "public" ? undefined : `common.role.${access}`;
}

export const brokenPage: Page = {
  path: "/broken",
  shell: "public",
  access: "public",
  title: "shell.broken.title",
  statusCode: 500,
  view: ({ t, data }) => BrokenView({ t, what: "broken", ...(data as { requestId: string }) }),
};

/** In place of a page whose database is away: nothing is broken, and coming again helps. */
export const awayPage: Page = {
  ...brokenPage,
  path: "/away",
  title: "shell.away.title",
  statusCode: 503,
  view: ({ t, data }) => BrokenView({ t, what: "away", ...(data as { requestId: string }) }),
};

/** Stands for every page of the console while maintenance mode is on, for everybody but root. */
export const maintenancePage: Page = {
  path: "/maintenance",
  shell: "public",
  access: "public",
  title: "shell.maintenance.title",
  statusCode: 503,
  view: ({ t, context }) =>
    MaintenanceView({
      t,
      message: context.status.maintenance_message,
      isSignedIn: context.user !== undefined,
    }),
};
