// Views that people saved for a list in this browser: their tabs, the button that saves one, and the menu of the open one.
// Refuses to hide a lost part: a view with a field that is gone applies the rest and says so.
import { Bookmark, Ellipsis, Link, Trash2 } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useSignals } from "@preact/signals-react/runtime";
import { address } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { readItem } from "../lib/storage.ts";
import { toast } from "../lib/toasts.ts";
import { patchUrl } from "../lib/url-state.ts";
import type { Query } from "../lib/url-state.ts";
import { MAX_VIEW_NAME, openView, readViews, sameQuery, viewQuery, writeViews } from "../lib/views.ts";
import type { SavedView } from "../lib/views.ts";
import { copyText } from "./copy-button.tsx";
import { Menu } from "./menu.tsx";
import { applyColumns } from "./table-columns.ts";
import { Tab } from "./view-tab.tsx";

export interface SavedViewsProps {
  /** Name of the screen in storage. */
  screen: string;
  /** What the screen's own views set: those need no name. */
  builtIn: readonly Record<string, string>[];
  /** Parameters that make up a saved view: filters, sort, time range. */
  fields: readonly string[];
  query: Query;
  onOpen: (patch: Record<string, string | undefined>) => void;
  /** Storage key of the table's columns; then views keep these as well. */
  columnsKey?: string | undefined;
  /** Tells whether one of these is the open one. */
  onCurrent: (isOpen: boolean) => void;
}

/** What people saved in this browser; saving over a view and removing one can be undone. */
function useSavedViews(screen: string) {
  const t = useT();
  const [views, setViews] = useState<readonly SavedView[]>([]);
  // The server cannot know what was saved here.
  useEffect(() => setViews(readViews(screen)), [screen]);
  const store = (next: readonly SavedView[]) => {
    setViews(next);
    writeViews(screen, next);
  };
  return {
    views,
    /** Without a name nothing is saved. */
    save(view: SavedView) {
      const { name } = view;
      if (name === "") return;
      const isOverwritten = views.some((each) => each.name === name);
      store([...views.filter((each) => each.name !== name), view]);
      toast({
        key: `view ${name}`,
        text: t("table.views.saved", { name }),
        ...(isOverwritten ? { undo: () => store(views) } : {}),
      });
    },
    remove(view: SavedView) {
      store(views.filter((each) => each !== view));
      toast({
        key: `view ${view.name}`,
        text: t("table.views.removed", { name: view.name }),
        undo: () => store(views),
      });
    },
  };
}

export default function SavedViews(props: SavedViewsProps) {
  const { screen, builtIn, fields, query, onOpen, columnsKey, onCurrent } = props;
  const t = useT();
  useSignals();
  const saved = useSavedViews(screen);
  const { views } = saved;
  const [isNaming, setNaming] = useState(false);
  const now = viewQuery(query, fields);
  const open = views.find((view) => sameQuery(viewQuery(view.query, fields), now));
  const isPlain = builtIn.some((each) => sameQuery(each, now));
  const here = address.value;
  const isOneOpen = open !== undefined;
  useEffect(() => onCurrent(isOneOpen), [isOneOpen]);

  const openSaved = (view: SavedView) => {
    const { patch, unknown } = openView(view, fields);
    if (columnsKey !== undefined && view.columns !== undefined) applyColumns(columnsKey, view.columns);
    onOpen(patch);
    if (unknown.length > 0) {
      toast({ tone: "warning", text: t("table.views.unknown", { fields: unknown.join(", ") }) });
    }
  };
  const save = (text: string) => {
    setNaming(false);
    const columns = columnsKey === undefined ? undefined : readItem(columnsKey);
    saved.save({ name: text.trim(), query: now, ...(columns === undefined ? {} : { columns }) });
  };

  return (
    <>
      {views.map((view) => (
        <Tab
          key={view.name}
          href={patchUrl(here, { ...openView(view, fields).patch, p: undefined })}
          isOpen={view === open}
          onOpen={() => openSaved(view)}
        >
          {view.name}
        </Tab>
      ))}
      {open ? (
        <Menu
          label={t("table.views.menu", { name: open.name })}
          className="btn btn-ghost btn-square btn-xs flex-none self-center"
          groups={[
            [
              {
                id: "link",
                label: t("table.views.copyLink"),
                icon: Link,
                onSelect: () => void copyText(location.origin + here),
              },
            ],
            [
              {
                id: "remove",
                label: t("table.views.remove"),
                icon: Trash2,
                isDanger: true,
                onSelect: () => saved.remove(open),
              },
            ],
          ]}
        >
          <Ellipsis aria-hidden size={14} />
        </Menu>
      ) : null}
      {!open && !isPlain && !isNaming ? (
        <button
          type="button"
          className="btn btn-sm btn-ghost flex-none self-center"
          onClick={() => setNaming(true)}
        >
          <Bookmark aria-hidden size={14} />
          {t("table.views.save")}
        </button>
      ) : null}
      {isNaming ? <NameField onDone={save} /> : null}
    </>
  );
}

/** Enter saves, Escape and an empty name do not. */
function NameField({ onDone }: { onDone: (name: string) => void }) {
  const t = useT();
  const isDone = useRef(false);
  const done = (name: string) => {
    if (isDone.current) return;
    isDone.current = true;
    onDone(name);
  };
  return (
    <input
      autoFocus
      className="input input-sm flex-none self-center w-45"
      aria-label={t("table.views.name")}
      placeholder={t("table.views.name")}
      maxLength={MAX_VIEW_NAME}
      onBlur={(event) => done(event.target.value)}
      onKeyDown={(event) => {
        if (event.nativeEvent.isComposing) return;
        if (event.key === "Enter") done(event.currentTarget.value);
        else if (event.key === "Escape") {
          event.stopPropagation();
          done("");
        }
      }}
    />
  );
}
