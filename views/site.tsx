// What the site says of itself in both frames: its mode, its footer, and a greeting on the first day of the year.
import type { FrameProps, FrameSite } from "./frame.ts";

/** Demo or self-use; nothing on a site that sells. */
export function ModeBadge({ t, site }: Pick<FrameProps, "t" | "site">) {
  if (!site.selfUse && !site.demo) return null;
  const mode = t(site.demo ? "shell.mode.demo" : "shell.mode.self");
  return (
    <span
      className="badge badge-ghost badge-sm ml-2 block min-w-0 shrink truncate leading-4 text-muted"
      title={mode}
    >
      {mode}
    </span>
  );
}

/** The operator's own words, or which software this is. */
export function SiteFooter({ t, site, isSlim }: Pick<FrameProps, "t" | "site"> & { isSlim: boolean }) {
  return (
    <footer
      className={`wrap-anywhere text-center text-xs text-muted [&_a]:underline ${isSlim ? "site-foot" : "border-t border-base-300 px-4 py-5"}`}
      data-shell="foot"
    >
      {site.footerHtml ? (
        <div dangerouslySetInnerHTML={{ __html: site.footerHtml }} />
      ) : (
        t("shell.footer", { name: site.name, version: site.version })
      )}
    </footer>
  );
}

/** A year's first day where the visitor is; a popover, so that it needs no script. */
export function NewYear({ t, site }: { t: FrameProps["t"]; site: Pick<FrameSite, "newYear"> }) {
  if (site.newYear === undefined) return null;
  return (
    <>
      <button
        type="button"
        className="btn btn-ghost btn-square btn-sm"
        popoverTarget="new-year"
        aria-label={t("shell.newYear")}
        title={t("shell.newYear")}
      >
        <span aria-hidden>🎉</span>
      </button>
      <div id="new-year" popover="auto" className="pop top-11.5 right-3 px-6 py-5 text-center">
        <p aria-hidden className="animate-bounce text-2xl">
          🎆🎇🎆
        </p>
        <p className="mt-2 font-semibold">{t("shell.newYearText", { year: site.newYear })}</p>
      </div>
    </>
  );
}
