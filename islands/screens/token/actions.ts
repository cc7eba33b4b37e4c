// What the API key screen does to keys: status with undo, deletion, copying.
import { api, call } from "../../lib/api.ts";
import { t } from "../../lib/i18n.ts";
import type { ListState } from "../../lib/list.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import type { TokenRow } from "../../lib/wire.ts";
import { deleteRows } from "../../ui/confirm.tsx";
import { copyText } from "../../ui/copy-button.tsx";

type Tokens = ListState<TokenRow>;

interface StatusChange {
  row: TokenRow;
  /** What it shall have. */
  status: number;
}

/** Sets each key's status on the page and on the server; answers the changes that undo what went through. */
async function writeStatus(list: Tokens, changes: readonly StatusChange[]): Promise<StatusChange[]> {
  const next = new Map(changes.map(({ row, status }) => [row.id, status]));
  const rollBack = list.patch((rows) =>
    rows.map((each) => ({ ...each, status: next.get(each.id) ?? each.status })),
  );
  const undoing: StatusChange[] = [];
  try {
    for (const { row, status } of changes) {
      await call(api.token.put({ id: row.id, status }, { query: { status_only: "true" } }));
      undoing.push({ row, status: row.status === 1 ? 1 : 2 });
    }
  } catch (error) {
    rollBack();
    toastFailure(error);
    if (undoing.length > 0) await list.refresh();
  }
  return undoing;
}

/** Undo gives every key its old status back. */
export async function setStatus(list: Tokens, rows: readonly TokenRow[], status: number): Promise<void> {
  const [first] = rows;
  const undoing = await writeStatus(
    list,
    rows.map((row) => ({ row, status })),
  );
  if (undoing.length === 0 || !first) return;
  const isOn = status === 1;
  toast({
    key: `token ${first.id}`,
    text:
      undoing.length === 1
        ? t(isOn ? "token.nowEnabled" : "token.nowDisabled", { name: first.name })
        : t(isOn ? "token.nowEnabledMany" : "token.nowDisabledMany", { count: undoing.length }),
    undo: async () => {
      await writeStatus(list, undoing);
    },
  });
}

export async function remove(list: Tokens, rows: readonly TokenRow[], clear?: () => void): Promise<void> {
  const count = rows.length;
  const [first] = rows;
  if (!first) return;
  await deleteRows({
    count,
    title: count === 1 ? t("token.deleteOne", { name: first.name }) : t("token.deleteMany", { count }),
    text: t("token.deleteText"),
    action: count === 1 ? t("common.delete") : t("token.deleteManyAction", { count }),
    run: async () => {
      for (const row of rows) await call(api.token({ id: row.id }).delete());
      return t("common.deleted");
    },
    refresh: list.refresh,
    clear,
  });
}

export function copyKeys(rows: readonly TokenRow[]): void {
  void copyText(rows.map((row) => `${row.name} sk-${row.key}`).join("\n"));
}
