// The actions on chosen accounts: the bar's buttons, each of which opens the sheet that says what will happen.
import { Ellipsis } from "lucide-react";
import { Role } from "../../../src/shared/enums.ts";
import { user } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { Menu } from "../../ui/menu.tsx";
import { BulkButton } from "../../ui/table-selection.tsx";
import type { BulkAction } from "./bulk-values.ts";

export function BulkActions({ onAct }: { onAct: (action: BulkAction) => void }) {
  const t = useT();
  const button = (action: BulkAction, isDanger = false) => (
    <BulkButton label={t(`user.bulk.${action}`)} isDanger={isDanger} onClick={() => onAct(action)} />
  );
  const item = (action: BulkAction) => ({
    id: action,
    label: t(`user.bulk.${action}`),
    onSelect: () => onAct(action),
  });
  // A disputed payment may stand behind it.
  const unflag = user.peek()?.role === Role.root ? [item("unflag")] : [];
  return (
    <>
      {button("credit")}
      {button("group")}
      {button("letter")}
      {button("disable", true)}
      <Menu label={t("user.bulk.more")} groups={[[item("enable"), item("flag"), ...unflag]]}>
        <Ellipsis aria-hidden />
      </Menu>
    </>
  );
}
