// What the user screen does to accounts: switching, ranks and deletion, confirmed first and with a way back.
import { api, call } from "../../lib/api.ts";
import { formatQuota } from "../../lib/format.ts";
import { t } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import type { UserRow } from "../../lib/wire.ts";
import { confirm } from "../../ui/confirm.tsx";
import type { ManageAction } from "./row.ts";

const UNDO: Partial<Record<ManageAction, ManageAction>> = {
  disable: "enable",
  promote: "demote",
  demote: "promote",
};

function isConfirmed(row: UserRow, action: ManageAction): Promise<boolean> {
  return confirm({
    title: t(`user.ask.${action}`, { name: row.username }),
    text: t(`user.consequence.${action}`, { balance: formatQuota(row.quota) }),
    action: t(`user.act.${action}`, { name: row.username }),
    isDanger: action === "delete" || action === "disable",
    ...(action === "delete" ? { typed: row.username } : {}),
  });
}

export async function manage(
  row: UserRow,
  action: ManageAction,
  refresh: () => Promise<void>,
): Promise<void> {
  if (action !== "enable" && !(await isConfirmed(row, action))) return;
  try {
    await call(api.user.manage.post({ id: row.id, action }));
    const undo = UNDO[action];
    toast({
      key: `user ${row.id}`,
      text: t(`user.done.${action}`, { name: row.username }),
      ...(undo
        ? {
            undo: async () => {
              await call(api.user.manage.post({ id: row.id, action: undo }));
              await refresh();
            },
          }
        : {}),
    });
  } catch (error) {
    toastFailure(error);
  }
  await refresh();
}
