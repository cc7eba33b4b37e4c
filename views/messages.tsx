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
        {hasPalette ? (
          <button type="button" className="btn btn-default" data-palette="">
            {t("shell.palette")}
            <kbd className="kbd kbd-sm max-sm:hidden">Ctrl K</kbd>
          </button>
        ) : null}
        <a href="/">{t("shell.top.home")}</a>
      </p>
    </section>
  );
}

export function ForbiddenView({ t, role }: { t: Translate; role: "user" | "admin" | "root" }) {
  return (
    <section className="prose-page">
      <h1>{t("shell.forbidden.title")}</h1>
      <p>{t("shell.forbidden.text", { role: t(`common.role.${role}`) })}</p>
      <p>
        <a href={HOME_OF_CONSOLE}>{t("shell.forbidden.back")}</a>
      </p>
    </section>
  );
}

export function BrokenView({ t, requestId }: { t: Translate; requestId: string }) {
  return (
    <section className="prose-page">
      <h1>{t("shell.broken.title")}</h1>
      <p>{t("shell.broken.text")}</p>
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
        className="min-h-[80dvh] w-full grow border-0"
        sandbox="allow-scripts allow-same-origin allow-forms allow-popups"
        referrerPolicy="no-referrer"
      />
    );
  }
  return (
    <article className="prose-page">
      <h1>{title}</h1>
      {html === "" ? (
        <p className="text-muted">{empty}</p>
      ) : (
        <div dangerouslySetInnerHTML={{ __html: html }} />
      )}
    </article>
  );
}
