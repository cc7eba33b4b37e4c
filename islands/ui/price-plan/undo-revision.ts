// Takes back what a revision wrote, by a new one, and says so.
// Refuses to write over names that were changed since, unless they are named.
import { api, call } from "../../lib/api.ts";
import { t } from "../../lib/i18n.ts";
import { toast } from "../../lib/toasts.ts";

interface Place {
  key: string;
  name: string;
}

export async function undoRevision(id: number, note = "", include: readonly Place[] = []): Promise<void> {
  const { changes, skipped } = await call(
    api.price.revisions({ id: String(id) }).undo.post({ note, include: [...include] }),
  );
  const text =
    skipped.length === 0
      ? t("plan.undone", { count: changes })
      : t("plan.undoneExcept", { count: changes, skipped: skipped.length });
  toast({ key: "prices", text });
}
