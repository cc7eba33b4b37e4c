// What both frames are drawn from: site, visitor, language, theme, and a translator of the page's language.
// Holds types only.
import type { ReactNode } from "react";
import type { NavEntry } from "../src/shared/navigation.ts";
import type { InboxTone, SaidItem } from "../src/shared/inbox.ts";
import type { Translate } from "./document.tsx";

export interface FrameSite {
  name: string;
  logo: string;
  /** Sanitised HTML; empty for the default line. */
  footerHtml: string;
  docsLink: string;
  version: string;
  /** False until the wizard is done: until then every other page leads back to it. */
  isSetUp: boolean;
  selfUse: boolean;
  demo: boolean;
  /** The operator's words while maintenance mode is on ("" for the built-in ones); undefined: it is off. */
  maintenance: { message: string; isQuiet: boolean } | undefined;
  flags: Partial<Record<NonNullable<NavEntry["flag"]>, boolean>> & {
    status_page?: "off" | "users" | "public";
  };
  /** The year that begins today where the visitor is; undefined on every other day. */
  newYear: string | undefined;
  /** Titles of the chat links, in their order. */
  chats: readonly string[];
}

export interface FrameVisitor {
  username: string;
  displayName: string;
  role: number;
  /** Formatted balance. */
  balance: string;
  /** What waits for an administrator; undefined for everybody else. */
  inbox: { count: number; tone: InboxTone; newest: readonly (SaidItem & { id: number })[] } | undefined;
}

export interface FrameProps {
  t: Translate;
  site: FrameSite;
  visitor: FrameVisitor | undefined;
  language: "zh" | "en";
  theme: "light" | "dark" | "system";
  /** Id of the navigation entry that is open. */
  current: string;
  title: string;
  children: ReactNode;
}
