// The console's frame: skip link, sidebar, top bar, content, and on phones a sheet and a bottom bar.
// Refuses to depend on scripts for getting around: every entry is a link.
import { BookOpen, ChevronRight, Menu, PanelLeft, Search, X } from "lucide-react";
import { NAV } from "../src/shared/navigation.ts";
import { AccountMenu, Brand, LanguageMenu, ThemeMenu } from "./controls.tsx";
import type { FrameProps } from "./frame.ts";
import { Dock, Nav } from "./nav.tsx";

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
          <Brand site={site} href="/" />
          <nav className="nav" aria-label={t("shell.navigation")}>
            <Nav t={t} site={site} visitor={visitor} current={current} />
          </nav>
          <div className="sidebar-foot">
            <button
              type="button"
              className="nav-link w-full"
              data-toggle-sidebar=""
              title={t("shell.collapse")}
            >
              <PanelLeft aria-hidden />
              <span>{t("shell.collapse")}</span>
            </button>
          </div>
        </aside>
        <header className="topbar" data-shell="topbar">
          <button
            type="button"
            className="icon-button phone-only"
            data-dialog="nav-sheet"
            aria-label={t("shell.openMenu")}
          >
            <Menu aria-hidden />
          </button>
          <nav className="crumbs" aria-label={t("shell.breadcrumb")}>
            {group ? (
              <>
                <span className="wide-only">{t(group.title)}</span>
                <ChevronRight aria-hidden className="wide-only size-3.5" />
              </>
            ) : null}
            <b aria-current="page">{title}</b>
          </nav>
          {site.selfUse || site.demo ? (
            <span
              className="badge badge-sm mode-badge"
              title={t(site.demo ? "shell.mode.demo" : "shell.mode.self")}
            >
              {t(site.demo ? "shell.mode.demo" : "shell.mode.self")}
            </span>
          ) : null}
          <span className="grow" />
          <button
            type="button"
            className="palette-button"
            data-palette=""
            aria-label={`${t("shell.paletteHint")} Ctrl K`}
          >
            <Search aria-hidden className="size-4" />
            <span>{t("shell.paletteHint")}</span>
            <kbd className="kbd kbd-sm">Ctrl K</kbd>
          </button>
          {site.docsLink ? (
            <a
              className="icon-button wide-only"
              href={site.docsLink}
              target="_blank"
              rel="noreferrer"
              aria-label={t("shell.docs")}
              title={t("shell.docs")}
            >
              <BookOpen aria-hidden />
            </a>
          ) : null}
          <LanguageMenu t={t} language={language} />
          <ThemeMenu t={t} theme={theme} />
          <AccountMenu t={t} visitor={visitor} />
        </header>
        <main id="content" className="content" tabIndex={-1}>
          {children}
        </main>
      </div>
      <Dock t={t} site={site} visitor={visitor} current={current} />
      <dialog id="nav-sheet" className="sheet-nav" aria-label={t("shell.navigation")} data-shell="sheet">
        <div className="flex items-center justify-between pr-2">
          <Brand site={site} href="/" />
          <button type="button" className="icon-button" data-close-dialog="" aria-label={t("common.close")}>
            <X aria-hidden />
          </button>
        </div>
        <nav className="nav" aria-label={t("shell.navigation")}>
          <Nav t={t} site={site} visitor={visitor} current={current} />
        </nav>
      </dialog>
    </>
  );
}
