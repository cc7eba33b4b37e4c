// The operator's chat links: their names, and a link with key and server address filled in.
// Refuses links that could run script in this page, and leaves no placeholder behind.
import { refusedScheme } from "../../src/shared/chat-schemes.ts";
import { status } from "./boot.ts";

export interface ChatLink {
  title: string;
  /** With {key} and {address}. */
  template: string;
}

/** How a filled link can be opened. */
type ChatTarget = "frame" | "app" | "broken";

export interface FilledLink {
  url: string;
  target: ChatTarget;
}

/** In their order; the index is the number in /chat/<index>. */
export function chatLinks(): ChatLink[] {
  return (status.peek().chats ?? []).flatMap((entry) => {
    const [first] = Object.entries(entry);
    return first ? [{ title: first[0], template: first[1] }] : [];
  });
}

/** The address that clients are given: without a trailing slash and without /v1. */
export function serverAddress(): string {
  const set = status.peek().server_address || (typeof location === "undefined" ? "" : location.origin);
  return set.replace(/\/+$/, "").replace(/\/v1$/, "");
}

/** `key` without its prefix, as lists carry it. */
export function fillChatLink(template: string, key: string): FilledLink {
  const address = encodeURIComponent(serverAddress());
  const url = template
    .trim()
    .replaceAll("{address}", () => address)
    .replaceAll("{key}", () => `sk-${key}`);
  if (refusedScheme(url) !== undefined || !URL.canParse(url)) return { url: "", target: "broken" };
  return { url, target: /^https?:/i.test(url) ? "frame" : "app" };
}
