// Where the wizard stands, and its end: the page reloads after a moment, the next step is a link at once.
// Refuses to jump ahead: only steps behind can be opened from the list.
import { Check } from "lucide-react";
import { useEffect, useRef } from "react";
import { useT } from "../../lib/i18n.ts";

/** The specification's pause between success and the reload. */
const RELOAD_MS = 1500;

export function StepList({
  names,
  at,
  onOpen,
}: {
  names: readonly string[];
  at: number;
  onOpen: (step: number) => void;
}) {
  const t = useT();
  return (
    <ol className="my-5 flex gap-2" aria-label={t("setup.steps")}>
      {names.map((name, index) => (
        <li
          key={name}
          aria-current={index === at ? "step" : undefined}
          className={`flex-1 border-t-2 pt-1.5 text-[13px] ${index <= at ? "border-primary" : "border-base-300"} ${index === at ? "font-semibold" : "text-muted"}`}
        >
          {index < at ? (
            <button
              type="button"
              className="inline-flex min-h-6 cursor-pointer items-center gap-1 text-left hover:underline"
              onClick={() => onOpen(index)}
            >
              <Check aria-hidden size={14} className="flex-none text-success" />
              {t(`setup.step.${name}`)}
            </button>
          ) : (
            <span className="inline-flex min-h-6 items-center">{t(`setup.step.${name}`)}</span>
          )}
        </li>
      ))}
    </ol>
  );
}

export function DoneView() {
  const t = useT();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus();
    const timer = setTimeout(() => location.reload(), RELOAD_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <section className="mx-auto w-full max-w-[640px]" role="status">
      <h1 ref={heading} tabIndex={-1} className="flex items-center gap-2 outline-none">
        <Check aria-hidden size={20} className="flex-none text-success" />
        {t("setup.done")}
      </h1>
      <p className="mt-2 text-muted">{t("setup.doneText")}</p>
      <div className="mt-5 flex flex-wrap gap-2">
        <a className="btn btn-primary" href="/detail">
          {t("setup.doneSteps")}
        </a>
        <a className="btn btn-default" href="/channel?new=1">
          {t("setup.doneAction")}
        </a>
      </div>
    </section>
  );
}
