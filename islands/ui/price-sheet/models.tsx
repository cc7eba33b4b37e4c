// The sheet over all models: every name that has a price or is served, with its prices as dollars or ratios.
// Refuses to change anything by itself: what is typed waits as changes for a plan.
import { Ellipsis, ListChecks, Trash2, X } from "lucide-react";
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import type { ReactNode } from "react";
import type { DeskPrices } from "../../../src/shared/price-desk.ts";
import { formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { Menu } from "../menu.tsx";
import { Sheet } from "../sheet.tsx";
import { BatchDrawer } from "./models/batch.tsx";
import { FirstModels } from "./models/first.tsx";
import { ImportDrawer } from "./models/import.tsx";
import { ModelDrawer } from "./models/model-drawer.tsx";
import { modelColumns, writeCells } from "./models/sheet-columns.tsx";
import { nextSort, sortOf, useShownModels } from "./models/rows.ts";
import type { ShownModels } from "./models/rows.ts";
import { useSheetQuery } from "./models/query.ts";
import { TableOffer } from "./models/table-offer.tsx";
import { ModelToolbar, moreColumns, unitOfQuery } from "./models/toolbar.tsx";
import type { SectionProps } from "./section-props.ts";
import { stepsOf } from "./undo-buttons.tsx";

export default function Models(section: SectionProps) {
  useSignals();
  const prices = section.desk.prices.value;
  return prices ? <ModelSheet {...section} prices={prices} /> : <FirstModels />;
}

const NO_NAMES: ReadonlySet<string> = new Set();

function ModelSheet({ prices, ...section }: SectionProps & { prices: DeskPrices }) {
  useSignals();
  const { desk } = section;
  const t = useT();
  const { query, setQuery } = useSheetQuery();
  const shown = useShownModels(desk, prices, query);
  const [ticked, setTicked] = useState(NO_NAMES);
  const [isBatch, setBatch] = useState(false);
  const unit = unitOfQuery(query);
  const sort = sortOf(query);
  const { columns, changed } = modelColumns({ t, desk, facts: shown.facts, unit, more: moreColumns(query) });
  const tick = (names: readonly string[], isOn: boolean) => {
    const next = new Set(ticked);
    for (const name of names) {
      if (isOn) next.add(name);
      else next.delete(name);
    }
    setTicked(next);
  };
  const remove = (names: readonly string[]) => {
    const [model = ""] = names;
    const label =
      names.length === 1
        ? t("desk.models.step.removeOne", { model })
        : t("desk.models.step.remove", { count: names.length });
    desk.writeRows(new Map(names.map((name) => [name, undefined])), label);
  };
  const { undo, redo } = stepsOf(desk);
  const open = query["model"];
  return (
    <>
      <ModelToolbar desk={desk} shown={shown} />
      <Selection
        shown={shown}
        ticked={ticked}
        onAll={() => tick(shown.rows, true)}
        onNone={() => setTicked(NO_NAMES)}
        onBatch={() => setBatch(true)}
        onRemove={() => remove([...ticked])}
      >
        {query["view"] === "unpriced" ? <TableOffer {...section} facts={shown.facts} /> : null}
      </Selection>
      <Sheet
        label={t("desk.models.sheet")}
        rows={shown.rows}
        keyOf={String}
        columns={columns}
        changed={changed}
        write={(cells, label) => writeCells(desk, { t, unit }, cells, label)}
        onUndo={undo}
        onRedo={redo}
        onOpenRow={(model) => setQuery({ model })}
        ticked={ticked}
        onTick={tick}
        sort={sort}
        onSort={(column) => setQuery({ sort: nextSort(sort, column) }, { replace: true })}
        goTo={shown.goTo}
        empty={<Empty isSearched={(query["q"] ?? "") !== ""} view={query["view"] ?? "all"} />}
      />
      {isBatch ? (
        <BatchDrawer
          desk={desk}
          names={[...ticked]}
          onClose={() => setBatch(false)}
          onDone={() => setBatch(false)}
        />
      ) : null}
      {query["import"] === undefined ? null : (
        <ImportDrawer
          desk={desk}
          onClose={() => setQuery({ import: undefined })}
          onDone={() => {
            setQuery({ import: undefined });
            shown.refresh();
          }}
        />
      )}
      {open === undefined ? null : (
        <ModelDrawer
          desk={desk}
          model={open}
          facts={shown.facts}
          onRemove={() => remove([open])}
          onClose={() => setQuery({ model: undefined })}
        />
      )}
    </>
  );
}

interface SelectionProps {
  shown: ShownModels;
  ticked: ReadonlySet<string>;
  onAll: () => void;
  onNone: () => void;
  onBatch: () => void;
  onRemove: () => void;
  /** What the view offers besides. */
  children: ReactNode;
}

/** Stands above the sheet all the time: nothing moves when the first row is ticked. */
function Selection({ shown, ticked, onAll, onNone, onBatch, onRemove, children }: SelectionProps) {
  const t = useT();
  const { length } = shown.rows;
  return (
    <div className="mb-1 flex min-h-9 items-center gap-2 text-dense pointer-coarse:min-h-11">
      <p role="status" className="text-muted">
        {ticked.size === 0
          ? t("desk.models.count", { count: length, number: formatNumber(length) })
          : t("desk.models.ticked", { count: ticked.size, number: formatNumber(ticked.size) })}
      </p>
      {ticked.size === 0 ? null : (
        <>
          <button type="button" className="btn btn-sm btn-default pointer-coarse:min-h-11" onClick={onBatch}>
            {t("desk.models.batch")}
          </button>
          <Menu
            label={t("desk.models.selection")}
            className="btn btn-default btn-square btn-sm pointer-coarse:size-11"
            groups={[
              [
                {
                  id: "all",
                  label: t("desk.models.tickAll", { count: length, number: formatNumber(length) }),
                  icon: ListChecks,
                  onSelect: onAll,
                },
                { id: "none", label: t("table.clearSelection"), icon: X, onSelect: onNone },
              ],
              [
                {
                  id: "remove",
                  label: t("desk.models.removeOf", { count: ticked.size }),
                  icon: Trash2,
                  isDanger: true,
                  onSelect: onRemove,
                },
              ],
            ]}
          >
            <Ellipsis aria-hidden />
          </Menu>
        </>
      )}
      {children}
    </div>
  );
}

function Empty({ isSearched, view }: { isSearched: boolean; view: string }) {
  const t = useT();
  const { setQuery } = useSheetQuery();
  const text = isSearched
    ? "noMatch"
    : view === "unpriced" || view === "changed"
      ? `empty.${view}`
      : "noMatch";
  return (
    <div className="rounded-box border border-base-300 px-4 py-10 text-center">
      <p>{t(`desk.models.${text}`)}</p>
      {text === "noMatch" ? (
        <button
          type="button"
          className="btn btn-default mt-3"
          onClick={() => setQuery({ q: undefined, billing: undefined, view: undefined })}
        >
          {t("table.clearFilters")}
        </button>
      ) : null}
    </div>
  );
}
