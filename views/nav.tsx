// The navigation as the sidebar, the phone's sheet and its dock draw it.
// Refuses entries that the role or the site's flags hide.
import {
  ChartColumn,
  CreditCard,
  FlaskConical,
  Image,
  KeyRound,
  ListChecks,
  Menu,
  MessageSquare,
  ScrollText,
  Settings,
  Split,
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
  redemptions: Ticket,
  users: UsersRound,
  settings: Settings,
  wallet: CreditCard,
  profile: UserRound,
};

type NavProps = Pick<FrameProps, "t" | "site" | "visitor" | "current">;

export function Nav({ t, site, visitor, current }: NavProps) {
  const role = visitor?.role ?? 0;
  return (
    <>
      {NAV.map((group, index) => {
        const entries = group.entries.filter((entry) => isVisible(entry, role, site.flags));
        if (entries.length === 0) return null;
        return (
          <div key={group.title} role="group" aria-label={t(group.title)}>
            <div className="nav-group" aria-hidden>
              {t(group.title)}
            </div>
            {entries.map((entry) => {
              const Icon = ICONS[entry.id] ?? Menu;
              const title = t(entry.title);
              return (
                <a
                  key={entry.id}
                  href={entry.href}
                  className="nav-link"
                  title={title}
                  aria-current={entry.id === current ? "page" : undefined}
                >
                  <Icon aria-hidden />
                  <span>{title}</span>
                </a>
              );
            })}
            {index === 0 && site.chats.length > 0 ? (
              <>
                <div className="nav-link nav-static">
                  <MessageSquare aria-hidden />
                  <span>{t("shell.nav.chat")}</span>
                </div>
                <div className="nav-sub">
                  {site.chats.map((title, at) => (
                    <a
                      key={`${at}-${title}`}
                      href={`/chat/${at}`}
                      className="nav-link"
                      aria-current={current === `chat-${at}` ? "page" : undefined}
                    >
                      <span>{title}</span>
                    </a>
                  ))}
                </div>
              </>
            ) : null}
          </div>
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
    <nav className="dock-bar" aria-label={t("shell.dock")} data-shell="dock">
      {entries.map((entry) => {
        const Icon = ICONS[entry.id] ?? Menu;
        return (
          <a key={entry.id} href={entry.href} aria-current={entry.id === current ? "page" : undefined}>
            <Icon aria-hidden />
            {t(`shell.dock.${entry.id}`)}
          </a>
        );
      })}
      <button type="button" data-dialog="nav-sheet">
        <Menu aria-hidden />
        {t("shell.dock.more")}
      </button>
    </nav>
  );
}
