// The groups that an automatic key tries, in their order, and whether new keys are automatic.
// Refuses to list in silence what is always passed over: no ratio, nobody who may use it, no channel.
import { useSignals } from "@preact/signals-react/runtime";
import { ArrowDown, ArrowUp, X } from "lucide-react";
import { useRef } from "react";
import { useT } from "../../lib/i18n.ts";
import { announce } from "../../lib/toasts.ts";
import { Empty } from "../../ui/feedback.tsx";
import { AutoDefault } from "./auto-default.tsx";
import type { Desk } from "../../ui/price-sheet/desk.ts";
import {
  autoEdit,
  autoList,
  autoProblemOf,
  pricedGroups,
  ratioWith,
  storedAutoList,
  usesOf,
  userChoices,
  userGroupsOf,
} from "./group-book.ts";
import { GroupPicker, GroupSection, joinNames, Was } from "./group-parts.tsx";
import type { SectionProps } from "../../ui/price-sheet/section-props.ts";

/** More user groups than this are no preview any more. */
const MOST_PREVIEWS = 8;

/** What hands and keys do to the list; the focus stays with the group that moved. */
function useAutoList(desk: Desk) {
  const t = useT();
  const list = useRef<HTMLOListElement>(null);
  const groups = autoList(desk);
  const write = (next: readonly string[], label: string) => desk.write([autoEdit(desk, next)], label);
  const focus = (at: number, part: string) =>
    setTimeout(() =>
      list.current?.children[at]?.querySelector<HTMLElement>(`[data-part="${part}"]:not(:disabled)`)?.focus(),
    );
  return {
    list,
    groups,
    add(group: string) {
      write([...groups, group], t("desk.sheet.auto.stepAdd", { group }));
      announce("desk.sheet.auto.added", { group, place: groups.length + 1 });
    },
    remove(at: number) {
      const group = groups[at] ?? "";
      announce("form.map.removed", { key: group });
      write(
        groups.filter((_, index) => index !== at),
        t("desk.sheet.auto.stepRemove", { group }),
      );
      if (groups.length > 1) focus(Math.min(at, groups.length - 2), "remove");
      else setTimeout(() => list.current?.parentElement?.querySelector<HTMLElement>("form select")?.focus());
    },
    /** `part`: what had the focus. */
    move(at: number, by: -1 | 1, part: string | undefined) {
      const to = at + by;
      const [group, other] = [groups[at], groups[to]];
      if (group === undefined || other === undefined) return;
      const next = groups.map((each, index) => (index === at ? other : index === to ? group : each));
      write(next, t("desk.sheet.auto.stepMove", { group }));
      announce("desk.sheet.auto.moved", { group, place: to + 1, count: groups.length });
      const isAtEnd = to === 0 || to === groups.length - 1;
      const isButton = part === undefined || part === "up" || part === "down";
      focus(to, isButton && isAtEnd ? (to === 0 ? "down" : "up") : (part ?? "up"));
    },
  };
}

export default function AutoGroups(props: SectionProps) {
  const { desk } = props;
  useSignals();
  const t = useT();
  const edit = useAutoList(desk);
  const { groups } = edit;
  const stored = storedAutoList(desk);
  const isChanged = JSON.stringify(groups) !== JSON.stringify(stored);
  const wasText = stored.length === 0 ? t("desk.sheet.auto.empty") : stored.join(" → ");
  return (
    <GroupSection desk={desk} intro={t("desk.sheet.auto.intro")}>
      <div className="max-w-160">
        {groups.length === 0 ? (
          <Empty title={t("desk.sheet.auto.none")} text={t("desk.sheet.auto.noneText")} />
        ) : null}
        <ol ref={edit.list} aria-label={t("desk.sheet.auto.list")}>
          {groups.map((group, at) => (
            <AutoLine key={group} desk={desk} group={group} at={at} edit={edit} />
          ))}
        </ol>
        {isChanged ? <Was>{t("desk.sheet.was", { value: wasText })}</Was> : null}
        <div className="mt-3">
          <GroupPicker
            label={t("desk.sheet.auto.toAdd")}
            action={t("desk.sheet.auto.add")}
            groups={pricedGroups(desk).filter((group) => !groups.includes(group))}
            onPick={(group) => edit.add(group)}
          />
        </div>
        {groups.length === 0 ? null : <Outcome desk={desk} />}
        <AutoDefault {...props} />
      </div>
    </GroupSection>
  );
}

/** What an automatic key of each kind of user is tried with. */
function Outcome({ desk }: { desk: Desk }) {
  useSignals();
  const t = useT();
  const userGroups = userGroupsOf(desk);
  return (
    <div className="mt-5">
      <h2 className="text-sm font-semibold">{t("desk.sheet.auto.outcome")}</h2>
      <ul className="mt-1 text-dense">
        {userGroups.slice(0, MOST_PREVIEWS).map((userGroup) => {
          const auto = userChoices(desk, userGroup).auto.filter(
            (group) => usesOf(desk, group).enabledChannels > 0,
          );
          const order = auto.map((group) => `${group} ×${ratioWith(desk, userGroup, group)}`).join(" → ");
          return (
            <li key={userGroup} className="py-0.5 wrap-anywhere" data-preview>
              {auto.length === 0
                ? t("desk.sheet.auto.nothingFor", { group: userGroup })
                : t("desk.sheet.auto.orderFor", { group: userGroup, order })}
            </li>
          );
        })}
      </ul>
      {userGroups.length > MOST_PREVIEWS ? (
        <p className="text-xs text-muted">
          {t("desk.sheet.auto.more", { groups: joinNames(userGroups.slice(MOST_PREVIEWS)) })}
        </p>
      ) : null}
    </div>
  );
}

function AutoLine({
  desk,
  group,
  at,
  edit,
}: {
  desk: Desk;
  group: string;
  at: number;
  edit: ReturnType<typeof useAutoList>;
}) {
  useSignals();
  const t = useT();
  const count = edit.groups.length;
  const problem = autoProblemOf(desk, group);
  const isNew = !storedAutoList(desk).includes(group);
  const buttons = [
    ["up", ArrowUp, at === 0, (part?: string) => edit.move(at, -1, part)],
    ["down", ArrowDown, at === count - 1, (part?: string) => edit.move(at, 1, part)],
    ["remove", X, false, () => edit.remove(at)],
  ] as const;
  return (
    <li
      className="flex items-center gap-x-3 border-b border-base-300 py-1.5"
      onKeyDown={(event) => {
        if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
        event.preventDefault();
        const part = event.target instanceof HTMLElement ? event.target.dataset["part"] : undefined;
        edit.move(at, event.key === "ArrowUp" ? -1 : 1, part);
      }}
    >
      <span className="w-6 flex-none text-right text-dense text-muted tabular-nums" aria-hidden>
        {at + 1}
      </span>
      <div className="min-w-0 grow wrap-anywhere">
        <span className="mono text-dense">{group}</span>
        {isNew ? <span className="status status-primary ml-2" aria-hidden /> : null}
        {isNew ? <span className="sr-only"> {t("desk.sheet.isNew")}</span> : null}
        {problem === undefined ? null : (
          <p className="text-xs text-error">{t(`desk.sheet.auto.problem.${problem}`)}</p>
        )}
      </div>
      <span className="flex flex-none">
        {buttons.map(([part, Icon, isDisabled, run]) => (
          <button
            key={part}
            type="button"
            data-part={part}
            className="btn btn-ghost btn-square btn-sm"
            aria-label={t(`desk.sheet.auto.${part}`, { group })}
            title={t(`desk.sheet.auto.${part}`, { group })}
            disabled={isDisabled}
            onClick={() => run(part)}
          >
            <Icon aria-hidden size={14} />
          </button>
        ))}
      </span>
    </li>
  );
}
