// The price desk's sheet of models inside of the settings: the same store, cells and rules; what is changed there is what the
// settings have typed, and goes their way: the save bar, and the plan that it makes.
import { batch } from "@preact/signals-react";
import { useSignalEffect, useSignals } from "@preact/signals-react/runtime";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { PRICE_MAPS } from "../../../../src/shared/row-maps.ts";
import { api, call, failureMessage } from "../../../lib/api.ts";
import { entriesOf, entryChanges } from "../../../lib/price-entries.ts";
import type { Query } from "../../../lib/url-state.ts";
import { FailureNotice } from "../../../ui/feedback.tsx";
import { createDesk } from "../../../ui/price-sheet/desk.ts";
import type { Edit } from "../../../ui/price-sheet/desk.ts";
import Models from "../../../ui/price-sheet/models.tsx";
import { patched, SheetQueryContext } from "../../../ui/price-sheet/models/query.ts";
import type { OptionPanelProps } from "./panel-props.ts";

type Panel = Pick<OptionPanelProps, "rows" | "value" | "onChange">;

const storedOf = ({ rows }: Panel, key: string): string => rows.find((row) => row.key === key)?.value ?? "";

/** What the settings have typed and not saved, as changes of entries. */
const typedEdits = (panel: Panel): Edit[] =>
  PRICE_MAPS.flatMap((key) => entryChanges(key, storedOf(panel, key), panel.value(key)) ?? []).map(
    ({ key, name, after }) => ({ key, name, after }),
  );

/** A map's text with the changes; without any, the very text that is stored. */
function textWith(stored: string, key: string, edits: readonly Edit[]): string {
  const entries = edits.length === 0 ? undefined : entriesOf(key, stored);
  if (!entries) return stored;
  for (const { name, after } of edits) {
    if (after === null) entries.delete(name);
    else entries.set(name, after);
  }
  return JSON.stringify(Object.fromEntries(entries));
}

/** Keeps the sheet's changes and the settings' typed texts one and the same. */
function useDeskOf(panel: Panel) {
  const [desk] = useState(createDesk);
  const [failure, setFailure] = useState<string>();
  const latest = useRef(panel);
  latest.current = panel;
  const stored = PRICE_MAPS.map((key) => storedOf(panel, key)).join("\n");
  const typed = PRICE_MAPS.map((key) => panel.value(key)).join("\n");
  const written = useRef(typed);
  const load = useCallback(async () => {
    try {
      const prices = await call(api.price.desk.get());
      // In one go: between the two the sheet has no changes, and what was typed must not be taken for undone.
      batch(() => {
        desk.open(prices);
        desk.take(typedEdits(latest.current));
      });
      setFailure(undefined);
    } catch (error) {
      setFailure(failureMessage(error));
    }
  }, [desk]);
  useEffect(() => void load(), [stored]);
  useEffect(() => {
    if (desk.prices.peek() && typed !== written.current) desk.take(typedEdits(latest.current));
  }, [typed]);
  useSignalEffect(() => {
    const changes = desk.changes.value;
    if (!desk.prices.value) return;
    const now = latest.current;
    const texts = PRICE_MAPS.map((key) => {
      const own = changes.filter((each) => each.key === key);
      return textWith(storedOf(now, key), key, own);
    });
    written.current = texts.join("\n");
    PRICE_MAPS.forEach((key, at) => {
      const text = texts[at] ?? "";
      if (text !== now.value(key)) now.onChange(key, text);
    });
  });
  return { desk, failure, load };
}

export interface PriceSheetProps extends Panel {
  view: "all" | "unpriced";
  /** Reads what is stored anew. */
  refresh: () => Promise<void>;
}

export function PriceSheet({ view, refresh, ...panel }: PriceSheetProps) {
  useSignals();
  const { desk, failure, load } = useDeskOf(panel);
  const [query, setQuery] = useState<Query>(view === "all" ? {} : { view });
  const sheet = useMemo(
    () => ({
      query,
      setQuery: (patch: Parameters<typeof patched>[1]) => setQuery((before) => patched(before, patch)),
      hrefOf: (patch: Parameters<typeof patched>[1]) =>
        `/prices?${new URLSearchParams(patched(query, patch))}`.replace(/\?$/, ""),
    }),
    [query],
  );
  if (failure !== undefined) return <FailureNotice text={failure} onRetry={load} />;
  if (!desk.prices.value) return <div className="skeleton h-80" aria-hidden />;
  return (
    <SheetQueryContext value={sheet}>
      <Models
        desk={desk}
        canApply
        reload={async () => {
          await refresh();
          await load();
        }}
      />
    </SheetQueryContext>
  );
}
