// The frame of one section of the profile, the list of sections beside it, and the row that saves a form.
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
    <section
      className="rounded-box border border-base-300 bg-base-100 px-5 py-4 scroll-mt-16"
      id={id}
      aria-labelledby={`${id}-heading`}
    >
      <h2 id={`${id}-heading`} className="font-semibold">
        {title}
      </h2>
      {note === undefined ? null : <p className="mt-1 text-sm text-muted">{note}</p>}
      <div className="mt-3">{children}</div>
    </section>
  );
}

/** Links to the sections beside them, where there is room for both. */
export function Sections({ sections }: { sections: readonly { id: string; title: string }[] }) {
  const t = useT();
  return (
    <nav className="hidden xl:block" aria-label={t("personal.sections")}>
      <ul className="sticky top-16 flex flex-col border-l border-base-300">
        {sections.map(({ id, title }) => (
          <li key={id}>
            <a
              className="block px-3 py-1 text-[13px] text-muted hover:text-base-content hover:underline"
              href={`#${id}`}
            >
              {title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

export function SaveRow({
  isBusy,
  isDirty,
  label,
  children,
}: {
  isBusy: boolean;
  isDirty: boolean;
  label?: string;
  children?: ReactNode;
}) {
  const t = useT();
  const isIdle = isBusy || !isDirty;
  return (
    <div className="flex flex-wrap gap-2">
      {/* Not `disabled`: whoever has just saved by it would lose the focus. */}
      <button
        type="submit"
        className={isIdle ? "btn btn-disabled" : "btn btn-primary"}
        aria-disabled={isIdle}
        aria-busy={isBusy}
        onClick={(event) => {
          if (isIdle) event.preventDefault();
        }}
      >
        {label ?? t("common.save")}
      </button>
      {children}
    </div>
  );
}
