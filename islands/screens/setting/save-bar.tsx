// What was typed and is not saved, in one bar over the foot of the window: how much, a look at it, away with it, save.
// Refuses to let a page with such changes be left without a question.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useState } from "react";
import { useT } from "../../lib/i18n.ts";
import { useShortcut } from "../../lib/keys.ts";
import { lazyPart } from "../../lib/lazy-part.tsx";
import type { PricePlanProps } from "./price-plan.tsx";
import type { ReviewProps } from "./review.tsx";
import type { Settings } from "./state.ts";

const PricePlanDrawer = lazyPart<PricePlanProps>(() => import("./price-plan.tsx"));
const Review = lazyPart<ReviewProps>(() => import("./review.tsx"));

export function SaveBar({ settings }: { settings: Settings }) {
  useSignals();
  const t = useT();
  const [isReviewing, setReviewing] = useState(false);
  const count = settings.drafts.value.size;
  const failed = [...settings.drafts.value.keys()].filter((key) => settings.failures.value.has(key)).length;
  const isBusy = settings.isSaving.value;
  const planned = settings.pricePlan.value;
  useShortcut({
    keys: "mod+Enter",
    label: "setting.save",
    everywhere: true,
    run: () => void settings.save(),
  });
  useEffect(() => {
    if (count === 0) return undefined;
    const onUnload = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", onUnload);
    return () => window.removeEventListener("beforeunload", onUnload);
  }, [count === 0]);

  return (
    <>
      {/* Always there, so that the first change is announced as well. */}
      <p className="sr-only" role="status">
        {count === 0 ? "" : t("setting.changes", { count })}
      </p>
      {count === 0 ? null : (
        <section className="setting-bar" aria-label={t("setting.bar")}>
          <span className={failed > 0 ? "mr-2 font-medium max-sm:hidden" : "mr-2 font-medium"} aria-hidden>
            {t("setting.changes", { count })}
          </span>
          {failed > 0 ? (
            <span className="mr-2 text-error">{t("setting.refused", { count: failed })}</span>
          ) : null}
          <button type="button" className="btn btn-ghost btn-sm" onClick={() => setReviewing(true)}>
            {t("setting.review")}
          </button>
          <button type="button" className="btn btn-ghost btn-sm" disabled={isBusy} onClick={settings.discard}>
            {t("setting.discard")}
          </button>
          <button
            type="button"
            className="btn btn-primary btn-sm"
            aria-busy={isBusy}
            disabled={isBusy}
            aria-keyshortcuts="Control+Enter"
            onClick={() => void settings.save()}
          >
            {isBusy ? <span className="loading loading-xs" aria-hidden /> : null}
            {t("common.save")}
          </button>
        </section>
      )}
      {isReviewing && count > 0 ? <Review settings={settings} onClose={() => setReviewing(false)} /> : null}
      {planned ? <PricePlanDrawer settings={settings} planned={planned} /> : null}
    </>
  );
}
