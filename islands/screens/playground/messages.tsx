// The conversation as it is drawn: turn after turn, two answers side by side, and what people do with a message.
// A part of its own: before the page is alive nobody knows what is stored.
import { useMemo, useRef, useState } from "react";
import { useT } from "../../lib/i18n.ts";
import { lazyPart } from "../../lib/lazy-part.tsx";
import { toast } from "../../lib/toasts.ts";
import { branchOf } from "./branch.ts";
import { MessageList } from "./message-list.tsx";
import type { MessageActions } from "./message.tsx";
import { MessageView } from "./message.tsx";
import { Spoken } from "./spoken.tsx";
import { regenerate, removeMessage, resend } from "./turn-actions.ts";
import type { Playground } from "./use-playground.ts";

const RawDrawer = lazyPart(() => import("./raw.tsx"));

export interface MessagesProps {
  playground: Playground;
  /** Where the focus goes when what had it is gone. */
  onLeave: () => void;
}

/** The same functions with every render: a message that did not change is not drawn anew. */
function useActions(props: MessagesProps, onRaw: (id: string) => void): MessageActions {
  const t = useT();
  const latest = useRef(props);
  latest.current = props;
  return useMemo(() => {
    const playground = () => latest.current.playground;
    const leave = () => latest.current.onLeave();
    return {
      onDelete(id) {
        const undo = removeMessage(playground(), id);
        toast({ key: "message", text: t("playground.messageDeleted"), undo });
        leave();
      },
      onRegenerate(id) {
        regenerate(playground(), id);
        leave();
      },
      onResend(id, draft) {
        const undo = resend(playground(), id, draft);
        toast({ key: "message", text: t("playground.replaced"), undo });
        leave();
      },
      onBranch(id) {
        const copy = branchOf(playground().conversation, id);
        if (!copy) return;
        playground().begin(copy, copy.messages.at(-1)?.model);
        toast({ key: "branch", text: t("playground.branched") });
        leave();
      },
      onStop(id) {
        playground().stop(id);
        leave();
      },
      onRaw,
    };
  }, [t, onRaw]);
}

export default function Messages(props: MessagesProps) {
  const { playground } = props;
  const { conversation, isLoaded, isRunning, running } = playground;
  /** The message whose events are looked at. */
  const [rawId, setRawId] = useState<string>();
  const actions = useActions(props, setRawId);
  return (
    <>
      <MessageList
        conversation={conversation}
        isShown={isLoaded}
        isRunning={isRunning}
        onRestore={playground.restoreContext}
      >
        {(message, isLast, isMuted) => (
          <MessageView
            key={message.id}
            message={message}
            isLast={isLast}
            isRunning={isRunning}
            isGrowing={running.has(message.id)}
            isMuted={isMuted}
            actions={actions}
          />
        )}
      </MessageList>
      <Spoken message={conversation.messages.find(({ id }) => running.has(id))} />
      {rawId === undefined ? null : <RawDrawer id={rawId} onClose={() => setRawId(undefined)} />}
    </>
  );
}
