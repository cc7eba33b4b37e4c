// The chat links as an ordered list: name and link, moved, tried with a sample key, begun from those of usual programs.
// Refuses schemes that run script or read local files, before the server does.
import { ArrowDown, ArrowUp, ChevronDown, ExternalLink, Plus, X } from "lucide-react";
import { useId, useRef, useState } from "react";
import { refusedScheme } from "../../../../src/shared/chat-schemes.ts";
import { fillChatLink } from "../../../lib/chat-links.ts";
import { useT } from "../../../lib/i18n.ts";
import { afterPress } from "../../../lib/press.ts";
import { announce } from "../../../lib/toasts.ts";
import { Menu } from "../../../ui/menu.tsx";
import type { OptionEditorProps } from "../editor-props.ts";
import { CHAT_TEMPLATES } from "./chat-templates.ts";
import { besideOf, JsonBeside, newId, useRowsOf } from "./json-beside.tsx";

interface ChatRow {
  id: number;
  name: string;
  link: string;
}

function readChats(text: string): ChatRow[] | undefined {
  try {
    const list = JSON.parse(text.trim() === "" ? "[]" : text) as unknown;
    if (!Array.isArray(list)) return undefined;
    const rows = (list as unknown[]).map((each): ChatRow | undefined => {
      if (typeof each !== "object" || each === null || Array.isArray(each)) return undefined;
      const [[name, link] = ["", undefined], ...others] = Object.entries(each);
      return typeof link === "string" && others.length === 0 ? { id: newId(), name, link } : undefined;
    });
    return rows.every((row) => row !== undefined) ? rows : undefined;
  } catch {
    return undefined;
  }
}

const isBlank = ({ name, link }: ChatRow) => name.trim() === "" && link.trim() === "";

function writeChats(rows: readonly ChatRow[]): string {
  const links = rows.filter((row) => !isBlank(row)).map(({ name, link }) => ({ [name.trim()]: link.trim() }));
  return JSON.stringify(links, null, 2);
}

const CHATS = { read: readChats, write: writeChats };

interface Told {
  key: string;
  params?: Record<string, string>;
  /** Only something to know. */
  isNote?: boolean;
}

/** What is to be said of a row; undefined: nothing. */
function toldOf({ name, link }: ChatRow, isFirstOfName: boolean): Told | undefined {
  const scheme = refusedScheme(link);
  if (scheme !== undefined) return { key: "editor.chats.scheme", params: { scheme } };
  if (name.trim() === "") return { key: "editor.chats.noName" };
  if (link.trim() === "") return { key: "editor.chats.noLink" };
  if (fillChatLink(link, "sample").target === "broken") return { key: "editor.chats.broken" };
  if (!isFirstOfName) return { key: "editor.twice", params: { name: name.trim() }, isNote: true };
  if (!link.includes("{key}")) return { key: "editor.chats.noKey", isNote: true };
  if (!link.includes("{address}")) return { key: "editor.chats.noAddress", isNote: true };
  return undefined;
}

/** Nobody's key: what a program is opened with when its link is tried. */
const SAMPLE_KEY = "weir-test-key";

/** What hands and keyboard do to the list; the focus stays with the row that moved. */
function useChatRows(value: string, onChange: (text: string) => void) {
  const list = useRef<HTMLOListElement>(null);
  const { rows, setRows } = useRowsOf(value, onChange, CHATS);
  const [left, setLeft] = useState<ReadonlySet<number>>(new Set());
  const all = rows ?? [];
  const focus = (at: number, part: string) =>
    setTimeout(() =>
      list.current?.children[at]?.querySelector<HTMLElement>(`[data-part="${part}"]:not(:disabled)`)?.focus(),
    );
  return {
    list,
    rows,
    left,
    leave: (id: number) => afterPress(() => setLeft((before) => new Set(before).add(id))),
    change: (at: number, patch: Partial<ChatRow>) =>
      setRows(all.map((row, index) => (index === at ? { ...row, ...patch } : row))),
    add(name = "", link = "") {
      setRows([...all, { id: newId(), name, link }]);
      focus(all.length, "name");
    },
    remove(at: number) {
      announce("form.map.removed", { key: all[at]?.name ?? "" });
      setRows(all.filter((_, index) => index !== at));
      if (all.length > 1) focus(Math.min(at, all.length - 2), "remove");
    },
    /** `part`: what had the focus, where it was none of the two buttons. */
    move(at: number, by: -1 | 1, part?: string) {
      const to = at + by;
      const [row, other] = [all[at], all[to]];
      if (!row || !other) return;
      setRows(all.map((each, index) => (index === at ? other : index === to ? row : each)));
      announce("editor.chats.moved", { name: row.name, place: to + 1, count: all.length });
      const isAtEnd = to === 0 || to === all.length - 1;
      const button = (by === -1) === isAtEnd ? "down" : "up";
      focus(to, part ?? button);
    },
  };
}

export function Chats(props: OptionEditorProps) {
  const t = useT();
  const id = useId();
  const edit = useChatRows(props.value, props.onChange);
  const { rows } = edit;
  const label = t(`option.title.${props.option.key}`);
  return (
    <JsonBeside {...besideOf(props)} label={label} isReadable={rows !== undefined}>
      {rows?.length === 0 ? <p className="text-dense text-muted">{t("editor.chats.none")}</p> : null}
      <ol ref={edit.list} aria-label={label}>
        {rows?.map((row, at) => (
          <ChatLine
            key={row.id}
            row={row}
            at={at}
            count={rows.length}
            told={
              edit.left.has(row.id) && !isBlank(row)
                ? toldOf(row, rows.findIndex(({ name }) => name.trim() === row.name.trim()) === at)
                : undefined
            }
            edit={edit}
            disabled={props.disabled}
          />
        ))}
      </ol>
      <div className="mt-2 flex flex-wrap gap-2">
        <button
          id={`${id}-add`}
          type="button"
          className="btn btn-default btn-sm"
          disabled={props.disabled}
          onClick={() => edit.add()}
        >
          <Plus aria-hidden size={14} />
          {t("editor.chats.add")}
        </button>
        <Menu
          label={t("editor.chats.templates")}
          className="btn btn-default btn-sm"
          groups={[
            CHAT_TEMPLATES.map(({ name, link }) => ({
              id: name,
              label: name,
              onSelect: () => edit.add(name, link),
            })),
          ]}
        >
          {t("editor.chats.templates")}
          <ChevronDown aria-hidden size={14} />
        </Menu>
      </div>
    </JsonBeside>
  );
}

interface ChatLineProps {
  row: ChatRow;
  at: number;
  count: number;
  told: Told | undefined;
  edit: ReturnType<typeof useChatRows>;
  disabled: boolean | undefined;
}

function ChatLine({ row, at, count, told, edit, disabled }: ChatLineProps) {
  const t = useT();
  const id = useId();
  const who = row.name.trim() || String(at + 1);
  const { url, target } = fillChatLink(row.link, SAMPLE_KEY);
  const isWrong = told !== undefined && told.isNote !== true;
  const buttons = [
    ["up", ArrowUp, () => edit.move(at, -1), at === 0],
    ["down", ArrowDown, () => edit.move(at, 1), at === count - 1],
    ["remove", X, () => edit.remove(at), false],
  ] as const;
  return (
    <li
      className="border-b border-base-300 py-2"
      onKeyDown={(event) => {
        if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
        event.preventDefault();
        const part = event.target instanceof HTMLElement ? event.target.dataset["part"] : undefined;
        edit.move(at, event.key === "ArrowUp" ? -1 : 1, part);
      }}
      onBlur={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget)) edit.leave(row.id);
      }}
    >
      <div className="grid grid-cols-1 items-center gap-2 sm:grid-cols-[12rem_minmax(0,1fr)_auto]">
        <input
          data-part="name"
          className="input"
          aria-label={t("editor.chats.name", { row: at + 1 })}
          aria-invalid={told?.key === "editor.chats.noName" || undefined}
          placeholder={t("editor.chats.namePlaceholder")}
          autoComplete="off"
          disabled={disabled}
          value={row.name}
          onChange={(event) => edit.change(at, { name: event.target.value })}
        />
        <input
          data-part="link"
          className="input mono"
          aria-label={t("editor.chats.link", { row: at + 1 })}
          aria-invalid={(isWrong && told.key !== "editor.chats.noName") || undefined}
          aria-describedby={told === undefined ? undefined : `${id}-told`}
          placeholder="https://…{key}…{address}"
          autoComplete="off"
          spellCheck={false}
          disabled={disabled}
          value={row.link}
          onChange={(event) => edit.change(at, { link: event.target.value })}
        />
        <span className="flex justify-end gap-0.5">
          <button
            type="button"
            className="btn btn-ghost btn-sm"
            aria-label={t("editor.chats.tryNamed", { name: who })}
            disabled={target === "broken"}
            onClick={() => window.open(url, "_blank", "noopener,noreferrer")}
          >
            <ExternalLink aria-hidden size={14} />
            {t("editor.chats.try")}
          </button>
          {buttons.map(([part, Icon, run, isOff]) => (
            <button
              key={part}
              type="button"
              data-part={part}
              className="btn btn-ghost btn-square btn-sm"
              aria-label={t(`editor.chats.${part}Named`, { name: who })}
              title={t(`editor.chats.${part}Named`, { name: who })}
              disabled={disabled || isOff}
              onClick={run}
            >
              <Icon aria-hidden />
            </button>
          ))}
        </span>
      </div>
      {told === undefined ? null : (
        <p
          id={`${id}-told`}
          className={`mt-1 text-xs ${isWrong ? "text-error" : "text-muted"}`}
          role={isWrong ? "alert" : undefined}
        >
          {t(told.key, told.params)}
        </p>
      )}
    </li>
  );
}
