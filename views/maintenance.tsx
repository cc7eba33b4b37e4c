// What maintenance mode shows: the page that stands for every page of the console, and the bar on those that stay.
// The operator's words are plain text: lines are kept, markup is not read. Root ends the mode from the bar, once asked again.
import { TriangleAlert } from "lucide-react";
import type { Translate } from "./document.tsx";

export interface MaintenanceViewProps {
  t: Translate;
  /** The operator's words; "" for the built-in sentence. */
  message: string;
  isSignedIn: boolean;
}

export function MaintenanceView({ t, message, isSignedIn }: MaintenanceViewProps) {
  return (
    <section className="prose-page">
      <h1>{t("shell.maintenance.title")}</h1>
      <p className="whitespace-pre-line wrap-anywhere">{message || t("shell.maintenance.text")}</p>
      <p className="flex flex-wrap items-center gap-3">
        <a className="btn btn-default" href="">
          {t("common.retry")}
        </a>
        {isSignedIn ? null : <a href="/login">{t("shell.signIn")}</a>}
      </p>
    </section>
  );
}

export interface MaintenanceBarProps {
  t: Translate;
  message: string;
  /** Nothing leaves the site by itself, as an import leaves it. */
  isQuiet: boolean;
  isRoot: boolean;
}

const DIALOG = "end-maintenance";

/** On public pages the operator's words; in the console only root is left, who is told that nobody else gets in. */
export function MaintenanceBar({ t, message, isQuiet, isRoot }: MaintenanceBarProps) {
  const about = isQuiet ? "quiet" : "root";
  return (
    <div className="alert alert-soft mb-4" data-tone="warning" data-shell="maintenance">
      <TriangleAlert aria-hidden size={16} />
      <div className="min-w-0 grow whitespace-pre-line wrap-anywhere">
        {isRoot ? t(`shell.maintenance.${about}`) : message || t("shell.maintenance.text")}
      </div>
      {isRoot ? (
        <>
          <a className="btn btn-sm btn-default" href="/setting?tab=other">
            {t("shell.nav.settings")}
          </a>
          <button type="button" className="btn btn-sm btn-primary" data-dialog={DIALOG}>
            {t("shell.maintenance.end")}
          </button>
          <EndDialog t={t} isQuiet={isQuiet} />
        </>
      ) : null}
    </div>
  );
}

/** Asks again, and says what begins with it. The frame's script sends what its button names. */
function EndDialog({ t, isQuiet }: Pick<MaintenanceBarProps, "t" | "isQuiet">) {
  return (
    <dialog id={DIALOG} className="modal" aria-labelledby={`${DIALOG}-title`}>
      <div className="modal-box grid gap-3">
        <h2 id={`${DIALOG}-title`}>{t("shell.maintenance.endTitle")}</h2>
        <p>{t(isQuiet ? "shell.maintenance.endQuiet" : "shell.maintenance.endText")}</p>
        <p className="text-error" role="alert" data-said="" />
        <div className="flex flex-wrap justify-end gap-2">
          <button type="button" className="btn btn-default" data-close-dialog="">
            {t("common.cancel")}
          </button>
          <button
            type="button"
            className="btn btn-primary"
            data-send="DELETE /api/maintenance"
            data-failed={t("shell.maintenance.failed")}
          >
            {t("shell.maintenance.end")}
          </button>
        </div>
      </div>
    </dialog>
  );
}
