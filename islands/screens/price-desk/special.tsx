// Groups that the users of one group may choose besides what is open to all, or not: in words, with the list that comes of it.
// Refuses to leave the outcome to be worked out: every change shows at once which groups are left to choose.
import { useSignals } from "@preact/signals-react/runtime";
import { X } from "lucide-react";
import { useRef, useState } from "react";
import { useT } from "../../lib/i18n.ts";
import { groupText } from "../../lib/group-text.ts";
import { announce } from "../../lib/toasts.ts";
import { Empty } from "../../ui/feedback.tsx";
import type { Desk } from "../../ui/price-sheet/desk.ts";
import {
  isKnown,
  knownGroups,
  ratioOf,
  SPECIAL,
  specialEdit,
  specialOf,
  storedSpecialOf,
  userChoices,
} from "./group-book.ts";
import type { SpecialEntry } from "./group-book.ts";
import { CommitText, GroupPicker, GroupSection, joinNames, Was } from "./group-parts.tsx";
import type { SectionProps } from "../../ui/price-sheet/section-props.ts";

/** Groups of users that stand open; of more each is a line that opens. */
const MOST_OPEN = 12;

export default function SpecialGroups({ desk }: SectionProps) {
  useSignals();
  const t = useT();
  const [added, setAdded] = useState<readonly string[]>([]);
  const section = useRef<HTMLDivElement>(null);
  const stored = [...(desk.stored.value.get(SPECIAL)?.keys() ?? [])];
  // Those that were emptied stay until the page is left: their undo is one look away.
  const shown = [...new Set([...stored, ...desk.namesOf(SPECIAL), ...added])];
  const [search, setSearch] = useState("");
  const listed = new Set(shown);
  const others = knownGroups(desk).filter((name) => !listed.has(name));
  const isMany = shown.length > MOST_OPEN;
  const found = isMany ? shown.filter((name) => name.includes(search.trim())) : shown;
  return (
    <GroupSection desk={desk} intro={t("desk.sheet.special.intro")}>
      <div ref={section} className="max-w-3xl">
        {shown.length === 0 ? (
          <Empty title={t("desk.sheet.special.none")} text={t("desk.sheet.special.noneText")} />
        ) : null}
        {isMany ? (
          <input
            type="search"
            className="input input-sm mb-3 w-64"
            aria-label={t("desk.sheet.special.find")}
            placeholder={t("desk.sheet.special.find")}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        ) : null}
        {found.map((userGroup) =>
          isMany ? (
            <FoldedGroup
              key={userGroup}
              desk={desk}
              userGroup={userGroup}
              isNew={added.includes(userGroup)}
            />
          ) : (
            <UserGroup key={userGroup} desk={desk} userGroup={userGroup} />
          ),
        )}
        <div className="mt-4">
          <GroupPicker
            label={t("desk.sheet.special.userGroup")}
            action={t("desk.sheet.special.addUserGroup")}
            groups={others}
            onPick={(name) => {
              setAdded([...added, name]);
              setSearch("");
              setTimeout(() =>
                section.current?.querySelector<HTMLElement>("section:last-of-type select")?.focus(),
              );
            }}
          />
        </div>
      </div>
    </GroupSection>
  );
}

/** One of many: its entries are drawn once somebody opens it. */
function FoldedGroup({ desk, userGroup, isNew }: { desk: Desk; userGroup: string; isNew: boolean }) {
  useSignals();
  const t = useT();
  const [isOpen, setOpen] = useState(isNew);
  const count = specialOf(desk, userGroup).length;
  return (
    <details
      className="border-t border-base-300"
      open={isOpen}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary className="cursor-pointer py-2 text-dense wrap-anywhere">
        <span className="font-semibold">{t("desk.sheet.special.usersOf", { group: userGroup })}</span>{" "}
        <span className="text-muted">{t("desk.models.rules", { count })}</span>
      </summary>
      {isOpen ? <UserGroup desk={desk} userGroup={userGroup} isHeaded /> : null}
    </details>
  );
}

/** What hands do to the entries of one group of users. */
function useEntries(desk: Desk, userGroup: string) {
  const t = useT();
  const list = useRef<HTMLUListElement>(null);
  const entries = specialOf(desk, userGroup);
  const write = (next: readonly SpecialEntry[], label: string) =>
    desk.write([specialEdit(desk, userGroup, next)], label);
  const focus = (at: number, part: string) =>
    setTimeout(() => {
      const line = list.current?.children[at];
      (line?.querySelector<HTMLElement>(`[data-part="${part}"]`) ?? line?.querySelector("button"))?.focus();
    });
  return {
    list,
    entries,
    add(group: string, isRemoval: boolean) {
      const entry = {
        key: `${isRemoval ? "-" : "+"}:${group}`,
        group,
        isRemoval,
        text: isRemoval ? "" : group,
      };
      const step = isRemoval ? "desk.sheet.special.stepHide" : "desk.sheet.special.stepAdd";
      write([...entries, entry], t(step, { group, userGroup }));
      focus(entries.length, "text");
    },
    describe: (group: string, text: string) =>
      write(
        entries.map((each) => (each.group === group ? { ...each, text } : each)),
        t("desk.sheet.special.stepText", { group, userGroup }),
      ),
    remove(at: number) {
      const gone = entries[at];
      if (!gone) return;
      announce("form.map.removed", { key: gone.group });
      write(
        entries.filter((each) => each !== gone),
        t("desk.sheet.special.stepRemove", { group: gone.group, userGroup }),
      );
      if (entries.length > 1) focus(Math.min(at, entries.length - 2), "remove");
      else
        setTimeout(() =>
          list.current?.closest("section")?.querySelector<HTMLElement>("form select")?.focus(),
        );
    },
  };
}

interface UserGroupProps {
  desk: Desk;
  userGroup: string;
  /** Its name stands above it already. */
  isHeaded?: boolean;
}

function UserGroup({ desk, userGroup, isHeaded = false }: UserGroupProps) {
  useSignals();
  const t = useT();
  const edit = useEntries(desk, userGroup);
  const { entries } = edit;
  const stored = storedSpecialOf(desk, userGroup);
  const gone = stored.filter(({ key }) => !entries.some((each) => each.key === key));
  const { usable } = userChoices(desk, userGroup);
  const listed = new Set(entries.map(({ group }) => group));
  const free = knownGroups(desk).filter((group) => group !== userGroup && !listed.has(group));
  const heading = t("desk.sheet.special.usersOf", { group: userGroup });
  return (
    <section aria-label={heading} className={isHeaded ? "pb-4" : "border-t border-base-300 py-4"}>
      {isHeaded ? null : <h2 className="text-sm font-semibold wrap-anywhere">{heading}</h2>}
      {isKnown(desk, userGroup) ? null : (
        <p className="text-xs text-muted">{t("desk.sheet.unknown", { group: userGroup })}</p>
      )}
      <ul ref={edit.list} className="mt-1" aria-label={heading}>
        {entries.map((entry, at) => (
          <EntryLine
            key={entry.key}
            desk={desk}
            userGroup={userGroup}
            entry={entry}
            before={stored.find(({ key }) => key === entry.key)}
            onText={(text) => edit.describe(entry.group, text)}
            onRemove={() => edit.remove(at)}
          />
        ))}
      </ul>
      {gone.length === 0 ? null : (
        <Was>{t("desk.sheet.special.gone", { groups: joinNames(gone.map(({ group }) => group)) })}</Was>
      )}
      <p className="my-2 text-dense wrap-anywhere" data-preview>
        {t("desk.sheet.special.preview", { group: userGroup, groups: joinNames([...usable.keys()]) })}
      </p>
      <div className="flex flex-wrap gap-2">
        <GroupPicker
          label={t("desk.sheet.special.toAdd", { group: userGroup })}
          action={t("desk.sheet.special.add")}
          groups={free.filter((group) => !usable.has(group))}
          onPick={(group) => edit.add(group, false)}
        />
        <GroupPicker
          label={t("desk.sheet.special.toHide", { group: userGroup })}
          action={t("desk.sheet.special.hide")}
          groups={free.filter((group) => usable.has(group))}
          onPick={(group) => edit.add(group, true)}
        />
      </div>
    </section>
  );
}

/** What is wrong with an entry, or of no effect; undefined: nothing. */
function toldOf(desk: Desk, userGroup: string, { group, isRemoval }: SpecialEntry, isTwice: boolean) {
  if (isTwice) return { key: "desk.sheet.special.both", isWrong: true };
  if (isRemoval && group === userGroup) return { key: "desk.sheet.special.ownStays", isWrong: false };
  if (!isRemoval && ratioOf(desk, group) === undefined)
    return { key: "desk.sheet.special.unpriced", isWrong: true };
  return undefined;
}

interface EntryLineProps {
  desk: Desk;
  userGroup: string;
  entry: SpecialEntry;
  /** As it is stored. */
  before: SpecialEntry | undefined;
  onText: (text: string) => void;
  onRemove: () => void;
}

function EntryLine({ desk, userGroup, entry, before, onText, onRemove }: EntryLineProps) {
  useSignals();
  const t = useT();
  const { group, isRemoval, text } = entry;
  const isTwice = specialOf(desk, userGroup).some((each) => each.group === group && each.key !== entry.key);
  const told = toldOf(desk, userGroup, entry, isTwice);
  const remove = t("desk.sheet.special.remove", { group, userGroup });
  return (
    <li className="py-1.5">
      <div className="flex flex-wrap items-center gap-2">
        <p className="min-w-0 flex-1 text-dense">
          <span className="badge badge-ghost badge-sm mr-2">
            {t(isRemoval ? "desk.sheet.special.hides" : "desk.sheet.special.adds")}
          </span>
          <span className="mono wrap-anywhere">{group}</span>
        </p>
        {isRemoval ? null : (
          <div className="min-w-0 flex-1 max-sm:order-last max-sm:basis-full">
            <CommitText
              part="text"
              value={text}
              label={t("desk.sheet.special.text", { group, userGroup })}
              placeholder={t("desk.sheet.special.textHint")}
              onCommit={onText}
            />
          </div>
        )}
        <button
          type="button"
          data-part="remove"
          className="btn btn-ghost btn-square btn-sm"
          aria-label={remove}
          title={remove}
          onClick={onRemove}
        >
          <X aria-hidden size={14} />
        </button>
      </div>
      {before === undefined ? (
        <Was>{t("desk.sheet.isNew")}</Was>
      ) : before.text === text ? null : (
        <Was>
          {t("desk.sheet.was", { value: groupText(t, before.text) || t("desk.sheet.special.noText") })}
        </Was>
      )}
      {told ? (
        <p className={`text-xs ${told.isWrong ? "text-error" : "text-muted"}`}>
          {t(told.key, { group, userGroup })}
        </p>
      ) : null}
    </li>
  );
}
