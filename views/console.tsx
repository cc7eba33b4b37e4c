// The console's frame: skip link, sidebar, top bar, content, and on phones a sheet and a bottom bar.
// Refuses to depend on scripts for getting around: every entry is a link.
import { BookOpen, ChevronRight, Menu, PanelLeft, Search, X } from "lucide-react";
import { Role } from "../src/shared/enums.ts";
import { NAV } from "../src/shared/navigation.ts";
import { AccountMenu, Brand, LanguageMenu, ThemeMenu } from "./controls.tsx";
import type { FrameProps } from "./frame.ts";
import { InboxBell } from "./inbox-bell.tsx";
import { MaintenanceBar } from "./maintenance.tsx";
import { Dock, Nav, NavDrawings } from "./nav.tsx";
import { ModeBadge, NewYear, SiteFooter } from "./site.tsx";

export function ConsoleFrame(props: FrameProps) {
  const { t, site, language, theme, visitor, current, title, children } = props;
  const group = NAV.find(({ entries }) => entries.some((entry) => entry.id === current));
  return (
    <>
      <a href="#content" className="skip-link" data-shell="skip">
        {t("shell.skip")}
      </a>
      <div className="frame">
        <aside className="sidebar" data-shell="sidebar">
          <NavDrawings site={site} visitor={visitor} />
          <Brand site={site} href="/" />
          <nav className="nav" aria-label={t("shell.navigation")}>
            <Nav t={t} site={site} visitor={visitor} current={current} />
          </nav>
          <ul className="menu border-t border-base-300 p-2 max-xl:hidden">
            <li>
              <button type="button" data-toggle-sidebar="" title={t("shell.collapse")}>
                <PanelLeft aria-hidden />
                <span>{t("shell.collapse")}</span>
              </button>
            </li>
          </ul>
        </aside>
        <header className="topbar" data-shell="topbar">
          <button
            type="button"
            className="btn btn-ghost btn-square btn-sm sm:hidden"
            data-dialog="nav-sheet"
            aria-label={t("shell.openMenu")}
          >
            <Menu aria-hidden />
          </button>
          <nav
            className="flex min-w-0 items-center gap-1.5 text-dense text-muted max-sm:hidden"
            aria-label={t("shell.breadcrumb")}
          >
            {group ? (
              <>
                <span>{t(group.title)}</span>
                <ChevronRight aria-hidden className="size-3.5 flex-none" />
              </>
            ) : null}
            <b className="truncate text-base-content" aria-current="page">
              {title}
            </b>
          </nav>
          <ModeBadge t={t} site={site} />
          <span className="grow" />
          <button
            type="button"
            className="btn btn-sm mr-2 h-8 w-[min(260px,30vw)] justify-start border-base-300 bg-base-200 px-2.5 font-normal text-muted hover:border-field max-sm:mr-0 max-sm:w-10 max-sm:justify-center max-sm:border-transparent max-sm:bg-transparent max-sm:p-0"
            data-palette=""
            aria-label={`${t("shell.paletteHint")} Ctrl K`}
          >
            <Search aria-hidden className="size-4 flex-none" />
            <span className="grow truncate text-left max-sm:hidden">{t("shell.paletteHint")}</span>
            <kbd className="kbd kbd-sm max-sm:hidden">Ctrl K</kbd>
          </button>
          {site.docsLink ? (
            <a
              className="btn btn-ghost btn-square btn-sm max-sm:hidden"
              href={site.docsLink}
              target="_blank"
              rel="noreferrer"
              aria-label={t("shell.docs")}
              title={t("shell.docs")}
            >
              <BookOpen aria-hidden />
            </a>
          ) : null}
          <NewYear t={t} site={site} />
          <InboxBell t={t} language={language} visitor={visitor} />
          <LanguageMenu t={t} language={language} />
          <ThemeMenu t={t} theme={theme} />
          <AccountMenu t={t} visitor={visitor} />
        </header>
        <main id="content" className="content" tabIndex={-1}>
          {site.maintenance === undefined ? null : (
            <MaintenanceBar t={t} {...site.maintenance} isRoot={visitor?.role === Role.root} />
          )}
          {children}
        </main>
        <SiteFooter t={t} site={site} isSlim />
      </div>
      <Dock t={t} site={site} visitor={visitor} current={current} />
      <dialog
        id="nav-sheet"
        className="sheet-nav modal modal-start"
        aria-label={t("shell.navigation")}
        data-shell="sheet"
      >
        <div className="modal-box max-w-[min(288px,86vw)] border-0 bg-base-200">
          <div className="flex items-center justify-between pr-2">
            <Brand site={site} href="/" />
            <button
              type="button"
              className="btn btn-ghost btn-square btn-sm"
              data-close-dialog=""
              aria-label={t("common.close")}
            >
              <X aria-hidden />
            </button>
          </div>
          <nav className="nav" aria-label={t("shell.navigation")}>
            <Nav t={t} site={site} visitor={visitor} current={current} />
          </nav>
        </div>
      </dialog>
    </>
  );
}
