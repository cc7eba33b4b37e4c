// A group of options as a card: its panel where the group has one, and a line for every option that the panel leaves over.
// Options that are too long for the page are asked for once the card comes near the window.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useRef } from "react";
import { useT } from "../../lib/i18n.ts";
import type { OptionRow } from "./editor-props.ts";
import { editors } from "./late-editors.ts";
import { OptionLine } from "./line.tsx";
import { groupName } from "./names.ts";
import type { Settings } from "./state.ts";
import { MODE_KEYS, UsageMode } from "./usage-mode.tsx";

const NEAR = "600px";

export interface GroupProps {
  id: string;
  rows: readonly OptionRow[];
  settings: Settings;
  /** Name of the tab, where groups of several tabs stand together. */
  tabName?: string;
}

/** Runs once the element is near the window. */
function useNearby(isWanted: boolean, run: () => void) {
  const element = useRef<HTMLElement>(null);
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    if (!isWanted || !element.current) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) latest.current();
      },
      { rootMargin: NEAR },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [isWanted]);
  return element;
}

export function GroupCard({ id, rows, settings, tabName }: GroupProps) {
  useSignals();
  useT();
  const isLong = rows.some((row) => row.isLong);
  const element = useNearby(isLong, () => void settings.loadAll());
  // What a panel draws has to be there as a whole: a search that hits one of its options shows the line alone.
  const table = isLong ? undefined : editors.value;
  const panelKeys = new Set(table?.panelKeys(id));
  const isWhole = [...panelKeys].every((key) => rows.some((row) => row.key === key));
  const Extra = tabName === undefined ? editors.value?.extraOf(id) : undefined;
  const Panel = isWhole && panelKeys.size > 0 ? table?.panelOf(id) : undefined;
  // A switch that stands before what the panel draws stays before it.
  const first = Panel ? rows.findIndex(({ key }) => panelKeys.has(key)) : rows.length;
  const isLine = ({ key }: OptionRow) => !(Panel && panelKeys.has(key)) && !MODE_KEYS.includes(key);
  const draw = (some: readonly OptionRow[]) =>
    some.filter(isLine).map((option) => <OptionLine key={option.key} option={option} settings={settings} />);
  return (
    <section
      ref={element}
      id={`group-${id}`}
      className="scroll-mt-16 rounded-box border border-base-300 bg-base-100 px-5 max-sm:px-4"
      aria-labelledby={`group-${id}-name`}
    >
      <h2 id={`group-${id}-name`} className="pt-4 pb-1 font-semibold">
        {tabName === undefined ? null : <span className="font-normal text-muted">{tabName} · </span>}
        {groupName(id)}
      </h2>
      {rows.some(({ key }) => MODE_KEYS.includes(key)) ? <UsageMode settings={settings} /> : null}
      {draw(rows.slice(0, first))}
      {Panel ? (
        <div className="py-3" data-option={[...panelKeys].join(" ")}>
          <Panel
            rows={rows.filter(({ key }) => panelKeys.has(key))}
            value={(key) => settings.drafts.value.get(key) ?? settings.value(key)}
            onChange={settings.set}
            failureOf={(key) => settings.failures.value.get(key)}
            refresh={settings.refresh}
          />
        </div>
      ) : null}
      {draw(rows.slice(first))}
      {Extra ? <Extra rows={settings.rows.value} /> : null}
    </section>
  );
}
