// The type of a channel as a searchable list with groups: OpenAI-shaped, own protocol, tasks.
// Refuses free text: what is not chosen from the list is put back.
import { ChevronsUpDown } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import type { KeyboardEvent } from "react";
import { offeredProviders, providerForm } from "../../../src/shared/provider-forms.ts";
import type { ProviderForm } from "../../../src/shared/provider-forms.ts";
import type { Form } from "../../lib/form.ts";
import { language, useT } from "../../lib/i18n.ts";
import { Field } from "../../ui/form.tsx";
import type { ChannelValues } from "./values.ts";

function matches(form: ProviderForm, search: string): boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const text = `${form.label.zh} ${form.label.en} ${form.id} ${form.baseUrl}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

export interface TypeFieldProps {
  form: Form<ChannelValues>;
  onPick: (type: number) => void;
}

/** A combobox over the provider types: what is typed, what it finds, and which of that the keys point at. */
function useTypeSearch({ form, onPick }: TypeFieldProps) {
  /** undefined: the list is closed. */
  const [search, setSearch] = useState<string>();
  const [at, setAt] = useState(0);
  const isOpen = search !== undefined;
  const current = providerForm(form.values.type);
  const known = offeredProviders();
  // Of a channel from elsewhere: its type is kept, though nobody may choose it anew.
  const all = current && !known.includes(current) ? [current, ...known] : known;
  const found = isOpen ? all.filter((each) => matches(each, search)) : [];
  const close = () => setSearch(undefined);
  const open = () => {
    if (isOpen) return;
    setSearch("");
    const chosen = all.findIndex((each) => each.id === form.values.type);
    setAt(Math.max(0, chosen));
  };
  const pick = (type: ProviderForm | undefined) => {
    close();
    if (type && type.id !== form.values.type) onPick(type.id);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.nativeEvent.isComposing || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen) open();
      else {
        const by = event.key === "ArrowDown" ? 1 : -1;
        setAt((at + by + found.length) % Math.max(1, found.length));
      }
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (isOpen) pick(found[at]);
      else open();
    } else if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };
  const type = (text: string) => {
    setSearch(text);
    setAt(0);
  };
  return { search, isOpen, current, found, active: found[at], open, close, pick, type, onKeyDown };
}

export function TypeField({ form, onPick }: TypeFieldProps) {
  const t = useT();
  const id = useId();
  const search = useTypeSearch({ form, onPick });
  const { isOpen, active } = search;
  const name = search.current?.label[language.value] ?? `#${form.values.type}`;
  return (
    <Field form={form} name="type" label={t("channel.type")}>
      {(control) => (
        <div className="relative">
          <div className="input">
            <input
              {...control}
              role="combobox"
              aria-expanded={isOpen}
              aria-controls={`${id}-list`}
              aria-autocomplete="list"
              aria-activedescendant={isOpen && active ? `${id}-${active.id}` : undefined}
              className="grow"
              autoComplete="off"
              spellCheck={false}
              value={search.search ?? name}
              placeholder={name}
              onClick={search.open}
              onChange={(event) => search.type(event.target.value)}
              onBlur={() => {
                search.close();
                control.onBlur();
              }}
              onKeyDown={search.onKeyDown}
            />
            <ChevronsUpDown aria-hidden size={14} className="text-muted" />
          </div>
          {isOpen ? (
            <TypeList
              id={id}
              found={search.found}
              active={active}
              chosen={form.values.type}
              onPick={search.pick}
            />
          ) : null}
        </div>
      )}
    </Field>
  );
}

interface TypeListProps {
  id: string;
  found: readonly ProviderForm[];
  /** The one that Enter takes. */
  active: ProviderForm | undefined;
  chosen: number;
  onPick: (type: ProviderForm) => void;
}

function TypeList({ id, found, active, chosen, onPick }: TypeListProps) {
  const t = useT();
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [active]);
  return (
    <div
      ref={list}
      id={`${id}-list`}
      role="listbox"
      aria-label={t("channel.type")}
      className="menu absolute inset-x-0 top-full z-20 mt-1 max-h-80 overflow-y-auto rounded-box border border-base-300 bg-base-100 floating"
    >
      {found.length === 0 ? <p className="p-2 text-xs text-muted">{t("channel.typeNone")}</p> : null}
      {(["openai", "own", "tasks"] as const).map((group) => {
        const members = found.filter((each) => each.group === group);
        return members.length === 0 ? null : (
          <ul key={group} role="group" aria-label={t(`channel.typeGroup.${group}`)}>
            <li role="none" aria-hidden className="menu-title pt-1.5">
              {t(`channel.typeGroup.${group}`)}
            </li>
            {members.map((each) => (
              <li
                key={each.id}
                id={`${id}-${each.id}`}
                role="option"
                aria-selected={active === each}
                aria-current={each.id === chosen || undefined}
                // Before the field loses the focus.
                onMouseDown={(event) => {
                  event.preventDefault();
                  onPick(each);
                }}
              >
                <div className={active === each ? "menu-active" : undefined}>
                  <span>
                    {each.label[language.value]}
                    {each.status === "legacy" ? (
                      <span className="text-muted"> · {t("channel.typeLegacy")}</span>
                    ) : null}
                  </span>
                </div>
              </li>
            ))}
          </ul>
        );
      })}
    </div>
  );
}
