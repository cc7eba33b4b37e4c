// What stands above the sheet of models: views, search, billing, unit, columns, the way back, new names, import and export.
// Refuses to hold any of it: the address does.
import { Columns3, Ellipsis, FileDown, FileJson, FileUp, Plus, Search } from "lucide-react";
import { useId, useEffect, useRef, useState } from "react";
import { isPriceName } from "../../../../src/shared/price-row.ts";
import { useT } from "../../../lib/i18n.ts";
import { useShortcut } from "../../../lib/keys.ts";
import { toastFailure } from "../../../lib/toasts.ts";
import { setQuery, useQuery } from "../../../lib/url-state.ts";
import type { Query } from "../../../lib/url-state.ts";
import { Menu } from "../../../ui/menu.tsx";
import type { Desk } from "../desk.ts";
import { UndoButtons } from "../undo-buttons.tsx";
import { RATIO_OF } from "./cells.ts";
import type { PriceUnit } from "./cells.ts";
import { MORE_COLUMNS } from "./columns.ts";
import { ModelViews } from "./first.tsx";
import type { ShownModels } from "./rows.ts";

const UNITS = ["dollars", "ratio"] as const;

export const unitOfQuery = ({ unit }: Query): PriceUnit => (unit === "ratio" ? "ratio" : "dollars");

/** Ids of the columns on demand; "." stands between them. */
export const moreColumns = ({ columns = "" }: Query): string[] => columns.split(".").filter(Boolean);

export function ModelToolbar({ desk, shown }: { desk: Desk; shown: ShownModels }) {
  const t = useT();
  const query = useQuery();
  const unit = unitOfQuery(query);
  const more = moreColumns(query);
  const [isAdding, setAdding] = useState(false);
  const exportAs = (kind: "csv" | "json") => {
    import("./export.ts")
      .then(({ exportModels }) => exportModels(kind, { t, desk, names: shown.rows }))
      .catch((error: unknown) => toastFailure(error, "export"));
  };
  return (
    <>
      <div className="mb-2 flex min-h-9 flex-wrap items-center gap-2">
        <ModelViews counts={shown.counts} />
        <span className="ml-auto flex gap-2">
          <UndoButtons desk={desk} />
          <button
            type="button"
            className="btn btn-default btn-sm pointer-coarse:min-h-11"
            aria-expanded={isAdding}
            onClick={() => setAdding(!isAdding)}
          >
            <Plus aria-hidden size={14} />
            {t("desk.models.add")}
          </button>
          <Menu
            label={t("common.more")}
            className="btn btn-default btn-square btn-sm pointer-coarse:size-11"
            groups={[
              [
                {
                  id: "import",
                  label: t("desk.models.import"),
                  icon: FileUp,
                  onSelect: () => setQuery({ import: 1 }),
                },
              ],
              [
                {
                  id: "csv",
                  label: t("desk.models.exportCsv"),
                  icon: FileDown,
                  onSelect: () => exportAs("csv"),
                },
                {
                  id: "json",
                  label: t("desk.models.exportJson"),
                  icon: FileJson,
                  onSelect: () => exportAs("json"),
                },
              ],
            ]}
          >
            <Ellipsis aria-hidden />
          </Menu>
        </span>
      </div>
      {isAdding ? (
        <AddModel
          shown={shown}
          onDone={() => {
            setAdding(false);
          }}
        />
      ) : null}
      <div className="mb-1 flex min-h-9 flex-wrap items-center gap-2" role="search">
        <SearchField text={query["q"] ?? ""} />
        <select
          className="select select-sm w-auto"
          aria-label={t("desk.models.billing")}
          value={query["billing"] ?? ""}
          onChange={(event) => setQuery({ billing: event.target.value })}
        >
          <option value="">{t("desk.models.billing.any")}</option>
          <option value="tokens">{t("desk.models.billing.tokens")}</option>
          <option value="call">{t("desk.models.billing.call")}</option>
        </select>
        <span className="join" role="group" aria-label={t("desk.models.unit")}>
          {UNITS.map((each) => (
            <button
              key={each}
              type="button"
              className="btn btn-default btn-sm join-item pointer-coarse:min-h-11"
              aria-pressed={unit === each}
              onClick={() => setQuery({ unit: each === "dollars" ? undefined : each })}
            >
              {t(`desk.models.unit.${each}`)}
            </button>
          ))}
        </span>
        <Menu
          label={t("table.columns")}
          className="btn btn-default btn-square btn-sm pointer-coarse:size-11"
          groups={[
            MORE_COLUMNS.filter(({ id }) => unit === "dollars" || id in RATIO_OF).map(({ id }) => ({
              id,
              label: t(`desk.models.column.${id}`),
              isChecked: more.includes(id),
              onSelect: () => {
                const next = more.includes(id) ? more.filter((each) => each !== id) : [...more, id];
                setQuery({ columns: next.join(".") }, { replace: true });
              },
            })),
          ]}
        >
          <Columns3 aria-hidden />
        </Menu>
      </div>
    </>
  );
}

/** Searches while it is typed in, but not in the middle of a composition. */
function SearchField({ text: applied }: { text: string }) {
  const t = useT();
  const [text, setText] = useState(applied);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => setText(applied), [applied]);
  useShortcut({ keys: "/", label: "table.key.filter", run: () => input.current?.focus() });
  const apply = (typed: string) => setQuery({ q: typed }, { replace: true });
  return (
    <div className="input input-sm w-64 max-sm:w-full">
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
          if (event.key === "Escape") onDone();
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
