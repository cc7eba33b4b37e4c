// One model of the price table: how it is billed, and its prices in dollars or ratios, typed where they stand.
import { X } from "lucide-react";
import { useId, useState } from "react";
import { formatDollars } from "../../../lib/format.ts";
import { useT } from "../../../lib/i18n.ts";
import { cellsAfter, shownCell, switchedCells, TOKEN_FIELDS, typedCell } from "./price-tables.ts";
import type { ModelCells, PriceUnit, TokenField } from "./price-tables.ts";

export interface PriceRowProps {
  model: string;
  cells: ModelCells;
  unit: PriceUnit;
  /** Dollars per million tokens at a ratio of 1. */
  perRatio: number;
  isSelected: boolean;
  onSelect: (isSelected: boolean) => void;
  onChange: (cells: ModelCells) => void;
  /** Takes the model out of every map; undefined: nothing to take out. */
  onRemove: (() => void) | undefined;
}

/** What is being typed, and what the model had before; over once the row is left. */
interface Draft {
  before: ModelCells;
  typed: Partial<Record<TokenField, string>>;
  price?: string;
}

function problemOf(cells: ModelCells): string | undefined {
  const texts = Object.values(cells).filter((cell) => typeof cell === "string");
  if (texts.length === 0) return undefined;
  return texts.some((text) => text.endsWith(" / 0")) ? "price.freeInput" : "editor.number";
}

export function PriceRow(props: PriceRowProps) {
  const { model, cells, unit, perRatio, isSelected, onSelect, onChange, onRemove } = props;
  const t = useT();
  const id = useId();
  const [draft, setDraft] = useState<Draft>();
  const isPerCall = cells.ModelPrice !== undefined;
  const hasPrice = isPerCall || cells.ModelRatio !== undefined;
  const problem = problemOf(cells);
  const now: Draft = draft ?? { before: cells, typed: {} };
  const type = (field: TokenField, text: string) => {
    const typed = { ...now.typed, [field]: text };
    setDraft({ ...now, typed });
    onChange(cellsAfter({ before: now.before, typed, unit, perRatio }));
  };
  const input = cells.ModelRatio;
  const notes = [
    !hasPrice ? t("editor.price.unpriced") : "",
    !isPerCall && typeof input === "number"
      ? unit === "dollars"
        ? t("editor.price.asRatio", { ratio: String(Number(input.toPrecision(6))) })
        : t("editor.price.asDollars", { price: formatDollars(input * perRatio) })
      : "",
  ].filter((note) => note !== "");
  return (
    <li
      className="grid grid-cols-[1.75rem_minmax(0,1fr)_2rem] items-start gap-x-2 gap-y-2 border-b border-base-300 py-2"
      onBlur={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget)) setDraft(undefined);
      }}
    >
      <label className="flex min-h-8 items-center justify-center">
        <input
          type="checkbox"
          className="checkbox"
          aria-label={t("editor.price.select", { model })}
          checked={isSelected}
          onChange={(event) => onSelect(event.target.checked)}
        />
      </label>
      <div className="grid min-w-0 gap-2 lg:grid-cols-[minmax(0,1fr)_7.5rem_minmax(0,26rem)]">
        <div className="min-w-0">
          <p className="mono pt-1 break-all">{model}</p>
          {notes.length > 0 ? <p className="text-xs text-muted">{notes.join(" · ")}</p> : null}
        </div>
        <label className="min-w-0">
          <span className="block truncate text-xs text-muted">{t("price.billing")}</span>
          <select
            className="select"
            aria-label={t("editor.price.billingOf", { model })}
            value={isPerCall ? "call" : "tokens"}
            onChange={(event) => {
              setDraft(undefined);
              onChange(switchedCells(cells, event.target.value === "call"));
            }}
          >
            <option value="tokens">{t("price.perToken")}</option>
            <option value="call">{t("price.perCall")}</option>
          </select>
        </label>
        <div className="grid grid-cols-2 gap-2 sm:grid-cols-4">
          {isPerCall ? (
            <PriceCell
              label={t("price.call")}
              model={model}
              isDollars
              value={draft?.price ?? String(cells.ModelPrice)}
              isWrong={typeof cells.ModelPrice === "string"}
              describedBy={problem === undefined ? undefined : id}
              onChange={(text) => {
                setDraft({ ...now, price: text });
                // Nothing typed yet is no price of nothing: the model stays billed by call.
                onChange({ ModelPrice: typedCell(text) ?? "" });
              }}
            />
          ) : (
            TOKEN_FIELDS.map(([field, key]) => (
              <PriceCell
                key={field}
                label={t(`editor.price.${unit}.${field}`)}
                model={model}
                isDollars={unit === "dollars"}
                value={now.typed[field] ?? shownCell(draft?.before ?? cells, field, { unit, perRatio })}
                isWrong={typeof cells[key] === "string"}
                placeholder={field === "output" && hasPrice ? t("editor.price.byRule") : undefined}
                describedBy={problem === undefined ? undefined : id}
                onChange={(text) => type(field, text)}
              />
            ))
          )}
        </div>
        {problem === undefined ? null : (
          <p id={id} className="text-xs text-error lg:col-span-3" role="alert">
            {t(problem)}
          </p>
        )}
      </div>
      {onRemove ? (
        <button
          type="button"
          className="btn btn-ghost btn-square btn-sm"
          aria-label={t("form.map.remove", { key: model })}
          title={t("form.map.remove", { key: model })}
          onClick={onRemove}
        >
          <X aria-hidden />
        </button>
      ) : null}
    </li>
  );
}

interface PriceCellProps {
  label: string;
  model: string;
  isDollars: boolean;
  value: string;
  isWrong: boolean;
  placeholder?: string | undefined;
  describedBy: string | undefined;
  onChange: (text: string) => void;
}

function PriceCell({
  label,
  model,
  isDollars,
  value,
  isWrong,
  placeholder,
  describedBy,
  onChange,
}: PriceCellProps) {
  const t = useT();
  return (
    <label className="min-w-0">
      <span className="block truncate text-xs text-muted">{label}</span>
      <span className="input" aria-invalid={isWrong || undefined}>
        <span className="text-muted" aria-hidden>
          {isDollars ? "$" : "×"}
        </span>
        <input
          className="grow min-w-0 tabular-nums"
          aria-label={t("editor.price.cell", { field: label, model })}
          aria-invalid={isWrong || undefined}
          aria-describedby={describedBy}
          inputMode="decimal"
          autoComplete="off"
          placeholder={placeholder}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      </span>
    </label>
  );
}
