// The menus of the inbox: of a row, and of the page.
// Refuses to offer what would not last, what closes itself can only be put off, and to administrators what is root's.
import { AlarmClock, AlarmClockOff, ArrowUpRight, CircleCheck } from "lucide-react";
import { inboxHref } from "../../../src/shared/inbox.ts";
import { Role } from "../../../src/shared/enums.ts";
import { user } from "../../lib/boot.ts";
import type { Translate } from "../../lib/i18n.ts";
import type { ListState } from "../../lib/list.ts";
import type { InboxRow } from "../../lib/wire.ts";
import type { MenuGroups } from "../../ui/menu.tsx";
import { change } from "./actions.ts";
import { mayChange, mayClose, stateOf } from "./row.ts";

/** An hour, a day, a week. */
const SNOOZE_HOURS = [1, 24, 168] as const;
const SNOOZE_TEXT = { 1: "inbox.snooze.1", 24: "inbox.snooze.24", 168: "inbox.snooze.168" } as const;

interface RowMenuContext {
  t: Translate;
  list: ListState<InboxRow>;
  row: InboxRow;
  nowSeconds: number;
}

export function rowMenu({ t, list, row, nowSeconds }: RowMenuContext): MenuGroups {
  const state = stateOf(row, nowSeconds);
  if (state === "closed") return [];
  const role = user.value?.role ?? Role.admin;
  const href = inboxHref(row, role);
  const run = (body: Parameters<typeof change>[2]) => () => void change(list, [row], body);
  const open = href === undefined ? [] : [{ id: "open", label: t("inbox.open"), icon: ArrowUpRight, href }];
  if (!mayChange(row, role)) return [open];
  return [
    open,
    state === "snoozed"
      ? [{ id: "wake", label: t("inbox.wake"), icon: AlarmClockOff, onSelect: run({ state: "open" }) }]
      : SNOOZE_HOURS.map((hours) => ({
          id: `snooze-${hours}`,
          label: t(SNOOZE_TEXT[hours]),
          icon: AlarmClock,
          onSelect: run({ state: "snoozed", hours }),
        })),
    mayClose(row, role, nowSeconds)
      ? [{ id: "close", label: t("inbox.close"), icon: CircleCheck, onSelect: run({ state: "closed" }) }]
      : [],
  ];
}
