// Free text and pills above a list; the address holds everything, in the API's own names.
// On phones what is beside the free text folds behind one button with the number of pills.
// Refuses to filter while an input method composes; Enter applies, Backspace on empty takes the last pill away.
import { ListFilter, Plus, Search, X } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import type { ReactNode } from "react";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import type { Query } from "../lib/url-state.ts";
import { Menu } from "./menu.tsx";
import { TabCount } from "./page-header.tsx";

export interface FilterField {
  /** Name of the query parameter. */
  name: string;
  /** Translated. */
  label: string;
  /** Fixed values; without them the value is typed. */
  choices?: readonly { value: string; label: string }[];
  placeholder?: string;
  inputMode?: "numeric" | "decimal" | "text";
  /** How people write the value where the address has it otherwise: dollars for quota units. */
  written?: {
    show: (value: string) => string;
    /** undefined: it is no value, and removes the filter. */
    read: (typed: string) => string | undefined;
  };
}

export interface FilterBarProps {
  /** Name of the parameter of the free text; absent: pills only. */
  searchName?: string;
  searchLabel?: string;
  /** What may be typed, where that is not plain: wildcards. */
  searchHint?: string;
  fields: readonly FilterField[];
  query: Query;
  /** Usually setFilters of useTableQuery. */
  onChange: (patch: Record<string, string | undefined>) => void;
  /** Time range, switches; stands at the end of the row. */
  children?: ReactNode;
}

export function FilterBar({
  searchName,
  searchLabel,
  searchHint,
  fields,
  query,
  onChange,
  children,
}: FilterBarProps) {
  const t = useT();
  const applied = searchName === undefined ? "" : (query[searchName] ?? "");
  const [text, setText] = useState(applied);
  const [isUnfolded, setUnfolded] = useState(false);
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => setText(applied), [applied]);
  useShortcut(
    searchName === undefined
      ? undefined
      : { keys: "/", label: "table.key.filter", run: () => input.current?.focus() },
  );

  const active = fields.filter(({ name }) => (query[name] ?? "") !== "");
  const label = searchLabel ?? t("table.search");
  const apply = () => {
    if (searchName !== undefined && text.trim() !== applied)
      onChange({ [searchName]: text.trim() || undefined });
  };

  return (
    <div className="mb-3 flex flex-wrap items-center gap-2" role="search">
      {searchName === undefined ? null : (
        <div className="input h-8 w-80 max-sm:w-0 max-sm:grow">
          <Search aria-hidden size={14} className="text-muted" />
          <input
            ref={input}
            type="search"
            className="grow"
            aria-label={label}
            placeholder={searchHint ?? label}
            title={searchHint}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onBlur={apply}
            onKeyDown={(event) => {
              if (event.nativeEvent.isComposing) return;
              if (event.key === "Enter") apply();
              else if (event.key === "Escape" && text !== "") {
                event.stopPropagation();
                setText("");
                onChange({ [searchName]: undefined });
              } else if (event.key === "Backspace" && text === "") {
                const last = active.at(-1);
                if (last) onChange({ [last.name]: undefined });
              }
            }}
          />
        </div>
      )}
      {fields.length > 0 || children ? (
        <button
          type="button"
          className="btn btn-default px-3 sm:hidden"
          aria-expanded={isUnfolded}
          aria-controls={id}
          onClick={() => setUnfolded(!isUnfolded)}
        >
          <ListFilter aria-hidden size={16} />
          {t("table.key.filter")}
          {active.length > 0 ? <TabCount count={active.length} /> : null}
        </button>
      ) : null}
      <div id={id} className="filter-fold" data-open={isUnfolded ? "" : undefined}>
        <Pills fields={fields} query={query} onChange={onChange} />
        {active.length > 0 || applied !== "" ? (
          <button
            type="button"
            className="btn btn-sm btn-ghost text-muted"
            onClick={() =>
              onChange(
                Object.fromEntries(
                  [...active.map(({ name }) => name), ...(searchName ? [searchName] : [])].map((name) => [
                    name,
                    undefined,
                  ]),
                ),
              )
            }
          >
            {t("table.clear")}
          </button>
        ) : null}
        {children ? (
          <div className="ml-auto flex flex-wrap items-center gap-2 max-sm:ml-0">{children}</div>
        ) : null}
      </div>
    </div>
  );
}

/** The filters that are set, and a menu of those that may be. */
function Pills({ fields, query, onChange }: Pick<FilterBarProps, "fields" | "query" | "onChange">) {
  const t = useT();
  const [editing, setEditing] = useState<string>();
  const isShown = ({ name }: FilterField) => (query[name] ?? "") !== "" || name === editing;
  const free = fields.filter((field) => !isShown(field));
  return (
    <>
      {fields.filter(isShown).map((field) => (
        <Pill
          key={field.name}
          field={field}
          value={query[field.name] ?? ""}
          isEditing={editing === field.name}
          onEdit={() => setEditing(field.name)}
          onDone={(value) => {
            setEditing(undefined);
            if ((value ?? "") !== (query[field.name] ?? "")) onChange({ [field.name]: value || undefined });
          }}
        />
      ))}
      {free.length > 0 ? (
        <Menu
          label={t("table.addFilter")}
          className="btn btn-sm btn-ghost text-muted"
          groups={[
            free.map(({ name, label: text }) => ({
              id: name,
              label: text,
              onSelect: () => setTimeout(() => setEditing(name)),
            })),
          ]}
        >
          <Plus aria-hidden size={14} />
          {t("table.addFilter")}
        </Menu>
      ) : null}
    </>
  );
}

interface PillProps {
  field: FilterField;
  value: string;
  isEditing: boolean;
  onEdit: () => void;
  /** undefined removes the filter. */
  onDone: (value: string | undefined) => void;
}

function Pill({ field, value, isEditing, onEdit, onDone }: PillProps) {
  const t = useT();
  const { written } = field;
  const shown =
    field.choices?.find((each) => each.value === value)?.label ??
    (written && value !== "" ? written.show(value) : value);
  const read = (typed: string) => (written ? written.read(typed.trim()) : typed.trim());
  if (!isEditing) {
    return (
      <span className="filter-pill">
        <button
          type="button"
          className="cursor-pointer"
          onClick={onEdit}
          title={t("table.changeFilter", { field: field.label })}
        >
          <span className="text-muted">{field.label}:</span> {shown}
        </button>
        <button
          type="button"
          className="btn btn-circle btn-ghost btn-xs"
          aria-label={t("table.removeFilter", { field: field.label })}
          onClick={() => onDone(undefined)}
        >
          <X aria-hidden size={12} />
        </button>
      </span>
    );
  }
  return (
    <span className="filter-pill border-primary pr-2">
      <span className="text-muted">{field.label}:</span>
      {field.choices ? (
        <select
          autoFocus

          aria-label={field.label}
          defaultValue={value}
          onChange={(event) => onDone(event.target.value)}
          onBlur={(event) => onDone(event.target.value)}
        >
          <option value="">{t("table.choose")}</option>
          {field.choices.map((each) => (
            <option key={each.value} value={each.value}>
              {each.label}
            </option>
          ))}
        </select>
      ) : (
        <input
          autoFocus

          aria-label={field.label}
          defaultValue={shown}
          placeholder={field.placeholder}
          inputMode={field.inputMode}
          onBlur={(event) => onDone(read(event.target.value))}
          onKeyDown={(event) => {
            if (event.nativeEvent.isComposing) return;
            if (event.key === "Enter") onDone(read(event.currentTarget.value));
            else if (event.key === "Escape") {
              event.stopPropagation();
              onDone(value);
            }
          }}
        />
      )}
    </span>
  );
}
