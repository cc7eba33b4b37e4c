// The first row of every screen: title, count or purpose, one primary button, an overflow menu; and page tabs.
// Refuses a second primary action.
import { Ellipsis } from "lucide-react";
import { useEffect, useRef } from "react";
import type { ReactNode } from "react";
import { useT } from "../lib/i18n.ts";
import { Menu } from "./menu.tsx";
import type { MenuGroups } from "./menu.tsx";

export interface PageHeaderProps {
  title: string;
  /** Count or one sentence. */
  note?: ReactNode;
  /** At most one primary button; plain buttons may stand before it. */
  action?: ReactNode;
  overflow?: MenuGroups;
}

export function PageHeader({ title, note, action, overflow }: PageHeaderProps) {
  const t = useT();
  return (
    <header className="mb-4 flex min-h-9 flex-wrap max-sm:mb-2 items-center gap-x-3 gap-y-1">
      <h1>{title}</h1>
      {note === undefined ? null : <p className="pt-0.75 text-dense text-muted max-sm:hidden">{note}</p>}
      <div className="ml-auto flex gap-2">
        {action}
        {overflow && overflow.some((group) => group.length > 0) ? (
          <Menu label={t("common.more")} groups={overflow} className="btn btn-default btn-square">
            <Ellipsis aria-hidden size={16} />
          </Menu>
        ) : null}
      </div>
    </header>
  );
}

export interface TabLink {
  id: string;
  label: string;
  href: string;
  count?: number;
}

/** Tabs that are links: the address decides which one is open. */
export function TabLinks({
  label,
  tabs,
  current,
  onOpen,
}: {
  label: string;
  tabs: readonly TabLink[];
  current: string;
  onOpen?: (id: string) => void;
}) {
  const nav = useRef<HTMLElement>(null);
  // On phones the tabs scroll: the open one must be among those that are seen.
  useEffect(() => {
    const bar = nav.current;
    const tab = bar?.querySelector<HTMLElement>("[aria-current]");
    if (bar && tab) bar.scrollLeft = tab.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
  }, [current]);
  return (
    <nav ref={nav} className="tabs tabs-border relative" aria-label={label}>
      {tabs.map((tab) => (
        <a
          key={tab.id}
          href={tab.href}
          className="tab"
          aria-current={tab.id === current ? "page" : undefined}
          onClick={(event) => {
            if (!onOpen || event.metaKey || event.ctrlKey || event.shiftKey) return;
            event.preventDefault();
            onOpen(tab.id);
          }}
        >
          {tab.label}
          <TabCount count={tab.count} />
        </a>
      ))}
    </nav>
  );
}

/** How many rows are behind a tab, where that is known. */
export function TabCount({ count }: { count: number | undefined }) {
  return count === undefined ? null : <span className="badge badge-ghost badge-xs font-normal">{count}</span>;
}
