// One group: who uses it, why it cannot be renamed, and its removal.
// Refuses to remove what is in use: it says by whom.
import { useSignals } from "@preact/signals-react/runtime";
import { useId } from "react";
import { formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { announce } from "../../lib/toasts.ts";
import { Drawer } from "../../ui/drawer.tsx";
import type { Desk } from "../../ui/price-sheet/desk.ts";
import { isUsed, ratioOf, removalEdits, usesOf } from "./group-book.ts";
import type { GroupUses } from "./group-book.ts";
import { joinNames } from "./group-parts.tsx";

/** "12 users, 3 API keys and the overrides". */
function usesText(t: Translate, { users, keys, channels, places }: GroupUses): string {
  const counts = ([users, keys, channels] as const).map((count, at) =>
    count === 0
      ? ""
      : t(`desk.sheet.groups.count.${["users", "keys", "channels"][at]}`, {
          count,
          number: formatNumber(count),
        }),
  );
  const names = places.map((place) => t(`desk.sheet.groups.place.${place}`));
  return joinNames([...counts, ...names].filter((each) => each !== ""));
}

export function GroupDrawer({ desk, group, onClose }: { desk: Desk; group: string; onClose: () => void }) {
  useSignals();
  const t = useT();
  const id = useId();
  const uses = usesOf(desk, group);
  const isInUse = isUsed(uses);
  const isThere = ratioOf(desk, group) !== undefined;
  const to = encodeURIComponent(group);
  const links = [
    ["users", uses.users, `/user?group=${to}`],
    ["keys", uses.keys, undefined],
    ["channels", uses.channels, `/channel?group=${to}`],
  ] as const;
  return (
    <Drawer isOpen title={<span className="mono">{group}</span>} width="peek" onClose={onClose}>
      <dl className="facts">
        {links.map(([what, count, href]) => (
          <div key={what}>
            <dt>{t(`desk.sheet.groups.${what}`)}</dt>
            <dd className="tabular-nums">
              {count > 0 && href !== undefined ? (
                <a className="link" href={href}>
                  {formatNumber(count)}
                </a>
              ) : (
                formatNumber(count)
              )}
            </dd>
          </div>
        ))}
      </dl>
      {isThere ? null : <p className="mt-4 text-dense">{t("desk.sheet.groups.unpricedText", { group })}</p>}
      <p className="mt-4 text-dense text-muted">{t("desk.sheet.groups.noRename")}</p>
      <p id={id} className="mt-4 text-dense">
        {isInUse
          ? t("desk.sheet.groups.inUse", { group, uses: usesText(t, uses) })
          : t("desk.sheet.groups.notInUse", { group })}
      </p>
      <button
        type="button"
        className="btn btn-default btn-sm mt-3"
        aria-describedby={id}
        aria-disabled={isInUse}
        onClick={() => {
          if (isInUse) {
            announce("desk.sheet.groups.inUse", { group, uses: usesText(t, uses) });
            return;
          }
          desk.write(removalEdits(group), t("desk.sheet.groups.stepRemove", { group }));
          onClose();
        }}
      >
        {t("desk.sheet.groups.remove", { group })}
      </button>
    </Drawer>
  );
}
