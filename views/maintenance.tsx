// What maintenance mode shows: the page that stands for every page of the console, and the bar on those that stay.
// The operator's words are plain text: lines are kept, markup is not read.
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

/** On public pages the operator's words; in the console only root is left, who is told that nobody else gets in. */
export function MaintenanceBar({ t, message, isRoot }: { t: Translate; message: string; isRoot: boolean }) {
  return (
    <div className="alert alert-soft mb-4" data-tone="warning" data-shell="maintenance">
      <TriangleAlert aria-hidden size={16} />
      <p className="min-w-0 grow whitespace-pre-line wrap-anywhere">
        {isRoot ? t("shell.maintenance.root") : message || t("shell.maintenance.text")}
      </p>
      {isRoot ? (
        <a className="btn btn-sm btn-default" href="/setting?tab=other">
          {t("shell.nav.settings")}
        </a>
      ) : null}
    </div>
  );
}
