// Server-rendered pages without an island: about, not found, forbidden, broken.
// Refuses to be a dead end: each offers a next step.
import type { Translate } from "./document.tsx";
import { HOME_OF_CONSOLE } from "../src/shared/navigation.ts";

export function NotFoundView({
  t,
  path,
  nearest,
  hasPalette,
}: {
  t: Translate;
  path: string;
  nearest: readonly { href: string; title: string }[];
  /** In the console's frame, where the palette is. */
  hasPalette: boolean;
}) {
  return (
    <section className="prose-page">
      <h1>{t("shell.notFound.title")}</h1>
      <p>
        {t("shell.notFound.text")} <code className="break-all">{path}</code>
      </p>
      {nearest.length > 0 ? (
        <>
          <p>{t("shell.notFound.nearest")}</p>
          <ul>
            {nearest.map(({ href, title }) => (
              <li key={href}>
                <a href={href}>{title}</a>
              </li>
            ))}
          </ul>
        </>
      ) : null}
      <p className="flex flex-wrap items-center gap-3">
        {hasPalette ? <PaletteButton t={t} /> : null}
        <a href="/">{t("shell.top.home")}</a>
      </p>
    </section>
  );
}

/** `needs`, `own`, `home`: keys of the dictionary; without an own role the visitor is a guest. */
export function ForbiddenView({
  t,
  needs,
  own,
  home,
}: {
  t: Translate;
  needs: string | undefined;
  own: string | undefined;
  home: string;
}) {
  return (
    <section className="prose-page">
      <h1>{t("shell.forbidden.title")}</h1>
      <p>
        {needs === undefined ? t("shell.forbidden.any") : t("shell.forbidden.text", { role: t(needs) })}{" "}
        {own === undefined ? t("shell.forbidden.guest") : t("shell.forbidden.own", { role: t(own) })}
      </p>
      <p className="flex flex-wrap items-center gap-3">
        {own === undefined ? (
          <>
            <a href="/login" className="btn btn-primary">
              {t("shell.signIn")}
            </a>
            <a href="/">{t("shell.top.home")}</a>
          </>
        ) : (
          <>
            <PaletteButton t={t} />
            <a href={HOME_OF_CONSOLE}>{t(home)}</a>
          </>
        )}
      </p>
    </section>
  );
}

function PaletteButton({ t }: { t: Translate }) {
  return (
    <button type="button" className="btn btn-default" data-palette="">
      {t("shell.palette")}
      <kbd className="kbd kbd-sm max-sm:hidden">Ctrl K</kbd>
    </button>
  );
}

/** `what`: whose words of the dictionary say what happened. */
export function BrokenView({
  t,
  what,
  requestId,
}: {
  t: Translate;
  what: "broken" | "away";
  requestId: string;
}) {
  return (
    <section className="prose-page">
      <h1>{t(`shell.${what}.title`)}</h1>
      <p>{t(`shell.${what}.text`)}</p>
      <p className="flex items-center gap-2">
        <code id="request-id">{requestId}</code>
        <button type="button" className="btn btn-sm btn-default" data-copy="#request-id">
          {t("common.copy")}
        </button>
      </p>
      <p>
        <a href="">{t("common.retry")}</a>
      </p>
    </section>
  );
}

/** About, home content and the like: HTML of the operator, already sanitised, or a framed address. */
export function ContentView({
  title,
  html,
  frameUrl,
  empty,
}: {
  title: string;
  html: string;
  frameUrl: string;
  empty: string;
}) {
  if (frameUrl !== "") {
    return (
      <iframe
        title={title}
        src={frameUrl}
        className="framed block h-[calc(100dvh-120px)] min-h-96 w-full border-0"
        sandbox="allow-scripts allow-same-origin allow-forms allow-popups"
        referrerPolicy="no-referrer"
      />
    );
  }
  return (
    <article className="prose-page">
      {/* The operator's page stands in place of ours; its own heading is enough. */}
      {html === "" || /<h1[\s>]/i.test(html) ? null : <h1 className="sr-only">{title}</h1>}
      {html === "" ? (
        <>
          <h1>{title}</h1>
          <p className="text-muted">{empty}</p>
        </>
      ) : (
        <div dangerouslySetInnerHTML={{ __html: html }} />
      )}
    </article>
  );
}
