// The palette: a dialog with a combobox over everything one can go to, do or find. Loaded on first use.
// Refuses to move the focus out of the field: the list is walked by aria-activedescendant.
import { ArrowRight, FileSearch, Search, Zap } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import type { KeyboardEvent } from "react";
import { allCommands, matchCommands, rememberCommand } from "../lib/command-search.ts";
import type { Command } from "../lib/commands.ts";
import { useT } from "../lib/i18n.ts";
import { keysText } from "../lib/keys.ts";
import { useFound } from "../lib/use-found.ts";
import type { FoundRows } from "../lib/use-found.ts";

const MOST = 50;
const ICONS = { go: ArrowRight, do: Zap, find: FileSearch } as const;

export default function CommandMenu({ onClose }: { onClose: () => void }) {
  const t = useT();
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const [question, setQuestion] = useState("");
  const [at, setAt] = useState(0);
  const [isComposing, setComposing] = useState(false);
  const [commands] = useState(allCommands);
  const rows = useFound(isComposing ? undefined : question);
  // Rows come after what was there at once: nothing moves under the mark when they arrive.
  const found = [...matchCommands(commands, question), ...rows.commands].slice(0, MOST);

  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView?.({ block: "nearest" });
  }, [at]);

  const run = (command: Command | undefined) => {
    if (!command) return;
    if (command.kind !== "find") rememberCommand(command.id);
    dialog.current?.close();
    onClose();
    command.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const last = Math.max(0, found.length - 1);
    const to = { ArrowDown: at >= last ? 0 : at + 1, ArrowUp: at <= 0 ? last : at - 1, Home: 0, End: last }[
      event.key
    ];
    if (to !== undefined) {
      event.preventDefault();
      setAt(to);
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[at]);
    }
  };

  return (
    <dialog
      ref={dialog}
      className="modal items-start pt-[12dvh]"
      aria-label={t("shell.palette")}
      onClose={onClose}
      onMouseDown={(event) => {
        if (event.target === dialog.current) dialog.current?.close();
      }}
    >
      <div className="modal-box max-w-150 overflow-hidden p-0">
        <label className="flex h-12 items-center gap-3 border-b border-base-300 px-4">
          <Search aria-hidden size={16} className="text-muted" />
          <input
            autoFocus
            className="grow bg-transparent text-base outline-0"
            role="combobox"
            aria-autocomplete="list"
            aria-expanded={found.length > 0}
            aria-busy={rows.isSearching}
            aria-controls={`${id}-list`}
            aria-activedescendant={found[at] ? `${id}-${at}` : undefined}
            aria-label={t("shell.palette")}
            placeholder={t("shell.paletteHint")}
            value={question}
            onChange={(event) => {
              setQuestion(event.target.value);
              setAt(0);
            }}
            onKeyDown={onKeyDown}
            onCompositionStart={() => setComposing(true)}
            onCompositionEnd={() => setComposing(false)}
          />
          <kbd className="kbd kbd-sm">Esc</kbd>
        </label>
        <ul
          ref={list}
          id={`${id}-list`}
          role="listbox"
          aria-label={t("shell.palette")}
          className="menu max-h-[min(420px,56dvh)] overflow-y-auto p-1.5"
          hidden={found.length === 0}
        >
          {found.map((command, index) => (
            <li
              key={command.id}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === at}
              onMouseMove={() => setAt(index)}
              onClick={() => run(command)}
            >
              <Line command={command} isMarked={index === at} />
            </li>
          ))}
        </ul>
        <Outcome count={found.length} rows={rows} />
      </div>
    </dialog>
  );
}

function Line({ command, isMarked }: { command: Command; isMarked: boolean }) {
  const t = useT();
  const Icon = ICONS[command.kind];
  return (
    <div className={isMarked ? "menu-active" : undefined}>
      <Icon aria-hidden />
      <span>{command.title}</span>
      <small className="max-w-40 truncate">
        {command.keys ? (
          <kbd className="kbd kbd-sm">{keysText(command.keys)}</kbd>
        ) : (
          (command.note ?? t(`shell.kind.${command.kind}`))
        )}
      </small>
    </div>
  );
}

/** One status for the eye and for screen readers: that it searches, that nothing was found, how much was. */
function Outcome({ count, rows }: { count: number; rows: FoundRows }) {
  const t = useT();
  const isSeen = count === 0 || rows.isCut;
  return (
    <p className={isSeen ? "p-4 text-center text-muted" : "sr-only"} role="status">
      {rows.isSearching
        ? t("shell.find.searching")
        : rows.isCut
          ? t("shell.find.failed")
          : count === 0
            ? t("shell.paletteEmpty")
            : t("shell.find.count", { count })}
    </p>
  );
}
