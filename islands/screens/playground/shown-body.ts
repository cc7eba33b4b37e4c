// The call that "View code" shows.
import { t } from "../../lib/i18n.ts";
import type { Conversation, Settings } from "./conversation.ts";
import { contextOf } from "./conversation.ts";
import type { ChatBody, Said } from "./request.ts";
import { bodyOf } from "./request.ts";

/** In place of a picture's megabytes. */
const PICTURE = "data:image/png;base64,...";

/**
 * The call to show as code: with what is being written as the question, else the one that was answered last. Pictures
 * are only named.
 */
export function bodyToShow(settings: Settings, conversation: Conversation, draft: string): ChatBody {
  const context: Said[] = contextOf(conversation).map(({ role, content, images }) => ({
    role,
    content,
    ...(images ? { images: images.map(() => PICTURE) } : {}),
  }));
  if (draft.trim() !== "") context.push({ role: "user", content: draft.trim() });
  while (context.at(-1)?.role === "assistant") context.pop();
  if (context.length === 0) context.push({ role: "user", content: t("playground.greetingUser") });
  return bodyOf(settings, context);
}
