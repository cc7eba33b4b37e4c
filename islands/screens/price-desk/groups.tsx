// The groups in one sheet: ratio, who may choose them and under which words, the top-up ratio, and who uses them.
// Refuses to take a group away that somebody uses, and to hide that one without a ratio costs as if it were 1.
import { useSignals } from "@preact/signals-react/runtime";
import { Plus } from "lucide-react";
import { useId, useState } from "react";
import { groupText } from "../../lib/group-text.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { announce } from "../../lib/toasts.ts";
import { setQuery, useQuery } from "../../lib/url-state.ts";
import { Sheet } from "../../ui/sheet.tsx";
import type { SheetColumn } from "../../ui/sheet-types.ts";
import type { Desk } from "../../ui/price-sheet/desk.ts";
import {
  descriptionOf,
  knownGroups,
  MAX_GROUP_NAME,
  nameProblem,
  RATIO,
  ratioOf,
  storedDescriptionOf,
  topupOf,
  TOPUP,
  usesOf,
} from "./group-book.ts";
import type { NameProblem } from "./group-book.ts";
import { groupEdits, parseRatio, parseUsable } from "./group-cells.ts";
import { GroupDrawer } from "./group-drawer.tsx";
import { GroupSection, joinNames, Was } from "./group-parts.tsx";
import type { SectionProps } from "../../ui/price-sheet/section-props.ts";
import { stepsOf } from "../../ui/price-sheet/undo-buttons.tsx";

interface GroupRow {
  name: string;
  ratio: number | undefined;
  /** Undefined: users may not choose it. */
  description: string | undefined;
  topup: number | undefined;
  users: number;
  keys: number;
  channels: number;
  isNew: boolean;
}

const rowOf = (desk: Desk, name: string): GroupRow => ({
  name,
  ratio: ratioOf(desk, name),
  description: descriptionOf(desk, name),
  topup: topupOf(desk, name),
  ...usesOf(desk, name),
  isNew: desk.storedValueOf(RATIO, name) === null && ratioOf(desk, name) !== undefined,
});

const textOf = (value: number | undefined): string => (value === undefined ? "" : String(value));

function NameCell({ row }: { row: GroupRow }) {
  const t = useT();
  return (
    <span className="flex min-w-0 items-baseline gap-2">
      <span className="mono min-w-0 truncate">{row.name}</span>
      {row.ratio === undefined ? (
        <span className="badge badge-ghost badge-sm flex-none" data-tone="attention">
          {t("desk.sheet.groups.unpriced")}
        </span>
      ) : row.isNew ? (
        <span className="badge badge-soft badge-primary badge-sm flex-none">{t("desk.sheet.isNew")}</span>
      ) : null}
    </span>
  );
}

const Faint = ({ text }: { text: string }) => <span className="text-muted italic">{text}</span>;

function columnsOf(t: Translate): SheetColumn<GroupRow>[] {
  const yes = t("desk.sheet.groups.yes");
  const no = t("desk.sheet.groups.no");
  return [
    {
      id: "name",
      label: t("desk.sheet.groups.name"),
      kind: "text",
      width: 220,
      read: ({ name }) => name,
      render: (row) => <NameCell row={row} />,
    },
    {
      id: "ratio",
      label: t("desk.sheet.groups.ratio"),
      unit: "×",
      kind: "number",
      width: 96,
      read: ({ ratio }) => textOf(ratio),
      render: ({ ratio }) => (ratio === undefined ? <Faint text="1" /> : String(ratio)),
      parse: (text) => parseRatio(t, text),
    },
    {
      id: "usable",
      label: t("desk.sheet.groups.usable"),
      kind: "choice",
      width: 110,
      choices: [yes, no],
      read: ({ description }) => (description === undefined ? no : yes),
      parse: (text) => parseUsable(t, text),
    },
    {
      id: "description",
      label: t("desk.sheet.groups.description"),
      kind: "text",
      width: 240,
      read: ({ description }) => description ?? "",
      render: ({ description }) => (description === undefined ? "" : groupText(t, description)),
      parse: (text) => ({ value: text }),
    },
    {
      id: "topup",
      label: t("desk.sheet.groups.topup"),
      unit: "×",
      kind: "number",
      width: 110,
      read: ({ topup }) => textOf(topup),
      render: ({ topup }) => (topup === undefined ? <Faint text="1" /> : String(topup)),
      parse: (text) => parseRatio(t, text),
    },
    ...(["users", "keys", "channels"] as const).map((id): SheetColumn<GroupRow> => ({
      id,
      label: t(`desk.sheet.groups.${id}`),
      kind: "number",
      width: 90,
      read: (row) => String(row[id]),
      isMuted: (row) => row[id] === 0,
    })),
  ];
}

/** What a cell held before it was changed; undefined: the same. */
function changedText(desk: Desk, t: Translate, name: string, columnId: string): string | undefined {
  const none = t("desk.sheet.none");
  if (columnId === "ratio" || columnId === "topup") {
    const key = columnId === "ratio" ? RATIO : TOPUP;
    const [before, now] = [desk.storedValueOf(key, name), desk.valueOf(key, name)];
    if (before === now) return undefined;
    return typeof before === "number" ? String(before) : none;
  }
  const [before, now] = [storedDescriptionOf(desk, name), descriptionOf(desk, name)];
  if (columnId === "usable" && (before === undefined) !== (now === undefined))
    return t(before === undefined ? "desk.sheet.groups.no" : "desk.sheet.groups.yes");
  return columnId === "description" && before !== now ? before || none : undefined;
}

export default function Groups({ desk }: SectionProps) {
  useSignals();
  const t = useT();
  const { group: opened } = useQuery();
  const names = knownGroups(desk);
  const gone = [...(desk.stored.value.get(RATIO)?.keys() ?? [])].filter((name) => !names.includes(name));
  return (
    <GroupSection desk={desk} intro={t("desk.sheet.groups.intro")}>
      <Sheet
        label={t("desk.section.groups")}
        rows={names.map((name) => rowOf(desk, name))}
        keyOf={({ name }) => name}
        columns={columnsOf(t)}
        write={(cells, label) => {
          const { edits, problems } = groupEdits(desk, t, cells);
          if (edits.length > 0) desk.write(edits, label);
          return problems;
        }}
        changed={(name, columnId) => changedText(desk, t, name, columnId)}
        onUndo={stepsOf(desk).undo}
        onRedo={stepsOf(desk).redo}
        onOpenRow={({ name }) => setQuery({ group: name })}
      />
      {gone.length === 0 ? null : (
        <div className="mt-2">
          <Was>{t("desk.sheet.groups.gone", { groups: joinNames(gone) })}</Was>
        </div>
      )}
      <NewGroup desk={desk} />
      <p className="mt-3 max-w-[76ch] text-xs text-muted">{t("desk.sheet.groups.openHint")}</p>
      {opened !== undefined && names.includes(opened) ? (
        <GroupDrawer desk={desk} group={opened} onClose={() => setQuery({ group: undefined })} />
      ) : null}
    </GroupSection>
  );
}

/** A name for a group that begins with ratio 1, which changes no price. */
function NewGroup({ desk }: { desk: Desk }) {
  const t = useT();
  const id = useId();
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState<NameProblem>();
  return (
    <form
      className="mt-3"
      onSubmit={(event) => {
        event.preventDefault();
        const name = typed.trim();
        const wrong = nameProblem(desk, name);
        setProblem(wrong);
        if (wrong !== undefined) return;
        desk.write([{ key: RATIO, name, after: 1 }], t("desk.sheet.groups.stepAdd", { group: name }));
        announce("desk.sheet.groups.added", { group: name });
        setTyped("");
      }}
    >
      <label htmlFor={id} className="sr-only">
        {t("desk.sheet.groups.newName")}
      </label>
      <div className="flex items-center gap-2">
        <input
          id={id}
          type="text"
          className="input mono w-47 min-w-0"
          placeholder={t("desk.sheet.groups.newName")}
          autoComplete="off"
          spellCheck={false}
          value={typed}
          aria-invalid={problem !== undefined || undefined}
          aria-describedby={problem === undefined ? undefined : `${id}-problem`}
          onChange={(event) => {
            setTyped(event.target.value);
            setProblem(undefined);
          }}
        />
        <button type="submit" className="btn btn-default btn-sm">
          <Plus aria-hidden size={14} />
          {t("desk.sheet.groups.add")}
        </button>
      </div>
      {problem === undefined ? null : (
        <p id={`${id}-problem`} role="alert" className="mt-1 text-xs text-error">
          {t(`desk.sheet.groups.${problem}`, { group: typed.trim(), most: MAX_GROUP_NAME })}
        </p>
      )}
    </form>
  );
}
