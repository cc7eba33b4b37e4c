// A draft as the desk holds it, and the question before its changes take the place of others.
import { t } from "../../lib/i18n.ts";
import type { PriceDraft } from "../../lib/wire.ts";
import { confirm } from "../../ui/confirm.tsx";
import { countsText } from "../../ui/price-plan/change-words.ts";
import type { Desk, DeskChange, OpenDraft } from "../../ui/price-sheet/desk.ts";

export function openDraftOf({ id, version, title, note, announce, changes }: PriceDraft): OpenDraft {
  return { id, version, title, note, announce, changes: changes as readonly DeskChange[] };
}

/** A draft without a title goes by its number. */
export function draftName({ id, title }: { id: number; title: string }): string {
  return title === "" ? `#${id}` : title;
}

/** Resolves to false where somebody would rather keep what is at hand. */
export async function mayReplace(desk: Desk): Promise<boolean> {
  if (!desk.isUnsaved.peek()) return true;
  return confirm({
    title: t("plan.draft.replaceTitle", { what: countsText(t, desk.changes.peek()) }),
    text: t("plan.draft.replaceText"),
    action: t("plan.draft.replace"),
    isDanger: true,
  });
}
