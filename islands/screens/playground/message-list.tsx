// The messages of a conversation, and what stands in their place where no model can be called.
import { ArrowDown } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import type { ReactNode } from "react";
import { user } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { Empty } from "../../ui/feedback.tsx";
import type { Conversation } from "./conversation.ts";

const ADMIN_ROLE = 10;
/** Nearer to the end than this, the view follows the answer. */
const FOLLOW_PX = 80;

export function NoModels() {
  const t = useT();
  const isAdmin = (user.peek()?.role ?? 0) >= ADMIN_ROLE;
  return (
    <Empty
      title={t("playground.noModels")}
      text={t(isAdmin ? "playground.noModelsAdmin" : "playground.noModelsText")}
      action={
        isAdmin ? (
          <a className="btn btn-sm btn-primary" href="/channel?new=1">
            {t("playground.addChannel")}
          </a>
        ) : undefined
      }
    />
  );
}

export interface MessageListProps {
  conversation: Conversation;
  /** False until the stored conversations are known: nothing is drawn that would be replaced at once. */
  isShown: boolean;
  isRunning: boolean;
  onRestore: () => void;
  children: (message: Conversation["messages"][number], isLast: boolean, isMuted: boolean) => ReactNode;
}

/** Follows the end while it is in sight; scrolled up, it stays and offers the way down. */
export function MessageList({ conversation, isShown, isRunning, onRestore, children }: MessageListProps) {
  const t = useT();
  const box = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const [isAway, setAway] = useState(false);
  const { messages, clearedAt, id } = conversation;
  const cut = clearedAt === "" ? -1 : messages.findIndex((each) => each.id === clearedAt);
  const toEnd = () => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  useEffect(() => {
    isFollowing.current = true;
    toEnd();
  }, [id, isShown, messages.length]);
  useEffect(() => {
    if (isFollowing.current) toEnd();
  });
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
        <ol className="mx-auto flex w-full max-w-[800px] flex-col gap-5 px-0.5 py-1" aria-busy={isRunning}>
          {isShown
            ? messages.flatMap((message, index) => [
                children(message, index === messages.length - 1, index <= cut),
                index === cut ? (
                  <li
                    key="cut"
                    className="flex items-center gap-3 text-xs text-muted before:h-px before:grow before:bg-base-300 after:h-px after:grow after:bg-base-300"
                  >
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
                ) : null,
              ])
            : null}
        </ol>
      </div>
      {isAway ? (
        <button
          type="button"
          className="btn btn-sm btn-default absolute bottom-2 left-1/2 [translate:-50%] floating"
          onClick={toEnd}
        >
          <ArrowDown aria-hidden size={14} />
          {t("playground.toLatest")}
        </button>
      ) : null}
    </div>
  );
}
