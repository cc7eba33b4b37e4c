// What a row of the page table says, and what loaders and the renderer are given.
// Holds types only.
import type { ComponentType, ReactNode } from "react";
import type { Boot, BootUser, ThemeMode } from "../../islands/lib/boot.ts";
import type { Translate } from "../../views/document.tsx";
import type { Deps, InboxSummary, UserAccount } from "../core/deps.ts";
import type { SiteStatus } from "../core/site/status.ts";
import type { Language } from "../shared/enums.ts";

/** What a loader may use: the services, who asks, and the address. `user` is set wherever access is not public. */
export interface LoaderContext {
  deps: Deps;
  user: UserAccount | undefined;
  /** The visitor's; never shown. */
  sessionId?: string | undefined;
  language: Language;
  status: SiteStatus;
  url: URL;
  params: Record<string, string>;
  /** The visitor's own after the first visit, else UTC. */
  timeZone: string;
  /** Remembered page size (cookie `page-size`); pagingOf checks it. */
  pageSize?: number;
  /** What the visitor's browser remembers for the server: a cookie's text, "" without it. */
  remembered?: (name: string) => string;
}

export interface Page {
  /** Route as Elysia writes it: "/channel", "/channel/edit/:id". */
  path: string;
  /** "either": the console's for whoever is signed in, so that its navigation and palette stay at hand. */
  shell: "console" | "public" | "either";
  /** Public shell only; default "page". */
  width?: "page" | "card" | "full";
  access: "public" | "user" | "admin" | "root";
  /** Flag of the site's status: while it is off there is no such page. */
  flag?: "enable_data_export";
  /** Key of the page's title. */
  title: string;
  /** Of what the loader found, where the page is about one thing; undefined: the title of `title`. */
  titleOf?: (data: unknown) => string | undefined;
  /** Id of the navigation entry to mark. */
  current?: string;
  /** Locale files whose texts the island needs, besides common, shell, table and form. */
  areas?: readonly string[];
  /** Further texts, whose names the screen makes up out of its data. */
  textKeys?: (data: never) => readonly string[];
  /** File name in islands/screens without its ending, and its component for the server render. */
  screen?: { name: string; component: ComponentType };
  /** First state of the island; a plain JSON value. */
  loader?: (context: LoaderContext) => unknown;
  /** Page without an island: rendered on the server only. Gets the loader's answer. */
  view?: (props: { t: Translate; data: never; title: string; context: RenderContext }) => ReactNode;
  /** Further sources for the content security policy. */
  csp?: { script?: readonly string[]; frame?: readonly string[]; connect?: readonly string[] };
  /** HTTP status; 200 when absent. */
  statusCode?: number;
}

/** An address of the specification for what another page shows: visitors who may see that are sent there. */
export interface Moved extends Pick<Page, "path" | "access"> {
  to: (params: Record<string, string>) => string;
}

export interface RenderContext {
  user: BootUser | undefined;
  /** Of administrators. */
  inbox?: InboxSummary | undefined;
  status: SiteStatus;
  /** Nothing leaves the site by itself (core/options/quiet.ts). */
  isQuiet?: boolean | undefined;
  language: Language;
  theme: ThemeMode;
  timeZone: string;
  sidebarCollapsed: boolean;
  url: URL;
  params: Record<string, string>;
  nowMs: number;
  nonce: string;
  /** What the loader found. */
  data?: unknown;
}

export type { Boot };
