// The navigation as the sidebar, the phone's sheet and its dock draw it.
// Refuses entries that the role or the site's flags hide.
import {
  Activity,
  CalendarClock,
  ChartColumn,
  CreditCard,
  FlaskConical,
  Image,
  Inbox,
  KeyRound,
  ListChecks,
  Menu,
  MessageSquare,
  Receipt,
  ScrollText,
  Settings,
  Signal,
  Split,
  Tags,
  Ticket,
  UserRound,
  UsersRound,
} from "lucide-react";
import { NAV, isVisible } from "../src/shared/navigation.ts";
import type { FrameProps } from "./frame.ts";

const ICONS: Record<string, typeof Menu> = {
  playground: FlaskConical,
  dashboard: ChartColumn,
  tokens: KeyRound,
  logs: ScrollText,
  drawings: Image,
  tasks: ListChecks,
  channels: Split,
  prices: Tags,
  redemptions: Ticket,
  plans: CalendarClock,
  users: UsersRound,
  inbox: Inbox,
  orders: Receipt,
  nodes: Activity,
  status: Signal,
  settings: Settings,
  wallet: CreditCard,
  profile: UserRound,
  chat: MessageSquare,
};

/** Reads the drawing that `NavDrawings` holds: the entries stand up to three times on a page. */
function NavIcon({ id }: { id: string }) {
  return (
    <svg width="24" height="24" aria-hidden>
      <use href={`#nav-${id in ICONS ? id : "more"}`} />
    </svg>
  );
}

/** The drawings of the navigation, once for sidebar, sheet and dock. */
export function NavDrawings({ site, visitor }: Pick<FrameProps, "site" | "visitor">) {
  const role = visitor?.role ?? 0;
  const ids = NAV.flatMap(({ entries }) => entries)
    .filter((entry) => entry.id in ICONS && isVisible(entry, role, site.flags))
    .map(({ id }) => id);
  const chat = site.chats.length > 0 ? ["chat"] : [];
  return (
    <svg className="hidden" aria-hidden>
      {[...ids, ...chat, "more"].map((id) => {
        const Icon = ICONS[id] ?? Menu;
        return (
          <symbol key={id} id={`nav-${id}`} viewBox="0 0 24 24">
            {/* In a symbol, in a page, an icon needs neither a namespace nor a size of its own. */}
            <Icon xmlns={undefined} width={undefined} height={undefined} />
          </symbol>
        );
      })}
    </svg>
  );
}

type NavProps = Pick<FrameProps, "t" | "site" | "visitor" | "current">;

export function Nav({ t, site, visitor, current }: NavProps) {
  const role = visitor?.role ?? 0;
  return (
    <>
      {NAV.map((group, index) => {
        const entries = group.entries.filter((entry) => isVisible(entry, role, site.flags));
        if (entries.length === 0) return null;
        return (
          <ul key={group.title} className="menu" aria-label={t(group.title)}>
            <li className="menu-title" aria-hidden>
              {t(group.title)}
            </li>
            {entries.map((entry) => {
              const title = t(entry.title);
              return (
                <li key={entry.id}>
                  <a href={entry.href} title={title} aria-current={entry.id === current ? "page" : undefined}>
                    <NavIcon id={entry.id} />
                    <span>{title}</span>
                  </a>
                </li>
              );
            })}
            {index === 0 && site.chats.length > 0 ? (
              <>
                <li className="pointer-events-none">
                  <span>
                    <NavIcon id="chat" />
                    <span>{t("shell.nav.chat")}</span>
                  </span>
                </li>
                {site.chats.map((title, at) => (
                  <li key={`${at}-${title}`} className="nav-sub">
                    <a href={`/chat/${at}`} aria-current={current === `chat-${at}` ? "page" : undefined}>
                      <span className="pl-6.5">{title}</span>
                    </a>
                  </li>
                ))}
              </>
            ) : null}
          </ul>
        );
      })}
    </>
  );
}

/** Bottom bar of phones: the four most used pages, then everything else. */
export function Dock({ t, site, visitor, current }: NavProps) {
  const role = visitor?.role ?? 0;
  const entries = NAV.flatMap((group) => group.entries).filter(
    (entry) => entry.dock && isVisible(entry, role, site.flags),
  );
  const order = ["dashboard", "tokens", "logs", "playground"];
  entries.sort((a, b) => order.indexOf(a.id) - order.indexOf(b.id));
  return (
    <nav className="dock dock-sm" aria-label={t("shell.dock")} data-shell="dock">
      {entries.map((entry) => {
        return (
          <a key={entry.id} href={entry.href} aria-current={entry.id === current ? "page" : undefined}>
            <NavIcon id={entry.id} />
            {t(`shell.dock.${entry.id}`)}
          </a>
        );
      })}
      <button type="button" data-dialog="nav-sheet">
        <NavIcon id="more" />
        {t("shell.dock.more")}
      </button>
    </nav>
  );
}
