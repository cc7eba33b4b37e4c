// What the inbox screen does to items: close, put off, take up again; the bell of the frame follows.
import { Role } from "../../../src/shared/enums.ts";
import { api, call } from "../../lib/api.ts";
import { nowMs, user } from "../../lib/boot.ts";
import { replaceParts } from "../../lib/fresh-parts.ts";
import { t } from "../../lib/i18n.ts";
import type { ListState } from "../../lib/list.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import type { InboxRow } from "../../lib/wire.ts";
import { mayChange, mayClose } from "./row.ts";

interface Change {
  state: "open" | "snoozed" | "closed";
  hours?: number;
}

const DONE = { open: "inbox.woken", snoozed: "inbox.snoozed", closed: "inbox.closed" } as const;

/** Changes what can be changed, says how many, and shows list and bell anew. */
export async function change(
  list: ListState<InboxRow>,
  rows: readonly InboxRow[],
  body: Change,
  clear?: () => void,
): Promise<void> {
  const role = user.value?.role ?? Role.admin;
  const now = Math.floor(nowMs.value / 1000);
  const may = body.state === "closed" ? mayClose : mayChange;
  const changing = rows.filter((row) => may(row, role, now));
  if (changing.length === 0) {
    const why = rows.some((row) => mayChange(row, role)) ? "inbox.lasting" : "inbox.roots";
    if (rows.length > 0) toast({ key: "inbox", tone: "info", text: t(why) });
    return;
  }
  try {
    for (const { id } of changing) await call(api.inbox({ id }).put(body));
    clear?.();
    toast({ key: "inbox", text: t(DONE[body.state], { count: changing.length }) });
  } catch (error) {
    toastFailure(error);
  }
  await list.refresh();
  // A bell that is behind by one is no failure.
  await replaceParts(["topbar"]).catch(() => undefined);
}
