// The frame of public pages: home, about, login and their like; no sidebar.
// Refuses links to what the site does not have.
import { HOME_OF_CONSOLE } from "../src/shared/navigation.ts";
import { AccountMenu, Brand, LanguageMenu, ThemeMenu } from "./controls.tsx";
import type { FrameProps } from "./frame.ts";

export interface PublicProps extends FrameProps {
  /** page: a text column; card: centred; full: edge to edge, for embedded frames. */
  width: "page" | "card" | "full";
}

export function PublicFrame(props: PublicProps) {
  const { t, site, visitor, language, theme, current, width, children } = props;
  const links = [
    ["home", "/", t("shell.top.home")],
    ["console", visitor ? HOME_OF_CONSOLE : "/login", t("shell.top.console")],
    ["docs", site.docsLink, t("shell.docs")],
    ["about", "/about", t("shell.top.about")],
  ] as const;
  return (
    <div className="public">
      <a href="#content" className="skip-link" data-shell="skip">
        {t("shell.skip")}
      </a>
      <header className="public-head" data-shell="head">
        <Brand site={site} href="/" />
        {site.isSetUp ? (
          <nav className="public-nav" aria-label={t("shell.navigation")}>
            {links.map(([id, href, title]) =>
              href === "" ? null : (
                <a
                  key={id}
                  href={href}
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
      <main id="content" className="public-main" data-width={width} tabIndex={-1}>
        {children}
      </main>
      {width === "full" ? null : (
        <footer className="public-foot" data-shell="foot">
          {site.footerHtml ? (
            <div dangerouslySetInnerHTML={{ __html: site.footerHtml }} />
          ) : (
            t("shell.footer", { name: site.name, version: site.version })
          )}
        </footer>
      )}
    </div>
  );
}
