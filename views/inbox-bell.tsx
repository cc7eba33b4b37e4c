// The bell of the console's top bar, for administrators: how many things wait for a person, and the newest of them.
// Refuses colour as the only carrier: the number is there, and its name says what it counts.
import { Bell } from "lucide-react";
import { inboxHref, inboxKinds, inboxSentence } from "../src/shared/inbox.ts";
import { shortText } from "../src/shared/short-text.ts";
import type { FrameProps } from "./frame.ts";

const MOST_SHOWN = 99;
/** Of a sentence, which may quote an upstream: it stands on every page. */
const MOST_SAID = 100;

export function InboxBell({ t, language, visitor }: Pick<FrameProps, "t" | "language" | "visitor">) {
  if (!visitor?.inbox) return null;
  const { count, tone, newest } = visitor.inbox;
  const label = count === 0 ? t("inbox.title") : t("shell.inbox.count", { count });
  return (
    <>
      <button
        type="button"
        className="btn btn-ghost btn-square btn-sm relative"
        popoverTarget="menu-inbox"
        aria-expanded="false"
        aria-label={label}
        title={label}
      >
        <Bell aria-hidden />
        {count > 0 ? (
          <span className="bell-count" data-tone={tone} aria-hidden>
            {count > MOST_SHOWN ? `${MOST_SHOWN}+` : count}
          </span>
        ) : null}
      </button>
      <ul
        id="menu-inbox"
        popover="auto"
        className="menu pop top-11.5 right-3"
        data-menu=""
        aria-label={label}
      >
        {newest.map((item) => (
          <li key={item.id}>
            <a href={inboxHref(item, visitor.role) ?? "/inbox"} className="items-start whitespace-normal">
              <i className="bell-dot" data-tone={inboxKinds[item.kind].tone} aria-hidden />
              <span className="line-clamp-3 wrap-anywhere whitespace-normal">
                {shortText(inboxSentence(t, language, item), MOST_SAID)}
              </span>
            </a>
          </li>
        ))}
        {count === 0 ? <li className="menu-title">{t("inbox.empty")}</li> : null}
        <li />
        <li>
          <a href="/inbox">
            <span>{t("shell.inbox.all")}</span>
          </a>
        </li>
      </ul>
    </>
  );
}
