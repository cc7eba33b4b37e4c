// The frame of public pages: home, about, login and their like; no sidebar.
// Refuses links to what the site does not have.
import { Role } from "../src/shared/enums.ts";
import { HOME_OF_CONSOLE } from "../src/shared/navigation.ts";
import { AccountMenu, Brand, LanguageMenu, ThemeMenu } from "./controls.tsx";
import type { FrameProps } from "./frame.ts";
import { MaintenanceBar } from "./maintenance.tsx";
import { ModeBadge, NewYear, SiteFooter } from "./site.tsx";

export interface PublicProps extends FrameProps {
  /** page: a text column; card: centred; full: edge to edge, for embedded frames. */
  width: "page" | "card" | "full";
}

const WIDTHS = {
  // An address that stands for the page fills it.
  page: "max-w-288 px-4 pt-8 pb-12 has-[.framed]:max-w-none has-[.framed]:p-0",
  // The island between would be as narrow as its words.
  card: "grid max-w-288 content-start justify-items-center px-4 pt-[min(12vh,96px)] pb-12 *:grid *:w-full *:justify-items-center",
  full: "flex flex-col",
} as const;

export function PublicFrame(props: PublicProps) {
  const { t, site, visitor, language, theme, current, width, children } = props;
  const links = [
    ["home", "/", t("shell.top.home")],
    ["console", visitor ? HOME_OF_CONSOLE : "/login", t("shell.top.console")],
    ["pricing", "/pricing", t("shell.top.pricing")],
    ["status", site.flags.status_page === "public" ? "/status" : "", t("shell.top.status")],
    ["docs", site.docsLink, t("shell.docs")],
    ["about", "/about", t("shell.top.about")],
  ] as const;
  return (
    <div className="flex min-h-dvh flex-col">
      <a href="#content" className="skip-link" data-shell="skip">
        {t("shell.skip")}
      </a>
      <header
        className="sticky top-0 z-30 flex min-h-14 flex-wrap items-center gap-x-1 border-b border-base-300 bg-base-100 px-[max(16px,calc((100vw-1120px)/2))] max-sm:[&>.brand]:grow [&>.brand]:pr-3 [&>.brand]:pl-0"
        data-shell="head"
      >
        <Brand site={site} href="/" />
        {site.isSetUp ? (
          <nav
            className="mr-auto flex gap-0.5 max-sm:order-last max-sm:-mx-2.5 max-sm:basis-full max-sm:overflow-x-auto"
            aria-label={t("shell.navigation")}
          >
            {links.map(([id, href, title]) =>
              href === "" ? null : (
                <a
                  key={id}
                  href={href}
                  className="inline-flex min-h-8 items-center px-2.5 whitespace-nowrap text-muted hover:text-base-content aria-[current=page]:font-semibold aria-[current=page]:text-base-content max-sm:min-h-11"
                  aria-current={id === current ? "page" : undefined}
                  {...(id === "docs" ? { target: "_blank", rel: "noreferrer" } : {})}
                >
                  {title}
                </a>
              ),
            )}
          </nav>
        ) : (
          <span className="mr-auto" />
        )}
        <ModeBadge t={t} site={site} />
        <NewYear t={t} site={site} />
        <LanguageMenu t={t} language={language} />
        <ThemeMenu t={t} theme={theme} />
        {visitor ? <AccountMenu t={t} visitor={visitor} /> : null}
        {visitor || !site.isSetUp ? null : (
          <span className="flex gap-1 pl-1">
            <a className="btn btn-sm btn-ghost" href="/login">
              {t("shell.signIn")}
            </a>
          </span>
        )}
      </header>
      <main id="content" className={`mx-auto w-full grow ${WIDTHS[width]}`} tabIndex={-1}>
        {site.maintenance === undefined ? null : (
          <MaintenanceBar t={t} {...site.maintenance} isRoot={visitor?.role === Role.root} />
        )}
        {children}
      </main>
      <SiteFooter t={t} site={site} isSlim={width === "full"} />
    </div>
  );
}
