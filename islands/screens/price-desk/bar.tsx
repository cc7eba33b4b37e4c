// What was changed at the desk and is nowhere yet, in one bar over the foot of the window: how much, back and forth, away with
// it, keep it as a draft, plan it. Refuses to let the page be left with such changes without a question.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useState } from "react";
import { useT } from "../../lib/i18n.ts";
import { useShortcut } from "../../lib/keys.ts";
import { setQuery } from "../../lib/url-state.ts";
import { confirm } from "../../ui/confirm.tsx";
import { countsText } from "../../ui/price-plan/change-words.ts";
import type { Desk } from "../../ui/price-sheet/desk.ts";
import { draftName } from "./open-draft.ts";
import { UndoButtons } from "../../ui/price-sheet/undo-buttons.tsx";
import SaveDraft from "./save-draft.tsx";

/** The browser asks before the page goes. */
function useLeaveQuestion(isUnsaved: boolean): void {
  useEffect(() => {
    if (!isUnsaved) return undefined;
    const onUnload = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", onUnload);
    return () => window.removeEventListener("beforeunload", onUnload);
  }, [isUnsaved]);
}

const toPlan = () => setQuery({ section: "plan" });

export interface DeskBarProps {
  desk: Desk;
  isHidden: boolean;
  /** With the way back and forth; a section may have its own. */
  hasSteps: boolean;
}

export default function DeskBar({ desk, isHidden, hasSteps }: DeskBarProps) {
  useSignals();
  const t = useT();
  const [isSaving, setSaving] = useState(false);
  const changes = desk.changes.value;
  const redoable = desk.redoable.value;
  const draft = desk.draft.value;
  const isUnsaved = desk.isUnsaved.value;
  const isShown = !isHidden && (changes.length > 0 || redoable !== undefined);
  const told = changes.length === 0 ? "" : t("desk.bar.changed", { what: countsText(t, changes) });
  useLeaveQuestion(isUnsaved);
  useShortcut({
    keys: "mod+Enter",
    label: "desk.bar.plan",
    run: () => {
      if (isShown && desk.changes.peek().length > 0) toPlan();
    },
  });
  const discard = async () => {
    const isSure = await confirm({
      title: t("desk.bar.discardTitle", { what: countsText(t, changes) }),
      text: t(draft ? "desk.bar.discardDraft" : "desk.bar.discardText"),
      action: t("desk.bar.discard"),
      isDanger: true,
    });
    if (isSure) desk.discard(t("desk.bar.discarded"));
  };
  return (
    <>
      {/* Always there, so that the first change is announced as well. */}
      <p className="sr-only" role="status">
        {isHidden ? "" : told}
      </p>
      {isShown ? (
        <section className="setting-bar" aria-label={t("desk.bar.label")}>
          <span className="mr-2 min-w-0 font-medium" aria-hidden>
            {changes.length === 0 ? t("desk.bar.nothing") : told}
            {draft ? (
              <span className="block max-w-60 truncate text-xs font-normal text-muted">
                {t(isUnsaved ? "desk.bar.draftChanged" : "desk.bar.draftKept", { name: draftName(draft) })}
              </span>
            ) : null}
          </span>
          {hasSteps ? <UndoButtons desk={desk} /> : null}
          <button
            type="button"
            className="btn btn-ghost btn-sm"
            disabled={changes.length === 0}
            onClick={() => void discard()}
          >
            {t("desk.bar.discard")}
          </button>
          <button
            type="button"
            className="btn btn-ghost btn-sm"
            disabled={changes.length === 0}
            onClick={() => setSaving(true)}
          >
            {t(draft ? "desk.bar.saveDraft" : "desk.bar.saveAsDraft")}
          </button>
          <button
            type="button"
            className="btn btn-primary btn-sm"
            aria-keyshortcuts="Control+Enter"
            disabled={changes.length === 0}
            onClick={toPlan}
          >
            {t("desk.bar.plan")}
          </button>
        </section>
      ) : null}
      {isSaving ? <SaveDraft desk={desk} onClose={() => setSaving(false)} /> : null}
    </>
  );
}
