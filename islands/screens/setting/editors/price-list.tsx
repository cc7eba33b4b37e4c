// A list of models with their prices: searched, paged, selected and set together. The same for those with and without one.
// Refuses to draw thousands of rows at once: a page of them is enough for a person.
import { useRef, useState } from "react";
import { status } from "../../../lib/boot.ts";
import { useT } from "../../../lib/i18n.ts";
import { toast } from "../../../lib/toasts.ts";
import { Pagination } from "../../../ui/pagination.tsx";
import { PriceBatch } from "./price-batch.tsx";
import { PriceRow } from "./price-row.tsx";
import { cellsOf, changedTexts, dollarsPerRatio, PRICE_KEYS } from "./price-tables.ts";
import type { ModelCells, PriceKey, PriceTables, PriceUnit } from "./price-tables.ts";

export interface PriceListProps {
  /** In the order in which they stand. */
  names: readonly string[];
  tables: PriceTables;
  onTexts: (texts: Partial<Record<PriceKey, string>>) => void;
  pageSize: number;
  /** Translated: said where there is no model at all. */
  empty: string;
  /**
   * Told of each model that is edited (true) or taken out (false): one whose field is empty for a moment has no price, and
   * must not vanish. Absent: rows cannot be taken out.
   */
  onKeep?: (model: string, isKept: boolean) => void;
}

/** Everything that a model had, for taking a removal back. */
const NOTHING: ModelCells = Object.fromEntries(PRICE_KEYS.map((key) => [key, undefined]));

type Billing = "" | "tokens" | "call";

function useFound(names: readonly string[], tables: PriceTables) {
  const [search, setSearch] = useState("");
  const [billing, setBilling] = useState<Billing>("");
  const words = search.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const found = names.filter((name) => {
    if (billing !== "" && tables.ModelPrice.has(name) !== (billing === "call")) return false;
    const lower = name.toLowerCase();
    return words.every((word) => lower.includes(word));
  });
  return { search, setSearch, billing, setBilling, found };
}

export function PriceList({ names, tables, onTexts, pageSize: size, empty, onKeep }: PriceListProps) {
  const t = useT();
  const [unit, setUnit] = useState<PriceUnit>("dollars");
  const [page, setPage] = useState(1);
  const [pageSize, setPageSize] = useState(size);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const filter = useFound(names, tables);
  const { found } = filter;
  const last = Math.max(1, Math.ceil(found.length / pageSize));
  const at = Math.min(page, last);
  const shown = found.slice((at - 1) * pageSize, at * pageSize);
  const perRatio = dollarsPerRatio(status.peek().quota_per_unit);
  // Taking a removal back comes later: it counts from what the maps are by then.
  const latest = useRef({ tables, onTexts });
  latest.current = { tables, onTexts };
  const write = (changes: ReadonlyMap<string, ModelCells>) =>
    latest.current.onTexts(changedTexts(latest.current.tables, changes));
  const select = (models: readonly string[], isOn: boolean) => {
    const next = new Set(selected);
    for (const model of models) {
      if (isOn) next.add(model);
      else next.delete(model);
    }
    setSelected(next);
  };
  const remove = (model: string) => {
    const before = cellsOf(tables, model);
    onKeep?.(model, false);
    write(new Map([[model, NOTHING]]));
    select([model], false);
    toast({
      key: `price ${model}`,
      text: t("editor.price.removed", { model }),
      undo: () => write(new Map([[model, before]])),
    });
  };
  if (names.length === 0) return <p className="py-4 text-dense text-muted">{empty}</p>;
  const isAllOnPage = shown.length > 0 && shown.every((model) => selected.has(model));
  return (
    <>
      <FilterBar found={filter} unit={unit} onUnit={setUnit} onFilter={() => setPage(1)} />
      <div className="flex min-h-9 flex-wrap items-center gap-x-4 gap-y-2 border-b border-base-300 py-1 text-dense">
        <label className="flex cursor-pointer items-center gap-2 pl-1.5">
          <input
            type="checkbox"
            className="checkbox"
            checked={isAllOnPage}
            onChange={(event) => select(shown, event.target.checked)}
          />
          {t("editor.price.selectPage")}
        </label>
        {found.length > shown.length && found.some((model) => !selected.has(model)) ? (
          <button type="button" className="btn btn-ghost btn-xs" onClick={() => select(found, true)}>
            {t("editor.price.selectAll", { count: found.length })}
          </button>
        ) : null}
        {selected.size > 0 ? (
          <button type="button" className="btn btn-ghost btn-xs" onClick={() => setSelected(new Set())}>
            {t("editor.price.selectNone", { count: selected.size })}
          </button>
        ) : null}
      </div>
      <PriceBatch
        selected={selected}
        onApply={(changes) => {
          write(changes);
          setSelected(new Set());
        }}
      />
      {shown.length === 0 ? <p className="py-4 text-dense text-muted">{t("editor.price.noMatch")}</p> : null}
      <ul aria-label={t("editor.price.models")}>
        {shown.map((model) => (
          <PriceRow
            key={`${unit} ${model}`}
            model={model}
            cells={cellsOf(tables, model)}
            unit={unit}
            perRatio={perRatio}
            isSelected={selected.has(model)}
            onSelect={(isOn) => select([model], isOn)}
            onChange={(cells) => {
              onKeep?.(model, true);
              write(new Map([[model, cells]]));
            }}
            onRemove={onKeep ? () => remove(model) : undefined}
          />
        ))}
      </ul>
      <Pagination
        page={at}
        pageSize={pageSize}
        total={found.length}
        shown={shown.length}
        onPage={setPage}
        onPageSize={(next) => {
          setPageSize(next);
          setPage(1);
        }}
      />
    </>
  );
}

interface FilterBarProps {
  found: ReturnType<typeof useFound>;
  unit: PriceUnit;
  onUnit: (unit: PriceUnit) => void;
  /** What is shown begins anew. */
  onFilter: () => void;
}

function FilterBar({ found, unit, onUnit, onFilter }: FilterBarProps) {
  const t = useT();
  const { search, setSearch, billing, setBilling } = found;
  return (
    <div className="mb-2 flex flex-wrap items-center gap-2">
      <input
        type="search"
        className="input input-sm w-full sm:w-64"
        aria-label={t("editor.price.search")}
        placeholder={t("editor.price.search")}
        value={search}
        onChange={(event) => {
          setSearch(event.target.value);
          onFilter();
        }}
      />
      <select
        className="select select-sm w-36"
        aria-label={t("price.billing")}
        value={billing}
        onChange={(event) => {
          setBilling(event.target.value as Billing);
          onFilter();
        }}
      >
        <option value="">{t("editor.price.anyBilling")}</option>
        <option value="tokens">{t("price.perToken")}</option>
        <option value="call">{t("price.perCall")}</option>
      </select>
      <span className="join sm:ml-auto" role="group" aria-label={t("editor.price.unit")}>
        {(["dollars", "ratio"] as const).map((each) => (
          <button
            key={each}
            type="button"
            className="btn btn-sm btn-default join-item"
            aria-pressed={unit === each}
            onClick={() => onUnit(each)}
          >
            {t(`editor.price.unit.${each}`)}
          </button>
        ))}
      </span>
    </div>
  );
}
