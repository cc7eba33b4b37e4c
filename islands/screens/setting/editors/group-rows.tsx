// One row for each group that has a rule of its own: named by its group, added and removed here; its editor draws the rest of it.
// Refuses nothing by itself: a group that stands there twice is said, the server decides.
import { Plus, X } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import type { ReactNode } from "react";
import { api, call } from "../../../lib/api.ts";
import { useT } from "../../../lib/i18n.ts";
import { announce } from "../../../lib/toasts.ts";
import { newId } from "./json-beside.tsx";
import { FailureLine } from "./panel-block.tsx";

export interface GroupRow {
  id: number;
  /** As typed. */
  group: string;
}

interface GroupRowsProps<Row extends GroupRow> {
  /** Undefined: the text holds something else. */
  rows: readonly Row[] | undefined;
  setRows: (rows: Row[]) => void;
  /** A new row, without a group. */
  fresh: (id: number) => Row;
  groups: readonly string[];
  disabled?: boolean | undefined;
  words: { none: string; add: string; group: (row: number) => string };
  /** What stands in a row; `group` is the field of its name, `who` what to call it. */
  children: (at: {
    row: Row;
    who: string;
    group: ReactNode;
    change: (part: Partial<Row>) => void;
  }) => ReactNode;
}

/** Names of the groups there are, for suggestions; none where they cannot be had. */
export function useGroupNames(): readonly string[] {
  const [names, setNames] = useState<readonly string[]>([]);
  useEffect(() => {
    call(api.group.get())
      .then(setNames)
      .catch(() => undefined);
  }, []);
  return names;
}

export function GroupRows<Row extends GroupRow>(props: GroupRowsProps<Row>) {
  const { rows, setRows, fresh, groups, disabled, words, children } = props;
  const t = useT();
  const id = useId();
  const list = useRef<HTMLUListElement>(null);
  const names = rows?.map(({ group }) => group.trim()) ?? [];
  const change = (at: number, next: Row) =>
    setRows((rows ?? []).map((row, index) => (index === at ? next : row)));
  const remove = (at: number) => {
    announce("form.map.removed", { key: names[at] ?? "" });
    setRows((rows ?? []).filter((_, index) => index !== at));
    setTimeout(() => document.getElementById(`${id}-add`)?.focus());
  };
  const add = () => {
    setRows([...(rows ?? []), fresh(newId())]);
    setTimeout(() => list.current?.querySelector<HTMLElement>("li:last-child input")?.focus());
  };
  return (
    <>
      <datalist id={`${id}-groups`}>
        {groups.map((group) => (
          <option key={group} value={group} />
        ))}
      </datalist>
      {rows?.length === 0 ? <p className="text-dense text-muted">{words.none}</p> : null}
      <ul ref={list}>
        {rows?.map((row, at) => {
          const name = row.group.trim();
          const who = name || String(at + 1);
          const isTwice = name !== "" && names.indexOf(name) !== at;
          const removal = t("form.map.remove", { key: who });
          const group = (
            <input
              className="input input-sm mono w-36"
              aria-label={words.group(at + 1)}
              aria-invalid={isTwice || undefined}
              list={`${id}-groups`}
              autoComplete="off"
              spellCheck={false}
              disabled={disabled}
              value={row.group}
              onChange={(event) => change(at, { ...row, group: event.target.value })}
            />
          );
          return (
            <li key={row.id} className="flex items-start gap-2 border-b border-base-300 py-2">
              <div className="min-w-0 grow">
                {children({ row, who, group, change: (part) => change(at, { ...row, ...part }) })}
                {isTwice ? <FailureLine text={t("editor.twice", { name })} /> : null}
              </div>
              <button
                type="button"
                className="btn btn-ghost btn-square btn-sm flex-none"
                aria-label={removal}
                title={removal}
                disabled={disabled}
                onClick={() => remove(at)}
              >
                <X aria-hidden />
              </button>
            </li>
          );
        })}
      </ul>
      <button
        id={`${id}-add`}
        type="button"
        className="btn btn-ghost btn-sm mt-1"
        disabled={disabled}
        onClick={add}
      >
        <Plus aria-hidden size={14} />
        {words.add}
      </button>
    </>
  );
}
