// What users of one group pay in another: a matrix whose empty cells show the used group's own ratio, faint.
// Refuses to leave the meaning of a number open: the cell at hand is said as a sentence.
import { useSignals } from "@preact/signals-react/runtime";
import { Search, X } from "lucide-react";
import { useState } from "react";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { announce } from "../../lib/toasts.ts";
import { Empty } from "../../ui/feedback.tsx";
import { Sheet } from "../../ui/sheet.tsx";
import type { SheetColumn } from "../../ui/sheet-types.ts";
import type { Desk } from "../../ui/price-sheet/desk.ts";
import {
  isKnown,
  knownGroups,
  OVERRIDES,
  overridesOf,
  pricedGroups,
  ratioOf,
  ratioWith,
  storedOverridesOf,
} from "./group-book.ts";
import { matrixEdits, parseRatio } from "./group-cells.ts";
import { GroupPicker, GroupSection, Was } from "./group-parts.tsx";
import type { SectionProps } from "../../ui/price-sheet/section-props.ts";
import { stepsOf } from "../../ui/price-sheet/undo-buttons.tsx";

interface UserGroupRow {
  name: string;
  isKnown: boolean;
  /** Used group -> ratio, where it is replaced. */
  ratios: ReadonlyMap<string, number>;
}

/** The used group's own ratio behind what replaces it, for those who cannot see that one is faint. */
function RatioCell({ desk, row, group }: { desk: Desk; row: UserGroupRow; group: string }) {
  const t = useT();
  const own = ratioWith(desk, row.name, group, false);
  const ratio = row.ratios.get(group);
  if (ratio === undefined) {
    return (
      <span className="text-muted italic">
        {own}
        <span className="sr-only"> {t("desk.sheet.overrides.own")}</span>
      </span>
    );
  }
  return (
    <>
      {ratio === 0 ? t("desk.sheet.overrides.free") : ratio}
      <span className="sr-only"> {t("desk.sheet.overrides.inPlaceOf", { own })}</span>
    </>
  );
}

function UserGroupName({ row }: { row: UserGroupRow }) {
  const t = useT();
  return (
    <span className="flex min-w-0 items-baseline gap-2">
      <span className="mono min-w-0 truncate">{row.name}</span>
      {row.isKnown ? null : (
        <span className="badge badge-ghost badge-sm flex-none" data-tone="attention">
          {t("desk.sheet.unknownBadge")}
        </span>
      )}
    </span>
  );
}

function columnsOf(desk: Desk, t: Translate, groups: readonly string[]): SheetColumn<UserGroupRow>[] {
  return [
    {
      id: "",
      label: t("desk.sheet.overrides.usersOf"),
      kind: "text",
      width: 200,
      read: ({ name }) => name,
      render: (row) => <UserGroupName row={row} />,
    },
    ...groups.map((group): SheetColumn<UserGroupRow> => {
      const isPriced = ratioOf(desk, group) !== undefined;
      return {
        id: group,
        label: group,
        ...(isPriced ? {} : { unit: t("desk.sheet.overrides.noRatio") }),
        kind: "number",
        width: isPriced ? 112 : 176,
        read: (row) => String(row.ratios.get(group) ?? ""),
        render: (row) => <RatioCell desk={desk} row={row} group={group} />,
        parse: (text) => parseRatio(t, text),
      };
    }),
  ];
}

/** With more groups than this only those of an override are columns: a matrix of hundreds by hundreds is read by nobody. */
const MOST_COLUMNS = 24;

/** Groups of users and groups that they use whose names hold the text; where only one side has one, the other stays whole. */
function sought<Row extends { name: string }>(
  all: { rows: readonly Row[]; groups: readonly string[] },
  typed: string,
): { rows: readonly Row[]; groups: readonly string[] } {
  const text = typed.trim().toLowerCase();
  const rows = all.rows.filter(({ name }) => name.toLowerCase().includes(text));
  const groups = all.groups.filter((name) => name.toLowerCase().includes(text));
  if (rows.length > 0) return { rows, groups: groups.length > 0 ? groups : all.groups };
  return { rows: groups.length > 0 ? all.rows : [], groups };
}

function FindGroup({ typed, onType }: { typed: string; onType: (text: string) => void }) {
  const t = useT();
  return (
    <label className="input mb-3 w-72 max-sm:w-full">
      <Search aria-hidden size={16} className="text-muted" />
      <input
        type="search"
        className="mono grow"
        aria-label={t("desk.sheet.overrides.find")}
        placeholder={t("desk.sheet.overrides.find")}
        autoComplete="off"
        spellCheck={false}
        value={typed}
        onChange={(event) => onType(event.target.value)}
      />
    </label>
  );
}

export default function Overrides({ desk }: SectionProps) {
  useSignals();
  const t = useT();
  const [added, setAdded] = useState<readonly string[]>([]);
  const [addedColumns, setAddedColumns] = useState<readonly string[]>([]);
  const stored = [...(desk.stored.value.get(OVERRIDES)?.keys() ?? [])];
  const users = [...new Set([...stored, ...desk.namesOf(OVERRIDES), ...added])];
  const rows = users.map((name) => ({
    name,
    isKnown: isKnown(desk, name),
    ratios: overridesOf(desk, name),
  }));
  const storedUsed = users.flatMap((name) => [...storedOverridesOf(desk, name).keys()]);
  const used = new Set([...rows.flatMap(({ ratios }) => [...ratios.keys()]), ...storedUsed, ...addedColumns]);
  const priced = new Set(pricedGroups(desk));
  const all = [...priced, ...[...used].filter((group) => !priced.has(group))];
  const groups = all.length > MOST_COLUMNS ? all.filter((group) => used.has(group)) : all;
  const [typed, setTyped] = useState("");
  const found = sought({ rows, groups }, typed);
  const isLarge = rows.length > MOST_COLUMNS || groups.length > MOST_COLUMNS;
  return (
    <GroupSection desk={desk} intro={t("desk.sheet.overrides.intro")}>
      {isLarge ? <FindGroup typed={typed} onType={setTyped} /> : null}
      <Sheet
        label={t("desk.section.overrides")}
        rows={found.rows}
        keyOf={({ name }) => name}
        columns={columnsOf(desk, t, found.groups)}
        write={(cells, label) => desk.write(matrixEdits(desk, cells), label)}
        changed={(userGroup, group) => {
          const before = storedOverridesOf(desk, userGroup).get(group);
          if (before === overridesOf(desk, userGroup).get(group)) return undefined;
          return before === undefined ? t("desk.sheet.none") : String(before);
        }}
        onUndo={stepsOf(desk).undo}
        onRedo={stepsOf(desk).redo}
        empty={
          rows.length === 0 ? (
            <Empty title={t("desk.sheet.overrides.none")} text={t("desk.sheet.overrides.noneText")} />
          ) : (
            <Empty title={t("desk.sheet.overrides.notFound", { text: typed.trim() })} />
          )
        }
      />
      <div className="mt-3 flex flex-wrap gap-x-6 gap-y-2">
        <GroupPicker
          label={t("desk.sheet.overrides.userGroup")}
          action={t("desk.sheet.overrides.add")}
          groups={knownGroups(desk).filter((name) => !users.includes(name))}
          onPick={(name) => {
            setAdded([...added, name]);
            announce("desk.sheet.overrides.added", { group: name });
          }}
        />
        {rows.length === 0 ? null : (
          <GroupPicker
            label={t("desk.sheet.overrides.column")}
            action={t("desk.sheet.overrides.addColumn")}
            groups={all.filter((name) => !groups.includes(name))}
            onPick={(name) => {
              setAddedColumns([...addedColumns, name]);
              announce("desk.sheet.overrides.addedColumn", { group: name });
            }}
          />
        )}
      </div>
      {groups.length === all.length || rows.length === 0 ? null : (
        <p className="mt-2 text-dense text-muted">{t("desk.sheet.overrides.fewColumns")}</p>
      )}
      <Meaning
        desk={desk}
        rows={found.rows}
        onRemove={(name) => {
          setAdded(added.filter((each) => each !== name));
          announce("form.map.removed", { key: name });
          if (overridesOf(desk, name).size === 0) return;
          const edit = { key: OVERRIDES, name, after: null };
          desk.write([edit], t("desk.sheet.overrides.stepRemove", { group: name }));
        }}
      />
    </GroupSection>
  );
}

/** More sentences than this are no explanation any more. */
const MOST_SENTENCES = 12;
/** Groups of users that are told of at first, and with every "more". */
const MOST_TOLD = 20;

/** What the cells mean, in words: "users of vip calling premium pay 0.8 in place of 1.2". */
function Meaning({
  desk,
  rows,
  onRemove,
}: {
  desk: Desk;
  rows: readonly UserGroupRow[];
  onRemove: (name: string) => void;
}) {
  useSignals();
  const t = useT();
  const [most, setMost] = useState(MOST_TOLD);
  if (rows.length === 0) return null;
  return (
    <section className="mt-6 max-w-3xl" aria-label={t("desk.sheet.overrides.meaning")}>
      <h2 className="text-sm font-semibold">{t("desk.sheet.overrides.meaning")}</h2>
      <ul>
        {rows.slice(0, most).map(({ name, ratios }) => {
          const isGone = ratios.size === 0 && storedOverridesOf(desk, name).size > 0;
          const remove = t("desk.sheet.overrides.remove", { group: name });
          return (
            <li key={name} className="flex items-start gap-3 border-b border-base-300 py-2 text-dense">
              <div className="min-w-0 grow wrap-anywhere" data-preview>
                {ratios.size === 0 ? (
                  <p className="text-muted">{t("desk.sheet.overrides.noneOf", { group: name })}</p>
                ) : null}
                {[...ratios].slice(0, MOST_SENTENCES).map(([group, ratio]) => (
                  <p key={group}>
                    {t(ratio === 0 ? "desk.sheet.overrides.sentenceFree" : "desk.sheet.overrides.sentence", {
                      user: name,
                      group,
                      ratio,
                      own: ratioWith(desk, name, group, false),
                    })}
                  </p>
                ))}
                {ratios.size > MOST_SENTENCES ? (
                  <p className="text-muted">
                    {t("desk.sheet.overrides.more", { count: ratios.size - MOST_SENTENCES })}
                  </p>
                ) : null}
                {isGone ? <Was>{t("desk.sheet.overrides.gone")}</Was> : null}
              </div>
              {isGone ? null : (
                <button
                  type="button"
                  className="btn btn-ghost btn-square btn-sm flex-none"
                  aria-label={remove}
                  title={remove}
                  onClick={() => onRemove(name)}
                >
                  <X aria-hidden size={14} />
                </button>
              )}
            </li>
          );
        })}
      </ul>
      {rows.length > most ? (
        <button type="button" className="btn btn-default mt-2" onClick={() => setMost(most + MOST_TOLD)}>
          {t("sheet.more", { count: rows.length - most })}
        </button>
      ) : null}
    </section>
  );
}
