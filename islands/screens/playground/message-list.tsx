// The messages of a conversation, turn after turn, with the end in sight while an answer grows.
import { ArrowDown } from "lucide-react";
import { Fragment, useEffect, useRef, useState } from "react";
import type { ReactNode } from "react";
import { useT } from "../../lib/i18n.ts";
import type { Conversation, Message } from "./conversation.ts";
import { turnsOf } from "./conversation.ts";

/** Nearer to the end than this, the view follows the answer. */
const FOLLOW_PX = 80;

export interface MessageListProps {
  conversation: Conversation;
  /** False until the stored conversations are known: nothing is drawn that would be replaced at once. */
  isShown: boolean;
  isRunning: boolean;
  onRestore: () => void;
  children: (message: Message, isLast: boolean, isMuted: boolean) => ReactNode;
}

/** Follows the end while it is in sight; scrolled up, it stays and offers the way down. */
export function MessageList({ conversation, isShown, isRunning, onRestore, children }: MessageListProps) {
  const t = useT();
  const box = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const [isAway, setAway] = useState(false);
  const list = useRef<HTMLOListElement>(null);
  const { messages, clearedAt, id } = conversation;
  const turns = turnsOf(messages);
  const cut = clearedAt === "" ? -1 : turns.findIndex((turn) => turn.some((each) => each.id === clearedAt));
  const isWide = turns.some((turn) => turn.length > 1);
  const toEnd = () => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  useEffect(() => {
    isFollowing.current = true;
    toEnd();
  }, [id, isShown, messages.length]);
  useEffect(() => {
    // An answer grows by itself: as Markdown, by colours that come later, by a table that is unfolded.
    if (!list.current || typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(() => {
      if (isFollowing.current) toEnd();
    });
    observer.observe(list.current);
    return () => observer.disconnect();
  }, []);
  return (
    <div className="relative min-h-0 grow">
      <div
        ref={box}
        role="region"
        aria-label={t("playground.list")}
        tabIndex={0}
        className="h-full overflow-y-auto overscroll-contain focus-visible:-outline-offset-2"
        onScroll={({ currentTarget: at }) => {
          isFollowing.current = at.scrollHeight - at.scrollTop - at.clientHeight < FOLLOW_PX;
          setAway(!isFollowing.current);
        }}
      >
        <ol
          ref={list}
          className={`mx-auto flex w-full flex-col gap-5 px-1 py-1 ${isWide ? "max-w-[1200px]" : "max-w-[800px]"}`}
          aria-busy={isRunning}
        >
          {isShown
            ? turns.map((turn, index) => (
                <Fragment key={turn[0]?.id}>
                  <li
                    className={
                      turn.length > 1 ? "grid grid-cols-[minmax(0,1fr)] gap-5 md:grid-cols-2" : "min-w-0"
                    }
                  >
                    {turn.map((message) => children(message, index === turns.length - 1, index <= cut))}
                  </li>
                  {index === cut ? <Cut isRunning={isRunning} onRestore={onRestore} /> : null}
                </Fragment>
              ))
            : null}
        </ol>
      </div>
      {isAway ? (
        <button
          type="button"
          className="btn btn-sm btn-default whitespace-nowrap absolute bottom-2 left-1/2 [translate:-50%] floating"
          onClick={toEnd}
        >
          <ArrowDown aria-hidden size={14} />
          {t("playground.toLatest")}
        </button>
      ) : null}
    </div>
  );
}

/** Where the context was cleared. */
function Cut({ isRunning, onRestore }: Pick<MessageListProps, "isRunning" | "onRestore">) {
  const t = useT();
  return (
    <li className="flex items-center gap-3 text-xs text-muted before:h-px before:grow before:bg-base-300 after:h-px after:grow after:bg-base-300">
      <span>
        {t("playground.contextCleared")}{" "}
        <button
          type="button"
          className="min-h-6 cursor-pointer text-primary hover:underline"
          disabled={isRunning}
          onClick={onRestore}
        >
          {t("playground.restoreContext")}
        </button>
      </span>
    </li>
  );
}
