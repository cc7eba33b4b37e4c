// What the redemption code screen does to codes: status with undo, deletion, copying.
import { api, call } from "../../lib/api.ts";
import { t } from "../../lib/i18n.ts";
import type { ListState } from "../../lib/list.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import type { CodeRow } from "../../lib/wire.ts";
import { deleteRows } from "../../ui/confirm.tsx";
import { copyText } from "../../ui/copy-button.tsx";
import { DISABLED, MAX_IDS, UNUSED, USED } from "./row.ts";

type Codes = ListState<CodeRow>;

/** In calls of as many ids as one takes; answers how many were changed. */
async function changeAll(rows: readonly CodeRow[], action: "enable" | "disable" | "delete"): Promise<number> {
  let count = 0;
  for (let at = 0; at < rows.length; at += MAX_IDS) {
    const ids = rows.slice(at, at + MAX_IDS).map((row) => row.id);
    count += await call(api.redemption.batch.post({ ids, action }));
  }
  return count;
}

interface StatusOptions {
  /** Drops the selection. */
  clear?: () => void;
  /** An undo is not announced, and cannot be undone. */
  isUndo?: boolean;
}

/** Used codes stay as they are. */
export async function setStatus(
  list: Codes,
  rows: readonly CodeRow[],
  next: number,
  { clear, isUndo = false }: StatusOptions = {},
): Promise<void> {
  const changing = rows.filter((row) => row.status !== USED && row.status !== next);
  if (changing.length === 0) {
    toast({ key: "redemption status", tone: "info", text: t("redemption.nothingToSwitch") });
    return;
  }
  const ids = new Set(changing.map((row) => row.id));
  const rollBack = list.patch((all) => all.map((row) => (ids.has(row.id) ? { ...row, status: next } : row)));
  const changed = changing.map((row) => ({ ...row, status: next }));
  try {
    const count = await changeAll(changing, next === UNUSED ? "enable" : "disable");
    clear?.();
    if (!isUndo)
      toast({
        key: "redemption status",
        text: t(next === UNUSED ? "redemption.nowEnabled" : "redemption.nowDisabled", { count }),
        undo: () => setStatus(list, changed, next === UNUSED ? DISABLED : UNUSED, { isUndo: true }),
      });
    // Somebody redeemed one in the meantime: the list knows better.
    if (count !== changing.length) await list.refresh();
  } catch (error) {
    rollBack();
    toastFailure(error);
    await list.refresh();
  }
}

export async function remove(list: Codes, rows: readonly CodeRow[], clear?: () => void): Promise<void> {
  const [first] = rows;
  if (!first) return;
  const count = rows.length;
  const unused = rows.filter((row) => row.status === UNUSED).length;
  await deleteRows({
    count,
    title:
      count === 1 ? t("redemption.deleteOne", { name: first.name }) : t("redemption.deleteMany", { count }),
    text: unused > 0 ? t("redemption.deleteUnused", { count: unused }) : t("redemption.deleteText"),
    action: count === 1 ? t("common.delete") : t("redemption.deleteAction", { count }),
    run: async () => {
      await changeAll(rows, "delete");
      return t("common.deleted");
    },
    refresh: list.refresh,
    clear,
  });
}

export function copyCodes(rows: readonly CodeRow[]): void {
  void copyText(rows.map((row) => `${row.name}    ${row.key}`).join("\n"));
}
