// What the server sent along with the page, and the signals that islands share: status, user, theme, language.
// Refuses to guess: without boot data everything is the visitor's default.
import { computed, signal } from "@preact/signals-react";
import type { Language } from "../../src/shared/enums.ts";
import type { SiteStatus } from "./api.ts";

export type ThemeMode = "light" | "dark" | "system";

/** The signed-in user as the console's own page loads carry it; balances in quota units. */
export interface BootUser {
  id: number;
  username: string;
  display_name: string;
  role: number;
  group: string;
  quota: number;
}

export interface Boot<Data = unknown> {
  /** Name of the screen, the entry of the manifest; empty for pages without an island. */
  screen: string;
  /** URL of the screen's chunk. */
  chunk: string;
  /** Path and query of this page load. */
  url: string;
  /** Placeholders of the route: {id: "42"}. */
  params: Record<string, string>;
  /** Empty where there is no page: in tests and before the boot data. */
  status: Partial<SiteStatus>;
  user: BootUser | null;
  language: Language;
  theme: ThemeMode;
  /** Zone the server formatted times in: the browser's own after the first visit. */
  timeZone: string;
  /** The server's clock at the page load, so that the first client render repeats the same relative times. */
  nowMs: number;
  /** Texts of the page's areas in its language: "area.key" to text. */
  texts: Record<string, string>;
  /** Address of every text in this language, for what is opened later; empty: all are here already. */
  allTexts: string;
  /** What the page's loader answered. */
  data: Data;
}

const VISITOR: Boot = {
  screen: "",
  chunk: "",
  url: "/",
  params: {},
  status: {},
  user: null,
  language: "zh",
  theme: "system",
  timeZone: "UTC",
  nowMs: 0,
  texts: {},
  allTexts: "",
  data: undefined,
};

export const boot = signal<Boot>(VISITOR);
export const status = signal<Partial<SiteStatus>>(VISITOR.status);
export const user = signal<BootUser | null>(null);
export const theme = signal<ThemeMode>("system");
/** Path and query of the current address; url-state.ts keeps it in step with history. */
export const address = signal<string>("/");
/** The visitor's: times of day are shown in it. */
export const timeZone = signal<string>("UTC");
/** The site's: its days begin and end in it, for everybody alike. */
export const siteZone = computed(() => status.value.time_zone ?? "UTC");
/** Ticks twice a minute in the browser; stands still on the server and during hydration. */
export const nowMs = signal<number>(0);

/** Fills every signal; on the server once per render (which is synchronous), in the browser once per page. */
export function installBoot(data: Boot): void {
  boot.value = data;
  status.value = data.status;
  user.value = data.user;
  theme.value = data.theme;
  address.value = data.url;
  timeZone.value = data.timeZone;
  nowMs.value = data.nowMs;
}

/** What the page's loader answered. The screen and its row in pages.ts agree on the type. */
export function bootData<Data>(): Data {
  return boot.peek().data as Data;
}

/** Reads the JSON that render.tsx put into the page; undefined on pages without it. */
export function readBoot(root: ParentNode = document): Boot | undefined {
  const text = root.querySelector("#boot")?.textContent;
  return text ? (JSON.parse(text) as Boot) : undefined;
}
