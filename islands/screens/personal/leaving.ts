// The way out of an account: deleted, or deleted and forgotten. Fetched when somebody takes it.
// Refuses to go on without its name being typed.
import { api, call } from "../../lib/api.ts";
import { user } from "../../lib/boot.ts";
import { formatQuota } from "../../lib/format.ts";
import { t } from "../../lib/i18n.ts";
import { leaveFor } from "../../lib/leave.ts";
import { KEYS, removeItem } from "../../lib/storage.ts";
import { toastFailure } from "../../lib/toasts.ts";
import { confirm } from "../../ui/confirm.tsx";

export async function leave(what: "delete" | "erase", username: string): Promise<void> {
  const yes = await confirm({
    title: t(`personal.${what}Ask`),
    text: t(`personal.${what}Text`, { balance: formatQuota(user.peek()?.quota ?? 0) }),
    action: t(`personal.${what}`),
    isDanger: true,
    typed: username,
  });
  if (!yes) return;
  try {
    await call(what === "erase" ? api.user.self.delete({ erase: true }) : api.user.self.delete());
    removeItem(KEYS.user);
    leaveFor("/login");
  } catch (error) {
    toastFailure(error, "delete");
  }
}
