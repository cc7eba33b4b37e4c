// Groups of users in one table: ratio, and whether and under what words users may choose it; two options beside their JSON.
// Refuses to hide a group that has no ratio: its calls cost as if the ratio were 1.
import { Plus, X } from "lucide-react";
import { useId, useRef, useState } from "react";
import { useT } from "../../../lib/i18n.ts";
import { parseMap, writeMap } from "../../../lib/json-map.ts";
import { announce } from "../../../lib/toasts.ts";
import type { OptionPanelProps } from "./panel-props.ts";
import { JsonText, laidOut, newId, TableOrText } from "./json-beside.tsx";
import { FailureLine } from "./panel-block.tsx";

const RATIO = "GroupRatio";
const USABLE = "UserUsableGroups";
export const GROUP_KEYS = [RATIO, USABLE] as const;

interface GroupRow {
  id: number;
  group: string;
  /** As typed; "": none of its own. */
  ratio: string;
  isUsable: boolean;
  description: string;
}

interface Texts {
  ratio: string;
  usable: string;
}

function readGroups({ ratio, usable }: Texts): GroupRow[] | undefined {
  const ratios = parseMap(ratio);
  const words = parseMap(usable);
  if (ratios.problem || words.problem) return undefined;
  const rows = new Map<string, GroupRow>();
  for (const { key, json } of ratios.entries) {
    const value = JSON.parse(json) as unknown;
    if (typeof value !== "number" && typeof value !== "string") return undefined;
    rows.set(key, { id: newId(), group: key, ratio: String(value), isUsable: false, description: "" });
  }
  for (const { key, json } of words.entries) {
    const value = JSON.parse(json) as unknown;
    if (typeof value !== "string") return undefined;
    const row = rows.get(key) ?? { id: newId(), group: key, ratio: "", isUsable: true, description: "" };
    rows.set(key, { ...row, isUsable: true, description: value });
  }
  return [...rows.values()];
}

const isRatio = (text: string) => /^(\d+\.?\d*|\.\d+)$/.test(text.trim());

/** What is no number is kept as it was typed: the server names the group. */
const ratioJson = (text: string) => (isRatio(text) ? String(Number(text)) : JSON.stringify(text));

function writeGroups(rows: readonly GroupRow[], before: Texts): Texts {
  const named = rows.filter(({ group }) => group.trim() !== "");
  const textOf = (entries: { key: string; json: string }[], old: string) => {
    const text = entries.length === 0 ? "{}" : writeMap(entries);
    // What says the same stays as it was stored: it is no change.
    return laidOut(text) === laidOut(old) ? old : text;
  };
  const ratios = named.filter(({ ratio }) => ratio.trim() !== "");
  const usable = named.filter(({ isUsable }) => isUsable);
  return {
    ratio: textOf(
      ratios.map(({ group, ratio }) => ({ key: group.trim(), json: ratioJson(ratio) })),
      before.ratio,
    ),
    usable: textOf(
      usable.map(({ group, description }) => ({ key: group.trim(), json: JSON.stringify(description) })),
      before.usable,
    ),
  };
}

/** The rows over both texts; made anew only when somebody else changed one of them. */
function useGroups({ value, onChange }: OptionPanelProps) {
  const texts: Texts = { ratio: value(RATIO), usable: value(USABLE) };
  const state = useRef<{ texts: Texts; rows: GroupRow[] | undefined }>(undefined);
  const [, redraw] = useState(0);
  const known = state.current?.texts;
  if (known?.ratio !== texts.ratio || known.usable !== texts.usable)
    state.current = { texts, rows: readGroups(texts) };
  return {
    texts,
    rows: state.current?.rows,
    setRows: (rows: GroupRow[]) => {
      const next = writeGroups(rows, texts);
      state.current = { texts: next, rows };
      redraw((count) => count + 1);
      if (next.ratio !== texts.ratio) onChange(RATIO, next.ratio);
      if (next.usable !== texts.usable) onChange(USABLE, next.usable);
    },
  };
}

export function GroupsPanel(panel: OptionPanelProps) {
  const t = useT();
  const { failureOf, onChange, rows: options } = panel;
  const { texts, rows, setRows } = useGroups(panel);
  const [isText, setText] = useState(false);
  const label = t("editor.groups.title");
  if (options.some(({ key, isLong }) => isLong && (key === RATIO || key === USABLE)))
    return <div className="skeleton h-24" aria-hidden />;
  return (
    <div id={RATIO} data-option={RATIO} className="setting-line">
      <div id={USABLE} data-option={USABLE}>
        <p className="font-medium">{label}</p>
        <p className="setting-help mb-2 text-dense text-muted">
          {t("editor.groups.help")}{" "}
          <a className="link" href="/prices?section=groups">
            {t("editor.groups.desk")}
          </a>
        </p>
        <TableOrText label={label} isReadable={rows !== undefined} isText={isText} onText={setText}>
          {rows === undefined || isText ? (
            <>
              {(
                [
                  [RATIO, texts.ratio],
                  [USABLE, texts.usable],
                ] as const
              ).map(([key, text]) => (
                <div key={key} className="mb-3">
                  <p className="mb-1 text-dense font-semibold">{t(`option.title.${key}`)}</p>
                  <JsonText
                    label={t(`option.title.${key}`)}
                    value={text}
                    onChange={(next) => onChange(key, next)}
                    isInvalid={failureOf(key) !== undefined}
                  />
                </div>
              ))}
            </>
          ) : (
            <GroupTable rows={rows} setRows={setRows} />
          )}
        </TableOrText>
        {GROUP_KEYS.map((key) => (
          <FailureLine key={key} text={failureOf(key)} />
        ))}
      </div>
    </div>
  );
}

/** What is to be said of a row: a key of the dictionary, and whether it must be mended. */
function toldOf(row: GroupRow, isTwice: boolean): { key: string; isNote?: boolean } | undefined {
  if (isTwice) return { key: "editor.twice" };
  if (row.group.trim() === "") return undefined;
  if (row.ratio.trim() === "") return { key: "editor.groups.noRatio", isNote: true };
  return isRatio(row.ratio) ? undefined : { key: "editor.number" };
}

function GroupTable({ rows, setRows }: { rows: GroupRow[]; setRows: (rows: GroupRow[]) => void }) {
  const t = useT();
  const id = useId();
  const list = useRef<HTMLUListElement>(null);
  const names = rows.map(({ group }) => group.trim());
  const change = (at: number, patch: Partial<GroupRow>) =>
    setRows(rows.map((row, index) => (index === at ? { ...row, ...patch } : row)));
  return (
    <>
      <ul ref={list}>
        {rows.map((row, at) => {
          const who = row.group.trim() || String(at + 1);
          const told = toldOf(row, who === row.group.trim() && names.indexOf(who) !== at);
          return (
            <li key={row.id} className="border-b border-base-300 py-2">
              <div className="grid grid-cols-[minmax(0,1fr)_5rem_2rem] items-center gap-2 sm:grid-cols-[10rem_6rem_auto_minmax(0,1fr)_2rem]">
                <input
                  className="input mono"
                  aria-label={t("editor.groups.name", { row: at + 1 })}
                  aria-invalid={told?.key === "editor.twice" || undefined}
                  placeholder={t("editor.groups.namePlaceholder")}
                  autoComplete="off"
                  spellCheck={false}
                  value={row.group}
                  onChange={(event) => change(at, { group: event.target.value })}
                />
                <span className="input">
                  <span className="text-muted" aria-hidden>
                    ×
                  </span>
                  <input
                    className="grow min-w-0 text-right tabular-nums"
                    aria-label={t("editor.groups.ratio", { name: who })}
                    aria-invalid={told?.key === "editor.number" || undefined}
                    aria-describedby={told ? `${id}-${row.id}` : undefined}
                    inputMode="decimal"
                    autoComplete="off"
                    placeholder="1"
                    value={row.ratio}
                    onChange={(event) => change(at, { ratio: event.target.value })}
                  />
                </span>
                <button
                  type="button"
                  className="btn btn-ghost btn-square btn-sm sm:col-start-5 sm:row-start-1"
                  aria-label={t("form.map.remove", { key: who })}
                  title={t("form.map.remove", { key: who })}
                  onClick={() => {
                    announce("form.map.removed", { key: who });
                    setRows(rows.filter((_, index) => index !== at));
                    setTimeout(() => document.getElementById(`${id}-add`)?.focus());
                  }}
                >
                  <X aria-hidden />
                </button>
                <label className="flex min-h-8 cursor-pointer items-center gap-2 text-dense whitespace-nowrap max-sm:col-span-full sm:col-start-3 sm:row-start-1">
                  <input
                    type="checkbox"
                    className="checkbox"
                    aria-label={t("editor.groups.usableNamed", { name: who })}
                    checked={row.isUsable}
                    onChange={(event) => change(at, { isUsable: event.target.checked })}
                  />
                  {t("editor.groups.usable")}
                </label>
                <input
                  className="input max-sm:col-span-full sm:col-start-4 sm:row-start-1"
                  aria-label={t("editor.groups.description", { name: who })}
                  placeholder={t("editor.groups.descriptionPlaceholder")}
                  disabled={!row.isUsable}
                  autoComplete="off"
                  value={row.description}
                  onChange={(event) => change(at, { description: event.target.value })}
                />
              </div>
              {told === undefined ? null : (
                <p
                  id={`${id}-${row.id}`}
                  className={`mt-1 text-xs ${told.isNote ? "text-muted" : "text-error"}`}
                  role={told.isNote ? undefined : "alert"}
                >
                  {t(told.key, { name: who })}
                </p>
              )}
            </li>
          );
        })}
      </ul>
      <button
        id={`${id}-add`}
        type="button"
        className="btn btn-ghost btn-sm mt-1"
        onClick={() => {
          setRows([...rows, { id: newId(), group: "", ratio: "1", isUsable: false, description: "" }]);
          setTimeout(() => list.current?.querySelector<HTMLElement>("li:last-child input")?.focus());
        }}
      >
        <Plus aria-hidden size={14} />
        {t("editor.groups.add")}
      </button>
    </>
  );
}
