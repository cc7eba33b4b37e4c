// A model's name with search: a combobox whose list is walked with the arrow keys.
// Refuses names that are not in the list: leaving the field brings the chosen one back.
import { ChevronsUpDown } from "lucide-react";
import { useId, useRef, useState } from "react";
import { formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";

/** No more names than these stand in the list at once: typing narrows it. */
const MOST_SHOWN = 100;

export interface ModelPickerProps {
  models: readonly string[];
  value: string;
  /** "Model", unless there are two of them. */
  label?: string;
  /** What a model costs; undefined where nobody knows yet. */
  priceOf: (model: string) => string | undefined;
  onChange: (model: string) => void;
}

export function ModelPicker({ models, value, label, priceOf, onChange }: ModelPickerProps) {
  const t = useT();
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  /** Undefined until something is typed: opening shows every model, not only the chosen one. */
  const [search, setSearch] = useState<string>();
  const [at, setAt] = useState(0);
  const words = (search ?? "").trim().toLowerCase();
  const all = words === "" ? models : models.filter((name) => name.toLowerCase().includes(words));
  const found = all.slice(0, MOST_SHOWN);
  const more = all.length - found.length;

  const show = () => {
    setOpen(true);
    setAt(Math.max(0, models.slice(0, MOST_SHOWN).indexOf(value)));
  };
  const close = () => {
    setOpen(false);
    setSearch(undefined);
  };
  const pick = (model: string | undefined) => {
    if (model !== undefined) onChange(model);
    close();
  };
  const move = (to: number) => {
    const next = Math.max(0, Math.min(found.length - 1, to));
    setAt(next);
    box.current?.querySelectorAll("[role=option]")[next]?.scrollIntoView({ block: "nearest" });
  };

  const onKeyDown = (event: React.KeyboardEvent) => {
    if (event.nativeEvent.isComposing || event.nativeEvent.keyCode === 229) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      if (isOpen) move(at + step);
      else show();
    } else if (event.key === "Enter" && isOpen) {
      event.preventDefault();
      pick(found[at]);
    } else if (event.key === "Escape" && isOpen) {
      // Only the list: a sheet around it stays.
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };

  return (
    <div ref={box} className="mb-4">
      <div className="mb-0.5 flex min-h-6 items-center gap-1">
        <label className="text-dense font-semibold" htmlFor={id}>
          {label ?? t("playground.model")}
        </label>
      </div>
      <div className="relative">
        <div className="input">
          <input
            id={id}
            role="combobox"
            className="grow"
            aria-expanded={isOpen}
            aria-controls={`${id}-list`}
            aria-autocomplete="list"
            aria-describedby={`${id}-price`}
            aria-activedescendant={isOpen && found[at] !== undefined ? `${id}-${at}` : undefined}
            placeholder={t("playground.searchModel")}
            autoComplete="off"
            spellCheck={false}
            value={search ?? value}
            onChange={(event) => {
              setSearch(event.target.value);
              setOpen(true);
              setAt(0);
            }}
            onFocus={(event) => event.target.select()}
            onClick={show}
            onKeyDown={onKeyDown}
            onBlur={close}
          />
          <ChevronsUpDown aria-hidden size={14} className="flex-none text-muted" />
        </div>
        <div
          hidden={!isOpen}
          className="absolute inset-x-0 z-20 mt-1 max-h-64 overflow-y-auto rounded-box border border-base-300 bg-base-100 p-1 floating"
        >
          <ul
            id={`${id}-list`}
            role="listbox"
            aria-label={label ?? t("playground.model")}
            className="menu p-0"
            hidden={found.length === 0}
          >
            {isOpen ? (
              <Options id={id} names={found} at={at} value={value} priceOf={priceOf} onPick={pick} />
            ) : null}
          </ul>
          {isOpen && (more > 0 || found.length === 0) ? (
            <p className="px-2 py-1.5 text-[13px] text-muted" role="status">
              {found.length === 0
                ? t("playground.noModelFound")
                : t("common.choices.more", { count: more, number: formatNumber(more) })}
            </p>
          ) : null}
        </div>
      </div>
      <p id={`${id}-price`} className="mt-1 min-h-4 text-xs text-muted tabular-nums">
        {priceOf(value)}
      </p>
    </div>
  );
}

interface OptionsProps {
  id: string;
  names: readonly string[];
  /** The one that Enter takes. */
  at: number;
  value: string;
  priceOf: (model: string) => string | undefined;
  onPick: (name: string) => void;
}

function Options({ id, names, at, value, priceOf, onPick }: OptionsProps) {
  return names.map((name, index) => (
    <li
      key={name}
      id={`${id}-${index}`}
      role="option"
      aria-selected={name === value}
      aria-current={name === value}
      // The field keeps the focus, so that leaving it does not close the list before the click.
      onMouseDown={(event) => event.preventDefault()}
      onClick={() => onPick(name)}
    >
      <div className={`text-dense ${index === at ? "menu-active" : ""}`}>
        <span className="min-w-0">
          <span className="block break-all">{name}</span>
          <span className={`block text-xs tabular-nums ${index === at ? "" : "text-muted"}`}>
            {priceOf(name)}
          </span>
        </span>
      </div>
    </li>
  ));
}
