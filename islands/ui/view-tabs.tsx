// Views of a list as tabs: those of the screen at once, those that people saved as soon as the page is alive.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { address } from "../lib/boot.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { patchUrl } from "../lib/url-state.ts";
import type { Query } from "../lib/url-state.ts";
import { TabCount } from "./page-header.tsx";
import { Tab } from "./view-tab.tsx";

/** Where the part cannot be had, the screen's own views go on without it. */
const SavedViews = lazyPart(
  () => import("./saved-views.tsx"),
  () => null,
);

interface BuiltInView {
  id: string;
  /** Translated. */
  label: string;
  /** What it sets; the others of its row set these fields too or empty them. */
  query: Record<string, string>;
  count?: number;
}

export interface ViewTabsProps {
  /** Accessible name: "Views". */
  label: string;
  /** Name of the screen in storage. */
  screen: string;
  builtIn: readonly BuiltInView[];
  /** Parameters that make up a saved view: filters, sort, time range. */
  fields: readonly string[];
  query: Query;
  /** Usually setFilters of useTableQuery. */
  onOpen: (patch: Record<string, string | undefined>) => void;
  /** Storage key of the table's columns; then views keep these as well. */
  columnsKey?: string;
}

export function ViewTabs({ label, screen, builtIn, fields, query, onOpen, columnsKey }: ViewTabsProps) {
  useSignals();
  const [isSavedOpen, setSavedOpen] = useState(false);
  const own = [...new Set(builtIn.flatMap((view) => Object.keys(view.query)))];
  const base = isSavedOpen
    ? undefined
    : builtIn.find((view) => own.every((name) => (view.query[name] ?? "") === (query[name] ?? "")));
  const here = address.value;
  return (
    <nav className="tabs tabs-border" aria-label={label}>
      {builtIn.map((view) => {
        const patch = Object.fromEntries(own.map((name) => [name, view.query[name]]));
        return (
          <Tab
            key={view.id}
            href={patchUrl(here, { ...patch, p: undefined })}
            isOpen={view === base}
            onOpen={() => onOpen(patch)}
          >
            {view.label}
            <TabCount count={view.count} />
          </Tab>
        );
      })}
      <SavedViews
        screen={screen}
        builtIn={builtIn.map((view) => view.query)}
        fields={fields}
        query={query}
        onOpen={onOpen}
        columnsKey={columnsKey}
        onCurrent={setSavedOpen}
      />
    </nav>
  );
}
