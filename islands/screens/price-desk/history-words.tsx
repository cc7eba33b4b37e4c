// What the list of revisions and an opened one say alike: who, by which way, and whether it was taken back.
import { hasText, useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import type { PriceRevision } from "../../lib/wire.ts";

/** By which way a revision came: a kind that this build does not know is told as it is. */
export function wayText(
  t: Translate,
  { kind, draft_id: draft, user_id: by }: Pick<PriceRevision, "kind" | "draft_id" | "user_id">,
): string {
  // Shipped prices at a first start, and what an upgrade adds.
  if (kind === "write" && by === 0) return t("plan.way.self");
  if (kind === "apply" && draft > 0) return t("plan.way.draft");
  return hasText(`plan.way.${kind}`) ? t(`plan.way.${kind}`) : kind;
}

export function authorText(t: Translate, { username }: Pick<PriceRevision, "username">): string {
  return username === "" ? t("plan.program") : username;
}

export function UndoMarks({ revision }: { revision: Pick<PriceRevision, "undo_of" | "undone_by"> }) {
  const t = useT();
  const { undo_of: undoOf, undone_by: undoneBy } = revision;
  return (
    <>
      {undoOf > 0 ? (
        <span className="mt-0.5 block text-dense text-muted">{t("plan.history.undoOf", { id: undoOf })}</span>
      ) : null}
      {undoneBy > 0 ? (
        <span className="mt-0.5 block text-dense text-warning-text">
          {t("plan.history.undoneBy", { id: undoneBy })}
        </span>
      ) : null}
    </>
  );
}

const MOST_NAMED = 5;

/** The first names of a revision; how many entries it has stands beside it. */
export function firstNamesText(names: readonly string[]): string {
  return names.slice(0, MOST_NAMED).join(", ") + (names.length > MOST_NAMED ? " …" : "");
}
