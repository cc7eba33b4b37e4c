// The console's pages as the sidebar, the dock, the palette and the shortcuts list them.
// Whether a page may be opened is decided by its row in src/pages/pages.ts.
import { Role } from "./enums.ts";

export interface NavEntry {
  id: string;
  href: string;
  /** Key of the dictionary. */
  title: string;
  /** Lowest role that sees it. */
  role: number;
  /** Second key of the "g" shortcut. */
  key?: string;
  /** Flag of the site's status that must be on. */
  flag?: "enable_data_export" | "enable_drawing" | "enable_task" | "has_status_page";
  /** Stands in the phone's bottom bar. */
  dock?: boolean;
}

export interface NavGroup {
  title: string;
  entries: readonly NavEntry[];
}

export const NAV: readonly NavGroup[] = [
  {
    title: "shell.group.workspace",
    entries: [
      {
        id: "playground",
        href: "/playground",
        title: "shell.nav.playground",
        role: Role.user,
        key: "p",
        dock: true,
      },
    ],
  },
  {
    title: "shell.group.usage",
    entries: [
      {
        id: "dashboard",
        href: "/detail",
        title: "shell.nav.dashboard",
        role: Role.user,
        key: "d",
        flag: "enable_data_export",
        dock: true,
      },
      { id: "tokens", href: "/token", title: "shell.nav.tokens", role: Role.user, key: "k", dock: true },
      { id: "logs", href: "/log", title: "shell.nav.logs", role: Role.user, key: "l", dock: true },
      {
        id: "drawings",
        href: "/midjourney",
        title: "shell.nav.drawings",
        role: Role.user,
        flag: "enable_drawing",
      },
      { id: "tasks", href: "/task", title: "shell.nav.tasks", role: Role.user, flag: "enable_task" },
      { id: "status", href: "/status", title: "shell.nav.status", role: Role.user, flag: "has_status_page" },
    ],
  },
  {
    title: "shell.group.admin",
    entries: [
      { id: "channels", href: "/channel", title: "shell.nav.channels", role: Role.admin, key: "c" },
      { id: "prices", href: "/prices", title: "shell.nav.prices", role: Role.admin },
      { id: "redemptions", href: "/redemption", title: "shell.nav.redemptions", role: Role.admin },
      { id: "plans", href: "/plan", title: "shell.nav.plans", role: Role.admin },
      { id: "orders", href: "/order", title: "shell.nav.orders", role: Role.admin },
      { id: "inbox", href: "/inbox", title: "shell.nav.inbox", role: Role.admin, key: "i" },
      { id: "users", href: "/user", title: "shell.nav.users", role: Role.admin, key: "u" },
      { id: "nodes", href: "/node", title: "shell.nav.nodes", role: Role.root },
      { id: "settings", href: "/setting", title: "shell.nav.settings", role: Role.root, key: "s" },
    ],
  },
  {
    title: "shell.group.personal",
    entries: [
      { id: "wallet", href: "/topup", title: "shell.nav.wallet", role: Role.user, key: "w" },
      { id: "profile", href: "/personal", title: "shell.nav.profile", role: Role.user },
    ],
  },
];

/** Where a signed-in visitor lands who asked for nothing in particular. */
export const HOME_OF_CONSOLE = "/token";

export function isVisible(
  entry: NavEntry,
  role: number,
  flags: Partial<Record<NonNullable<NavEntry["flag"]>, boolean>>,
): boolean {
  return role >= entry.role && (entry.flag === undefined || flags[entry.flag] === true);
}
