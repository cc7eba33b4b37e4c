// What stands above the sheet of models: views, search, billing, unit, columns, the way back, new names, import and export.
// Refuses to hold any of it: the address does.
import { Columns3, Ellipsis, FileDown, FileJson, FileUp, Plus, Search } from "lucide-react";
import { useId, useEffect, useRef, useState } from "react";
import { isPriceName } from "../../../../src/shared/price-row.ts";
import { giveFocusBack } from "../../../lib/focus.ts";
import { useT } from "../../../lib/i18n.ts";
import { useShortcut } from "../../../lib/keys.ts";
import { useIsPhone } from "../../../lib/phone.ts";
import { toastFailure } from "../../../lib/toasts.ts";
import type { Query } from "../../../lib/url-state.ts";
import { Menu } from "../../menu.tsx";
import type { Desk } from "../desk.ts";
import { UndoButtons } from "../undo-buttons.tsx";
import { RATIO_OF } from "./cells.ts";
import type { PriceUnit } from "./cells.ts";
import { MORE_COLUMNS } from "./columns.ts";
import { ModelViews } from "./first.tsx";
import { useSheetQuery } from "./query.ts";
import type { ShownModels } from "./rows.ts";

const UNITS = ["dollars", "ratio"] as const;

export const unitOfQuery = ({ unit }: Query): PriceUnit => (unit === "ratio" ? "ratio" : "dollars");

/** Ids of the columns on demand; "." stands between them. */
export const moreColumns = ({ columns = "" }: Query): string[] => columns.split(".").filter(Boolean);

/** On phones everything but the search and the way back folds into one menu. */
export function ModelToolbar({ desk, shown }: { desk: Desk; shown: ShownModels }) {
  const t = useT();
  const { query, setQuery } = useSheetQuery();
  const isPhone = useIsPhone();
  const [isAdding, setAdding] = useState(false);
  const { billing, unit, columns, files } = useChoices(desk, shown);
  const square = "btn btn-default btn-square btn-sm pointer-coarse:size-11";
  const add = {
    id: "add",
    label: t("desk.models.add"),
    icon: Plus,
    onSelect: () => setAdding(true),
  };
  return (
    <>
      <div className="mb-2 flex min-h-9 flex-wrap items-center gap-2">
        <ModelViews counts={shown.counts} />
      </div>
      {isAdding ? <AddModel shown={shown} onDone={() => setAdding(false)} /> : null}
      <div className="mb-1 flex min-h-9 items-center gap-2" role="search">
        <SearchField text={query["q"] ?? ""} />
        {isPhone ? null : (
          <>
            <select
              className="select select-sm w-auto"
              aria-label={t("desk.models.billing")}
              value={query["billing"] ?? ""}
              onChange={(event) => setQuery({ billing: event.target.value })}
            >
              {billing.map(({ id, label }) => (
                <option key={id} value={id}>
                  {label}
                </option>
              ))}
            </select>
            <span className="join" role="group" aria-label={t("desk.models.unit")}>
              {unit.map(({ id, label, isChecked, onSelect }) => (
                <button
                  key={id}
                  type="button"
                  className="btn btn-default btn-sm join-item pointer-coarse:min-h-11"
                  aria-pressed={isChecked}
                  onClick={onSelect}
                >
                  {label}
                </button>
              ))}
            </span>
            <Menu label={t("table.columnsLabel")} className={square} groups={[columns]}>
              <Columns3 aria-hidden />
            </Menu>
          </>
        )}
        <span className="ml-auto flex gap-2">
          <UndoButtons desk={desk} />
          <Menu
            label={t("common.more")}
            className={square}
            groups={isPhone ? [[add], billing, unit, columns, ...files] : [[add], ...files]}
          >
            <Ellipsis aria-hidden />
          </Menu>
        </span>
      </div>
    </>
  );
}

/** What may be chosen for the sheet, and what is done with the whole of it. */
function useChoices(desk: Desk, shown: ShownModels) {
  const t = useT();
  const { query, setQuery } = useSheetQuery();
  const current = unitOfQuery(query);
  const more = moreColumns(query);
  const exportAs = (kind: "csv" | "json") => {
    import("./export.ts")
      .then(({ exportModels }) => exportModels(kind, { desk, names: shown.rows }))
      .catch((error: unknown) => toastFailure(error, "export"));
  };
  return {
    billing: ["", "tokens", "call"].map((id) => ({
      id,
      label: t(`desk.models.billing.${id === "" ? "any" : id}`),
      isChecked: (query["billing"] ?? "") === id,
      onSelect: () => setQuery({ billing: id }),
    })),
    unit: UNITS.map((id) => ({
      id,
      label: t(`desk.models.unit.${id}`),
      isChecked: current === id,
      onSelect: () => setQuery({ unit: id === "dollars" ? undefined : id }),
    })),
    columns: MORE_COLUMNS.filter(({ id }) => current === "dollars" || id in RATIO_OF).map(({ id }) => ({
      id,
      label: t(`desk.models.column.${id}`),
      isChecked: more.includes(id),
      onSelect: () => {
        const next = more.includes(id) ? more.filter((each) => each !== id) : [...more, id];
        setQuery({ columns: next.join(".") }, { replace: true });
      },
    })),
    files: [
      [
        {
          id: "import",
          label: t("desk.models.import"),
          icon: FileUp,
          onSelect: () => setQuery({ import: 1 }),
        },
      ],
      [
        { id: "csv", label: t("desk.models.exportCsv"), icon: FileDown, onSelect: () => exportAs("csv") },
        { id: "json", label: t("desk.models.exportJson"), icon: FileJson, onSelect: () => exportAs("json") },
      ],
    ],
  };
}

/** Searches while it is typed in, but not in the middle of a composition. */
function SearchField({ text: applied }: { text: string }) {
  const t = useT();
  const { setQuery } = useSheetQuery();
  const [text, setText] = useState(applied);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => setText(applied), [applied]);
  useShortcut({ keys: "/", label: "table.key.filter", run: () => input.current?.focus() });
  const apply = (typed: string) => setQuery({ q: typed }, { replace: true });
  return (
    <div className="input input-sm w-64 max-sm:w-0 max-sm:grow">
      <Search aria-hidden size={14} className="text-muted" />
      <input
        ref={input}
        type="search"
        className="grow"
        aria-label={t("desk.models.search")}
        placeholder={t("desk.models.search")}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          if (!("isComposing" in event.nativeEvent && event.nativeEvent.isComposing))
            apply(event.target.value);
        }}
        onCompositionEnd={(event) => apply(event.currentTarget.value)}
      />
    </div>
  );
}

function AddModel({ shown, onDone }: { shown: ShownModels; onDone: () => void }) {
  const t = useT();
  const id = useId();
  const [opener] = useState(() => document.activeElement);
  const [name, setName] = useState("");
  const [problem, setProblem] = useState<string>();
  const add = () => {
    const trimmed = name.trim();
    const wrong =
      trimmed === ""
        ? "noName"
        : !isPriceName(trimmed)
          ? "badName"
          : shown.isKnown(trimmed)
            ? "known"
            : undefined;
    setProblem(wrong);
    if (wrong !== undefined) return;
    shown.add(trimmed);
    onDone();
  };
  return (
    <form
      className="mb-2 flex flex-wrap items-center gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <input
        autoFocus
        className="input mono sm:w-64"
        aria-label={t("desk.models.newName")}
        aria-invalid={problem !== undefined || undefined}
        aria-describedby={problem === undefined ? undefined : id}
        placeholder={t("desk.models.newName")}
        autoComplete="off"
        spellCheck={false}
        value={name}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          onDone();
          giveFocusBack(opener);
        }}
        onChange={(event) => {
          setName(event.target.value);
          setProblem(undefined);
        }}
      />
      <button type="submit" className="btn btn-default">
        {t("desk.models.addName")}
      </button>
      {problem === undefined ? null : (
        <p id={id} className="text-xs text-error" role="alert">
          {t(`desk.models.${problem}`)}
        </p>
      )}
    </form>
  );
}
