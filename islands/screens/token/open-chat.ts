// Opens a chat link with a key in it.
// Refuses links that are none: it says so.
import { fillChatLink } from "../../lib/chat-links.ts";
import { openBeside } from "../../lib/leave.ts";
import { toast } from "../../lib/toasts.ts";

/** `key` without its prefix; `broken` is the text for a link that cannot be opened. */
export function openChat(template: string, key: string, broken: string): void {
  const { url, target } = fillChatLink(template, key);
  if (target === "broken") toast({ tone: "error", text: broken });
  else openBeside(url);
}
