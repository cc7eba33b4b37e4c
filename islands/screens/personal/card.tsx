// The frame of one section of the profile, and the row that saves its form.
// Refuses nothing.
import type { ReactNode } from "react";
import { useT } from "../../lib/i18n.ts";

export function Card({
  id,
  title,
  note,
  children,
}: {
  id: string;
  title: string;
  note?: string;
  children: ReactNode;
}) {
  return (
    <section className="panel" id={id} aria-labelledby={`${id}-heading`}>
      <h2 id={`${id}-heading`} className="font-semibold">
        {title}
      </h2>
      {note === undefined ? null : <p className="text-muted text-sm mt-1">{note}</p>}
      <div className="mt-3">{children}</div>
    </section>
  );
}

export function SaveRow({ isBusy, isDirty }: { isBusy: boolean; isDirty: boolean }) {
  const t = useT();
  return (
    <button type="submit" className="btn btn-primary" disabled={isBusy || !isDirty}>
      {t("common.save")}
    </button>
  );
}
